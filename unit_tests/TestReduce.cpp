// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stages/KokkosOzaki_Reduce.hpp"

#include <gtest/gtest.h>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "Vectors.hpp"

namespace KokkosOzaki::Testing {
namespace {

constexpr std::int32_t largest_product = 0x7F7F7F7F;  // what four signed bytes can say

int reference_output(std::int32_t P, int carry, int w, std::int32_t m) {
  return Impl::centered(std::int64_t{P} * w + carry, m);
}

// ---- the arithmetic
// ------------------------------------------------------------------------------------------------

TEST(OutputResidue, EqualsTheCenteredResidueForEveryNumberOfModuli) {
  Random random(60);
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
    const Impl::ModuliTable& table = table_of(s);
    const std::vector<int> w = reference_inverses(s);
    const auto expect = [&](int p, std::int32_t P, int carry) {
      ASSERT_EQ(Impl::output_residue(P, carry, table, p),
                reference_output(P, carry, at(w, p), table.modulus[p]))
          << "s = " << s << ", modulus " << p << ", P = " << P << ", carry " << carry;
    };
    for (int p = 0; p < s; ++p) {
      const std::int32_t m = table.modulus[p];
      for (int trial = 0; trial < 20000; ++trial) {
        std::int32_t P = random.int32() >> random.below(31);
        if (p != 0) P = std::min(std::max(P, -largest_product), largest_product);
        expect(p, P, static_cast<int>(random.between(-(m / 2), (m - 1) / 2)));
      }
      for (const int carry : {-(m / 2), -1, 0, 1, (m - 1) / 2}) {
        for (std::int32_t offset = 0; offset < 300; ++offset) {
          expect(p, largest_product - offset, carry);
          expect(p, offset - largest_product, carry);
          expect(p, offset - 150, carry);
        }
        for (int bit = 7; bit < 31; ++bit)  // carries from digit to digit
          for (int offset = -2; offset <= 2; ++offset) {
            expect(p, (1 << bit) + offset > largest_product ? 0 : (1 << bit) + offset, carry);
            expect(p, -(1 << bit) + offset, carry);
          }
      }
    }
  }
}

TEST(OutputResidue, Of256IsTheLowByteOfAnyProduct) {
  Random random(61);
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
    const int w = reference_inverse(s, 0);
    for (const std::int32_t P :
         {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()})
      for (int low = 0; low < 256; ++low)
        for (const int carry : {-128, -1, 0, 127})
          ASSERT_EQ(Impl::output_residue(P ^ low, carry, table_of(s), 0),
                    reference_output(P ^ low, carry, w, 256));
    for (int trial = 0; trial < 10000; ++trial) {
      const std::int32_t P = random.int32();
      const int carry = random.int8();
      ASSERT_EQ(Impl::output_residue(P, carry, table_of(s), 0), reference_output(P, carry, w, 256));
    }
  }
}

// ---- the stage
// -----------------------------------------------------------------------------------------------------

template <class Variant>
class ReduceStage : public StageTest<Variant> {};
TYPED_TEST_SUITE(ReduceStage, StageVariants, VariantNames);

/// P[p][j * ld + i], from the listed residues, over the positions of one block of k.
std::vector<std::vector<std::int32_t>> products(const GemmVector& v, std::int64_t first, std::int64_t last,
                                                std::int64_t ld) {
  std::vector<std::vector<std::int32_t>> P;
  for (int p = 0; p < v.num_moduli; ++p) {
    P.emplace_back(static_cast<std::size_t>(ld * v.n), -12345);
    for (std::int64_t j = 0; j < v.n; ++j)
      for (std::int64_t i = 0; i < v.m; ++i) {
        std::int64_t sum = 0;
        for (std::int64_t l = first; l < last; ++l)
          sum += at(at(v.residue_a, p), i, l) * at(at(v.residue_b, p), j, l);
        at(P.back(), j * ld + i) = static_cast<std::int32_t>(sum);
      }
  }
  return P;
}

TYPED_TEST(ReduceStage, EqualsTheVectorsAfterEveryBlockOfK) {
  int cases = 0, blocked = 0;
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_residues) continue;
    SCOPED_TRACE(v.name);
    ++cases;
    const std::int64_t block = v.k_block != 0 ? v.k_block : v.k;
    const std::int64_t blocks = (v.k + block - 1) / block;
    if (v.k_block != 0) {
      ++blocked;
      ASSERT_EQ(size_of(v.y_blocks), blocks);
    }
    const std::int64_t ld = Impl::round_up(v.m, Impl::vector_padding), stride = ld * v.n;
    std::vector<std::int8_t> Y(static_cast<std::size_t>(stride * v.num_moduli),
                               99);  // not read in the first block
    for (std::int64_t b = 0; b < blocks; ++b) {
      const auto P = products(v, b * block, std::min((b + 1) * block, v.k), ld);
      for (int p = 0; p < v.num_moduli; ++p)
        Impl::reduce(this->exec, this->kernels,
                     {p, 1, v.m, v.n, ld, at(P, p).data(), stride, Y.data(), stride}, &table_of(v.num_moduli),
                     b > 0);
      this->exec.fence();
      const std::vector<Rows<int>>& expected = v.k_block != 0 ? at(v.y_blocks, b) : v.y;
      for (int p = 0; p < v.num_moduli; ++p)
        for (std::int64_t i = 0; i < v.m; ++i)
          for (std::int64_t j = 0; j < v.n; ++j)
            ASSERT_EQ(at(Y, p * stride + j * ld + i), at(at(expected, p), i, j))
                << "block " << b << ", modulus " << p << ", entry (" << i << ", " << j << ")";
    }
    if (v.k_block != 0) {
      EXPECT_EQ(v.y_blocks.back(), v.y);
    }
  }
  EXPECT_GT(cases, 150);
  EXPECT_EQ(blocked, 6);
}

TYPED_TEST(ReduceStage, EqualsPlainIntegersForGroupsOfModuliAndTouchesNothingElse) {
  Random random(62);
  constexpr std::int8_t poison = 0x55;
  for (const std::int64_t m : {1, 2, 15, 16, 17, 31, 63, 64, 65, 100, 129, 200})
    for (const std::int64_t n : {1, 3, 17})
      for (const bool accumulate : {false, true}) {
        const int s = static_cast<int>(random.between(Impl::min_moduli, Impl::max_moduli));
        const int first = static_cast<int>(random.below(s)),
                  count = static_cast<int>(random.between(1, s - first));
        constexpr std::int64_t padding = TestFixture::row_padding;
        const std::int64_t ld = Impl::round_up(m, padding) + padding * random.below(20),
                           stride_p = ld * n + padding * random.below(40),
                           stride_y = ld * n + padding * random.below(40);
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + ", s = " + std::to_string(s) +
                     ", moduli from " + std::to_string(first) + ": " + std::to_string(count) +
                     (accumulate ? ", accumulate" : ""));
        const std::vector<int> w = reference_inverses(s);
        std::vector<std::int32_t> P(static_cast<std::size_t>(stride_p * count), -777);
        std::vector<std::int8_t> Y(static_cast<std::size_t>(stride_y * s), poison);
        std::vector<std::int8_t> expected = Y;
        for (int q = 0; q < count; ++q)
          for (std::int64_t j = 0; j < n; ++j)
            for (std::int64_t i = 0; i < m; ++i) {
              const int p = first + q;
              const std::int32_t modulus = Impl::moduli[p];
              std::int32_t& product = at(P, q * stride_p + j * ld + i);
              product = random.int32() >> random.below(31);
              if (p != 0) product = std::min(std::max(product, -largest_product), largest_product);
              if (random.below(20) == 0) product = random.below(2) == 0 ? largest_product : -largest_product;
              const int carry =
                  accumulate ? static_cast<int>(random.between(-(modulus / 2), (modulus - 1) / 2)) : 0;
              const std::int64_t y = p * stride_y + j * ld + i;
              if (accumulate) at(Y, y) = static_cast<std::int8_t>(carry);
              at(expected, y) = static_cast<std::int8_t>(reference_output(product, carry, at(w, p), modulus));
            }
        Impl::reduce(this->exec, this->kernels,
                     {first, count, m, n, ld, P.data(), stride_p, Y.data(), stride_y}, &table_of(s),
                     accumulate);
        this->exec.fence();
        for (std::int64_t y = 0; y < size_of(Y); ++y)
          if (const std::int64_t row = y % stride_y % ld;
              at(Y, y) != at(expected, y) && !(m <= row && row < Impl::round_up(m, padding)))
            FAIL() << "plane " << y / stride_y << ", column " << y % stride_y / ld << ", row "
                   << y % stride_y % ld << ": expected " << static_cast<int>(at(expected, y)) << ", got "
                   << static_cast<int>(at(Y, y));
      }
}

/// Long runs of consecutive products: every value of the sum before the last step, all carries between
/// digits.
TYPED_TEST(ReduceStage, ConsecutiveProductsForEveryModulus) {
  Random random(63);
  constexpr std::int64_t length = 1 << 16;
  std::vector<std::int64_t> starts = {-largest_product, largest_product - length + 1, -length / 2,
                                      (1 << 23) - length / 2, -(1 << 23) - length / 2};
  for (int i = 0; i < 3; ++i) starts.push_back(random.between(-largest_product, largest_product - length));
  for (const int s : {7, 14, 20}) {
    const std::vector<int> w = reference_inverses(s);
    for (const std::int64_t start : starts)
      for (int p = 0; p < s; ++p) {
        const std::int32_t m = Impl::moduli[p];
        const auto carry = static_cast<int>(random.between(-(m / 2), (m - 1) / 2));
        std::vector<std::int32_t> P;
        for (std::int64_t i = 0; i < length; ++i) P.push_back(static_cast<std::int32_t>(start + i));
        std::vector<std::int8_t> Y(static_cast<std::size_t>(length * s), static_cast<std::int8_t>(carry));
        Impl::reduce(this->exec, this->kernels,
                     {p, 1, length / 4, 4, length / 4, P.data(), length, Y.data(), length}, &table_of(s),
                     true);
        this->exec.fence();
        int expected = reference_output(at(P, 0), carry, at(w, p), m);
        for (std::int64_t i = 0; i < length; ++i) {
          const int got = at(Y, p * length + i);
          if (got != expected)
            FAIL() << "s = " << s << ", modulus " << m << ", P = " << at(P, i) << ", carry " << carry
                   << ": expected " << expected << ", got " << got;
          expected = Impl::centered(expected + at(w, p), m);
        }
      }
  }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
