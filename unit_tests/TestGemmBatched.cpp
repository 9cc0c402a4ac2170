// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;
using Kokkos::LayoutStride;

template <class T>
using Matrices = std::vector<MatrixOf<T>>;

/// Entries of either part of either precision, of magnitudes that spread with phi.
template <class T>
MatrixOf<T> random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed, double phi = 1.0) {
  const Matrix re = spread(rows, cols, phi, 2 * seed), im = spread(rows, cols, phi, 2 * seed + 1);
  MatrixOf<T> x(rows, cols);
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i) {
      if constexpr (std::is_floating_point_v<T>)
        x(i, j) = static_cast<T>(re(i, j));
      else
        x(i, j) =
            T(static_cast<typename T::value_type>(re(i, j)), static_cast<typename T::value_type>(im(i, j)));
    }
  return x;
}

/// Entry e is 2^(7 e) times as large as the first: a scale that belongs to another entry would show.
template <class T>
Matrices<T> random_batch(std::int64_t entries, std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrices<T> batch;
  for (std::int64_t e = 0; e < entries; ++e) {
    batch.push_back(random_matrix<T>(rows, cols, seed + 100 * static_cast<std::uint64_t>(e)));
    const T scale(static_cast<float>(std::ldexp(1.0, static_cast<int>(7 * (e % 5)))));
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < rows; ++i) batch.back()(i, j) = batch.back()(i, j) * scale;
  }
  return batch;
}

template <class T>
Matrices<T> stored(const Matrices<T>& batch, char trans) {
  Matrices<T> x;
  for (const auto& matrix : batch) x.push_back(stored(matrix, trans));
  return x;
}

/// The results of as many calls of gemm.
template <class Space, class T, class TA, class TB>
Matrices<T> single_calls(char transA, char transB, T alpha, const Matrices<TA>& A, const Matrices<TB>& B,
                         T beta, const Matrices<T>& C, const GemmOptions& options) {
  const char letters[] = {transA, '\0', transB, '\0'};
  Matrices<T> results;
  for (std::size_t e = 0; e < C.size(); ++e) {
    const Operand<LayoutLeft, SharedSpace, TA> a(A[e]);
    const Operand<LayoutLeft, SharedSpace, TB> b(B[e]);
    const Operand<LayoutLeft, SharedSpace, T> c(C[e]);
    gemm(Space{}, letters, letters + 2, alpha, a.view(), b.view(), beta, c.view(), options);
    Space{}.fence();
    results.push_back(c.values());
  }
  return results;
}

template <class T>
::testing::AssertionResult same_bits(const Matrices<T>& expected, const Matrices<T>& got,
                                     bool by_class = false) {
  if (expected.size() != got.size())
    return ::testing::AssertionFailure() << expected.size() << " and " << got.size() << " matrices";
  for (std::size_t e = 0; e < got.size(); ++e)
    if (auto same = same_entries(expected[e], got[e], by_class); !same)
      return ::testing::AssertionFailure() << "matrix " << e << ": " << same.message();
  return ::testing::AssertionSuccess();
}

/// \brief A rank-3 view on memory of its own, whose gaps (not LayoutRight) are poison. LayoutStride: the batch in the middle, between
/// rows (apart by two) and columns.
template <class Layout, class T>
class BatchOperand {
 public:
  using View = Kokkos::View<T***, Layout, SharedSpace, Kokkos::MemoryUnmanaged>;

  explicit BatchOperand(const Matrices<T>& values, std::int64_t gap = 0, std::int64_t offset = 0)
      : m_rows(values.empty() ? 3 : values[0].rows()),
        m_cols(values.empty() ? 2 : values[0].cols()),
        m_entries(static_cast<std::int64_t>(values.size())),
        m_offset(offset) {
    const auto rows = static_cast<std::size_t>(m_rows), cols = static_cast<std::size_t>(m_cols),
               entries = static_cast<std::size_t>(m_entries);
    std::int64_t size;
    if constexpr (std::is_same_v<Layout, LayoutLeft>) {
      m_stride = {1, m_rows + gap, (m_rows + gap) * m_cols};
      size = m_stride[2] * m_entries;
    } else if constexpr (std::is_same_v<Layout, LayoutRight>) {
      m_stride = {m_cols * m_entries, m_entries, 1};
      size = m_stride[0] * m_rows;
    } else {
      m_stride = {2, (2 * m_rows + gap) * m_entries, 2 * m_rows + gap};
      size = m_stride[1] * m_cols;
    }
    m_memory.assign(static_cast<std::size_t>(offset + size + 1), poison_of<T>());
    T* first = m_memory.data() + offset;
    if constexpr (std::is_same_v<Layout, LayoutLeft>)
      m_view = Kokkos::subview(View(first, static_cast<std::size_t>(m_rows + gap), cols, entries),
                               std::make_pair(std::size_t{0}, rows), Kokkos::ALL, Kokkos::ALL);
    else if constexpr (std::is_same_v<Layout, LayoutRight>)
      m_view = View(first, rows, cols, entries);
    else
      m_view = View(first, LayoutStride(rows, static_cast<std::size_t>(m_stride[0]), cols,
                                        static_cast<std::size_t>(m_stride[1]), entries,
                                        static_cast<std::size_t>(m_stride[2])));
    for_all([&](std::int64_t i, std::int64_t j, std::int64_t e, T& x) {
      x = values[static_cast<std::size_t>(e)](i, j);
    });
  }
  BatchOperand(const BatchOperand&) = delete;
  BatchOperand& operator=(const BatchOperand&) = delete;

  const View& view() const { return m_view; }

  Matrices<T> values() const {
    Matrices<T> batch(static_cast<std::size_t>(m_entries), MatrixOf<T>(m_rows, m_cols));
    for_all([&](std::int64_t i, std::int64_t j, std::int64_t e, const T& x) {
      batch[static_cast<std::size_t>(e)](i, j) = x;
    });
    return batch;
  }

  ::testing::AssertionResult gaps_are_intact() const {
    std::vector<bool> is_entry(m_memory.size(), false);
    for_all([&](std::int64_t, std::int64_t, std::int64_t, const T& x) {
      is_entry[static_cast<std::size_t>(&x - m_memory.data())] = true;
    });
    for (std::size_t p = 0; p < m_memory.size(); ++p)
      if (!is_entry[p] && !is_same(m_memory[p], poison_of<T>()))
        return ::testing::AssertionFailure()
               << "the gap at offset " << p << " was overwritten with " << to_text(m_memory[p]);
    return ::testing::AssertionSuccess();
  }

 private:
  template <class Body>
  void for_all(const Body& body) const {
    for (std::int64_t e = 0; e < m_entries; ++e)
      for (std::int64_t j = 0; j < m_cols; ++j)
        for (std::int64_t i = 0; i < m_rows; ++i)
          body(i, j, e,
               m_memory[static_cast<std::size_t>(m_offset + i * m_stride[0] + j * m_stride[1] +
                                                 e * m_stride[2])]);
  }

  std::int64_t m_rows, m_cols, m_entries, m_offset;
  std::array<std::int64_t, 3> m_stride;
  mutable std::vector<T> m_memory;
  View m_view;
};

/// An array of column-major matrices, with gaps, in an order of memory that is not that of the array.
template <class T>
class ArrayOperand {
 public:
  using View = typename Operand<LayoutLeft, SharedSpace, T>::View;

  explicit ArrayOperand(const Matrices<T>& values, std::int64_t gap = 0) {
    Placement placement;
    placement.extra_ld = gap, placement.offset = gap;
    for (std::size_t e = 0; e < values.size(); ++e)
      m_operands.push_front(
          std::make_unique<Operand<LayoutLeft, SharedSpace, T>>(values[values.size() - 1 - e], placement));
    for (const auto& operand : m_operands) m_views.push_back(operand->view());
  }

  const std::vector<View>& views() const { return m_views; }
  Matrices<T> values() const {
    Matrices<T> batch;
    for (const auto& operand : m_operands) batch.push_back(operand->values());
    return batch;
  }
  ::testing::AssertionResult gaps_are_intact() const {
    for (const auto& operand : m_operands)
      if (auto intact = operand->gaps_are_intact(); !intact) return intact;
    return ::testing::AssertionSuccess();
  }

 private:
  std::deque<std::unique_ptr<Operand<LayoutLeft, SharedSpace, T>>> m_operands;
  std::vector<View> m_views;
};

/// One batch of random matrices, strided and as arrays, against single calls.
template <class Space, class T, class TA = T, class TB = T>
void check_batch(std::int64_t entries, std::int64_t m, std::int64_t n, std::int64_t k,
                 const GemmOptions& options, T alpha = T(1), T beta = T(0), char transA = 'N',
                 char transB = 'N') {
  SCOPED_TRACE(std::to_string(entries) + " of " + std::to_string(m) + "x" + std::to_string(n) + "x" +
               std::to_string(k) + " trans " + transA + transB + " " + name_of(options.bound) + " " +
               std::to_string(options.num_moduli) + " moduli");
  const auto A = stored(random_batch<TA>(entries, m, k, 1), transA);
  const auto B = stored(random_batch<TB>(entries, k, n, 2), transB);
  const auto C = beta == T(0)
                     ? Matrices<T>(static_cast<std::size_t>(entries), MatrixOf<T>(m, n, poison_of<T>()))
                     : random_batch<T>(entries, m, n, 3);
  const auto expected = single_calls<Space>(transA, transB, alpha, A, B, beta, C, options);
  const char letters[] = {transA, '\0', transB, '\0'};
  {
    const BatchOperand<LayoutLeft, TA> a(A, 3, 1);
    const BatchOperand<LayoutLeft, TB> b(B, 0);
    const BatchOperand<LayoutLeft, T> c(C, 1);
    gemm_batched(Space{}, letters, letters + 2, alpha, a.view(), b.view(), beta, c.view(), options);
    Space{}.fence();
    EXPECT_TRUE(same_bits(expected, c.values()));
    EXPECT_TRUE(c.gaps_are_intact());
    EXPECT_TRUE(same_bits(A, a.values()));
    EXPECT_TRUE(same_bits(B, b.values()));
  }
  {
    const ArrayOperand<TA> a(A, 1);
    const ArrayOperand<TB> b(B, 2);
    const ArrayOperand<T> c(C, 1);
    gemm_batched(Space{}, letters, letters + 2, alpha, a.views(), b.views(), beta, c.views(), options);
    Space{}.fence();
    EXPECT_TRUE(same_bits(expected, c.values()));
    EXPECT_TRUE(c.gaps_are_intact());
  }
}

// ---- every scalar -------------------------------------------------------------------------------------

template <class SpaceAndScalar>
class GemmBatchedScalarTest : public ::testing::Test {};

template <class Space, class T>
struct SpaceAndScalar {
  using space = Space;
  using scalar = T;
};
template <class... Spaces>
::testing::Types<SpaceAndScalar<Spaces, float>..., SpaceAndScalar<Spaces, double>...,
                 SpaceAndScalar<Spaces, Kokkos::complex<float>>...,
                 SpaceAndScalar<Spaces, Kokkos::complex<double>>...>
with_scalars(::testing::Types<Spaces...>*);
using SpacesAndScalars = decltype(with_scalars(static_cast<EnabledSpaces*>(nullptr)));

struct SpaceAndScalarNames {
  template <class Case>
  static std::string GetName(int index) {
    using T = typename Case::scalar;
    const std::string real =
        std::is_same_v<T, float> || std::is_same_v<T, Kokkos::complex<float>> ? "float" : "double";
    return case_name(index, std::string(Case::space::name()) + "_" +
                                (std::is_floating_point_v<T> ? "" : "complex_") + real);
  }
};
TYPED_TEST_SUITE(GemmBatchedScalarTest, SpacesAndScalars, SpaceAndScalarNames);

TYPED_TEST(GemmBatchedScalarTest, HasTheBitsOfSingleCalls) {
  using Space = typename TypeParam::space;
  using T = typename TypeParam::scalar;
  for (const Bound bound : both_bounds)
    for (const int num_moduli : {0, 6, 17}) {
      GemmOptions options = with_moduli(num_moduli, bound);
      check_batch<Space, T>(5, 17, 19, 23, options);
      options.moduli_per_group = 4;
      check_batch<Space, T>(4, 16, 32, 64, options, T(-0.5F), T(1.5F));
      options.moduli_per_group = 20;
      options.rounding = Rounding::toward_zero;
      check_batch<Space, T>(3, 35, 7, 131, options, T(2), T(1));
    }
}

TYPED_TEST(GemmBatchedScalarTest, EveryOperationHasTheBitsOfSingleCalls) {
  using Space = typename TypeParam::space;
  using T = typename TypeParam::scalar;
  for (const char transA : {'N', 'T', 'C'})
    for (const char transB : {'N', 'T', 'C'})
      check_batch<Space, T>(3, 9, 20, 33, with_moduli(8, Bound::accurate), T(1), T(0), transA, transB);
}

TYPED_TEST(GemmBatchedScalarTest, SizesAroundTilesHaveTheBitsOfSingleCalls) {
  using Space = typename TypeParam::space;
  using T = typename TypeParam::scalar;
  using Sizes = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  for (const auto& [entries, m, n, k] :
       {Sizes{1, 5, 6, 7}, Sizes{2, 1, 1, 1}, Sizes{3, 1, 9, 300}, Sizes{3, 40, 1, 129}, Sizes{2, 300, 2, 5},
        Sizes{2, 2, 270, 128}, Sizes{7, 64, 64, 64}, Sizes{33, 3, 2, 1}})
    for (const Bound bound : both_bounds)
      check_batch<Space, T>(entries, m, n, k, with_moduli(9, bound), T(1), T(1));
}

TYPED_TEST(GemmBatchedScalarTest, InfAndNaNStayInTheirEntry) {
  using Space = typename TypeParam::space;
  using T = typename TypeParam::scalar;
  auto A = random_batch<T>(5, 18, 20, 1), B = random_batch<T>(5, 20, 17, 2),
       C = random_batch<T>(5, 18, 17, 3);
  A[1](3, 4) = T(std::numeric_limits<float>::infinity());
  B[1](4, 2) = T(0);
  B[3](19, 16) = T(std::numeric_limits<float>::quiet_NaN());
  A[4](17, 0) = T(-std::numeric_limits<float>::infinity());
  C[0](2, 2) = T(std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t l = 0; l < 20; ++l) A[2](5, l) = T(0);
  for (const Bound bound : both_bounds) {
    const GemmOptions options = with_moduli(10, bound);
    for (const T beta : {T(0), T(2)}) {
      const auto expected = single_calls<Space>('N', 'N', T(1), A, B, beta, C, options);
      const BatchOperand<LayoutLeft, T> a(A), b(B), c(C);
      gemm_batched(Space{}, "N", "N", T(1), a.view(), b.view(), beta, c.view(), options);
      Space{}.fence();
      EXPECT_TRUE(same_bits(expected, c.values(), true));
    }
  }
}

TYPED_TEST(GemmBatchedScalarTest, AlphaZeroAndKZeroApplyBeta) {
  using Space = typename TypeParam::space;
  using T = typename TypeParam::scalar;
  for (const T beta : {T(0), T(1), T(-1.5F)})
    for (const std::int64_t k : {0, 4}) {
      const auto A = Matrices<T>(3, MatrixOf<T>(5, k, poison_of<T>())),
                 B = Matrices<T>(3, MatrixOf<T>(k, 6, poison_of<T>()));
      const auto C = random_batch<T>(3, 5, 6, 3);
      const T alpha(k == 0 ? 2 : 0);
      const auto expected = single_calls<Space>('N', 'N', alpha, A, B, beta, C, {});
      const BatchOperand<LayoutLeft, T> a(A), b(B), c(C, 2);
      gemm_batched(Space{}, "N", "N", alpha, a.view(), b.view(), beta, c.view());
      const ArrayOperand<T> arrays_a(A), arrays_b(B), arrays_c(C, 2);
      gemm_batched(Space{}, "N", "N", alpha, arrays_a.views(), arrays_b.views(), beta, arrays_c.views());
      Space{}.fence();
      EXPECT_TRUE(same_bits(expected, c.values()));
      EXPECT_TRUE(c.gaps_are_intact());
      EXPECT_TRUE(same_bits(expected, arrays_c.values()));
      EXPECT_TRUE(arrays_c.gaps_are_intact());
    }
}

// ---- layouts, caps, engines ---------------------------------------------------------------------------

template <class Space>
class GemmBatchedTest : public ::testing::Test {};
TYPED_TEST_SUITE(GemmBatchedTest, EnabledSpaces, SpaceNames);

enum class Layout { left, right, stride, array };
constexpr Layout layouts[] = {Layout::left, Layout::right, Layout::stride, Layout::array};
constexpr const char* layout_names[] = {"LayoutLeft", "LayoutRight", "LayoutStride", "array"};

/// A batch whose form is chosen at run time: the calls are compiled once.
class AnyBatch {
 public:
  AnyBatch(Layout layout, const Matrices<double>& values, std::int64_t gap) {
    if (layout == Layout::left)
      m_batch = std::make_unique<BatchOperand<LayoutLeft, double>>(values, gap);
    else if (layout == Layout::right)
      m_batch = std::make_unique<BatchOperand<LayoutRight, double>>(values, gap);
    else if (layout == Layout::stride)
      m_batch = std::make_unique<BatchOperand<LayoutStride, double>>(values, gap);
    else
      m_batch = std::make_unique<ArrayOperand<double>>(values, gap);
  }

  template <class Body>
  auto with(const Body& body) const {
    return std::visit([&](const auto& batch) { return body(*batch); }, m_batch);
  }

 private:
  std::variant<std::unique_ptr<BatchOperand<LayoutLeft, double>>,
               std::unique_ptr<BatchOperand<LayoutRight, double>>,
               std::unique_ptr<BatchOperand<LayoutStride, double>>, std::unique_ptr<ArrayOperand<double>>>
      m_batch;
};

template <class Layout>
const auto& argument(const BatchOperand<Layout, double>& batch) {
  return batch.view();
}
inline const auto& argument(const ArrayOperand<double>& batch) {
  return batch.views();
}

TYPED_TEST(GemmBatchedTest, AllLayoutsHaveTheBitsOfSingleCalls) {
  for (const char transA : {'N', 'T'})
    for (const char transB : {'N', 'T'}) {
      const char letters[] = {transA, '\0', transB, '\0'};
      const auto A = stored(random_batch<double>(4, 17, 35, 1), transA);
      const auto B = stored(random_batch<double>(4, 35, 18, 2), transB);
      const auto C = random_batch<double>(4, 17, 18, 3);
      const GemmOptions options = with_moduli(12, Bound::accurate);
      const auto expected = single_calls<TypeParam>(transA, transB, -1.0, A, B, 0.5, C, options);
      for (const Layout layout_a : layouts)
        for (const Layout layout_b : layouts)
          for (const Layout layout_c : layouts) {
            SCOPED_TRACE(std::string(layout_names[static_cast<int>(layout_a)]) + " " +
                         layout_names[static_cast<int>(layout_b)] + " " +
                         layout_names[static_cast<int>(layout_c)] + " trans " + transA + transB);
            const AnyBatch a(layout_a, A, 2), b(layout_b, B, 0), c(layout_c, C, 1);
            a.with([&](const auto& x) {
              b.with([&](const auto& y) {
                c.with([&](const auto& z) {
                  gemm_batched(TypeParam{}, letters, letters + 2, -1.0, argument(x), argument(y), 0.5,
                               argument(z), options);
                  TypeParam{}.fence();
                  EXPECT_TRUE(same_bits(expected, z.values()));
                  EXPECT_TRUE(z.gaps_are_intact());
                });
              });
            });
          }
    }
}

TYPED_TEST(GemmBatchedTest, FloatOperandsInDoubleProducts) {
  using Complex = Kokkos::complex<double>;
  using ComplexFloat = Kokkos::complex<float>;
  const GemmOptions options = with_moduli(0, Bound::accurate);
  check_batch<TypeParam, double, float, double>(3, 18, 5, 40, options);
  check_batch<TypeParam, double, double, float>(3, 18, 5, 40, options);
  check_batch<TypeParam, double, float, float>(3, 18, 5, 40, options);
  check_batch<TypeParam, Complex, ComplexFloat, Complex>(3, 18, 5, 40, options);
  check_batch<TypeParam, Complex, Complex, ComplexFloat>(3, 18, 5, 40, options);
}

/// Blocks of A's columns meet blocks of B's rows of other magnitudes: the large entries never meet.
Matrix structured(std::int64_t rows, std::int64_t cols, bool by_columns, std::uint64_t seed) {
  Matrix x = uniform(rows, cols, -1, 1, seed);
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t l = by_columns ? j : i, length = by_columns ? cols : rows;
      if ((l < length / 2) == by_columns) x(i, j) = std::ldexp(x(i, j), -30);
    }
  return x;
}

TYPED_TEST(GemmBatchedTest, TheAccurateBoundDecidesForEachEntry) {
  const std::int64_t m = 20, n = 24, k = 96;
  const GemmOptions options = with_moduli(12, Bound::accurate);
  Matrices<double> A, B, C(6, Matrix(m, n, poison()));
  std::vector<Bound> used;
  for (std::uint64_t e = 0; e < 6; ++e) {
    A.push_back(e % 2 == 0 ? structured(m, k, true, e) : spread(m, k, 0.5, e));
    B.push_back(e % 2 == 0 ? structured(k, n, false, e + 10) : spread(k, n, 0.5, e + 10));
    const Operand<LayoutLeft> a(A.back()), b(B.back()), c(C[e]);
    GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', m, n, k, options);
    plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.0, c.view());
    used.push_back(plan.report().bound_used);
  }
  EXPECT_EQ((std::vector<Bound>{Bound::accurate, Bound::fast, Bound::accurate, Bound::fast, Bound::accurate,
                                Bound::fast}),
            used);
  const auto expected = single_calls<TypeParam>('N', 'N', 1.0, A, B, 0.0, C, options);
  const BatchOperand<LayoutLeft, double> a(A), b(B), c(C);
  gemm_batched(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.0, c.view(), options);
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(expected, c.values()));
}

TYPED_TEST(GemmBatchedTest, EveryEntryHasItsOwnNumberOfModuli) {
  // Entries of every spread, some beyond every number of moduli, some with nothing in the first positions, one with NaN;
  // so many that there are several blocks of them on a host.
  const std::int64_t m = 11, n = 7, k = 1500, entries = 120;
  Matrices<double> A, B;
  for (std::int64_t e = 0; e < entries; ++e) {
    const auto seed = static_cast<std::uint64_t>(e);
    A.push_back(spread(m, k, static_cast<double>(e % 4), 2 * seed + 1));
    B.push_back(spread(k, n, static_cast<double>(e % 3), 2 * seed + 2));
    if (e % 20 == 3) {
      A.back()(0, 0) = std::ldexp(1.0, 200);
      B.back()(0, 0) = std::ldexp(1.0, -250);
    }
    if (e % 20 == 7)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t l = 0; l < 1024; ++l) A.back()(i, l) = 0;
    if (e == 50) B.back()(5, 5) = quiet_nan;
  }
  const Matrices<double> C(static_cast<std::size_t>(entries), Matrix(m, n, 0.25));
  for (const double c : {0.0, 1.0}) {
    GemmOptions options;
    if (c != 0) options.accuracy = Accuracy::componentwise(c);
    const auto expected = single_calls<TypeParam>('N', 'N', 0.5, A, B, 2.0, C, options);
    const TypeParam exec{};
    const BatchOperand<LayoutLeft, double> a(A), b(B), rank_3(C);
    gemm_batched(exec, "N", "N", 0.5, a.view(), b.view(), 2.0, rank_3.view(), options);
    exec.fence();
    EXPECT_TRUE(same_bits(expected, rank_3.values(), true)) << "rank 3, c=" << c;
    std::deque<Operand<LayoutLeft>> of_c;
    std::vector<Kokkos::View<double**, LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged>> array;
    for (const Matrix& matrix : C) array.push_back(of_c.emplace_back(matrix).view());
    gemm_batched(exec, "N", "N", 0.5, a.view(), b.view(), 2.0, array, options);
    exec.fence();
    Matrices<double> got;
    for (const auto& operand : of_c) got.push_back(operand.values());
    EXPECT_TRUE(same_bits(expected, got, true)) << "array, c=" << c;
  }
}

TYPED_TEST(GemmBatchedTest, EveryEngineHasTheBitsOfSingleCalls) {
  for (const char* backend : usable_backends<TypeParam>())
    for (const Bound bound : both_bounds) {
      SCOPED_TRACE(backend);
      GemmOptions options = with_moduli(14, bound);
      options.backend = backend;
      check_batch<TypeParam, double>(6, 33, 20, 70, options);
      check_batch<TypeParam, Kokkos::complex<double>>(3, 33, 20, 70, options);
    }
}

TYPED_TEST(GemmBatchedTest, CapsHaveTheSameBits) {
  const std::int64_t entries = 7, m = 50, n = 40, k = 140;
  for (const Bound bound : both_bounds) {
    GemmOptions options = with_moduli(14, bound);
    const auto A = random_batch<double>(entries, m, k, 1), B = random_batch<double>(entries, k, n, 2);
    const auto C = random_batch<double>(entries, m, n, 3);
    const auto expected = single_calls<TypeParam>('N', 'N', 1.0, A, B, 1.0, C, options);
    const std::size_t fixed = engine_bytes<TypeParam>();
    const std::size_t single = GemmPlan<TypeParam, double>::workspace_bytes(m, n, k, options) - fixed;
    // From blocks of C of one entry to all entries.
    for (const std::size_t percent : {25, 100, 240, 380, 2000}) {
      release_workspaces();
      options.max_workspace_bytes = fixed + single * percent / 100;
      const BatchOperand<LayoutLeft, double> a(A), b(B), c(C);
      gemm_batched(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 1.0, c.view(), options);
      const ArrayOperand<double> arrays_a(A), arrays_b(B), arrays_c(C);
      gemm_batched(TypeParam{}, "N", "N", 1.0, arrays_a.views(), arrays_b.views(), 1.0, arrays_c.views(),
                   options);
      TypeParam{}.fence();
      EXPECT_TRUE(same_bits(expected, c.values())) << percent;
      EXPECT_TRUE(same_bits(expected, arrays_c.values())) << percent;
    }
  }
}

TYPED_TEST(GemmBatchedTest, AThousandSmallProducts) {
  check_batch<TypeParam, double>(1000, 8, 8, 8, {});
  check_batch<TypeParam, float>(1000, 3, 5, 7, with_moduli(7, Bound::accurate));
}

TYPED_TEST(GemmBatchedTest, OneMatrixInAllEntries) {
  const auto B = random_batch<double>(4, 30, 12, 2);
  const Matrices<double> A(4, spread(21, 30, 1.0, 5)), C(4, Matrix(21, 12, poison()));
  const auto expected = single_calls<TypeParam>('N', 'N', 1.0, A, B, 0.0, C, {});
  const Operand<LayoutLeft> a(A[0]);
  const BatchOperand<LayoutLeft, double> b(B), c(C), d(C);
  const std::vector<Operand<LayoutLeft>::View> repeated(4, a.view());
  gemm_batched(TypeParam{}, "N", "N", 1.0, repeated, b.view(), 0.0, c.view());
  const Kokkos::View<const double***, LayoutStride, SharedSpace, Kokkos::MemoryUnmanaged> broadcast(
      a.view().data(), LayoutStride(21, 1, 30, 21, 4, 0));
  gemm_batched(TypeParam{}, "N", "N", 1.0, broadcast, b.view(), 0.0, d.view());
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(expected, c.values()));
  EXPECT_TRUE(same_bits(expected, d.values()));
}

TYPED_TEST(GemmBatchedTest, PanelsOfOneAllocation) {
  // Row panels lie within each other's spans, and A and C within the same matrices.
  const std::int64_t m = 6, k = 7, n = 5, entries = 9;
  const Matrices<double> whole(1, uniform(m * entries, k + n, -1, 1, 4));
  const auto B = random_batch<double>(entries, k, n, 2);
  const BatchOperand<LayoutLeft, double> storage(whole), b(B);
  using View = Kokkos::View<double**, LayoutStride, SharedSpace, Kokkos::MemoryUnmanaged>;
  std::vector<View> a, c;
  Matrices<double> A, C;
  const auto ld = static_cast<std::size_t>(m * entries);
  for (std::int64_t e = 0; e < entries; ++e) {
    double* first = storage.view().data() + e * m;
    a.emplace_back(first, LayoutStride(m, 1, k, ld));
    c.emplace_back(first + k * m * entries, LayoutStride(m, 1, n, ld));
    Matrix x(m, k), z(m, n);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t l = 0; l < k; ++l) x(i, l) = whole[0](e * m + i, l);
      for (std::int64_t j = 0; j < n; ++j) z(i, j) = whole[0](e * m + i, k + j);
    }
    A.push_back(x), C.push_back(z);
  }
  const auto expected = single_calls<TypeParam>('N', 'N', -1.0, A, B, 1.0, C, {});
  gemm_batched(TypeParam{}, "N", "N", -1.0, a, b.view(), 1.0, c);
  TypeParam{}.fence();
  const Matrix got = storage.values()[0];
  for (std::int64_t e = 0; e < entries; ++e)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        ASSERT_TRUE(is_same(expected[static_cast<std::size_t>(e)](i, j), got(e * m + i, k + j)))
            << e << " " << i << " " << j;
}

TYPED_TEST(GemmBatchedTest, DefaultInstanceAndOtherContainers) {
  const auto A = random_batch<double>(2, 5, 6, 1), B = random_batch<double>(2, 6, 7, 2);
  const Matrices<double> C(2, Matrix(5, 7, poison()));
  const auto expected = single_calls<TypeParam>('N', 'N', 1.0, A, B, 0.0, C, {});
  const Operand<LayoutLeft> a0(A[0]), a1(A[1]);
  const Operand<LayoutRight> c0(C[0]), c1(C[1]);
  const BatchOperand<LayoutLeft, double> b(B);
  const std::deque<Operand<LayoutLeft>::ConstView> a{a0.const_view(), a1.const_view()};
  using View = Kokkos::View<double**, LayoutRight, Shared<TypeParam>, Kokkos::MemoryUnmanaged>;
  const std::array<View, 2> c{View(c0.view().data(), 5, 7), View(c1.view().data(), 5, 7)};
  gemm_batched("N", "N", 1.0, a, b.view(), 0.0, c);
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(expected, {c0.values(), c1.values()}));
}

TYPED_TEST(GemmBatchedTest, NothingToDo) {
  const Matrices<double> none;
  const BatchOperand<LayoutLeft, double> a(none), b(none), c(none);
  gemm_batched(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.0, c.view());
  const std::vector<Operand<LayoutLeft>::View> empty;
  gemm_batched(TypeParam{}, "N", "N", 1.0, empty, empty, 0.0, empty);
  for (const auto& [m, n] : {std::make_pair(0, 4), std::make_pair(4, 0)}) {
    const BatchOperand<LayoutLeft, double> x(Matrices<double>(3, Matrix(m, 2))),
        y(Matrices<double>(3, Matrix(2, n))), z(Matrices<double>(3, Matrix(m, n)));
    gemm_batched(TypeParam{}, "N", "N", 1.0, x.view(), y.view(), 0.0, z.view());
  }
  TypeParam{}.fence();
}

// ---- bad arguments ------------------------------------------------------------------------------------

template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "nothing was thrown";
}

TYPED_TEST(GemmBatchedTest, BadArgumentsLeaveCUntouched) {
  const auto batch = [](std::int64_t entries, std::int64_t rows, std::int64_t cols) {
    return random_batch<double>(entries, rows, cols, 7);
  };
  const BatchOperand<LayoutLeft, double> a(batch(3, 4, 5)), b(batch(3, 5, 6)), c(batch(3, 4, 6), 1);
  const BatchOperand<LayoutLeft, double> a2(batch(2, 4, 5)), a_rows(batch(3, 3, 5)), b_rows(batch(3, 4, 6)),
      b_cols(batch(3, 5, 7));
  const auto before = c.values();
  const auto call = [&](const auto& x, const auto& y, const auto& z, const GemmOptions& options = {},
                        const char* transA = "N", const char* transB = "N") {
    return refusal([&] { gemm_batched(TypeParam{}, transA, transB, 1.0, x, y, 0.5, z, options); });
  };
  EXPECT_EQ("KokkosOzaki::gemm_batched: transA must be one of N, T, C, got 'x'.",
            call(a.view(), b.view(), c.view(), {}, "x"));
  EXPECT_EQ("KokkosOzaki::gemm_batched: transB must be one of N, T, C, got character code 0.",
            call(a.view(), b.view(), c.view(), {}, "N", ""));
  EXPECT_EQ("KokkosOzaki::gemm_batched: A, B and C must have the same number of matrices, got 2, 3 and 3.",
            call(a2.view(), b.view(), c.view()));
  EXPECT_EQ(
      "KokkosOzaki::gemm_batched: op(B) has 4 rows, op(A) has 5 columns (transA=N A 4x5, transB=N B 4x6, C "
      "4x6).",
      call(a.view(), b_rows.view(), c.view()));
  EXPECT_EQ(
      "KokkosOzaki::gemm_batched: C has 4 rows, op(A) has 3 rows (transA=N A 3x5, transB=N B 5x6, C 4x6).",
      call(a_rows.view(), b.view(), c.view()));
  EXPECT_EQ(
      "KokkosOzaki::gemm_batched: C has 6 columns, op(B) has 7 columns (transA=N A 4x5, transB=N B 5x7, C "
      "4x6).",
      call(a.view(), b_cols.view(), c.view()));
  EXPECT_EQ("KokkosOzaki::gemm_batched: num_moduli must be 0 or 2..20, got 21.",
            call(a.view(), b.view(), c.view(), with_moduli(21)));
  EXPECT_EQ("KokkosOzaki::gemm_batched: moduli_per_group must not be negative, got -1.", [&] {
    GemmOptions options;
    options.moduli_per_group = -1;
    return call(a.view(), b.view(), c.view(), options);
  }());

  // Overlap.
  using View = Kokkos::View<double***, LayoutStride, SharedSpace, Kokkos::MemoryUnmanaged>;
  const View one_c(c.view().data(), LayoutStride(4, 1, 6, 5, 3, 0));
  EXPECT_EQ("KokkosOzaki::gemm_batched: the matrices of C must not overlap each other (3 of 4x6).",
            call(a.view(), b.view(), one_c));
  const View shared_a(c.view().data(), LayoutStride(4, 1, 5, 5, 3, 30));
  EXPECT_EQ("KokkosOzaki::gemm_batched: C must not overlap A (A 4x5, C 4x6, 3 of each).",
            call(shared_a, b.view(), c.view()));
  const View shared_b(c.view().data() + 60, LayoutStride(5, 1, 6, 5, 3, 0));
  EXPECT_EQ("KokkosOzaki::gemm_batched: C must not overlap B (B 5x6, C 4x6, 3 of each).",
            call(a.view(), shared_b, c.view()));
  const ArrayOperand<double> array_a(batch(3, 4, 5)), array_b(batch(3, 5, 6));
  const ArrayOperand<double> array_c(batch(3, 4, 6));
  auto twice = array_c.views();
  twice[2] = twice[0];
  EXPECT_EQ("KokkosOzaki::gemm_batched: the matrices of C must not overlap each other (3 of 4x6).",
            call(array_a.views(), array_b.views(), twice));
  const std::vector<Operand<LayoutLeft>::View> from_c{
      array_a.views()[0], Operand<LayoutLeft>::View(array_c.views()[1].data(), 4, 5), array_a.views()[2]};
  EXPECT_EQ("KokkosOzaki::gemm_batched: C must not overlap A (A 4x5, C 4x6, 3 of each).",
            call(from_c, array_b.views(), array_c.views()));

  // Arrays of different matrices.
  auto other = array_a.views();
  other[1] = Operand<LayoutLeft>::View(array_a.views()[1].data(), 4, 4);
  EXPECT_EQ(
      "KokkosOzaki::gemm_batched: A[1] must be as A[0], 4x5 with strides 1 and 4, got 4x4 with strides 1 and "
      "4.",
      call(other, array_b.views(), array_c.views()));

  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(before, c.values()));
  EXPECT_TRUE(c.gaps_are_intact());
}

TYPED_TEST(GemmBatchedTest, TooFewModuliAndACapBelowTheSmallestBlockLeaveCUntouched) {
  const auto before = random_batch<double>(2, 3, 4, 3);
  const BatchOperand<LayoutLeft, double> a(random_batch<double>(2, 3, 1100, 1)),
      b(random_batch<double>(2, 1100, 4, 2)), c(before);
  EXPECT_EQ("KokkosOzaki::gemm_batched: too few moduli for this k: num_moduli=2, k=1100 needs at least 3.",
            refusal([&] {
              gemm_batched(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.0, c.view(), with_moduli(2));
            }));
  GemmOptions options;
  options.max_workspace_bytes = 100;
  EXPECT_THROW(gemm_batched(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.0, c.view(), options),
               WorkspaceError);
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(before, c.values()));
}

}  // namespace
}  // namespace KokkosOzaki::Testing
