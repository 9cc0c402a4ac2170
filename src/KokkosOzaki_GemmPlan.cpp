// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_GemmPlan.hpp"
#include "impl/KokkosOzaki_Labels.hpp"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "../backends/KokkosOzaki_Backends.hpp"
#include "impl/KokkosOzaki_Batch.hpp"
#include "impl/KokkosOzaki_Dispatch.hpp"
#include "impl/KokkosOzaki_PlanImpl.hpp"
#include "impl/KokkosOzaki_Planes.hpp"
#include "stages/KokkosOzaki_Multiply.hpp"
#include "stages/KokkosOzaki_Reconstruct.hpp"
#include "stages/KokkosOzaki_Reduce.hpp"
#include "stages/KokkosOzaki_Repair.hpp"
#include "stages/KokkosOzaki_Residues.hpp"
#include "stages/KokkosOzaki_Scale.hpp"
#include "stages/KokkosOzaki_Statistics.hpp"
#include "stages/cuda/KokkosOzaki_Capture_Cuda.hpp"

namespace KokkosOzaki {

namespace Impl {

namespace {

constexpr std::int64_t most_planes = std::int64_t{1} << 20;  // of a block of a batch
constexpr int table_count = max_moduli - min_moduli + 1;

}  // namespace

template <class ExecutionSpace>
Context<ExecutionSpace>::Context(const char* backend)
    : engine(make_int8_gemm<ExecutionSpace>(backend)),
      kernels(is_host_space_v<ExecutionSpace> || is_cuda_space_v<ExecutionSpace> ? best_stage_kernels()
                                                                                 : nullptr),
      // Uninitialised: Kokkos 3.4 lets only the thread that initialised OpenMP fill a View.
      tables(Kokkos::view_alloc(std::string("KokkosOzaki::moduli_tables"), Kokkos::WithoutInitializing),
             table_count),
      control(Kokkos::view_alloc(std::string("KokkosOzaki::control"), Kokkos::WithoutInitializing)) {
  engine->prepare();
  Kokkos::deep_copy(tables, Kokkos::View<const ModuliTable*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
                                moduli_tables(), table_count));
}

template <class ExecutionSpace>
void Context<ExecutionSpace>::reserve(Kokkos::View<char*, MemorySpace>& memory, std::size_t bytes) {
  if (memory.extent(0) >= bytes) return;
  try {
    memory = Kokkos::View<char*, MemorySpace>(
        Kokkos::view_alloc(std::string("KokkosOzaki::workspace"), Kokkos::WithoutInitializing), bytes);
  } catch (const std::exception& reason) {
    throw WorkspaceError(
        "KokkosOzaki: a workspace of " + std::to_string(bytes) +
            " bytes could not be allocated (max_workspace_bytes bounds it): " + reason.what(),
        bytes, 0);
  }
}

template <class ExecutionSpace, class Scalar>
PlanImpl<ExecutionSpace, Scalar>::PlanImpl(const char* function, std::int64_t m, std::int64_t n,
                                           std::int64_t k, const GemmOptions& options,
                                           const Int8Gemm<ExecutionSpace>& engine, std::int64_t entries)
    : m_m(m),
      m_n(n),
      m_k(k),
      m_num_moduli(resolve_num_moduli(function, ScalarShape::of<Scalar>(), k, options)),
      m_given(options.num_moduli != 0),
      m_accurate(options.bound == Bound::accurate && guard_accurate(m_num_moduli, terms()) >= 2 &&
                 terms() <= max_k_block),
      m_toward_zero(options.rounding == Rounding::toward_zero),
      m_engine_reduces(!is_complex_v<Scalar> &&
                       engine.can_reduce(block_geometry(
                           m, n, std::min(k, max_k_block),
                           (options.moduli_per_group == 0 ? m_num_moduli : options.moduli_per_group) *
                               static_cast<int>(std::min(entries, most_planes / max_moduli))))),
      m_blocking(choose_blocking(engine, options.max_workspace_bytes, options.moduli_per_group, entries)),
      m_layout(layout(engine, m_blocking)) {}

template <class ExecutionSpace, class Scalar>
bool PlanImpl<ExecutionSpace, Scalar>::is_fused(const Blocking& blocking) const {
  return is_cuda_space_v<ExecutionSpace> && !is_complex_v<Scalar> && !m_engine_reduces &&
         blocking.group == m_num_moduli && blocking.kb >= m_k;
}

template <class ExecutionSpace, class Scalar>
int PlanImpl<ExecutionSpace, Scalar>::product_planes(const Blocking& blocking) const {
  if (!m_engine_reduces) return products * blocking.group;
  return m_accurate ? 1 : 0;  // the bound product
}

template <class ExecutionSpace, class Scalar>
WorkspaceLayout PlanImpl<ExecutionSpace, Scalar>::layout(const Int8Gemm<ExecutionSpace>& engine,
                                                         const Blocking& blocking) const {
  // Rows and columns change places for a row-major C.
  const int planes = products * blocking.group * static_cast<int>(blocking.entries);
  const std::size_t straight =
      engine.workspace_bytes(block_geometry(blocking.mb, blocking.nb, blocking.kb, planes));
  const std::size_t turned =
      engine.workspace_bytes(block_geometry(blocking.nb, blocking.mb, blocking.kb, planes));
  return {m_m,
          m_n,
          m_k,
          m_num_moduli,
          m_accurate,
          blocking,
          std::max(straight, turned),
          product_planes(blocking),
          !is_fused(blocking),
          products,
          parts};
}

template <class ExecutionSpace, class Scalar>
std::int64_t PlanImpl<ExecutionSpace, Scalar>::choose_entries(const Int8Gemm<ExecutionSpace>& engine,
                                                              std::size_t cap, Blocking whole,
                                                              std::int64_t entries) const {
  constexpr std::size_t most_bytes = std::size_t{1} << 32;  // the numbers of vectors and tiles fit 31 bits
  const std::size_t default_cap = default_batch_bytes<ExecutionSpace>(most_bytes);
  if (whole.kb < m_k) return 1;
  const auto fits = [&](std::int64_t count) {
    whole.entries = count;
    return layout(engine, whole).total <= (cap == 0 ? default_cap : std::min(cap, most_bytes));
  };
  std::int64_t least = 1, most = std::min(entries, most_planes / (products * whole.group));
  if (fits(most)) {
    least = most;
  } else {
    while (most - least > 1) {
      const std::int64_t middle = (least + most) / 2;
      (fits(middle) ? least : most) = middle;
    }
  }
  const std::int64_t blocks = (entries + least - 1) / least;
  return (entries + blocks - 1) / blocks;  // evened out
}

template <class ExecutionSpace, class Scalar>
Blocking PlanImpl<ExecutionSpace, Scalar>::choose_blocking(const Int8Gemm<ExecutionSpace>& engine,
                                                           std::size_t cap, int group,
                                                           std::int64_t entries) const {
  const int default_group = is_cuda_space_v<ExecutionSpace> ? m_num_moduli : 1;
  Blocking blocking{m_m, m_n, std::min({m_k, engine.max_k(), max_k_block}),
                    group == 0 ? default_group : std::min(group, m_num_moduli)};
  if (entries > 1) {
    blocking.entries = choose_entries(engine, cap, blocking, entries);
    if (blocking.entries > 1) return blocking;
  }
  const auto halved = [](std::int64_t size, std::int64_t padding) {
    return round_up((size + 1) / 2, padding);
  };
  // Blocks of C whose products of a group of moduli stay below this; columns, so that residues of rows are
  // kept.
  constexpr double most_product_bytes = 0x1p+32;
  if (blocking.group > 1 && !m_engine_reduces)
    while (static_cast<double>(blocking.mb) * static_cast<double>(4 * products * blocking.group) *
                   static_cast<double>(blocking.nb) >
               most_product_bytes &&
           blocking.nb > 1024)
      blocking.nb = halved(blocking.nb, vector_padding);
  std::size_t needed = layout(engine, blocking).total;
  if (cap == 0) {
    if (needed == WorkspaceLayout::too_large)
      throw WorkspaceError("KokkosOzaki: the workspace of this product (m=" + std::to_string(m_m) +
                               ", n=" + std::to_string(m_n) + ", k=" + std::to_string(m_k) +
                               ") exceeds what can be addressed; max_workspace_bytes bounds it",
                           needed, 0);
    return blocking;
  }
  while (needed > cap) {
    const auto rows = static_cast<double>(round_up(blocking.mb, vector_padding));
    const auto cols = static_cast<double>(round_up(blocking.nb, vector_padding));
    const double output_bytes = rows * cols * (parts * m_num_moduli + 4 * product_planes(blocking));
    const double residue_bytes =
        (rows + cols) * products * m_num_moduli * static_cast<double>(round_up(blocking.kb, k_padding));
    std::int64_t& longer = blocking.mb >= blocking.nb ? blocking.mb : blocking.nb;
    // A smaller group costs launches, which matter where the products are small.
    const bool can_regroup = blocking.group > 1 && !m_engine_reduces;
    if (can_regroup && (4 * output_bytes > residue_bytes || blocking.kb <= 1024)) {
      --blocking.group;
    } else if (residue_bytes > output_bytes && blocking.kb > 1024) {
      blocking.kb =
          halved(blocking.kb, k_padding);  // costs one more reduction per block, no more conversions
    } else if (longer > vector_padding) {
      longer = halved(longer, vector_padding);
    } else if (blocking.kb > k_padding) {
      blocking.kb = halved(blocking.kb, k_padding);
    } else {
      throw WorkspaceError("KokkosOzaki: max_workspace_bytes is " + std::to_string(cap) +
                               ", the smallest block of this product (m=" + std::to_string(m_m) +
                               ", n=" + std::to_string(m_n) + ", k=" + std::to_string(m_k) + ", " +
                               std::to_string(m_num_moduli) + " moduli) needs " + std::to_string(needed),
                           needed, cap);
    }
    needed = layout(engine, blocking).total;
  }
  return blocking;
}

template <class ExecutionSpace, class Scalar>
template <class RowElement, class ColElement>
void PlanImpl<ExecutionSpace, Scalar>::execute_turned(const ExecutionSpace& exec,
                                                      Context<ExecutionSpace>& context, const Scalar& alpha,
                                                      const VectorSet<RowElement>& rows,
                                                      const VectorSet<ColElement>& cols, const Scalar& beta,
                                                      const MatrixRef<Scalar>& out, bool turned, void* buffer,
                                                      const KnownVectors& known_rows,
                                                      const KnownVectors& known_cols) {
  const std::int64_t m = out.rows, n = out.cols, k = m_k;
  // A batch: all entries at once, the vectors numbered with their padding.
  const std::int64_t entries = out.entries, row_count = rows.count, col_count = cols.count;
  const bool batched = rows.pitch != 0;
  const std::int64_t mb = turned ? m_blocking.nb : m_blocking.mb, nb = turned ? m_blocking.mb : m_blocking.nb;
  const std::int64_t kb = m_blocking.kb;

  const StageKernels* kernels = context.kernels;
  Int8Gemm<ExecutionSpace>& engine = *context.engine;
  const ModuliTable* table = context.tables.data() + (m_num_moduli - min_moduli);
  char* base = aligned(buffer);
  Control* control = batched ? at<Control>(base, m_layout.control) : context.control.data();
  auto* row_exponent = at<std::int32_t>(base, m_layout.exponent);
  auto* row_square_sum = at<std::uint64_t>(base, m_layout.square_sum);
  auto* row_alpha = at<std::int32_t>(base, m_layout.alpha);
  auto* row_candidate = at<std::int32_t>(base, m_layout.candidate);
  auto* row_maxima = at<std::int32_t>(base, m_layout.maxima);
  const std::int32_t* col_exponent = row_exponent + row_count;
  auto* col_alpha = row_alpha + row_count;
  auto* col_candidate = row_candidate + row_count;
  auto* col_maxima = row_maxima + row_count;
  auto* rA = at<std::int8_t>(base, m_layout.residues);
  auto* P = at<std::int32_t>(base, m_layout.products);
  auto* Y = at<std::int8_t>(base, m_layout.outputs);
  void* engine_workspace = base + m_layout.engine;

  reset_control(exec, control, entries);
  operand_statistics(exec, kernels, rows, cols, known_rows, known_cols,
                     at<ChunkStatistics>(base, m_layout.residues),
                     static_cast<std::int64_t>(m_layout.residue_bytes / sizeof(ChunkStatistics)),
                     row_exponent, row_square_sum, control);
  scale_fast(exec, fast_budget(m_num_moduli, terms()), row_count + col_count, row_exponent, row_square_sum,
             row_alpha);
  if (m_accurate) {
    reset_maxima(exec, row_count + col_count, row_maxima);
    for (std::int64_t i = 0; i < m; i += mb)
      for (std::int64_t j = 0; j < n; j += nb) {
        const std::int64_t bm = std::min(mb, m - i), bn = std::min(nb, n - j);
        for (std::int64_t l = 0; l < k; l += kb) {
          PlaneGeometry g = block_geometry(bm, bn, std::min(kb, k - l), static_cast<int>(entries));
          std::int8_t* const qA = rA;
          std::int8_t* const qB = rA + entries * g.stride_a;
          const std::int8_t *plane_a = qA, *plane_b = qB;
          if (known_rows.quantised == nullptr)
            quantize(exec, kernels, part(rows, i, bm, l, g.k), row_exponent + i, qA, g.lda,
                     entries * (g.stride_a / g.lda));
          else
            plane_a = known_rows.quantised + i * known_rows.ld + l, g.lda = known_rows.ld;
          if (known_cols.quantised == nullptr)
            quantize(exec, kernels, part(cols, j, bn, l, g.k), col_exponent + j, qB, g.ldb,
                     entries * (g.stride_b / g.ldb));
          else
            plane_b = known_cols.quantised + j * known_cols.ld + l, g.ldb = known_cols.ld;
          multiply(exec, engine, g, plane_a, plane_b, P, l > 0, engine_workspace, Labels::scale);
        }
        const BoundProduct product{P, bm, bn, round_up(bm, vector_padding), entries, rows.pitch, cols.pitch};
        bound_maxima(exec, product, row_maxima + i, col_maxima + j);
      }
    const Budget budget = accurate_budget(m_num_moduli, terms(), quantised_unit);
    const int cap = scale_cap(m_num_moduli, is_single);
    scale_candidates(exec, budget, cap, n, row_count / entries, row_exponent, row_maxima, row_alpha,
                     row_candidate, control, entries);
    scale_candidates(exec, budget, cap, m, col_count / entries, col_exponent, col_maxima, col_alpha,
                     col_candidate, control, entries);
    if (batched) {
      scale_choose(exec, row_count / entries, row_candidate, control, row_alpha, entries);
      scale_choose(exec, col_count / entries, col_candidate, control, col_alpha, entries);
    } else {
      scale_choose(exec, m + n, row_candidate, control, row_alpha);
    }
  }

  const bool fused = is_fused(m_blocking);
  const EpilogueOf<Scalar> epilogue{alpha, beta};
  for (std::int64_t i = 0; i < m; i += mb) {
    for (std::int64_t j = 0; j < n; j += nb) {
      const std::int64_t bm = std::min(mb, m - i), bn = std::min(nb, n - j);
      // From the planes of one modulus to those of the next.
      const std::int64_t stride_y = entries * round_up(bm, vector_padding) * round_up(bn, vector_padding);
      for (std::int64_t l = 0; l < k; l += kb) {
        PlaneGeometry g = block_geometry(bm, bn, std::min(kb, k - l), products * m_blocking.group);
        std::int64_t stride_a = entries * g.stride_a, stride_b = entries * g.stride_b;
        std::int8_t* rB = rA + products * m_num_moduli * stride_a;
        // Fewer zeros to write and to read where the engine allows it; the entries of a batch follow each
        // other, and rows may serve several blocks.
        const std::int64_t padding =
            batched || m_engine_reduces || nb < n ? vector_padding : engine.zero_padding(g);
        const ResidueOperandOf<RowElement> block_rows{part(rows, i, bm, l, g.k),
                                                      row_exponent + i,
                                                      row_alpha + i,
                                                      {rA, stride_a, g.lda, entries * round_up(bm, padding)}};
        const ResidueOperandOf<ColElement> block_cols{part(cols, j, bn, l, g.k),
                                                      col_exponent + j,
                                                      col_alpha + j,
                                                      {rB, stride_b, g.ldb, entries * round_up(bn, padding)}};
        const bool rows_are_there = known_rows.residues != nullptr || (j > 0 && kb >= k);
        const bool cols_are_there = known_cols.residues != nullptr;
        if (!rows_are_there || !cols_are_there)
          residues_for<Scalar>(exec, kernels, cols_are_there ? ResidueOperandOf<ColElement>{} : block_cols,
                               rows_are_there ? ResidueOperandOf<RowElement>{} : block_rows, table,
                               m_num_moduli, m_toward_zero);
        const std::int8_t *planes_a = rA, *planes_b = rB;
        if (known_rows.residues != nullptr) {
          planes_a = known_rows.residues + i * known_rows.ld + l;
          g.lda = known_rows.ld, g.stride_a = stride_a = known_rows.plane_stride;
        }
        if (known_cols.residues != nullptr) {
          planes_b = known_cols.residues + j * known_cols.ld + l;
          g.ldb = known_cols.ld, g.stride_b = stride_b = known_cols.plane_stride;
        }
        for (int p = 0; p < m_num_moduli; p += m_blocking.group) {
          const int moduli_count = std::min(m_blocking.group, m_num_moduli - p);
          g.count = products * moduli_count * static_cast<int>(entries);
          g.planes_per_modulus = static_cast<int>(entries);
          const std::int8_t* group_a = planes_a + products * p * stride_a;
          const std::int8_t* group_b = planes_b + products * p * stride_b;
          if (m_engine_reduces) {
            multiply_reduce(exec, engine, g, group_a, group_b, table, p, Y + p * stride_y, l > 0,
                            engine_workspace);
            continue;
          }
          multiply(exec, engine, g, group_a, group_b, P, false, engine_workspace);
          if (fused) continue;
          // The entries of a batch are one matrix here, with the columns of their padding.
          const ReducePlanes planes{
              p, moduli_count, bm, batched ? stride_y / g.ldp : bn, g.ldp, P, entries * g.stride_p,
              Y, stride_y};
          if constexpr (is_complex_v<Scalar>)
            reduce_complex(exec, kernels, planes, table, l > 0);
          else
            reduce(exec, kernels, planes, table, l > 0);
        }
      }
      MatrixRef<Scalar> block = out;
      if (!batched) block.data += i * out.row_stride + j * out.col_stride, block.rows = bm, block.cols = bn;
      const ReconstructBlock vectors{Y,
                                     stride_y,
                                     round_up(bm, vector_padding),
                                     row_exponent + i,
                                     col_exponent + j,
                                     row_alpha + i,
                                     col_alpha + j,
                                     m_num_moduli,
                                     rows.pitch,
                                     cols.pitch};
      if (!fused) reconstruct(exec, kernels, vectors, table, epilogue, block);
      if constexpr (is_cuda_space_v<ExecutionSpace> && !is_complex_v<Scalar>) {
        if (fused) reduce_reconstruct(exec, P, vectors, table, m_num_moduli, epilogue, block);
      }
      repair(exec, part(rows, i, bm), part(cols, j, bn), row_exponent + i, col_exponent + j, control,
             epilogue, block);
    }
  }
  m_last_exec.emplace(exec);
}

template <class ExecutionSpace, class Scalar>
template <class AElement, class BElement>
void PlanImpl<ExecutionSpace, Scalar>::execute_batch(const ExecutionSpace& exec,
                                                     Context<ExecutionSpace>& context, const Scalar& alpha,
                                                     const MatrixRef<const AElement>& a,
                                                     const MatrixRef<const BElement>& b, const Scalar& beta,
                                                     const MatrixRef<Scalar>& C, void* buffer) {
  const std::int64_t block = m_blocking.entries;
  for (std::int64_t first = 0; first < C.entries; first += block) {
    if (block == 1) {
      execute(exec, context, alpha, rows_of(single_entry(a, first)), rows_of(single_entry(b, first)), beta,
              single_entry(C, first), buffer);
      continue;
    }
    const std::int64_t count = std::min(block, C.entries - first);
    auto block_a = entries_of(a, first, count);
    auto block_b = entries_of(b, first, count);
    auto block_c = entries_of(C, first, count);
    char* pointers = aligned(buffer) + m_layout.pointers;
    const std::size_t bytes = static_cast<std::size_t>(block) * sizeof(void*);
    move_pointers(exec, block_a, at<const AElement*>(pointers, 0));
    move_pointers(exec, block_b, at<const BElement*>(pointers, bytes));
    move_pointers(exec, block_c, at<Scalar*>(pointers, 2 * bytes));
    execute(exec, context, alpha, rows_of(block_a, round_up(a.rows, vector_padding)),
            rows_of(block_b, round_up(b.rows, vector_padding)), beta, block_c, buffer);
  }
}

template <class ExecutionSpace, class Scalar>
GemmReport PlanImpl<ExecutionSpace, Scalar>::report(const Context<ExecutionSpace>& context) const {
  bool candidates = m_accurate;
  if (m_accurate && m_last_exec.has_value()) {
    m_last_exec->fence();
    const auto control = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), context.control);
    candidates = control().gain > 0;
  }
  // 2^-alpha_i <= y ||a_i||_2 and 2^-beta_j <= y ||b_j||_2 give |C - exact| <= (sqrt(k) y + k y^2 / 4)
  // ||a_i|| ||b_j||; truncation doubles the error of an entry (docs/accuracy.md, "Normwise").
  const auto k = static_cast<double>(terms());
  double y;
  if (candidates) {
    const int step =
        (range_budget(m_num_moduli).bit_length() - 2 - ceil_log2(static_cast<std::uint64_t>(terms()))) >> 1;
    y = std::ldexp(1.0, 1 - std::min(step, scale_cap(m_num_moduli, is_single)));
  } else {
    const Budget budget = fast_budget(m_num_moduli, terms());
    const double root = std::sqrt(std::ldexp(static_cast<double>(budget.h), budget.bits - 64));
    y = 2.0 * (1.0 + std::ldexp(std::sqrt(k), -15)) / root;
  }
  if (m_toward_zero) y *= 2.0;
  const double bound =
      (std::sqrt(k) * y + k * y * y / 4) * (1 + 1e-12);  // the factor covers this line's own rounding
  GemmReport report;
  report.num_moduli = m_num_moduli;
  report.bound_used = candidates ? Bound::accurate : Bound::fast;
  report.backend = context.engine->name();
  report.error_bound = std::ldexp(bound, precision_v<Scalar>);
  report.reason = m_given ? "num_moduli" : "normwise";
  return report;
}

template <class ExecutionSpace, class Scalar>
void apply_beta(const ExecutionSpace& exec, const Scalar& beta, const MatrixRef<Scalar>& C) {
  scale_c(exec, beta, C.row_stride > C.col_stride ? C.transposed() : C);
}

template <class ExecutionSpace, class Scalar>
void apply_beta_to_array(const ExecutionSpace& exec, const Scalar& beta, MatrixRef<Scalar> C, void* buffer) {
  if (beta == Scalar(1)) return;
  move_pointers(exec, C, at<Scalar*>(aligned(buffer), 0));
  apply_beta(exec, beta, C);
}

}  // namespace Impl

template <class ExecutionSpace, class Scalar>
bool GemmPlan<ExecutionSpace, Scalar>::can_run(std::int64_t m, std::int64_t n, std::int64_t k,
                                               const GemmOptions& options) {
  try {
    static_cast<void>(workspace_bytes(m, n, k, options));
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

template <class ExecutionSpace, class Scalar>
std::size_t GemmPlan<ExecutionSpace, Scalar>::workspace_bytes(std::int64_t m, std::int64_t n, std::int64_t k,
                                                              const GemmOptions& options) {
  Impl::check_plan("GemmPlan::workspace_bytes", Impl::ScalarShape::of<Scalar>(), 'N', 'N', m, n, k, options);
  const auto engine = Impl::make_int8_gemm<ExecutionSpace>(options.backend);
  if (m == 0 || n == 0 || k == 0 || options.method == Method::native) return 0;
  if (Impl::chooses_from_data(options))
    return Impl::ComponentwiseProduct<ExecutionSpace, Scalar>(m, n, k, options, *engine)
        .workspace_bytes("GemmPlan::workspace_bytes", options, *engine);
  return Impl::PlanImpl<ExecutionSpace, Scalar>("GemmPlan::workspace_bytes", m, n, k, options, *engine)
      .workspace_bytes();
}

template <class ExecutionSpace, class Scalar>
GemmPlan<ExecutionSpace, Scalar>::GemmPlan(ExternalWorkspace, const ExecutionSpace& exec, char transA,
                                           char transB, std::int64_t m, std::int64_t n, std::int64_t k,
                                           const GemmOptions& options)
    : m_transA(transA), m_transB(transB), m_m(m), m_n(n), m_k(k), m_options(options) {
  Impl::check_plan("GemmPlan", Impl::ScalarShape::of<Scalar>(), transA, transB, m, n, k, options);
  Impl::check_not_captured("GemmPlan", exec);
  m_context = std::make_unique<Impl::Context<ExecutionSpace>>(options.backend);
  const bool is_empty = m == 0 || n == 0 || k == 0;
  if (Impl::may_be_native(options) && (!is_empty || options.method == Method::native)) {
    if (!is_empty) m_context->native.prepare();
    m_prefers_native = options.method == Method::native;
    m_was_native = m_prefers_native;
    m_native_reason = "native";
    m_native_backend = Impl::NativeGemm<ExecutionSpace>::name(Impl::NativeGemm<ExecutionSpace>::has_vendor());
    if (options.method == Method::native) return;
    if (options.method == Method::automatic) {
      m_native_reason = "automatic";
      m_prefers_native =
          Impl::native_is_faster<ExecutionSpace, Scalar>("GemmPlan", exec, *m_context, {m, n, k}, options);
      m_was_native = m_prefers_native;
    }
  }
  if (!is_empty && Impl::chooses_from_data(options)) {
    using Product = Impl::ComponentwiseProduct<ExecutionSpace, Scalar>;
    m_selection = std::make_unique<Impl::Selection>();
    m_componentwise = std::make_unique<Product>(m, n, k, options, *m_context->engine);
    m_workspace_bytes = m_componentwise->workspace_bytes("GemmPlan", options, *m_context->engine);
    m_impl = std::make_unique<Impl::PlanImpl<ExecutionSpace, Scalar>>(
        m_componentwise->plan("GemmPlan", options, Impl::max_moduli, *m_context->engine));
    return;
  }
  if (!is_empty) {
    m_impl = std::make_unique<Impl::PlanImpl<ExecutionSpace, Scalar>>("GemmPlan", m, n, k, options,
                                                                      *m_context->engine);
    m_workspace_bytes = m_impl->workspace_bytes();
    return;
  }
  // An empty product computes nothing: no cap is too small for it, and no number of moduli. It has a report.
  GemmOptions of_report = options;
  of_report.max_workspace_bytes = 0;
  if (Impl::chooses_from_data(options)) of_report.accuracy = Accuracy::normwise();
  std::int64_t k_of_report = std::max<std::int64_t>(k, 1);
  if (!Impl::moduli_complaint(Impl::ScalarShape::of<Scalar>(), k_of_report, options).empty()) {
    k_of_report = 1;
    if (options.num_moduli == 0) of_report.num_moduli = Impl::max_moduli;
  }
  m_impl = std::make_unique<Impl::PlanImpl<ExecutionSpace, Scalar>>("GemmPlan", 1, 1, k_of_report, of_report,
                                                                    *m_context->engine);
}

template <class ExecutionSpace, class Scalar>
GemmPlan<ExecutionSpace, Scalar>::GemmPlan(const ExecutionSpace& exec, char transA, char transB,
                                           std::int64_t m, std::int64_t n, std::int64_t k,
                                           const GemmOptions& options)
    : GemmPlan(ExternalWorkspace{}, exec, transA, transB, m, n, k, options) {
  m_context->reserve(workspace_bytes());
}

template <class ExecutionSpace, class Scalar>
GemmPlan<ExecutionSpace, Scalar>::GemmPlan(GemmPlan&&) noexcept = default;
template <class ExecutionSpace, class Scalar>
GemmPlan<ExecutionSpace, Scalar>& GemmPlan<ExecutionSpace, Scalar>::operator=(GemmPlan&&) noexcept = default;
template <class ExecutionSpace, class Scalar>
GemmPlan<ExecutionSpace, Scalar>::~GemmPlan() = default;

template <class ExecutionSpace, class Scalar>
std::size_t GemmPlan<ExecutionSpace, Scalar>::workspace_bytes() const {
  return m_workspace_bytes;
}

template <class ExecutionSpace, class Scalar>
template <class AElement, class BElement>
void GemmPlan<ExecutionSpace, Scalar>::run(const ExecutionSpace& exec, const Scalar& alpha,
                                           const Impl::PlanOperand<AElement>& A,
                                           const Impl::PlanOperand<BElement>& B, const Scalar& beta,
                                           const Impl::MatrixRef<Scalar>& C, void* buffer,
                                           std::size_t buffer_bytes) {
  const auto check_prepared = [&](const auto& operand, char name, char trans, std::int64_t rows,
                                  std::int64_t cols) {
    if (operand.prepared == nullptr) return;
    trans = Impl::canonical_trans(Impl::ScalarShape::of<Scalar>(), trans);
    const bool moduli_matter = m_impl != nullptr && m_m > 0 && m_n > 0 && m_k > 0;
    const int num_moduli = !moduli_matter || m_componentwise != nullptr ? 0 : m_impl->num_moduli();
    Impl::check_prepared({name, trans, rows, cols, num_moduli, m_options.bound, m_options.rounding},
                         *operand.prepared, operand.known != nullptr, moduli_matter);
  };
  check_prepared(A, 'A', m_transA, m_m, m_k);
  check_prepared(B, 'B', m_transB, m_k, m_n);
  Impl::check_execute(m_transA, m_transB, m_m, m_n, m_k, A.matrix, B.matrix, C);
  if (m_m == 0 || m_n == 0) return;
  if (alpha == Scalar(0) || m_k == 0) return Impl::apply_beta(exec, beta, C);
  const auto op_a = Impl::op(A.matrix, m_transA);
  const auto op_b = Impl::op(B.matrix, m_transB);
  const bool vendor_takes = Impl::NativeGemm<ExecutionSpace>::vendor_takes(op_a, op_b, C);
  const auto run_native = [&](const char* reason) {
    m_context->native.run(exec, alpha, op_a, op_b, beta, C);
    m_was_native = true;
    m_native_reason = reason;
    m_native_backend = Impl::NativeGemm<ExecutionSpace>::name(vendor_takes);
  };
  if (m_options.method == Method::native) return run_native("native");
  if (m_prefers_native && vendor_takes) return run_native("automatic");
  m_was_native = false;
  const std::size_t got = buffer != nullptr ? buffer_bytes : m_context->workspace.extent(0);
  if (got < workspace_bytes())
    throw WorkspaceError("KokkosOzaki::GemmPlan::execute: the workspace must have " +
                             std::to_string(workspace_bytes()) + " contiguous bytes, got " +
                             std::to_string(got) + ".",
                         workspace_bytes(), got);
  void* const workspace = buffer != nullptr ? buffer : m_context->workspace.data();
  const auto a = Impl::rows_of(op_a);
  const auto b = Impl::rows_of(op_b.transposed());
  const Impl::KnownVectors known_a = A.known != nullptr ? *A.known : Impl::KnownVectors{};
  const Impl::KnownVectors known_b = B.known != nullptr ? *B.known : Impl::KnownVectors{};
  if (m_componentwise == nullptr)
    return m_impl->execute(exec, *m_context, alpha, a, b, beta, C, workspace, known_a, known_b);

  Impl::check_not_captured("GemmPlan::execute", exec, Impl::captured_selection);
  const std::size_t kept_bytes = m_componentwise->kept_bytes();
  char* const rest = static_cast<char*>(workspace) + kept_bytes;
  const Impl::Selection selection =
      m_componentwise->select(exec, *m_context, a, b, known_a, known_b, workspace, rest);
  *m_selection = selection;
  if (Impl::turns_native<ExecutionSpace, Scalar>("GemmPlan::execute", exec, *m_context, {m_m, m_n, m_k},
                                                 m_options, selection, vendor_takes))
    return run_native(selection.exact_entries != 0 && m_options.fallback == Fallback::vendor ? "fallback"
                                                                                             : "automatic");
  GemmOptions options = m_options;
  options.max_workspace_bytes = got;  // blocks that fit, whatever the number of moduli
  *m_impl = m_componentwise->plan("GemmPlan::execute", options, selection.num_moduli, *m_context->engine);
  m_componentwise->execute(exec, *m_context, selection, *m_impl, alpha, a, b, beta, C, workspace, rest);
}

template <class ExecutionSpace, class Scalar>
GemmReport GemmPlan<ExecutionSpace, Scalar>::report() const {
  if (m_was_native) {
    // A sum of so many products with one rounding for each product and each sum, in any order: gamma_k |op(A)| |op(B)|
    // (Higham, Accuracy and Stability of Numerical Algorithms, 2002, section 3.5), in so far as nothing underflows.
    const double terms = Impl::parts_of_v<Scalar> * static_cast<double>(m_k);
    const double lost = std::ldexp(terms, -Impl::precision_v<Scalar>);
    GemmReport report;
    report.method = Method::native;
    report.backend = m_native_backend;
    report.error_bound = report.componentwise_bound =
        lost < 1 ? terms / (1 - lost) : std::numeric_limits<double>::infinity();
    report.reason = m_native_reason;
    return report;
  }
  GemmReport report = m_impl->report(*m_context);
  if (m_componentwise == nullptr) return report;
  report.reason = "componentwise";
  report.componentwise_bound = static_cast<double>(m_componentwise->constant());
  if (m_selection->num_moduli == 0) {  // not known yet
    report.num_moduli = 0;
    report.error_bound = report.componentwise_bound;
  } else {
    report.exact_entries = m_selection->all_exact ? m_m * m_n : m_selection->exact_entries;
    if (m_selection->all_exact) report.num_moduli = 0, report.error_bound = 0, report.reason = "exact";
  }
  return report;
}

template <class ExecutionSpace, class Scalar>
const char* GemmPlan<ExecutionSpace, Scalar>::backend_name() const {
  return m_context->engine->name();
}

#define KOKKOSOZAKI_INSTANTIATE_MIX(SPACE, SCALAR, A, B)                                                     \
  template void GemmPlan<SPACE, SCALAR>::run<A, B>(const SPACE&, const SCALAR&, const Impl::PlanOperand<A>&, \
                                                   const Impl::PlanOperand<B>&, const SCALAR&,               \
                                                   const Impl::MatrixRef<SCALAR>&, void*, std::size_t);      \
  template void Impl::PlanImpl<SPACE, SCALAR>::execute<A, B>(                                                \
      const SPACE&, Impl::Context<SPACE>&, const SCALAR&, const Impl::VectorSet<A>&,                         \
      const Impl::VectorSet<B>&, const SCALAR&, const Impl::MatrixRef<SCALAR>&, void*,                       \
      const Impl::KnownVectors&, const Impl::KnownVectors&);                                                 \
  template void Impl::PlanImpl<SPACE, SCALAR>::execute_batch<A, B>(                                          \
      const SPACE&, Impl::Context<SPACE>&, const SCALAR&, const Impl::MatrixRef<const A>&,                   \
      const Impl::MatrixRef<const B>&, const SCALAR&, const Impl::MatrixRef<SCALAR>&, void*);
#define KOKKOSOZAKI_INSTANTIATE_SCALAR(SPACE, SCALAR)                                     \
  template class Impl::PlanImpl<SPACE, SCALAR>;                                           \
  template void Impl::apply_beta<SPACE, SCALAR>(const SPACE&, const SCALAR&,              \
                                                const Impl::MatrixRef<SCALAR>&);          \
  template void Impl::apply_beta_to_array<SPACE, SCALAR>(const SPACE&, const SCALAR&,     \
                                                         Impl::MatrixRef<SCALAR>, void*); \
  template class GemmPlan<SPACE, SCALAR>;
#define KOKKOSOZAKI_INSTANTIATE(SPACE)                               \
  template struct Impl::Context<SPACE>;                              \
  KOKKOSOZAKI_FOR_EACH_SCALAR(KOKKOSOZAKI_INSTANTIATE_SCALAR, SPACE) \
  KOKKOSOZAKI_FOR_EACH_MIX(KOKKOSOZAKI_INSTANTIATE_MIX, SPACE)
KOKKOSOZAKI_FOR_EACH_SPACE(KOKKOSOZAKI_INSTANTIATE)

}  // namespace KokkosOzaki
