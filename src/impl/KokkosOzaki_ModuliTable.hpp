// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_MODULITABLE_HPP
#define KOKKOSOZAKI_MODULITABLE_HPP

#include <cstdint>

namespace KokkosOzaki::Impl {

constexpr int min_moduli = 2;
constexpr int max_moduli = 20;
constexpr int max_words = 5;    // 32-bit words of the product of all 20 moduli
constexpr int max_groups = 7;   // groups of three moduli
constexpr int max_digits = 10;  // signed bytes of a scaled entry: 8 for s <= 16, 10 above

/// \brief What the fused reduction and reconstruction on a device needs, laid out so that it is copied 16
/// bytes at a time. Moduli beyond the last have weight zero, so that all groups are full.
struct alignas(16) OutputConstants {
  std::int32_t reducer[3 * max_groups][4];  // output coefficients (four bytes), m_t, ceil(2^32 / m_t), A_m -
                                            // 128 sum of coefficients
  std::int32_t weight[3 * max_groups][2];   // M_g / m_t, kappa_t
  std::int32_t group_limb[max_groups][max_words];
  std::int32_t product_limb[max_words];
};
static_assert(sizeof(OutputConstants) % 16 == 0, "copied in pieces of 16 bytes");

/// \brief Everything the stages need to know about s moduli; plain data, copied once to the memory of the
/// device.
struct ModuliTable {
  std::int32_t count;                               // s
  std::int32_t words;                               // W = ceil(bitlen(M_s) / 32)
  std::int32_t groups;                              // ceil(s / 3)
  std::int32_t digits;                              // signed bytes of a scaled entry: 8 or 10
  std::int32_t modulus[max_moduli];                 // m_t
  std::uint32_t inverse[max_moduli];                // ceil(2^32 / m_t)
  std::int32_t start[max_moduli];                   // A_m: smallest multiple of m_t that is >= 2^17
  std::int8_t residue_coefficient[max_moduli][12];  // centered(256^i), i < 10, then zeros
  std::int8_t output_coefficient[max_moduli][4];    // centered(256^i w_t)
  std::int32_t quotient_weight[max_moduli];         // kappa_t = round(2^24 / m_t)
  std::int32_t group_weight[max_moduli];            // M_g / m_t, g the group of t
  std::int32_t group_limb[max_groups][max_words];   // signed 32-bit limbs of M_s / M_g
  std::int32_t product_limb[max_words];             // signed 32-bit limbs of M_s
  OutputConstants outputs;
};

}  // namespace KokkosOzaki::Impl

#endif
