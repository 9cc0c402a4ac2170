// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The stages for float and complex numbers, in every form; for double each stage has a file of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "Vectors.hpp"
#include "stages/KokkosOzaki_Reconstruct.hpp"
#include "stages/KokkosOzaki_Reduce.hpp"
#include "stages/KokkosOzaki_Residues.hpp"
#include "stages/KokkosOzaki_Scale.hpp"
#include "stages/KokkosOzaki_Statistics.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::ChunkStatistics;
using Impl::flagged_vector;
using Impl::is_complex_v;
using Impl::parts_of_v;
using Impl::products_of_v;
using Impl::RealOf;
using Impl::zero_vector;

template <class Element>
constexpr bool is_single_v = std::is_same_v<RealOf<Element>, float>;

double part(double x, int) {
  return x;
}
double part(const std::array<double, 2>& x, int which) {
  return x[static_cast<std::size_t>(which)];
}
template <class T>
const T& part_of_entry(const T& x, int) {
  return x;
}
template <class T>
const T& part_of_entry(const std::array<T, 2>& x, int which) {
  return x[static_cast<std::size_t>(which)];
}

template <class Element, class Entry>
Rows<Element> elements(const Rows<Entry>& rows) {
  Rows<Element> result;
  for (const auto& row : rows) {
    result.emplace_back();
    for (const auto& x : row) result.back().push_back(make<Element>(part(x, 0), part(x, 1)));
  }
  return result;
}

/// The parts of a vector one after the other, as doubles; the second ones negated if `conj`.
template <class Element>
std::vector<double> numbers_of(const std::vector<Element>& x, bool conj = false) {
  std::vector<double> result;
  for (const Element& z : x)
    for (int which = 0; which < parts_of_v<Element>; ++which)
      result.push_back((which == 1 && conj ? -1 : 1) * static_cast<double>(Impl::part_of(z, which)));
  return result;
}

template <class Element>
ChunkStatistics reference_statistics_of(const std::vector<Element>& x) {
  return reference_statistics(numbers_of(x), 128 * parts_of_v<Element>);
}

template <class Element>
const auto& vectors_of() {
  if constexpr (is_complex_v<Element>)
    return complex_vectors();
  else
    return f32_vectors();
}

/// action(element of a type) for float and both complex types.
template <class Action>
void for_each_element(const Action& action) {
  action(float{});
  action(Kokkos::complex<float>{});
  action(Kokkos::complex<double>{});
}

template <class Element, class Action>
int for_each_vector(const Action& action) {
  int cases = 0;
  for (const auto& v : vectors_of<Element>()) {
    if (v.is_single != is_single_v<Element> || !v.has_stages) continue;
    SCOPED_TRACE(v.name);
    ++cases;
    action(v);
    if (::testing::Test::HasFatalFailure()) return cases;
  }
  return cases;
}

/// Numbers with exponents first .. last of a vector, now and then a zero.
template <class Element>
std::vector<Element> random_vector(Random& random, std::int64_t length, int first, int last) {
  std::vector<Element> x;
  const auto number = [&] { return random.below(7) == 0 ? -0.0 : random.real(first, last); };
  for (std::int64_t l = 0; l < length; ++l) {
    const double re = number();
    x.push_back(make<Element>(re, number()));
  }
  return x;
}

/// The range of exponents of normal and subnormal numbers.
template <class Element>
constexpr int least_exponent = is_single_v<Element> ? -149 : -1074;
template <class Element>
constexpr int largest_exponent = is_single_v<Element> ? 127 : 1023;

/// Residues of the scaled parts of vectors, and of their sum, from multi-precision integers.
template <class Element>
class ScalarResidues {
 public:
  /// \param integer  integer(v, l, which): the scaled parts
  template <class Integer>
  ScalarResidues(std::int64_t count, std::int64_t length, int s, const Integer& integer)
      : m_vector(length), m_plane(count * length) {
    constexpr int products = products_of_v<Element>;
    m_residues.resize(static_cast<std::size_t>(s * products * m_plane));
    for (std::int64_t v = 0; v < count; ++v)
      for (std::int64_t l = 0; l < length; ++l) {
        mpz_class a[3] = {0, 0, 0};
        for (int which = 0; which < parts_of_v<Element>; ++which) a[which] = integer(v, l, which);
        a[2] = a[0] + a[1];
        for (int p = 0; p < s; ++p)
          for (int kind = 0; kind < products; ++kind)
            at(m_residues, (p * products + kind) * m_plane + v * m_vector + l) =
                static_cast<std::int8_t>(reference_centered(a[kind], Impl::moduli[p]));
      }
  }

  int operator()(int plane, std::int64_t v, std::int64_t l) const {
    return at(m_residues, plane * m_plane + v * m_vector + l);
  }

 private:
  std::int64_t m_vector, m_plane;
  std::vector<std::int8_t> m_residues;
};

template <class Variant>
class ScalarStages : public StageTest<Variant> {
 protected:
  template <class Element>
  std::vector<ChunkStatistics> statistics_of(const Impl::VectorSet<Element>& set, bool& any_flagged) {
    std::vector<ChunkStatistics> records(static_cast<std::size_t>(set.count * Impl::chunks_of(set.length)));
    std::vector<std::int32_t> exponent(static_cast<std::size_t>(set.count), -77);
    std::vector<std::uint64_t> square_sum(static_cast<std::size_t>(set.count), 77), sum = square_sum;
    const auto control = std::make_unique<Impl::Control>();
    Impl::reset_control(this->exec, control.get());
    Impl::statistics(this->exec, this->kernels, set, records.data(), exponent.data(), square_sum.data(),
                     control.get(), sum.data());
    this->exec.fence();
    any_flagged = control->any_flagged != 0;
    std::vector<ChunkStatistics> result;
    for (std::int64_t v = 0; v < set.count; ++v)
      result.push_back({at(square_sum, v), at(exponent, v), static_cast<std::uint32_t>(at(sum, v))});
    return result;
  }

  template <class Element>
  void expect_statistics(const Rows<Element>& rows, const std::vector<ChunkStatistics>& expected) {
    bool flagged = false, got_flagged;
    for (const ChunkStatistics& s : expected) flagged = flagged || s.exponent == flagged_vector;
    for (const Placement& placement : placements(size_of(rows), size_of(rows.front()))) {
      const PlacedVectorsOf<Element> placed(rows, placement, flagged);
      const std::vector<ChunkStatistics> got = statistics_of(placed.set(), got_flagged);
      ASSERT_EQ(got_flagged, flagged);
      for (std::int64_t v = 0; v < size_of(rows); ++v) {
        ASSERT_EQ(at(got, v).exponent, at(expected, v).exponent) << placement.name << ", vector " << v;
        ASSERT_EQ(at(got, v).square_sum, at(expected, v).square_sum) << placement.name << ", vector " << v;
        ASSERT_EQ(at(got, v).sum, at(expected, v).sum) << placement.name << ", vector " << v;
      }
    }
  }

  /// \brief Residues of the vectors as planes [p * products + kind][v * ld + l], every byte checked.
  /// \param expected  those of all positions
  template <class Scalar, class Element>
  void expect_residues(const PlacedVectorsOf<Element>& placed, std::int64_t first, std::int64_t length,
                       const std::vector<std::int32_t>& exponent, const std::vector<std::int32_t>& alpha,
                       int s, bool toward_zero, const ScalarResidues<Element>& expected) {
    constexpr int products = products_of_v<Element>;
    const Impl::VectorSet<Element> set = placed.positions(first, length);
    const std::int64_t ld = Impl::round_up(length, Impl::k_padding);
    for (const std::int64_t padded :
         {Impl::round_up(set.count, Impl::vector_padding), (set.count + 3) / 4 * 4}) {
      const std::int64_t stride = ld * padded + 64;
      const auto memory = buffer<std::int8_t>(stride * s * products, 0x55);
      Impl::residues_for<Scalar>(this->exec, this->kernels,
                                 Impl::ResidueOperandOf<Element>{
                                     set, exponent.data(), alpha.data(), {memory.data(), stride, ld, padded}},
                                 Impl::ResidueOperandOf<Element>{}, &table_of(s), s, toward_zero);
      this->exec.fence();
      for (int plane = 0; plane < s * products; ++plane) {
        for (std::int64_t v = 0; v < padded; ++v)
          for (std::int64_t l = 0; l < ld; ++l) {
            const bool inside = v < set.count && l < length && at(exponent, v) != flagged_vector;
            const int want = inside ? expected(plane, v, first + l) : 0;
            const int got = memory(plane * stride + v * ld + l);
            if (got != want)
              FAIL() << "plane " << plane << " of " << products << " for each modulus, vector " << v
                     << ", position " << l << ": expected " << want << ", got " << got;
          }
        for (std::int64_t i = 0; i < 64; ++i)
          ASSERT_EQ(memory(plane * stride + ld * padded + i), 0x55) << "behind plane " << plane;
      }
    }
  }

  /// The same in a product of doubles, or in one of the elements' type.
  template <class Element>
  void expect_residues_in(bool product_of_doubles, const PlacedVectorsOf<Element>& placed,
                          std::int64_t length, const std::vector<std::int32_t>& exponent,
                          const std::vector<std::int32_t>& alpha, int s, bool toward_zero,
                          const ScalarResidues<Element>& expected) {
    if (product_of_doubles)
      expect_residues<double>(placed, 0, length, exponent, alpha, s, toward_zero, expected);
    else
      expect_residues<Element>(placed, 0, length, exponent, alpha, s, toward_zero, expected);
  }
};
TYPED_TEST_SUITE(ScalarStages, StageVariants, VariantNames);

// ---- statistics -------------------------------------------------------------------------------------

TYPED_TEST(ScalarStages, StatisticsEqualTheVectors) {
  for_each_element([&](auto element) {
    using Element = decltype(element);
    const int cases = for_each_vector<Element>([&](const auto& v) {
      std::vector<ChunkStatistics> expected;
      const std::vector<std::int32_t> exponent = stored_exponents(v.stat_a);
      for (std::int64_t i = 0; i < v.m; ++i)
        expected.push_back(
            {at(v.stat_a, i).square_sum, at(exponent, i), static_cast<std::uint32_t>(at(v.stat_a, i).sum)});
      this->expect_statistics(elements<Element>(v.a), expected);
    });
    EXPECT_GT(cases, 15);
  });
}

TYPED_TEST(ScalarStages, StatisticsEqualPlainLoops) {
  Random random(120);
  for_each_element([&](auto element) {
    using Element = decltype(element);
    constexpr int least = least_exponent<Element>, largest = largest_exponent<Element>;
    for (const std::int64_t length : {1, 7, 8, 9, 15, 16, 17, 64, 127, 128, 129, 255, 257, 385}) {
      SCOPED_TRACE(length);
      Rows<Element> rows;
      std::vector<ChunkStatistics> expected;
      for (int v = 0; v < 70; ++v) {
        const int base = static_cast<int>(random.between(least + 30, largest));
        switch (v % 5) {
          case 0:
            rows.push_back(random_vector<Element>(random, length, least, largest));
            break;
          case 1:
            rows.push_back(random_vector<Element>(random, length, least, least + 20));
            break;
          case 2:
            rows.push_back(std::vector<Element>(static_cast<std::size_t>(length), make<Element>(-0.0)));
            break;
          default:
            rows.push_back(random_vector<Element>(random, length, base - 20, base));
        }
        if (v % 17 == 3)
          rows.back()[static_cast<std::size_t>(random.below(length))] = make<Element>(
              is_complex_v<Element> ? 1.0 : infinity, random.below(2) == 0 ? quiet_nan : -infinity);
        expected.push_back(reference_statistics_of(rows.back()));
      }
      ASSERT_NO_FATAL_FAILURE(this->expect_statistics(rows, expected));
    }
  });
}

// ---- scale ------------------------------------------------------------------------------------------

TEST(ScalarScale, CandidatesEqualTheVectors) {
  for_each_element([&](auto element) {
    using Element = decltype(element);
    int cases = 0;
    for_each_vector<Element>([&](const auto& v) {
      const std::int64_t terms = parts_of_v<Element> * v.k;
      ASSERT_EQ(v.has_candidates, v.accurate && Impl::guard_accurate(v.num_moduli, terms) >= 2);
      const Impl::Budget fast = Impl::fast_budget(v.num_moduli, terms);
      for (std::int64_t i = 0; i < v.m; ++i)
        if (at(v.stat_a, i).kind == VectorStatistics::Kind::regular) {
          EXPECT_EQ(Impl::scale_step(at(v.stat_a, i).square_sum, fast) + 15 - at(v.stat_a, i).exponent,
                    at(v.has_candidates ? v.fast_a : v.alpha_a, i));
        }
      if (!v.has_candidates) return;
      ++cases;
      const Impl::Budget budget =
          Impl::accurate_budget(v.num_moduli, terms, is_complex_v<Element> ? 89 : 127);
      const int cap = Impl::scale_cap(v.num_moduli, is_single_v<Element>);
      for (std::int64_t i = 0; i < v.m; ++i)
        if (at(v.maxima_a, i) != 0) {
          EXPECT_EQ(std::min(Impl::scale_step(static_cast<std::uint64_t>(at(v.maxima_a, i)), budget), cap) -
                        1 - at(v.stat_a, i).exponent,
                    at(v.candidate_a, i));
        }
    });
    EXPECT_GT(cases, 4);
  });
}

TYPED_TEST(ScalarStages, QuantisedProductsHaveTheMaximaOfTheVectors) {
  const auto quantised = [&](const auto& rows, bool conj, const std::vector<std::int32_t>& exponent) {
    using Element = typename std::decay_t<decltype(rows)>::value_type::value_type;
    const std::int64_t count = size_of(rows), length = size_of(rows.front()),
                       ld = Impl::round_up(length, Impl::k_padding), padded = Impl::round_up(count, 16);
    const auto memory = buffer<std::int8_t>(ld * padded, 0x55);
    for (const Placement& placement : placements(count, length)) {
      const PlacedVectorsOf<Element> placed(rows, placement, conj);
      Impl::quantize(this->exec, this->kernels, placed.set(), exponent.data(), memory.data(), ld, padded);
    }
    this->exec.fence();
    Rows<int> q(static_cast<std::size_t>(count));
    for (std::int64_t v = 0; v < padded; ++v)
      for (std::int64_t l = 0; l < ld; ++l)
        if (v < count && l < length)
          at(q, v).push_back(memory(v * ld + l));
        else
          EXPECT_EQ(memory(v * ld + l), 0);
    return q;
  };
  for_each_element([&](auto element) {
    using Element = decltype(element);
    for_each_vector<Element>([&](const auto& v) {
      if (!v.has_candidates) return;
      const Rows<int> qa = quantised(elements<Element>(v.a), v.conj_a, stored_exponents(v.stat_a)),
                      qb = quantised(elements<Element>(v.b), v.conj_b, stored_exponents(v.stat_b));
      for (std::int64_t i = 0; i < v.m; ++i) {
        int most = 0;
        for (std::int64_t j = 0; j < v.n; ++j) {
          int sum = 0;
          for (std::int64_t l = 0; l < v.k; ++l) sum += at(qa, i, l) * at(qb, j, l);
          most = std::max(most, sum);
        }
        EXPECT_EQ(most, at(v.maxima_a, i));
      }
    });
  });
}

TEST(ScalarScale, QuantisedComplexNumbersAreUpperBounds) {
  Random random(121);
  for (int trial = 0; trial < 200000; ++trial) {
    const double re = random.real(-9, 0), im = trial % 3 == 0 ? re : random.real(-9, 0);
    const int q = Impl::quantized(re, im, 0);
    ASSERT_LE(q, 127);
    ASSERT_LE(std::hypot(re, im) * (1 - 1e-15), q * 2.0 / 89) << re << ", " << im;
  }
}

// ---- residues ---------------------------------------------------------------------------------------

TYPED_TEST(ScalarStages, ResiduesEqualTheVectors) {
  for_each_element([&](auto element) {
    using Element = decltype(element);
    int listed = 0;
    for_each_vector<Element>([&](const auto& v) {
      if (!v.has_residues) return;
      ++listed;
      const Rows<Element> rows = elements<Element>(v.a);
      const std::vector<std::int32_t> exponent = stored_exponents(v.stat_a);
      for (int p = 0; p < v.num_moduli; ++p)  // the integers are those of the listed residues
        for (std::int64_t i = 0; i < v.m; ++i)
          for (std::int64_t l = 0; l < v.k; ++l)
            for (int which = 0; which < parts_of_v<Element>; ++which)
              ASSERT_EQ(part_of_entry(at(at(v.residue_a, p), i, l), which),
                        reference_centered(part_of_entry(at(v.integer_a, i, l), which), Impl::moduli[p]));
      const ScalarResidues<Element> expected(v.m, v.k, v.num_moduli,
                                             [&](std::int64_t i, std::int64_t l, int which) {
                                               return part_of_entry(at(v.integer_a, i, l), which);
                                             });
      for (const Placement& placement : placements(v.m, v.k)) {
        const PlacedVectorsOf<Element> placed(rows, placement, v.conj_a);
        const std::int64_t block = v.k_block != 0 ? v.k_block : v.k;
        for (std::int64_t first = 0; first < v.k; first += block)
          this->template expect_residues<Element>(placed, first, std::min(block, v.k - first), exponent,
                                                  v.alpha_a, v.num_moduli, v.toward_zero, expected);
      }
    });
    EXPECT_GT(listed, 5);
  });
}

TYPED_TEST(ScalarStages, ResiduesEqualPlainIntegers) {
  Random random(122);
  for_each_element([&](auto element) {
    using Element = decltype(element);
    constexpr int least = least_exponent<Element>, largest = largest_exponent<Element>;
    std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {{38, 270}, {99, 140}};
    for (const std::int64_t length : {1, 63, 64, 65, 128, 130, 200})
      for (const std::int64_t count : {1, 17, 33}) shapes.emplace_back(count, length);
    for (const auto& [count, length] : shapes)
      for (const bool wide : {false, true}) {  // floats in a product of doubles have integers of any width
        if (wide && !is_single_v<Element>) continue;
        const int s = static_cast<int>(random.between(2, wide ? 20 : 19));
        const bool toward_zero = random.below(2) == 0, conj = random.below(2) == 0;
        const int top = s <= 7 && is_single_v<Element> && !wide ? 30 : s <= 16 ? 62 : 78;
        SCOPED_TRACE(std::to_string(count) + " vectors of " + std::to_string(length) +
                     ", s = " + std::to_string(s));
        Rows<Element> rows;
        std::vector<std::int32_t> exponent, alpha;
        for (std::int64_t v = 0; v < count; ++v) {
          const int base = static_cast<int>(random.between(least, largest));
          rows.push_back(
              random_vector<Element>(random, length, std::max(least, base - (v % 2 == 0 ? 10 : 60)), base));
          if (v % 7 == 2) rows.back() = random_vector<Element>(random, length, least, least + 10);
          const std::int32_t e = reference_statistics_of(rows.back()).exponent;
          exponent.push_back(v % 9 == 4 ? flagged_vector : e);
          alpha.push_back(e == zero_vector ? 0 : static_cast<std::int32_t>(random.between(-2, top)) - 1 - e);
        }
        const auto integer = [&](std::int64_t v, std::int64_t l, int which) {
          const double x = static_cast<double>(Impl::part_of(at(rows, v, l), which));
          return reference_integer(which == 1 && conj ? -x : x, at(alpha, v), toward_zero);
        };
        const ScalarResidues<Element> expected(count, length, s, integer);
        for (const Placement& placement : placements(count, length)) {
          const PlacedVectorsOf<Element> placed(rows, placement, conj);
          this->expect_residues_in(wide, placed, length, exponent, alpha, s, toward_zero, expected);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
  });
}

/// Whether subnormal numbers count depends on the exponent of their vector.
TYPED_TEST(ScalarStages, ResiduesOfSubnormalFloatsBesideLargerOnes) {
  Random random(124);
  constexpr float least = std::numeric_limits<float>::denorm_min(),
                  normal = std::numeric_limits<float>::min();
  for (const int s : {2, 7, 8, 16, 17, 20})
    for (const bool wide : {false, true})
      for (const bool toward_zero : {false, true}) {
        const int top = s == 2 ? 6 : s <= 7 && !wide ? 28 : s <= 16 ? 60 : 76;
        SCOPED_TRACE("s = " + std::to_string(s) + (wide ? ", of doubles" : ""));
        Rows<float> rows;
        std::vector<std::int32_t> exponent, alpha;
        for (const int a : {60, 84, 85, 86, 87, 88, 89, 124, 125, 126, 127, 128, 140, 155}) {
          const int e = std::min(std::max(top - a, -149), 100);
          rows.emplace_back();
          for (int l = 0; l < 35; ++l)
            for (const float x : {std::ldexp(1.0f, e), least, -least, normal - least, -normal,
                                  static_cast<float>(random.real(-149, e)), 0.0f, -0.0f})
              rows.back().push_back(std::abs(x) <= std::ldexp(1.0f, e) ? x : 0.0f);
          exponent.push_back(e);
          alpha.push_back(a);
        }
        const auto integer = [&](std::int64_t v, std::int64_t l, int) {
          return reference_integer(static_cast<double>(at(at(rows, v), l)), at(alpha, v), toward_zero);
        };
        const std::int64_t length = size_of(rows.front());
        const ScalarResidues<float> expected(size_of(rows), length, s, integer);
        for (const Placement& placement : placements(size_of(rows), length)) {
          const PlacedVectorsOf<float> placed(rows, placement, false);
          this->expect_residues_in(wide, placed, length, exponent, alpha, s, toward_zero, expected);
          if (::testing::Test::HasFatalFailure()) return;
        }
      }
}

TEST(ShortScaledInteger, EqualsTheWideOne) {
  Random random(123);
  for (int trial = 0; trial < 300000; ++trial) {
    const float x = static_cast<float>(random.real(-149, 127));
    if (x == 0) continue;
    const int alpha = static_cast<int>(random.between(-60, 29)) - std::ilogb(x);
    for (const bool toward_zero : {false, true})
      for (const float value : {x, -x})
        ASSERT_EQ(mpz_class(Impl::short_scaled_integer(value, alpha, toward_zero)),
                  reference_integer(static_cast<double>(value), alpha, toward_zero))
            << value << " 2^" << alpha;
  }
  for (const int alpha : {-1000, -1, 0, 30, 1000})
    EXPECT_EQ(Impl::short_scaled_integer(-0.0f, alpha, false), 0);
  EXPECT_EQ(Impl::short_scaled_integer(1.0f, 30, false), 1 << 30);
}

TEST(ResidueOfSum, IsExactForEveryModulusAndPairInEveryForm) {
  for (const std::int32_t m : Impl::moduli)
    for (int x = -(m / 2); x <= (m - 1) / 2; ++x) {
      alignas(64) std::int8_t r[256] = {}, i[256] = {}, sum[256];
      for (int y = -(m / 2); y <= (m - 1) / 2; ++y)
        r[y + 128] = static_cast<std::int8_t>(x), i[y + 128] = static_cast<std::int8_t>(y);
      for (const Impl::StageKernels* kernels :
           {Impl::portable_stage_kernels(), Impl::avx512_stage_kernels()}) {
        if (kernels == nullptr) continue;
        kernels->add_residues(r, i, 256, m, sum);
        for (int l = 0; l < 256; ++l)
          ASSERT_EQ(sum[l], Impl::centered(r[l] + i[l], m))
              << kernels->name << ", " << +r[l] << " + " << +i[l];
      }
    }
}

// ---- reduce -----------------------------------------------------------------------------------------

TYPED_TEST(ScalarStages, ComplexReductionIsExact) {
  Random random(124);
  constexpr std::int32_t largest = 0x7F7F7F7F;
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s)
    for (const std::int64_t m : {1, 16, 63, 65, 130}) {
      SCOPED_TRACE(std::to_string(s) + " moduli, m = " + std::to_string(m));
      const std::int64_t n = 3, ld = Impl::round_up(m, 16), stride = ld * n + 16;
      const int first = static_cast<int>(random.below(s)),
                count = static_cast<int>(random.between(1, s - first));
      std::vector<std::int32_t> P(static_cast<std::size_t>(3 * count * stride));
      for (auto& x : P) {
        const std::int64_t kind = random.below(8);
        x = kind == 0 ? largest : kind == 1 ? -largest : random.int32() % (largest >> (kind == 2 ? 16 : 0));
      }
      std::vector<std::int8_t> Y(static_cast<std::size_t>(2 * s * stride));
      for (auto& y : Y) y = static_cast<std::int8_t>(random.between(-89, 89));
      for (const bool accumulate : {false, true}) {
        std::vector<std::int8_t> got = Y;
        Impl::reduce_complex(this->exec, this->kernels,
                             {first, count, m, n, ld, P.data(), stride, got.data(), stride}, &table_of(s),
                             accumulate);
        this->exec.fence();
        for (int q = 0; q < count; ++q)
          for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t i = 0; i < m; ++i) {
              const int p = first + q;
              const std::int64_t w = reference_inverse(s, p), e = j * ld + i;
              const std::int64_t P1 = at(P, 3 * q * stride + e), P2 = at(P, (3 * q + 1) * stride + e),
                                 P3 = at(P, (3 * q + 2) * stride + e);
              const std::int64_t parts[] = {P1 - P2, P3 - P1 - P2};
              for (int which = 0; which < 2; ++which) {
                const std::int64_t at_y = (2 * p + which) * stride + e;
                ASSERT_EQ(static_cast<int>(at(got, at_y)),
                          Impl::centered(w * parts[which] + (accumulate ? at(Y, at_y) : 0), Impl::moduli[p]))
                    << "modulus " << p << ", part " << which << ", row " << i
                    << (accumulate ? ", accumulated" : "");
              }
            }
      }
    }
}

// ---- reconstruct ------------------------------------------------------------------------------------

/// X of any length up to the range, ties among them.
mpz_class random_integer(Random& random, int s, int precision) {
  const mpz_class range = reference_range(s);
  const std::int64_t bits = bit_length_of(range);
  mpz_class x;
  const std::int64_t kind = random.below(8);
  if (kind == 0) {
    x = range - static_cast<long>(random.below(4));
  } else if (kind == 1) {
    x = static_cast<long>(random.below(40));
  } else if (kind <= 4) {  // half a unit beyond the precision, exactly or nearly
    x = power_of_two(precision) + static_cast<long>(random.bits() >> (65 - precision));
    x = ((x * 2 + 1) << static_cast<mp_bitcnt_t>(random.below(100))) +
        static_cast<long>(random.between(-1, 1));
  } else {
    for (int i = 0; i < 3; ++i) x = (x << 64) + mpz_class(random.bits());
    x >>= static_cast<mp_bitcnt_t>(random.between(192 - bits, 191));
  }
  if (x > range) x %= range + 1;
  return (random.bits() & 1) != 0 ? mpz_class(-x) : x;
}

TYPED_TEST(ScalarStages, ReconstructionRoundsOnce) {
  Random random(125);
  for_each_element([&](auto element) {
    using Scalar = decltype(element);
    using Real = RealOf<Scalar>;
    constexpr int parts = parts_of_v<Scalar>;
    for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
      SCOPED_TRACE(s);
      const std::int64_t m = random.between(1, 300), n = 4, ld = Impl::round_up(m, 16), stride = ld * n;
      std::vector<std::int8_t> Y(static_cast<std::size_t>(parts * s * stride));
      std::vector<std::int32_t> row_exponent(static_cast<std::size_t>(ld), 0), col_exponent(4, 0),
          row_alpha(static_cast<std::size_t>(ld), 0), col_alpha(4, 0);
      const int least = least_exponent<Scalar>, largest = largest_exponent<Scalar>;
      for (std::int64_t i = 0; i < m; ++i) {
        // values around the ends of the range and in between
        const std::int64_t kind = random.below(4);
        at(row_alpha, i) = static_cast<std::int32_t>(kind == 0 ? random.between(-largest - 3, -largest + 160)
                                                     : kind == 1 ? random.between(-least - 5, -least + 160)
                                                                 : random.between(-60, 60));
        if (i % 29 == 7) at(row_exponent, i) = flagged_vector;
      }
      for (std::int64_t j = 0; j < n; ++j)
        at(col_alpha, j) = static_cast<std::int32_t>(random.between(-3, 3));
      std::vector<Scalar> expected(static_cast<std::size_t>(stride), make<Scalar>(7, 7)), C = expected;
      const std::vector<int> w = reference_inverses(s);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i) {
          double value[2] = {0, 0};
          for (int which = 0; which < parts; ++which) {
            const mpz_class x = random_integer(random, s, is_single_v<Scalar> ? 24 : 53);
            for (int p = 0; p < s; ++p)
              at(Y, (parts * p + which) * stride + j * ld + i) =
                  static_cast<std::int8_t>(reference_centered(x * at(w, p), Impl::moduli[p]));
            const std::int64_t exponent = -(at(row_alpha, i) + at(col_alpha, j));
            value[which] = is_single_v<Scalar> ? reference_float(x, exponent) : reference_double(x, exponent);
          }
          if (at(row_exponent, i) != flagged_vector)
            at(expected, j * ld + i) = make<Scalar>(value[0], value[1]);
        }
      Impl::reconstruct(this->exec, this->kernels,
                        Impl::ReconstructBlock{Y.data(), stride, ld, row_exponent.data(), col_exponent.data(),
                                               row_alpha.data(), col_alpha.data(), s},
                        &table_of(s), Impl::EpilogueOf<Scalar>{Scalar(1), Scalar(0)},
                        Impl::MatrixRef<Scalar>{C.data(), m, n, 1, ld});
      this->exec.fence();
      for (std::int64_t e = 0; e < stride; ++e)
        for (int which = 0; which < parts; ++which) {
          const Real want = Impl::part_of(at(expected, e), which), got = Impl::part_of(at(C, e), which);
          ASSERT_TRUE(std::memcmp(&want, &got, sizeof(want)) == 0)
              << "row " << e % ld << ", part " << which << ": expected " << std::hexfloat << want << ", got "
              << got;
        }
    }
  });
}

TYPED_TEST(ScalarStages, ResiduesOfTheVectorsGiveTheirResult) {
  for_each_element([&](auto element) {
    using Scalar = decltype(element);
    constexpr int parts = parts_of_v<Scalar>;
    for_each_vector<Scalar>([&](const auto& v) {
      if (!v.has_residues) return;
      const std::int64_t ld = Impl::round_up(v.m, 16), stride = ld * v.n;
      const int s = v.num_moduli;
      std::vector<std::int8_t> Y(static_cast<std::size_t>(parts * s * stride));
      for (int p = 0; p < s; ++p)
        for (std::int64_t j = 0; j < v.n; ++j)
          for (std::int64_t i = 0; i < v.m; ++i)
            for (int which = 0; which < parts; ++which)
              at(Y, (parts * p + which) * stride + j * ld + i) =
                  static_cast<std::int8_t>(part_of_entry(at(at(v.y, p), i, j), which));
      std::vector<std::int32_t> row_exponent = stored_exponents(v.stat_a),
                                col_exponent = stored_exponents(v.stat_b), row_alpha = v.alpha_a;
      row_exponent.resize(static_cast<std::size_t>(ld)), row_alpha.resize(static_cast<std::size_t>(ld));
      std::vector<Scalar> C(static_cast<std::size_t>(stride));
      if (!v.c_in.empty())
        for (std::int64_t j = 0; j < v.n; ++j)
          for (std::int64_t i = 0; i < v.m; ++i)
            at(C, j * ld + i) = make<Scalar>(part(at(v.c_in, i, j), 0), part(at(v.c_in, i, j), 1));
      Impl::reconstruct(this->exec, this->kernels,
                        Impl::ReconstructBlock{Y.data(), stride, ld, row_exponent.data(), col_exponent.data(),
                                               row_alpha.data(), v.alpha_b.data(), s},
                        &table_of(s),
                        Impl::EpilogueOf<Scalar>{make<Scalar>(part(v.alpha, 0), part(v.alpha, 1)),
                                                 make<Scalar>(part(v.beta, 0), part(v.beta, 1))},
                        Impl::MatrixRef<Scalar>{C.data(), v.m, v.n, 1, ld});
      this->exec.fence();
      for (std::int64_t j = 0; j < v.n; ++j)
        for (std::int64_t i = 0; i < v.m; ++i) {
          if (at(row_exponent, i) == flagged_vector || at(col_exponent, j) == flagged_vector) continue;
          for (int which = 0; which < parts; ++which)
            EXPECT_TRUE(equal_values(part(at(v.c, i, j), which),
                                     static_cast<double>(Impl::part_of(at(C, j * ld + i), which))));
        }
    });
  });
}

}  // namespace
}  // namespace KokkosOzaki::Testing
