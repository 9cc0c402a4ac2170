// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_QUANTIZE_HPP
#define KOKKOSOZAKI_QUANTIZE_HPP

#include "../impl/KokkosOzaki_FloatBits.hpp"

namespace KokkosOzaki::Impl {

/// q(x) in [1, 127] with |x| <= q 2^(e+1) / 127 for x != 0, from the bits of |x|; q(0) = 0.
template <class Bits>
KOKKOS_INLINE_FUNCTION std::int8_t quantized_bits(Bits x, std::int32_t e) {
  return x != 0 ? static_cast<std::int8_t>(((fixed15(x, e) + 1) * 127 + 65535) >> 16) : std::int8_t{0};
}

/// The same for a complex number z with parts of these magnitudes: |z| <= q 2^(e+1) / 89.
template <class Bits>
KOKKOS_INLINE_FUNCTION std::int8_t quantized_parts(Bits x, Bits y, std::int32_t e) {
  const std::uint32_t f = x != 0 ? fixed15(x, e) + 1 : 0, g = y != 0 ? fixed15(y, e) + 1 : 0;
  const std::uint32_t larger = f > g ? f : g, smaller = f > g ? g : f;
  // |z| <= larger + (sqrt(2) - 1) smaller
  const std::uint32_t modulus = larger + ((smaller * 27146 + 65535) >> 16);
  return static_cast<std::int8_t>((modulus * 89 + 65535) >> 16);
}

template <class Real>
KOKKOS_INLINE_FUNCTION std::int8_t quantized(Real x, std::int32_t e) {
  return quantized_bits(magnitude_bits(x), e);
}
template <class Real>
KOKKOS_INLINE_FUNCTION std::int8_t quantized(Real re, Real im, std::int32_t e) {
  return quantized_parts(magnitude_bits(re), magnitude_bits(im), e);
}

}  // namespace KokkosOzaki::Impl

#endif
