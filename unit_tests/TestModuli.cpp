// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "impl/KokkosOzaki_Moduli.hpp"

#include <gmpxx.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "Vectors.hpp"

namespace KokkosOzaki::Testing {
namespace {

using nlohmann::json;

const json& tables() {
  static const json content = read_vectors_file("tables");
  return content;
}

template <int N>
mpz_class to_mpz(const Impl::WideInteger<N>& x) {
  mpz_class result = 0;
  for (int i = N - 1; i >= 0; --i) result = (result << 32) + x.word[i];
  return result;
}

template <int N>
Impl::WideInteger<N> to_wide(const mpz_class& x) {
  Impl::WideInteger<N> result;
  for (int i = 0; i < N; ++i)
    result.word[i] = static_cast<std::uint32_t>(mpz_class((x >> (32 * i)) & 0xFFFFFFFFul).get_ui());
  EXPECT_EQ(to_mpz(result), x) << "wider than " << 32 * N << " bits";
  return result;
}

TEST(Moduli, ArePairwiseCoprimeDecreasingAndAsSpecified) {
  const auto expected = tables().at("moduli").get<std::vector<int>>();
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(Impl::max_moduli));
  for (int i = 0; i < Impl::max_moduli; ++i) {
    EXPECT_EQ(Impl::moduli[i], at(expected, i));
    for (int j = 0; j < i; ++j) {
      EXPECT_EQ(std::gcd(Impl::moduli[i], Impl::moduli[j]), 1);
      EXPECT_LT(Impl::moduli[i], Impl::moduli[j]);
    }
  }
}

TEST(Moduli, CenteredIsTheRepresentativeAroundZero) {
  for (const std::int32_t m : Impl::moduli)
    for (std::int64_t v = -3 * m; v <= 3 * m; ++v) {
      const std::int32_t r = Impl::centered(v, m);
      ASSERT_EQ((v - r) % m, 0) << v << " mod " << m;
      ASSERT_GE(r, -(m / 2));
      ASSERT_LE(r, (m - 1) / 2);
      ASSERT_EQ(r, reference_centered(v, m));
    }
}

TEST(Moduli, ProductsAndRangesAreAsSpecified) {
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
    const std::string key = std::to_string(s);
    EXPECT_EQ(to_mpz(Impl::moduli_product(s)), mpz_class(tables().at("M").at(key).get<std::string>()));
    EXPECT_EQ(to_mpz(Impl::range_budget(s)), mpz_class(tables().at("H").at(key).get<std::string>()));
    EXPECT_EQ(to_mpz(Impl::range_budget(s)), reference_range(s));
    EXPECT_EQ(Impl::scale_cap(s), tables().at("cap").at(key).at("f64").get<int>());
    for (int t = 0; t < s; ++t) EXPECT_EQ(Impl::crt_inverse(s, t), reference_inverse(s, t));
  }
}

TEST(Moduli, CoefficientsAreAsSpecified) {
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
    const Impl::ModuliTable& table = table_of(s);
    ASSERT_EQ(table.count, s);
    EXPECT_EQ(table.digits, s <= 16 ? 8 : 10);
    for (int t = 0; t < s; ++t) {
      const std::string m = std::to_string(Impl::moduli[t]);
      EXPECT_EQ(table.modulus[t], Impl::moduli[t]);
      EXPECT_EQ(table.inverse[t], tables().at("inv_2_32").at(m).get<std::uint32_t>());
      EXPECT_EQ(table.start[t], tables().at("start").at(m).at(0).get<int>());
      EXPECT_EQ(table.quotient_weight[t], tables().at("kappa").at(m).get<int>());
      const auto residue = tables().at("res_coeff").at(m).get<std::vector<int>>();
      for (int i = 0; i < Impl::max_digits; ++i) EXPECT_EQ(table.residue_coefficient[t][i], at(residue, i));
      for (int i = Impl::max_digits; i < 12; ++i) EXPECT_EQ(table.residue_coefficient[t][i], 0);
      const auto output = tables()
                              .at("out_coeff")
                              .at(std::to_string(s))
                              .at(static_cast<std::size_t>(t))
                              .get<std::vector<int>>();
      for (int i = 0; i < 4; ++i) EXPECT_EQ(table.output_coefficient[t][i], at(output, i));
    }
  }
}

mpz_class from_signed_limbs(const std::int32_t* limb, int words) {
  mpz_class result = 0;
  for (int j = words - 1; j >= 0; --j) result = (result << 32) + limb[j];
  return result;
}

TEST(Moduli, GroupsAndLimbsMultiplyToTheProduct) {
  // W of docs/method.md for s = 2 .. 20
  const std::vector<int> words = {1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5};
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
    const Impl::ModuliTable& table = table_of(s);
    const mpz_class product = reference_product(s);
    ASSERT_EQ(table.words, at(words, s - Impl::min_moduli));
    ASSERT_EQ(table.groups, (s + 2) / 3);
    const mpz_class modulus = power_of_two(32 * table.words);
    EXPECT_EQ(mpz_class((from_signed_limbs(table.product_limb, table.words) - product) % modulus), 0) << s;
    for (int g = 0; g < table.groups; ++g) {
      mpz_class group = 1;
      for (int t = 3 * g; t < std::min(3 * g + 3, s); ++t) group *= Impl::moduli[t];
      const mpz_class limbs = from_signed_limbs(table.group_limb[g], table.words);
      EXPECT_EQ(mpz_class((limbs - product / group) % modulus), 0) << s << " group " << g;
      for (int t = 3 * g; t < std::min(3 * g + 3, s); ++t)
        EXPECT_EQ(mpz_class(table.group_weight[t]) * Impl::moduli[t], group) << s << " modulus " << t;
    }
  }
}

/// h of the number h 2^(bits - 64): at most value (1 - 2^-guard), by one unit of h at most.
void expect_budget(const Impl::Budget& budget, const json& expected, const std::string& what) {
  EXPECT_EQ(budget.bits, expected.at(1).get<int>()) << what;
  EXPECT_EQ(mpz_class(budget.h), mpz_class(expected.at(2).get<std::string>())) << what;
}

TEST(Moduli, BudgetsAreAsSpecified) {
  const json& budget = tables().at("budget");
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s)
    for (int q = 0; q <= 20; ++q) {
      const std::int64_t k = std::int64_t{1} << q;
      const std::string what = "s = " + std::to_string(s) + ", k = 2^" + std::to_string(q);
      const auto index = static_cast<std::size_t>(q);

      const json& fast = budget.at("fast").at(std::to_string(s)).at(index);
      ASSERT_EQ(Impl::guard_fast(s, k) >= 2, !fast.is_null()) << what;
      if (!fast.is_null()) {
        EXPECT_EQ(Impl::guard_fast(s, k), fast.at(0).get<int>()) << what;
        expect_budget(Impl::fast_budget(s, k), fast, what);
      }
      const json& accurate = budget.at("accurate").at(std::to_string(s)).at(index);
      if (k <= Impl::max_k_block) {
        ASSERT_EQ(Impl::guard_accurate(s, k) >= 2, !accurate.is_null()) << what;
      }
      if (!accurate.is_null()) {
        EXPECT_EQ(Impl::guard_accurate(s, k), accurate.at(0).get<int>()) << what;
        expect_budget(Impl::accurate_budget(s, k), accurate, what);
      }
      const json& complex = budget.at("accurate_complex").at(std::to_string(s)).at(index);
      if (!complex.is_null())
        expect_budget(
            Impl::reduced_budget(Impl::range_budget(s) * Impl::Product(89 * 89), complex.at(0).get<int>()),
            complex, what);
    }
}

TEST(Moduli, GuardsDependOnKRoundedUpToAPowerOfTwo) {
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s)
    for (const std::int64_t k : {3, 5, 1000, 1023, 1025, 65535, 65537, 131008, 1000000}) {
      std::int64_t power = 1;
      while (power < k) power *= 2;
      EXPECT_EQ(Impl::guard_fast(s, k), Impl::guard_fast(s, power)) << s << ", " << k;
      EXPECT_EQ(Impl::guard_accurate(s, k), Impl::guard_accurate(s, power)) << s << ", " << k;
    }
  // Largest k of the fast bound.
  for (const auto& [s, bits] : {std::pair{2, 10}, std::pair{3, 18}, std::pair{4, 26}}) {
    EXPECT_GE(Impl::guard_fast(s, std::int64_t{1} << bits), 2);
    EXPECT_LT(Impl::guard_fast(s, (std::int64_t{1} << bits) + 1), 2);
  }
}

TEST(Moduli, ReducedBudgetIsTheLargestNormalisedNumberBelow) {
  Random random(10);
  for (int trial = 0; trial < 20000; ++trial) {
    Impl::Product value;
    for (auto& word : value.word) word = static_cast<std::uint32_t>(random.bits());
    value = value >> static_cast<int>(random.below(190));
    if (value.bit_length() < 8) continue;
    const int guard = static_cast<int>(random.between(2, 80));
    const Impl::Budget budget = Impl::reduced_budget(value, guard);
    ASSERT_EQ(budget.h >> 63, 1u);
    const mpz_class exact = to_mpz(value);
    const std::int64_t bits = bit_length_of(exact);
    const mpz_class lead = scaled_floor(exact, 64 - bits);
    const mpz_class reduced = lead - (guard >= 64 ? mpz_class(1) : scaled_ceil(lead, -guard));
    // The same number: both sides scaled by 2^(64 - bits).
    ASSERT_EQ(mpz_class(budget.h) << static_cast<mp_bitcnt_t>(2),
              reduced << static_cast<mp_bitcnt_t>(2 + bits - budget.bits))
        << exact << ", guard " << guard;
  }
}

// ---- the choice of the number of moduli
// ----------------------------------------------------------------------------

using Wide = Impl::WideInteger<24>;

/// 2 sqrt(k) (1 + eta) / sqrt(H') <= c 2^-precision in integers, for every s from 2 on; 0: none.
int reference_normwise(std::int64_t k, const mpz_class& numerator_squared,
                       const mpz_class& denominator_squared, int precision, bool toward_zero) {
  const mpz_class root = sqrt(mpz_class(mpz_class(k) << 30)) + 1;
  const mpz_class left = mpz_class(toward_zero ? 16 : 4) * k * (power_of_two(30) + root) *
                         (power_of_two(30) + root) * denominator_squared * power_of_two(2 * precision);
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
    const mpz_class range = reference_range(s);
    const std::int64_t spare = bit_length_of(range) - 1 - Impl::ceil_log2(static_cast<std::uint64_t>(k));
    const std::int64_t guard = spare >= 0 ? spare / 2 : -1;
    if (guard < 2) continue;
    // (hb, h) as docs/method.md has them
    std::int64_t bits = bit_length_of(range);
    mpz_class h = scaled_floor(range, 64 - bits);
    h -= guard >= 64 ? mpz_class(1) : scaled_ceil(h, -guard);
    while (bit_length_of(h) < 64) h *= 2, --bits;
    if (left * 16 <= numerator_squared * h * power_of_two(bits)) return s;
  }
  return 0;
}

int expected_s(const json& value) {
  return value.is_null() ? 0 : value.get<int>();
}

int select(std::int64_t k, const mpz_class& numerator_squared, const mpz_class& denominator_squared,
           int precision, bool toward_zero = false) {
  return Impl::select_normwise(k, to_wide<24>(numerator_squared), to_wide<24>(denominator_squared), precision,
                               toward_zero);
}

TEST(SelectNormwise, EqualsTheVectors) {
  int entries = 0;
  for (const json& in : read_vectors_file("selection")) {
    if (in.at("kind") != "normwise") continue;
    ++entries;
    SCOPED_TRACE(in.dump());
    const auto k = in.at("k").get<std::int64_t>();
    if (in.contains("u_bits")) {
      const int precision = in.at("u_bits").get<int>();
      const mpz_class root = in.at("c_root").get<long>();
      EXPECT_EQ(select(k, 1, 1, precision), expected_s(in.at("s_c1")));
      EXPECT_EQ(select(k, root * root, 1, precision), expected_s(in.at("s_root")));
      EXPECT_EQ(select(k, mpz_class(k) * k, 1, precision), expected_s(in.at("s_k")));
      if (precision == 53) {
        EXPECT_EQ(Impl::select_normwise(k, Accuracy::normwise(1.0), Rounding::nearest_even),
                  expected_s(in.at("s_c1")));
        EXPECT_EQ(
            Impl::select_normwise(k, Accuracy::normwise(static_cast<double>(k)), Rounding::nearest_even),
            expected_s(in.at("s_k")));
      }
      continue;
    }
    for (const int precision : {53, 24}) {
      const std::string key = std::to_string(precision);
      if (in.contains("c_square")) {
        const mpz_class square = in.at("c_square").get<long>();
        EXPECT_EQ(select(k, square, 1, precision), expected_s(in.at("s").at(key)));
        EXPECT_EQ(select(k, square, 1, precision, true), expected_s(in.at("s_toward_zero").at(key)));
        if (precision == 53 && square == k) {
          EXPECT_EQ(Impl::select_normwise(k, Accuracy::normwise(), Rounding::nearest_even),
                    expected_s(in.at("s").at(key)));
          EXPECT_EQ(Impl::select_normwise(k, Accuracy::normwise(), Rounding::toward_zero),
                    expected_s(in.at("s_toward_zero").at(key)));
        }
      } else {
        const mpz_class num = in.at("c_num").get<long>(), den = in.at("c_den").get<long>();
        EXPECT_EQ(select(k, num * num, den * den, precision), expected_s(in.at("s").at(key)));
      }
    }
  }
  EXPECT_GT(entries, 30);
}

TEST(SelectNormwise, EqualsTheExactTest) {
  Random random(11);
  for (int trial = 0; trial < 3000; ++trial) {
    const std::int64_t k = random.between(1, std::int64_t{1} << random.between(1, 40));
    const mpz_class num = static_cast<long>(random.between(1, std::int64_t{1} << random.between(1, 60)));
    const mpz_class den = static_cast<long>(random.between(1, std::int64_t{1} << random.between(1, 60)));
    for (const int precision : {53, 24})
      for (const bool toward_zero : {false, true})
        ASSERT_EQ(select(k, num * num, den * den, precision, toward_zero),
                  reference_normwise(k, num * num, den * den, precision, toward_zero))
            << "k = " << k << ", c = " << num << "/" << den << ", p = " << precision;
  }
}

TEST(SelectNormwise, TakesEveryPositiveDouble) {
  Random random(12);
  const auto expect = [](std::int64_t k, double c) {
    const ExactDouble exactly = exact(c);
    const mpz_class square = exactly.mantissa * exactly.mantissa;
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero}) {
      const int expected = exactly.exponent >= 0
                               ? reference_normwise(k, square * power_of_two(2 * exactly.exponent), 1, 53,
                                                    rounding == Rounding::toward_zero)
                               : reference_normwise(k, square, power_of_two(-2 * exactly.exponent), 53,
                                                    rounding == Rounding::toward_zero);
      ASSERT_EQ(Impl::select_normwise(k, Accuracy::normwise(c), rounding), expected)
          << "k = " << k << ", c = " << c;
    }
  };
  for (int trial = 0; trial < 2000; ++trial)
    expect(random.between(1, std::int64_t{1} << random.between(1, 30)), std::fabs(random.real(-70, 70)));
  for (const double c : {5e-324, 1e-300, 0x1p-64, 0x1.fffffffffffffp-65, 0x1p64, 0x1.0000000000001p64, 1e300,
                         std::numeric_limits<double>::max()})
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{1024}, std::int64_t{131072}}) expect(k, c);
}

TEST(SelectNormwise, DefaultIsFourteenModuliForDoubleAndSevenForFloat) {
  for (std::int64_t k = 1; k <= std::int64_t{1} << 17; k += k < 2000 ? 1 : 97) {
    ASSERT_EQ(Impl::select_normwise(k, Accuracy::normwise(), Rounding::nearest_even), 14) << k;
    ASSERT_EQ(select(k, static_cast<long>(k), 1, 24), 7) << k;
  }
  ASSERT_EQ(Impl::select_normwise(std::int64_t{1} << 17, Accuracy::normwise(), Rounding::nearest_even), 14);
}

TEST(SelectNormwise, IsMonotonousInTheConstant) {
  for (const std::int64_t k : {1, 50, 4096, 131072}) {
    int previous = Impl::max_moduli;
    for (int exponent = -10; exponent <= 40; ++exponent) {
      const int s =
          Impl::select_normwise(k, Accuracy::normwise(std::ldexp(1.0, exponent)), Rounding::nearest_even);
      ASSERT_GT(s, 0);
      EXPECT_LE(s, previous) << "k = " << k << ", c = 2^" << exponent;
      previous = s;
    }
  }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
