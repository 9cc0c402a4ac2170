// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "impl/KokkosOzaki_Componentwise.hpp"

#include <algorithm>
#include <string>

#include "impl/KokkosOzaki_Batch.hpp"
#include "impl/KokkosOzaki_Planes.hpp"
#include "stages/KokkosOzaki_Certify.hpp"
#include "stages/KokkosOzaki_ExactProducts.hpp"
#include "stages/KokkosOzaki_Multiply.hpp"
#include "stages/KokkosOzaki_Repair.hpp"
#include "stages/KokkosOzaki_Scale.hpp"
#include "stages/KokkosOzaki_Statistics.hpp"

namespace KokkosOzaki::Impl {

namespace {

constexpr std::int64_t most_plane_entries = std::int64_t{1} << 28;  // of a block, 1 GiB
constexpr std::int64_t least_capacity = 1024, entries_per_slot = 64;

/// \brief How many positions the first lower bound takes: an eighth of those that one product can have. It costs a
/// fraction of the whole, which follows only where it could save more than one modulus.
std::int64_t first_positions(std::int64_t whole) {
  constexpr std::int64_t least = 1024;
  return whole <= least ? whole : std::max(least, round_up(whole / 8, k_padding));
}

/// \brief How many positions the lower bound for small entries takes first: half of many. In data of one kind that is one
/// bit of T, a quarter of a modulus.
std::int64_t fine_positions(std::int64_t whole) {
  constexpr std::int64_t least = 4096;
  return whole <= least ? whole : std::max(least, round_up(whole / 2, k_padding));
}

/// c as the certificate takes it; a smaller one promises more.
std::int64_t certificate_constant(const Accuracy& accuracy, std::int64_t k) {
  if (accuracy.is_default()) return std::min(k, max_certificate_constant);
  return accuracy.constant() >= static_cast<double>(max_certificate_constant)
             ? max_certificate_constant
             : static_cast<std::int64_t>(accuracy.constant());
}

/// Waits for the device.
template <class ExecutionSpace>
void read_back(const ExecutionSpace& exec, const CertificateRecord* records, std::int64_t count,
               CertificateRecord* copies) {
  if constexpr (is_host_space_v<ExecutionSpace>) {
    exec.fence();
    std::copy_n(records, count, copies);
  } else {
    using Unmanaged = Kokkos::MemoryUnmanaged;
    const auto size = static_cast<std::size_t>(count);
    Kokkos::deep_copy(
        exec, Kokkos::View<CertificateRecord*, Kokkos::HostSpace, Unmanaged>(copies, size),
        Kokkos::View<const CertificateRecord*, typename ExecutionSpace::memory_space, Unmanaged>(records,
                                                                                                 size));
    exec.fence();
  }
}

}  // namespace

/// What outlives the selection.
template <class ExecutionSpace, class Scalar>
struct ComponentwiseProduct<ExecutionSpace, Scalar>::Kept {
  CertificateRecord* record;
  std::uint64_t* square_sum;
  std::uint64_t* sum;
  CertificateVector* vectors;
  std::int64_t* list;
  Scalar* values;
  std::int32_t* exponent;
  std::size_t bytes;  // with room to align
};

template <class ExecutionSpace, class Scalar>
typename ComponentwiseProduct<ExecutionSpace, Scalar>::Kept
ComponentwiseProduct<ExecutionSpace, Scalar>::kept_at(void* buffer) const {
  // As numbers: for the size alone there is no buffer.
  const auto base = reinterpret_cast<std::uintptr_t>(aligned(buffer));
  std::size_t end = 0;
  const auto slice = [&](std::int64_t count, std::size_t size) {
    const std::uintptr_t begin = base + end;
    end += (static_cast<std::size_t>(count) * size + 63) / 64 * 64;
    return begin;
  };
  const std::int64_t vectors = m_m + m_n;
  Kept kept{};
  kept.record = reinterpret_cast<CertificateRecord*>(slice(1, sizeof(CertificateRecord)));
  kept.square_sum = reinterpret_cast<std::uint64_t*>(slice(vectors, sizeof(std::uint64_t)));
  kept.sum = reinterpret_cast<std::uint64_t*>(slice(vectors, sizeof(std::uint64_t)));
  kept.vectors = reinterpret_cast<CertificateVector*>(slice(vectors, sizeof(CertificateVector)));
  kept.list = reinterpret_cast<std::int64_t*>(slice(m_capacity, sizeof(std::int64_t)));
  kept.values = reinterpret_cast<Scalar*>(slice(m_capacity, sizeof(Scalar)));
  kept.exponent = reinterpret_cast<std::int32_t*>(slice(vectors, sizeof(std::int32_t)));
  kept.bytes = end + 63;
  return kept;
}

template <class ExecutionSpace, class Scalar>
std::size_t ComponentwiseProduct<ExecutionSpace, Scalar>::scratch_of(const Int8Gemm<ExecutionSpace>& engine,
                                                                     std::int64_t mb, std::int64_t nb,
                                                                     std::int64_t kb) const {
  const PlaneGeometry g = block_geometry(mb, nb, kb, 1);
  const std::size_t records = static_cast<std::size_t>(chunks_of(m_k)) * sizeof(ChunkStatistics);
  const auto operands = static_cast<std::size_t>(g.stride_a + g.stride_b);
  return std::max(operands, (records + 63) / 64 * 64) +
         static_cast<std::size_t>(planes) * static_cast<std::size_t>(g.stride_p) * sizeof(std::int32_t) +
         engine.workspace_bytes(g) + 63;
}

template <class ExecutionSpace, class Scalar>
ComponentwiseProduct<ExecutionSpace, Scalar>::ComponentwiseProduct(std::int64_t m, std::int64_t n,
                                                                   std::int64_t k, const GemmOptions& options,
                                                                   const Int8Gemm<ExecutionSpace>& engine)
    : m_m(m),
      m_n(n),
      m_k(k),
      m_constant(certificate_constant(options.accuracy, k)),
      m_rule{parts_of_v<Scalar> * k, precision_v<Scalar>, options.rounding == Rounding::toward_zero},
      m_table(m_rule.table()),
      m_capacity(std::min(m * n, std::max(least_capacity, m * n / entries_per_slot))),
      m_mb(m),
      m_nb(n),
      m_kb(std::min({k, engine.max_k(), max_k_block})) {
  const std::size_t cap = options.max_workspace_bytes;
  m_kept_bytes = kept_at(nullptr).bytes;
  const auto halve = [](std::int64_t& size, std::int64_t padding) {
    size = round_up((size + 1) / 2, padding);
  };
  while (m_mb * m_nb > most_plane_entries) halve(m_mb > m_nb ? m_mb : m_nb, vector_padding);
  while (cap != 0 && m_kept_bytes + scratch_of(engine, m_mb, m_nb, m_kb) > cap) {
    std::int64_t& longer = m_mb >= m_nb ? m_mb : m_nb;
    if (m_kb > 1024 && m_kb >= longer)
      halve(m_kb, k_padding);
    else if (longer > vector_padding)
      halve(longer, vector_padding);
    else if (m_kb > k_padding)
      halve(m_kb, k_padding);
    else
      break;
  }
  m_scratch_bytes = scratch_of(engine, m_mb, m_nb, m_kb);
  const std::size_t needed = m_kept_bytes + m_scratch_bytes;
  if (cap != 0 && needed > cap)
    throw WorkspaceError("KokkosOzaki: max_workspace_bytes is " + std::to_string(cap) +
                             ", the choice of the number of moduli for this product (m=" + std::to_string(m) +
                             ", n=" + std::to_string(n) + ", k=" + std::to_string(k) + ") needs " +
                             std::to_string(needed),
                         needed, cap);
}

template <class ExecutionSpace, class Scalar>
PlanImpl<ExecutionSpace, Scalar> ComponentwiseProduct<ExecutionSpace, Scalar>::plan(
    const char* function, GemmOptions options, int num_moduli, const Int8Gemm<ExecutionSpace>& engine,
    std::int64_t entries) const {
  const std::size_t cap = options.max_workspace_bytes;
  options.num_moduli = num_moduli;
  options.bound = Bound::fast;
  if (cap != 0) options.max_workspace_bytes -= m_kept_bytes;
  try {
    return PlanImpl<ExecutionSpace, Scalar>(function, m_m, m_n, m_k, options, engine, entries);
  } catch (const WorkspaceError& error) {
    if (cap == 0) throw;
    const std::size_t needed = m_kept_bytes + error.needed_bytes();
    throw WorkspaceError("KokkosOzaki: max_workspace_bytes is " + std::to_string(cap) +
                             ", the smallest block of this product (m=" + std::to_string(m_m) +
                             ", n=" + std::to_string(m_n) + ", k=" + std::to_string(m_k) + ", " +
                             std::to_string(num_moduli) + " moduli chosen from the data) needs " +
                             std::to_string(needed),
                         needed, cap);
  }
}

template <class ExecutionSpace, class Scalar>
bool ComponentwiseProduct<ExecutionSpace, Scalar>::device_chooses(
    const Int8Gemm<ExecutionSpace>& engine) const {
  // Below that the device would wait for the host, whose empty launches take longer than a second wait.
  constexpr double least = 0x1p+37;
  const bool one_block = m_mb >= m_m && m_nb >= m_n;
  return one_block &&
         static_cast<double>(m_m) * static_cast<double>(m_n) * static_cast<double>(m_k) >= least &&
         engine.can_skip(block_geometry(m_m, m_n, m_kb, 1));
}

template <class ExecutionSpace, class Scalar>
template <class AElement, class BElement>
void ComponentwiseProduct<ExecutionSpace, Scalar>::certify_with(
    const ExecutionSpace& exec, Context<ExecutionSpace>& context, const VectorSet<AElement>& a,
    const VectorSet<BElement>& b, const Kept& kept, char* scratch, const Bounds& wanted, const Bounds& there,
    const std::int32_t* skip) const {
  const StageKernels* kernels = context.kernels;
  const PlaneGeometry largest = block_geometry(m_mb, m_nb, m_kb, 1);
  const std::size_t records = static_cast<std::size_t>(chunks_of(m_k)) * sizeof(ChunkStatistics);
  auto* const qA = reinterpret_cast<std::int8_t*>(scratch);
  char* end = scratch + std::max(static_cast<std::size_t>(largest.stride_a + largest.stride_b),
                                 (records + 63) / 64 * 64);
  std::int32_t* P[planes];
  for (std::int32_t*& plane : P) {
    plane = reinterpret_cast<std::int32_t*>(end);
    end += static_cast<std::size_t>(largest.stride_p) * sizeof(std::int32_t);
  }
  const std::int32_t *row_exponent = kept.exponent, *col_exponent = kept.exponent + m_m;

  const bool one_block = m_mb >= m_m && m_nb >= m_n;  // whose products stay
  const bool fine = wanted.fine != 0, lists = wanted.support != 0;
  for (std::int64_t i = 0; i < m_m; i += m_mb)
    for (std::int64_t j = 0; j < m_n; j += m_nb) {
      const std::int64_t bm = std::min(m_mb, m_m - i), bn = std::min(m_nb, m_n - j);
      const auto product = [&](std::int32_t* plane, std::int64_t length, std::int64_t length_there,
                               const auto& quantizer) {
        if (one_block && length == length_there) return;
        for (std::int64_t l = 0; l < length; l += m_kb) {
          const PlaneGeometry g = block_geometry(bm, bn, std::min(m_kb, length - l), 1);
          std::int8_t* const qB = qA + g.stride_a;
          quantize(exec, kernels, part(a, i, bm, l, g.k), row_exponent + i, qA, g.lda, g.stride_a / g.lda,
                   quantizer, skip);
          quantize(exec, kernels, part(b, j, bn, l, g.k), col_exponent + j, qB, g.ldb, g.stride_b / g.ldb,
                   quantizer, skip);
          multiply(exec, *context.engine, g, qA, qB, plane, l > 0, end, Labels::certify, skip);
        }
      };
      product(P[0], wanted.coarse, there.coarse, QuantizeDown{2});
      product(P[1], wanted.fine, there.fine, QuantizeDown{8});
      product(P[2], wanted.support, there.support, QuantizeSupport{});
      const CertifyBlock block{bm,
                               bn,
                               round_up(bm, vector_padding),
                               P[0],
                               fine ? P[1] : nullptr,
                               lists ? P[2] : nullptr,
                               kept.vectors + i,
                               kept.vectors + m_m + j,
                               static_cast<std::uint64_t>(m_constant),
                               m_rule.most_bits(),
                               parts_of_v<Scalar>};
      certify(exec, block, OpenEntries{lists ? kept.list : nullptr, m_capacity, i, j, m_m}, kept.record,
              skip);
    }
}

template <class ExecutionSpace, class Scalar>
template <class AElement, class BElement>
Selection ComponentwiseProduct<ExecutionSpace, Scalar>::select(
    const ExecutionSpace& exec, Context<ExecutionSpace>& context, const VectorSet<AElement>& a,
    const VectorSet<BElement>& b, const KnownVectors& known_a, const KnownVectors& known_b, void* buffer,
    void* scratch_buffer) const {
  const Kept kept = kept_at(buffer);
  char* const scratch = aligned(scratch_buffer);
  Control* const control = context.control.data();
  reset_control(exec, control);
  auto* const chunks = reinterpret_cast<ChunkStatistics*>(scratch);
  const auto records = static_cast<std::int64_t>((m_scratch_bytes - 63) / sizeof(ChunkStatistics));
  operand_statistics(exec, context.kernels, a, b, known_a, known_b, chunks, records, kept.exponent,
                     kept.square_sum, control, kept.sum);
  certificate_vectors(exec, m_m, m_n, kept.exponent, kept.square_sum, kept.sum, kept.vectors, kept.record);

  const std::int64_t whole = std::min(m_k, max_k_block), first = first_positions(whole);
  Bounds bounds;
  CertificateRecord found;
  const auto enqueue = [&](const Bounds& wanted, const std::int32_t* skip) {
    certify_with(exec, context, a, b, kept, scratch, wanted, bounds, skip);
  };
  const auto read = [&] { read_back(exec, kept.record, 1, &found); };
  const auto find = [&](const Bounds& wanted) {
    reset_certificate(exec, kept.record);
    enqueue(wanted, nullptr);
    bounds = wanted;
    read();
  };
  const std::int64_t fine = fine_positions(whole);
  const bool is_whole = first == whole;
  // A few open entries: where products of small entries are lost in the coarse bound over the first positions, they are
  // in the whole one, too. The fine one sees them.
  const std::int64_t a_few = m_m * m_n / 2;
  if (device_chooses(*context.engine)) {
    reset_certificate(exec, kept.record);
    enqueue({first, 0, 0}, nullptr);
    bounds.coarse = first;
    choose_bound(exec, m_table, is_whole, a_few, kept.record);
    if (!is_whole) {
      enqueue({whole, 0, 0}, &kept.record->skip_whole);
      choose_fine_bound(exec, kept.record);
    }
    enqueue({first, fine, 0}, &kept.record->skip_fine);  // with the coarse one that is there
    read();
    if (found.skip_whole == 0) bounds.coarse = whole;
    if (found.skip_fine == 0) bounds.fine = fine;
  } else {
    find({first, 0, 0});
    if (const int num_moduli = m_table.accepted(found, is_whole); num_moduli != 0)
      return {num_moduli, 0, false};
    if (!is_whole && (found.open == 0 || found.open > a_few)) find({whole, 0, 0});
    if (found.open != 0) find({bounds.coarse, fine, 0});
  }
  if (found.open != 0) find({whole, whole, m_k});
  return {m_table.moduli_for(found.bits, found.row_norm_2, found.col_norm_2), found.open,
          found.open > m_capacity};
}

// ---- a batch ----------------------------------------------------------------------------------------

template <class ExecutionSpace, class Scalar>
struct ComponentwiseProduct<ExecutionSpace, Scalar>::BatchMemory {
  CertificateRecord* records;
  CertificateVector* vectors;
  std::uint64_t* square_sum;
  std::uint64_t* sum;
  std::int32_t* exponent;
  char* pointers;  // to the entries of A, then of B
  char* operands;  // quantised; before that the chunk records of the statistics
  std::int32_t* P;
  void* engine;
  std::size_t bytes;  // with room to align
};

template <class ExecutionSpace, class Scalar>
typename ComponentwiseProduct<ExecutionSpace, Scalar>::BatchMemory
ComponentwiseProduct<ExecutionSpace, Scalar>::batch_memory_at(void* buffer, std::int64_t entries,
                                                              const Int8Gemm<ExecutionSpace>& engine) const {
  const auto base = reinterpret_cast<std::uintptr_t>(aligned(buffer));
  std::size_t end = 0;
  const auto slice = [&](std::size_t count, std::size_t size) {
    const std::uintptr_t begin = base + end;
    end += (count * size + 63) / 64 * 64;
    return begin;
  };
  const std::int64_t positions = first_positions(std::min(m_k, max_k_block));
  const PlaneGeometry g = block_geometry(m_m, m_n, positions, static_cast<int>(entries));
  const auto count = static_cast<std::size_t>(entries);
  const std::size_t vectors =
      count * static_cast<std::size_t>(round_up(m_m, vector_padding) + round_up(m_n, vector_padding));
  BatchMemory memory{};
  memory.records = reinterpret_cast<CertificateRecord*>(slice(count, sizeof(CertificateRecord)));
  memory.vectors = reinterpret_cast<CertificateVector*>(slice(vectors, sizeof(CertificateVector)));
  memory.square_sum = reinterpret_cast<std::uint64_t*>(slice(vectors, sizeof(std::uint64_t)));
  memory.sum = reinterpret_cast<std::uint64_t*>(slice(vectors, sizeof(std::uint64_t)));
  memory.exponent = reinterpret_cast<std::int32_t*>(slice(vectors, sizeof(std::int32_t)));
  memory.pointers = reinterpret_cast<char*>(slice(2 * count, sizeof(void*)));
  const auto chunks = static_cast<std::size_t>(chunks_of(m_k));
  memory.operands =
      reinterpret_cast<char*>(slice(std::max(count * static_cast<std::size_t>(g.stride_a + g.stride_b),
                                             vectors * chunks * sizeof(ChunkStatistics)),
                                    1));
  memory.P = reinterpret_cast<std::int32_t*>(
      slice(count * static_cast<std::size_t>(g.stride_p), sizeof(std::int32_t)));
  memory.engine = reinterpret_cast<void*>(slice(engine.workspace_bytes(g), 1));
  memory.bytes = end + 63;
  return memory;
}

template <class ExecutionSpace, class Scalar>
std::int64_t ComponentwiseProduct<ExecutionSpace, Scalar>::entries_at_once(
    std::int64_t entries, const Int8Gemm<ExecutionSpace>& engine) const {
  const std::size_t most_bytes = default_batch_bytes<ExecutionSpace>(std::size_t{1} << 30);
  constexpr std::int64_t most_vectors = std::int64_t{1} << 30;
  const std::int64_t vectors = round_up(std::max(m_m, m_n), vector_padding);
  if (vectors > most_vectors / chunks_of(m_k)) return 1;
  std::int64_t at_once = std::min(entries, most_vectors / chunks_of(m_k) / vectors);
  while (at_once > 1 && batch_memory_at(nullptr, at_once, engine).bytes > most_bytes)
    at_once = (at_once + 1) / 2;
  return at_once;
}

template <class ExecutionSpace, class Scalar>
std::size_t ComponentwiseProduct<ExecutionSpace, Scalar>::batch_bytes(const GemmOptions& options,
                                                                      const Int8Gemm<ExecutionSpace>& engine,
                                                                      std::int64_t entries) const {
  if (options.max_workspace_bytes != 0 || m_mb < m_m || m_nb < m_n || m_kb < std::min(m_k, max_k_block))
    return 0;
  const std::int64_t at_once = entries_at_once(entries, engine);
  return at_once > 1 ? batch_memory_at(nullptr, at_once, engine).bytes : 0;
}

template <class ExecutionSpace, class Scalar>
template <class AElement, class BElement>
std::vector<int> ComponentwiseProduct<ExecutionSpace, Scalar>::select_batch(
    const ExecutionSpace& exec, Context<ExecutionSpace>& context, const MatrixRef<const AElement>& a,
    const MatrixRef<const BElement>& b, void* buffer) const {
  const std::int64_t block = entries_at_once(a.entries, *context.engine);
  const BatchMemory memory = batch_memory_at(buffer, block, *context.engine);
  const StageKernels* kernels = context.kernels;
  const std::int64_t whole = std::min(m_k, max_k_block), first = first_positions(whole);
  std::vector<CertificateRecord> found(static_cast<std::size_t>(a.entries));
  for (std::int64_t begin = 0; begin < a.entries; begin += block) {
    const std::int64_t count = std::min(block, a.entries - begin);
    auto block_a = entries_of(a, begin, count);
    auto block_b = entries_of(b, begin, count);
    move_pointers(exec, block_a, at<const AElement*>(memory.pointers, 0));
    move_pointers(exec, block_b,
                  at<const BElement*>(memory.pointers, static_cast<std::size_t>(block) * sizeof(void*)));
    VectorSet<AElement> rows = rows_of(block_a, round_up(m_m, vector_padding));
    VectorSet<BElement> cols = rows_of(block_b, round_up(m_n, vector_padding));
    const std::int32_t* const col_exponent = memory.exponent + rows.count;
    reset_control(exec, context.control.data());
    statistics(exec, kernels, rows, cols, reinterpret_cast<ChunkStatistics*>(memory.operands),
               memory.exponent, memory.square_sum, context.control.data(), memory.sum);
    certificate_vectors(exec, rows.count, cols.count, memory.exponent, memory.square_sum, memory.sum,
                        memory.vectors, memory.records, rows.pitch, cols.pitch);
    const PlaneGeometry g = block_geometry(m_m, m_n, first, static_cast<int>(count));
    auto* const qA = reinterpret_cast<std::int8_t*>(memory.operands);
    std::int8_t* const qB = qA + count * g.stride_a;
    rows.length = cols.length = first;
    quantize(exec, kernels, rows, memory.exponent, qA, g.lda, rows.count, QuantizeDown{2});
    quantize(exec, kernels, cols, col_exponent, qB, g.ldb, cols.count, QuantizeDown{2});
    multiply(exec, *context.engine, g, qA, qB, memory.P, false, memory.engine, Labels::certify);
    const CertifyBlock certified{m_m,
                                 m_n,
                                 g.ldp,
                                 memory.P,
                                 nullptr,
                                 nullptr,
                                 memory.vectors,
                                 memory.vectors + rows.count,
                                 static_cast<std::uint64_t>(m_constant),
                                 m_rule.most_bits(),
                                 parts_of_v<Scalar>,
                                 count,
                                 g.stride_p,
                                 rows.pitch,
                                 cols.pitch};
    certify(exec, certified, OpenEntries{nullptr, 0, 0, 0, m_m}, memory.records);
    read_back(exec, memory.records, count, found.data() + begin);
  }
  std::vector<int> num_moduli;
  num_moduli.reserve(found.size());
  for (const CertificateRecord& record : found)
    num_moduli.push_back(m_table.accepted(record, first == whole));
  return num_moduli;
}

template <class ExecutionSpace, class Scalar>
template <class AElement, class BElement>
void ComponentwiseProduct<ExecutionSpace, Scalar>::execute(
    const ExecutionSpace& exec, Context<ExecutionSpace>& context, const Selection& selection,
    PlanImpl<ExecutionSpace, Scalar>& plan, const Scalar& alpha, const VectorSet<AElement>& a,
    const VectorSet<BElement>& b, const Scalar& beta, const MatrixRef<Scalar>& C, void* buffer,
    void* workspace) const {
  const Kept kept = kept_at(buffer);
  const std::int32_t *row_exponent = kept.exponent, *col_exponent = kept.exponent + m_m;
  const EpilogueOf<Scalar> epilogue{alpha, beta};
  if (selection.all_exact) {
    exact_product(exec, a, b, row_exponent, col_exponent, epilogue, C);
    repair(exec, a, b, row_exponent, col_exponent, context.control.data(), epilogue, C);
    return;
  }
  // Before the product overwrites C, which they may need.
  if (selection.exact_entries != 0)
    exact_entries(exec, a, b, epilogue, C, kept.list, selection.exact_entries, kept.values);
  plan.execute(exec, context, alpha, a, b, beta, C, workspace, KnownVectors{row_exponent, kept.square_sum},
               KnownVectors{col_exponent, kept.square_sum + m_m});
  if (selection.exact_entries != 0) place_entries(exec, C, kept.list, selection.exact_entries, kept.values);
}

#define KOKKOSOZAKI_INSTANTIATE_MIX(SPACE, SCALAR, A, B)                                                 \
  template Selection ComponentwiseProduct<SPACE, SCALAR>::select<A, B>(                                  \
      const SPACE&, Context<SPACE>&, const VectorSet<A>&, const VectorSet<B>&, const KnownVectors&,      \
      const KnownVectors&, void*, void*) const;                                                          \
  template std::vector<int> ComponentwiseProduct<SPACE, SCALAR>::select_batch<A, B>(                     \
      const SPACE&, Context<SPACE>&, const MatrixRef<const A>&, const MatrixRef<const B>&, void*) const; \
  template void ComponentwiseProduct<SPACE, SCALAR>::execute<A, B>(                                      \
      const SPACE&, Context<SPACE>&, const Selection&, PlanImpl<SPACE, SCALAR>&, const SCALAR&,          \
      const VectorSet<A>&, const VectorSet<B>&, const SCALAR&, const MatrixRef<SCALAR>&, void*, void*)   \
      const;
#define KOKKOSOZAKI_INSTANTIATE_SCALAR(SPACE, SCALAR) template class ComponentwiseProduct<SPACE, SCALAR>;
#define KOKKOSOZAKI_INSTANTIATE(SPACE)                               \
  KOKKOSOZAKI_FOR_EACH_SCALAR(KOKKOSOZAKI_INSTANTIATE_SCALAR, SPACE) \
  KOKKOSOZAKI_FOR_EACH_MIX(KOKKOSOZAKI_INSTANTIATE_MIX, SPACE)
KOKKOSOZAKI_FOR_EACH_SPACE(KOKKOSOZAKI_INSTANTIATE)

}  // namespace KokkosOzaki::Impl
