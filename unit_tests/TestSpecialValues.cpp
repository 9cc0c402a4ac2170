// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"
#include "ScalarOperands.hpp"

// Inf, NaN, zeros of both signs, subnormal numbers, and the edges of rounding, for all operations and orders of C
// (docs/accuracy.md, "alpha and beta", "Overflow and underflow", "Inf and NaN"). Expected values are computed in the
// scalar itself.

namespace KokkosOzaki::Testing {
namespace {

template <class Case>
class SpecialValuesTest : public ::testing::Test {};
TYPED_TEST_SUITE(SpecialValuesTest, RealContractCases, ContractNames);

/// A matrix of one scalar, column-major.
template <class Scalar>
struct Table {
  Table(std::int64_t r, std::int64_t c, Scalar value = 0)
      : rows(r), cols(c), values(static_cast<std::size_t>(r * c), value) {}
  Table(std::int64_t r, std::int64_t c, Random& random, double low, double high) : Table(r, c) {
    using Traits = ScalarTraits<Scalar>;
    const auto number = [&] {
      return static_cast<typename Traits::Real>(low + (high - low) * random.unit());
    };
    for (Scalar& x : values) {
      const auto re = number();
      x = Traits::make(re, Traits::is_complex ? number() : 0);
    }
  }

  Scalar& operator()(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(j * rows + i)];
  }
  Scalar operator()(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(j * rows + i)];
  }

  std::int64_t rows, cols;
  std::vector<Scalar> values;
};

struct Way {
  char transA, transB;
  bool a_row_major, b_row_major, c_row_major;
};

/// All nine operations, with all eight orders of the operands between them.
std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const char transA : trans_letters)
    for (const char transB : trans_letters)
      for (int orders = 0; orders < 8; ++orders)
        ways.push_back({transA, transB, (orders & 1) != 0, (orders & 2) != 0, (orders & 4) != 0});
  return ways;
}

/// Every operation and every order once.
std::vector<Way> some_ways() {
  std::vector<Way> ways;
  const std::vector<Way> all = all_ways();
  for (std::size_t w = 0; w < all.size(); w += 7) ways.push_back(all[w]);
  return ways;
}

std::string name_of(const Way& way) {
  return std::string("trans ") + way.transA + way.transB + " row-major " + (way.a_row_major ? "A" : "") +
         (way.b_row_major ? "B" : "") + (way.c_row_major ? "C" : "");
}

template <class Space, class Scalar>
Table<Scalar> product_in(const Way& way, const Table<Scalar>& A, const Table<Scalar>& B,
                         const GemmOptions& options = {}, Scalar alpha = 1, Scalar beta = 0,
                         const Table<Scalar>& C = Table<Scalar>(0, 0)) {
  const auto a = stored_operand<Scalar>(A.rows, A.cols, way.transA, {way.a_row_major, 1, 1, 1}, A);
  const auto b = stored_operand<Scalar>(B.rows, B.cols, way.transB, {way.b_row_major, 0, 3, 1}, B);
  const ScalarOperand<Scalar> c(
      A.rows, B.cols, {way.c_row_major, 1, 2, 1}, [&](std::int64_t i, std::int64_t j) {
        return C.rows == 0 ? Scalar(std::numeric_limits<typename ScalarTraits<Scalar>::Real>::quiet_NaN())
                           : C(i, j);
      });
  run_gemm<Space, Scalar>(way.transA, way.transB, alpha, a, b, beta, c, options);
  EXPECT_TRUE(c.gaps_are_intact());
  Table<Scalar> result(A.rows, B.cols);
  for (std::int64_t j = 0; j < result.cols; ++j)
    for (std::int64_t i = 0; i < result.rows; ++i) result(i, j) = c(i, j);
  return result;
}

constexpr Way plain = {'N', 'N', false, false, false};

template <class Scalar>
::testing::AssertionResult same(const Table<Scalar>& expected, const Table<Scalar>& got) {
  for (std::int64_t j = 0; j < got.cols; ++j)
    for (std::int64_t i = 0; i < got.rows; ++i)
      if (!same_scalar(expected(i, j), got(i, j)))
        return ::testing::AssertionFailure() << "entry (" << i << "," << j << "): expected "
                                             << text_of(expected(i, j)) << ", got " << text_of(got(i, j));
  return ::testing::AssertionSuccess();
}

/// C := alpha t + beta C as docs/accuracy.md says it, where the product is t.
template <class Scalar>
Scalar combined(Scalar alpha, Scalar t, Scalar beta, Scalar c) {
  if (beta == 0) return alpha == 1 ? t : alpha * t;
  const Scalar scaled_c = beta * c;
  return std::fma(alpha, t, scaled_c);
}

// ---- Inf and NaN ------------------------------------------------------------------------------------

/// Where special values are put into a matrix, (row of op(A) or column of op(B), position, value).
template <class Scalar>
struct Special {
  bool in_a;
  std::int64_t vector, position;
  Scalar value;
};

TYPED_TEST(SpecialValuesTest, InfAndNaNHaveTheClassOfADotProductAndTouchNothingElse) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  constexpr Scalar inf = std::numeric_limits<Scalar>::infinity(),
                   nan = std::numeric_limits<Scalar>::quiet_NaN();
  const std::int64_t m = 6, n = 5, k = 140;
  Random random(301);
  Table<Scalar> A(m, k, random, -1, 1), B(k, n, random, -1, 1);
  // zeros of both signs, for Inf * 0, and signs that make both Inf
  for (std::int64_t l = 0; l < k; l += 3) A(1, l) = 0, B(l, 1) = l % 2 == 0 ? Scalar(0) : -Scalar(0);
  for (std::int64_t j = 0; j < n; ++j) A(0, 127) = 1, B(127, j) = j % 2 == 0 ? Scalar(1) : Scalar(-1);
  const std::vector<std::vector<Special<Scalar>>> patterns = {
      {{true, 3, 5, nan}},
      {{true, 3, 5, inf}},
      {{true, 0, 127, -inf}},
      {{false, 2, 128, inf}},
      {{false, 1, 0, nan}, {false, 4, k - 1, -inf}},
      {{true, 2, 7, inf}, {true, 2, 130, inf}},   // two of one sign
      {{true, 2, 7, inf}, {true, 2, 130, -inf}},  // of two signs
      {{true, 5, 9, inf}, {false, 4, 9, -inf}},   // they meet
      {{true, 5, 9, inf}, {false, 4, 10, inf}},   // in one entry, at two positions
      {{true, 1, 3, inf}, {false, 1, 3, inf}},    // beside zeros
      {{true, 0, 0, nan},
       {true, 1, 1, inf},
       {true, 2, 2, -inf},
       {true, 3, 3, nan},
       {true, 4, 4, inf},
       {true, 5, 5, inf}},
  };
  for (std::size_t p = 0; p < patterns.size(); ++p) {
    Table<Scalar> X = A, Y = B, X0 = A, Y0 = B;
    std::vector<bool> row_flagged(static_cast<std::size_t>(m)), col_flagged(static_cast<std::size_t>(n));
    for (const Special<Scalar>& special : patterns[p]) {
      (special.in_a ? X(special.vector, special.position) : Y(special.position, special.vector)) =
          special.value;
      (special.in_a ? row_flagged : col_flagged)[static_cast<std::size_t>(special.vector)] = true;
      for (std::int64_t l = 0; l < k; ++l) (special.in_a ? X0(special.vector, l) : Y0(l, special.vector)) = 0;
    }
    for (const Bound bound : both_bounds) {
      const GemmOptions options = with_moduli(0, bound);
      // the run without the special vectors; with the fast bound the others have the bits of the finite run as well
      const Table<Scalar> others = product_in<Space>(plain, X0, Y0, options);
      const Table<Scalar> finite = product_in<Space>(plain, A, B, options);
      for (const Way& way : p < 4 ? all_ways() : some_ways()) {
        SCOPED_TRACE("pattern " + std::to_string(p) + " " + name_of(way) + " " + Testing::name_of(bound));
        const Table<Scalar> got = product_in<Space>(way, X, Y, options);
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = 0; i < m; ++i) {
            if (!row_flagged[static_cast<std::size_t>(i)] && !col_flagged[static_cast<std::size_t>(j)]) {
              EXPECT_TRUE(same_scalar(others(i, j), got(i, j))) << i << "," << j;
              if (bound == Bound::fast) {
                EXPECT_TRUE(same_scalar(finite(i, j), got(i, j))) << i << "," << j;
              }
              continue;
            }
            Scalar native = 0;
            for (std::int64_t l = 0; l < k; ++l) native += X(i, l) * Y(l, j);
            ASSERT_FALSE(std::isfinite(native));
            EXPECT_TRUE(same_scalar(native, got(i, j)))
                << i << "," << j << " native " << native << " got " << got(i, j);
          }
      }
    }
  }
}

TYPED_TEST(SpecialValuesTest, FiniteOperandsNeverGiveNaN) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  constexpr Scalar largest = std::numeric_limits<Scalar>::max(),
                   inf = std::numeric_limits<Scalar>::infinity();
  // partial sums that overflow both ways: native gives Inf - Inf
  Table<Scalar> A(2, 4, largest), B(4, 2, largest);
  B(1, 0) = -largest, B(3, 0) = -largest, B(0, 1) = -largest, B(1, 1) = -largest, B(2, 1) = -largest;
  for (const Bound bound : both_bounds)
    for (const Way& way : all_ways()) {
      SCOPED_TRACE(name_of(way));
      const Table<Scalar> got = product_in<Space>(way, A, B, with_moduli(14, bound));
      for (std::int64_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(same_scalar(Scalar(0), got(i, 0))) << "an exact zero is +0";
        EXPECT_TRUE(same_scalar(-inf, got(i, 1)));
      }
      // Inf is reached before alpha is looked at
      const Table<Scalar> small = product_in<Space>(way, A, B, with_moduli(14, bound),
                                                    std::numeric_limits<Scalar>::min(), Scalar(1), A);
      EXPECT_TRUE(same_scalar(largest, small(0, 0)));
      EXPECT_TRUE(same_scalar(-inf, small(0, 1)));
    }
}

// ---- alpha, beta, C ---------------------------------------------------------------------------------

TYPED_TEST(SpecialValuesTest, EveryAlphaBetaAndCFollowTheFormula) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Limits = std::numeric_limits<Scalar>;
  constexpr Scalar inf = Limits::infinity(), nan = Limits::quiet_NaN(), tiny = Limits::denorm_min();
  const std::int64_t m = 7, n = 10, k = 6;
  Random random(311);
  Table<Scalar> A(m, k, random, -1, 1), B(k, n, random, -1, 1);
  for (std::int64_t l = 0; l < k; ++l) {
    A(1, l) = 0;                               // t = +0
    A(2, l) = Limits::max() / 2, B(l, 0) = 4;  // t = Inf
    A(3, l) = l == 0 ? -tiny : Scalar(0);      // t is subnormal, or underflows to -0 or +0
    A(4, l) = l == 2 ? inf : Scalar(1);        // t = Inf or NaN by the sign of B
    A(5, l) = l == 3 ? nan : Scalar(1);
  }
  B(2, 5) = 0, B(2, 6) = -1, B(0, 7) = Limits::min();
  const Scalar c_values[] = {0,    -Scalar(0), 1,    -Scalar(3),     inf,
                             -inf, nan,        tiny, -Limits::max(), Limits::min()};
  Table<Scalar> C(m, n);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i) C(i, j) = c_values[(i + j) % 10];
  const Table<Scalar> t = product_in<Space>(plain, A, B);
  const Scalar factors[] = {0,
                            -Scalar(0),
                            1,
                            -1,
                            Scalar(0.3),
                            inf,
                            -inf,
                            nan,
                            tiny,
                            -Limits::max(),
                            Limits::min(),
                            Limits::epsilon()};
  const std::vector<Way> ways = some_ways();
  std::size_t turn = 0;
  for (const Scalar alpha : factors)
    for (const Scalar beta : factors) {
      Table<Scalar> expected(m, n), expected_empty(m, n);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i) {
          const Scalar scaled_c = beta * C(i, j);
          expected_empty(i, j) = beta == 0 ? Scalar(0) : beta == 1 ? C(i, j) : scaled_c;
          expected(i, j) = alpha == 0 ? expected_empty(i, j) : combined(alpha, t(i, j), beta, C(i, j));
        }
      for (int more = 0; more < 3; ++more) {
        const Way& way = ways[turn++ % ways.size()];
        SCOPED_TRACE("alpha " + text_of(alpha) + " beta " + text_of(beta) + " " + name_of(way));
        EXPECT_TRUE(same(expected, product_in<Space>(way, A, B, {}, alpha, beta, C)));
        // k = 0: alpha is not looked at
        EXPECT_TRUE(same(expected_empty, product_in<Space>(way, Table<Scalar>(m, 0), Table<Scalar>(0, n), {},
                                                           alpha, beta, C)));
      }
    }
}

TYPED_TEST(SpecialValuesTest, BetaZeroReadsNothingOfC) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Limits = std::numeric_limits<Scalar>;
  Random random(321);
  const Table<Scalar> A(9, 33, random, -1, 1), B(33, 8, random, -1, 1);
  for (const Scalar alpha : {Scalar(1), Scalar(-2.5), Scalar(0)}) {
    const Table<Scalar> expected =
        product_in<Space>(plain, A, B, {}, alpha, Scalar(0), Table<Scalar>(9, 8, 0));
    for (const Way& way : all_ways())
      for (const Scalar junk :
           {Limits::quiet_NaN(), Limits::signaling_NaN(), Limits::infinity(), Limits::max()}) {
        SCOPED_TRACE(name_of(way));
        for (const Scalar beta : {Scalar(0), -Scalar(0)})
          EXPECT_TRUE(
              same(expected, product_in<Space>(way, A, B, {}, alpha, beta, Table<Scalar>(9, 8, junk))));
      }
  }
}

// ---- zeros, subnormal numbers, the edges of rounding ------------------------------------------------

/// Two vectors and their product, rounded once.
template <class Scalar>
struct Dot {
  std::vector<Scalar> a, b;
  Scalar expected;
  int moduli;  // that hold the entries without rounding
};

template <class Scalar>
std::vector<Dot<Scalar>> edges() {
  using Limits = std::numeric_limits<Scalar>;
  constexpr int p = Limits::digits, lowest = Limits::min_exponent - p;  // tiny = 2^lowest
  const Scalar tiny = Limits::denorm_min(), one = 1;
  const auto two = [](int exponent) { return std::ldexp(Scalar(1), exponent); };
  const int half = lowest / 2 - 1, other = lowest - 1 - half;  // 2^half 2^other = tiny / 2
  // factors of 2^(p+1) - 1, one bit more than a significand holds
  const Scalar f1 = p == 53 ? two(27) - 1 : Scalar(31), f2 = p == 53 ? two(27) + 1 : Scalar(1082401);
  const int top = Limits::max_exponent - p - 1,
            top_half = top / 2;  // 2^top (2^(p+1) - 1) is the tie below Inf
  std::vector<Dot<Scalar>> all = {
      // the gradual underflow: ties to even, and just beside them
      {{two(half)}, {two(other)}, 0, 3},
      {{3 * two(half)}, {two(other)}, 2 * tiny, 3},
      {{5 * two(half)}, {two(other)}, 2 * tiny, 3},
      {{7 * two(half)}, {two(other)}, 4 * tiny, 3},
      {{two(half), two(half - 4)}, {two(other), two(other)}, tiny, 4},
      {{two(half), two(half - 4)}, {two(other), -two(other)}, 0, 4},
      {{two(half - 1)}, {two(other)}, 0, 3},
      {{tiny}, {tiny}, 0, 3},
      {{tiny, 16 * tiny}, {one, one}, 17 * tiny, 4},
      {{tiny, tiny}, {two(20), -two(20)}, 0, 4},
      {{tiny}, {two(Limits::max_exponent - 1)}, two(lowest + Limits::max_exponent - 1), 3},
      {{Limits::min()}, {Scalar(0.5)}, Limits::min() / 2, 3},
      // the largest number below the normal ones, and the tie between it and the smallest normal one
      {{(two(p) - 1) * two(half)}, {two(other)}, Limits::min(), 20},
      {{(two(p - 1) - 1) * two(half + 1)}, {two(other)}, Limits::min() - tiny, 20},
      // overflow: the tie below Inf, and just below it
      {{f1 * two(top_half)}, {f2 * two(top - top_half)}, Limits::infinity(), 20},
      {{f1 * two(top_half), -two(top_half)},
       {f2 * two(top - top_half), two(top - top_half - 3)},
       Limits::max(),
       20},
      {{Limits::max()}, {one}, Limits::max(), 20},
      {{two(Limits::max_exponent - 1)}, {Scalar(2)}, Limits::infinity(), 3},
      {{two(Limits::max_exponent - 1), two(Limits::max_exponent - 1)},
       {Scalar(2), -one},
       two(Limits::max_exponent - 1),
       4},
      // the tie in the normal range, and just beside it
      {{f1}, {f2}, two(p + 1), 20},
      {{f1, -one}, {f2, two(-3)}, two(p + 1) - 2, 20},
  };
  return all;
}

TYPED_TEST(SpecialValuesTest, EveryResultIsRoundedOnceAtTheEdgesOfTheFormat) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  const std::vector<Dot<Scalar>> all = edges<Scalar>();
  const std::vector<Way> ways = some_ways();
  for (std::size_t d = 0; d < all.size(); ++d) {
    const auto k = static_cast<std::int64_t>(all[d].a.size());
    Table<Scalar> A(2, k), B(k, 2);
    for (std::int64_t l = 0; l < k; ++l) {
      const auto position = static_cast<std::size_t>(l);
      A(0, l) = all[d].a[position], A(1, l) = -all[d].a[position];
      B(l, 0) = all[d].b[position], B(l, 1) = -all[d].b[position];
    }
    // an exact sum of zero is +0, whatever the signs of its terms; what underflows keeps its sign
    const bool cancels = k == 2 && all[d].expected == 0 &&
                         all[d].a[0] * all[d].b[0] == -all[d].a[1] * all[d].b[1] &&
                         std::fabs(all[d].a[0]) == std::fabs(all[d].a[1]);
    const Scalar plus = all[d].expected, minus = cancels ? Scalar(0) : -plus;
    for (int s = all[d].moduli; s <= 20; ++s)
      for (const Bound bound : both_bounds) {
        const Way& way = ways[(d + static_cast<std::size_t>(s)) % ways.size()];
        const Table<Scalar> got = product_in<Space>(way, A, B, with_moduli(s, bound));
        for (std::int64_t j = 0; j < 2; ++j)
          for (std::int64_t i = 0; i < 2; ++i)
            EXPECT_TRUE(same_scalar(i == j ? plus : minus, got(i, j)))
                << "dot product " << d << " s=" << s << " " << Testing::name_of(bound) << " " << name_of(way)
                << " entry " << i << "," << j << ": expected " << text_of(i == j ? plus : minus) << ", got "
                << text_of(got(i, j));
      }
  }
}

TYPED_TEST(SpecialValuesTest, ZerosOfBothSignsGivePlusZero) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  for (const Way& way : some_ways())
    for (const Scalar x : {Scalar(0), -Scalar(0)})
      for (const Scalar y : {Scalar(0), -Scalar(0), Scalar(1), Scalar(-1)}) {
        const Table<Scalar> A(3, 5, x), B(5, 4, y);
        EXPECT_TRUE(same(Table<Scalar>(3, 4, 0), product_in<Space>(way, A, B)));
        // rn(-1 * +0) and fma(1, +0, rn(1 * -0))
        EXPECT_TRUE(same(Table<Scalar>(3, 4, -Scalar(0)), product_in<Space>(way, A, B, {}, Scalar(-1))));
        EXPECT_TRUE(same(Table<Scalar>(3, 4, 0), product_in<Space>(way, A, B, {}, Scalar(1), Scalar(1),
                                                                   Table<Scalar>(3, 4, -Scalar(0)))));
        EXPECT_TRUE(
            same(Table<Scalar>(3, 4, -Scalar(0)),
                 product_in<Space>(way, A, B, {}, Scalar(-1), Scalar(1), Table<Scalar>(3, 4, -Scalar(0)))));
      }
}

// ---- complex numbers --------------------------------------------------------------------------------
//
// What has the same answer in each part; alpha, beta, Inf and NaN of complex numbers are in TestScalars.

template <class Case>
class ComplexSpecialValuesTest : public ::testing::Test {};
TYPED_TEST_SUITE(ComplexSpecialValuesTest, ComplexContractCases, ContractNames);

TYPED_TEST(ComplexSpecialValuesTest, BetaZeroReadsNothingOfC) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Limits = std::numeric_limits<typename ScalarTraits<Scalar>::Real>;
  Random random(361);
  const Table<Scalar> A(37, 29, random, -1, 1), B(29, 41, random, -1, 1);
  for (const Scalar alpha : {Scalar(1), Scalar(-1), Scalar(2.5, -0.5), Scalar(0)}) {
    const Table<Scalar> expected =
        product_in<Space>(plain, A, B, {}, alpha, Scalar(0), Table<Scalar>(37, 41, 0));
    for (const Scalar& x : expected.values)
      ASSERT_TRUE(std::isfinite(x.real()) && std::isfinite(x.imag())) << text_of(x);
    std::size_t turn = 0;
    for (const Way& way : some_ways()) {
      const auto nan = Limits::quiet_NaN(), inf = Limits::infinity();
      const Scalar junk[] = {{nan, nan}, {0, nan}, {Limits::signaling_NaN(), 1}, {inf, -inf}};
      const Scalar zeros[] = {{0, 0}, {-0.0F, 0}, {0, -0.0F}};
      SCOPED_TRACE(name_of(way));
      EXPECT_TRUE(same(expected, product_in<Space>(way, A, B, {}, alpha, zeros[turn % 3],
                                                   Table<Scalar>(37, 41, junk[turn % 4]))));
      ++turn;
    }
  }
}

TYPED_TEST(ComplexSpecialValuesTest, FiniteOperandsNeverGiveNaN) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Limits = std::numeric_limits<typename ScalarTraits<Scalar>::Real>;
  const auto largest = Limits::max(), inf = Limits::infinity();
  // both parts of every product overflow one way and the other: native gives Inf - Inf
  Table<Scalar> A(2, 4, Scalar(largest, largest)), B(4, 3, Scalar(largest, largest));
  B(1, 0) = B(3, 0) = Scalar(-largest, -largest);  // cancels
  B(1, 2) = Scalar(largest, -largest);             // not where the others do
  for (const Bound bound : both_bounds)
    for (const Way& way : some_ways()) {
      SCOPED_TRACE(name_of(way));
      const Table<Scalar> got = product_in<Space>(way, A, B, with_moduli(14, bound));
      for (std::int64_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(same_scalar(Scalar(0, 0), got(i, 0))) << text_of(got(i, 0));
        EXPECT_TRUE(same_scalar(Scalar(0, inf), got(i, 1))) << text_of(got(i, 1));
        EXPECT_TRUE(same_scalar(Scalar(inf, inf), got(i, 2))) << text_of(got(i, 2));
      }
    }
}

TYPED_TEST(ComplexSpecialValuesTest, EveryPartIsRoundedOnceAtTheEdgesOfTheFormat) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Real = typename ScalarTraits<Scalar>::Real;
  const std::vector<Dot<Real>> all = edges<Real>();
  const std::vector<Way> ways = some_ways();
  for (std::size_t d = 0; d < all.size(); ++d) {
    const auto k = static_cast<std::int64_t>(all[d].a.size());
    // rows a and i a, columns b, -b, i b and b - i b
    Table<Scalar> A(2, k), B(k, 4);
    for (std::int64_t l = 0; l < k; ++l) {
      const Real a = all[d].a[static_cast<std::size_t>(l)], b = all[d].b[static_cast<std::size_t>(l)];
      A(0, l) = Scalar(a, 0), A(1, l) = Scalar(0, a);
      B(l, 0) = Scalar(b, 0), B(l, 1) = Scalar(-b, 0), B(l, 2) = Scalar(0, b), B(l, 3) = Scalar(b, -b);
    }
    const bool cancels = k == 2 && all[d].expected == 0 &&
                         all[d].a[0] * all[d].b[0] == -all[d].a[1] * all[d].b[1] &&
                         std::fabs(all[d].a[0]) == std::fabs(all[d].a[1]);
    const Real plus = all[d].expected, minus = cancels ? Real(0) : -plus;
    const Scalar expected[2][4] = {{{plus, 0}, {minus, 0}, {0, plus}, {plus, minus}},
                                   {{0, plus}, {0, minus}, {minus, 0}, {plus, plus}}};
    // a bit more: a column of two equal parts is longer
    for (int s = std::min(all[d].moduli + 1, 20); s <= 20; ++s)
      for (const Bound bound : both_bounds) {
        const Way& way = ways[(d + static_cast<std::size_t>(s)) % ways.size()];
        const Table<Scalar> got = product_in<Space>(way, A, B, with_moduli(s, bound));
        for (std::int64_t j = 0; j < 4; ++j)
          for (std::int64_t i = 0; i < 2; ++i)
            EXPECT_TRUE(same_scalar(expected[i][j], got(i, j)))
                << "dot product " << d << " s=" << s << " " << Testing::name_of(bound) << " " << name_of(way)
                << " entry " << i << "," << j << ": expected " << text_of(expected[i][j]) << ", got "
                << text_of(got(i, j));
      }
  }
}

TYPED_TEST(ComplexSpecialValuesTest, ZerosOfAllSignsGivePlusZero) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  std::vector<Scalar> zeros;
  for (const float re : {0.0F, -0.0F})
    for (const float im : {0.0F, -0.0F}) zeros.emplace_back(re, im);
  const std::vector<Way> ways = some_ways();
  std::size_t turn = 0;
  for (const Scalar& x : zeros)
    for (const Scalar& y : {zeros[0], zeros[1], zeros[2], zeros[3], Scalar(1, -1), Scalar(-1, 2)}) {
      const Way& way = ways[turn++ % ways.size()];
      SCOPED_TRACE(name_of(way) + " " + text_of(x) + " " + text_of(y));
      EXPECT_TRUE(same(Table<Scalar>(3, 4, Scalar(0, 0)),
                       product_in<Space>(way, Table<Scalar>(3, 5, x), Table<Scalar>(5, 4, y))));
      EXPECT_TRUE(same(Table<Scalar>(3, 4, Scalar(0, 0)),
                       product_in<Space>(way, Table<Scalar>(3, 5, x), Table<Scalar>(5, 4, y), {}, Scalar(1),
                                         Scalar(1), Table<Scalar>(3, 4, zeros[3]))));
    }
}

#if defined(__SSE2__)

/// The caller's rounding mode and its flags "subnormal numbers are zero", as long as this lives.
class FloatingPointState {
 public:
  FloatingPointState(int rounding, bool flush) : m_control(_mm_getcsr()), m_rounding(std::fegetround()) {
    std::fesetround(rounding);
    constexpr unsigned flush_to_zero = 0x8000, denormals_are_zero = 0x0040;
    if (flush) _mm_setcsr(_mm_getcsr() | flush_to_zero | denormals_are_zero);
  }
  ~FloatingPointState() {
    _mm_setcsr(m_control);
    std::fesetround(m_rounding);
  }
  FloatingPointState(const FloatingPointState&) = delete;
  FloatingPointState& operator=(const FloatingPointState&) = delete;

 private:
  unsigned m_control;
  int m_rounding;
};

template <class Space, class Scalar>
void expect_the_state_plays_no_part() {
  using Traits = ScalarTraits<Scalar>;
  using Limits = std::numeric_limits<typename Traits::Real>;
  const auto shifted = [](const Scalar& x, int exponent) {
    return Traits::make(std::ldexp(Traits::real(x), exponent), std::ldexp(Traits::imag(x), exponent));
  };
  Random random(341);
  const std::int64_t m = 20, n = 17, k = 150;
  Table<Scalar> A(m, k, random, -1, 1), B(k, n, random, -1, 1);
  for (std::int64_t l = 0; l < k; ++l) {
    for (std::int64_t i = 0; i < m; i += 4) A(i, l) = shifted(A(i, l), Limits::min_exponent - 5);
    for (std::int64_t i = 1; i < m; i += 4) A(i, l) = shifted(A(i, l), Limits::max_exponent - 3);
  }
  A(2, 9) = Limits::infinity();
  for (const char* engine : usable_backends<Space>())
    for (const int s : {2, 14, 18}) {
      GemmOptions options = with_moduli(s, Bound::accurate);
      options.backend = engine;
      const Table<Scalar> expected = product_in<Space>(plain, A, B, options);
      for (const int rounding : {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO})
        for (const bool flush : {false, true}) {
          const auto a = stored_operand<Scalar>(m, k, 'N', {}, A),
                     b = stored_operand<Scalar>(k, n, 'N', {}, B);
          const ScalarOperand<Scalar> c(m, n, {}, [](auto, auto) { return Scalar(1); });
          {
            const FloatingPointState state(rounding, flush);
            run_gemm<Space, Scalar>('N', 'N', Scalar(1), a, b, Scalar(0), c, options);
          }
          EXPECT_TRUE(c.equals(expected))
              << engine << " s=" << s << " rounding " << rounding << " flush " << flush;
        }
    }
}

TYPED_TEST(SpecialValuesTest, TheCallersRoundingModeAndFlushToZeroPlayNoPart) {
  expect_the_state_plays_no_part<typename TypeParam::Space, typename TypeParam::Scalar>();
}

TYPED_TEST(ComplexSpecialValuesTest, TheCallersRoundingModeAndFlushToZeroPlayNoPart) {
  expect_the_state_plays_no_part<typename TypeParam::Space, typename TypeParam::Scalar>();
}

#endif

}  // namespace
}  // namespace KokkosOzaki::Testing
