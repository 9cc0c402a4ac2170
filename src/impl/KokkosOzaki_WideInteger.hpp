// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_WIDEINTEGER_HPP
#define KOKKOSOZAKI_WIDEINTEGER_HPP

#include <cstdint>

namespace KokkosOzaki::Impl {

/// \brief Unsigned integer of 32 N bits, little endian words; arithmetic modulo 2^(32 N). Host only,
/// constexpr.
///
/// For constants and decisions made once per call (moduli products, budgets, the choice of the number of
/// moduli).
template <int N>
struct WideInteger {
  std::uint32_t word[N] = {};

  constexpr WideInteger() = default;
  constexpr WideInteger(std::uint64_t value) {
    word[0] = static_cast<std::uint32_t>(value);
    if constexpr (N > 1) word[1] = static_cast<std::uint32_t>(value >> 32);
  }

  constexpr int bit_length() const {
    for (int i = N - 1; i >= 0; --i)
      if (word[i] != 0) {
        int bits = 32 * i;
        for (std::uint32_t w = word[i]; w != 0; w >>= 1) ++bits;
        return bits;
      }
    return 0;
  }

  friend constexpr WideInteger operator*(const WideInteger& x, const WideInteger& y) {
    WideInteger result;
    for (int i = 0; i < N; ++i) {
      std::uint64_t carry = 0;
      for (int j = 0; i + j < N; ++j) {
        carry += std::uint64_t{x.word[i]} * y.word[j] + result.word[i + j];
        result.word[i + j] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
    }
    return result;
  }

  friend constexpr WideInteger operator+(const WideInteger& x, const WideInteger& y) {
    WideInteger result;
    std::uint64_t carry = 0;
    for (int i = 0; i < N; ++i) {
      carry += std::uint64_t{x.word[i]} + y.word[i];
      result.word[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return result;
  }

  friend constexpr WideInteger operator<<(const WideInteger& x, int shift) {
    WideInteger result;
    const int words = shift / 32, bits = shift % 32;
    for (int i = words; i < N; ++i) {
      const std::uint64_t low = i - words > 0 ? x.word[i - words - 1] : 0u;
      const std::uint64_t both = (std::uint64_t{x.word[i - words]} << 32) | low;
      result.word[i] = static_cast<std::uint32_t>(both >> (32 - bits));
    }
    return result;
  }

  friend constexpr WideInteger operator>>(const WideInteger& x, int shift) {
    WideInteger result;
    const int words = shift / 32, bits = shift % 32;
    for (int i = 0; i + words < N; ++i) {
      const std::uint64_t high = i + words + 1 < N ? x.word[i + words + 1] : 0u;
      const std::uint64_t both = (high << 32) | x.word[i + words];
      result.word[i] = static_cast<std::uint32_t>(both >> bits);
    }
    return result;
  }

  friend constexpr bool operator<=(const WideInteger& x, const WideInteger& y) {
    for (int i = N - 1; i >= 0; --i)
      if (x.word[i] != y.word[i]) return x.word[i] < y.word[i];
    return true;
  }

  friend constexpr bool operator==(const WideInteger& x, const WideInteger& y) { return x <= y && y <= x; }

  constexpr std::uint64_t low64() const {
    return N > 1 ? (std::uint64_t{word[1]} << 32) | word[0] : std::uint64_t{word[0]};
  }

  constexpr std::uint32_t mod(std::uint32_t divisor) const {
    std::uint64_t remainder = 0;
    for (int i = N - 1; i >= 0; --i) remainder = ((remainder << 32) | word[i]) % divisor;
    return static_cast<std::uint32_t>(remainder);
  }

  constexpr WideInteger div(std::uint32_t divisor) const {
    WideInteger quotient;
    std::uint64_t remainder = 0;
    for (int i = N - 1; i >= 0; --i) {
      remainder = (remainder << 32) | word[i];
      quotient.word[i] = static_cast<std::uint32_t>(remainder / divisor);
      remainder %= divisor;
    }
    return quotient;
  }
};

/// Smallest b with n <= 2^b, for n >= 1.
constexpr int ceil_log2(std::uint64_t n) {
  int bits = 0;
  for (--n; n != 0; n >>= 1) ++bits;
  return bits;
}

}  // namespace KokkosOzaki::Impl

#endif
