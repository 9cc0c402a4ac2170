// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_CERTIFICATE_HPP
#define KOKKOSOZAKI_CERTIFICATE_HPP

#include <cstdint>

#include "KokkosOzaki_FloatBits.hpp"
#include "KokkosOzaki_Moduli.hpp"

namespace KokkosOzaki::Impl {

// The choice of the number of moduli for |C - exact| <= c u (|op(A)| |op(B)|)_ij: docs/accuracy.md,
// "Componentwise".

/// c as the certificate takes it: 1 <= c < 2^20.
constexpr std::int64_t max_certificate_constant = (std::int64_t{1} << 20) - 1;

/// What the certificate needs of a vector.
struct CertificateVector {
  /// For the test whether an entry can matter at all.
  struct alignas(16) Rough {
    float norm_1_above;  // above norm_1, by 2^-18 at least and less than 2^-17 of it
    float power;         // 2^norm_2
    float root;          // the same number
  };

  std::uint64_t norm_1;  // B = ceil(S1 / 128) + 1: above 2^(8 - e) ||x||_1
  std::int32_t norm_2;   // a = ceil(bitlen(S) / 2) - 15: 2^a >= 2^-e ||x||_2
  std::uint32_t root;    // above 2^-12 sqrt(S), at most 2^20 + 1
  Rough rough;

  KOKKOS_INLINE_FUNCTION static CertificateVector of(std::uint64_t square_sum, std::uint64_t sum) {
    std::uint64_t root = 0;
    for (std::uint64_t bit = std::uint64_t{1} << 31; bit != 0; bit >>= 1)
      if ((root | bit) * (root | bit) <= square_sum) root |= bit;
    const std::uint64_t norm_1 = ((sum + 127) >> 7) + 1;
    const std::int32_t norm_2 = ((bit_length(square_sum) + 1) >> 1) - 15;
    const std::uint32_t root_above = static_cast<std::uint32_t>(root >> 12) + 1;
    return {norm_1,
            norm_2,
            root_above,
            {static_cast<float>(norm_1) * (1.0f + 0x1.8p-18f), static_cast<float>(std::uint64_t{1} << norm_2),
             static_cast<float>(root_above)}};
  }
};

/// n_ij, the error of an entry: below 2^59.
KOKKOS_INLINE_FUNCTION std::uint64_t certificate_error(const CertificateVector& x,
                                                       const CertificateVector& y) {
  return (y.norm_1 << x.norm_2) + (x.norm_1 << y.norm_2);
}

/// The smallest t with n <= g 2^t, for 0 < n < 2^63 and 0 < g < 2^63.
KOKKOS_INLINE_FUNCTION std::int32_t certificate_bits(std::uint64_t n, std::uint64_t g) {
  const std::int32_t t = bit_length(n) - bit_length(g);
  return (t < 0 ? n << -t : n) > (t > 0 ? g << t : g) ? t + 1 : t;
}

/// \brief What a certificate finds out, on the device.
struct CertificateRecord {
  std::int32_t bits;                    // T: the largest of the entries that some number of moduli certifies
  std::int32_t least_bits;              // no lower bound of |op(A)| |op(B)| gives a T below this
  std::int32_t row_norm_2, col_norm_2;  // the largest a
  std::int64_t open;                    // entries that are not certified
  // What comes with one of these as its flag is left out where it is not zero.
  std::int32_t skip_whole, skip_fine;

  static constexpr std::int32_t none = -1000000;  // in place of T: there is no entry

  /// Forgets the entries.
  KOKKOS_INLINE_FUNCTION void reset() {
    bits = least_bits = none;
    open = 0;
  }
};

/// \brief A CertificateRule of which everything is worked out that takes long arithmetic, for the device as well.
struct CertificateTable {
  std::int32_t
      half_bits[max_moduli + 1];  // K of each number of moduli; 0: not allowed, or too few for this k
  std::int32_t length_bits;       // ceil(log2 k), toward zero one more
  std::int32_t bits_beside;       // what is needed beside T

  /// Q, from the largest a of rows and of columns (0: no vector).
  KOKKOS_INLINE_FUNCTION int second_order_bits(std::int32_t row_norm_2, std::int32_t col_norm_2) const {
    if (row_norm_2 == 0 || col_norm_2 == 0) return 0;
    return 8 + length_bits + (row_norm_2 < col_norm_2 ? row_norm_2 : col_norm_2);
  }

  /// The smallest number of moduli that is certified for T; 0: none is.
  KOKKOS_INLINE_FUNCTION int moduli_for(std::int32_t bits, std::int32_t row_norm_2,
                                        std::int32_t col_norm_2) const {
    const int q = second_order_bits(row_norm_2, col_norm_2);
    const int need = bits == CertificateRecord::none ? 0 : bits + bits_beside;
    for (int s = 0; s <= max_moduli; ++s) {
      const int half = half_bits[s];
      if (half == 0) continue;
      if ((half >= need && half >= q) || (half >= need + 1 && half >= length_bits)) return s;
    }
    return 0;
  }

  /// \brief The number of moduli by the first lower bound, unless another one may save more than one.
  /// \param is_whole  there is no other
  /// \return 0: go on
  KOKKOS_INLINE_FUNCTION int accepted(const CertificateRecord& found, bool is_whole) const {
    if (found.open != 0) return 0;
    const int num_moduli = moduli_for(found.bits, found.row_norm_2, found.col_norm_2);
    return is_whole || num_moduli <= moduli_for(found.least_bits, found.row_norm_2, found.col_norm_2) + 1
               ? num_moduli
               : 0;
  }
};

/// \brief The conditions on the number of moduli that come from the sizes alone.
struct CertificateRule {
  std::int64_t terms;  // k; complex: 2k
  int precision;       // p: u = 2^-p
  bool toward_zero;

  constexpr int least_moduli() const { return precision == 53 ? 10 : 4; }

  /// K = hb / 2 with the budget of s moduli; 0: too few for this k.
  constexpr int half_bits(int s) const {
    return guard_fast(s, terms) < 2 ? 0 : fast_budget(s, terms).bits >> 1;
  }

  /// T + 20 + p.
  constexpr int needed_bits(std::int32_t bits) const { return bits + 20 + precision + (toward_zero ? 1 : 0); }

  /// The largest T that max_moduli moduli certify: their K = 77 is above every Q.
  constexpr std::int32_t most_bits() const { return half_bits(max_moduli) - needed_bits(0); }

  CertificateTable table() const {
    CertificateTable table{};
    for (int s = least_moduli(); s <= max_moduli; ++s) table.half_bits[s] = half_bits(s);
    table.length_bits = ceil_log2(static_cast<std::uint64_t>(terms)) + (toward_zero ? 1 : 0);
    table.bits_beside = needed_bits(0);
    return table;
  }
};

}  // namespace KokkosOzaki::Impl

#endif
