// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stages/KokkosOzaki_Scale.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "Vectors.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::Budget;
using Impl::flagged_vector;
using Impl::zero_vector;

std::vector<std::uint64_t> square_sums(const std::vector<VectorStatistics>& statistics) {
  std::vector<std::uint64_t> result;
  for (const VectorStatistics& s : statistics) result.push_back(s.square_sum);
  return result;
}

std::int8_t reference_quantized(double x, std::int32_t e) {
  if (x == 0) return 0;
  return static_cast<std::int8_t>(mpz_class(((reference_fixed15(x, e) + 1) * 127 + 65535) / 65536).get_si());
}

// ---- the arithmetic
// ------------------------------------------------------------------------------------------------

TEST(ScaleStep, IsTheLargestPowerOfFourThatFitsTheBudget) {
  Random random(30);
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s)
    for (const std::int64_t k : {1, 100, 1024, 4096, 131008}) {
      std::vector<Budget> budgets;
      if (Impl::guard_fast(s, k) >= 2) budgets.push_back(Impl::fast_budget(s, k));
      if (Impl::guard_accurate(s, k) >= 2) budgets.push_back(Impl::accurate_budget(s, k));
      for (const Budget& budget : budgets) {
        const auto expect = [&](std::uint64_t w) {
          ASSERT_EQ(Impl::scale_step(w, budget), reference_scale_step(w, budget))
              << "s = " << s << ", w = " << w;
        };
        // On both sides of every threshold w 4^p = h 2^(hb - 64).
        for (int p = -32; p < 90; ++p) {
          const mpz_class limit = scaled_floor(mpz_class(budget.h), budget.bits - 64 - 2 * p);
          if (limit < 2 || bit_length_of(limit + 1) > 64) continue;
          ASSERT_EQ(Impl::scale_step(limit.get_ui(), budget), p);
          ASSERT_EQ(Impl::scale_step(limit.get_ui() + 1, budget), p - 1);
          expect(limit.get_ui() - 1);
        }
        for (int bit = 0; bit < 64; ++bit) {
          expect(std::uint64_t{1} << bit);
          expect(~std::uint64_t{0} >> bit);
          expect((random.bits() >> bit) | 1);
        }
      }
    }
}

TEST(Quantized, IsTheSpecifiedUpperBoundInSevenBits) {
  Random random(31);
  const auto expect = [](double x, std::int32_t e) {
    const int q = Impl::quantized(x, e);
    ASSERT_EQ(q, reference_quantized(x, e)) << x << ", e = " << e;
    ASSERT_EQ(q, Impl::quantized(-x, e));
    ASSERT_GE(q, x == 0 ? 0 : 1);
    ASSERT_LE(q, 127);
    // |x| <= q 2^(e+1) / 127
    const ExactDouble magnitude = exact(std::fabs(x));
    ASSERT_LE(magnitude.mantissa * 127 * power_of_two(magnitude.exponent + 1200),
              mpz_class(q) * power_of_two(e + 1 + 1200));
  };
  for (int f = 1; f < 65536; ++f) {
    const double x = std::ldexp(f, -15);
    expect(x, 0);
    expect(std::nextafter(x, 0.0), 0);
  }
  for (int trial = 0; trial < 50000; ++trial) {
    const double x = random.real(-1074, 1023);
    if (x != 0) expect(x, std::min(1023, std::ilogb(x) + static_cast<int>(random.below(70))));
  }
  expect(0.0, 0);
  expect(-0.0, -1074);
  expect(5e-324, 1023);
}

// ---- the fast bound
// --------------------------------------------------------------------------------------------------

/// A leading dimension of the bound product; on CUDA its columns are read in whole words.
template <class ExecutionSpace>
std::int64_t bound_product_ld(std::int64_t m) {
  return Impl::is_cuda_space_v<ExecutionSpace> ? Impl::round_up(m, Impl::vector_padding) : m + 5;
}

template <class ExecutionSpace>
class ScaleKernels : public ::testing::Test {
 protected:
  ExecutionSpace exec;

  std::vector<std::int32_t> fast(const Budget& budget, const std::vector<std::int32_t>& exponent,
                                 const std::vector<std::uint64_t>& square_sum) {
    std::vector<std::int32_t> alpha(exponent.size(), 12345);
    Impl::scale_fast(exec, budget, size_of(exponent), exponent.data(), square_sum.data(), alpha.data());
    exec.fence();
    return alpha;
  }

  void add_candidates(const Budget& budget, int cap, std::int64_t weight,
                      const std::vector<std::int32_t>& exponent, const std::vector<std::int32_t>& maxima,
                      const std::vector<std::int32_t>& fast_exponent, std::vector<std::int32_t>& candidate,
                      Impl::Control& control) {
    candidate.assign(exponent.size(), 12345);
    Impl::scale_candidates(exec, budget, cap, weight, size_of(exponent), exponent.data(), maxima.data(),
                           fast_exponent.data(), candidate.data(), &control);
    exec.fence();
  }
};
TYPED_TEST_SUITE(ScaleKernels, EnabledSpaces, SpaceNames);

TYPED_TEST(ScaleKernels, FastExponentsEqualTheVectors) {
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_stages) continue;
    SCOPED_TRACE(v.name);
    const Budget budget = Impl::fast_budget(v.num_moduli, v.k);
    EXPECT_EQ(this->fast(budget, stored_exponents(v.stat_a), square_sums(v.stat_a)),
              v.has_candidates ? v.fast_a : v.alpha_a);
    EXPECT_EQ(this->fast(budget, stored_exponents(v.stat_b), square_sums(v.stat_b)),
              v.has_candidates ? v.fast_b : v.alpha_b);
  }
}

TYPED_TEST(ScaleKernels, FastExponentsEqualPlainIntegers) {
  Random random(32);
  for (int s = 3; s <= Impl::max_moduli; ++s) {
    const Budget budget = Impl::fast_budget(s, 5000);
    std::vector<std::int32_t> exponent, expected;
    std::vector<std::uint64_t> square_sum;
    for (int v = 0; v < 300; ++v) {
      const std::int64_t kind = random.below(10);
      exponent.push_back(kind == 0   ? zero_vector
                         : kind == 1 ? flagged_vector
                                     : static_cast<std::int32_t>(random.between(-1074, 1023)));
      square_sum.push_back(kind < 2 ? 0
                                    : (std::uint64_t{1} << 30) + (random.bits() >> random.between(19, 34)));
      expected.push_back(kind < 2 ? 0
                                  : reference_scale_step(square_sum.back(), budget) + 15 - exponent.back());
    }
    EXPECT_EQ(this->fast(budget, exponent, square_sum), expected) << s;
  }
}

// ---- the accurate bound
// ------------------------------------------------------------------------------------------------

TYPED_TEST(ScaleKernels, CandidatesAndDecisionEqualTheVectors) {
  int cases = 0, candidates_taken = 0;
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_stages) continue;
    SCOPED_TRACE(v.name);
    ASSERT_EQ(v.has_candidates,
              v.accurate && Impl::guard_accurate(v.num_moduli, v.k) >= 2 && v.k <= Impl::max_k_block);
    if (!v.has_candidates) continue;
    ++cases;
    const Budget budget = Impl::accurate_budget(v.num_moduli, v.k);
    const int cap = Impl::scale_cap(v.num_moduli);
    const auto control = std::make_unique<Impl::Control>(Impl::Control{7, 7});
    Impl::reset_control(this->exec, control.get());
    std::vector<std::int32_t> candidate_a, candidate_b, alpha_a = v.fast_a, alpha_b = v.fast_b;
    this->add_candidates(budget, cap, v.n, stored_exponents(v.stat_a), v.maxima_a, v.fast_a, candidate_a,
                         *control);
    this->add_candidates(budget, cap, v.m, stored_exponents(v.stat_b), v.maxima_b, v.fast_b, candidate_b,
                         *control);
    EXPECT_EQ(candidate_a, v.candidate_a);
    EXPECT_EQ(candidate_b, v.candidate_b);
    EXPECT_EQ(control->gain > 0, v.takes_candidates);
    candidates_taken += v.takes_candidates ? 1 : 0;
    Impl::scale_choose(this->exec, v.m, candidate_a.data(), control.get(), alpha_a.data());
    Impl::scale_choose(this->exec, v.n, candidate_b.data(), control.get(), alpha_b.data());
    this->exec.fence();
    EXPECT_EQ(alpha_a, v.alpha_a);
    EXPECT_EQ(alpha_b, v.alpha_b);
  }
  EXPECT_GT(candidates_taken, 20);
  EXPECT_GT(cases - candidates_taken, 20);
}

TYPED_TEST(ScaleKernels, CandidatesEqualPlainIntegersAndTheGainIsTheirWeightedSum) {
  Random random(33);
  for (int s = 5; s <= Impl::max_moduli; ++s) {
    const Budget budget = Impl::accurate_budget(s, 2000);
    const int cap = Impl::scale_cap(s);
    const std::int64_t weight = random.between(1, 100000);
    std::vector<std::int32_t> exponent, maxima, fast, expected, candidate;
    std::int64_t gain = 0;
    for (int v = 0; v < 500; ++v) {
      const std::int64_t kind = random.below(10);
      exponent.push_back(kind == 0   ? zero_vector
                         : kind == 1 ? flagged_vector
                                     : static_cast<std::int32_t>(random.between(-1074, 1023)));
      maxima.push_back(
          kind < 3 ? 0
                   : static_cast<std::int32_t>(random.between(1, std::int64_t{1} << random.between(0, 30))));
      fast.push_back(kind < 2 ? 0 : static_cast<std::int32_t>(random.between(-1000, 1140)));
      expected.push_back(
          kind < 3 ? fast.back()
                   : std::min(cap, reference_scale_step(static_cast<std::uint64_t>(maxima.back()), budget)) -
                         1 - exponent.back());
      gain += weight * (expected.back() - fast.back());
    }
    const auto control = std::make_unique<Impl::Control>(Impl::Control{1000, 0});
    this->add_candidates(budget, cap, weight, exponent, maxima, fast, candidate, *control);
    EXPECT_EQ(candidate, expected) << s;
    EXPECT_EQ(control->gain, 1000 + gain) << s;
  }
}

TYPED_TEST(ScaleKernels, CandidatesAreTakenOnlyForAPositiveGain) {
  const std::vector<std::int32_t> candidate = {5, 6, 7}, fast = {1, 20, 3};
  for (const std::int64_t gain : {-(std::int64_t{1} << 40), std::int64_t{-1}, std::int64_t{0},
                                  std::int64_t{1}, std::int64_t{1} << 40}) {
    const auto control = std::make_unique<Impl::Control>(Impl::Control{gain, 0});
    std::vector<std::int32_t> alpha = fast;
    Impl::scale_choose(this->exec, 3, candidate.data(), control.get(), alpha.data());
    this->exec.fence();
    EXPECT_EQ(alpha, gain > 0 ? candidate : fast) << gain;
  }
}

TYPED_TEST(ScaleKernels, MaximaJoinBlocksOfTheBoundProduct) {
  Random random(34);
  for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1},
                                                                               {1, 40},
                                                                               {40, 1},
                                                                               {17, 33},
                                                                               {255, 3},
                                                                               {256, 5},
                                                                               {257, 9},
                                                                               {700, 20},
                                                                               {1023, 65},
                                                                               {2050, 130}}) {
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n));
    const std::int64_t ld = bound_product_ld<TypeParam>(m);
    std::vector<std::int32_t> rows(static_cast<std::size_t>(m + 1), 77),
        cols(static_cast<std::size_t>(n + 1), 77);
    Impl::reset_maxima(this->exec, m, rows.data());
    Impl::reset_maxima(this->exec, n, cols.data());
    std::vector<std::int32_t> expected_rows(static_cast<std::size_t>(m), 0),
        expected_cols(static_cast<std::size_t>(n), 0);
    for (int block = 0; block < 2; ++block) {
      std::vector<std::int32_t> G(static_cast<std::size_t>(ld * n), std::numeric_limits<std::int32_t>::max());
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i) {
          const auto g =
              static_cast<std::int32_t>(random.below(3) == 0 ? 0 : random.bits() >> random.between(33, 60));
          at(G, j * ld + i) = g;
          at(expected_rows, i) = std::max(at(expected_rows, i), g);
          at(expected_cols, j) = std::max(at(expected_cols, j), g);
        }
      Impl::bound_maxima(this->exec, G.data(), m, n, ld, rows.data(), cols.data());
      this->exec.fence();
    }
    expected_rows.push_back(77);  // behind the end
    expected_cols.push_back(77);
    EXPECT_EQ(rows, expected_rows);
    EXPECT_EQ(cols, expected_cols);
  }
}

// ---- quantised vectors
// ---------------------------------------------------------------------------------------------

template <class Variant>
class QuantizeStage : public StageTest<Variant> {
 protected:
  /// Quantises, checks every byte and the padding, and leaves the plane.
  void expect(const Rows<double>& rows, const std::vector<std::int32_t>& exponent,
              std::vector<std::int8_t>& plane) {
    const std::int64_t count = size_of(rows), length = size_of(rows.front());
    const std::int64_t ld = Impl::round_up(length, Impl::k_padding),
                       padded = Impl::round_up(count, Impl::vector_padding);
    constexpr std::int8_t poison = 0x55;
    for (const Placement& placement : placements(count, length)) {
      const PlacedVectors placed(rows, placement);
      const auto memory = buffer<std::int8_t>(ld * padded + 64, poison);
      Impl::quantize(this->exec, this->kernels, placed.set(), exponent.data(), memory.data(), ld, padded);
      this->exec.fence();
      for (std::int64_t v = 0; v < padded; ++v)
        for (std::int64_t l = 0; l < ld; ++l) {
          const bool inside = v < count && l < length && Impl::has_exponent(at(exponent, v));
          const std::int8_t expected =
              inside ? reference_quantized(at(rows, v, l), at(exponent, v)) : std::int8_t{0};
          ASSERT_EQ(memory(static_cast<std::size_t>(v * ld + l)), expected)
              << placement.name << ", vector " << v << ", position " << l;
        }
      for (std::int64_t i = 0; i < 64; ++i)
        ASSERT_EQ(memory(static_cast<std::size_t>(ld * padded + i)), poison);
      plane.assign(memory.data(), memory.data() + ld * padded);
    }
  }
};
TYPED_TEST_SUITE(QuantizeStage, StageVariants, VariantNames);

TYPED_TEST(QuantizeStage, GivesTheMaximaOfTheVectors) {
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_candidates) continue;
    SCOPED_TRACE(v.name);
    const std::int64_t ld = Impl::round_up(v.k, Impl::k_padding);
    std::vector<std::int8_t> qA, qB;
    ASSERT_NO_FATAL_FAILURE(this->expect(v.a, stored_exponents(v.stat_a), qA));
    ASSERT_NO_FATAL_FAILURE(this->expect(v.b, stored_exponents(v.stat_b), qB));
    const std::int64_t ldg = bound_product_ld<typename TypeParam::ExecutionSpace>(v.m);
    std::vector<std::int32_t> G(static_cast<std::size_t>(ldg * v.n), 0);
    for (std::int64_t j = 0; j < v.n; ++j)
      for (std::int64_t i = 0; i < v.m; ++i)
        for (std::int64_t l = 0; l < ld; ++l) at(G, j * ldg + i) += at(qA, i * ld + l) * at(qB, j * ld + l);
    std::vector<std::int32_t> rows(static_cast<std::size_t>(v.m), 0), cols(static_cast<std::size_t>(v.n), 0);
    Impl::bound_maxima(this->exec, G.data(), v.m, v.n, ldg, rows.data(), cols.data());
    this->exec.fence();
    EXPECT_EQ(rows, v.maxima_a);
    EXPECT_EQ(cols, v.maxima_b);
  }
}

TYPED_TEST(QuantizeStage, EqualsPlainIntegersAndPadsWithZeros) {
  Random random(35);
  std::vector<std::int8_t> plane;
  for (const auto& [count, length] :
       shapes_around_tiles({1, 15, 16, 33}, {1, 2, 63, 64, 65, 127, 128, 129, 192, 200, 257})) {
    SCOPED_TRACE(std::to_string(count) + " vectors of " + std::to_string(length));
    Rows<double> rows;
    std::vector<std::int32_t> exponent;
    for (std::int64_t v = 0; v < count; ++v) {
      const std::int64_t kind = random.below(6);
      rows.emplace_back();
      for (std::int64_t l = 0; l < length; ++l)
        rows.back().push_back(random.below(5) == 0 ? -0.0
                              : kind == 0          ? random.real(-1074, -1030)
                              : kind == 1          ? random.real(-1074, 1023)
                                                   : random.real(-20, 20));
      std::int32_t e = reference_statistics(rows.back()).exponent;
      if (kind == 2) {
        rows.back()[static_cast<std::size_t>(random.below(length))] = quiet_nan;
        e = flagged_vector;
      } else if (e != zero_vector && kind == 3) {
        e += static_cast<std::int32_t>(random.below(30));  // the vector goes on with larger entries
      }
      exponent.push_back(e);
    }
    ASSERT_NO_FATAL_FAILURE(this->expect(rows, exponent, plane));
  }
}

TYPED_TEST(QuantizeStage, WhatTheDeviceSkipsMayBeLeftUndone) {
  const bool skips = Impl::is_cuda_space_v<typename TypeParam::ExecutionSpace> && this->kernels != nullptr;
  // The second has more tiles than teams, where all may be skipped.
  for (const auto& [count, length] : {std::pair<std::int64_t, std::int64_t>{33, 200}, {64, 140000}}) {
    Rows<double> rows(static_cast<std::size_t>(count));
    for (std::int64_t v = 0; v < count; ++v)
      for (std::int64_t l = 0; l < length; ++l)
        at(rows, v).push_back(std::ldexp(static_cast<double>(64 + (v * 31 + l * 7 + l / 128) % 64), -6));
    const std::vector<std::int32_t> exponent(rows.size(), 0);
    const PlacedVectors placed(rows, placements(count, length).front());
    const std::int64_t ld = Impl::round_up(length, Impl::k_padding),
                       padded = Impl::round_up(count, Impl::vector_padding);
    constexpr std::int8_t poison = 0x55;
    const auto flag = buffer<std::int32_t>(1, 0);
    const auto quantized = [&](const std::int32_t* skip) {
      const auto memory = buffer<std::int8_t>(ld * padded, poison);
      Impl::quantize(this->exec, this->kernels, placed.set(), exponent.data(), memory.data(), ld, padded,
                     Impl::QuantizeDown{2}, skip);
      this->exec.fence();
      return std::vector<std::int8_t>(memory.data(), memory.data() + memory.size());
    };
    std::vector<std::int8_t> expected(static_cast<std::size_t>(ld * padded), 0);
    for (std::int64_t v = 0; v < count; ++v)
      for (std::int64_t l = 0; l < length; ++l)
        at(expected, v * ld + l) = Impl::QuantizeDown{2}(Impl::magnitude_bits(at(rows, v, l)), 0);
    // As truths: a difference of millions of numbers would be printed.
    EXPECT_TRUE(quantized(nullptr) == expected);
    EXPECT_TRUE(quantized(flag.data()) == expected);
    flag(0) = 1;
    EXPECT_TRUE(quantized(flag.data()) ==
                (skips ? std::vector<std::int8_t>(expected.size(), poison) : expected));
  }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
