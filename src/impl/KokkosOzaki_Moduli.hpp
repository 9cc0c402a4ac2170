// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_MODULI_HPP
#define KOKKOSOZAKI_MODULI_HPP

#include <cstdint>

#include "../KokkosOzaki_GemmOptions.hpp"
#include "KokkosOzaki_ModuliTable.hpp"
#include "KokkosOzaki_WideInteger.hpp"

namespace KokkosOzaki::Impl {

/// Pairwise coprime, at most 256, in decreasing order: s moduli are the first s entries. For s >= 14 no set
/// of s pairwise coprime integers up to 256 has a larger product (docs/method.md).
constexpr std::int32_t moduli[max_moduli] = {256, 253, 251, 249, 247, 241, 239, 235, 233, 229,
                                             227, 223, 217, 211, 199, 197, 193, 191, 181, 179};

/// Largest k of one INT32 product: 2^14 k < 2^31, rounded down to a multiple of 64.
constexpr std::int64_t max_k_block = 131008;

/// Positions of k per chunk of the statistics.
constexpr int chunk_length = 128;

using Product = WideInteger<6>;

/// The representative of v mod m in [-(m div 2), (m-1) div 2].
constexpr std::int32_t centered(std::int64_t v, std::int32_t m) {
  std::int64_t r = v % m;
  if (r < 0) r += m;
  return static_cast<std::int32_t>(r > (m - 1) / 2 ? r - m : r);
}

/// M_s, the product of the first s moduli.
constexpr Product moduli_product(int s) {
  Product product(1);
  for (int t = 0; t < s; ++t) product = product * Product(static_cast<std::uint64_t>(moduli[t]));
  return product;
}

/// H_s = floor(255 M_s / 512): scaling guarantees |X| <= H_s.
constexpr Product range_budget(int s) {
  return (moduli_product(s) * Product(255)) >> 9;
}

/// w_t = (M_s / m_t)^-1 mod m_t.
constexpr std::int32_t crt_inverse(int s, int t) {
  const auto m = static_cast<std::uint32_t>(moduli[t]);
  const std::uint32_t cofactor = moduli_product(s).div(m).mod(m);
  std::int32_t w = 1;
  while ((cofactor * static_cast<std::uint32_t>(w)) % m != 1) ++w;
  return w;
}

/// \brief A reduced budget: the number h 2^(bits-64), h with its top bit set.
struct Budget {
  std::int32_t bits = 0;
  std::uint64_t h = 0;
};

/// The largest Budget with at most `value` (1 - 2^-guard), as 64 leading bits allow; guard >= 2.
constexpr Budget reduced_budget(const Product& value, int guard) {
  Budget b;
  b.bits = value.bit_length();
  b.h = b.bits >= 64 ? (value >> (b.bits - 64)).low64() : (value << (64 - b.bits)).low64();
  // ceil(h / 2^guard)
  b.h -= guard >= 64 ? 1 : ((b.h - 1) >> guard) + 1;
  while ((b.h >> 63) == 0) {
    b.h <<= 1;
    --b.bits;
  }
  return b;
}

/// Guard bits of the fast bound; below 2 there are too few moduli for this k.
constexpr int guard_fast(int s, std::int64_t k) {
  const int bits = range_budget(s).bit_length() - 1 - ceil_log2(static_cast<std::uint64_t>(k));
  return bits >> 1;
}

/// Guard bits of the accurate bound; below 2, or for k > max_k_block, the fast exponents are used.
constexpr int guard_accurate(int s, std::int64_t k) {
  const int bits = range_budget(s).bit_length() - 2 - ceil_log2(static_cast<std::uint64_t>(k));
  return (bits >> 1) - 8;
}

constexpr Budget fast_budget(int s, std::int64_t k) {
  return reduced_budget(range_budget(s), guard_fast(s, k));
}

/// \param unit  quantised entries are in units of 2^(e+1) / unit: 127, complex 89
constexpr Budget accurate_budget(int s, std::int64_t k, int unit = 127) {
  return reduced_budget(range_budget(s) * Product(static_cast<std::uint64_t>(unit * unit)),
                        guard_accurate(s, k));
}

/// Largest exponent of a scaled entry under the accurate bound: |a'| <= 2^cap.
/// \param single  a product of floats
constexpr int scale_cap(int s, bool single = false) {
  return s <= 7 && single ? 30 : s <= 16 ? 62 : 78;
}

/// Signed limbs: value = sum limb[j] 2^(32 j) modulo 2^(32 words).
constexpr void to_signed_limbs(const Product& value, int words, std::int32_t* limb) {
  std::int64_t carry = 0;
  for (int j = 0; j < words; ++j) {
    std::int64_t v = static_cast<std::int64_t>(value.word[j]) + carry;
    carry = v >= (std::int64_t{1} << 31) ? 1 : 0;
    v -= carry << 32;
    limb[j] = static_cast<std::int32_t>(v);
  }
}

constexpr ModuliTable make_moduli_table(int s) {
  ModuliTable table{};
  const Product product = moduli_product(s);
  table.count = s;
  table.words = (product.bit_length() + 31) / 32;
  table.groups = (s + 2) / 3;
  table.digits = s <= 16 ? 8 : 10;
  for (int t = 0; t < s; ++t) {
    const std::int32_t m = moduli[t];
    table.modulus[t] = m;
    table.inverse[t] = static_cast<std::uint32_t>(((std::int64_t{1} << 32) + m - 1) / m);
    table.start[t] = ((1 << 17) + m - 1) / m * m;
    std::int64_t power = 1;
    for (int i = 0; i < max_digits; ++i) {
      table.residue_coefficient[t][i] = static_cast<std::int8_t>(centered(power, m));
      power = power * 256 % m;
    }
    power = crt_inverse(s, t);
    for (int i = 0; i < 4; ++i) {
      table.output_coefficient[t][i] = static_cast<std::int8_t>(centered(power, m));
      power = power * 256 % m;
    }
    table.quotient_weight[t] = ((1 << 25) + m) / (2 * m);
  }
  for (int g = 0; g < table.groups; ++g) {
    const int first = 3 * g, last = 3 * g + 3 < s ? 3 * g + 3 : s;
    Product cofactor = product;
    std::int32_t group_product = 1;
    for (int t = first; t < last; ++t) {
      cofactor = cofactor.div(static_cast<std::uint32_t>(moduli[t]));
      group_product *= moduli[t];
    }
    for (int t = first; t < last; ++t) table.group_weight[t] = group_product / moduli[t];
    to_signed_limbs(cofactor, table.words, table.group_limb[g]);
  }
  to_signed_limbs(product, table.words, table.product_limb);

  OutputConstants& outputs = table.outputs;
  for (int i = 0; i < 3 * table.groups; ++i) {
    const int t = i < s ? i : s - 1;
    std::uint32_t packed = 0;
    std::int32_t sum = 0;
    for (int b = 0; b < 4; ++b) {
      packed |= std::uint32_t{static_cast<std::uint8_t>(table.output_coefficient[t][b])} << (8 * b);
      sum += table.output_coefficient[t][b];
    }
    outputs.reducer[i][0] = static_cast<std::int32_t>(packed);
    outputs.reducer[i][1] = table.modulus[t];
    outputs.reducer[i][2] = static_cast<std::int32_t>(table.inverse[t]);
    outputs.reducer[i][3] = table.start[t] - 128 * sum;
    outputs.weight[i][0] = i < s ? table.group_weight[t] : 0;
    outputs.weight[i][1] = i < s ? table.quotient_weight[t] : 0;
  }
  for (int j = 0; j < table.words; ++j) {
    for (int g = 0; g < table.groups; ++g) outputs.group_limb[g][j] = table.group_limb[g][j];
    outputs.product_limb[j] = table.product_limb[j];
  }
  return table;
}

/// The tables for s = 2 .. 20 at index s - 2; computed once, lives as long as the program.
const ModuliTable* moduli_tables();

/// \brief Smallest s with 2 sqrt(k) (1 + 2^-15 sqrt(k)) / sqrt(H') <= c 2^-precision, or 0 if there is none.
///
/// c^2 = numerator_squared / denominator_squared; the test is exact (docs/accuracy.md, "Normwise").
int select_normwise(std::int64_t k, const WideInteger<24>& numerator_squared,
                    const WideInteger<24>& denominator_squared, int precision, bool toward_zero);

/// The same for what a caller says.
/// \param k  complex: twice the inner dimension
int select_normwise(std::int64_t k, const Accuracy& accuracy, Rounding rounding, int precision = 53);

}  // namespace KokkosOzaki::Impl

#endif
