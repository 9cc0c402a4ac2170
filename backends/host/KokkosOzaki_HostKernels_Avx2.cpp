// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_HostKernels.hpp"

#include <immintrin.h>

#include <cstring>

namespace KokkosOzaki::Impl {
namespace {

constexpr std::int64_t max_rows = 128, max_depth = 256, strip_cols = 4;

inline __m256i load(const void* address) {
  return _mm256_load_si256(static_cast<const __m256i*>(address));
}

inline void store(void* address, __m256i x) {
  _mm256_store_si256(static_cast<__m256i*>(address), x);
}

// Bytes 0 and 2, and bytes 1 and 3, of every group of 4 as 16-bit numbers: both operands go through the same
// pairing.
inline __m256i even_bytes(__m256i x) {
  return _mm256_srai_epi16(_mm256_slli_epi16(x, 8), 8);
}
inline __m256i odd_bytes(__m256i x) {
  return _mm256_srai_epi16(x, 8);
}

// Both halves of the result: the 16 bytes at `row` and those four rows further.
inline __m256i load_two_rows(const std::int8_t* row, std::int64_t lda) {
  const __m128i low = _mm_load_si128(reinterpret_cast<const __m128i*>(row));
  const __m128i high = _mm_load_si128(reinterpret_cast<const __m128i*>(row + 4 * lda));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

inline void store_widened(__m256i four_bytes_of_8_rows, std::int16_t* packed) {
  store(packed, even_bytes(four_bytes_of_8_rows));
  store(packed + 32, odd_bytes(four_bytes_of_8_rows));
}

// packed[k/2][16 rows][2]; this fills 8 of the 16 rows.
void pack_8_rows(const std::int8_t* a, std::int64_t lda, std::int64_t depth, std::int16_t* packed) {
  for (std::int64_t l = 0; l < depth; l += 16) {
    const __m256i row0 = load_two_rows(a + l, lda), row1 = load_two_rows(a + lda + l, lda);
    const __m256i row2 = load_two_rows(a + 2 * lda + l, lda), row3 = load_two_rows(a + 3 * lda + l, lda);
    const __m256i low01 = _mm256_unpacklo_epi32(row0, row1), high01 = _mm256_unpackhi_epi32(row0, row1);
    const __m256i low23 = _mm256_unpacklo_epi32(row2, row3), high23 = _mm256_unpackhi_epi32(row2, row3);
    std::int16_t* const out = packed + 16 * l;
    store_widened(_mm256_unpacklo_epi64(low01, low23), out);
    store_widened(_mm256_unpackhi_epi64(low01, low23), out + 64);
    store_widened(_mm256_unpacklo_epi64(high01, high23), out + 128);
    store_widened(_mm256_unpackhi_epi64(high01, high23), out + 192);
  }
}

// widened[column][k/2][2]
void widen_strip(const std::int8_t* b, std::int64_t ldb, std::int64_t depth, std::int16_t* widened) {
  for (int j = 0; j < strip_cols; ++j)
    for (std::int64_t l = 0; l < depth; l += 32) {
      const __m256i bytes = load(b + j * ldb + l);
      const __m256i even = even_bytes(bytes), odd = odd_bytes(bytes);
      const __m256i low = _mm256_unpacklo_epi32(even, odd), high = _mm256_unpackhi_epi32(even, odd);
      std::int16_t* const out = widened + j * max_depth + l;
      store(out, _mm256_permute2x128_si256(low, high, 0x20));
      store(out + 16, _mm256_permute2x128_si256(low, high, 0x31));
    }
}

inline __m256i broadcast_pair(const std::int16_t* pair) {
  std::int32_t word;
  std::memcpy(&word, pair, sizeof word);
  return _mm256_set1_epi32(word);
}

// |a b + a' b'| <= 2^15 in every 32-bit lane: nothing saturates.
inline __m256i multiply_add(__m256i sum, __m256i a, __m256i b) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b));
}

inline void multiply_block(const std::int16_t* a, const std::int16_t* b, std::int64_t depth, std::int32_t* p,
                           std::int64_t ldp, bool add) {
  __m256i low[strip_cols], high[strip_cols];
#pragma GCC unroll 4
  for (int j = 0; j < strip_cols; ++j) {
    low[j] = add ? load(p + j * ldp) : _mm256_setzero_si256();
    high[j] = add ? load(p + j * ldp + 8) : _mm256_setzero_si256();
  }
#pragma GCC unroll 2
  for (std::int64_t l = 0; l < depth; l += 2) {
    const __m256i rows_low = load(a + 16 * l), rows_high = load(a + 16 * l + 16);
#pragma GCC unroll 4
    for (int j = 0; j < strip_cols; ++j) {
      const __m256i column = broadcast_pair(b + j * max_depth + l);
      low[j] = multiply_add(low[j], rows_low, column);
      high[j] = multiply_add(high[j], rows_high, column);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < strip_cols; ++j) {
    store(p + j * ldp, low[j]);
    store(p + j * ldp + 8, high[j]);
  }
}

}  // namespace

void multiply_tile_avx2(const HostTile& t) {
  alignas(64) std::int16_t packed[max_rows * max_depth];
  alignas(64) std::int16_t widened[strip_cols * max_depth];
  std::int64_t k0 = 0;
  do {
    const std::int64_t depth = t.depth - k0 < max_depth ? t.depth - k0 : max_depth;
    const bool add = t.accumulate || k0 > 0;
    for (std::int64_t i = 0; i < t.rows; i += 8)
      pack_8_rows(t.a + i * t.lda + k0, t.lda, depth, packed + (i / 16) * 16 * depth + (i % 16) * 2);
    for (std::int64_t j = 0; j < t.cols; j += strip_cols) {
      widen_strip(t.b + j * t.ldb + k0, t.ldb, depth, widened);
      for (std::int64_t i = 0; i < t.rows; i += 16)
        multiply_block(packed + i * depth, widened, depth, t.p + j * t.ldp + i, t.ldp, add);
    }
    k0 += max_depth;
  } while (k0 < t.depth);
}

}  // namespace KokkosOzaki::Impl
