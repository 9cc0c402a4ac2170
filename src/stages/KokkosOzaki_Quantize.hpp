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

/// \brief Rounded up, for an upper bound of |op(A)| |op(B)|: the accurate bound.
struct QuantizeUp {
  template <class Bits>
  KOKKOS_INLINE_FUNCTION std::int8_t operator()(Bits x, std::int32_t e) const {
    return quantized_bits(x, e);
  }
  template <class Bits>
  KOKKOS_INLINE_FUNCTION std::int8_t operator()(Bits x, Bits y, std::int32_t e) const {
    return quantized_parts(x, y, e);
  }
};

/// \brief Rounded down, for a lower bound: q_h = min(127, f >> (9 - h)), f the sum over the parts. Large entries are
/// cut off so that small ones count.
struct QuantizeDown {
  int h;

  template <class Bits>
  KOKKOS_INLINE_FUNCTION std::int8_t operator()(Bits x, std::int32_t e) const {
    return cut(fixed15(x, e));
  }
  template <class Bits>
  KOKKOS_INLINE_FUNCTION std::int8_t operator()(Bits x, Bits y, std::int32_t e) const {
    return cut(fixed15(x, e) + fixed15(y, e));
  }
  KOKKOS_INLINE_FUNCTION std::int8_t cut(std::uint32_t f) const {
    const std::uint32_t q = f >> (9 - h);
    return static_cast<std::int8_t>(q < 127 ? q : 127);
  }
};

/// \brief 1 for an entry that is not zero: the product counts the positions at which both vectors have one.
struct QuantizeSupport {
  template <class Bits>
  KOKKOS_INLINE_FUNCTION std::int8_t operator()(Bits x, std::int32_t) const {
    return x != 0 ? std::int8_t{1} : std::int8_t{0};
  }
  template <class Bits>
  KOKKOS_INLINE_FUNCTION std::int8_t operator()(Bits x, Bits y, std::int32_t) const {
    return (x | y) != 0 ? std::int8_t{1} : std::int8_t{0};
  }
};

}  // namespace KokkosOzaki::Impl

#endif
