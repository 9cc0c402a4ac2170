// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "impl/KokkosOzaki_WideInteger.hpp"

#include <gmpxx.h>
#include <gtest/gtest.h>

#include "StageTestSupport.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::WideInteger;

template <int N>
mpz_class to_mpz(const WideInteger<N>& x) {
  mpz_class result = 0;
  for (int i = N - 1; i >= 0; --i) result = (result << 32) + x.word[i];
  return result;
}

template <int N>
mpz_class modulo_width(const mpz_class& x) {
  mpz_class result;
  mpz_fdiv_r_2exp(result.get_mpz_t(), x.get_mpz_t(), 32 * N);
  return result;
}

/// Random words with a random number of leading zeros, and often words of only zeros or ones.
template <int N>
WideInteger<N> random_wide(Random& random) {
  WideInteger<N> x;
  const std::int64_t words = random.between(0, N);
  for (std::int64_t i = 0; i < words; ++i) {
    const std::int64_t kind = random.below(6);
    x.word[i] = kind == 0 ? 0u : kind == 1 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(random.bits() >> 32);
  }
  if (words > 0) x.word[words - 1] >>= random.below(32);
  return x;
}

template <class Size>
class WideIntegerOfWords : public ::testing::Test {};

template <int N>
struct Words {
  static constexpr int value = N;
};
using Sizes = ::testing::Types<Words<2>, Words<3>, Words<6>, Words<24>>;
TYPED_TEST_SUITE(WideIntegerOfWords, Sizes);

TYPED_TEST(WideIntegerOfWords, ArithmeticEqualsGmp) {
  constexpr int N = TypeParam::value;
  Random random(1);
  for (int trial = 0; trial < 20000; ++trial) {
    const auto x = random_wide<N>(random), y = random_wide<N>(random);
    const mpz_class a = to_mpz(x), b = to_mpz(y);
    ASSERT_EQ(to_mpz(x * y), modulo_width<N>(a * b)) << a << " * " << b;
    ASSERT_EQ(to_mpz(x + y), modulo_width<N>(a + b)) << a << " + " << b;
    ASSERT_EQ(x <= y, a <= b) << a << " <= " << b;
    ASSERT_EQ(x == y, a == b) << a << " == " << b;
    ASSERT_TRUE(x <= x && x == x);
    ASSERT_EQ(x.bit_length(), sgn(a) == 0 ? 0 : static_cast<int>(mpz_sizeinbase(a.get_mpz_t(), 2))) << a;
    ASSERT_EQ(x.low64(), mpz_class(modulo_width<2>(a)).get_ui()) << a;

    const auto divisor = static_cast<std::uint32_t>(random.between(1, 0xFFFFFFFF) >> random.below(32));
    if (divisor == 0) continue;
    ASSERT_EQ(to_mpz(x.div(divisor)), mpz_class(a / divisor)) << a << " / " << divisor;
    ASSERT_EQ(x.mod(divisor), mpz_class(a % divisor).get_ui()) << a << " % " << divisor;
  }
}

TYPED_TEST(WideIntegerOfWords, ShiftsEqualGmpForEveryDistance) {
  constexpr int N = TypeParam::value;
  Random random(2);
  for (int shift = 0; shift < 32 * N + 40; ++shift)
    for (int trial = 0; trial < 20; ++trial) {
      const auto x = random_wide<N>(random);
      const mpz_class a = to_mpz(x);
      mpz_class left = a, right = a;
      left <<= static_cast<mp_bitcnt_t>(shift);
      right >>= static_cast<mp_bitcnt_t>(shift);
      ASSERT_EQ(to_mpz(x << shift), modulo_width<N>(left)) << a << " << " << shift;
      ASSERT_EQ(to_mpz(x >> shift), right) << a << " >> " << shift;
    }
}

TYPED_TEST(WideIntegerOfWords, ConstructsFrom64Bits) {
  constexpr int N = TypeParam::value;
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0xFFFFFFFFu},
                                    std::uint64_t{0x100000000u}, ~std::uint64_t{0}})
    EXPECT_EQ(to_mpz(WideInteger<N>(value)), mpz_class(value));
}

TEST(CeilLog2, IsTheSmallestExponent) {
  const auto expect = [](std::uint64_t n) {
    const int b = Impl::ceil_log2(n);
    EXPECT_LE(mpz_class(n), mpz_class(1) << static_cast<mp_bitcnt_t>(b)) << n;
    if (b > 0) {
      EXPECT_GT(mpz_class(n), mpz_class(1) << static_cast<mp_bitcnt_t>(b - 1)) << n;
    }
  };
  for (std::uint64_t n = 1; n < 5000; ++n) expect(n);
  for (int bit = 0; bit < 64; ++bit)
    for (const std::uint64_t offset : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}})
      if (const std::uint64_t n = (std::uint64_t{1} << bit) + offset; n != 0) expect(n);
  expect(~std::uint64_t{0});
}

}  // namespace
}  // namespace KokkosOzaki::Testing
