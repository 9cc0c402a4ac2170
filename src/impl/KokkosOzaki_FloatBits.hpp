// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_FLOATBITS_HPP
#define KOKKOSOZAKI_FLOATBITS_HPP

#include <Kokkos_Macros.hpp>
#include <cstdint>
#include <cstring>

namespace KokkosOzaki::Impl {

constexpr std::uint64_t sign_bit = std::uint64_t{1} << 63;
constexpr std::uint64_t infinity_bits = std::uint64_t{0x7FF} << 52;
constexpr std::uint64_t fraction_mask = (std::uint64_t{1} << 52) - 1;

KOKKOS_INLINE_FUNCTION std::uint64_t bits_of(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

KOKKOS_INLINE_FUNCTION double double_of(std::uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

KOKKOS_INLINE_FUNCTION bool is_finite(double x) {
  return (bits_of(x) & ~sign_bit) < infinity_bits;
}

KOKKOS_INLINE_FUNCTION int bit_length(std::uint64_t x) {
  int bits = x != 0;
  for (int step = 32; step != 0; step >>= 1)
    if ((x >> step) != 0) {
      x >>= step;
      bits += step;
    }
  return bits;
}

/// M and E1 with |x| = M 2^(E1 - 1075), M < 2^53, 1 <= E1 <= 2046, for finite x.
struct Significand {
  std::uint64_t value;
  int exponent;
};

KOKKOS_INLINE_FUNCTION Significand significand_of(std::uint64_t absolute_bits) {
  const int field = static_cast<int>(absolute_bits >> 52);
  const std::uint64_t implicit = field != 0 ? std::uint64_t{1} << 52 : 0;
  return {(absolute_bits & fraction_mask) | implicit, field != 0 ? field : 1};
}

/// floor(log2 |x|), exact also for subnormals; absolute_bits > 0 and finite.
KOKKOS_INLINE_FUNCTION int ilogb_of(std::uint64_t absolute_bits) {
  const int field = static_cast<int>(absolute_bits >> 52);
  return field != 0 ? field - 1023 : bit_length(absolute_bits) - 1075;
}

/// floor(|x| 2^(15 - e)) for |x| < 2^(e+1): an integer in [0, 65535].
KOKKOS_INLINE_FUNCTION std::uint32_t fixed15(std::uint64_t absolute_bits, int e) {
  const Significand m = significand_of(absolute_bits);
  const int shift = 1060 + e - m.exponent;
  // Negative only where the largest entry is subnormal, and then all of them are: M << 15 at most.
  if (shift < 0) return static_cast<std::uint32_t>(m.value << -shift);
  return shift < 64 ? static_cast<std::uint32_t>(m.value >> shift) : 0u;
}

}  // namespace KokkosOzaki::Impl

#endif
