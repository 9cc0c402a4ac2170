// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Products of float, double, complex float and complex double, and of operands of two types.
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ErrorBounds.hpp"
#include "HostViews.hpp"
#include "MatrixGenerators.hpp"
#include "ReferenceGemm.hpp"
#include "Vectors.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;
using Kokkos::LayoutStride;

template <class T>
struct PartsOf {
  using Real = T;
  static constexpr int count = 1;
};
template <class T>
struct PartsOf<Kokkos::complex<T>> {
  using Real = T;
  static constexpr int count = 2;
};
template <class T>
using RealOf = typename PartsOf<T>::Real;
template <class T>
constexpr bool is_complex = PartsOf<T>::count == 2;
template <class T>
constexpr bool is_single = std::is_same_v<RealOf<T>, float>;

/// A number with these parts; real numbers take the first one.
template <class T>
T make(double re, double im) {
  using Real = RealOf<T>;
  if constexpr (is_complex<T>)
    return T(static_cast<Real>(re), static_cast<Real>(im));
  else
    return static_cast<T>(re);
}
template <class T>
T make(double x) {
  return make<T>(x, 0.0);
}
template <class T>
T make(const std::array<double, 2>& parts) {
  return make<T>(parts[0], parts[1]);
}

template <class T>
RealOf<T> part(const T& x, int which) {
  if constexpr (is_complex<T>)
    return which == 0 ? x.real() : x.imag();
  else
    return which == 0 ? x : T{0};
}

template <class T>
T conjugate(const T& x) {
  if constexpr (is_complex<T>)
    return T(x.real(), -x.imag());
  else
    return x;
}

template <class T>
bool is_finite(const T& x) {
  return std::isfinite(part(x, 0)) && std::isfinite(part(x, 1));
}

template <class To, class From, class Convert>
MatrixOf<To> mapped(const MatrixOf<From>& x, const Convert& convert) {
  MatrixOf<To> y(x.rows(), x.cols());
  for (std::int64_t j = 0; j < x.cols(); ++j)
    for (std::int64_t i = 0; i < x.rows(); ++i) y(i, j) = convert(x(i, j));
  return y;
}

template <class T>
MatrixOf<T> conjugated(const MatrixOf<T>& x) {
  return mapped<T>(x, [](const T& z) { return conjugate(z); });
}

/// Real or imaginary parts, in double, which holds every float.
template <class T>
Matrix parts(const MatrixOf<T>& x, int which) {
  return mapped<double>(x, [which](const T& z) { return static_cast<double>(part(z, which)); });
}

/// Two generated matrices as the parts of one.
template <class T>
MatrixOf<T> joined(const Matrix& re, const Matrix& im) {
  MatrixOf<T> x(re.rows(), re.cols());
  for (std::int64_t j = 0; j < x.cols(); ++j)
    for (std::int64_t i = 0; i < x.rows(); ++i) x(i, j) = make<T>(re(i, j), im(i, j));
  return x;
}

template <class T>
MatrixOf<T> spread_of(std::int64_t rows, std::int64_t cols, double phi, std::uint64_t seed) {
  return joined<T>(spread(rows, cols, phi, seed), spread(rows, cols, phi, seed + 1000));
}
template <class T>
MatrixOf<T> uniform_of(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return joined<T>(uniform(rows, cols, -1, 1, seed), uniform(rows, cols, -1, 1, seed + 1000));
}
template <class T>
MatrixOf<T> integers_of(std::int64_t rows, std::int64_t cols, std::int64_t largest, std::uint64_t seed) {
  return joined<T>(integers(rows, cols, largest, seed), integers(rows, cols, largest, seed + 1000));
}

/// What is stored so that op() of it is x.
template <class T>
MatrixOf<T> stored_for(const MatrixOf<T>& x, char trans) {
  if (trans == 'N') return x;
  return trans == 'C' ? conjugated(x.transposed()) : x.transposed();
}

/// \brief alpha A B + beta C; the operands lie in memory as told.
template <class Space, class Layout, class Scalar, class AElement, class BElement>
MatrixOf<Scalar> product_in(const Placement& placement, const MatrixOf<AElement>& A,
                            const MatrixOf<BElement>& B, const GemmOptions& options, const Scalar& alpha,
                            const Scalar& beta, const MatrixOf<Scalar>& C, char transA = 'N',
                            char transB = 'N') {
  const Operand<Layout, SharedSpace, AElement> a(stored_for(A, transA), placement);
  const Operand<Layout, SharedSpace, BElement> b(stored_for(B, transB), placement);
  const Operand<Layout, SharedSpace, Scalar> c(C, placement);
  const char letters[] = {transA, '\0', transB, '\0'};
  const Space exec{};
  gemm(exec, letters, letters + 2, alpha, a.view(), b.const_view(), beta, c.view(), options);
  exec.fence();
  EXPECT_TRUE(c.gaps_are_intact());
  return c.values();
}

template <class Space, class Scalar, class AElement, class BElement>
MatrixOf<Scalar> product_of(const MatrixOf<AElement>& A, const MatrixOf<BElement>& B,
                            const GemmOptions& options = {}, char transA = 'N', char transB = 'N') {
  return product_in<Space, LayoutLeft>({}, A, B, options, Scalar(1), Scalar(0),
                                       MatrixOf<Scalar>(A.rows(), B.cols(), poison_of<Scalar>()), transA,
                                       transB);
}

template <class Space_, class Scalar_>
struct Case {
  using Space = Space_;
  using Scalar = Scalar_;
};

template <class Types>
struct CasesOf;
template <class... Spaces>
struct CasesOf<::testing::Types<Spaces...>> {
  using types =
      ::testing::Types<Case<Spaces, float>..., Case<Spaces, double>...,
                       Case<Spaces, Kokkos::complex<float>>..., Case<Spaces, Kokkos::complex<double>>...>;
};
using Cases = CasesOf<EnabledSpaces>::types;

template <class Scalar>
constexpr const char* scalar_name = is_complex<Scalar>
                                        ? (is_single<Scalar> ? "complex_float" : "complex_double")
                                        : (is_single<Scalar> ? "float" : "double");

struct CaseNames {
  template <class Case>
  static std::string GetName(int index) {
    return case_name(index, std::string(Case::Space::name()) + "_" + scalar_name<typename Case::Scalar>);
  }
};

template <class Case>
class ScalarTest : public ::testing::Test {};
TYPED_TEST_SUITE(ScalarTest, Cases, CaseNames);

// ---- the specification's vectors --------------------------------------------------------------------

template <class T, class Entry>
MatrixOf<T> matrix_of_rows(const Rows<Entry>& rows, std::int64_t m, std::int64_t n) {
  MatrixOf<T> a(m, n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      a(i, j) = make<T>(rows.at(static_cast<std::size_t>(i)).at(static_cast<std::size_t>(j)));
  return a;
}

template <class Scalar>
const auto& vectors_of() {
  if constexpr (is_complex<Scalar>)
    return complex_vectors();
  else if constexpr (is_single<Scalar>)
    return f32_vectors();
  else
    return f64_vectors();
}

TYPED_TEST(ScalarTest, ReproducesTheVectors) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  int used = 0;
  for (const auto& item : vectors_of<Scalar>()) {
    if (item.is_single != is_single<Scalar>) continue;
    ++used;
    SCOPED_TRACE(item.name);
    const std::int64_t m = item.m, n = item.n, k = item.k;
    auto A = matrix_of_rows<Scalar>(item.a, m, k), B = matrix_of_rows<Scalar>(item.b, n, k).transposed();
    if (item.conj_a) A = conjugated(A);
    if (item.conj_b) B = conjugated(B);
    const auto C = item.c_in.empty() ? MatrixOf<Scalar>(m, n, poison_of<Scalar>())
                                     : matrix_of_rows<Scalar>(item.c_in, m, n);
    const auto expected = matrix_of_rows<Scalar>(item.c, m, n);
    const Scalar alpha = make<Scalar>(item.alpha), beta = make<Scalar>(item.beta);
    const GemmOptions options =
        with_moduli(item.num_moduli, item.accurate ? Bound::accurate : Bound::fast,
                    item.toward_zero ? Rounding::toward_zero : Rounding::nearest_even);
    for (const char transA : {'N', 'T', 'C'})
      for (const char transB : {'N', 'T', 'C'}) {
        SCOPED_TRACE(std::string("trans ") + transA + transB);
        const auto check = [&](const MatrixOf<Scalar>& got) { EXPECT_TRUE(same_values(expected, got)); };
        check(product_in<Space, LayoutLeft>({}, A, B, options, alpha, beta, C, transA, transB));
        check(
            product_in<Space, LayoutRight>({1, 3, 1, false}, A, B, options, alpha, beta, C, transA, transB));
        check(
            product_in<Space, LayoutStride>({1, 1, 2, false}, A, B, options, alpha, beta, C, transA, transB));
      }
  }
  EXPECT_GT(used, is_complex<Scalar> && is_single<Scalar> ? 10 : 50);
}

// ---- accuracy ---------------------------------------------------------------------------------------

/// The real product whose entries are the real (0) or imaginary (1) parts of A B: of rows [re, im] with
/// columns [re, -im] or [im, re].
template <class Scalar>
ReferenceProduct reference_part(const MatrixOf<Scalar>& A, const MatrixOf<Scalar>& B, int which) {
  if constexpr (!is_complex<Scalar>) {
    return reference_gemm(parts(A, 0), parts(B, 0));
  } else {
    const std::int64_t m = A.rows(), n = B.cols(), k = A.cols();
    Matrix X(m, 2 * k), Y(2 * k, n);
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t i = 0; i < m; ++i) X(i, l) = A(i, l).real(), X(i, k + l) = A(i, l).imag();
      for (std::int64_t j = 0; j < n; ++j) {
        Y(l, j) = which == 0 ? B(l, j).real() : B(l, j).imag();
        Y(k + l, j) = which == 0 ? -B(l, j).imag() : B(l, j).real();
      }
    }
    return reference_gemm(X, Y);
  }
}

template <class Scalar>
std::vector<ReferenceProduct> reference_parts(const MatrixOf<Scalar>& A, const MatrixOf<Scalar>& B) {
  std::vector<ReferenceProduct> references;
  for (int which = 0; which < PartsOf<Scalar>::count; ++which)
    references.push_back(reference_part(A, B, which));
  return references;
}

/// |C - AB| <= (c ||a_i|| ||b_j|| + |C|) u in each part, and one unit of the subnormal range.
template <class Scalar>
void expect_normwise(const std::vector<ReferenceProduct>& references, const MatrixOf<Scalar>& C, double bound,
                     const std::string& what) {
  const int precision = is_single<Scalar> ? 24 : 53;
  const Real u = power_of_two(-precision), tiny = power_of_two(is_single<Scalar> ? -150 : -1075);
  for (int which = 0; which < PartsOf<Scalar>::count; ++which) {
    const ReferenceProduct& r = references[static_cast<std::size_t>(which)];
    for (std::int64_t j = 0; j < C.cols(); ++j)
      for (std::int64_t i = 0; i < C.rows(); ++i) {
        const double c = static_cast<double>(part(C(i, j), which));
        const std::size_t at = r.index(i, j);
        if (!std::isfinite(c)) {
          const Real most = to_real(static_cast<double>(std::numeric_limits<RealOf<Scalar>>::max()));
          EXPECT_GT(abs(to_real(r.exact[at])) * (1 + 2 * bound * u), most) << what;
          continue;
        }
        const Real error = abs(to_real(difference(c, r.exact[at])));
        const Real allowed = to_real(bound) * u * r.row_norm[static_cast<std::size_t>(i)] *
                                 r.col_norm[static_cast<std::size_t>(j)] +
                             u * to_real(std::fabs(c)) + tiny;
        ASSERT_LE(error, allowed) << what << ", part " << which << " of (" << i << "," << j << "), " << c;
      }
  }
}

TYPED_TEST(ScalarTest, StaysWithinTheBoundForEverySpreadAndNumberOfModuli) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  struct Size {
    std::int64_t m, n, k;
  };
  for (const Size& size : {Size{7, 5, 1}, Size{5, 6, 130}, Size{9, 8, 1024}})
    for (const double phi : {0.0, 1.0, 4.0})
      for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero}) {
        const auto seed = static_cast<std::uint64_t>(size.k + static_cast<std::int64_t>(10 * phi));
        const auto A = spread_of<Scalar>(size.m, size.k, phi, seed),
                   B = spread_of<Scalar>(size.k, size.n, phi, seed + 1);
        const std::vector<ReferenceProduct> references = reference_parts(A, B);
        for (const Bound bound : both_bounds)
          for (int s = fewest_moduli(PartsOf<Scalar>::count * size.k); s <= 20; ++s) {
            GemmPlan<Space, Scalar> plan(Space{}, 'N', 'N', size.m, size.n, size.k,
                                         with_moduli(s, bound, rounding));
            const Operand<LayoutLeft, SharedSpace, Scalar> a(A), b(B),
                c(MatrixOf<Scalar>(size.m, size.n, poison_of<Scalar>()));
            plan.execute(Space{}, Scalar(1), a.view(), b.view(), Scalar(0), c.view());
            Space{}.fence();
            const GemmReport report = plan.report();
            EXPECT_EQ(report.num_moduli, s);
            ASSERT_NO_FATAL_FAILURE(expect_normwise(references, c.values(), report.error_bound,
                                                    "s=" + std::to_string(s) + " phi=" + std::to_string(phi) +
                                                        " k=" + std::to_string(size.k) + " " +
                                                        name_of(bound)));
          }
      }
}

TYPED_TEST(ScalarTest, NormwiseIsBetterThanTheRootOfTheInnerDimension) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  GemmOptions options;
  options.accuracy = Accuracy::normwise();
  for (const std::int64_t k : {1, 100, 4096, 65536}) {
    const GemmReport report =
        GemmPlan<Space, Scalar>(ExternalWorkspace{}, Space{}, 'N', 'N', 4, 4, k, options).report();
    EXPECT_EQ(report.num_moduli, is_single<Scalar> ? 7 : 14) << k;
    EXPECT_LE(report.error_bound, std::sqrt(static_cast<double>(PartsOf<Scalar>::count * k))) << k;
  }
}

TYPED_TEST(ScalarTest, ProductsOfIntegersAreExactForEverySize) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  const std::vector<std::int64_t> sizes = {0, 1, 2, 3, 8, 15, 17, 33, 65};
  for (const std::int64_t m : sizes)
    for (const std::int64_t n : sizes)
      for (const std::int64_t k : {0, 1, 2, 15, 64, 65, 127, 129}) {
        // below 2^24 in every part
        const auto A = integers_of<Scalar>(m, k, 200, 81), B = integers_of<Scalar>(k, n, 200, 82);
        MatrixOf<Scalar> expected(m, n);
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t l = 0; l < k; ++l)
            for (std::int64_t i = 0; i < m; ++i) expected(i, j) += A(i, l) * B(l, j);
        const auto got = product_in<Space, LayoutLeft>({0, 1, 1, false}, A, B, {}, Scalar(1), Scalar(0),
                                                       MatrixOf<Scalar>(m, n, poison_of<Scalar>()));
        ASSERT_TRUE(same_values(expected, got)) << m << "x" << n << "x" << k;
      }
}

TYPED_TEST(ScalarTest, PowersOfTwoScaleTheResultExactly) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  const auto times = [](const MatrixOf<Scalar>& x, int exponent) {
    return mapped<Scalar>(x, [&](const Scalar& z) {
      return make<Scalar>(std::ldexp(static_cast<double>(part(z, 0)), exponent),
                          std::ldexp(static_cast<double>(part(z, 1)), exponent));
    });
  };
  const auto A = uniform_of<Scalar>(9, 300, 151), B = uniform_of<Scalar>(300, 8, 152);
  for (const Bound bound : both_bounds)
    for (const int s : {3, 6, 7, 8, 14, 17, 20}) {
      const GemmOptions options = with_moduli(s, bound);
      const auto C = product_of<Space, Scalar>(A, B, options);
      for (const auto& [e, f] : {std::pair<int, int>{-5, -5}, {20, 20}, {-60, 61}, {50, -90}})
        EXPECT_TRUE(same_bits(times(C, e + f), product_of<Space, Scalar>(times(A, e), times(B, f), options)))
            << s << " " << name_of(bound) << " 2^" << e << " 2^" << f;
    }
}

// ---- the same bits ----------------------------------------------------------------------------------

TYPED_TEST(ScalarTest, BlocksEnginesLayoutsAndLettersDoNotChangeBits) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  const std::int64_t m = 70, n = 45, k = 390;
  const auto A = spread_of<Scalar>(m, k, 1.0, 301), B = spread_of<Scalar>(k, n, 1.0, 302),
             C = uniform_of<Scalar>(m, n, 303);
  const Scalar alpha = make<Scalar>(-0.75, 0.3), beta = make<Scalar>(1.25, -0.6);
  for (const Bound bound : both_bounds)
    for (const int s : {6, 7, 8, 14, 18}) {
      SCOPED_TRACE("s=" + std::to_string(s) + " " + name_of(bound));
      GemmOptions options = with_moduli(s, bound);
      const auto expected = product_in<Space, LayoutLeft>({}, A, B, options, alpha, beta, C);
      for (const char transA : {'N', 'T', 'C'})
        for (const char transB : {'N', 'T', 'C'}) {
          EXPECT_TRUE(same_bits(expected, product_in<Space, LayoutLeft>({2, 3, 1, false}, A, B, options,
                                                                        alpha, beta, C, transA, transB)));
          EXPECT_TRUE(same_bits(
              expected, product_in<Space, LayoutRight>({}, A, B, options, alpha, beta, C, transA, transB)));
          EXPECT_TRUE(same_bits(expected, product_in<Space, LayoutStride>({0, 1, 3, true}, A, B, options,
                                                                          alpha, beta, C, transA, transB)));
        }
      for (const char* backend : usable_backends<Space>()) {
        GemmOptions other = options;
        other.backend = backend;
        EXPECT_TRUE(same_bits(expected, product_in<Space, LayoutLeft>({}, A, B, other, alpha, beta, C)))
            << backend;
      }
      for (const int group : {1, 3, 20}) {
        GemmOptions other = options;
        other.moduli_per_group = group;
        EXPECT_TRUE(same_bits(expected, product_in<Space, LayoutLeft>({}, A, B, other, alpha, beta, C)))
            << group;
      }
      const std::size_t all = GemmPlan<Space, Scalar>::workspace_bytes(m, n, k, options);
      for (const std::size_t divisor : {2, 5, 11}) {
        GemmOptions other = options;
        other.max_workspace_bytes = all / divisor;
        if (!GemmPlan<Space, Scalar>::can_run(m, n, k, other)) continue;
        EXPECT_LE((GemmPlan<Space, Scalar>::workspace_bytes(m, n, k, other)), other.max_workspace_bytes);
        EXPECT_TRUE(same_bits(expected, product_in<Space, LayoutLeft>({}, A, B, other, alpha, beta, C)))
            << divisor;
      }
    }
}

TYPED_TEST(ScalarTest, AllSpacesGiveTheSameBits) {
  using Scalar = typename TypeParam::Scalar;
  using First = SpacesWithCuda::first;
  const auto A = spread_of<Scalar>(33, 300, 2.0, 311), B = spread_of<Scalar>(300, 41, 2.0, 312);
  for (const Bound bound : both_bounds)
    for (const int s : {2, 5, 7, 8, 14, 20})
      EXPECT_TRUE(same_bits((product_of<First, Scalar>(A, B, with_moduli(s, bound))),
                            (product_of<typename TypeParam::Space, Scalar>(A, B, with_moduli(s, bound)))))
          << s << " " << name_of(bound);
}

TYPED_TEST(ScalarTest, TheConjugateTransposeIsExact) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  // A^H A is Hermitian, and its diagonal is real: the two halves of every imaginary part cancel in the integers.
  const auto A = spread_of<Scalar>(130, 13, 1.0, 321);
  for (const int s : {5, 7, 14}) {
    const Operand<LayoutLeft, SharedSpace, Scalar> a(A), c(MatrixOf<Scalar>(13, 13, poison_of<Scalar>()));
    gemm(Space{}, "C", "N", Scalar(1), a.view(), a.view(), Scalar(0), c.view(), with_moduli(s));
    Space{}.fence();
    const MatrixOf<Scalar> C = c.values();
    EXPECT_TRUE(same_values(C, mapped<Scalar>(conjugated(C.transposed()), [](const Scalar& z) {
                              return make<Scalar>(part(z, 0), part(z, 1) == 0 ? 0.0 : part(z, 1));
                            })));
    for (std::int64_t i = 0; i < 13; ++i) EXPECT_EQ(part(C(i, i), 1), 0);
  }
}

TYPED_TEST(ScalarTest, EachConjugationTurnsTheSignOfImaginaryNumbers) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  // Purely imaginary entries, stored once for 'N' and once for both 'T' and 'C': each 'C' changes the sign. For real
  // numbers 'C' is 'T'.
  const std::int64_t m = 19, n = 12, k = 133;
  const Matrix x = integers(m, k, 100, 331), y = integers(k, n, 100, 332);
  const auto entry = [](double value) {
    return is_complex<Scalar> ? make<Scalar>(0.0, value) : make<Scalar>(value);
  };
  const auto A = mapped<Scalar>(x, entry), B = mapped<Scalar>(y, entry);
  for (const char transA : {'N', 'T', 'C'})
    for (const char transB : {'N', 'T', 'C'}) {
      SCOPED_TRACE(std::string("trans ") + transA + transB);
      double sign = is_complex<Scalar> ? -1 : 1;  // i i
      for (const char trans : {transA, transB})
        if (is_complex<Scalar> && trans == 'C') sign = -sign;
      MatrixOf<Scalar> expected(m, n);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i) {
          double sum = 0;
          for (std::int64_t l = 0; l < k; ++l) sum += x(i, l) * y(l, j);
          expected(i, j) = make<Scalar>(sign * sum + 0.0, 0.0);  // an exact zero is +0
        }
      const Operand<LayoutLeft, SharedSpace, Scalar> a(transA == 'N' ? A : A.transposed()),
          b(transB == 'N' ? B : B.transposed()), c(MatrixOf<Scalar>(m, n, poison_of<Scalar>()));
      const char letters[] = {transA, '\0', transB, '\0'};
      gemm(Space{}, letters, letters + 2, Scalar(1), a.view(), b.view(), Scalar(0), c.view());
      Space{}.fence();
      EXPECT_TRUE(same_bits(expected, c.values()));
    }
}

// ---- alpha and beta ---------------------------------------------------------------------------------

template <class T>
bool is_number(const T& x, double value) {
  return part(x, 0) == static_cast<RealOf<T>>(value) && part(x, 1) == 0;
}

/// beta C, unread for beta = 0.
template <class T>
T times_beta(const T& beta, const T& c) {
  if (is_number(beta, 0)) return T(0);
  if (is_number(beta, 1)) return c;
  if constexpr (is_complex<T>) {
    const auto across = beta.imag() * c.imag(), along = beta.imag() * c.real();
    return T(std::fma(beta.real(), c.real(), -across), std::fma(beta.real(), c.imag(), along));
  } else {
    return beta * c;
  }
}

/// alpha t + beta C as docs/accuracy.md says it.
template <class T>
T reference_epilogue(const T& alpha, const T& t, const T& beta, const T& c) {
  const T p = times_beta(beta, c);
  if constexpr (is_complex<T>) {
    if (!is_number(alpha, 1))
      return T(std::fma(alpha.real(), t.real(), std::fma(-alpha.imag(), t.imag(), p.real())),
               std::fma(alpha.real(), t.imag(), std::fma(alpha.imag(), t.real(), p.imag())));
    return is_number(beta, 0) ? t : T(t.real() + p.real(), t.imag() + p.imag());
  } else {
    if (is_number(beta, 0)) return is_number(alpha, 1) ? t : alpha * t;
    return std::fma(alpha, t, p);
  }
}

template <class Scalar>
std::vector<Scalar> factors() {
  std::vector<Scalar> all;
  for (const double re : {1.0, 0.0, -1.0, -0.0, 0.3, infinity, quiet_nan})
    for (const double im : {0.0, 1.0, -0.7, -0.0, infinity}) {
      if (!is_complex<Scalar> && im != 0) continue;
      all.push_back(make<Scalar>(re, im));
    }
  return all;
}

template <class Scalar>
MatrixOf<Scalar> with_special_entries(MatrixOf<Scalar> C) {
  C(0, 0) = make<Scalar>(-0.0, -0.0), C(1, 0) = make<Scalar>(infinity, 1),
       C(2, 0) = make<Scalar>(quiet_nan, -0.0);
  C(3, 0) = make<Scalar>(1.5, -infinity), C(4, 0) = poison_of<Scalar>();
  C(5, 0) = make<Scalar>(std::numeric_limits<RealOf<Scalar>>::max(),
                         std::numeric_limits<RealOf<Scalar>>::denorm_min());
  return C;
}

TYPED_TEST(ScalarTest, AlphaAndBetaAreAppliedInAFixedOrder) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  const auto A = spread_of<Scalar>(13, 37, 1.0, 93), B = spread_of<Scalar>(37, 11, 1.0, 94);
  const auto C = with_special_entries(spread_of<Scalar>(13, 11, 2.0, 95));
  const auto t = product_of<Space, Scalar>(A, B);
  for (const Scalar& alpha : factors<Scalar>())
    for (const Scalar& beta : factors<Scalar>()) {
      if (is_number(alpha, 0)) continue;
      MatrixOf<Scalar> expected(13, 11);
      for (std::int64_t j = 0; j < 11; ++j)
        for (std::int64_t i = 0; i < 13; ++i)
          expected(i, j) = reference_epilogue(alpha, t(i, j), beta, C(i, j));
      EXPECT_TRUE(same_values(expected, (product_in<Space, LayoutLeft>({}, A, B, {}, alpha, beta, C))))
          << to_text(alpha) << ", " << to_text(beta);
      EXPECT_TRUE(same_values(expected, (product_in<Space, LayoutRight>({}, A, B, {}, alpha, beta, C))))
          << to_text(alpha) << ", " << to_text(beta);
    }
}

TYPED_TEST(ScalarTest, AlphaZeroOrEmptyInnerDimensionOnlyAppliesBeta) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  const auto C = with_special_entries(uniform_of<Scalar>(9, 5, 96));
  const MatrixOf<Scalar> A(9, 4, make<Scalar>(quiet_nan)), B(4, 5, make<Scalar>(infinity)), A0(9, 0),
      B0(0, 5);
  for (const Scalar& beta : factors<Scalar>()) {
    const auto expected = mapped<Scalar>(C, [&](const Scalar& c) { return times_beta(beta, c); });
    for (const double zero : {0.0, -0.0})
      EXPECT_TRUE(same_values(
          expected, (product_in<Space, LayoutLeft>({}, A, B, {}, make<Scalar>(zero, -zero), beta, C))));
    const auto got = product_in<Space, LayoutRight>({}, A0, B0, {}, make<Scalar>(quiet_nan), beta, C);
    EXPECT_TRUE(is_number(beta, 1) ? same_bits(C, got) : same_values(expected, got));
  }
}

// ---- range, Inf and NaN -----------------------------------------------------------------------------

TYPED_TEST(ScalarTest, OverflowIsInfBeforeAlphaAndUnderflowIsGradual) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Limits = std::numeric_limits<RealOf<Scalar>>;
  const double large = std::ldexp(1.0, is_single<Scalar> ? 70 : 600), tiny = Limits::denorm_min(),
               inf = infinity;
  const auto one = [](double x) { return MatrixOf<Scalar>(1, 1, make<Scalar>(x)); };
  const auto entry = [&](double x, double y, const Scalar& alpha) {
    return part(product_in<Space, LayoutLeft>({}, one(x), one(y), {}, alpha, Scalar(0), one(0))(0, 0), 0);
  };
  const Scalar small = make<Scalar>(std::ldexp(1.0, -100));
  EXPECT_EQ(entry(large, large, Scalar(1)), inf);
  EXPECT_EQ(entry(large, -large, Scalar(1)), -inf);
  if (!is_complex<Scalar>) {  // there (0 Inf) is NaN beside it
    EXPECT_EQ(entry(large, large, small), inf);
  }
  EXPECT_EQ(entry(tiny, 1, Scalar(1)), tiny);
  EXPECT_EQ(entry(-3 * tiny, 0.5, Scalar(1)), -2 * tiny);  // a tie, to even
  EXPECT_EQ(entry(5 * tiny, 0.5, Scalar(1)), 2 * tiny);
  EXPECT_EQ(entry(tiny, 0.5, Scalar(1)), 0);
  EXPECT_TRUE(std::signbit(entry(-tiny, 0.25, Scalar(1))));
  EXPECT_EQ(entry(Limits::max(), 1, Scalar(1)), static_cast<double>(Limits::max()));
}

template <class T>
bool has_special(const MatrixOf<T>& x, bool row, std::int64_t v) {
  for (std::int64_t l = 0; l < (row ? x.cols() : x.rows()); ++l)
    if (!is_finite(row ? x(v, l) : x(l, v))) return true;
  return false;
}

template <class Real>
Real special_product(Real x, Real y) {
  return std::isfinite(x) && std::isfinite(y) ? Real{0} : x * y;
}

/// The sum of the products of parts with a non-finite factor.
template <class T>
T special_dot(const MatrixOf<T>& A, const MatrixOf<T>& B, std::int64_t i, std::int64_t j) {
  RealOf<T> re = 0, im = 0;
  for (std::int64_t l = 0; l < A.cols(); ++l) {
    const T x = A(i, l), y = B(l, j);
    re += special_product(part(x, 0), part(y, 0));
    if (!is_complex<T>) continue;
    re -= special_product(part(x, 1), part(y, 1));
    im += special_product(part(x, 0), part(y, 1));
    im += special_product(part(x, 1), part(y, 0));
  }
  return make<T>(re, im);
}

TYPED_TEST(ScalarTest, NonFiniteInputsHaveNativeSemantics) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  const std::int64_t m = 35, n = 22, k = 259;
  const auto C = uniform_of<Scalar>(m, n, 165);
  int pattern = 0;
  for (const double value : {quiet_nan, infinity, -infinity})
    for (const std::int64_t l : {std::int64_t{0}, std::int64_t{127}, std::int64_t{128}, k - 1}) {
      auto A = spread_of<Scalar>(m, k, 1.0, 166), B = spread_of<Scalar>(k, n, 1.0, 167);
      // in one part or in both
      const auto special = [&](double x) {
        return make<Scalar>(pattern % 4 == 1 && is_complex<Scalar> ? 0.5 : x, pattern % 4 == 2 ? x : 1.0);
      };
      if (pattern % 3 != 1)
        A(0, l) = special(value), A(31, l) = special(-value), A(31, (l + 3) % k) = special(infinity);
      if (pattern % 3 != 2)
        B(l, n - 1) = special(value), B((l + 1) % k, 7) = special(-infinity),
                 B(l, 8) = make<Scalar>(0, infinity);
      A(30, l) = make<Scalar>(std::numeric_limits<RealOf<Scalar>>::max());
      B(l, 20) = make<Scalar>(std::numeric_limits<RealOf<Scalar>>::max());
      SCOPED_TRACE("pattern " + std::to_string(pattern));
      auto A0 = A, B0 = B;
      for (std::int64_t i = 0; i < m; ++i)
        if (has_special(A, true, i))
          for (std::int64_t q = 0; q < k; ++q) A0(i, q) = Scalar(0);
      for (std::int64_t j = 0; j < n; ++j)
        if (has_special(B, false, j))
          for (std::int64_t q = 0; q < k; ++q) B0(q, j) = Scalar(0);
      GemmOptions options =
          with_moduli(pattern % 2 == 0 ? 14 : 7, pattern % 2 == 0 ? Bound::fast : Bound::accurate);
      for (const auto& [alpha, beta] : {std::pair<Scalar, Scalar>{Scalar(1), Scalar(0)},
                                        {make<Scalar>(-0.5, 0.25), make<Scalar>(2, 0)}}) {
        auto expected = product_in<Space, LayoutLeft>({}, A0, B0, options, alpha, beta, C);
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = 0; i < m; ++i)
            if (has_special(A, true, i) || has_special(B, false, j))
              expected(i, j) = reference_epilogue(alpha, special_dot(A, B, i, j), beta, C(i, j));
        for (const char trans : {'N', 'T', 'C'})
          EXPECT_TRUE(same_values(
              expected, (product_in<Space, LayoutLeft>({}, A, B, options, alpha, beta, C, trans, trans))));
        EXPECT_TRUE(
            same_values(expected, (product_in<Space, LayoutRight>({}, A, B, options, alpha, beta, C))));
        GemmOptions blocks = options;
        blocks.max_workspace_bytes = GemmPlan<Space, Scalar>::workspace_bytes(16, 16, 128, options);
        if (GemmPlan<Space, Scalar>::can_run(m, n, k, blocks)) {
          EXPECT_TRUE(
              same_values(expected, (product_in<Space, LayoutLeft>({}, A, B, blocks, alpha, beta, C))));
        }
      }
      ++pattern;
    }
}

// ---- wrong arguments --------------------------------------------------------------------------------

/// The message of the std::invalid_argument that `call` throws.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TYPED_TEST(ScalarTest, SizesAndModuliAreChecked) {
  using Scalar = typename TypeParam::Scalar;
  using Plan = GemmPlan<typename TypeParam::Space, Scalar>;
  // A complex position is two products in a sum.
  const std::int64_t longest = std::int64_t{1} << (is_complex<Scalar> ? 9 : 10);
  EXPECT_TRUE(Plan::can_run(4, 4, longest, with_moduli(2)));
  EXPECT_FALSE(Plan::can_run(4, 4, longest + 1, with_moduli(2)));
  EXPECT_EQ("KokkosOzaki::GemmPlan::workspace_bytes: too few moduli for this k: num_moduli=2, k=" +
                std::to_string(longest + 1) + " needs at least 3.",
            refusal([&] { Plan::workspace_bytes(4, 4, longest + 1, with_moduli(2)); }));
  GemmOptions options;
  options.accuracy = Accuracy::normwise(1e-30);
  EXPECT_EQ(
      "KokkosOzaki::GemmPlan::workspace_bytes: the accuracy asked for (normwise, c=1e-30) needs more than 20 "
      "moduli for k=5.",
      refusal([&] { Plan::workspace_bytes(4, 4, 5, options); }));
  const int bits = is_complex<Scalar> ? 31 : 32;
  EXPECT_EQ("KokkosOzaki::GemmPlan::workspace_bytes: sizes are too large (k must be below 2^" +
                std::to_string(bits) + ", a matrix below 2^56 entries), got m=1, n=1, k=" +
                std::to_string(std::int64_t{1} << bits) + ".",
            refusal([&] { Plan::workspace_bytes(1, 1, std::int64_t{1} << bits); }));
}

TYPED_TEST(ScalarTest, OverlapIsMeasuredInTheOperandsOwnUnits) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using View = Kokkos::View<Scalar**, LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged>;
  std::vector<Scalar> memory(100, Scalar(1));
  const View A(memory.data(), 5, 5), B(memory.data() + 25, 5, 5), C(memory.data() + 50, 5, 5),
      D(memory.data() + 49, 5, 5);
  gemm(Space{}, "N", "N", Scalar(1), A, B, Scalar(0), C);
  Space{}.fence();
  EXPECT_TRUE(is_same(memory[50], Scalar(5)));
  EXPECT_EQ("KokkosOzaki::gemm: C must not overlap B (B 5x5, C 5x5).",
            refusal([&] { gemm(Space{}, "N", "N", Scalar(1), A, B, Scalar(0), D); }));
}

// ---- operands of two types --------------------------------------------------------------------------

template <class Case>
class MixedOperandsTest : public ::testing::Test {};
template <class Types>
struct WideCasesOf;
template <class... Spaces>
struct WideCasesOf<::testing::Types<Spaces...>> {
  using types = ::testing::Types<Case<Spaces, double>..., Case<Spaces, Kokkos::complex<double>>...>;
};
TYPED_TEST_SUITE(MixedOperandsTest, WideCasesOf<EnabledSpaces>::types, CaseNames);

template <class Scalar>
using NarrowOf = std::conditional_t<is_complex<Scalar>, Kokkos::complex<float>, float>;

TYPED_TEST(MixedOperandsTest, EqualTheirConvertedCopies) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Narrow = NarrowOf<Scalar>;
  const auto widen = [](const MatrixOf<Narrow>& x) {
    return mapped<Scalar>(x, [](const Narrow& z) { return make<Scalar>(part(z, 0), part(z, 1)); });
  };
  const std::int64_t m = 21, n = 40, k = 300;
  auto A = spread_of<Narrow>(m, k, 2.0, 401), B = spread_of<Narrow>(k, n, 2.0, 402);
  for (std::int64_t l = 0; l < k; ++l) {  // subnormal floats are ordinary numbers in double
    A(1, l) = make<Narrow>(std::ldexp(1.0 + static_cast<double>(l % 9), -149), std::ldexp(1.0, -147));
    B(l, 2) = make<Narrow>(std::ldexp(1.0, -149 + static_cast<int>(l % 60)));
  }
  A(2, 7) = make<Narrow>(1.0, infinity), B(9, 3) = make<Narrow>(quiet_nan), A(4, 5) = make<Narrow>(-infinity);
  const auto wide_a = spread_of<Scalar>(m, k, 2.0, 403), wide_b = spread_of<Scalar>(k, n, 2.0, 404),
             C = uniform_of<Scalar>(m, n, 405);
  const Scalar alpha = make<Scalar>(0.7, -0.2), beta = make<Scalar>(-1.5, 0.1);
  for (const Bound bound : both_bounds)
    for (const int s : {3, 6, 7, 8, 14, 17, 20})
      for (const char trans : {'N', 'T', 'C'}) {
        SCOPED_TRACE(std::string(name_of(bound)) + " s=" + std::to_string(s) + " " + trans);
        const GemmOptions options = with_moduli(s, bound);
        const auto check = [&](const auto& x, const auto& y, const auto& wide_x, const auto& wide_y) {
          const auto expected =
              product_in<Space, LayoutLeft>({}, wide_x, wide_y, options, alpha, beta, C, trans, trans);
          EXPECT_TRUE(same_values(
              expected, (product_in<Space, LayoutLeft>({}, x, y, options, alpha, beta, C, trans, trans))));
          EXPECT_TRUE(same_values(
              expected, (product_in<Space, LayoutRight>({}, x, y, options, alpha, beta, C, trans, trans))));
          EXPECT_TRUE(same_values(expected, (product_in<Space, LayoutStride>({1, 2, 3, true}, x, y, options,
                                                                             alpha, beta, C, trans, trans))));
        };
        check(A, wide_b, widen(A), wide_b);
        check(wide_a, B, wide_a, widen(B));
        check(A, B, widen(A), widen(B));
      }
}

TYPED_TEST(MixedOperandsTest, MustNotShareMemoryWithC) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Narrow = NarrowOf<Scalar>;
  std::vector<Scalar> memory(100, Scalar(1));
  const Kokkos::View<Narrow**, LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged> A(
      reinterpret_cast<Narrow*>(memory.data()), 5, 5);
  using View = Kokkos::View<Scalar**, LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged>;
  const View B(memory.data() + 25, 5, 5), C(memory.data() + 50, 5, 5), D(memory.data() + 5, 5, 4);
  gemm(Space{}, "N", "N", Scalar(1), A, B, Scalar(0), C);  // 25 narrow entries are less than 25 wide ones
  Space{}.fence();
  EXPECT_EQ("KokkosOzaki::gemm: C must not overlap A (A 5x5, C 5x4).", refusal([&] {
              gemm(Space{}, "N", "N", Scalar(1), A, Kokkos::subview(B, Kokkos::ALL, std::make_pair(0, 4)),
                   Scalar(0), D);
            }));
}

TYPED_TEST(MixedOperandsTest, NeedNoMoreWorkspace) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Narrow = NarrowOf<Scalar>;
  // The plan does not know the types of its operands: there is no room for a converted copy.
  GemmPlan<Space, Scalar> plan(Space{}, 'N', 'N', 9, 8, 70);
  const auto A = uniform_of<Narrow>(9, 70, 411);
  const auto B = uniform_of<Scalar>(70, 8, 412);
  const Operand<LayoutLeft, SharedSpace, Narrow> a(A);
  const Operand<LayoutLeft, SharedSpace, Scalar> b(B), c(MatrixOf<Scalar>(9, 8, poison_of<Scalar>()));
  plan.execute(Space{}, Scalar(1), a.view(), b.view(), Scalar(0), c.view());
  Space{}.fence();
  EXPECT_TRUE(same_bits((product_of<Space, Scalar>(A, B)), c.values()));
  EXPECT_EQ(plan.workspace_bytes(), (GemmPlan<Space, Scalar>::workspace_bytes(9, 8, 70)));
}

}  // namespace
}  // namespace KokkosOzaki::Testing
