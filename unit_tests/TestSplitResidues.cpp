// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stages/KokkosOzaki_SplitResidues.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "KokkosOzaki_Backends.hpp"
#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "stages/KokkosOzaki_InputPreparation.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::Reducer;

// ---- a reducer on hand-made integers ----------------------------------------------------------------

TEST(ReducerHighLow, EqualsTheIntegerResidue) {
  Random random(71);
  const Impl::ModuliTable& table = table_of(16);
  const auto expect = [&table](std::int64_t a) {
    const mpz_class value(static_cast<long>(a));
    for (int p = 0; p < 16; ++p)
      ASSERT_EQ(Impl::residue_high_low(static_cast<std::uint64_t>(a), table, p),
                reference_centered(value, Impl::moduli[p]))
          << a << " mod " << Impl::moduli[p];
  };
  for (const std::int64_t high : {INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX})
    for (const std::uint32_t low : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, UINT32_MAX})
      expect(static_cast<std::int64_t>((static_cast<std::uint64_t>(high) << 32) | low));
  for (int trial = 0; trial < 100000; ++trial)
    expect(static_cast<std::int64_t>(random.bits()) >> random.below(62));
  // Multiples of m and of m/2, and their neighbours.
  for (int p = 1; p < 16; ++p)
    for (int trial = 0; trial < 300; ++trial) {
      const std::int64_t m = Impl::moduli[p],
                         multiple = random.between(-(INT64_MAX >> 10), INT64_MAX >> 10) * m;
      for (const std::int64_t offset :
           {-m / 2 - 1, -m / 2, std::int64_t{-1}, std::int64_t{0}, m / 2, m / 2 + 1})
        expect(multiple + offset);
    }
}

// ---- the reducers as kernels ------------------------------------------------------------------------

template <class Variant>
class StoredResiduesStage : public StageTest<Variant> {
 protected:
  /// \param a  [vector][position], of count vectors; ld is their length rounded up
  template <Reducer R>
  void expect(const std::vector<std::vector<std::int64_t>>& a, int num_moduli) {
    constexpr std::int8_t poison = 0x55;
    const std::int64_t count = size_of(a), length = size_of(a.front());
    const std::int64_t ld = Impl::round_up(length, Impl::k_padding);
    const std::int64_t padded = Impl::round_up(count, Impl::vector_padding), stride = ld * padded + 64;
    const auto low = buffer<std::uint64_t>(ld * padded, 0);
    for (std::int64_t v = 0; v < count; ++v)
      for (std::int64_t l = 0; l < length; ++l) {
        const std::int64_t value = at(a, v, l);
        low(static_cast<std::size_t>(v * ld + l)) = R == Reducer::fp64_chain
                                                        ? Impl::bits_of(static_cast<double>(value))
                                                        : static_cast<std::uint64_t>(value);
      }
    const auto planes = buffer<std::int8_t>(stride * num_moduli, poison);
    Impl::SplitOperand operand;
    operand.integers = {low.data(), nullptr, ld, padded};
    operand.planes = {planes.data(), stride, ld, padded};
    Impl::stored_residues<R>(this->exec, this->kernels, operand, {}, &table_of(num_moduli), num_moduli);
    this->exec.fence();
    for (int p = 0; p < num_moduli; ++p)
      for (std::int64_t v = 0; v < padded; ++v)
        for (std::int64_t l = 0; l < ld; ++l) {
          const mpz_class value(v < count && l < length ? static_cast<long>(at(a, v, l)) : 0l);
          ASSERT_EQ(reference_centered(value, Impl::moduli[p]),
                    planes(static_cast<std::size_t>(p * stride + v * ld + l)))
              << value << " mod " << Impl::moduli[p];
        }
  }
};
TYPED_TEST_SUITE(StoredResiduesStage, StageVariants, VariantNames);

TYPED_TEST(StoredResiduesStage, EveryReducerEqualsPlainIntegers) {
  Random random(72);
  for (const auto& [count, length] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {33, 200}, {16, 128}, {40, 257}}) {
    // What a double has as well: at most 53 significant bits, magnitudes up to 2^62.
    std::vector<std::vector<std::int64_t>> a;
    for (std::int64_t v = 0; v < count; ++v) {
      a.emplace_back();
      for (std::int64_t l = 0; l < length; ++l) {
        const std::int64_t bits = static_cast<std::int64_t>(random.bits() >> 11) - (std::int64_t{1} << 52);
        const auto shift = static_cast<int>(random.between(-40, 9));
        a.back().push_back(shift < 0 ? bits >> -shift : bits * (std::int64_t{1} << shift));
      }
    }
    a.front().front() = std::int64_t{1} << 62;
    a.back().back() = -(std::int64_t{1} << 62);
    for (const int s : {2, 14, 16}) {
      SCOPED_TRACE(std::to_string(count) + " vectors of " + std::to_string(length) +
                   ", s = " + std::to_string(s));
      ASSERT_NO_FATAL_FAILURE(this->template expect<Reducer::byte_dot>(a, s));
      ASSERT_NO_FATAL_FAILURE(this->template expect<Reducer::high_low>(a, s));
      ASSERT_NO_FATAL_FAILURE(this->template expect<Reducer::fp64_chain>(a, s));
    }
  }
}

// ---- input preparation in two steps -----------------------------------------------------------------

template <class Variant>
class SplitPreparation : public StageTest<Variant> {};
TYPED_TEST_SUITE(SplitPreparation, StageVariants, VariantNames);

TYPED_TEST(SplitPreparation, EqualsTheVectors) {
  using Space = typename TypeParam::ExecutionSpace;
  const auto engine = Impl::make_int8_gemm<Space>("portable");
  int cases = 0;
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_stages) continue;
    SCOPED_TRACE(v.name);
    const PlacedVectors rows(v.a, placements(v.m, v.k)[2]), cols(v.b, placements(v.n, v.k)[0]);
    Impl::InputPreparation<Space> preparation(this->kernels, *engine, rows.set(), cols.set(), v.num_moduli,
                                              v.accurate ? Bound::accurate : Bound::fast, v.toward_zero);
    preparation.exponents(this->exec);
    preparation.split_integers(this->exec);
    preparation.split_residues(this->exec);
    this->exec.fence();
    const auto alpha = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), preparation.alpha());
    for (std::int64_t i = 0; i < v.m + v.n; ++i)
      ASSERT_EQ(i < v.m ? at(v.alpha_a, i) : at(v.alpha_b, i - v.m), alpha(static_cast<std::size_t>(i)));
    if (!v.has_residues) continue;
    ++cases;
    const auto planes = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), preparation.planes());
    const std::int64_t ld = Impl::round_up(v.k, Impl::k_padding);
    const std::int64_t stride_a = ld * Impl::round_up(v.m, Impl::vector_padding),
                       stride_b = ld * Impl::round_up(v.n, Impl::vector_padding);
    for (std::int64_t p = 0; p < v.num_moduli; ++p)
      for (std::int64_t i = 0; i < v.m + v.n; ++i)
        for (std::int64_t l = 0; l < v.k; ++l) {
          const std::int64_t index = i < v.m ? p * stride_a + i * ld + l
                                             : v.num_moduli * stride_a + p * stride_b + (i - v.m) * ld + l;
          ASSERT_EQ(i < v.m ? at(at(v.residue_a, p), i, l) : at(at(v.residue_b, p), i - v.m, l),
                    planes(static_cast<std::size_t>(index)))
              << "modulus " << p << ", vector " << i << ", position " << l;
        }
  }
  EXPECT_GT(cases, 150);
}

TYPED_TEST(SplitPreparation, HasTheExponentsAndResiduesOfTheFusedForm) {
  using Space = typename TypeParam::ExecutionSpace;
  Random random(73);
  const auto rows_of = [&random](std::int64_t count, std::int64_t length) {
    Rows<double> rows;
    for (std::int64_t v = 0; v < count; ++v) {
      rows.emplace_back();
      const auto base = static_cast<int>(random.between(-900, 900));
      for (std::int64_t l = 0; l < length; ++l)
        rows.back().push_back(random.below(7) == 0 ? 0.0 : random.real(base - 12, base));
      if (v == 2) rows.back().back() = quiet_nan;
    }
    return rows;
  };
  // Small columns of the one meet large rows of the other: the accurate bound has its own exponents.
  const auto structured = [](Rows<double> rows, bool even) {
    for (auto& row : rows)
      for (std::size_t l = 0; l < row.size(); ++l) row[l] *= (l % 2 == 0) == even ? 0x1p-10 : 0x1p+10;
    return rows;
  };
  const auto engine = Impl::make_int8_gemm<Space>("portable");
  for (const auto& [m, n, k] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{5, 3, 7}, {33, 50, 130}, {70, 17, 385}})
    for (const Bound bound : {Bound::fast, Bound::accurate})
      for (const int s : {9, 14, 16, 17, 20}) {
        SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                     ", s = " + std::to_string(s) + (bound == Bound::fast ? " fast" : " accurate"));
        const std::vector<Placement> row_places = placements(m, k), col_places = placements(n, k);
        const PlacedVectors rows(structured(rows_of(m, k), true), at(row_places, random.below(5)));
        const PlacedVectors cols(structured(rows_of(n, k), false), at(col_places, random.below(5)));
        const bool toward_zero = random.below(2) == 0;
        const auto prepare = [&] {
          Impl::InputPreparation<Space> preparation(this->kernels, *engine, rows.set(), cols.set(), s, bound,
                                                    toward_zero);
          preparation.exponents(this->exec);
          return preparation;
        };
        const auto on_host = [](const auto& view) {
          return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
        };
        auto fused = prepare(), split = prepare();
        fused.fused_residues(this->exec);
        split.split_integers(this->exec);
        split.split_residues(this->exec);
        this->exec.fence();
        const auto fused_alpha = on_host(fused.alpha()), split_alpha = on_host(split.alpha());
        for (std::size_t v = 0; v < fused_alpha.extent(0); ++v) ASSERT_EQ(fused_alpha(v), split_alpha(v));
        const auto fused_planes = on_host(fused.planes()), split_planes = on_host(split.planes());
        for (std::size_t i = 0; i < fused_planes.extent(0); ++i)
          ASSERT_EQ(fused_planes(i), split_planes(i)) << "byte " << i;
      }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
