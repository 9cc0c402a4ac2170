// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_HOSTVIEWS_HPP
#define KOKKOSOZAKI_HOSTVIEWS_HPP

#include <gtest/gtest.h>

#include <KokkosOzaki.hpp>
#include <Kokkos_Core.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "MatrixGenerators.hpp"
#include "SharedMemory.hpp"

namespace KokkosOzaki::Testing {

template <class... Spaces>
struct SpaceList;

template <class First, class... Rest>
struct SpaceList<First, Rest...> {
  using first = First;
  using types = ::testing::Types<First, Rest...>;
};

template <class List, class Space>
struct Append;

template <class... Spaces, class Space>
struct Append<SpaceList<Spaces...>, Space> {
  using type = SpaceList<Spaces..., Space>;
};

#if defined(KOKKOS_ENABLE_SERIAL)
using SpacesWithSerial = SpaceList<Kokkos::Serial>;
#else
using SpacesWithSerial = SpaceList<>;
#endif
#if defined(KOKKOS_ENABLE_OPENMP)
using SpacesWithOpenMP = Append<SpacesWithSerial, Kokkos::OpenMP>::type;
#else
using SpacesWithOpenMP = SpacesWithSerial;
#endif
#if defined(KOKKOS_ENABLE_THREADS)
using SpacesWithThreads = Append<SpacesWithOpenMP, Kokkos::Threads>::type;
#else
using SpacesWithThreads = SpacesWithOpenMP;
#endif

#if defined(KOKKOS_ENABLE_CUDA)
using SpacesWithCuda = Append<SpacesWithThreads, Kokkos::Cuda>::type;
using SpacesOfAnyThread = Append<SpacesWithOpenMP, Kokkos::Cuda>::type;
#else
using SpacesWithCuda = SpacesWithThreads;
using SpacesOfAnyThread = SpacesWithOpenMP;
#endif

/// The host spaces of this Kokkos, for TYPED_TEST_SUITE.
using HostSpaces = SpacesWithThreads::types;

/// All spaces of this Kokkos that the library supports, likewise.
using EnabledSpaces = SpacesWithCuda::types;

/// Whether the memory of this execution space is that of the host.
template <class Space>
constexpr bool is_host_space =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename Space::memory_space>::accessible;

inline std::uint64_t bits_of(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

inline double double_of(std::uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

/// A NaN that nothing computes: what must not be written keeps these bits, what must not be read spoils the
/// result. For complex in both parts.
template <class T>
T poison_of() {
  if constexpr (std::is_same_v<T, double>) {
    return double_of(0x7FF8'0123'4567'89ABULL);
  } else if constexpr (std::is_same_v<T, float>) {
    const std::uint32_t bits = 0x7FC1'2345U;
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    return x;
  } else {
    const auto part = poison_of<typename T::value_type>();
    return T(part, part);
  }
}

inline double poison() {
  return poison_of<double>();
}

inline bool is_nan(double x) {
  return std::isnan(x);
}
inline bool is_nan(float x) {
  return std::isnan(x);
}

/// Equal bits, where any NaN equals any NaN if `by_class`; parts of complex numbers one by one.
template <class T>
bool is_same(const T& x, const T& y, bool by_class = false) {
  if constexpr (std::is_floating_point_v<T>)
    return std::memcmp(&x, &y, sizeof(x)) == 0 || (by_class && is_nan(x) && is_nan(y));
  else
    return is_same(x.real(), y.real(), by_class) && is_same(x.imag(), y.imag(), by_class);
}

/// A number with its bits.
inline std::string to_text(double x) {
  char text[100];
  std::snprintf(text, sizeof(text), "%.17g (%a, bits %016llx)", x, x,
                static_cast<unsigned long long>(bits_of(x)));
  return text;
}
inline std::string to_text(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  char text[100];
  std::snprintf(text, sizeof(text), "%.9g (%a, bits %08x)", static_cast<double>(x), static_cast<double>(x),
                bits);
  return text;
}
template <class Real>
std::string to_text(const Kokkos::complex<Real>& x) {
  return to_text(x.real()) + " + i " + to_text(x.imag());
}

template <class T>
::testing::AssertionResult same_entries(const MatrixOf<T>& expected, const MatrixOf<T>& got, bool by_class) {
  if (expected.rows() != got.rows() || expected.cols() != got.cols())
    return ::testing::AssertionFailure() << "expected " << expected.rows() << "x" << expected.cols()
                                         << ", got " << got.rows() << "x" << got.cols();
  for (std::int64_t j = 0; j < got.cols(); ++j)
    for (std::int64_t i = 0; i < got.rows(); ++i)
      if (!is_same(expected(i, j), got(i, j), by_class))
        return ::testing::AssertionFailure()
               << (by_class ? "other value" : "other bits") << " at (" << i << "," << j << "): expected "
               << to_text(expected(i, j)) << ", got " << to_text(got(i, j));
  return ::testing::AssertionSuccess();
}

/// The same bits everywhere.
template <class T>
::testing::AssertionResult same_bits(const MatrixOf<T>& expected, const MatrixOf<T>& got) {
  return same_entries(expected, got, false);
}

/// The same bits, where any NaN equals any NaN.
template <class T>
::testing::AssertionResult same_values(const MatrixOf<T>& expected, const MatrixOf<T>& got) {
  return same_entries(expected, got, true);
}

/// \brief How an operand lies in memory: entries before it, extra leading dimension, and for LayoutStride the
/// gap between neighbours and which extent has the smaller stride.
struct Placement {
  std::int64_t offset = 0, extra_ld = 0, step = 1;
  bool row_major = false;
};

/// \brief An unmanaged view on memory of its own, whose gaps are poison.
/// \tparam MemorySpace  where the memory is; if it is not that of the host, values() and gaps_are_intact()
/// copy it
template <class Layout, class MemorySpace = SharedSpace, class Scalar = double>
class Operand {
  static constexpr bool is_elsewhere =
      !Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible;

 public:
  using View = Kokkos::View<Scalar**, Layout, MemorySpace, Kokkos::MemoryUnmanaged>;
  using ConstView = Kokkos::View<const Scalar**, Layout, MemorySpace, Kokkos::MemoryUnmanaged>;

  explicit Operand(const MatrixOf<Scalar>& values, Placement placement = {})
      : m_rows(values.rows()), m_cols(values.cols()) {
    if (std::is_same_v<Layout, Kokkos::LayoutLeft>) placement.step = 1, placement.row_major = false;
    if (std::is_same_v<Layout, Kokkos::LayoutRight>) placement.step = 1, placement.row_major = true;
    const std::int64_t minor = placement.row_major ? m_cols : m_rows,
                       major = placement.row_major ? m_rows : m_cols;
    const std::int64_t ld = placement.step * minor + placement.extra_ld;
    m_row_stride = placement.row_major ? ld : placement.step;
    m_col_stride = placement.row_major ? placement.step : ld;
    m_offset = placement.offset;
    m_memory.assign(static_cast<std::size_t>(m_offset + ld * major + placement.extra_ld),
                    poison_of<Scalar>());
    if constexpr (is_elsewhere) m_elsewhere = Kokkos::View<Scalar*, MemorySpace>("operand", m_memory.size());
    Scalar* first = (is_elsewhere ? m_elsewhere.data() : m_memory.data()) + m_offset;
    const auto rows = static_cast<std::size_t>(m_rows), cols = static_cast<std::size_t>(m_cols);
    if constexpr (std::is_same_v<Layout, Kokkos::LayoutLeft>) {
      const View whole(first, static_cast<std::size_t>(ld), cols);
      m_view = Kokkos::subview(whole, std::make_pair(std::size_t{0}, rows), Kokkos::ALL);
    } else if constexpr (std::is_same_v<Layout, Kokkos::LayoutRight>) {
      const View whole(first, rows, static_cast<std::size_t>(ld));
      m_view = Kokkos::subview(whole, Kokkos::ALL, std::make_pair(std::size_t{0}, cols));
    } else {
      m_view = View(first, Kokkos::LayoutStride(rows, static_cast<std::size_t>(m_row_stride), cols,
                                                static_cast<std::size_t>(m_col_stride)));
    }
    assign(values);
  }
  Operand(const Operand&) = delete;
  Operand& operator=(const Operand&) = delete;

  const View& view() const { return m_view; }
  ConstView const_view() const { return m_view; }

  /// Other entries, in the same places.
  void assign(const MatrixOf<Scalar>& values) {
    for (std::int64_t j = 0; j < m_cols; ++j)
      for (std::int64_t i = 0; i < m_rows; ++i) m_memory[at(i, j)] = values(i, j);
    if constexpr (is_elsewhere) Kokkos::deep_copy(m_elsewhere, host_view());
  }

  MatrixOf<Scalar> values() const {
    fetch();
    MatrixOf<Scalar> x(m_rows, m_cols);
    for (std::int64_t j = 0; j < m_cols; ++j)
      for (std::int64_t i = 0; i < m_rows; ++i) x(i, j) = m_memory[at(i, j)];
    return x;
  }

  /// Whether all memory that belongs to no entry still holds the poison.
  ::testing::AssertionResult gaps_are_intact() const {
    fetch();
    std::vector<bool> is_entry(m_memory.size(), false);
    for (std::int64_t j = 0; j < m_cols; ++j)
      for (std::int64_t i = 0; i < m_rows; ++i) is_entry[at(i, j)] = true;
    for (std::size_t p = 0; p < m_memory.size(); ++p)
      if (!is_entry[p] && !is_same(m_memory[p], poison_of<Scalar>()))
        return ::testing::AssertionFailure()
               << "the gap at offset " << p << " was overwritten with " << to_text(m_memory[p]);
    return ::testing::AssertionSuccess();
  }

 private:
  auto host_view() const {
    return Kokkos::View<Scalar*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(m_memory.data(),
                                                                             m_memory.size());
  }
  void fetch() const {
    if constexpr (is_elsewhere) Kokkos::deep_copy(host_view(), m_elsewhere);
  }
  std::size_t at(std::int64_t i, std::int64_t j) const {
    return static_cast<std::size_t>(m_offset + i * m_row_stride + j * m_col_stride);
  }

  std::int64_t m_rows, m_cols, m_offset, m_row_stride, m_col_stride;
  mutable std::vector<Scalar> m_memory;
  Kokkos::View<Scalar*, MemorySpace> m_elsewhere;
  View m_view;
};

/// op(X) is X itself for 'N', X is its transpose for 'T' and 'C'.
template <class T>
MatrixOf<T> stored(const MatrixOf<T>& op, char trans) {
  return trans == 'N' ? op : op.transposed();
}

/// \brief alpha A B + beta C by gemm on this space, column-major operands without gaps.
/// \param A, B  op(A) and op(B): stored transposed where the letters say so
template <class Space>
Matrix product(const Matrix& A, const Matrix& B, const GemmOptions& options = {}, double alpha = 1.0,
               double beta = 0.0, Matrix C = {}, char transA = 'N', char transB = 'N') {
  if (beta == 0.0 && C.rows() == 0 && C.cols() == 0) C = Matrix(A.rows(), B.cols(), poison());
  const Operand<Kokkos::LayoutLeft> a(stored(A, transA)), b(stored(B, transB)), c(C);
  const char letters[] = {transA, '\0', transB, '\0'};
  const Space exec{};
  gemm(exec, letters, letters + 2, alpha, a.const_view(), b.const_view(), beta, c.view(), options);
  exec.fence();
  return c.values();
}

inline GemmOptions with_moduli(int num_moduli, Bound bound = Bound::fast,
                               Rounding rounding = Rounding::nearest_even) {
  GemmOptions options;
  options.num_moduli = num_moduli;
  options.bound = bound;
  options.rounding = rounding;
  return options;
}

/// The number of moduli that k needs at least: 2 up to 2^10, 3 up to 2^18, 4 up to 2^26 (docs/method.md,
/// "Range").
inline int fewest_moduli(std::int64_t k) {
  return k <= 1 << 10 ? 2 : k <= 1 << 18 ? 3 : 4;
}

constexpr Bound both_bounds[] = {Bound::fast, Bound::accurate};

inline const char* name_of(Bound bound) {
  return bound == Bound::fast ? "fast" : "accurate";
}

/// The engines that can be had here.
template <class Space>
std::vector<const char*> usable_backends() {
  std::vector<const char*> usable;
  for (const char* name : {"wgmma", "cublas", "onednn", "host-amx", "host-avx512vnni", "host-avxvnni",
                           "host-avx2", "host-portable", "portable"}) {
    GemmOptions options;
    options.backend = name;
    if (GemmPlan<Space, double>::can_run(1, 1, 1, options)) usable.push_back(name);
  }
  return usable;
}

/// Bytes of every workspace that are the engine's own whatever the sizes are: cuBLAS is given 32 MiB.
template <class Space>
std::size_t engine_bytes(const char* backend = nullptr) {
  GemmOptions options;
  options.backend = backend;
  const std::string name =
      GemmPlan<Space, double>(ExternalWorkspace{}, Space{}, 'N', 'N', 1, 1, 1, options).backend_name();
  return name == "cublas" || name == "wgmma" ? std::size_t{32} << 20 : 0;
}

/// The workspace of a product with what depends on the sizes divided by `divisor`.
template <class Space>
std::size_t part_of_workspace(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options,
                              std::size_t divisor) {
  const std::size_t fixed = engine_bytes<Space>(options.backend);
  return fixed + (GemmPlan<Space, double>::workspace_bytes(m, n, k, options) - fixed) / divisor;
}

}  // namespace KokkosOzaki::Testing

#endif
