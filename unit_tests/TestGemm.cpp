// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
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

template <class Space>
class GemmTest : public ::testing::Test {};
TYPED_TEST_SUITE(GemmTest, EnabledSpaces, SpaceNames);

// ---- the specification's vectors --------------------------------------------------------------------

/// A row of values for each row of the matrix, or for each column of the transposed one.
Matrix matrix_of_rows(const Rows<double>& rows, std::int64_t m, std::int64_t n) {
  Matrix a(m, n);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < n; ++j)
      a(i, j) = rows.at(static_cast<std::size_t>(i)).at(static_cast<std::size_t>(j));
  return a;
}

template <class Space, class Layout>
Matrix product_in(const Placement& placement, const Matrix& A, const Matrix& B, const GemmOptions& options,
                  double alpha, double beta, const Matrix& C, char transA, char transB) {
  const Operand<Layout> a(stored(A, transA), placement), b(stored(B, transB), placement), c(C, placement);
  const char letters[] = {transA, '\0', transB, '\0'};
  const Space exec{};
  gemm(exec, letters, letters + 2, alpha, a.view(), b.const_view(), beta, c.view(), options);
  exec.fence();
  EXPECT_TRUE(c.gaps_are_intact());
  return c.values();
}

TYPED_TEST(GemmTest, ReproducesTheVectors) {
  int used = 0;
  for (const GemmVector& item : f64_vectors()) {
    ++used;
    SCOPED_TRACE(item.name);
    const std::int64_t m = item.m, n = item.n, k = item.k;
    const Matrix A = matrix_of_rows(item.a, m, k), B = matrix_of_rows(item.b, n, k).transposed();
    const Matrix C = item.c_in.empty() ? Matrix(m, n, poison()) : matrix_of_rows(item.c_in, m, n);
    const Matrix expected = matrix_of_rows(item.c, m, n);
    const GemmOptions options =
        with_moduli(item.num_moduli, item.accurate ? Bound::accurate : Bound::fast,
                    item.toward_zero ? Rounding::toward_zero : Rounding::nearest_even);
    for (const char transA : {'N', 'T', 'C'})
      for (const char transB : {'N', 'T', 'C'}) {
        SCOPED_TRACE(std::string("trans ") + transA + transB);
        const auto check = [&](const Matrix& got) { EXPECT_TRUE(same_values(expected, got)); };
        check(product_in<TypeParam, LayoutLeft>({}, A, B, options, item.alpha, item.beta, C, transA, transB));
        check(product_in<TypeParam, LayoutRight>({1, 3, 1, false}, A, B, options, item.alpha, item.beta, C,
                                                 transA, transB));
        check(product_in<TypeParam, LayoutStride>({1, 1, 2, false}, A, B, options, item.alpha, item.beta, C,
                                                  transA, transB));
      }
  }
  EXPECT_GT(used, 300);
}

// ---- accuracy ---------------------------------------------------------------------------------------

/// These rows and columns of x.
Matrix part_of(const Matrix& x, const std::vector<std::int64_t>& rows,
               const std::vector<std::int64_t>& cols) {
  Matrix part(static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(cols.size()));
  for (std::int64_t j = 0; j < part.cols(); ++j)
    for (std::int64_t i = 0; i < part.rows(); ++i)
      part(i, j) = x(rows[static_cast<std::size_t>(i)], cols[static_cast<std::size_t>(j)]);
  return part;
}

std::vector<std::int64_t> all_below(std::int64_t size) {
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(size));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

/// One pair of operands with its exact product and everything that its error bounds are made of.
struct Problem {
  Problem(const Matrix& a, const Matrix& b) : Problem(a, b, all_below(a.rows()), all_below(b.cols())) {}

  /// The exact product of some rows of A and some columns of B only; what is compared is theirs.
  Problem(const Matrix& a, const Matrix& b, const std::vector<std::int64_t>& some_rows,
          const std::vector<std::int64_t>& some_cols)
      : A(a),
        B(b),
        rows(some_rows),
        cols(some_cols),
        reference(
            reference_gemm(part_of(a, rows, all_below(a.cols())), part_of(b, all_below(b.rows()), cols))),
        model(a, b) {}

  Exponents exponents(int num_moduli, Bound bound) const {
    Exponents all = model.exponents(num_moduli, bound);
    const auto some = [](std::vector<int>& x, const std::vector<std::int64_t>& numbers) {
      for (std::size_t v = 0; v < numbers.size(); ++v) x[v] = x[static_cast<std::size_t>(numbers[v])];
      x.resize(numbers.size());
    };
    some(all.alpha, rows), some(all.beta, cols);
    return all;
  }

  Matrix A, B;
  std::vector<std::int64_t> rows, cols;  // ascending
  ReferenceProduct reference;
  ExponentModel model;
};

/// Both bounds of ErrorBounds.hpp for one call; returns C.
template <class Space>
Matrix expect_within_bounds(const Problem& problem, const GemmOptions& options) {
  const ReferenceProduct& reference = problem.reference;
  const std::int64_t m = problem.A.rows(), n = problem.B.cols(), k = reference.k;
  GemmPlan<Space, double> plan(Space{}, 'N', 'N', m, n, k, options);
  const Operand<LayoutLeft> a(problem.A), b(problem.B), c(Matrix(m, n, poison()));
  plan.execute(Space{}, 1.0, a.view(), b.view(), 0.0, c.view());
  Space{}.fence();
  const Matrix whole = c.values(), C = part_of(whole, problem.rows, problem.cols);
  const GemmReport report = plan.report();
  const Exponents exponents = problem.exponents(report.num_moduli, options.bound);
  EXPECT_EQ(report.bound_used == Bound::accurate, exponents.candidates);
  EXPECT_TRUE(within(reference, C,
                     [&](std::int64_t i, std::int64_t j) {
                       return componentwise_bound(reference, exponents, options.rounding, i, j);
                     }))
      << "componentwise, s=" << report.num_moduli << " " << name_of(options.bound) << " k=" << k;
  EXPECT_TRUE(within(
      reference, C,
      [&](std::int64_t i, std::int64_t j) { return normwise_bound(reference, report.error_bound, i, j); }))
      << "normwise, s=" << report.num_moduli << " " << name_of(options.bound) << " k=" << k;
  return whole;
}

TYPED_TEST(GemmTest, StaysWithinTheBoundForEverySpreadAndNumberOfModuli) {
  struct Size {
    std::int64_t m, n, k;
  };
  for (const Size& size : {Size{7, 5, 1}, Size{5, 6, 130}, Size{9, 8, 1024}, Size{4, 3, 4097}})
    for (const double phi : {0.0, 0.5, 1.0, 2.0, 4.0}) {
      const auto seed = static_cast<std::uint64_t>(size.k + static_cast<std::int64_t>(10 * phi));
      SCOPED_TRACE("phi=" + std::to_string(phi) + " seed=" + std::to_string(seed));
      const Problem problem(spread(size.m, size.k, phi, seed), spread(size.k, size.n, phi, seed + 1));
      for (const Bound bound : both_bounds)
        for (int s = fewest_moduli(size.k); s <= 20; ++s)
          expect_within_bounds<TypeParam>(problem, with_moduli(s, bound));
    }
}

TYPED_TEST(GemmTest, StaysWithinTheBoundForLongInnerDimensions) {
  // 131008: the longest single block and the longest k of the accurate bound; 2^18: the longest k of 3
  // moduli.
  for (const std::int64_t k : {std::int64_t{131008}, std::int64_t{1} << 18}) {
    int s = fewest_moduli(k);
    for (const double phi : {0.0, 0.5, 1.0, 2.0, 4.0}) {
      const auto seed = static_cast<std::uint64_t>(k + static_cast<std::int64_t>(10 * phi));
      SCOPED_TRACE("phi=" + std::to_string(phi) + " seed=" + std::to_string(seed));
      const Problem problem(spread(2, k, phi, seed), spread(k, 2, phi, seed + 1));
      for (int turn = 0; turn < 4 && s <= 20; ++turn, ++s)
        expect_within_bounds<TypeParam>(problem, with_moduli(s, Bound::accurate));
      expect_within_bounds<TypeParam>(problem, with_moduli(14, Bound::fast));
    }
    EXPECT_EQ(s, 21);
  }
}

TYPED_TEST(GemmTest, StaysWithinTheBoundWithTruncation) {
  for (const double phi : {0.0, 1.0, 4.0}) {
    const std::int64_t k = 700;
    const Problem problem(spread(6, k, phi, 31), spread(k, 7, phi, 32));
    for (const Bound bound : both_bounds)
      for (int s = fewest_moduli(k); s <= 20; ++s)
        expect_within_bounds<TypeParam>(problem, with_moduli(s, bound, Rounding::toward_zero));
  }
}

TYPED_TEST(GemmTest, StaysWithinTheBoundWhereTheAccurateBoundIsTaken) {
  // Column l of A is large where row l of B is small, so that the norms say nothing about the product.
  const std::int64_t m = 12, n = 10, k = 64;
  Matrix A = uniform(m, k, -1, 1, 41), B = uniform(k, n, -1, 1, 42);
  for (std::int64_t l = 0; l < k; ++l) {
    for (std::int64_t i = 0; i < m; ++i) A(i, l) *= l < k / 2 ? 0x1p+9 : 0x1p-9;
    for (std::int64_t j = 0; j < n; ++j) B(l, j) *= l < k / 2 ? 0x1p-9 : 0x1p+9;
  }
  const Problem problem(A, B);
  for (int s = 5; s <= 20; ++s) {
    EXPECT_TRUE(problem.model.exponents(s, Bound::accurate).candidates) << s;
    const Matrix accurate = expect_within_bounds<TypeParam>(problem, with_moduli(s, Bound::accurate));
    if (s > 15) continue;
    const Matrix fast = expect_within_bounds<TypeParam>(problem, with_moduli(s, Bound::fast));
    EXPECT_LT(normwise_error(problem.reference, accurate), normwise_error(problem.reference, fast)) << s;
  }
}

TYPED_TEST(GemmTest, MeetsTheMeasuredLevels) {
  // Largest |C - AB| / (|A||B|) in units of u as measured once for m = n = 24, k = 1024 (docs/accuracy.md).
  // The errors of single entries are random, so their maximum differs from one set of data to the next.
  constexpr double other_data = 4.0;
  struct Row {
    double phi;
    bool positive;
    std::vector<std::pair<int, double>> levels;  // moduli, level
  };
  const std::vector<Row> rows = {
      {0.0, false, {{12, 189}, {13, 14.2}, {14, 0.73}}},
      {0.5, false, {{12, 180}, {13, 11.8}, {14, 0.93}}},
      {1.0, false, {{12, 546}, {13, 38}, {14, 2.4}}},
      {2.0, false, {{13, 1.4e3}, {14, 51}, {15, 5.5}, {16, 0.67}}},
      {4.0, false, {{14, 2.5e5}, {15, 8.6e3}, {16, 750}, {17, 47}, {18, 4.8}}},
      {0.0, true, {{12, 224}, {13, 11.5}, {14, 1.4}, {15, 0.98}}},
      {1.0, true, {{12, 429}, {13, 32}, {14, 2.1}, {15, 0.89}}},
  };
  for (const Row& row : rows) {
    Matrix A = spread(24, 1024, row.phi, 7), B = spread(1024, 24, row.phi, 8);
    if (row.positive)
      for (std::int64_t l = 0; l < 1024; ++l)
        for (std::int64_t i = 0; i < 24; ++i) A(i, l) = std::fabs(A(i, l)), B(l, i) = std::fabs(B(l, i));
    const ReferenceProduct reference = reference_gemm(A, B);
    for (const auto& [s, level] : row.levels)
      EXPECT_LE(componentwise_error(reference, product<TypeParam>(A, B, with_moduli(s))), other_data * level)
          << "phi=" << row.phi << " positive=" << row.positive << " s=" << s;
  }
}

TYPED_TEST(GemmTest, ErrorFallsWithEveryModulusDownToTheFinalRounding) {
  for (const Bound bound : both_bounds) {
    const Matrix A = uniform(10, 4096, -1, 1, 51), B = uniform(4096, 10, -1, 1, 52);
    const ReferenceProduct reference = reference_gemm(A, B);
    const Matrix rounded = reference.rounded();
    const double final_rounding = normwise_error(reference, rounded);
    double previous = std::numeric_limits<double>::infinity();
    for (int s = fewest_moduli(4096); s <= 20; ++s) {
      const Matrix C = product<TypeParam>(A, B, with_moduli(s, bound));
      const double error = normwise_error(reference, C);
      // a modulus buys 3.7 to 4 bits in each side's unit; whole exponents can take one of them away
      EXPECT_LE(error, std::max(previous / 4, 2 * final_rounding)) << "s=" << s << " " << name_of(bound);
      if (s >= 18) {
        EXPECT_LE(error, final_rounding * (1 + 0x1p-6)) << "s=" << s << " " << name_of(bound);
      }
      previous = error;
    }
    EXPECT_TRUE(same_bits(rounded, product<TypeParam>(A, B, with_moduli(20, bound))));
  }
}

TYPED_TEST(GemmTest, PositiveDataNearTheRangeLimitNeverChangesSign) {
  // ||a_i|| ||b_j|| is hardly larger than the product: X comes close to M/2, where one step further would
  // flip its sign.
  for (const std::int64_t k : {4096, 1024}) {
    const Problem problem(uniform(40, k, 0.9, 1.0, 61), uniform(k, 33, 0.9, 1.0, 62));
    for (const Bound bound : both_bounds)
      for (int s = fewest_moduli(k); s <= 20; ++s)
        expect_within_bounds<TypeParam>(problem, with_moduli(s, bound));
  }
}

TYPED_TEST(GemmTest, LargerPositiveProductsNearTheRangeLimitNeverChangeSign) {
  const std::int64_t m = 128, n = 128, k = 4096;
  const std::vector<std::int64_t> some = {0, 1, 15, 16, 63, 64, 100, 127};
  const Problem problem(uniform(m, k, 0.9, 1.0, 63), uniform(k, n, 0.9, 1.0, 64), some, some);
  for (const Bound bound : both_bounds)
    for (const int s : {3, 4, 6, 9, 14, 17, 20}) {
      const Matrix C = expect_within_bounds<TypeParam>(problem, with_moduli(s, bound));
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i)
          ASSERT_TRUE(C(i, j) > 0.9 * 0.9 * k / 2 && C(i, j) < 2.0 * k)
              << C(i, j) << " at (" << i << "," << j << ") s=" << s << " " << name_of(bound);
    }
}

TYPED_TEST(GemmTest, ProductsOfIntegersAreExact) {
  for (const std::int64_t k : {1, 3, 64, 129, 1000, 4096})
    for (int s = fewest_moduli(k); s <= 20; ++s)
      for (const Bound bound : both_bounds) {
        // max^2 k <= H / 16 leaves every exponent at 0 or more: nothing is rounded before the end
        const mpz_class room = Detail::range_budget(s) / 64 / k;
        const mpz_class root = sqrt(room);
        if (root == 0) continue;
        const std::int64_t largest = root > 0x7FFFFFFF ? 0x7FFFFFFF : root.get_si();
        const Matrix A = integers(5, k, largest, 71), B = integers(k, 4, largest, 72);
        const Exponents exponents = ExponentModel(A, B).exponents(s, bound);
        ASSERT_GE(*std::min_element(exponents.alpha.begin(), exponents.alpha.end()), 0) << s << " " << k;
        ASSERT_GE(*std::min_element(exponents.beta.begin(), exponents.beta.end()), 0) << s << " " << k;
        EXPECT_TRUE(
            same_bits(reference_gemm(A, B).rounded(), product<TypeParam>(A, B, with_moduli(s, bound))))
            << "s=" << s << " k=" << k << " " << name_of(bound);
      }
}

// ---- sizes ------------------------------------------------------------------------------------------

TYPED_TEST(GemmTest, TallAndSkinnyShapesAreExact) {
  for (const auto& [m, n, k] :
       {std::array<std::int64_t, 3>{1, 1, 20011}, {2, 3, 50000}, {3001, 1, 2}, {1, 2999, 1}, {1009, 3, 65}})
    EXPECT_TRUE(same_bits(reference_gemm(integers(m, k, 500, 83), integers(k, n, 500, 84)).rounded(),
                          product<TypeParam>(integers(m, k, 500, 83), integers(k, n, 500, 84))))
        << m << "x" << n << "x" << k;
}

/// The product of matrices whose rows, or columns, consist of one of these numbers each.
ReferenceProduct reference_of_constants(std::int64_t k, const std::vector<double>& constants) {
  ReferenceProduct reference;
  reference.m = reference.n = static_cast<std::int64_t>(constants.size()), reference.k = k;
  const auto times_k = [k](const mpz_class& x, int exponent) {
    return ExactNumber{mpz_class(x * static_cast<long>(k)), exponent};
  };
  for (const double y : constants) {
    std::int64_t u, v;
    int e, f;
    decompose(y, v, f);
    for (const double x : constants) {
      decompose(x, u, e);
      const mpz_class product = mpz_class(static_cast<long>(u)) * static_cast<long>(v);
      reference.exact.push_back(times_k(product, e + f));
      reference.magnitude.push_back(to_real(reference.exact.back()));
    }
    const mpz_class square = mpz_class(static_cast<long>(v)) * static_cast<long>(v);
    reference.row_norm.emplace_back(sqrt(to_real(times_k(square, 2 * f))) * (1 + power_of_two(-100)),
                                    real_bits);
    reference.row_abs_sum.push_back(to_real(times_k(mpz_class(static_cast<long>(v)), f)));
  }
  reference.col_norm = reference.row_norm, reference.col_abs_sum = reference.row_abs_sum;
  return reference;
}

/// Equal entries: all residues along k are equal, so the INT32 sums grow as fast as they can.
template <class Space>
void expect_products_of_constants(std::int64_t k, const std::vector<int>& numbers_of_moduli) {
  const ExponentModel ones(Matrix(1, k, 1.0), Matrix(k, 1, 1.0));
  for (const int s : numbers_of_moduli) {
    SCOPED_TRACE("k=" + std::to_string(k) + " s=" + std::to_string(s));
    std::vector<double> constants = {1.0, 1.0 / 3.0, 127.0};
    // 1 becomes 2^alpha. A little more than that has the residue 126 modulo 253: the largest sums that there
    // are, but for those of the modulus 256, to which a lost 2^32 is nothing.
    const int alpha = ones.exponents(s, Bound::fast).alpha[0], last = std::min(alpha, 52);
    if (alpha >= 10) {
      mpz_class scaled_number = mpz_class(1) << static_cast<mp_bitcnt_t>(alpha);
      int more = 0;
      for (; scaled_number % 253 != 126; ++more)
        scaled_number += mpz_class(1) << static_cast<mp_bitcnt_t>(alpha - last);
      constants.push_back(1 + std::ldexp(more, -last));
    }
    const auto size = static_cast<std::int64_t>(constants.size());
    Matrix A(size, k);
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t i = 0; i < size; ++i) A(i, l) = constants[static_cast<std::size_t>(i)];
    const ReferenceProduct reference = reference_of_constants(k, constants);

    GemmPlan<Space, double> plan(Space{}, 'N', 'N', size, size, k, with_moduli(s));
    const Operand<LayoutLeft> a(A), b(A.transposed()), c(Matrix(size, size, poison()));
    plan.execute(Space{}, 1.0, a.view(), b.view(), 0.0, c.view());
    Space{}.fence();
    const Matrix C = c.values();
    EXPECT_TRUE(same_bits(C.transposed(), C));
    const double bound = plan.report().error_bound;
    EXPECT_TRUE(within(reference, C, [&](std::int64_t i, std::int64_t j) {
      return normwise_bound(reference, bound, i, j);
    }));
    if (s >= 17) {
      EXPECT_TRUE(same_bits(reference.rounded(), C));
    }
  }
}

TYPED_TEST(GemmTest, LongInnerDimensionsDoNotOverflowTheEngine) {
  const std::int64_t k = 133145;
  std::vector<int> all;
  for (int s = fewest_moduli(k); s <= 20; ++s) all.push_back(s);
  expect_products_of_constants<TypeParam>(k, all);
}

TYPED_TEST(GemmTest, LongerInnerDimensionsDoNotOverflowTheEngine) {
  for (const std::int64_t k : {131007, 131008, 131009, 131071})
    expect_products_of_constants<TypeParam>(k, {17});
  expect_products_of_constants<TypeParam>(131072, {3, 8, 17, 20});
  expect_products_of_constants<TypeParam>(300000, {4, 11, 17, 20});
}

TYPED_TEST(GemmTest, AMillionPositionsDoNotOverflowTheEngine) {
  expect_products_of_constants<TypeParam>(1 << 20, {4, 17, 20});
}

// ---- BLAS semantics ---------------------------------------------------------------------------------

TYPED_TEST(GemmTest, BetaZeroNeverReadsC) {
  const Matrix A = uniform(64, 64, -1, 1, 91), B = uniform(64, 64, -1, 1, 92);
  for (const double alpha : {1.0, -1.0, 2.5, 0.0})
    for (const double beta : {0.0, -0.0}) {
      const Matrix expected = product<TypeParam>(A, B, {}, alpha, beta, Matrix(64, 64, 0.0));
      for (const double junk : {quiet_nan, infinity, -infinity, poison(), 1e300})
        EXPECT_TRUE(same_bits(expected, product<TypeParam>(A, B, {}, alpha, beta, Matrix(64, 64, junk))))
            << "alpha=" << alpha << " C=" << junk;
      for (std::int64_t j = 0; j < 64; ++j)
        for (std::int64_t i = 0; i < 64; ++i) ASSERT_TRUE(std::isfinite(expected(i, j)));
    }
}

TYPED_TEST(GemmTest, AlphaAndBetaAreAppliedWithOneRoundingEach) {
  const Matrix A = spread(13, 37, 1.0, 93), B = spread(37, 11, 1.0, 94);
  Matrix C = spread(13, 11, 2.0, 95);
  C(0, 0) = -0.0, C(1, 0) = infinity, C(2, 0) = quiet_nan, C(3, 0) = 0x1p-1074,
       C(4, 0) = -0x1.fffffffffffffp+1023;
  const Matrix t = product<TypeParam>(A, B);
  for (const double alpha : {1.0, -1.0, 2.5, 0.3, 0x1p-1060, 1e300})
    for (const double beta : {0.0, 1.0, -1.0, 0.5, -1.7, 0.1, 1e300, infinity, quiet_nan}) {
      Matrix expected(13, 11);
      for (std::int64_t j = 0; j < 11; ++j)
        for (std::int64_t i = 0; i < 13; ++i) {
          const double scaled_c = beta * C(i, j);
          expected(i, j) = beta == 0 ? alpha * t(i, j) : std::fma(alpha, t(i, j), scaled_c);
        }
      EXPECT_TRUE(same_values(expected, product<TypeParam>(A, B, {}, alpha, beta, C)))
          << "alpha=" << alpha << " beta=" << beta;
    }
}

TYPED_TEST(GemmTest, AlphaZeroOrEmptyInnerDimensionOnlyAppliesBeta) {
  Matrix C = uniform(9, 5, -2, 2, 96);
  C(0, 0) = -0.0, C(1, 0) = poison(), C(2, 0) = -infinity, C(3, 0) = 0x1p-1074,
       C(4, 1) = double_of(0xFFF8'0000'0000'0001ULL);
  for (const double beta : {1.0, 0.0, -0.0, 2.0, -1.0, 0.3}) {
    SCOPED_TRACE("beta=" + std::to_string(beta));
    Matrix expected(9, 5);
    for (std::int64_t j = 0; j < 5; ++j)
      for (std::int64_t i = 0; i < 9; ++i)
        expected(i, j) = beta == 0 ? 0.0 : beta == 1 ? C(i, j) : beta * C(i, j);
    const auto check = [&](const Matrix& got) {
      if (beta == 1)
        EXPECT_TRUE(same_bits(expected, got));  // the NaNs as well
      else
        EXPECT_TRUE(same_values(expected, got));
    };
    for (const double alpha : {0.0, -0.0})
      check(product<TypeParam>(Matrix(9, 4, quiet_nan), Matrix(4, 5, infinity), {}, alpha, beta, C));
    check(product<TypeParam>(Matrix(9, 4096, quiet_nan), Matrix(4096, 5, quiet_nan), with_moduli(2), 0.0,
                             beta, C));
    for (const double alpha : {1.0, 0.0, quiet_nan}) {
      check(product<TypeParam>(Matrix(9, 0), Matrix(0, 5), {}, alpha, beta, C));
      check(product<TypeParam>(Matrix(9, 0), Matrix(0, 5), {}, alpha, beta, C, 'T', 'T'));
    }
    using Unallocated = Kokkos::View<const double**, LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged>;
    const Operand<LayoutRight> c(C);
    gemm(TypeParam{}, "N", "N", 0.0, Unallocated(nullptr, 9, 4), Unallocated(nullptr, 4, 5), beta, c.view());
    TypeParam{}.fence();
    check(c.values());
    const Operand<LayoutLeft> d(C);
    gemm(TypeParam{}, "T", "N", 1.0, Unallocated(nullptr, 0, 9), Unallocated(nullptr, 0, 5), beta, d.view());
    TypeParam{}.fence();
    check(d.values());
  }
}

TYPED_TEST(GemmTest, EmptyResultsAreLeftAlone) {
  for (const auto& [m, n] : {std::pair<std::int64_t, std::int64_t>{0, 7}, {7, 0}, {0, 0}})
    for (const std::int64_t k : {0, 1, 5}) {
      const Operand<LayoutLeft> a(Matrix(m, k, quiet_nan), {2, 3, 1, false}), b(Matrix(k, n, quiet_nan)),
          c(Matrix(m, n), {2, 3, 1, false});
      gemm(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.0, c.view());
      TypeParam{}.fence();
      EXPECT_TRUE(c.gaps_are_intact()) << m << "x" << n << "x" << k;
    }
}

TYPED_TEST(GemmTest, TakesTheLettersOfBlasInBothCases) {
  const Matrix A = uniform(6, 9, -1, 1, 97), B = uniform(9, 4, -1, 1, 98);
  const Matrix expected = product<TypeParam>(A, B);
  for (const char transA : {'n', 't', 'c', 'T', 'C'})
    for (const char transB : {'n', 't', 'c', 'T', 'C'}) {
      const Operand<LayoutLeft> a(transA == 'n' ? A : A.transposed()), b(transB == 'n' ? B : B.transposed()),
          c(Matrix(6, 4, poison()));
      const char letters[] = {transA, '\0', transB, '\0'};
      gemm(TypeParam{}, letters, letters + 2, 1.0, a.view(), b.view(), 0.0, c.view());
      TypeParam{}.fence();
      EXPECT_TRUE(same_bits(expected, c.values())) << transA << transB;
    }
}

TYPED_TEST(GemmTest, WorksWithoutAnInstance) {
  using View = Kokkos::View<double**, LayoutLeft, Shared<TypeParam>>;
  const Matrix A = uniform(6, 9, -1, 1, 97), B = uniform(9, 4, -1, 1, 98), C = uniform(6, 4, -1, 1, 99);
  const View a("a", 6, 9), b("b", 9, 4), c("c", 6, 4);
  for (std::int64_t l = 0; l < 9; ++l) {
    for (std::int64_t i = 0; i < 6; ++i) a(i, l) = A(i, l);
    for (std::int64_t j = 0; j < 4; ++j) b(l, j) = B(l, j);
  }
  const auto check = [&](const Matrix& expected) {
    TypeParam{}.fence();
    for (std::int64_t j = 0; j < 4; ++j)
      for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(bits_of(expected(i, j)), bits_of(c(i, j)));
  };
  gemm("N", "N", 1.0, a, b, 0.0, c);
  check(product<TypeParam>(A, B));
  for (std::int64_t j = 0; j < 4; ++j)
    for (std::int64_t i = 0; i < 6; ++i) c(i, j) = C(i, j);
  gemm("N", "N", -1.5, a, b, 0.25, c, with_moduli(9));
  check(product<TypeParam>(A, B, with_moduli(9), -1.5, 0.25, C));
}

TYPED_TEST(GemmTest, PanelsOfOneAllocationMayBeOperands) {
  // The trailing update of an LU factorisation: A22 -= A21 A12, all three in one matrix.
  const std::int64_t order = 53, panel = 17;
  const auto head = std::make_pair(std::int64_t{0}, panel), tail = std::make_pair(panel, order);
  const Matrix M = uniform(order, order, -1, 1, 101);
  Matrix A21(order - panel, panel), A12(panel, order - panel), A22(order - panel, order - panel);
  for (std::int64_t i = panel; i < order; ++i)
    for (std::int64_t j = 0; j < panel; ++j) A21(i - panel, j) = M(i, j), A12(j, i - panel) = M(j, i);
  for (std::int64_t i = panel; i < order; ++i)
    for (std::int64_t j = panel; j < order; ++j) A22(i - panel, j - panel) = M(i, j);
  const Matrix updated = product<TypeParam>(A21, A12, {}, -1.0, 1.0, A22);
  Matrix expected = M;
  for (std::int64_t i = panel; i < order; ++i)
    for (std::int64_t j = panel; j < order; ++j) expected(i, j) = updated(i - panel, j - panel);

  const auto update = [&](const auto& memory) {
    const auto view = memory.view();
    const auto a21 = Kokkos::subview(view, tail, head), a12 = Kokkos::subview(view, head, tail),
               a22 = Kokkos::subview(view, tail, tail);
    gemm(TypeParam{}, "N", "N", -1.0, a21, a12, 1.0, a22);
    TypeParam{}.fence();
    EXPECT_TRUE(same_bits(expected, memory.values()));
    EXPECT_TRUE(memory.gaps_are_intact());
  };
  update(Operand<LayoutLeft>(M));
  update(Operand<LayoutLeft>(M, {1, 2, 1, false}));
  update(Operand<LayoutRight>(M));
  update(Operand<LayoutStride>(M, {1, 1, 2, false}));
  update(Operand<LayoutStride>(M, {0, 0, 3, true}));
}

TYPED_TEST(GemmTest, RowsAndColumnsOfOneMatrixMayBeOperands) {
  const Matrix M = uniform(8, 8, -1, 1, 102);
  const auto part = [&](std::int64_t i0, std::int64_t rows, std::int64_t j0, std::int64_t cols) {
    Matrix x(rows, cols);
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < rows; ++i) x(i, j) = M(i0 + i, j0 + j);
    return x;
  };
  const auto range = [](std::int64_t first, std::int64_t count) {
    return std::make_pair(first, first + count);
  };
  {  // row 6 from row 0 and rows 1 .. 4 of a column-major matrix: interleaved in memory
    const Operand<LayoutLeft> memory(M);
    const auto x = memory.view();
    gemm(TypeParam{}, "N", "N", 1.0, Kokkos::subview(x, range(0, 1), range(0, 4)),
         Kokkos::subview(x, range(1, 4), range(0, 8)), 0.0, Kokkos::subview(x, range(6, 1), range(0, 8)));
    TypeParam{}.fence();
    const Matrix row = product<TypeParam>(part(0, 1, 0, 4), part(1, 4, 0, 8));
    Matrix expected = M;
    for (std::int64_t j = 0; j < 8; ++j) expected(6, j) = row(0, j);
    EXPECT_TRUE(same_bits(expected, memory.values()));
  }
  {  // a corner of columns 6 and 7 from columns 0 .. 1 and 2 .. 3 of a row-major one
    const Operand<LayoutRight> memory(M);
    const auto x = memory.view();
    gemm(TypeParam{}, "T", "N", 1.0, Kokkos::subview(x, range(0, 8), range(0, 2)),
         Kokkos::subview(x, range(0, 8), range(2, 2)), 0.0, Kokkos::subview(x, range(0, 2), range(6, 2)));
    TypeParam{}.fence();
    const Matrix corner = product<TypeParam>(part(0, 8, 0, 2).transposed(), part(0, 8, 2, 2));
    Matrix expected = M;
    for (std::int64_t j = 0; j < 2; ++j)
      for (std::int64_t i = 0; i < 2; ++i) expected(i, j + 6) = corner(i, j);
    EXPECT_TRUE(same_bits(expected, memory.values()));
  }
}

TYPED_TEST(GemmTest, OneMatrixMayBeBothOperands) {
  const Matrix M = uniform(21, 13, -1, 1, 103);
  const Operand<LayoutLeft> x(M), c(Matrix(13, 13, poison()));
  gemm(TypeParam{}, "T", "N", 1.0, x.view(), x.view(), 0.0, c.view());
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(product<TypeParam>(M.transposed(), M), c.values()));
  EXPECT_TRUE(same_bits(c.values().transposed(), c.values())) << "X'X must be symmetric";
}

// ---- the range of double ----------------------------------------------------------------------------

TYPED_TEST(GemmTest, ZeroRowsAndColumnsGiveZeros) {
  Matrix A = uniform(6, 300, -1, 1, 111), B = uniform(300, 5, -1, 1, 112);
  for (std::int64_t l = 0; l < 300; ++l) A(2, l) = l % 2 == 0 ? 0.0 : -0.0, B(l, 0) = 0.0, B(l, 4) = -0.0;
  const Problem problem(A, B);
  for (const Bound bound : both_bounds)
    for (const int s : {2, 9, 14, 17, 20}) {
      const Matrix C = expect_within_bounds<TypeParam>(problem, with_moduli(s, bound));
      for (std::int64_t j = 0; j < 5; ++j) EXPECT_EQ(bits_of(0.0), bits_of(C(2, j)));
      for (std::int64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(bits_of(0.0), bits_of(C(i, 0)));
        EXPECT_EQ(bits_of(0.0), bits_of(C(i, 4)));
      }
    }
  for (const Bound bound : both_bounds)
    EXPECT_TRUE(same_bits(Matrix(3, 4, 0.0),
                          product<TypeParam>(Matrix(3, 9, -0.0), Matrix(9, 4, 0.0), with_moduli(14, bound))));
}

TYPED_TEST(GemmTest, SubnormalNumbersAreNumbers) {
  // 2^-1074 + 2^-1070
  Matrix A(1, 2), B(2, 1, 1.0);
  A(0, 0) = 0x1p-1074, A(0, 1) = 0x1p-1070;
  for (const Bound bound : both_bounds)
    for (int s = 4; s <= 20; ++s)
      EXPECT_EQ(17 * 0x1p-1074, product<TypeParam>(A, B, with_moduli(s, bound))(0, 0)) << s << name_of(bound);

  // subnormal integers times huge ones, in both orders
  Matrix P = generate(9, 40, 121, [](Random& r) { return static_cast<double>(r.integer(1, 100)); });
  Matrix Q = generate(40, 7, 122, [](Random& r) { return static_cast<double>(r.integer(1, 100)); });
  const Matrix expected = scaled(reference_gemm(P, Q).rounded(), -60);
  for (const Bound bound : both_bounds)
    for (const int s : {6, 14, 18}) {
      EXPECT_TRUE(
          same_bits(expected, product<TypeParam>(scaled(P, -1060), scaled(Q, 1000), with_moduli(s, bound))));
      EXPECT_TRUE(
          same_bits(expected, product<TypeParam>(scaled(P, 1000), scaled(Q, -1060), with_moduli(s, bound))));
    }

  // results in the subnormal range are rounded once
  const Matrix S = any_exponent(12, 9, -540, -535, 123), T = any_exponent(9, 10, -540, -535, 124);
  EXPECT_TRUE(same_bits(reference_gemm(S, T).rounded(), product<TypeParam>(S, T, with_moduli(20))));
  const Matrix V = any_exponent(30, 1, -540, -530, 125), W = any_exponent(1, 30, -540, -530, 126);
  EXPECT_TRUE(same_bits(reference_gemm(V, W).rounded(), product<TypeParam>(V, W, with_moduli(20))));
}

TYPED_TEST(GemmTest, AllFiniteDoublesAreWithinTheBound) {
  // Exponents over the whole range in one row: 2^1023 beside 2^-1074. Most products overflow or vanish.
  for (const auto& [low, high] :
       {std::pair<int, int>{-1080, 1022}, {-1074, -1000}, {900, 1022}, {-600, 500}, {-30, 30}}) {
    SCOPED_TRACE(std::to_string(low) + ".." + std::to_string(high));
    const Matrix A = any_exponent(7, 70, low, high, 131), B = any_exponent(70, 6, -1080, 500, 132);
    const Problem problem(A, B);
    for (const Bound bound : both_bounds)
      for (const int s : {2, 8, 14, 16, 17, 20})
        expect_within_bounds<TypeParam>(problem, with_moduli(s, bound));
  }
}

TYPED_TEST(GemmTest, NormsOutsideTheRangeDoNotMatter) {
  // Scales whose squares overflow or underflow; products of ordinary size, near 1e-300, and with the extremes
  // swapped.
  const Matrix A = uniform(16, 200, 0.5, 1, 141), B = uniform(200, 16, 0.5, 1, 142);
  const auto times = [](const Matrix& x, double factor) {
    Matrix y = x;
    for (std::int64_t j = 0; j < x.cols(); ++j)
      for (std::int64_t i = 0; i < x.rows(); ++i) y(i, j) = x(i, j) * factor;
    return y;
  };
  for (const auto& [fa, fb] : {std::pair<double, double>{1e160, 1e-160},
                               {1e-150, 1e-150},
                               {1e-170, 1e170},
                               {1e150, 1e150},
                               {1e-155, 1e-160}}) {
    SCOPED_TRACE(std::to_string(std::log10(fa)) + " " + std::to_string(std::log10(fb)));
    const Matrix X = times(A, fa), Y = times(B, fb);
    const Problem problem(X, Y);
    const Matrix C = expect_within_bounds<TypeParam>(problem, {});
    for (std::int64_t j = 0; j < 16; ++j)
      for (std::int64_t i = 0; i < 16; ++i) ASSERT_TRUE(std::isfinite(C(i, j)) && C(i, j) > 0);
    if (fa * fb > 1e-305) {
      EXPECT_LT(componentwise_error(problem.reference, C), 204.0);  // (k + 4) u
    }
  }
}

TYPED_TEST(GemmTest, PowersOfTwoScaleTheResultExactly) {
  const Matrix A = uniform(32, 1024, 0, 1, 151), B = uniform(1024, 32, 0, 1, 152);
  for (const Bound bound : both_bounds)
    for (const int s : {3, 8, 14, 15, 17, 20}) {
      SCOPED_TRACE("s=" + std::to_string(s) + " " + name_of(bound));
      const GemmOptions options = with_moduli(s, bound);
      const Matrix C = product<TypeParam>(A, B, options);
      for (const int e : {-5, -20, -300, 20, 300})
        EXPECT_TRUE(same_bits(scaled(C, 2 * e), product<TypeParam>(scaled(A, e), scaled(B, e), options)))
            << e;
      EXPECT_TRUE(same_bits(scaled(C, 3), product<TypeParam>(scaled(A, -900), scaled(B, 903), options)));
    }
  // every row and every column by a power of its own
  const Matrix X = spread(11, 130, 1.0, 153), Y = spread(130, 12, 1.0, 154);
  Matrix X2 = X, Y2 = Y;
  for (std::int64_t l = 0; l < 130; ++l) {
    for (std::int64_t i = 0; i < 11; ++i) X2(i, l) = std::ldexp(X(i, l), static_cast<int>(37 * i - 200));
    for (std::int64_t j = 0; j < 12; ++j) Y2(l, j) = std::ldexp(Y(l, j), static_cast<int>(150 - 29 * j));
  }
  for (const Bound bound : both_bounds)
    for (const int s : {5, 14, 18}) {
      Matrix expected = product<TypeParam>(X, Y, with_moduli(s, bound));
      for (std::int64_t j = 0; j < 12; ++j)
        for (std::int64_t i = 0; i < 11; ++i)
          expected(i, j) = std::ldexp(expected(i, j), static_cast<int>(37 * i - 200 + 150 - 29 * j));
      EXPECT_TRUE(same_bits(expected, product<TypeParam>(X2, Y2, with_moduli(s, bound))))
          << s << " " << name_of(bound);
    }
}

TYPED_TEST(GemmTest, OverflowIsInfBeforeAlpha) {
  const Matrix A(3, 4, 1e200), B(4, 2, 1e200), minus(4, 2, -1e200);
  for (const Bound bound : both_bounds)
    for (const int s : {2, 14, 20}) {
      EXPECT_TRUE(same_bits(Matrix(3, 2, infinity), product<TypeParam>(A, B, with_moduli(s, bound))));
      EXPECT_TRUE(same_bits(Matrix(3, 2, -infinity), product<TypeParam>(A, minus, with_moduli(s, bound))));
      EXPECT_TRUE(same_bits(Matrix(3, 2, infinity), product<TypeParam>(A, B, with_moduli(s, bound), 1e-300)));
      EXPECT_TRUE(same_bits(Matrix(3, 2, infinity), product<TypeParam>(A, minus, with_moduli(s, bound),
                                                                       -1e-300, 1.0, Matrix(3, 2, 5.0))));
    }
  // Terms that overflow and cancel do not: the exact sum decides.
  Matrix X(1, 3), Y(3, 1);
  X(0, 0) = 0x1p+1000, X(0, 1) = -0x1p+1000, X(0, 2) = 0x1p+1000;
  Y(0, 0) = 0x1p+1000, Y(1, 0) = 0x1p+1000, Y(2, 0) = 0x1p+23;
  EXPECT_EQ(product<TypeParam>(X, Y, with_moduli(20))(0, 0), 0.0);  // 2^23 is below the unit of the column
  Y(2, 0) = 0x1p+1000;
  EXPECT_EQ(product<TypeParam>(X, Y)(0, 0), infinity);
  Y(0, 0) = Y(1, 0) = 0x1p+30, Y(2, 0) = 0x1p+23;
  EXPECT_EQ(product<TypeParam>(X, Y)(0, 0), 0x1p+1023);
  Matrix edge(1, 1, 0x1.fffffffffffffp+1023);
  EXPECT_EQ(product<TypeParam>(edge, Matrix(1, 1, 1.0), with_moduli(20))(0, 0), 0x1.fffffffffffffp+1023);
  EXPECT_EQ(product<TypeParam>(edge, Matrix(1, 1, -0x1p-1074), with_moduli(20))(0, 0),
            -0x1.fffffffffffffp-51);
  EXPECT_EQ(bits_of(product<TypeParam>(Matrix(1, 1, -0x1p-600), Matrix(1, 1, 0x1p-600))(0, 0)), bits_of(-0.0))
      << "underflow keeps the sign";
}

// ---- Inf and NaN ------------------------------------------------------------------------------------

bool has_nonfinite(const Matrix& x, bool row, std::int64_t v) {
  for (std::int64_t l = 0; l < (row ? x.cols() : x.rows()); ++l)
    if (!std::isfinite(row ? x(v, l) : x(l, v))) return true;
  return false;
}

/// Flagged entries against the sum of their non-finite terms, all others against the run with flagged vectors
/// zeroed.
template <class Space>
void expect_native_nonfinite(const Matrix& A, const Matrix& B, const GemmOptions& options, double alpha,
                             double beta, const Matrix& C) {
  Matrix A0 = A, B0 = B;
  for (std::int64_t i = 0; i < A.rows(); ++i)
    if (has_nonfinite(A, true, i))
      for (std::int64_t l = 0; l < A.cols(); ++l) A0(i, l) = 0.0;
  for (std::int64_t j = 0; j < B.cols(); ++j)
    if (has_nonfinite(B, false, j))
      for (std::int64_t l = 0; l < B.rows(); ++l) B0(l, j) = 0.0;
  Matrix expected = product<Space>(A0, B0, options, alpha, beta, C);
  for (std::int64_t j = 0; j < B.cols(); ++j)
    for (std::int64_t i = 0; i < A.rows(); ++i) {
      if (!has_nonfinite(A, true, i) && !has_nonfinite(B, false, j)) continue;
      double t = 0;
      for (std::int64_t l = 0; l < A.cols(); ++l)
        if (!std::isfinite(A(i, l)) || !std::isfinite(B(l, j))) t += A(i, l) * B(l, j);
      const double scaled_c = beta * C(i, j);
      expected(i, j) = beta == 0 ? alpha * t : std::fma(alpha, t, scaled_c);
    }
  EXPECT_TRUE(same_values(expected, product<Space>(A, B, options, alpha, beta, C)));
}

TYPED_TEST(GemmTest, NaNSpoilsItsRowOnly) {
  Matrix A = uniform(9, 200, -1, 1, 161), B = uniform(200, 8, -1, 1, 162);
  A(3, 5) = quiet_nan;
  const Matrix C = product<TypeParam>(A, B);
  A(3, 5) = 0;
  const Matrix finite = product<TypeParam>(A, B);
  for (std::int64_t j = 0; j < 8; ++j)
    for (std::int64_t i = 0; i < 9; ++i) {
      if (i == 3)
        EXPECT_TRUE(std::isnan(C(i, j))) << i << "," << j;
      else
        EXPECT_EQ(bits_of(finite(i, j)), bits_of(C(i, j))) << i << "," << j;
    }
}

TYPED_TEST(GemmTest, InfGivesInfOrNaNBySign) {
  Matrix A = uniform(9, 200, -1, 1, 163), B = uniform(200, 8, -1, 1, 164);
  A(3, 5) = infinity;
  B(5, 0) = 0.0, B(5, 1) = 2.0, B(5, 2) = -3.0, B(5, 3) = -0.0, B(5, 4) = 0x1p-1074;
  const Matrix C = product<TypeParam>(A, B);
  EXPECT_TRUE(std::isnan(C(3, 0)));
  EXPECT_EQ(C(3, 1), infinity);
  EXPECT_EQ(C(3, 2), -infinity);
  EXPECT_TRUE(std::isnan(C(3, 3)));
  EXPECT_EQ(C(3, 4), infinity);
  expect_native_nonfinite<TypeParam>(A, B, {}, 1.0, 0.0, Matrix(9, 8, 0.0));
}

TYPED_TEST(GemmTest, NonFiniteInputsHaveNativeSemantics) {
  const Matrix C = uniform(70, 45, -1, 1, 165);
  const std::int64_t k = 389;
  int pattern = 0;
  for (const double value : {quiet_nan, infinity, -infinity})
    for (const std::int64_t l : {std::int64_t{0}, std::int64_t{127}, std::int64_t{128}, k - 1}) {
      Matrix A = spread(70, k, 1.0, 166), B = spread(k, 45, 1.0, 167);
      if (pattern % 3 != 1) A(0, l) = value, A(65, l) = -value, A(65, (l + 3) % k) = infinity;
      if (pattern % 3 != 2) B(l, 44) = value, B((l + 1) % k, 7) = -infinity, B((l + 200) % k, 7) = infinity;
      if (pattern % 2 == 1)
        A(30, l) = 0x1.8p+1023, B(l, 20) = 0x1.8p+1023;  // finite products may overflow beside them
      SCOPED_TRACE("pattern " + std::to_string(pattern));
      GemmOptions options = with_moduli(14, pattern % 2 == 0 ? Bound::fast : Bound::accurate);
      expect_native_nonfinite<TypeParam>(A, B, options, 1.0, 0.0, C);
      expect_native_nonfinite<TypeParam>(A, B, options, -0.5, 2.0, C);
      options.max_workspace_bytes = GemmPlan<TypeParam, double>::workspace_bytes(16, 16, 128, options);
      if (GemmPlan<TypeParam, double>::can_run(70, 45, k, options))
        expect_native_nonfinite<TypeParam>(A, B, options, 1.0, 0.0, C);
      ++pattern;
    }
  const Matrix all_nan = product<TypeParam>(Matrix(5, 6, quiet_nan), Matrix(6, 4, quiet_nan));
  for (std::int64_t j = 0; j < 4; ++j)
    for (std::int64_t i = 0; i < 5; ++i) EXPECT_TRUE(std::isnan(all_nan(i, j)));
}

TYPED_TEST(GemmTest, FiniteTermsDoNotMeetInfTerms) {
  // 2^1023 * 2^1023 would be Inf in a sum of doubles; beside -Inf it would make NaN.
  Matrix A(1, 2), B(2, 1);
  A(0, 0) = 0x1p+1023, B(0, 0) = 0x1p+1023, A(0, 1) = -infinity, B(1, 0) = 1.0;
  EXPECT_EQ(product<TypeParam>(A, B)(0, 0), -infinity);
}

}  // namespace
}  // namespace KokkosOzaki::Testing
