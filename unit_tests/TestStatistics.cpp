// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stages/KokkosOzaki_Statistics.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "Vectors.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::ChunkStatistics;
using Impl::flagged_vector;
using Impl::zero_vector;

// ---- the arithmetic
// ------------------------------------------------------------------------------------------------

TEST(FloatBits, ExponentsAndFixedPointNumbersAreExact) {
  Random random(20);
  const auto expect = [](double x, int e) {
    ASSERT_EQ(Impl::ilogb_of(Impl::bits_of(std::fabs(x))), std::ilogb(x)) << x;
    ASSERT_EQ(mpz_class(Impl::fixed15(Impl::bits_of(std::fabs(x)), e)), reference_fixed15(x, e))
        << x << ", e = " << e;
  };
  for (int trial = 0; trial < 100000; ++trial) {
    const double x = random.real(-1074, 1023);
    if (x == 0) continue;
    expect(x, std::ilogb(x));
    expect(x, std::min(1023, std::ilogb(x) + static_cast<int>(random.below(90))));
  }
  for (const double x : {5e-324, 0x1p-1023, 0x0.fffffffffffffp-1022, 0x1p-1022, 0x1.fffffffffffffp1023, 1.0})
    for (int e = std::ilogb(x); e <= 1023; ++e) expect(x, e);
}

TEST(FloatBits, BitLengthCountsBits) {
  EXPECT_EQ(Impl::bit_length(0), 0);
  for (int bits = 1; bits <= 64; ++bits) {
    const std::uint64_t top = std::uint64_t{1} << (bits - 1);
    EXPECT_EQ(Impl::bit_length(top), bits);
    EXPECT_EQ(Impl::bit_length(top | (top - 1)), bits);
  }
}

TEST(FloatBits, FiniteIsNeitherInfinityNorNan) {
  for (const double x : {0.0, -0.0, 5e-324, std::numeric_limits<double>::max()}) {
    EXPECT_TRUE(Impl::is_finite(x));
    EXPECT_TRUE(Impl::is_finite(-x));
  }
  for (const double x :
       {infinity, -infinity, quiet_nan, -quiet_nan, std::numeric_limits<double>::signaling_NaN()})
    EXPECT_FALSE(Impl::is_finite(x));
}

// ---- the stage
// -----------------------------------------------------------------------------------------------------

template <class Variant>
class StatisticsStage : public StageTest<Variant> {
 protected:
  struct Result {
    std::vector<ChunkStatistics> vectors;
    bool any_flagged;
  };

  Result run(const PlacedVectors& placed) {
    const std::int64_t count = placed.set().count, chunks = Impl::chunks_of(placed.set().length);
    // Exactly as much as the stage may write.
    std::vector<ChunkStatistics> records(static_cast<std::size_t>(count * chunks), {~std::uint64_t{0}, -77});
    std::vector<std::int32_t> exponent(static_cast<std::size_t>(count), -77);
    std::vector<std::uint64_t> square_sum(static_cast<std::size_t>(count), 77), sum = square_sum;
    const auto control = std::make_unique<Impl::Control>(Impl::Control{77, 77});
    Impl::reset_control(this->exec, control.get());
    Impl::statistics(this->exec, this->kernels, placed.set(), records.data(), exponent.data(),
                     square_sum.data(), control.get(), sum.data());
    this->exec.fence();
    EXPECT_EQ(control->gain, 0);
    Result result;
    for (std::int64_t v = 0; v < count; ++v)
      result.vectors.push_back({at(square_sum, v), at(exponent, v), static_cast<std::uint32_t>(at(sum, v))});
    result.any_flagged = control->any_flagged != 0;
    return result;
  }

  void expect_pair(const PlacedVectors& first, const PlacedVectors& second) {
    const Result of_first = run(first), of_second = run(second);
    const std::int64_t m = first.set().count, count = m + second.set().count,
                       chunks = Impl::chunks_of(first.set().length);
    std::vector<ChunkStatistics> records(static_cast<std::size_t>(count * chunks), {~std::uint64_t{0}, -77});
    std::vector<std::int32_t> exponent(static_cast<std::size_t>(count), -77);
    std::vector<std::uint64_t> square_sum(static_cast<std::size_t>(count), 77), sum = square_sum;
    const auto control = std::make_unique<Impl::Control>();
    Impl::reset_control(this->exec, control.get());
    Impl::statistics(this->exec, this->kernels, first.set(), second.set(), records.data(), exponent.data(),
                     square_sum.data(), control.get(), sum.data());
    this->exec.fence();
    EXPECT_EQ(control->any_flagged != 0, of_first.any_flagged || of_second.any_flagged);
    for (std::int64_t v = 0; v < count; ++v) {
      const ChunkStatistics& expected = v < m ? at(of_first.vectors, v) : at(of_second.vectors, v - m);
      ASSERT_EQ(at(exponent, v), expected.exponent) << "vector " << v;
      ASSERT_EQ(at(square_sum, v), expected.square_sum) << "vector " << v;
      ASSERT_EQ(at(sum, v), expected.sum) << "vector " << v;
    }
  }

  void expect(const Rows<double>& rows, const std::vector<ChunkStatistics>& expected) {
    bool any_flagged = false;
    for (const ChunkStatistics& s : expected) any_flagged = any_flagged || s.exponent == flagged_vector;
    for (const Placement& placement : placements(size_of(rows), size_of(rows.front()))) {
      const Result got = run(PlacedVectors(rows, placement));
      ASSERT_EQ(got.any_flagged, any_flagged);
      for (std::int64_t v = 0; v < size_of(rows); ++v) {
        ASSERT_EQ(at(got.vectors, v).exponent, at(expected, v).exponent)
            << placement.name << ", vector " << v;
        ASSERT_EQ(at(got.vectors, v).square_sum, at(expected, v).square_sum)
            << placement.name << ", vector " << v;
        ASSERT_EQ(at(got.vectors, v).sum, at(expected, v).sum) << placement.name << ", vector " << v;
      }
    }
  }
};
TYPED_TEST_SUITE(StatisticsStage, StageVariants, VariantNames);

TYPED_TEST(StatisticsStage, EqualsTheVectors) {
  int cases = 0;
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_stages) continue;
    SCOPED_TRACE(v.name);
    ++cases;
    std::vector<ChunkStatistics> expected;
    for (const VectorStatistics& s : v.stat_a)
      expected.push_back(s.kind == VectorStatistics::Kind::regular
                             ? ChunkStatistics{s.square_sum, s.exponent, static_cast<std::uint32_t>(s.sum)}
                         : s.kind == VectorStatistics::Kind::zero ? ChunkStatistics{0, zero_vector}
                                                                  : ChunkStatistics{0, flagged_vector});
    ASSERT_NO_FATAL_FAILURE(this->expect(v.a, expected));
  }
  EXPECT_GT(cases, 200);
}

/// One vector of a kind that is hard for some shortcut.
std::vector<double> awkward_vector(Random& random, std::int64_t length) {
  const std::int64_t kind = random.below(12);
  std::vector<double> x(static_cast<std::size_t>(length));
  for (std::int64_t l = 0; l < length; ++l) {
    const std::int64_t chunk = l / Impl::chunk_length;
    double& value = at(x, l);
    switch (kind) {
      case 0:
        value = 0.0;
        break;
      case 1:
        value = random.real(-1, 0);
        break;
      case 2:
        value = random.real(-1074, -1020);
        break;  // subnormal, and the edge
      case 3:
        value = chunk % 2 == 0 ? random.real(-1074, -1023) : random.real(-5, 5);
        break;
      case 4:
        value = random.real(-1074, 1023);
        break;
      case 5:
        value = random.real(static_cast<int>(-9 * chunk) - 3, static_cast<int>(-9 * chunk));
        break;
      case 6:
        value = random.real(static_cast<int>(7 * chunk) - 40, static_cast<int>(7 * chunk));
        break;
      case 7:
        value = chunk % 2 == 1 ? 0.0 : random.real(-3, 3);
        break;
      case 8:
        value = 0x1.fffffffffffffp700;
        break;  // (f+1)^2 = 2^32
      case 9:
        value = random.below(3) == 0 ? random.real(-20, 20) : random.below(2) == 0 ? 0.0 : -0.0;
        break;
      case 10:
        value = l == 0 ? 0x1p1023 : l + 1 == length ? -5e-324 : 0.0;
        break;
      default:
        value = std::ldexp(1.0, static_cast<int>(random.between(-40, 40)));
        break;
    }
  }
  return x;
}

TYPED_TEST(StatisticsStage, EqualsPlainLoopsForLengthsAroundTheChunk) {
  Random random(21);
  for (const std::int64_t length :
       {1, 2, 7, 8, 9, 63, 64, 65, 127, 128, 129, 191, 255, 256, 257, 300, 384, 385, 1000}) {
    SCOPED_TRACE(length);
    Rows<double> rows;
    std::vector<ChunkStatistics> expected;
    for (std::int64_t v = 0; v < 37; ++v) {  // more than one tile of 32 vectors
      rows.push_back(awkward_vector(random, length));
      expected.push_back(reference_statistics(rows.back()));
    }
    ASSERT_NO_FATAL_FAILURE(this->expect(rows, expected));
  }
}

TYPED_TEST(StatisticsStage, CountsOfVectorsAroundTheTile) {
  Random random(22);
  for (const auto& [count, length] : shapes_around_tiles({1, 2, 15, 16, 17, 31, 32, 33, 64, 65}, {5, 130})) {
    SCOPED_TRACE(count);
    Rows<double> rows;
    std::vector<ChunkStatistics> expected;
    for (std::int64_t v = 0; v < count; ++v) {
      rows.push_back(awkward_vector(random, length));
      expected.push_back(reference_statistics(rows.back()));
    }
    ASSERT_NO_FATAL_FAILURE(this->expect(rows, expected));
  }
}

TYPED_TEST(StatisticsStage, TwoSetsInOneCallEqualTwoCalls) {
  Random random(25);
  for (const std::int64_t length : {1, 127, 128, 129, 300})
    for (const auto& [first_count, second_count] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 40}, {33, 2}, {31, 65}, {64, 32}}) {
      SCOPED_TRACE(std::to_string(first_count) + " and " + std::to_string(second_count) + " vectors of " +
                   std::to_string(length));
      Rows<double> first, second;
      for (std::int64_t v = 0; v < first_count; ++v) first.push_back(awkward_vector(random, length));
      for (std::int64_t v = 0; v < second_count; ++v) second.push_back(awkward_vector(random, length));
      // flagged in neither, either or both
      const std::int64_t flagged = random.below(4);
      if (flagged & 1) at(first[static_cast<std::size_t>(random.below(first_count))], 0) = infinity;
      if (flagged & 2) at(second.back(), length - 1) = quiet_nan;
      const std::vector<Placement> places_first = placements(first_count, length),
                                   places_second = placements(second_count, length);
      for (std::size_t p = 0; p < places_first.size(); ++p) {
        const Placement& place_second = at(places_second, random.below(size_of(places_second)));
        ASSERT_NO_FATAL_FAILURE(
            this->expect_pair(PlacedVectors(first, places_first[p]), PlacedVectors(second, place_second)))
            << places_first[p].name << ", " << place_second.name;
      }
    }
}

TYPED_TEST(StatisticsStage, FlagsVectorsWithInfinityOrNan) {
  Random random(23);
  const std::int64_t length = 300;
  for (const double special :
       {infinity, -infinity, quiet_nan, -quiet_nan, std::numeric_limits<double>::signaling_NaN()})
    for (const std::int64_t position : {0, 1, 127, 128, 200, 255, 256, 299}) {
      Rows<double> rows;
      std::vector<ChunkStatistics> expected;
      for (int v = 0; v < 4; ++v) rows.push_back(awkward_vector(random, length));
      rows.push_back(std::vector<double>(static_cast<std::size_t>(length), 0.0));
      at(rows[1], position) = special;
      at(rows[4], position) = special;
      for (const auto& row : rows) expected.push_back(reference_statistics(row));
      ASSERT_EQ(expected[1].exponent, flagged_vector);
      ASSERT_EQ(expected[4].exponent, flagged_vector);
      ASSERT_NO_FATAL_FAILURE(this->expect(rows, expected));
    }
}

TYPED_TEST(StatisticsStage, ScalingByAPowerOfTwoShiftsTheExponentOnly) {
  Random random(24);
  Rows<double> rows, scaled;
  for (int v = 0; v < 20; ++v) {
    rows.emplace_back();
    scaled.emplace_back();
    const int shift = static_cast<int>(random.between(-700, 700));
    for (int l = 0; l < 200; ++l) {
      rows.back().push_back(random.real(-30, 10));
      scaled.back().push_back(std::ldexp(rows.back().back(), shift));
    }
    const ChunkStatistics x = reference_statistics(rows.back());
    ASSERT_NO_FATAL_FAILURE(this->expect({rows.back()}, {x}));
    ASSERT_NO_FATAL_FAILURE(this->expect({scaled.back()}, {{x.square_sum, x.exponent + shift, x.sum}}));
  }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
