// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stages/KokkosOzaki_Residues.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "Vectors.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::flagged_vector;
using Impl::ModuliTable;
using Impl::ScaledInteger;
using Impl::zero_vector;

mpz_class to_mpz(const ScaledInteger& a) {
  return (mpz_class(a.high) << 64) + mpz_class(a.low);
}

ScaledInteger to_scaled(const mpz_class& a) {
  const mpz_class low = a & mpz_class(~0ul);
  return {low.get_ui(), static_cast<std::int32_t>(mpz_class((a - low) >> 64).get_si())};
}

/// |a'| never exceeds this: fast bound 2^62.4, accurate bound 2^62 and 2^78.
mpz_class largest_magnitude(int num_moduli) {
  return num_moduli <= 16 ? mpz_class(sqrt(reference_range(16))) : power_of_two(78);
}

// ---- scaled integers and their digits
// ------------------------------------------------------------------------------

void expect_scaled(double x, std::int32_t alpha) {
  for (const bool toward_zero : {false, true})
    for (const double value : {x, -x})
      ASSERT_EQ(to_mpz(Impl::scaled_integer(value, alpha, toward_zero)),
                reference_integer(value, alpha, toward_zero))
          << std::hexfloat << value << " 2^" << alpha << (toward_zero ? " toward zero" : " to nearest");
}

TEST(ScaledInteger, EqualsExactRounding) {
  Random random(40);
  for (int trial = 0; trial < 200000; ++trial) {
    const double x = random.real(-1074, 1023);
    if (x == 0) continue;
    // |a'| < 2^(top + 1), up to 78 bits; far below one half, too.
    const int top = static_cast<int>(random.between(-70, 77));
    expect_scaled(x, top - std::ilogb(x));
  }
}

TEST(ScaledInteger, TiesGoToEven) {
  for (int bits = 1; bits <= 52; ++bits)  // bits of the integer part
    for (const int integer : {0, 1, 2, 3, -1, -2}) {
      const double base = std::ldexp(1.0, bits) + integer;
      for (const double rest : {0.25, 0.5, 0.75})
        for (const int alpha : {-900, -30, 0, 7, 1000}) expect_scaled(std::ldexp(base + rest, -alpha), alpha);
    }
  for (const double x : {0.5, 1.5, 2.5, 0x1.fffffffffffffp-2, 0x1.0000000000001p-1, 0x1.8p-1})
    for (int alpha = -3; alpha <= 3; ++alpha) expect_scaled(x, alpha);
  EXPECT_EQ(to_mpz(Impl::scaled_integer(0.5, 0, false)), 0);
  EXPECT_EQ(to_mpz(Impl::scaled_integer(1.5, 0, false)), 2);
  EXPECT_EQ(to_mpz(Impl::scaled_integer(-2.5, 0, false)), -2);
  EXPECT_EQ(to_mpz(Impl::scaled_integer(-2.5, 0, true)), -2);
  EXPECT_EQ(to_mpz(Impl::scaled_integer(-1.75, 0, true)), -1);
}

TEST(ScaledInteger, ZerosSubnormalsAndTheLargestNumbers) {
  for (const std::int32_t alpha : {-1000, -1, 0, 1, 62, 78, 1000}) {
    EXPECT_EQ(to_mpz(Impl::scaled_integer(0.0, alpha, false)), 0);
    EXPECT_EQ(to_mpz(Impl::scaled_integer(-0.0, alpha, false)), 0);
  }
  for (const double x :
       {5e-324, 0x1p-1073, 0x0.8p-1022, 0x0.fffffffffffffp-1022, 0x1p-1022, 0x1.fffffffffffffp1023})
    for (int top = -60; top <= 77; ++top) expect_scaled(x, top - std::ilogb(x));
  expect_scaled(0x1p0, 62);
  expect_scaled(0x1p0, 78);
  expect_scaled(0x1.fffffffffffffp0, 61);
  expect_scaled(0x1.fffffffffffffp0, 77);
}

TEST(SignedDigits, ReconstructTheInteger) {
  const auto expect = [](const mpz_class& a, int digits) {
    std::int8_t digit[Impl::max_digits];
    Impl::signed_digits(to_scaled(a), digit);
    mpz_class sum = 0;
    for (int i = digits - 1; i >= 0; --i) sum = sum * 256 + digit[i];
    ASSERT_EQ(sum, a) << digits << " digits";
  };
  const mpz_class widest_8 = mpz_class("7F7F7F7F7F7F7F7F", 16),
                  widest_10 = mpz_class("7F7F7F7F7F7F7F7F7F7F", 16);
  Random random(41);
  for (const mpz_class& widest : {widest_8, widest_10}) {
    for (int offset = 0; offset < 300; ++offset) {
      expect(widest - offset, Impl::max_digits);
      expect(offset - widest, Impl::max_digits);
      expect(offset - 150, Impl::max_digits);
      expect(offset - 150, 8);
    }
  }
  expect(widest_8, 8);
  expect(-widest_8, 8);
  for (int trial = 0; trial < 200000; ++trial) {
    const mpz_class a = mpz_class(random.bits()) * mpz_class(random.bits());
    const mpz_class wide = (a >> static_cast<mp_bitcnt_t>(random.between(49, 128)));
    expect(wide, Impl::max_digits);
    expect(-wide, Impl::max_digits);
    const mpz_class narrow = a >> static_cast<mp_bitcnt_t>(random.between(66, 128));
    expect(narrow, 8);
    expect(-narrow, 8);
  }
}

// ---- residues of one number
// ------------------------------------------------------------------------------------------

TEST(FinishResidue, IsExactForEveryModulusAndEveryTBelowTwoToThe20) {
  const ModuliTable& table = table_of(Impl::max_moduli);
  for (int p = 1; p < Impl::max_moduli; ++p) {
    const std::int32_t m = table.modulus[p];
    int expected = 0;  // the centered residue of T, by counting
    for (std::int32_t T = 0; T < 1 << 20; ++T) {
      const int got = Impl::finish_residue(T, m, table.inverse[p]);
      if (got != expected)
        FAIL() << "T = " << T << " mod " << m << ": expected " << expected << ", got " << got;
      expected = expected == (m - 1) / 2 ? -(m - 1) / 2 : expected + 1;
    }
  }
}

TEST(ResidueOf, EqualsTheCenteredResidue) {
  Random random(42);
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
    const ModuliTable& table = table_of(s);
    const mpz_class widest =
        s <= 16 ? mpz_class("7F7F7F7F7F7F7F7F", 16) : mpz_class("7F7F7F7F7F7F7F7F7F7F", 16);
    std::vector<mpz_class> values = {0, 1, -1, 127, 128, -128, -129, 255, 256, widest, widest - 1};
    for (int trial = 0; trial < 3000; ++trial) {
      const mpz_class a = mpz_class(random.bits()) * mpz_class(random.bits());
      values.push_back((a >> static_cast<mp_bitcnt_t>(random.below(128))) % (widest + 1));
    }
    for (const mpz_class& magnitude : values)
      for (const mpz_class& a : {magnitude, mpz_class(-magnitude)}) {
        std::int8_t digit[Impl::max_digits];
        Impl::signed_digits(to_scaled(a), digit);
        for (int p = 0; p < s; ++p)
          ASSERT_EQ(Impl::residue_of(digit, table, p), reference_centered(a, table.modulus[p]))
              << a << " mod " << table.modulus[p];
      }
  }
}

TEST(ResidueFp64Chain, EqualsTheIntegerResidue) {
  Random random(43);
  const auto expect = [](double scaled) {
    const mpz_class a(scaled);
    for (const std::int32_t m : Impl::moduli)
      ASSERT_EQ(Impl::residue_fp64_chain(scaled, m), reference_centered(a, m))
          << std::hexfloat << scaled << " mod " << m;
  };
  for (int trial = 0; trial < 100000; ++trial) {
    const double x = std::rint(random.real(0, static_cast<int>(random.between(1, 61))));
    expect(x);
    expect(-x);
  }
  for (int bit = 0; bit <= 62; ++bit)
    for (int offset = -300; offset <= 300; ++offset) {
      const double x = std::ldexp(1.0, bit) + offset;
      if (std::fabs(x) <= 0x1p62) {
        expect(x);
        expect(-x);
      }
    }
  // Multiples of m and of m/2, and their neighbours.
  for (const std::int32_t m : Impl::moduli)
    for (int trial = 0; trial < 500; ++trial) {
      const double multiple = static_cast<double>(random.bits() >> random.between(2, 60)) * m;
      if (multiple > 0x1p61) continue;
      for (const int offset : {-m / 2 - 1, -m / 2, -m / 2 + 1, -1, 0, 1, m / 2 - 1, m / 2, m / 2 + 1})
        expect(multiple + offset);
    }
}

// ---- the stage
// -----------------------------------------------------------------------------------------------------

template <class Variant>
class ResiduesStage : public StageTest<Variant> {
 protected:
  /// \brief Converts one block of k and checks every byte: residues, zeros of flagged vectors, padding, gaps.
  /// \param expected  [p][vector][position]
  void expect(const PlacedVectors& placed, std::int64_t first, std::int64_t length,
              const std::vector<std::int32_t>& exponent, const std::vector<std::int32_t>& alpha,
              int num_moduli, bool toward_zero, const std::vector<Rows<int>>& expected,
              const std::string& what) {
    constexpr std::int8_t poison = 0x55;
    constexpr std::int64_t gap = 64;
    const Impl::VectorSet<double> vectors = placed.positions(first, length);
    const std::int64_t ld = Impl::round_up(length, Impl::k_padding);
    for (const std::int64_t padded : {Impl::round_up(vectors.count, Impl::vector_padding), vectors.count}) {
      const std::int64_t plane_stride = ld * padded + gap;
      const auto memory = buffer<std::int8_t>(plane_stride * num_moduli, poison);
      Impl::residues(this->exec, this->kernels, vectors, exponent.data(), alpha.data(), &table_of(num_moduli),
                     num_moduli, toward_zero, {memory.data(), plane_stride, ld, padded});
      this->exec.fence();
      for (std::int64_t p = 0; p < num_moduli; ++p) {
        const std::int8_t* plane = memory.data() + p * plane_stride;
        for (std::int64_t v = 0; v < padded; ++v)
          for (std::int64_t l = 0; l < ld; ++l) {
            const bool inside = v < vectors.count && l < length && at(exponent, v) != flagged_vector;
            const int want = inside ? at(at(expected, p), v, first + l) : 0;
            if (plane[v * ld + l] != want)
              FAIL() << what << ", modulus " << p << ", vector " << v << ", position " << l << ": expected "
                     << want << ", got " << static_cast<int>(plane[v * ld + l]);
          }
        for (std::int64_t i = 0; i < gap; ++i)
          ASSERT_EQ(plane[ld * padded + i], poison) << "behind plane " << p;
      }
    }
  }
};
TYPED_TEST_SUITE(ResiduesStage, StageVariants, VariantNames);

TEST(ResiduesVectors, IntegersEqualTheVectors) {
  int cases = 0;
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_residues) continue;
    SCOPED_TRACE(v.name);
    ++cases;
    for (std::int64_t i = 0; i < v.m; ++i)
      for (std::int64_t l = 0; l < v.k; ++l) {
        EXPECT_EQ(to_mpz(Impl::scaled_integer(at(v.a, i, l), at(v.alpha_a, i), v.toward_zero)),
                  at(v.integer_a, i, l));
        EXPECT_EQ(reference_integer(at(v.a, i, l), at(v.alpha_a, i), v.toward_zero), at(v.integer_a, i, l));
      }
  }
  EXPECT_GT(cases, 150);
}

/// [p][vector][position] from multi-precision integers; zeros for flagged vectors.
std::vector<Rows<int>> reference_residues(const Rows<double>& rows, const std::vector<std::int32_t>& exponent,
                                          const std::vector<std::int32_t>& alpha, int num_moduli,
                                          bool toward_zero) {
  std::vector<Rows<int>> planes(static_cast<std::size_t>(num_moduli), Rows<int>(rows.size()));
  for (std::int64_t v = 0; v < size_of(rows); ++v)
    for (const double x : at(rows, v)) {
      const mpz_class a =
          at(exponent, v) == flagged_vector ? mpz_class(0) : reference_integer(x, at(alpha, v), toward_zero);
      for (int p = 0; p < num_moduli; ++p)
        at(at(planes, p), v).push_back(reference_centered(a, Impl::moduli[p]));
    }
  return planes;
}

TYPED_TEST(ResiduesStage, EqualsTheVectorsInEveryPlacement) {
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_stages) continue;
    SCOPED_TRACE(v.name);
    const std::vector<std::int32_t> exponent = stored_exponents(v.stat_a);
    const std::vector<Rows<int>> expected =
        v.has_residues ? v.residue_a
                       : reference_residues(v.a, exponent, v.alpha_a, v.num_moduli, v.toward_zero);
    for (const Placement& placement : placements(v.m, v.k)) {
      const PlacedVectors placed(v.a, placement);
      const std::int64_t block = v.k_block != 0 ? v.k_block : v.k;
      for (std::int64_t first = 0; first < v.k; first += block)
        ASSERT_NO_FATAL_FAILURE(this->expect(placed, first, std::min(block, v.k - first), exponent, v.alpha_a,
                                             v.num_moduli, v.toward_zero, expected, placement.name));
    }
  }
}

TYPED_TEST(ResiduesStage, EqualsPlainIntegersForSizesAroundTilesAndBlocks) {
  Random random(44);
  for (const auto& [count, length] :
       shapes_around_tiles({1, 16, 31, 33}, {1, 2, 63, 64, 65, 127, 128, 129, 191, 193, 257})) {
    const int num_moduli = static_cast<int>(random.between(Impl::min_moduli, Impl::max_moduli));
    const bool toward_zero = random.below(2) == 0;
    const auto top = static_cast<int>(bit_length_of(largest_magnitude(num_moduli))) - 2;
    SCOPED_TRACE(std::to_string(count) + " vectors of " + std::to_string(length) +
                 ", s = " + std::to_string(num_moduli));
    Rows<double> rows;
    std::vector<std::int32_t> exponent, alpha;
    for (std::int64_t v = 0; v < count; ++v) {
      const std::int64_t kind = random.below(6);
      const auto base = static_cast<int>(random.between(-900, 900));
      rows.emplace_back();
      for (std::int64_t l = 0; l < length; ++l)
        rows.back().push_back(random.below(6) == 0 ? (random.below(2) == 0 ? 0.0 : -0.0)
                              : kind == 0          ? random.real(-1074, -1020)
                              : kind == 1          ? random.real(base - 100, base)
                              : kind == 2 ? std::ldexp(static_cast<double>(random.between(-4000, 4000)), base)
                                          : random.real(base - 8, base));
      const std::int32_t e = reference_statistics(rows.back()).exponent;
      exponent.push_back(e);
      alpha.push_back(
          e == zero_vector ? 0 : static_cast<std::int32_t>(random.between(kind == 2 ? 8 : top - 6, top)) - e);
      if (kind == 5) {
        rows.back()[static_cast<std::size_t>(random.below(length))] =
            random.below(2) == 0 ? quiet_nan : -infinity;
        exponent.back() = flagged_vector;
        alpha.back() = 0;
      }
    }
    const std::vector<Rows<int>> expected =
        reference_residues(rows, exponent, alpha, num_moduli, toward_zero);
    for (const Placement& placement : placements(count, length))
      ASSERT_NO_FATAL_FAILURE(this->expect(PlacedVectors(rows, placement), 0, length, exponent, alpha,
                                           num_moduli, toward_zero, expected, placement.name));
  }
}

TYPED_TEST(ResiduesStage, TwoOperandsInOneCallEqualTwoCalls) {
  Random random(46);
  constexpr std::int8_t poison = 0x55;
  const auto rows_of_length = [&](std::int64_t count, std::int64_t length) {
    Rows<double> rows;
    for (std::int64_t v = 0; v < count; ++v) {
      rows.emplace_back();
      for (std::int64_t l = 0; l < length; ++l)
        rows.back().push_back(random.below(6) == 0 ? 0.0 : random.real(-60, 0));
    }
    return rows;
  };
  for (const std::int64_t length : {1, 64, 65, 129, 300})
    for (const auto& [first_count, second_count] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 1}, {1, 40}, {33, 2}, {31, 65}, {64, 16}})
      for (const int s : {2, 14, 16, 17, 20}) {
        SCOPED_TRACE(std::to_string(first_count) + " and " + std::to_string(second_count) + " vectors of " +
                     std::to_string(length) + ", s = " + std::to_string(s));
        const std::int64_t ld = Impl::round_up(length, Impl::k_padding);
        const bool toward_zero = random.below(2) == 0;
        std::vector<std::int64_t> counts = {first_count, second_count};
        std::vector<std::unique_ptr<PlacedVectors>> placed;
        std::vector<std::vector<std::int32_t>> exponent(2), alpha(2);
        std::vector<Impl::ResidueOperand> single, pair;
        std::vector<Kokkos::View<std::int8_t*, SharedSpace>> expected, got;
        for (std::size_t side = 0; side < 2; ++side) {
          const std::int64_t count = counts[side], padded = Impl::round_up(count, Impl::vector_padding),
                             plane_stride = ld * padded + 64;
          const std::vector<Placement> places = placements(count, length);
          placed.push_back(std::make_unique<PlacedVectors>(rows_of_length(count, length),
                                                           at(places, random.below(size_of(places)))));
          for (std::int64_t v = 0; v < count; ++v) {
            exponent[side].push_back(random.below(10) == 0 ? flagged_vector : 0);
            alpha[side].push_back(static_cast<std::int32_t>(random.between(0, s <= 16 ? s : 70)));
          }
          for (auto* memory : {&expected, &got})
            memory->push_back(buffer<std::int8_t>(plane_stride * s, poison));
          for (auto* operands : {&single, &pair})
            operands->push_back(
                {placed[side]->set(),
                 exponent[side].data(),
                 alpha[side].data(),
                 {(operands == &single ? expected : got)[side].data(), plane_stride, ld, padded}});
        }
        for (const Impl::ResidueOperand& operand : single)
          Impl::residues(this->exec, this->kernels, operand, Impl::ResidueOperand{}, &table_of(s), s,
                         toward_zero);
        Impl::residues(this->exec, this->kernels, pair[0], pair[1], &table_of(s), s, toward_zero);
        this->exec.fence();
        for (std::size_t side = 0; side < 2; ++side)
          for (std::size_t i = 0; i < expected[side].extent(0); ++i)
            ASSERT_EQ(expected[side](i), got[side](i)) << "operand " << side << ", byte " << i;
      }
}

TYPED_TEST(ResiduesStage, LargestIntegersForEveryNumberOfModuli) {
  Random random(45);
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s)
    for (const bool toward_zero : {false, true}) {
      SCOPED_TRACE(s);
      const mpz_class limit = s == Impl::min_moduli ? mpz_class(sqrt(reference_range(s)))
                              : s <= 16             ? power_of_two(62)
                                                    : power_of_two(78);
      const auto top = static_cast<int>(bit_length_of(limit)) - 1;
      Rows<double> rows;
      std::vector<std::int32_t> exponent, alpha;
      for (const int e : {-1074, -1022, -300, 0, 1, 500, 1023}) {
        rows.emplace_back();
        const double one = std::ldexp(1.0, e);
        for (int l = 0; l < 40; ++l) {
          rows.back().push_back(l % 2 == 0 ? one : -one);
          rows.back().push_back(random.real(e - 1, e - 1));
          rows.back().push_back(std::nextafter(one, 0.0));
        }
        exponent.push_back(e);
        alpha.push_back(top - e);
      }
      const std::vector<Rows<int>> expected = reference_residues(rows, exponent, alpha, s, toward_zero);
      for (const Placement& placement : placements(size_of(rows), size_of(rows.front())))
        ASSERT_NO_FATAL_FAILURE(this->expect(PlacedVectors(rows, placement), 0, size_of(rows.front()),
                                             exponent, alpha, s, toward_zero, expected, placement.name));
    }
}

/// Whether subnormal numbers count depends on the exponent of their vector.
TYPED_TEST(ResiduesStage, SubnormalNumbersBesideLargerOnes) {
  Random random(47);
  constexpr double least = std::numeric_limits<double>::denorm_min(),
                   normal = std::numeric_limits<double>::min();
  for (const int s : {2, 14, 16, 17, 20})
    for (const bool toward_zero : {false, true}) {
      SCOPED_TRACE(s);
      const int top = s == 2 ? 6 : s <= 16 ? 60 : 76;
      Rows<double> rows;
      std::vector<std::int32_t> exponent, alpha;
      for (const int a :
           {940, 1008, 1009, 1010, 1011, 1012, 1013, 1019, 1020, 1021, 1022, 1023, 1024, 1030, 1050, 1080}) {
        const int e = std::max(top - a, -1074);
        rows.emplace_back();
        for (int l = 0; l < 35; ++l)
          for (const double x :
               {std::ldexp(1.0, e), least, -least, normal - least, -normal, random.real(-1074, e), 0.0, -0.0})
            rows.back().push_back(std::abs(x) <= std::ldexp(1.0, e) ? x : 0.0);
        exponent.push_back(e);
        alpha.push_back(a);
      }
      const std::vector<Rows<int>> expected = reference_residues(rows, exponent, alpha, s, toward_zero);
      for (const Placement& placement : placements(size_of(rows), size_of(rows.front())))
        ASSERT_NO_FATAL_FAILURE(this->expect(PlacedVectors(rows, placement), 0, size_of(rows.front()),
                                             exponent, alpha, s, toward_zero, expected, placement.name));
    }
}

#if defined(KOKKOS_ENABLE_CUDA)
/// [lane][value] of 32 lanes: what digit_products takes and gives.
template <int Words>
struct DigitProductsFunctor {
  using Policy = Kokkos::TeamPolicy<Kokkos::Cuda>;
  const std::uint32_t* rows;    // 2 Words
  const std::uint32_t* column;  // Words
  std::int32_t start;
  std::int32_t* sums;  // 4

  __device__ void operator()(const Policy::member_type& team) const {
    const int lane = team.team_rank();
    std::uint32_t of_lane[Words][2], coefficient[Words];
    for (int w = 0; w < Words; ++w) {
      for (int i = 0; i < 2; ++i) of_lane[w][i] = rows[(lane * Words + w) * 2 + i];
      coefficient[w] = column[lane * Words + w];
    }
    const int4 first = make_int4(start, start + 1, start + 2, start + 3);
    std::int32_t sum[4];
    Impl::CudaStages::digit_products<Words>(first, of_lane, coefficient, sum);
    for (int i = 0; i < 4; ++i) sums[4 * lane + i] = sum[i];
  }
};

template <int Words>
void expect_digit_products() {
  SCOPED_TRACE(Words);
  Random random(48);
  constexpr std::int32_t start = 0x4B100000;
  const auto rows = buffer<std::uint32_t>(32 * Words * 2, 0), column = buffer<std::uint32_t>(32 * Words, 0);
  const auto sums = buffer<std::int32_t>(128, 0);
  for (int trial = 0; trial < 20; ++trial) {
    // Bytes of 255 and coefficients of -128 among them.
    for (std::size_t i = 0; i < rows.extent(0); ++i)
      rows(i) =
          random.below(4) == 0 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(random.between(0, 0xFFFFFFFF));
    for (std::size_t i = 0; i < column.extent(0); ++i)
      column(i) =
          random.below(4) == 0 ? 0x80808080u : static_cast<std::uint32_t>(random.between(0, 0xFFFFFFFF));
    Kokkos::parallel_for("digit_products", Kokkos::TeamPolicy<Kokkos::Cuda>(1, 32),
                         DigitProductsFunctor<Words>{rows.data(), column.data(), start, sums.data()});
    Kokkos::fence();
    const auto byte = [](std::uint32_t word, int i) { return static_cast<int>(word >> (8 * i) & 0xFF); };
    for (int lane = 0; lane < 32; ++lane)
      for (int i = 0; i < 4; ++i) {
        const int g = lane / 4, col = 2 * (lane % 4) + i % 2;
        std::int32_t want = start + i;
        for (int w = 0; w < Words; ++w)
          for (int entry = 0; entry < 4; ++entry)
            for (int b = 0; b < 4; ++b)
              want += byte(rows(static_cast<std::size_t>(((4 * g + entry) * Words + w) * 2 + i / 2)), b) *
                      static_cast<std::int8_t>(
                          byte(column(static_cast<std::size_t>((4 * col + entry) * Words + w)), b));
        ASSERT_EQ(want, sums(static_cast<std::size_t>(4 * lane + i))) << "lane " << lane << ", sum " << i;
      }
  }
}

TEST(DigitProducts, EqualPlainSums) {
  expect_digit_products<1>();
  expect_digit_products<2>();
  expect_digit_products<3>();
}
#endif

}  // namespace
}  // namespace KokkosOzaki::Testing
