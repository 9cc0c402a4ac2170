// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RESIDUEREDUCER_CUDA_HPP
#define KOKKOSOZAKI_RESIDUEREDUCER_CUDA_HPP

#include "../KokkosOzaki_ResidueReducer.hpp"
#include "KokkosOzaki_Tile_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl::CudaStages {

/// Four signed bytes of `x` times four of `coefficients`, added to `sum`.
__device__ inline std::int32_t dot4(std::int32_t x, std::int32_t coefficients, std::int32_t sum) {
  return __dp4a(x, coefficients, sum);
}

/// Residue of T, 0 <= T < 2^20, in the low byte; what lies above it is its sign.
__device__ inline std::int32_t finish(std::int32_t T, std::int32_t m, std::int32_t inverse) {
  return __mulhi(
      static_cast<std::int32_t>(static_cast<std::uint32_t>(T) * static_cast<std::uint32_t>(inverse)), m);
}

/// \brief The same in FP32, at the full rate of these units (numerical specification, section 5, "FP32 variant"):
/// residue in the low byte.
/// \param F  bit pattern of V + T as a float, V the smallest multiple of 256 m that is >= 2^23 + 2^19: an integer
/// sum that starts from the pattern of V
/// \param inverse, shift, minus_modulus  1 / m, 12582912 + V / m, -m
__device__ inline std::uint32_t finish_in_float(std::int32_t F, float inverse, float shift,
                                                float minus_modulus) {
  const float sum = __int_as_float(F);
  const float quotient = __fmaf_rn(sum, inverse, 12582912.0f) - shift;
  return __float_as_uint(__fmaf_rn(quotient, minus_modulus, sum));
}

/// The low bytes of four words.
__device__ inline std::uint32_t low_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                          std::uint32_t d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

/// Signed base-256 digits of a scaled entry, four to a word, without the bytes being taken apart.
template <int Words>
struct Digits {
  std::uint32_t word[Words];
};

/// As scaled_integer and signed_digits together. Integers of two words are below 2^63 in magnitude, so that the leading bit
/// of a number, once it is bit 62 of the fraction, never has to go up again: one shift to the right is all.
template <int Words, class Bits>
__device__ inline Digits<Words> digits_of(Bits bits, std::int32_t alpha, bool toward_zero) {
  using Format = FormatOf<Bits>;
  constexpr int sign_position = 8 * static_cast<int>(sizeof(Bits)) - 1;
  constexpr int up = 62 - int{Format::fraction_bits};
  const int field = static_cast<int>(bits >> int{Format::fraction_bits}) & (2 * int{Format::bias} + 1);
  std::uint64_t value = bits & Bits{Format::fraction};
  int shift = alpha + field - int{Format::unit};
  if (field != 0) {
    value |= Bits{Format::implicit};
  } else {
    // The leading bit in the place of the implicit one.
    const int zeros = __clzll(static_cast<long long>(value)) - (63 - int{Format::fraction_bits});
    value <<= zeros;
    shift += 1 - zeros;
  }
  std::uint64_t low;
  std::uint32_t high = 0;
  if constexpr (Words == 2) {
    const int down = up - shift, r = min(down, 63);
    value <<= up;
    if (!toward_zero) value += (((std::uint64_t{1} << 62) - 1) >> (63 - r)) + ((value >> r) & 1);
    low = down <= 63 ? value >> r : 0;
  } else if (shift < 0) {
    const int r = min(-shift, 63);
    if (!toward_zero) value += (std::uint64_t{1} << (r - 1)) - 1 + ((value >> r) & 1);
    low = value >> r;
  } else {
    low = shift < 64 ? value << shift : 0;
    high = static_cast<std::uint32_t>(shift == 0   ? 0
                                      : shift < 64 ? value >> (64 - shift)
                                                   : value << (shift - 64));
  }
  if ((bits >> sign_position) != 0) {
    low = ~low + 1;
    if constexpr (Words == 3) high = ~high + (low == 0 ? 1 : 0);
  }
  constexpr std::uint64_t offset = 0x8080808080808080u;
  const std::uint64_t w = low + offset;
  Digits<Words> digits;
  digits.word[0] = static_cast<std::uint32_t>(w) ^ 0x80808080u;
  digits.word[1] = static_cast<std::uint32_t>(w >> 32) ^ 0x80808080u;
  if constexpr (Words == 3) digits.word[2] = ((high + 0x8080u + (w < offset ? 1u : 0u)) ^ 0x8080u) & 0xFFFFu;
  return digits;
}

/// The digits of a float with |2^alpha x| <= 2^30, in one word: integers of 32 bits.
template <>
__device__ inline Digits<1> digits_of<1, std::uint32_t>(std::uint32_t bits, std::int32_t alpha,
                                                        bool toward_zero) {
  const int field = static_cast<int>(bits >> 23) & 0xFF;
  std::uint32_t value = (bits & 0x7FFFFFu) | (field != 0 ? 0x800000u : 0u);
  const int shift = alpha + (field != 0 ? field : 1) - 150;
  if (shift < 0) {
    const int r = min(-shift, 31);
    if (!toward_zero) value += (std::uint32_t{1} << (r - 1)) - 1 + ((value >> r) & 1);
    value >>= r;
  } else {
    value = shift < 32 ? value << shift : 0;
  }
  if ((bits >> 31) != 0) value = ~value + 1;
  return {{(value + 0x80808080u) ^ 0x80808080u}};
}

}  // namespace KokkosOzaki::Impl::CudaStages

#endif
#endif
