// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_PreparedMatrix.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>

#include "impl/KokkosOzaki_PlanImpl.hpp"
#include "stages/KokkosOzaki_CopyEntries.hpp"
#include "stages/KokkosOzaki_Residues.hpp"
#include "stages/KokkosOzaki_Scale.hpp"
#include "stages/KokkosOzaki_Statistics.hpp"
#include "stages/cuda/KokkosOzaki_Capture_Cuda.hpp"

namespace KokkosOzaki {

namespace Impl {

template <class ExecutionSpace, class Scalar>
struct PreparedData {
  Kokkos::View<char*, typename ExecutionSpace::memory_space> memory;  // of all below
  // The copy, with the extents of the View, so that what is done with a View is done with it as well.
  MatrixRef<const Scalar> matrix;
  KnownVectors known;
};

namespace {

constexpr std::size_t too_many_bytes = ~std::size_t{0};

/// Where the parts of a prepared matrix are, in bytes, each on a 64-byte boundary.
struct PreparedLayout {
  std::size_t entries = 0, exponent = 0, square_sum = 0, sum = 0, alpha = 0, planes = 0;
  std::size_t total = 0;  // with room to align the memory

  PreparedLayout(std::int64_t entries_stored, std::size_t element_bytes, std::int64_t count,
                 std::int64_t plane_stride, int plane_count) {
    bool fits = true;
    const auto slice = [&](std::int64_t elements, std::size_t bytes) {
      fits = fits && static_cast<double>(elements) * static_cast<double>(bytes) < 0x1p+60;
      const std::size_t begin = total;
      if (fits) total += (static_cast<std::size_t>(elements) * bytes + 63) / 64 * 64;
      return begin;
    };
    entries = slice(entries_stored, element_bytes);
    exponent = slice(count, sizeof(std::int32_t));
    square_sum = slice(count, sizeof(std::uint64_t));
    sum = slice(count, sizeof(std::uint64_t));
    alpha = slice(count, sizeof(std::int32_t));
    planes = slice(plane_stride, static_cast<std::size_t>(plane_count));
    total = fits ? total + 63 : too_many_bytes;
  }
};

/// Of bytes: where a View of something else ends, some Kokkos start a kernel.
template <class MemorySpace>
Kokkos::View<char*, MemorySpace> allocate(const char* function, const char* label, std::size_t bytes) {
  try {
    if (bytes == too_many_bytes) throw Error("more than can be addressed");
    return Kokkos::View<char*, MemorySpace>(
        Kokkos::view_alloc(std::string(label), Kokkos::WithoutInitializing), bytes);
  } catch (const std::exception& reason) {
    throw WorkspaceError(std::string("KokkosOzaki::") + function + ": " + std::to_string(bytes) +
                             " bytes for the prepared matrix could not be allocated: " + reason.what(),
                         bytes, 0);
  }
}

template <class T>
MatrixRef<const T> read_only(const MatrixRef<T>& x) {
  return {x.data, x.rows, x.cols, x.row_stride, x.col_stride};
}

/// As resolve_num_moduli, but an empty matrix takes any number: its products need none. 0: depends on the partner.
int number_of_moduli(const char* function, ScalarShape scalar, std::int64_t k, bool is_empty,
                     const GemmOptions& options) {
  if (chooses_from_data(options)) return 0;
  if (!is_empty) return resolve_num_moduli(function, scalar, k, options);
  if (options.num_moduli != 0) return options.num_moduli;
  k = std::max<std::int64_t>(k, 1);
  return moduli_complaint(scalar, k, options).empty() ? resolve_num_moduli(function, scalar, k, options)
                                                      : max_moduli;
}

}  // namespace

/// What the work needs besides the result; it is all there before the first kernel starts.
template <class ExecutionSpace>
class PrepareScratch {
  using MemorySpace = typename ExecutionSpace::memory_space;

 public:
  PrepareScratch(const char* function, int num_moduli)
      : m_control(allocate<MemorySpace>(function, "KokkosOzaki::control", sizeof(Control))),
        m_table(allocate<MemorySpace>(function, "KokkosOzaki::moduli_tables", sizeof(ModuliTable))) {
    Kokkos::deep_copy(
        m_table,
        Kokkos::View<const char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
            reinterpret_cast<const char*>(moduli_tables() + (std::max(num_moduli, min_moduli) - min_moduli)),
            sizeof(ModuliTable)));
  }
  Control* control() const { return reinterpret_cast<Control*>(m_control.data()); }
  const ModuliTable* table() const { return reinterpret_cast<const ModuliTable*>(m_table.data()); }

 private:
  Kokkos::View<char*, MemorySpace> m_control, m_table;
};

/// The statistics of the vectors and what follows from them alone, into memory of this layout.
template <class ExecutionSpace, class Scalar>
KnownVectors prepare_vectors(const ExecutionSpace& exec, const PrepareScratch<ExecutionSpace>& scratch,
                             const VectorSet<Scalar>& vectors, const PreparedTraits& traits, bool accurate,
                             std::int64_t ld, std::int64_t padded, char* base, const PreparedLayout& layout) {
  auto* exponent = reinterpret_cast<std::int32_t*>(base + layout.exponent);
  auto* square_sum = reinterpret_cast<std::uint64_t*>(base + layout.square_sum);
  auto* sum = reinterpret_cast<std::uint64_t*>(base + layout.sum);
  auto* alpha = reinterpret_cast<std::int32_t*>(base + layout.alpha);
  auto* planes = reinterpret_cast<std::int8_t*>(base + layout.planes);
  // The records of the chunks, one for 128 positions of a vector, fit the planes, which are written after them.
  static_assert(sizeof(ChunkStatistics) <= k_padding);
  auto* chunks = reinterpret_cast<ChunkStatistics*>(planes);
  const StageKernels* kernels =
      is_host_space_v<ExecutionSpace> || is_cuda_space_v<ExecutionSpace> ? best_stage_kernels() : nullptr;
  KnownVectors known;
  known.exponent = exponent, known.square_sum = square_sum, known.sum = sum;
  known.ld = ld, known.plane_stride = ld * padded;

  reset_control(exec, scratch.control());
  statistics(exec, kernels, vectors, chunks, exponent, square_sum, scratch.control(), sum);
  if (traits.num_moduli == 0) return known;
  if (accurate) {
    quantize(exec, kernels, vectors, exponent, planes, ld, padded);
    known.quantised = planes;
  } else {
    scale_fast(exec, fast_budget(traits.num_moduli, parts_of_v<Scalar> * vectors.length), vectors.count,
               exponent, square_sum, alpha);
    residues(exec, kernels, vectors, exponent, alpha, scratch.table(), traits.num_moduli,
             traits.rounding == Rounding::toward_zero, ResiduePlanes{planes, known.plane_stride, ld, padded});
    known.residues = planes;
  }
  return known;
}

}  // namespace Impl

template <class ExecutionSpace, class Scalar>
template <class Element>
PreparedMatrix<ExecutionSpace, Scalar>::PreparedMatrix(const char* function, char operand,
                                                       const ExecutionSpace& exec, char trans,
                                                       const Impl::MatrixRef<const Element>& x,
                                                       const GemmOptions& options) {
  using namespace Impl;
  constexpr ScalarShape scalar = ScalarShape::of<Scalar>();
  check_prepare(function, scalar, operand, trans, x, options);
  check_not_captured(function, exec);
  const MatrixRef<const Element> op_x = op(x, trans);
  const bool of_a = operand == 'A';
  const std::int64_t count = of_a ? op_x.rows : op_x.cols, k = of_a ? op_x.cols : op_x.rows;
  const bool is_empty = count == 0 || k == 0;
  m_traits = {operand,
              canonical_trans(scalar, trans),
              op_x.rows,
              op_x.cols,
              number_of_moduli(function, scalar, k, is_empty, options),
              options.bound,
              options.rounding};
  auto data = std::make_unique<PreparedData<ExecutionSpace, Scalar>>();
  // Neighbours stay neighbours, so that the copy costs no transposition; the stages read both orders.
  const bool rows_are_neighbours = x.cols == 1 || (x.rows > 1 && x.row_stride <= x.col_stride);
  const std::int64_t minor = rows_are_neighbours ? x.rows : x.cols,
                     major = rows_are_neighbours ? x.cols : x.rows;
  const std::int64_t stride = minor < 16 ? minor : round_up(minor, 16);  // 64 bytes or more, for wide loads
  MatrixRef<Scalar> copy{nullptr, x.rows, x.cols, rows_are_neighbours ? 1 : stride,
                         rows_are_neighbours ? stride : 1};
  if (!is_empty) {
    const std::int64_t terms = parts_of_v<Scalar> * k;
    // As for a plan: elsewhere the accurate bound has the fast exponents.
    const bool accurate = options.bound == Bound::accurate && m_traits.num_moduli != 0 &&
                          guard_accurate(m_traits.num_moduli, terms) >= 2 && terms <= max_k_block;
    const std::int64_t ld = round_up(k, k_padding), padded = round_up(count, vector_padding);
    const PreparedLayout layout(stride * major, sizeof(Scalar), count, ld * padded,
                                accurate ? 1 : std::max(1, products_of_v<Scalar> * m_traits.num_moduli));
    data->memory = allocate<typename ExecutionSpace::memory_space>(function, "KokkosOzaki::prepared_matrix",
                                                                   layout.total);
    char* base =
        reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(data->memory.data()) + 63) / 64 * 64);
    const PrepareScratch<ExecutionSpace> scratch(function, m_traits.num_moduli);
    copy.data = reinterpret_cast<Scalar*>(base + layout.entries);
    copy_entries(exec, x, copy);
    const MatrixRef<const Scalar> op_copy = op(read_only(copy), trans);
    data->known = prepare_vectors(exec, scratch, rows_of(of_a ? op_copy : op_copy.transposed()), m_traits,
                                  accurate, ld, padded, base, layout);
    exec.fence();  // x and the scratch memory are free then, and any instance may read
  }
  data->matrix = read_only(copy);
  m_data = std::move(data);
}

template <class ExecutionSpace, class Scalar>
PreparedMatrix<ExecutionSpace, Scalar>::PreparedMatrix(PreparedMatrix&&) noexcept = default;
template <class ExecutionSpace, class Scalar>
PreparedMatrix<ExecutionSpace, Scalar>& PreparedMatrix<ExecutionSpace, Scalar>::operator=(
    PreparedMatrix&&) noexcept = default;
template <class ExecutionSpace, class Scalar>
PreparedMatrix<ExecutionSpace, Scalar>::~PreparedMatrix() = default;

template <class ExecutionSpace, class Scalar>
std::size_t PreparedMatrix<ExecutionSpace, Scalar>::bytes() const {
  return m_data != nullptr ? m_data->memory.extent(0) : 0;
}

template <class ExecutionSpace, class Scalar>
Impl::PlanOperand<Scalar> PreparedMatrix<ExecutionSpace, Scalar>::plan_operand() const {
  if (m_data == nullptr) return {{}, &m_traits, nullptr};
  return {m_data->matrix, &m_traits, &m_data->known};
}

#define KOKKOSOZAKI_INSTANTIATE_OF(SPACE, SCALAR, ELEMENT) \
  template PreparedMatrix<SPACE, SCALAR>::PreparedMatrix(  \
      const char*, char, const SPACE&, char, const Impl::MatrixRef<const ELEMENT>&, const GemmOptions&);
#define KOKKOSOZAKI_INSTANTIATE_SCALAR(SPACE, SCALAR) \
  template class PreparedMatrix<SPACE, SCALAR>;       \
  KOKKOSOZAKI_INSTANTIATE_OF(SPACE, SCALAR, SCALAR)
#define KOKKOSOZAKI_INSTANTIATE(SPACE)                               \
  KOKKOSOZAKI_FOR_EACH_SCALAR(KOKKOSOZAKI_INSTANTIATE_SCALAR, SPACE) \
  KOKKOSOZAKI_INSTANTIATE_OF(SPACE, double, float)                   \
  KOKKOSOZAKI_INSTANTIATE_OF(SPACE, Kokkos::complex<double>, Kokkos::complex<float>)
KOKKOSOZAKI_FOR_EACH_SPACE(KOKKOSOZAKI_INSTANTIATE)

}  // namespace KokkosOzaki
