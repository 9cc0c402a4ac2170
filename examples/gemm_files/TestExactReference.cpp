// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ExactReference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace {

using GemmFiles::DenseMatrix;
using GemmFiles::error_in_u;
using GemmFiles::ErrorSummary;
using GemmFiles::exact_dot;
using GemmFiles::ExactDot;
using GemmFiles::ExactNumber;
using GemmFiles::ExactSample;
using GemmFiles::round_to_double;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double tiny = std::numeric_limits<double>::denorm_min();
constexpr double largest = std::numeric_limits<double>::max();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::uint64_t bits_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

double uniform(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return static_cast<double>(static_cast<std::int64_t>(state >> 11)) * 0x1p-52 - 1.0;
}

mpq_class rational(double x) {
  return mpq_class(x);
}

mpq_class rational(const ExactNumber& number) {
  mpq_class result(number.integer);
  if (number.exponent >= 0) {
    mpq_mul_2exp(result.get_mpq_t(), result.get_mpq_t(), static_cast<mp_bitcnt_t>(number.exponent));
  } else {
    mpq_div_2exp(result.get_mpq_t(), result.get_mpq_t(), static_cast<mp_bitcnt_t>(-number.exponent));
  }
  return result;
}

TEST(ExactReferenceTest, DotProductsEqualRationalArithmetic) {
  std::uint64_t state = 7;
  for (int round = 0; round < 50; ++round) {
    std::vector<double> x, y;
    mpq_class value = 0, absolute = 0;
    for (int l = 0; l < 40; ++l) {
      x.push_back(l % 7 == 3 ? 0.0 : std::ldexp(uniform(state), static_cast<int>(1000.0 * uniform(state))));
      y.push_back(l % 11 == 5 ? -0.0 : std::ldexp(uniform(state), static_cast<int>(1000.0 * uniform(state))));
      value += rational(x.back()) * rational(y.back());
      absolute += abs(rational(x.back()) * rational(y.back()));
    }
    const ExactDot dot = exact_dot(x, y);
    EXPECT_EQ(rational(dot.value), value);
    EXPECT_EQ(rational(dot.absolute), absolute);
  }
}

TEST(ExactReferenceTest, DotProductsCoverTheWholeRange) {
  const std::vector<double> x{largest, tiny, -largest, 1.0}, y{largest, tiny, largest, tiny};
  const ExactDot dot = exact_dot(x, y);
  EXPECT_EQ(rational(dot.value), rational(tiny) * rational(tiny) + rational(tiny));
  EXPECT_EQ(rational(dot.absolute),
            2 * rational(largest) * rational(largest) + rational(tiny) * rational(tiny) + rational(tiny));
  EXPECT_EQ(round_to_double(dot.value), tiny);
  EXPECT_EQ(round_to_double(dot.absolute), infinity);
  EXPECT_EQ(round_to_double(exact_dot({}, {}).value), 0.0);
  EXPECT_EQ(round_to_double(exact_dot({0.0, 1.0}, {1.0, -0.0}).absolute), 0.0);
}

TEST(ExactReferenceTest, RoundsToNearestEven) {
  EXPECT_EQ(round_to_double({mpz_class("9007199254740993"), 0}), 9007199254740992.0);
  EXPECT_EQ(round_to_double({mpz_class("9007199254740995"), 0}), 9007199254740996.0);
  EXPECT_EQ(round_to_double({mpz_class("-9007199254740993"), 5}), -9007199254740992.0 * 32.0);
  EXPECT_EQ(round_to_double({(mpz_class("9007199254740993") << 200) + 1, -200}), 9007199254740994.0);
  EXPECT_EQ(round_to_double({(mpz_class("9007199254740993") << 200) - 1, -200}), 9007199254740992.0);
  EXPECT_EQ(round_to_double({(mpz_class(1) << 54) - 1, 0}), 0x1p54);
  EXPECT_EQ(round_to_double({3, -1}), 1.5);
}

TEST(ExactReferenceTest, RoundsAtBothEndsOfTheRange) {
  EXPECT_EQ(round_to_double({1, -1074}), tiny);
  EXPECT_EQ(bits_of(round_to_double({1, -1075})), bits_of(0.0));
  EXPECT_EQ(bits_of(round_to_double({-1, -1075})), bits_of(-0.0));
  EXPECT_EQ(bits_of(round_to_double({-1, -1080})), bits_of(-0.0));
  EXPECT_EQ(round_to_double({(mpz_class(1) << 100) + 1, -1175}), tiny);
  EXPECT_EQ(round_to_double({3, -1075}), 2.0 * tiny);
  EXPECT_EQ(round_to_double({5, -1075}), 2.0 * tiny);
  EXPECT_EQ(round_to_double({(mpz_class(1) << 53) - 1, -1075}), std::numeric_limits<double>::min());
  // half an ulp beyond the largest double is a tie that rounds to infinity
  const mpz_class limit = (mpz_class(1) << 54) - 1;
  EXPECT_EQ(round_to_double({limit, 970}), infinity);
  EXPECT_EQ(round_to_double({(limit << 10) - 1, 960}), largest);
  EXPECT_EQ(round_to_double({-limit, 970}), -infinity);
  EXPECT_EQ(round_to_double({1, 1024}), infinity);
  EXPECT_EQ(round_to_double({1, 1023}), 0x1p1023);
}

TEST(ExactReferenceTest, RoundingAgreesWithTheProcessor) {
  std::uint64_t state = 11;
  for (int round = 0; round < 20000; ++round) {
    const double x = std::ldexp(uniform(state), static_cast<int>(560.0 * uniform(state)));
    const double y = std::ldexp(uniform(state), static_cast<int>(560.0 * uniform(state)));
    ASSERT_EQ(bits_of(round_to_double(exact_dot({x}, {y}).value)), bits_of(x * y)) << x << " * " << y;
    ASSERT_EQ(bits_of(round_to_double(exact_dot({x, y}, {1.0, 1.0}).value)), bits_of(x + y))
        << x << " + " << y;
  }
}

TEST(ExactReferenceTest, ErrorIsInUnitsOfUAgainstTheAbsoluteProduct) {
  const ExactDot three = exact_dot({1.0, 2.0}, {1.0, 1.0});
  EXPECT_EQ(error_in_u(3.0, three), 0.0);
  EXPECT_EQ(error_in_u(3.0 + 0x1p-51, three), 4.0 / 3.0);
  EXPECT_EQ(error_in_u(3.0 - 0x1p-51, three), 4.0 / 3.0);
  EXPECT_EQ(error_in_u(0.0, three), 0x1p53);
  // 1 - 2 = -1 with |A||B| = 3
  const ExactDot minus_one = exact_dot({1.0, 2.0}, {1.0, -1.0});
  EXPECT_EQ(error_in_u(-1.0, minus_one), 0.0);
  EXPECT_EQ(error_in_u(1.0, minus_one), 0x1p54 / 3.0);
  // the exact sum is not a double: 2^60 + 1
  const ExactDot wide = exact_dot({0x1p60, 1.0}, {1.0, 1.0});
  EXPECT_DOUBLE_EQ(error_in_u(0x1p60, wide), 0x1p53 / (0x1p60 + 1.0));
  // full cancellation
  const ExactDot nothing = exact_dot({1.0, 1.0}, {1.0, -1.0});
  EXPECT_EQ(error_in_u(0.0, nothing), 0.0);
  EXPECT_EQ(error_in_u(0x1p-53, nothing), 0.5);
}

TEST(ExactReferenceTest, AnAbsoluteProductOfZeroAsksForZero) {
  for (const ExactDot& zero : {exact_dot({}, {}), exact_dot({0.0, 2.0}, {5.0, 0.0})}) {
    EXPECT_EQ(error_in_u(0.0, zero), 0.0);
    EXPECT_EQ(error_in_u(-0.0, zero), 0.0);
    EXPECT_EQ(error_in_u(tiny, zero), infinity);
    EXPECT_EQ(error_in_u(nan, zero), infinity);
  }
}

TEST(ExactReferenceTest, TheUnavoidableErrorBelowTheNormalRangeIsNotCounted) {
  const ExactDot below = exact_dot({0x1p-600}, {0x1p-600});
  EXPECT_EQ(error_in_u(0.0, below), 0.0);
  // one step of 2^-1074 away, of which 2^-1075 is allowed: 2^-1075 / 2^-1030 = 2^-45 = 2^8 u
  const ExactDot subnormal = exact_dot({0x1p-515}, {0x1p-515});
  EXPECT_EQ(error_in_u(0x1p-1030, subnormal), 0.0);
  EXPECT_EQ(error_in_u(0x1p-1030 + tiny, subnormal), 256.0);
  EXPECT_EQ(error_in_u(0x1p-1030 - tiny, subnormal), 256.0);
  // in the normal range nothing is allowed
  const ExactDot normal = exact_dot({0x1p-511}, {0x1p-511});
  EXPECT_EQ(error_in_u(0x1p-1022 + tiny, normal), 2.0);
}

TEST(ExactReferenceTest, InfinityIsRightWhereTheExactValueRoundsToIt) {
  const ExactDot beyond = exact_dot({largest}, {2.0});
  EXPECT_EQ(error_in_u(infinity, beyond), 0.0);
  EXPECT_EQ(error_in_u(-infinity, beyond), infinity);
  EXPECT_EQ(error_in_u(nan, beyond), infinity);
  EXPECT_EQ(error_in_u(infinity, exact_dot({1.0}, {1.0})), infinity);
  EXPECT_EQ(error_in_u(largest, beyond), 0x1p52);
}

DenseMatrix random_matrix(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  DenseMatrix matrix;
  matrix.rows = rows;
  matrix.cols = cols;
  for (std::int64_t t = 0; t < rows * cols; ++t) matrix.values.push_back(uniform(seed));
  return matrix;
}

DenseMatrix transposed(const DenseMatrix& matrix) {
  DenseMatrix result;
  result.rows = matrix.cols;
  result.cols = matrix.rows;
  for (std::int64_t j = 0; j < result.cols; ++j)
    for (std::int64_t i = 0; i < result.rows; ++i) result.values.push_back(matrix(j, i));
  return result;
}

DenseMatrix plain_product(const DenseMatrix& A, const DenseMatrix& B) {
  DenseMatrix C;
  C.rows = A.rows;
  C.cols = B.cols;
  for (std::int64_t j = 0; j < C.cols; ++j)
    for (std::int64_t i = 0; i < C.rows; ++i) {
      double sum = 0.0;
      for (std::int64_t l = 0; l < A.cols; ++l) sum += A(i, l) * B(l, j);
      C.values.push_back(sum);
    }
  return C;
}

TEST(ExactSampleTest, TakesEveryEntryOfASmallProductInAnyTransposition) {
  const DenseMatrix A = random_matrix(9, 30, 1), B = random_matrix(30, 7, 2);
  const DenseMatrix C = plain_product(A, B);
  const ExactSample sample(A, 'N', B, 'N');
  EXPECT_EQ(sample.size(), 63u);
  EXPECT_TRUE(sample.is_complete());
  const ErrorSummary errors = sample.errors_of(C), rounded = sample.errors_of_rounded_product();
  EXPECT_GT(errors.max, rounded.max);
  EXPECT_LT(errors.max, 30.0);  // k u, classical bound
  EXPECT_LE(rounded.max, 1.0);
  EXPECT_LE(errors.median, errors.max);
  for (const char transA : {'N', 'T'})
    for (const char transB : {'N', 'T'}) {
      const ExactSample other(transA == 'N' ? A : transposed(A), transA, transB == 'N' ? B : transposed(B),
                              transB);
      EXPECT_EQ(other.size(), 63u);
      EXPECT_EQ(other.errors_of(C).max, errors.max);
      EXPECT_EQ(other.errors_of(C).median, errors.median);
    }
}

TEST(ExactSampleTest, SeesOneWrongEntryAnywhereInASmallProduct) {
  const DenseMatrix A = random_matrix(5, 10, 3), B = random_matrix(10, 6, 4);
  const DenseMatrix C = plain_product(A, B);
  const ExactSample sample(A, 'N', B, 'N');
  for (std::size_t t = 0; t < C.values.size(); ++t) {
    DenseMatrix wrong = C;
    wrong.values[t] += 1.0;
    EXPECT_GT(sample.errors_of(wrong).max, 0x1p45);
  }
}

TEST(ExactSampleTest, ALargeProductIsSampledWithItsCorners) {
  const DenseMatrix A = random_matrix(100, 3, 5), B = random_matrix(3, 90, 6);
  const DenseMatrix C = plain_product(A, B);
  const ExactSample sample(A, 'N', B, 'N');
  EXPECT_EQ(sample.size(), 1000u);
  EXPECT_FALSE(sample.is_complete());
  EXPECT_LT(sample.errors_of(C).max, 3.0);
  for (const std::int64_t i : {0, 99})
    for (const std::int64_t j : {0, 89}) {
      DenseMatrix wrong = C;
      wrong(i, j) += 1.0;
      EXPECT_GT(sample.errors_of(wrong).max, 0x1p45) << i << ", " << j;
    }
  EXPECT_EQ(ExactSample(A, 'N', B, 'N').errors_of(C).median, sample.errors_of(C).median);
}

TEST(ExactSampleTest, ALongSumGetsFewerEntries) {
  const DenseMatrix A = random_matrix(8, 300000, 7), B = random_matrix(300000, 8, 8);
  const ExactSample sample(A, 'N', B, 'N');
  EXPECT_EQ(sample.size(), 32u);
  EXPECT_FALSE(sample.is_complete());
}

TEST(ExactSampleTest, LeavesNonFiniteRowsAndColumnsOut) {
  DenseMatrix A = random_matrix(6, 4, 9), B = random_matrix(4, 5, 10);
  A(2, 1) = infinity;
  A(4, 0) = nan;
  B(3, 4) = -infinity;
  const ExactSample sample(A, 'N', B, 'N');
  EXPECT_EQ(sample.nonfinite_rows(), 2);
  EXPECT_EQ(sample.nonfinite_cols(), 1);
  EXPECT_EQ(sample.size(), 16u);
  EXPECT_LT(sample.errors_of(plain_product(A, B)).max, 4.0);
  for (std::int64_t l = 0; l < 5; ++l) B(0, l) = nan;
  const ExactSample nothing(A, 'N', B, 'N');
  EXPECT_EQ(nothing.size(), 0u);
  EXPECT_EQ(nothing.errors_of(plain_product(A, B)).max, 0.0);
}

TEST(ExactSampleTest, TakesEmptyProducts) {
  EXPECT_EQ(ExactSample(random_matrix(0, 3, 1), 'N', random_matrix(3, 2, 1), 'N').size(), 0u);
  const ExactSample no_terms(random_matrix(2, 0, 1), 'N', random_matrix(0, 2, 1), 'N');
  EXPECT_EQ(no_terms.size(), 4u);
  DenseMatrix C = random_matrix(2, 2, 1);
  EXPECT_EQ(no_terms.errors_of(C).max, infinity);
  C.values.assign(4, 0.0);
  EXPECT_EQ(no_terms.errors_of(C).max, 0.0);
}

}  // namespace
