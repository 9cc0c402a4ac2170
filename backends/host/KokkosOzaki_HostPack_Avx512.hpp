// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_HOSTPACK_AVX512_HPP
#define KOKKOSOZAKI_HOSTPACK_AVX512_HPP

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

// Internal linkage throughout: only for translation units compiled for AVX-512.

namespace KokkosOzaki::Impl {

// Full masks, because the unmasked intrinsics of gcc 12 warn of an uninitialised operand.
static inline __m512i unpacklo_32(__m512i a, __m512i b) {
  return _mm512_maskz_unpacklo_epi32(0xffff, a, b);
}
static inline __m512i unpackhi_32(__m512i a, __m512i b) {
  return _mm512_maskz_unpackhi_epi32(0xffff, a, b);
}
static inline __m512i unpacklo_64(__m512i a, __m512i b) {
  return _mm512_maskz_unpacklo_epi64(0xff, a, b);
}
static inline __m512i unpackhi_64(__m512i a, __m512i b) {
  return _mm512_maskz_unpackhi_epi64(0xff, a, b);
}

/// Lane g of the result is the 16 bytes at `row + 4 * g * lda`.
static inline __m512i load_every_fourth_row(const std::int8_t* row, std::int64_t lda) {
  const auto chunk = [&](int g) {
    return _mm_load_si128(reinterpret_cast<const __m128i*>(row + 4 * g * lda));
  };
  __m512i lanes = _mm512_castsi128_si512(chunk(0));
  lanes = _mm512_mask_broadcast_i32x4(lanes, 0x00f0, chunk(1));
  lanes = _mm512_mask_broadcast_i32x4(lanes, 0x0f00, chunk(2));
  return _mm512_mask_broadcast_i32x4(lanes, 0xf000, chunk(3));
}

/// \brief Interleaves 16 rows in groups of 4 bytes: packed[k/4][16 rows][4], every byte XOR `flip`.
/// \param depth  multiple of 64; packed receives 16 * depth bytes
static inline void pack_16_rows(const std::int8_t* a, std::int64_t lda, std::int64_t depth, std::uint8_t flip,
                                std::uint8_t* packed) {
  const __m512i flips = _mm512_set1_epi32(static_cast<int>(flip * 0x01010101U));
  for (std::int64_t l = 0; l < depth; l += 16) {
    const __m512i row0 = load_every_fourth_row(a + l, lda);
    const __m512i row1 = load_every_fourth_row(a + lda + l, lda);
    const __m512i row2 = load_every_fourth_row(a + 2 * lda + l, lda);
    const __m512i row3 = load_every_fourth_row(a + 3 * lda + l, lda);
    const __m512i low01 = unpacklo_32(row0, row1), high01 = unpackhi_32(row0, row1);
    const __m512i low23 = unpacklo_32(row2, row3), high23 = unpackhi_32(row2, row3);
    auto* out = reinterpret_cast<__m512i*>(packed + 16 * l);
    _mm512_store_si512(out, _mm512_xor_si512(flips, unpacklo_64(low01, low23)));
    _mm512_store_si512(out + 1, _mm512_xor_si512(flips, unpackhi_64(low01, low23)));
    _mm512_store_si512(out + 2, _mm512_xor_si512(flips, unpacklo_64(high01, high23)));
    _mm512_store_si512(out + 3, _mm512_xor_si512(flips, unpackhi_64(high01, high23)));
  }
}

}  // namespace KokkosOzaki::Impl

#endif
