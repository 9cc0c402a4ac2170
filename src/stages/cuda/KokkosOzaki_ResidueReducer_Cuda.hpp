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

/// Four unsigned bytes of `x` times four signed bytes of `coefficients`, added to `sum`.
__device__ inline std::int32_t dot4_unsigned(std::uint32_t x, std::int32_t coefficients, std::int32_t sum) {
  std::int32_t result;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(result) : "r"(x), "r"(coefficients), "r"(sum));
  return result;
}

/// Residue of T, 0 <= T < 2^20, in the low byte; what lies above it is its sign.
__device__ inline std::int32_t finish(std::int32_t T, std::int32_t m, std::int32_t inverse) {
  return __mulhi(
      static_cast<std::int32_t>(static_cast<std::uint32_t>(T) * static_cast<std::uint32_t>(inverse)), m);
}

/// \brief The same from one FP32 and one integer instruction (numerical specification, section 5, "FP32
/// variant"): residue in the low byte.
///
/// The quotient comes as an integer Q in [2^23, 2^24), as V + T is one: patterns of such floats differ from
/// them by a multiple of 256. Q is 12582912 + V / m + q with q = round(T / m), so that F - m Q and T - m q have
/// the same low byte.
/// \param F  bit pattern of V + T as a float, V the smallest multiple of 256 m that is >= 2^23 + 2^19: an integer
/// sum that starts from the pattern of V
/// \param inverse, minus_modulus  1 / m, -m
__device__ inline std::uint32_t finish_in_float(std::int32_t F, float inverse, std::int32_t minus_modulus) {
  const float quotient = __fmaf_rn(__int_as_float(F), inverse, 12582912.0f);
  return static_cast<std::uint32_t>(F) +
         static_cast<std::uint32_t>(minus_modulus) * __float_as_uint(quotient);
}

/// \brief sum := start + digits times coefficients by the matrix units: 16 rows of four entries, 8 columns.
///
/// All lanes of a warp take part. With g = lane / 4, t = lane % 4, a lane hands over the words of entry t of
/// the rows g and g + 8, and the coefficients of entry t in column g; it gets the sums of row g in the
/// columns 2 t and 2 t + 1, then those of row g + 8.
/// \tparam Words  32-bit words of four digits
template <int Words>
__device__ inline void digit_products(const int4& start, const std::uint32_t (&rows)[Words][2],
                                      const std::uint32_t (&column)[Words], std::int32_t (&sum)[4]) {
  if constexpr (Words == 1)
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};"
        : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
        : "r"(rows[0][0]), "r"(rows[0][1]), "r"(column[0]), "r"(start.x), "r"(start.y), "r"(start.z),
          "r"(start.w));
  else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%10, %11, %12, %13};"
        : "=r"(sum[0]), "=r"(sum[1]), "=r"(sum[2]), "=r"(sum[3])
        : "r"(rows[0][0]), "r"(rows[0][1]), "r"(rows[1][0]), "r"(rows[1][1]), "r"(column[0]), "r"(column[1]),
          "r"(start.x), "r"(start.y), "r"(start.z), "r"(start.w));
  if constexpr (Words == 3)
    asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(rows[2][0]), "r"(rows[2][1]), "r"(column[2]));
}

/// The low bytes of four words.
__device__ inline std::uint32_t low_bytes(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                          std::uint32_t d) {
  return __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
}

constexpr std::uint32_t digit_offset = 0x80808080u;  // 128 in each byte

/// Base-256 digits of a scaled entry, signed ones with 128 added to each, four to a word, without the bytes
/// being taken apart. What the offset adds to a sum of products is known beforehand.
template <int Words>
struct Digits {
  std::uint32_t word[Words];
};

/// Exponent that takes every number to zero.
constexpr std::int32_t vanishing_alpha = -4096;

/// Below this exponent all subnormal numbers become zero, with an implicit bit as well.
template <class Real>
constexpr std::int32_t least_alpha_of_subnormals = int{FormatOf<Real>::unit} - 64;

/// Zero for shifts by 64 and more, also where `shift` is negative.
__device__ inline std::uint64_t shifted_down(std::uint64_t x, std::int32_t shift) {
  std::uint64_t y;
  asm("shr.u64 %0, %1, %2;" : "=l"(y) : "l"(x), "r"(shift));
  return y;
}

/// \brief As scaled_integer and signed_digits together, of x or -x.
///
/// Integers of two words are below 2^63 in magnitude, so that the leading bit of a number, once it is bit 62,
/// never has to go up again: one shift to the right is all.
/// \tparam Subnormals  whether these can matter: alpha is not below least_alpha_of_subnormals
template <int Words, bool Subnormals, class Bits>
__device__ inline Digits<Words> digits_of(Bits bits, std::int32_t alpha, bool toward_zero, bool negated) {
  using Format = FormatOf<Bits>;
  constexpr int sign_position = 8 * static_cast<int>(sizeof(Bits)) - 1;
  constexpr int up = 62 - int{Format::fraction_bits};
  const int field = static_cast<int>(bits >> int{Format::fraction_bits}) & (2 * int{Format::bias} + 1);
  std::uint64_t value = (bits & Bits{Format::fraction}) | Bits{Format::implicit};
  int shift = alpha + field - int{Format::unit};
  if (Subnormals && field == 0) {
    // The leading bit in the place of the implicit one.
    value ^= Bits{Format::implicit};
    const int zeros = __clzll(static_cast<long long>(value)) - (63 - int{Format::fraction_bits});
    value <<= zeros;
    shift += 1 - zeros;
  }
  std::uint64_t low;
  std::uint32_t high = 0;
  if constexpr (Words == 2) {
    const int down = up - shift;
    const std::uint64_t just_below_half = toward_zero ? 0 : (std::uint64_t{1} << 62) - 1,
                        odd = toward_zero ? 0 : 1;
    // In halves: the compiler would mask both words after the shift.
    if constexpr (sizeof(Bits) == 8 && !Subnormals) {
      const auto below = static_cast<std::uint32_t>(bits);
      const std::uint32_t above = (static_cast<std::uint32_t>(bits >> 32) & 0xFFFFFu) | 0x100000u;
      value = (std::uint64_t{__funnelshift_l(below, above, up)} << 32) | (below << up);
    } else {
      value <<= up;
    }
    low = shifted_down(value + shifted_down(just_below_half, 63 - down) + (shifted_down(value, down) & odd),
                       down);
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
  const std::uint64_t sign = ((bits >> sign_position) != 0) != negated ? ~std::uint64_t{0} : 0;
  constexpr std::uint64_t offset = std::uint64_t{digit_offset} << 32 | digit_offset;
  Digits<Words> digits;
  if constexpr (Words == 3) {
    low = (low ^ sign) - sign;
    high = (high ^ static_cast<std::uint32_t>(sign)) + (sign != 0 && low == 0 ? 1 : 0);
    const std::uint64_t w = low + offset;
    digits.word[2] = (high + 0x8080u + (w < offset ? 1u : 0u)) & 0xFFFFu;
    low = w;
  } else {
    low = (low ^ sign) + (offset - sign);
  }
  digits.word[0] = static_cast<std::uint32_t>(low);
  digits.word[1] = static_cast<std::uint32_t>(low >> 32);
  return digits;
}

/// The digits of a float with |2^alpha x| <= 2^30, in one word: integers of 32 bits.
template <bool Subnormals>
__device__ inline Digits<1> short_digits_of(std::uint32_t bits, std::int32_t alpha, bool toward_zero,
                                            bool negated) {
  const int field = static_cast<int>(bits >> 23) & 0xFF;
  std::uint32_t value = (bits & 0x7FFFFFu) | (!Subnormals || field != 0 ? 0x800000u : 0u);
  const int shift = alpha + (!Subnormals || field != 0 ? field : 1) - 150;
  if (shift < 0) {
    const int r = min(-shift, 31);
    if (!toward_zero) value += (std::uint32_t{1} << (r - 1)) - 1 + ((value >> r) & 1);
    value >>= r;
  } else {
    value = shift < 32 ? value << shift : 0;
  }
  if (((bits >> 31) != 0) != negated) value = ~value + 1;
  return {{value + digit_offset}};
}

}  // namespace KokkosOzaki::Impl::CudaStages

#endif
#endif
