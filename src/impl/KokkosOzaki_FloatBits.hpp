// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_FLOATBITS_HPP
#define KOKKOSOZAKI_FLOATBITS_HPP

#include <Kokkos_Macros.hpp>
#include <cstdint>
#include <cstring>

namespace KokkosOzaki::Impl {

/// The format of the floating-point numbers with these bits. |x| = M 2^(E1 - unit): M < 2^(fraction_bits +
/// 1), E1 the exponent field, or 1 where that is 0.
template <class Bits_, int FractionBits, int Bias>
struct FloatFormat {
  using Bits = Bits_;
  static constexpr int fraction_bits = FractionBits, bias = Bias, unit = Bias + FractionBits;
  static constexpr int max_exponent = Bias, min_exponent = 1 - Bias;  // of normal numbers
  static constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  static constexpr Bits implicit = Bits{1} << FractionBits;
  static constexpr Bits fraction = implicit - 1;
  static constexpr Bits infinity = Bits{2 * Bias + 1} << FractionBits;
};

template <class T>
struct FormatOf;  // by the number or by its bits
template <>
struct FormatOf<double> : FloatFormat<std::uint64_t, 52, 1023> {};
template <>
struct FormatOf<std::uint64_t> : FormatOf<double> {};
template <>
struct FormatOf<float> : FloatFormat<std::uint32_t, 23, 127> {};
template <>
struct FormatOf<std::uint32_t> : FormatOf<float> {};

constexpr std::uint64_t sign_bit = FormatOf<double>::sign;
constexpr std::uint64_t infinity_bits = FormatOf<double>::infinity;
constexpr std::uint64_t fraction_mask = FormatOf<double>::fraction;

template <class Real>
KOKKOS_INLINE_FUNCTION typename FormatOf<Real>::Bits bits_of(Real x) {
  typename FormatOf<Real>::Bits bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

/// The bits of |x|.
template <class Real>
KOKKOS_INLINE_FUNCTION typename FormatOf<Real>::Bits magnitude_bits(Real x) {
  using Bits = typename FormatOf<Real>::Bits;
  return bits_of(x) & static_cast<Bits>(~FormatOf<Real>::sign);
}

template <class Real>
KOKKOS_INLINE_FUNCTION Real real_of(typename FormatOf<Real>::Bits bits) {
  Real x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

KOKKOS_INLINE_FUNCTION double double_of(std::uint64_t bits) {
  return real_of<double>(bits);
}

template <class Real>
KOKKOS_INLINE_FUNCTION bool is_finite(Real x) {
  return magnitude_bits(x) < FormatOf<Real>::infinity;
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

/// M and E1 of FloatFormat for finite x; 1 <= E1.
template <class Bits>
struct Significand {
  Bits value;
  int exponent;
};

template <class Bits>
KOKKOS_INLINE_FUNCTION Significand<Bits> significand_of(Bits absolute_bits) {
  using Format = FormatOf<Bits>;
  const int field = static_cast<int>(absolute_bits >> Format::fraction_bits);
  const Bits implicit = field != 0 ? Bits{Format::implicit} : Bits{0};
  return {(absolute_bits & Bits{Format::fraction}) | implicit, field != 0 ? field : 1};
}

/// floor(log2 |x|), exact also for subnormals; absolute_bits > 0 and finite.
template <class Bits>
KOKKOS_INLINE_FUNCTION int ilogb_of(Bits absolute_bits) {
  using Format = FormatOf<Bits>;
  const int field = static_cast<int>(absolute_bits >> Format::fraction_bits);
  return field != 0 ? field - int{Format::bias} : bit_length(absolute_bits) - int{Format::unit};
}

/// floor(|x| 2^(15 - e)) for |x| < 2^(e+1): an integer in [0, 65535].
template <class Bits>
KOKKOS_INLINE_FUNCTION std::uint32_t fixed15(Bits absolute_bits, int e) {
  constexpr int width = 8 * static_cast<int>(sizeof(Bits));
  const Significand<Bits> m = significand_of(absolute_bits);
  const int shift = int{FormatOf<Bits>::unit} - 15 + e - m.exponent;
  // Negative only where the largest entry is subnormal, and then all of them are: M << 15 at most.
  if (shift < 0) return static_cast<std::uint32_t>(m.value << -shift);
  return shift < width ? static_cast<std::uint32_t>(m.value >> shift) : 0u;
}

}  // namespace KokkosOzaki::Impl

#endif
