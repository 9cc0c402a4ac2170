// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_HostKernels.hpp"
#include "KokkosOzaki_HostPack_Avx512.hpp"

#include <immintrin.h>

#include <cstring>

namespace KokkosOzaki::Impl {
namespace {

constexpr std::int64_t max_rows = 192, max_depth = 512, strip_cols = 8;

std::int32_t sum_of_lanes(__m512i x) {
  alignas(64) std::int32_t lanes[16];
  _mm512_store_si512(lanes, x);
  std::int32_t sum = 0;
  for (const std::int32_t lane : lanes) sum += lane;
  return sum;
}

// Copies columns of b next to each other, away from leading dimensions whose multiples meet in few cache
// sets, and finds what vpdpbusd, which multiplies unsigned by signed bytes, adds too much: sum (a + 128) b =
// sum a b + 128 sum b, all modulo 2^32.
void pack_strip(const std::int8_t* b, std::int64_t ldb, std::int64_t depth, std::int8_t* strip,
                std::int32_t* offset) {
  const __m512i twos_to_the_7 = _mm512_set1_epi8(static_cast<char>(128));
  for (int j = 0; j < strip_cols; ++j) {
    __m512i sum = _mm512_setzero_si512();
    for (std::int64_t l = 0; l < depth; l += 64) {
      const __m512i bytes = _mm512_load_si512(b + j * ldb + l);
      _mm512_store_si512(strip + j * max_depth + l, bytes);
      sum = _mm512_dpbusd_epi32(sum, twos_to_the_7, bytes);
    }
    offset[j] = sum_of_lanes(sum);
  }
}

inline __m512i broadcast_4_bytes(const std::int8_t* b) {
  std::int32_t word;
  std::memcpy(&word, b, sizeof word);
  return _mm512_set1_epi32(word);
}

template <int Vectors>
inline void multiply_block(const std::uint8_t* a, const std::int8_t* strip, std::int64_t depth,
                           const std::int32_t* offset, std::int32_t* p, std::int64_t ldp, bool add) {
  __m512i sum[strip_cols][Vectors];
#pragma GCC unroll 8
  for (int j = 0; j < strip_cols; ++j)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) {
      const __m512i before = add ? _mm512_load_si512(p + j * ldp + 16 * v) : _mm512_setzero_si512();
      sum[j][v] = _mm512_sub_epi32(before, _mm512_set1_epi32(offset[j]));
    }
#pragma GCC unroll 2
  for (std::int64_t l = 0; l < depth; l += 4) {
    __m512i rows[Vectors];
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) rows[v] = _mm512_load_si512(a + 16 * (v * depth + l));
#pragma GCC unroll 8
    for (int j = 0; j < strip_cols; ++j) {
      const __m512i column = broadcast_4_bytes(strip + j * max_depth + l);
#pragma GCC unroll 3
      for (int v = 0; v < Vectors; ++v) sum[j][v] = _mm512_dpbusd_epi32(sum[j][v], rows[v], column);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < strip_cols; ++j)
#pragma GCC unroll 3
    for (int v = 0; v < Vectors; ++v) _mm512_store_si512(p + j * ldp + 16 * v, sum[j][v]);
}

}  // namespace

void multiply_tile_avx512vnni(const HostTile& t) {
  alignas(64) std::uint8_t packed[max_rows * max_depth];
  alignas(64) std::int8_t strip[strip_cols * max_depth];
  std::int64_t k0 = 0;
  do {
    const std::int64_t depth = t.depth - k0 < max_depth ? t.depth - k0 : max_depth;
    const bool add = t.accumulate || k0 > 0;
    for (std::int64_t i = 0; i < t.rows; i += 16)
      pack_16_rows(t.a + i * t.lda + k0, t.lda, depth, 0x80, packed + i * depth);
    for (std::int64_t j = 0; j < t.cols; j += strip_cols) {
      std::int32_t* const p = t.p + j * t.ldp;
      std::int32_t offset[strip_cols];
      pack_strip(t.b + j * t.ldb + k0, t.ldb, depth, strip, offset);
      for (std::int64_t i = 0; i < t.rows;) {
        const std::int64_t left = t.rows - i;
        const std::uint8_t* const a = packed + i * depth;
        if (left == 16) {
          multiply_block<1>(a, strip, depth, offset, p + i, t.ldp, add);
          i += 16;
        } else if (left == 32 || left == 64) {
          multiply_block<2>(a, strip, depth, offset, p + i, t.ldp, add);
          i += 32;
        } else {
          multiply_block<3>(a, strip, depth, offset, p + i, t.ldp, add);
          i += 48;
        }
      }
    }
    k0 += max_depth;
  } while (k0 < t.depth);
}

}  // namespace KokkosOzaki::Impl
