// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_HostKernels.hpp"

#include <immintrin.h>

#include <cstring>

namespace KokkosOzaki::Impl {
namespace {

constexpr std::int64_t max_rows = 192, max_depth = 512, strip_cols = 4;

inline __m256i load(const void* address) {
  return _mm256_load_si256(static_cast<const __m256i*>(address));
}

// Both halves of the result: the 16 bytes at `row` and those four rows further.
inline __m256i load_two_rows(const std::int8_t* row, std::int64_t lda) {
  const __m128i low = _mm_load_si128(reinterpret_cast<const __m128i*>(row));
  const __m128i high = _mm_load_si128(reinterpret_cast<const __m128i*>(row + 4 * lda));
  return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

// packed[k/4][8 rows][4] = a + 128 as unsigned bytes.
void pack_8_rows(const std::int8_t* a, std::int64_t lda, std::int64_t depth, std::uint8_t* packed) {
  const __m256i flips = _mm256_set1_epi8(static_cast<char>(0x80));
  for (std::int64_t l = 0; l < depth; l += 16) {
    const __m256i row0 = load_two_rows(a + l, lda), row1 = load_two_rows(a + lda + l, lda);
    const __m256i row2 = load_two_rows(a + 2 * lda + l, lda), row3 = load_two_rows(a + 3 * lda + l, lda);
    const __m256i low01 = _mm256_unpacklo_epi32(row0, row1), high01 = _mm256_unpackhi_epi32(row0, row1);
    const __m256i low23 = _mm256_unpacklo_epi32(row2, row3), high23 = _mm256_unpackhi_epi32(row2, row3);
    auto* out = reinterpret_cast<__m256i*>(packed + 8 * l);
    _mm256_store_si256(out, _mm256_xor_si256(flips, _mm256_unpacklo_epi64(low01, low23)));
    _mm256_store_si256(out + 1, _mm256_xor_si256(flips, _mm256_unpackhi_epi64(low01, low23)));
    _mm256_store_si256(out + 2, _mm256_xor_si256(flips, _mm256_unpacklo_epi64(high01, high23)));
    _mm256_store_si256(out + 3, _mm256_xor_si256(flips, _mm256_unpackhi_epi64(high01, high23)));
  }
}

std::int32_t sum_of_lanes(__m256i x) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
  return _mm_cvtsi128_si32(sum);
}

// Copies columns of b next to each other, away from leading dimensions whose multiples meet in few cache
// sets, and finds what vpdpbusd, which multiplies unsigned by signed bytes, adds too much: sum (a + 128) b =
// sum a b + 128 sum b, all modulo 2^32.
void pack_strip(const std::int8_t* b, std::int64_t ldb, std::int64_t depth, std::int8_t* strip,
                std::int32_t* offset) {
  const __m256i twos_to_the_7 = _mm256_set1_epi8(static_cast<char>(128));
  for (int j = 0; j < strip_cols; ++j) {
    __m256i sum = _mm256_setzero_si256();
    for (std::int64_t l = 0; l < depth; l += 32) {
      const __m256i bytes = load(b + j * ldb + l);
      _mm256_store_si256(reinterpret_cast<__m256i*>(strip + j * max_depth + l), bytes);
      sum = _mm256_dpbusd_avx_epi32(sum, twos_to_the_7, bytes);
    }
    offset[j] = sum_of_lanes(sum);
  }
}

inline __m256i broadcast_4_bytes(const std::int8_t* b) {
  std::int32_t word;
  std::memcpy(&word, b, sizeof word);
  return _mm256_set1_epi32(word);
}

template <int Vectors>
inline void multiply_block(const std::uint8_t* a, const std::int8_t* strip, std::int64_t depth,
                           const std::int32_t* offset, std::int32_t* p, std::int64_t ldp, bool add) {
  __m256i sum[strip_cols][Vectors];
#pragma GCC unroll 4
  for (int j = 0; j < strip_cols; ++j)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      const __m256i before = add ? load(p + j * ldp + 8 * v) : _mm256_setzero_si256();
      sum[j][v] = _mm256_sub_epi32(before, _mm256_set1_epi32(offset[j]));
    }
#pragma GCC unroll 2
  for (std::int64_t l = 0; l < depth; l += 4) {
    __m256i rows[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) rows[v] = load(a + 8 * (v * depth + l));
#pragma GCC unroll 4
    for (int j = 0; j < strip_cols; ++j) {
      const __m256i column = broadcast_4_bytes(strip + j * max_depth + l);
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) sum[j][v] = _mm256_dpbusd_avx_epi32(sum[j][v], rows[v], column);
    }
  }
#pragma GCC unroll 4
  for (int j = 0; j < strip_cols; ++j)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v)
      _mm256_store_si256(reinterpret_cast<__m256i*>(p + j * ldp + 8 * v), sum[j][v]);
}

}  // namespace

void multiply_tile_avxvnni(const HostTile& t) {
  alignas(64) std::uint8_t packed[max_rows * max_depth];
  alignas(64) std::int8_t strip[strip_cols * max_depth];
  std::int64_t k0 = 0;
  do {
    const std::int64_t depth = t.depth - k0 < max_depth ? t.depth - k0 : max_depth;
    const bool add = t.accumulate || k0 > 0;
    for (std::int64_t i = 0; i < t.rows; i += 8)
      pack_8_rows(t.a + i * t.lda + k0, t.lda, depth, packed + i * depth);
    for (std::int64_t j = 0; j < t.cols; j += strip_cols) {
      std::int32_t* const p = t.p + j * t.ldp;
      std::int32_t offset[strip_cols];
      pack_strip(t.b + j * t.ldb + k0, t.ldb, depth, strip, offset);
      for (std::int64_t i = 0; i < t.rows;) {
        const std::int64_t left = t.rows - i;
        const std::uint8_t* const a = packed + i * depth;
        if (left == 16 || left == 32) {
          multiply_block<2>(a, strip, depth, offset, p + i, t.ldp, add);
          i += 16;
        } else {
          multiply_block<3>(a, strip, depth, offset, p + i, t.ldp, add);
          i += 24;
        }
      }
    }
    k0 += max_depth;
  } while (k0 < t.depth);
}

}  // namespace KokkosOzaki::Impl
