// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RESIDUEREDUCER_HPP
#define KOKKOSOZAKI_RESIDUEREDUCER_HPP

#include <cmath>

#include "../impl/KokkosOzaki_FloatBits.hpp"
#include "../impl/KokkosOzaki_ModuliTable.hpp"

namespace KokkosOzaki::Impl {

/// The scaled entry a' = 2^alpha x as an 80-bit two's complement integer (64 bits suffice for s <= 16).
struct ScaledInteger {
  std::uint64_t low;
  std::int32_t high;
};

/// 2^alpha x rounded to an integer, ties to even, or truncated; from the bits of x.
template <class Real>
KOKKOS_INLINE_FUNCTION ScaledInteger scaled_integer(Real x, std::int32_t alpha, bool toward_zero) {
  const auto m = significand_of(magnitude_bits(x));
  const std::uint64_t value = m.value;
  const int shift = alpha + m.exponent - int{FormatOf<Real>::unit};
  std::uint64_t low;
  std::int64_t high = 0;
  if (shift < 0) {
    const int r = -shift < 63 ? -shift : 63;
    low = toward_zero ? value >> r : (value + (std::uint64_t{1} << (r - 1)) - 1 + ((value >> r) & 1)) >> r;
  } else {
    low = shift < 64 ? value << shift : 0;
    high = static_cast<std::int64_t>(shift == 0   ? 0
                                     : shift < 64 ? value >> (64 - shift)
                                                  : value << (shift - 64));
  }
  if ((bits_of(x) & FormatOf<Real>::sign) != 0) {
    low = ~low + 1;
    high = ~high + (low == 0 ? 1 : 0);
  }
  return {low, static_cast<std::int32_t>(high)};
}

/// The same for |2^alpha x| <= 2^30.
KOKKOS_INLINE_FUNCTION std::int32_t short_scaled_integer(float x, std::int32_t alpha, bool toward_zero) {
  const Significand<std::uint32_t> m = significand_of(magnitude_bits(x));
  const int shift = alpha + m.exponent - int{FormatOf<float>::unit};
  std::uint32_t magnitude;
  if (shift < 0) {
    const int r = -shift < 31 ? -shift : 31;
    magnitude = toward_zero ? m.value >> r
                            : (m.value + (std::uint32_t{1} << (r - 1)) - 1 + ((m.value >> r) & 1)) >> r;
  } else {
    magnitude = m.value != 0 ? m.value << shift : 0;  // the shift of a zero may be anything
  }
  const auto a = static_cast<std::int32_t>(magnitude);
  return (bits_of(x) & FormatOf<float>::sign) != 0 ? -a : a;
}

/// Signed base-256 digits of a scaled entry: a' = sum d[i] 256^i.
KOKKOS_INLINE_FUNCTION void signed_digits(const ScaledInteger& a, std::int8_t* digit) {
  const std::uint64_t offset = 0x8080808080808080u;
  const std::uint64_t low = a.low + offset;
  const std::uint32_t high = static_cast<std::uint32_t>(a.high) + 0x8080u + (low < offset ? 1u : 0u);
  for (int i = 0; i < 8; ++i) digit[i] = static_cast<std::int8_t>((low >> (8 * i) & 0xFF) ^ 0x80);
  for (int i = 0; i < 2; ++i) digit[8 + i] = static_cast<std::int8_t>((high >> (8 * i) & 0xFF) ^ 0x80);
}

constexpr int short_digits = 4;

/// The same for |a| <= 2^30.
KOKKOS_INLINE_FUNCTION void signed_digits(std::int32_t a, std::int8_t* digit) {
  const std::uint32_t w = static_cast<std::uint32_t>(a) + 0x80808080u;
  for (int i = 0; i < short_digits; ++i) digit[i] = static_cast<std::int8_t>((w >> (8 * i) & 0xFF) ^ 0x80);
}

/// Centered residue of T modulo the odd modulus m, 0 <= T < 2^20; inverse = ceil(2^32 / m).
KOKKOS_INLINE_FUNCTION std::int8_t finish_residue(std::int32_t T, std::int32_t m, std::uint32_t inverse) {
  const auto x = static_cast<std::int32_t>(static_cast<std::uint32_t>(T) * inverse);
  return static_cast<std::int8_t>((static_cast<std::int64_t>(x) * m) >> 32);
}

/// Centered residue of a scaled entry, from its first `digits` signed digits, for modulus p of the table.
KOKKOS_INLINE_FUNCTION std::int8_t residue_of(const std::int8_t* digit, int digits, const ModuliTable& table,
                                              int p) {
  if (p == 0) return digit[0];  // modulus 256: the low byte
  std::int32_t T = table.start[p];
  for (int i = 0; i < digits; ++i) T += digit[i] * table.residue_coefficient[p][i];
  return finish_residue(T, table.modulus[p], table.inverse[p]);
}
KOKKOS_INLINE_FUNCTION std::int8_t residue_of(const std::int8_t* digit, const ModuliTable& table, int p) {
  return residue_of(digit, table.digits, table, p);
}

/// Centered residue of the sum of two numbers with the centered residues x and y.
KOKKOS_INLINE_FUNCTION std::int8_t residue_of_sum(std::int8_t x, std::int8_t y, std::int32_t m) {
  const std::int32_t sum = x + y, half = m / 2;  // m = 256: [-128, 127]
  return static_cast<std::int8_t>(sum > (m - 1) / 2 ? sum - m : sum < -half ? sum + m : sum);
}

/// sum_i d_i centered(256^i w_p) over the signed digits of P: congruent to w_p P, |P| <= 0x7F7F7F7F, at most
/// 54784 in magnitude.
KOKKOS_INLINE_FUNCTION std::int32_t output_digit_sum(std::int32_t P, const ModuliTable& table, int p) {
  const std::uint32_t w = static_cast<std::uint32_t>(P) + 0x80808080u;
  std::int32_t sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += static_cast<std::int8_t>((w >> (8 * i) & 0xFF) ^ 0x80) * table.output_coefficient[p][i];
  return sum;
}

/// Centered residue of w_p P + carry, |P| <= 0x7F7F7F7F, |carry| <= 128.
KOKKOS_INLINE_FUNCTION std::int8_t output_residue(std::int32_t P, std::int32_t carry,
                                                  const ModuliTable& table, int p) {
  if (p == 0)
    return static_cast<std::int8_t>(static_cast<std::uint32_t>(P) *
                                        static_cast<std::uint32_t>(table.output_coefficient[0][0]) +
                                    static_cast<std::uint32_t>(carry));
  return finish_residue(table.start[p] + carry + output_digit_sum(P, table, p), table.modulus[p],
                        table.inverse[p]);
}

/// Residues of the real and the imaginary part of w_p X, with their carries.
struct ComplexResidue {
  std::int8_t re, im;
};

/// \brief From the products of real parts, of imaginary parts and of sums: Re X = P1 - P2, Im X = P3 - P1 -
/// P2, joined as digit sums, |sum| < 2^18 - 2^16; twice the start of a single product keeps them positive.
KOKKOS_INLINE_FUNCTION ComplexResidue complex_output_residue(std::int32_t P1, std::int32_t P2,
                                                             std::int32_t P3, const ComplexResidue& carry,
                                                             const ModuliTable& table, int p) {
  if (p == 0) {
    const auto w = static_cast<std::uint32_t>(table.output_coefficient[0][0]);
    const auto u1 = static_cast<std::uint32_t>(P1), u2 = static_cast<std::uint32_t>(P2),
               u3 = static_cast<std::uint32_t>(P3);
    return {static_cast<std::int8_t>(w * (u1 - u2) + static_cast<std::uint32_t>(carry.re)),
            static_cast<std::int8_t>(w * (u3 - u1 - u2) + static_cast<std::uint32_t>(carry.im))};
  }
  const std::int32_t start = 2 * table.start[p], m = table.modulus[p];
  const std::int32_t T1 = output_digit_sum(P1, table, p), T2 = output_digit_sum(P2, table, p),
                     T3 = output_digit_sum(P3, table, p);
  return {finish_residue(start + carry.re + T1 - T2, m, table.inverse[p]),
          finish_residue(start + carry.im + T3 - T1 - T2, m, table.inverse[p])};
}

/// \brief The remainder chain of the literature, for comparison in tests and benchmarks only.
///
/// One FP64 multiply, round and fused multiply-add bring |x| <= 2^62.4 into FP32 range, two FP32 corrections
/// follow: r = x - m round(x / m), then twice r -= m round(r / m). Source: Ozaki, Uchino, Imamura, "Ozaki
/// Scheme II", arXiv:2504.08009, the step from scaled entries to INT8.
KOKKOS_INLINE_FUNCTION std::int8_t residue_fp64_chain(double scaled, std::int32_t m) {
  const double inverse = 1.0 / m;
  const auto r64 = std::fma(-static_cast<double>(m), std::rint(scaled * inverse), scaled);
  const auto minus_m = -static_cast<float>(m);
  const float inverse32 = 1.0f / static_cast<float>(m);
  auto r = static_cast<float>(r64);
  r = std::fma(std::rint(r * inverse32), minus_m, r);
  r = std::fma(std::rint(r * inverse32), minus_m, r);
  return static_cast<std::int8_t>(static_cast<std::int32_t>(r));
}

}  // namespace KokkosOzaki::Impl

#endif
