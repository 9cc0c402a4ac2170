// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Compiled for AVX-512 F, BW, DQ, VL, VBMI and VNNI. Nothing here depends on the caller's rounding mode or
// flush-to-zero modes except combine(): floating-point steps that round carry their rounding mode, and no
// operand is subnormal.

#if defined(__GNUC__) && !defined(__clang__)
// False positives in the intrinsics of g++ 12.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "KokkosOzaki_StageKernels.hpp"

namespace KokkosOzaki::Impl {

namespace {

constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
constexpr int truncate = _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC;

constexpr int tile_row = 128;
constexpr int block = 64;  // elements per step: a cache line of residues

__mmask8 first_of_8(std::int64_t count) {
  return count >= 8 ? __mmask8{0xFF} : count <= 0 ? __mmask8{0} : static_cast<__mmask8>((1u << count) - 1);
}

__mmask16 first_of_16(std::int64_t count) {
  return count >= 16  ? __mmask16{0xFFFF}
         : count <= 0 ? __mmask16{0}
                      : static_cast<__mmask16>((1u << count) - 1);
}

__mmask64 first_of_64(std::int64_t count) {
  return count >= 64 ? ~__mmask64{0} : (__mmask64{1} << count) - 1;
}

// ---- tiles ------------------------------------------------------------------------------------------

/// row[v] := column v of the 8 x 8 block, stored to out[v * tile_row], v < vectors.
void store_transposed(const __m512d* row, int vectors, __mmask8 positions, double* out) {
  __m512d pair[8], quad[8], col[8];
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm512_unpacklo_pd(row[i], row[i + 1]);
    pair[i + 1] = _mm512_unpackhi_pd(row[i], row[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; ++j) {
      quad[i + j] = _mm512_shuffle_f64x2(pair[i + j], pair[i + j + 2], 0x88);      // columns j, j + 4
      quad[i + j + 2] = _mm512_shuffle_f64x2(pair[i + j], pair[i + j + 2], 0xDD);  // columns j + 2, j + 6
    }
  for (int j = 0; j < 4; ++j) {
    col[j] = _mm512_shuffle_f64x2(quad[j], quad[j + 4], 0x88);
    col[j + 4] = _mm512_shuffle_f64x2(quad[j], quad[j + 4], 0xDD);
  }
  if (vectors == 8 && positions == 0xFF) {
    for (int v = 0; v < 8; ++v) _mm512_storeu_pd(out + v * tile_row, col[v]);
  } else {
    for (int v = 0; v < 8; ++v)
      if (v < vectors) _mm512_mask_storeu_pd(out + v * tile_row, positions, col[v]);
  }
}

void load_tile(const double* x, std::int64_t vector_stride, std::int64_t position_stride, int vectors,
               int positions, double* tile) {
  if (position_stride == 1) {
    for (int v = 0; v < vectors; ++v)
      for (int l = 0; l < positions; l += 8) {
        const __mmask8 mask = first_of_8(positions - l);
        _mm512_mask_storeu_pd(tile + v * tile_row + l, mask,
                              _mm512_maskz_loadu_pd(mask, x + v * vector_stride + l));
      }
    return;
  }
  if (vector_stride != 1) {
    for (int v = 0; v < vectors; ++v)
      for (int l = 0; l < positions; ++l) tile[v * tile_row + l] = x[v * vector_stride + l * position_stride];
    return;
  }
  for (int l = 0; l < positions; l += 8) {
    const int rows = positions - l < 8 ? positions - l : 8;
    for (int v = 0; v < vectors; v += 8) {
      const __mmask8 mask = first_of_8(vectors - v);
      const double* source = x + l * position_stride + v;
      __m512d row[8];
      if (rows == 8 && mask == 0xFF) {
        for (int i = 0; i < 8; ++i) row[i] = _mm512_loadu_pd(source + i * position_stride);
      } else {
        for (int i = 0; i < 8; ++i)
          row[i] = i < rows ? _mm512_maskz_loadu_pd(mask, source + i * position_stride) : _mm512_setzero_pd();
      }
      store_transposed(row, vectors - v < 8 ? vectors - v : 8, first_of_8(rows), tile + v * tile_row + l);
    }
  }
}

/// row[v] := column v of the 16 x 16 block, stored to out[v * tile_row], v < vectors.
void store_transposed(const __m512* row, int vectors, __mmask16 positions, float* out) {
  __m512 pair[16], quad[16], col[16];
  for (int i = 0; i < 16; i += 2) {
    pair[i] = _mm512_unpacklo_ps(row[i], row[i + 1]);
    pair[i + 1] = _mm512_unpackhi_ps(row[i], row[i + 1]);
  }
  // Columns 4 q + c of the rows i .. i + 3 in the 128-bit lane q of quad[i + c].
  for (int i = 0; i < 16; i += 4)
    for (int j = 0; j < 2; ++j) {
      const __m512d a = _mm512_castps_pd(pair[i + j]), b = _mm512_castps_pd(pair[i + j + 2]);
      quad[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      quad[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  for (int c = 0; c < 4; ++c) {
    const __m512 even_low = _mm512_shuffle_f32x4(quad[c], quad[4 + c], 0x88),
                 odd_low = _mm512_shuffle_f32x4(quad[c], quad[4 + c], 0xDD),
                 even_high = _mm512_shuffle_f32x4(quad[8 + c], quad[12 + c], 0x88),
                 odd_high = _mm512_shuffle_f32x4(quad[8 + c], quad[12 + c], 0xDD);
    col[c] = _mm512_shuffle_f32x4(even_low, even_high, 0x88);
    col[4 + c] = _mm512_shuffle_f32x4(odd_low, odd_high, 0x88);
    col[8 + c] = _mm512_shuffle_f32x4(even_low, even_high, 0xDD);
    col[12 + c] = _mm512_shuffle_f32x4(odd_low, odd_high, 0xDD);
  }
  for (int v = 0; v < 16; ++v)
    if (v < vectors) _mm512_mask_storeu_ps(out + v * tile_row, positions, col[v]);
}

void load_tile(const float* x, std::int64_t vector_stride, std::int64_t position_stride, int vectors,
               int positions, float* tile) {
  if (position_stride == 1) {
    for (int v = 0; v < vectors; ++v)
      for (int l = 0; l < positions; l += 16) {
        const __mmask16 mask = first_of_16(positions - l);
        _mm512_mask_storeu_ps(tile + v * tile_row + l, mask,
                              _mm512_maskz_loadu_ps(mask, x + v * vector_stride + l));
      }
    return;
  }
  if (vector_stride != 1) {
    for (int v = 0; v < vectors; ++v)
      for (int l = 0; l < positions; ++l) tile[v * tile_row + l] = x[v * vector_stride + l * position_stride];
    return;
  }
  for (int l = 0; l < positions; l += 16) {
    const int rows = positions - l < 16 ? positions - l : 16;
    for (int v = 0; v < vectors; v += 16) {
      const __mmask16 mask = first_of_16(vectors - v);
      const float* source = x + l * position_stride + v;
      __m512 row[16];
      for (int i = 0; i < 16; ++i)
        row[i] = i < rows ? _mm512_maskz_loadu_ps(mask, source + i * position_stride) : _mm512_setzero_ps();
      store_transposed(row, vectors - v < 16 ? vectors - v : 16, first_of_16(rows), tile + v * tile_row + l);
    }
  }
}

// ---- bits of doubles --------------------------------------------------------------------------------

constexpr std::int64_t magnitude_mask = INT64_MAX;
constexpr std::int64_t hidden_bit = std::int64_t{1} << 52;
constexpr std::int64_t infinity_bits = std::int64_t{0x7FF} << 52;

/// |x| = value 2^(exponent - 1075), value < 2^53, exponent >= 1, from the bits of |x|.
struct Significands {
  __m512i value;
  __m512i exponent;
};

Significands significands_of(__m512i magnitude) {
  const __mmask8 normal = _mm512_cmpge_epu64_mask(magnitude, _mm512_set1_epi64(hidden_bit));
  const __m512i fraction = _mm512_and_si512(magnitude, _mm512_set1_epi64(hidden_bit - 1));
  return {_mm512_mask_or_epi64(fraction, normal, fraction, _mm512_set1_epi64(hidden_bit)),
          _mm512_max_epu64(_mm512_srli_epi64(magnitude, 52), _mm512_set1_epi64(1))};
}

/// round(value / 2^r) for r >= 1, ties to even; value <= 2^63.
__m512i round_right(__m512i value, __m512i r) {
  const __m512i one = _mm512_set1_epi64(1);
  const __m512i half = _mm512_sllv_epi64(one, _mm512_sub_epi64(r, one));
  const __m512i odd = _mm512_and_si512(_mm512_srlv_epi64(value, r), one);
  const __m512i sum = _mm512_add_epi64(_mm512_add_epi64(value, odd), _mm512_sub_epi64(half, one));
  return _mm512_srlv_epi64(sum, r);
}

__m512i magnitudes(const double* x, __mmask8 mask) {
  return _mm512_and_si512(_mm512_maskz_loadu_epi64(mask, x), _mm512_set1_epi64(magnitude_mask));
}

/// floor(|x| 2^(15 - e)) + 1 where x != 0, else 0; |x| < 2^(e + 1).
__m512i fixed15_plus_one(__m512i magnitude, std::int32_t e) {
  const Significands m = significands_of(magnitude);
  const __m512i shift = _mm512_sub_epi64(_mm512_set1_epi64(1060 + e), m.exponent);
  __m512i f = _mm512_srlv_epi64(m.value, shift);
  // Only where the largest entry is subnormal.
  if (e < -1022)
    f = _mm512_or_si512(f, _mm512_sllv_epi64(m.value, _mm512_sub_epi64(_mm512_setzero_si512(), shift)));
  return _mm512_maskz_add_epi64(_mm512_test_epi64_mask(magnitude, magnitude), f, _mm512_set1_epi64(1));
}

ChunkStatistics chunk_statistics(const double* x, int length) {
  __m512i maxima = _mm512_setzero_si512();
  for (int l = 0; l < length; l += 8)
    maxima = _mm512_max_epu64(maxima, magnitudes(x + l, first_of_8(length - l)));
  const auto largest = static_cast<std::int64_t>(_mm512_reduce_max_epu64(maxima));
  if (largest == 0) return {0, zero_vector};
  if (largest >= infinity_bits) return {0, flagged_vector};
  const std::int32_t e = largest >= hidden_bit ? static_cast<std::int32_t>(largest >> 52) - 1023
                                               : -1011 - __builtin_clzll(static_cast<std::uint64_t>(largest));
  __m512i square_sums = _mm512_setzero_si512(), sums = _mm512_setzero_si512();
  for (int l = 0; l < length; l += 8) {
    const __m512i f = fixed15_plus_one(magnitudes(x + l, first_of_8(length - l)), e);
    square_sums = _mm512_add_epi64(square_sums, _mm512_mul_epu32(f, f));
    sums = _mm512_add_epi64(sums, f);
  }
  return {static_cast<std::uint64_t>(_mm512_reduce_add_epi64(square_sums)), e,
          static_cast<std::uint32_t>(_mm512_reduce_add_epi64(sums))};
}

void quantize(const double* x, std::int64_t length, std::int32_t e, std::int8_t* out) {
  for (std::int64_t l = 0; l < length; l += 8) {
    const __m512i f = fixed15_plus_one(magnitudes(x + l, 0xFF), e);
    // (f * 127 + 65535) >> 16
    const __m512i q =
        _mm512_add_epi64(_mm512_sub_epi64(_mm512_slli_epi64(f, 7), f), _mm512_set1_epi64(65535));
    const __m128i bytes = _mm512_cvtepi64_epi8(_mm512_srli_epi64(q, 16));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out + l), bytes);
  }
}

// ---- bits of floats ---------------------------------------------------------------------------------

constexpr std::int32_t float_magnitude_mask = INT32_MAX;
constexpr std::int32_t float_hidden_bit = std::int32_t{1} << 23;
constexpr std::int32_t float_infinity_bits = std::int32_t{0xFF} << 23;

/// |x| = value 2^(exponent - 150), value < 2^24, exponent >= 1, from the bits of |x|, in dwords.
Significands float_significands_of(__m512i magnitude) {
  const __mmask16 normal = _mm512_cmpge_epu32_mask(magnitude, _mm512_set1_epi32(float_hidden_bit));
  const __m512i fraction = _mm512_and_si512(magnitude, _mm512_set1_epi32(float_hidden_bit - 1));
  return {_mm512_mask_or_epi32(fraction, normal, fraction, _mm512_set1_epi32(float_hidden_bit)),
          _mm512_max_epu32(_mm512_srli_epi32(magnitude, 23), _mm512_set1_epi32(1))};
}

__m512i magnitudes(const float* x, __mmask16 mask) {
  return _mm512_and_si512(_mm512_maskz_loadu_epi32(mask, x), _mm512_set1_epi32(float_magnitude_mask));
}

/// As fixed15_plus_one, for the bits of 16 floats.
__m512i float_fixed15_plus_one(__m512i magnitude, std::int32_t e) {
  const Significands m = float_significands_of(magnitude);
  const __m512i shift = _mm512_sub_epi32(_mm512_set1_epi32(135 + e), m.exponent);
  __m512i f = _mm512_srlv_epi32(m.value, shift);
  if (e < -126)
    f = _mm512_or_si512(f, _mm512_sllv_epi32(m.value, _mm512_sub_epi32(_mm512_setzero_si512(), shift)));
  return _mm512_maskz_add_epi32(_mm512_test_epi32_mask(magnitude, magnitude), f, _mm512_set1_epi32(1));
}

ChunkStatistics chunk_statistics(const float* x, int length) {
  __m512i maxima = _mm512_setzero_si512();
  for (int l = 0; l < length; l += 16)
    maxima = _mm512_max_epu32(maxima, magnitudes(x + l, first_of_16(length - l)));
  const auto largest = static_cast<std::int32_t>(_mm512_reduce_max_epu32(maxima));
  if (largest == 0) return {0, zero_vector};
  if (largest >= float_infinity_bits) return {0, flagged_vector};
  const std::int32_t e = largest >= float_hidden_bit ? (largest >> 23) - 127
                                                     : -118 - __builtin_clz(static_cast<unsigned>(largest));
  __m512i square_sums = _mm512_setzero_si512(), sums = _mm512_setzero_si512();
  for (int l = 0; l < length; l += 16) {
    const __m512i f = float_fixed15_plus_one(magnitudes(x + l, first_of_16(length - l)), e);
    const __m512i odd = _mm512_srli_epi64(f, 32);
    square_sums =
        _mm512_add_epi64(square_sums, _mm512_add_epi64(_mm512_mul_epu32(f, f), _mm512_mul_epu32(odd, odd)));
    sums = _mm512_add_epi32(sums, f);
  }
  return {static_cast<std::uint64_t>(_mm512_reduce_add_epi64(square_sums)), e,
          static_cast<std::uint32_t>(_mm512_reduce_add_epi32(sums))};
}

void quantize(const float* x, std::int64_t length, std::int32_t e, std::int8_t* out) {
  for (std::int64_t l = 0; l < length; l += 16) {
    const __m512i f = float_fixed15_plus_one(magnitudes(x + l, 0xFFFF), e);
    const __m512i q =
        _mm512_add_epi32(_mm512_sub_epi32(_mm512_slli_epi32(f, 7), f), _mm512_set1_epi32(65535));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + l), _mm512_cvtepi32_epi8(_mm512_srli_epi32(q, 16)));
  }
}

// ---- centered residues ------------------------------------------------------------------------------

/// \brief What the last steps need to know about an odd modulus m.
///
/// V is the smallest multiple of 256 m with V >= 2^23 + 2^19. For |T| <= 2^18 the bits of the float V + T are
/// those of V plus T, round(T / m) = fma(V + T, 1 / m, 12582912) - quotient_offset, and the low byte of the
/// float V + T - m round(T / m) is the centered residue: V is a multiple of 256 and the unit of the float
/// is 1.
struct FinishConstants {
  std::int32_t start;         // bits of the float V
  float inverse;              // 1 / m rounded
  float quotient_offset;      // 12582912 + V / m
  float minus_modulus;        // -m
  std::int32_t digit_sum[3];  // sum of centered(256^i) over 4, 8 and 10 digits
};

constexpr float round_to_integer = 12582912.0f;  // 3 * 2^22: the unit of sums near it is 1

struct FinishTable {
  FinishConstants of[128];  // of[m / 2]
};

constexpr FinishTable make_finish_table() {
  FinishTable table{};
  for (int m = 3; m < 256; m += 2) {
    FinishConstants& c = table.of[m / 2];
    const int v = ((1 << 23) + (1 << 19) + 256 * m - 1) / (256 * m) * (256 * m);
    c.start = 0x4B000000 + v - (1 << 23);
    c.inverse = 1.0f / static_cast<float>(m);
    c.quotient_offset = round_to_integer + static_cast<float>(v / m);
    c.minus_modulus = -static_cast<float>(m);
    for (int i = 0, power = 1; i < 10; ++i, power = power * 256 % m) {
      const int digit = power > m / 2 ? power - m : power;
      if (i < 4) c.digit_sum[0] += digit;
      if (i < 8) c.digit_sum[1] += digit;
      c.digit_sum[2] += digit;
    }
  }
  return table;
}

constexpr FinishTable finish_table = make_finish_table();

const FinishConstants& finish_constants(std::int32_t m) {
  return finish_table.of[m / 2];
}

/// FinishConstants in registers.
struct Finish {
  __m512 inverse, quotient_offset, minus_modulus;

  explicit Finish(const FinishConstants& c)
      : inverse(_mm512_set1_ps(c.inverse)),
        quotient_offset(_mm512_set1_ps(c.quotient_offset)),
        minus_modulus(_mm512_set1_ps(c.minus_modulus)) {}

  /// The residues of T in the low bytes; bits = FinishConstants::start + T.
  __m512i operator()(__m512i bits) const {
    const __m512 f = _mm512_castsi512_ps(bits);
    const __m512 rounded = _mm512_fmadd_round_ps(f, inverse, _mm512_set1_ps(round_to_integer), nearest);
    const __m512 q = _mm512_sub_round_ps(rounded, quotient_offset, nearest);
    return _mm512_castps_si512(_mm512_fmadd_round_ps(q, minus_modulus, f, nearest));
  }
};

/// The low bytes of 64 dwords in order.
__m512i pack_low_bytes(const __m512i* dword) {
  // The 16 indices of one source, for every source; the masks say which of them count.
  const __m512i every_fourth = _mm512_set4_epi32(0x3C383430, 0x2C282420, 0x1C181410, 0x0C080400);
  __m512i bytes = _mm512_permutexvar_epi8(every_fourth, dword[0]);
  bytes = _mm512_mask_permutexvar_epi8(bytes, __mmask64{0xFFFF} << 16, every_fourth, dword[1]);
  bytes = _mm512_mask_permutexvar_epi8(bytes, __mmask64{0xFFFF} << 32, every_fourth, dword[2]);
  return _mm512_mask_permutexvar_epi8(bytes, __mmask64{0xFFFF} << 48, every_fourth, dword[3]);
}

__m512i set1_dword(const void* bytes) {
  std::int32_t dword;
  std::memcpy(&dword, bytes, sizeof(dword));
  return _mm512_set1_epi32(dword);
}

__m512i even_dwords(__m512i low, __m512i high) {
  const __m512i index = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  return _mm512_permutex2var_epi32(low, index, high);
}

__m512i odd_dwords(__m512i low, __m512i high) {
  const __m512i index = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
  return _mm512_permutex2var_epi32(low, index, high);
}

/// \brief Digits of 64 scaled entries as unsigned bytes, d + 128: the bytes of a' + 0x80...80.
///
/// part[i][j]: digits 4 i .. 4 i + 3 of the elements 16 j .. 16 j + 15, one element per dword.
template <int Parts>
struct DigitBlock {
  __m512i part[Parts][4];
};

constexpr std::int64_t all_128 = static_cast<std::int64_t>(0x8080808080808080u);

/// 2^alpha x for |2^alpha x| < 2^63 and alpha <= 1021, where all subnormal x become 0.
struct ScaleByExponentField {
  __m512i least, addend;
  bool toward_zero;

  ScaleByExponentField(std::int32_t alpha, bool truncated) : toward_zero(truncated) {
    // The smallest exponent field with a normal 2^alpha x; what is below becomes 0 anyway.
    const std::int64_t field = alpha >= 0 ? 1 : alpha < -2045 ? 2047 : 1 - alpha;
    least = _mm512_set1_epi64(field << 52);
    addend = _mm512_slli_epi64(_mm512_set1_epi64(alpha), 52);
  }

  __m512i operator()(__m512i bits) const {
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi64(magnitude_mask));
    const __mmask8 counts = _mm512_cmpge_epu64_mask(magnitude, least);
    const __m512d scaled = _mm512_castsi512_pd(_mm512_maskz_add_epi64(counts, bits, addend));
    return toward_zero ? _mm512_cvt_roundpd_epi64(scaled, truncate)
                       : _mm512_cvt_roundpd_epi64(scaled, nearest);
  }
};

/// 2^alpha x for any alpha: the low 64 bits, and bits 64 .. 127 if asked for.
struct ScaleByShifts {
  __m512i alpha_minus_unit;
  bool toward_zero;

  ScaleByShifts(std::int32_t alpha, bool truncated, std::int32_t unit = 1075)
      : alpha_minus_unit(_mm512_set1_epi64(std::int64_t{alpha} - unit)), toward_zero(truncated) {}

  __m512i operator()(__m512i bits, __m512i* high = nullptr) const {
    return scaled(significands_of(_mm512_and_si512(bits, _mm512_set1_epi64(magnitude_mask))),
                  _mm512_movepi64_mask(bits), high);
  }

  __m512i scaled(const Significands& m, __mmask8 negative, __m512i* high) const {
    const __m512i zero = _mm512_setzero_si512();
    const __m512i shift = _mm512_add_epi64(alpha_minus_unit, m.exponent);
    const __m512i right = _mm512_sub_epi64(zero, shift);
    const __m512i shifted_right =
        toward_zero ? _mm512_srlv_epi64(m.value, right) : round_right(m.value, right);
    // Shift counts outside 0 .. 63, also negative ones, give 0.
    __m512i low =
        _mm512_mask_mov_epi64(_mm512_sllv_epi64(m.value, shift), _mm512_movepi64_mask(shift), shifted_right);
    low = _mm512_mask_sub_epi64(low, negative, zero, low);
    if (high != nullptr) {
      const __m512i over = _mm512_sub_epi64(shift, _mm512_set1_epi64(64));  // positive only for subnormal x
      const __m512i h = _mm512_or_si512(_mm512_srlv_epi64(m.value, _mm512_sub_epi64(zero, over)),
                                        _mm512_sllv_epi64(m.value, over));
      const __m512i borrow = _mm512_maskz_set1_epi64(_mm512_test_epi64_mask(low, low), 1);
      *high = _mm512_mask_sub_epi64(h, negative, _mm512_sub_epi64(zero, h), borrow);
    }
    return low;
  }
};

/// The same for the bits of floats in the low halves.
struct ScaleFloatByShifts : ScaleByShifts {
  ScaleFloatByShifts(std::int32_t alpha, bool truncated) : ScaleByShifts(alpha, truncated, 150) {}

  __m512i operator()(__m512i bits, __m512i* high = nullptr) const {
    const __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi64(float_magnitude_mask));
    const __mmask8 normal = _mm512_cmpge_epu64_mask(magnitude, _mm512_set1_epi64(float_hidden_bit));
    const __m512i fraction = _mm512_and_si512(magnitude, _mm512_set1_epi64(float_hidden_bit - 1));
    return scaled({_mm512_mask_or_epi64(fraction, normal, fraction, _mm512_set1_epi64(float_hidden_bit)),
                   _mm512_max_epu64(_mm512_srli_epi64(magnitude, 23), _mm512_set1_epi64(1))},
                  _mm512_test_epi64_mask(bits, _mm512_set1_epi64(std::int64_t{1} << 31)), high);
  }
};

/// 2^alpha x for 16 floats with |2^alpha x| <= 2^30, by shifts: subnormal numbers are no special case.
struct ShortScale {
  __m512i alpha_minus_unit;
  bool toward_zero;

  ShortScale(std::int32_t alpha, bool truncated)
      : alpha_minus_unit(_mm512_set1_epi32(alpha - 150)), toward_zero(truncated) {}

  __m512i operator()(__m512i bits) const {
    const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi32(1);
    const Significands m =
        float_significands_of(_mm512_and_si512(bits, _mm512_set1_epi32(float_magnitude_mask)));
    const __m512i shift = _mm512_add_epi32(alpha_minus_unit, m.exponent);
    const __m512i right = _mm512_sub_epi32(zero, shift);
    __m512i shifted_right = _mm512_srlv_epi32(m.value, right);
    if (!toward_zero) {
      const __m512i half = _mm512_sllv_epi32(one, _mm512_sub_epi32(right, one));
      const __m512i odd = _mm512_and_si512(shifted_right, one);
      shifted_right = _mm512_srlv_epi32(
          _mm512_add_epi32(_mm512_add_epi32(m.value, odd), _mm512_sub_epi32(half, one)), right);
    }
    const __m512i a =
        _mm512_mask_mov_epi32(_mm512_sllv_epi32(m.value, shift), _mm512_movepi32_mask(shift), shifted_right);
    return _mm512_mask_sub_epi32(a, _mm512_movepi32_mask(bits), zero, a);
  }
};

/// The bits of 8 numbers, one to a qword.
__m512i load_8(const double* x) {
  return _mm512_loadu_si512(x);
}
__m512i load_8(const float* x) {
  return _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)));
}

void load_digits(const float* x, const ShortScale& scale, DigitBlock<1>& digits) {
  const __m512i offset = _mm512_set1_epi64(all_128);
  for (int j = 0; j < 4; ++j)
    digits.part[0][j] = _mm512_add_epi32(scale(_mm512_loadu_si512(x + 16 * j)), offset);
}

template <class Real, class Scale>
void load_digits(const Real* x, const Scale& scale, DigitBlock<2>& digits) {
  const __m512i offset = _mm512_set1_epi64(all_128);
  for (int j = 0; j < 4; ++j) {
    const __m512i a = _mm512_add_epi64(scale(load_8(x + 16 * j)), offset);
    const __m512i b = _mm512_add_epi64(scale(load_8(x + 16 * j + 8)), offset);
    digits.part[0][j] = even_dwords(a, b);
    digits.part[1][j] = odd_dwords(a, b);
  }
}

template <class Real, class Scale>
void load_digits(const Real* x, const Scale& scale, DigitBlock<3>& digits) {
  const __m512i offset = _mm512_set1_epi64(all_128);
  for (int j = 0; j < 4; ++j) {
    __m512i low[2], high[2];
    for (int h = 0; h < 2; ++h) {
      low[h] = _mm512_add_epi64(scale(load_8(x + 16 * j + 8 * h), &high[h]), offset);
      const __mmask8 carry = _mm512_cmplt_epu64_mask(low[h], offset);
      high[h] = _mm512_add_epi64(high[h], _mm512_set1_epi64(0x8080));
      high[h] = _mm512_mask_add_epi64(high[h], carry, high[h], _mm512_set1_epi64(1));
    }
    digits.part[0][j] = even_dwords(low[0], low[1]);
    digits.part[1][j] = odd_dwords(low[0], low[1]);
    digits.part[2][j] = even_dwords(high[0], high[1]);
  }
}

template <int Parts, class Scale, class Real>
void residues_with(const Scale& scale, const Real* x, std::int64_t length, const ModuliTable& table,
                   std::int8_t* out, std::int64_t plane_stride) {
  // The lines are far from each other; have them on their way while the digits are computed.
  for (int p = 0; p < table.count; ++p)
    for (std::int64_t l = 0; l < length && l < tile_row; l += block)
      __builtin_prefetch(out + p * plane_stride + l, 1);
  for (std::int64_t first = 0; first < length; first += block) {
    DigitBlock<Parts> digits;
    load_digits(x + first, scale, digits);
    std::int8_t* line = out + first;
    _mm512_storeu_si512(line, _mm512_xor_si512(pack_low_bytes(digits.part[0]), _mm512_set1_epi64(all_128)));
    for (int p = 1; p < table.count; ++p) {
      line += plane_stride;
      const FinishConstants& constants = finish_constants(table.modulus[p]);
      const Finish finish(constants);
      const __m512i start = _mm512_set1_epi32(constants.start - 128 * constants.digit_sum[Parts - 1]);
      __m512i coefficient[Parts], residue[4];
      for (int i = 0; i < Parts; ++i) coefficient[i] = set1_dword(&table.residue_coefficient[p][4 * i]);
      for (int j = 0; j < 4; ++j) {
        __m512i sum = start;
        for (int i = 0; i < Parts; ++i) sum = _mm512_dpbusd_epi32(sum, digits.part[i][j], coefficient[i]);
        residue[j] = finish(sum);
      }
      _mm512_storeu_si512(line, pack_low_bytes(residue));
    }
  }
}

void residues(const double* x, std::int64_t length, std::int32_t alpha, const ModuliTable& table,
              bool toward_zero, std::int8_t* out, std::int64_t plane_stride) {
  if (table.digits > 8)
    residues_with<3>(ScaleByShifts(alpha, toward_zero), x, length, table, out, plane_stride);
  else if (alpha <= 1021)
    residues_with<2>(ScaleByExponentField(alpha, toward_zero), x, length, table, out, plane_stride);
  else
    residues_with<2>(ScaleByShifts(alpha, toward_zero), x, length, table, out, plane_stride);
}

void residues(const float* x, std::int64_t length, std::int32_t alpha, const ModuliTable& table,
              bool toward_zero, std::int8_t* out, std::int64_t plane_stride) {
  if (table.digits > 8)
    residues_with<3>(ScaleFloatByShifts(alpha, toward_zero), x, length, table, out, plane_stride);
  else
    residues_with<2>(ScaleFloatByShifts(alpha, toward_zero), x, length, table, out, plane_stride);
}

void short_residues(const float* x, std::int64_t length, std::int32_t alpha, const ModuliTable& table,
                    bool toward_zero, std::int8_t* out, std::int64_t plane_stride) {
  residues_with<1>(ShortScale(alpha, toward_zero), x, length, table, out, plane_stride);
}

/// The dwords of P, 64 of them; zeros behind `count`.
void load_products(const std::int32_t* P, std::int64_t count, __m512i* dword) {
  // A page ahead: where a page ends, the hardware stops.
  const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(P) + 4096;
  for (unsigned line = 0; line < 4; ++line)
    _mm_prefetch(reinterpret_cast<const char*>(ahead + 64 * line), _MM_HINT_T0);
  for (int j = 0; j < 4; ++j) dword[j] = _mm512_maskz_loadu_epi32(first_of_16(count - 16 * j), P + 16 * j);
}

void reduce_256(const std::int32_t* P, std::int64_t length, std::int8_t w, bool accumulate, std::int8_t* y) {
  const __m512i factor = _mm512_set1_epi16(w);
  for (std::int64_t i = 0; i < length; i += block) {
    const __mmask64 mask = first_of_64(length - i);
    __m512i dword[4];
    load_products(P + i, length - i, dword);
    for (int j = 0; j < 4; ++j) dword[j] = _mm512_mullo_epi16(dword[j], factor);
    __m512i bytes = pack_low_bytes(dword);
    if (accumulate) bytes = _mm512_add_epi8(bytes, _mm512_maskz_loadu_epi8(mask, y + i));
    _mm512_mask_storeu_epi8(y + i, mask, bytes);
  }
}

void reduce(const std::int32_t* P, std::int64_t length, const ModuliTable& table, int p, bool accumulate,
            std::int8_t* y) {
  const std::int8_t* w = table.output_coefficient[p];
  if (p == 0) {
    reduce_256(P, length, w[0], accumulate, y);
    return;
  }
  const FinishConstants& constants = finish_constants(table.modulus[p]);
  const Finish finish(constants);
  const __m512i start = _mm512_set1_epi32(constants.start - 128 * (w[0] + w[1] + w[2] + w[3]));
  const __m512i coefficient = set1_dword(w);
  const __m512i offset = _mm512_set1_epi32(static_cast<std::int32_t>(0x80808080u));
  for (std::int64_t i = 0; i < length; i += block) {
    const __mmask64 mask = first_of_64(length - i);
    __m512i dword[4];
    load_products(P + i, length - i, dword);
    for (int j = 0; j < 4; ++j) {
      __m512i sum = start;
      if (accumulate) {
        const __m128i carry = _mm_maskz_loadu_epi8(first_of_16(length - i - 16 * j), y + i + 16 * j);
        sum = _mm512_add_epi32(sum, _mm512_cvtepi8_epi32(carry));
      }
      dword[j] = finish(_mm512_dpbusd_epi32(sum, _mm512_add_epi32(dword[j], offset), coefficient));
    }
    _mm512_mask_storeu_epi8(y + i, mask, pack_low_bytes(dword));
  }
}

// ---- complex products -------------------------------------------------------------------------------

void add_residues(const std::int8_t* r, const std::int8_t* i, std::int64_t length, std::int32_t m,
                  std::int8_t* sum) {
  // Modulus 256: no sum is beyond the half, and the wrap-around is right.
  const auto half = static_cast<char>((m - 1) / 2), modulus = static_cast<char>(m & 0xFF);
  const __m512i largest = _mm512_set1_epi8(half), least = _mm512_set1_epi8(static_cast<char>(-(m / 2)));
  for (std::int64_t l = 0; l < length; l += block) {
    const __m512i x = _mm512_loadu_si512(r + l), y = _mm512_loadu_si512(i + l);
    const __m512i clamped = _mm512_adds_epi8(x, y);
    __m512i s = _mm512_add_epi8(x, y);
    s = _mm512_mask_sub_epi8(s, _mm512_cmpgt_epi8_mask(clamped, largest), s, _mm512_set1_epi8(modulus));
    s = _mm512_mask_add_epi8(s, _mm512_cmplt_epi8_mask(clamped, least), s, _mm512_set1_epi8(modulus));
    _mm512_storeu_si512(sum + l, s);
  }
}

void reduce_complex_256(const std::int32_t* const* P, std::int64_t length, std::int8_t w, bool accumulate,
                        std::int8_t* const* y) {
  const __m512i factor = _mm512_set1_epi16(w);
  for (std::int64_t i = 0; i < length; i += block) {
    const __mmask64 mask = first_of_64(length - i);
    __m512i product[3][4];
    for (int q = 0; q < 3; ++q) load_products(P[q] + i, length - i, product[q]);
    __m512i part[2][4];
    for (int j = 0; j < 4; ++j) {
      part[0][j] = _mm512_mullo_epi16(_mm512_sub_epi32(product[0][j], product[1][j]), factor);
      part[1][j] = _mm512_mullo_epi16(
          _mm512_sub_epi32(_mm512_sub_epi32(product[2][j], product[0][j]), product[1][j]), factor);
    }
    for (int q = 0; q < 2; ++q) {
      __m512i bytes = pack_low_bytes(part[q]);
      if (accumulate) bytes = _mm512_add_epi8(bytes, _mm512_maskz_loadu_epi8(mask, y[q] + i));
      _mm512_mask_storeu_epi8(y[q] + i, mask, bytes);
    }
  }
}

void reduce_complex(const std::int32_t* const* P, std::int64_t length, const ModuliTable& table, int p,
                    bool accumulate, std::int8_t* const* y) {
  const std::int8_t* w = table.output_coefficient[p];
  if (p == 0) {
    reduce_complex_256(P, length, w[0], accumulate, y);
    return;
  }
  const FinishConstants& constants = finish_constants(table.modulus[p]);
  const Finish finish(constants);
  // Each sum of unsigned bytes is 128 (w[0] + ... + w[3]) too large: once more in the imaginary part's minuend
  // than in the others together.
  const __m512i start[2] = {_mm512_set1_epi32(constants.start),
                            _mm512_set1_epi32(constants.start + 128 * (w[0] + w[1] + w[2] + w[3]))};
  const __m512i coefficient = set1_dword(w);
  const __m512i offset = _mm512_set1_epi32(static_cast<std::int32_t>(0x80808080u));
  for (std::int64_t i = 0; i < length; i += block) {
    const __mmask64 mask = first_of_64(length - i);
    __m512i product[3][4];
    for (int q = 0; q < 3; ++q) load_products(P[q] + i, length - i, product[q]);
    __m512i part[2][4];
    for (int j = 0; j < 4; ++j) {
      __m512i sum[3];
      for (int q = 0; q < 3; ++q)
        sum[q] =
            _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_add_epi32(product[q][j], offset), coefficient);
      part[0][j] = _mm512_add_epi32(start[0], _mm512_sub_epi32(sum[0], sum[1]));
      part[1][j] = _mm512_add_epi32(start[1], _mm512_sub_epi32(_mm512_sub_epi32(sum[2], sum[0]), sum[1]));
    }
    for (int q = 0; q < 2; ++q) {
      for (int j = 0; j < 4; ++j) {
        if (accumulate) {
          const __m128i carry = _mm_maskz_loadu_epi8(first_of_16(length - i - 16 * j), y[q] + i + 16 * j);
          part[q][j] = _mm512_add_epi32(part[q][j], _mm512_cvtepi8_epi32(carry));
        }
        part[q][j] = finish(part[q][j]);
      }
      _mm512_mask_storeu_epi8(y[q] + i, mask, pack_low_bytes(part[q]));
    }
  }
}

// ---- reconstruction ---------------------------------------------------------------------------------

/// \brief X = sum_t y_t M/m_t - q M in signed base-256 digits: digit i of X is a sum of byte products.
///
/// The residues and q are bytes, |X| < 2^(8 s - 1), so s digits are enough. The bytes are taken as unsigned,
/// y + 128, which the starting values make good. Four factors of one element are one dword; q is the last
/// factor, then come zeros.
struct CrtDigits {
  std::int8_t cofactor[max_moduli][max_moduli + 4];  // digit i of M/m_t, of -M at t = s, then zeros
  std::int32_t start[max_moduli];                    // -128 times the sum of the row
  std::int8_t quotient[3][max_moduli];               // digits of the quotient weights
  std::int32_t quotient_start;                       // 2^23 - 128 times the sum of the quotient weights
};

CrtDigits make_crt_digits(const ModuliTable& table) {
  const int s = table.count;
  CrtDigits digits{};
  for (int t = 0; t <= s; ++t) {
    std::int32_t byte[max_moduli] = {1};  // of the product of all moduli but m_t
    for (int u = 0; u < s; ++u) {
      if (u == t) continue;
      std::int32_t carry = 0;
      for (int i = 0; i < s; ++i) {
        carry += byte[i] * table.modulus[u];
        byte[i] = carry & 0xFF;
        carry >>= 8;
      }
    }
    std::int32_t carry = 0;
    for (int i = 0; i < s; ++i) {
      carry += t < s ? byte[i] : -byte[i];
      const auto digit = static_cast<std::int8_t>(carry);
      carry = (carry - digit) / 256;
      digits.cofactor[i][t] = digit;
      digits.start[i] -= 128 * digit;
    }
  }
  digits.quotient_start = 1 << 23;
  for (int t = 0; t < s; ++t) {
    std::int32_t rest = table.quotient_weight[t];
    digits.quotient_start -= 128 * rest;
    for (int i = 0; i < 3; ++i) {
      const auto digit = static_cast<std::int8_t>(rest);
      rest = (rest - digit) / 256;
      digits.quotient[i][t] = digit;
    }
  }
  return digits;
}

template <int Groups>
__m512i byte_products(std::int32_t start, const __m512i* z, const std::int8_t* factor) {
  __m512i sum = _mm512_set1_epi32(start);
  for (int g = 0; g < Groups; ++g) sum = _mm512_dpbusd_epi32(sum, z[g], set1_dword(factor + 4 * g));
  return sum;
}

/// a[16 k + i] as dword i of out[k], with the bytes of a, b, c, d from the lowest up.
void interleave(__m512i a, __m512i b, __m512i c, __m512i d, __m512i* out) {
  const __m512i index = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  a = _mm512_permutexvar_epi32(index, a);
  b = _mm512_permutexvar_epi32(index, b);
  c = _mm512_permutexvar_epi32(index, c);
  d = _mm512_permutexvar_epi32(index, d);
  const __m512i ab_low = _mm512_unpacklo_epi8(a, b), ab_high = _mm512_unpackhi_epi8(a, b);
  const __m512i cd_low = _mm512_unpacklo_epi8(c, d), cd_high = _mm512_unpackhi_epi8(c, d);
  out[0] = _mm512_unpacklo_epi16(ab_low, cd_low);
  out[1] = _mm512_unpackhi_epi16(ab_low, cd_low);
  out[2] = _mm512_unpacklo_epi16(ab_high, cd_high);
  out[3] = _mm512_unpackhi_epi16(ab_high, cd_high);
}

/// The words of X for 16 elements; z: the residues, y + 128. The last group lacks q.
template <int S>
void crt_words(const CrtDigits& digits, __m512i* z, __m512i* word) {
  constexpr int groups = (S + 4) / 4, residue_groups = (S + 3) / 4, words = (S + 3) / 4;
  __m512i q = byte_products<residue_groups>(digits.quotient_start, z, digits.quotient[0]);
  q = _mm512_add_epi32(q, _mm512_slli_epi32(byte_products<residue_groups>(0, z, digits.quotient[1]), 8));
  q = _mm512_add_epi32(q, _mm512_slli_epi32(byte_products<residue_groups>(0, z, digits.quotient[2]), 16));
  q = _mm512_srai_epi32(q, 24);
  // That byte is 128 so far, and |q| < 128.
  z[groups - 1] = _mm512_add_epi32(z[groups - 1], _mm512_slli_epi32(q, 8 * (S % 4)));

  __m512i carry = _mm512_setzero_si512();
  for (int w = 0; w < words - 1; ++w) {
    __m512i d[4];
    for (int i = 0; i < 4; ++i)
      d[i] = byte_products<groups>(digits.start[4 * w + i], z, digits.cofactor[4 * w + i]);
    // Halves of the word; |d| < 2^20.
    const __m512i low = _mm512_add_epi32(_mm512_add_epi32(d[0], carry), _mm512_slli_epi32(d[1], 8));
    const __m512i high =
        _mm512_add_epi32(_mm512_add_epi32(d[2], _mm512_srai_epi32(low, 16)), _mm512_slli_epi32(d[3], 8));
    word[w] = _mm512_mask_blend_epi16(0xAAAAAAAAu, low, _mm512_slli_epi32(high, 16));
    carry = _mm512_srai_epi32(high, 16);
  }
  constexpr int first = 4 * (words - 1);
  __m512i top = carry;
  for (int i = 0; i < S - first; ++i)
    top = _mm512_add_epi32(
        top, _mm512_slli_epi32(byte_products<groups>(digits.start[first + i], z, digits.cofactor[first + i]),
                               static_cast<unsigned>(8 * i)));
  constexpr unsigned sign_shift = 8 * (first + 4 - S);
  word[words - 1] = _mm512_srai_epi32(_mm512_slli_epi32(top, sign_shift), sign_shift);
}

/// value 2^shift for 8 elements; where bits were dropped, |value| > 2^61 and its last bit is set for them.
struct ScaledValues {
  __m512i value;
  __m512i shift;
};

/// high 2^64 + low, rounded to odd.
ScaledValues leading_bits(__m512i high, __m512i low) {
  const __m512i one = _mm512_set1_epi64(1);
  const __m512i ones_free = _mm512_xor_si512(high, _mm512_srai_epi64(high, 63));
  const __m512i exponent =
      _mm512_srli_epi64(_mm512_castpd_si512(_mm512_cvt_roundepi64_pd(ones_free, truncate)), 52);
  const __m512i left = _mm512_sub_epi64(_mm512_set1_epi64(1085), exponent);  // up to bit 62
  const __m512i right = _mm512_sub_epi64(exponent, _mm512_set1_epi64(1085 - 64));
  const __m512i rest = _mm512_sllv_epi64(low, left);
  ScaledValues v{_mm512_or_si512(_mm512_sllv_epi64(high, left), _mm512_srlv_epi64(low, right)), right};
  v.value = _mm512_mask_or_epi64(v.value, _mm512_test_epi64_mask(rest, rest), v.value, one);
  const __mmask8 small = _mm512_testn_epi64_mask(ones_free, ones_free);
  if (small != 0) {
    // high is the sign only: low fits, or needs one bit more.
    const __mmask8 fits = _mm512_mask_cmpeq_epi64_mask(small, high, _mm512_srai_epi64(low, 63));
    const __m512i half = _mm512_or_si512(
        _mm512_or_si512(_mm512_slli_epi64(high, 63), _mm512_srli_epi64(low, 1)), _mm512_and_si512(low, one));
    v.value = _mm512_mask_mov_epi64(_mm512_mask_mov_epi64(v.value, small, half), fits, low);
    v.shift = _mm512_mask_sub_epi64(_mm512_mask_mov_epi64(v.shift, small, one), fits, one, one);
  }
  return v;
}

template <int Half>
__m512i qwords(__m512i low, __m512i high) {
  const __m512i index = Half == 0
                            ? _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0)
                            : _mm512_set_epi32(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8);
  return _mm512_permutex2var_epi32(low, index, high);
}

/// The elements 8 Half .. 8 Half + 7 of X.
template <int Words, int Half>
ScaledValues scaled_values(const __m512i* word) {
  const __m512i sign = _mm512_srai_epi32(word[Words - 1], 31);
  if constexpr (Words == 1) {
    return {qwords<Half>(word[0], sign), _mm512_setzero_si512()};
  } else if constexpr (Words == 2) {
    return {qwords<Half>(word[0], word[1]), _mm512_setzero_si512()};
  } else if constexpr (Words == 3) {
    return leading_bits(qwords<Half>(word[2], sign), qwords<Half>(word[0], word[1]));
  } else if constexpr (Words == 4) {
    return leading_bits(qwords<Half>(word[2], word[3]), qwords<Half>(word[0], word[1]));
  } else {
    const __m512i sticky = _mm512_maskz_set1_epi32(_mm512_test_epi32_mask(word[0], word[0]), 1);
    __m512i high = qwords<Half>(word[3], word[4]);
    __m512i low = qwords<Half>(_mm512_or_si512(word[1], sticky), word[2]);
    __m512i shift = _mm512_set1_epi64(32);
    const __m512i ones_free = _mm512_xor_si512(high, _mm512_srai_epi64(high, 63));
    const __mmask8 small = _mm512_testn_epi64_mask(ones_free, ones_free);
    if (small != 0) {
      high = _mm512_mask_mov_epi64(high, small, qwords<Half>(word[2], word[3]));
      low = _mm512_mask_mov_epi64(low, small, qwords<Half>(word[0], word[1]));
      shift = _mm512_mask_mov_epi64(shift, small, _mm512_setzero_si512());
    }
    ScaledValues v = leading_bits(high, low);
    v.shift = _mm512_add_epi64(v.shift, shift);
    return v;
  }
}

/// The bits of the doubles nearest to value 2^(shift - exponent), ties to even.
__m512i round_to_double(const ScaledValues& v, __m512i exponent) {
  const __m512i scale = _mm512_sub_epi64(v.shift, exponent);
  const __m512i rounded = _mm512_castpd_si512(_mm512_cvt_roundepi64_pd(v.value, nearest));
  const __m512i field = _mm512_and_si512(_mm512_srli_epi64(rounded, 52), _mm512_set1_epi64(0x7FF));
  const __m512i scaled_field = _mm512_add_epi64(field, scale);
  const __mmask8 nonzero = _mm512_test_epi64_mask(v.value, v.value);
  __m512i bits = _mm512_maskz_add_epi64(nonzero, rounded, _mm512_slli_epi64(scale, 52));
  const __mmask8 special = _mm512_mask_cmpge_epu64_mask(
      nonzero, _mm512_sub_epi64(scaled_field, _mm512_set1_epi64(1)), _mm512_set1_epi64(2046));
  if (special != 0) {
    // Below the normal range: value 2^scale in units of 2^-1074, rounded once.
    const __m512i zero = _mm512_setzero_si512();
    const __m512i magnitude = _mm512_abs_epi64(v.value);
    const __m512i left = _mm512_add_epi64(scale, _mm512_set1_epi64(1074));
    const __mmask8 drops = _mm512_movepi64_mask(left);
    const __m512i sign = _mm512_and_si512(v.value, _mm512_set1_epi64(INT64_MIN));
    __m512i extreme = _mm512_mask_mov_epi64(_mm512_sllv_epi64(magnitude, left), drops,
                                            round_right(magnitude, _mm512_sub_epi64(zero, left)));
    const __mmask8 overflow = _mm512_cmpgt_epi64_mask(scaled_field, zero);
    extreme = _mm512_mask_mov_epi64(extreme, overflow, _mm512_set1_epi64(infinity_bits));
    bits = _mm512_mask_or_epi64(bits, special, extreme, sign);
  }
  return bits;
}

/// The same for floats, whose bits are the low halves.
__m512i round_to_float(const ScaledValues& v, __m512i exponent) {
  const __m512i scale = _mm512_sub_epi64(v.shift, exponent);
  const __m512i rounded =
      _mm512_cvtepu32_epi64(_mm256_castps_si256(_mm512_cvt_roundepi64_ps(v.value, nearest)));
  const __m512i field = _mm512_and_si512(_mm512_srli_epi64(rounded, 23), _mm512_set1_epi64(0xFF));
  const __m512i scaled_field = _mm512_add_epi64(field, scale);
  const __mmask8 nonzero = _mm512_test_epi64_mask(v.value, v.value);
  __m512i bits = _mm512_maskz_add_epi64(nonzero, rounded, _mm512_slli_epi64(scale, 23));
  const __mmask8 special = _mm512_mask_cmpge_epu64_mask(
      nonzero, _mm512_sub_epi64(scaled_field, _mm512_set1_epi64(1)), _mm512_set1_epi64(254));
  if (special != 0) {
    // Below the normal range: value 2^scale in units of 2^-149, rounded once.
    const __m512i zero = _mm512_setzero_si512();
    const __m512i magnitude = _mm512_abs_epi64(v.value);
    const __m512i left = _mm512_add_epi64(scale, _mm512_set1_epi64(149));
    const __mmask8 drops = _mm512_movepi64_mask(left);
    __m512i extreme = _mm512_mask_mov_epi64(_mm512_sllv_epi64(magnitude, left), drops,
                                            round_right(magnitude, _mm512_sub_epi64(zero, left)));
    const __mmask8 overflow = _mm512_cmpgt_epi64_mask(scaled_field, zero);
    extreme = _mm512_mask_mov_epi64(extreme, overflow, _mm512_set1_epi64(float_infinity_bits));
    const __m512i sign = _mm512_maskz_set1_epi64(_mm512_movepi64_mask(v.value), std::int64_t{1} << 31);
    bits = _mm512_mask_or_epi64(bits, special, extreme, sign);
  }
  return bits;
}

void store_rounded(const ScaledValues& v, __m512i exponent, __mmask8 mask, double* t) {
  _mm512_mask_storeu_epi64(t, mask, round_to_double(v, exponent));
}
void store_rounded(const ScaledValues& v, __m512i exponent, __mmask8 mask, float* t) {
  _mm256_mask_storeu_epi32(t, mask, _mm512_cvtepi64_epi32(round_to_float(v, exponent)));
}

template <int Words, int Half, class Real>
void store_values(const __m512i* word, const std::int32_t* alpha, std::int32_t beta, std::int64_t left,
                  Real* t) {
  const __mmask8 mask = first_of_8(left - 8 * Half);
  const __m512i exponent = _mm512_add_epi64(
      _mm512_cvtepi32_epi64(_mm256_maskz_loadu_epi32(mask, alpha + 8 * Half)), _mm512_set1_epi64(beta));
  store_rounded(scaled_values<Words, Half>(word), exponent, mask, t + 8 * Half);
}

template <int S, class Real>
void reconstruct_with(const std::int8_t* Y, std::int64_t plane_stride, std::int64_t length,
                      const std::int32_t* alpha, std::int32_t beta, const ModuliTable& table, Real* t) {
  static const CrtDigits digits = make_crt_digits(table);
  constexpr int groups = (S + 4) / 4, words = (S + 3) / 4;
  const __m512i offset = _mm512_set1_epi64(all_128);
  for (std::int64_t first = 0; first < length; first += block) {
    const __mmask64 mask = first_of_64(length - first);
    __m512i interleaved[groups][4];
    for (int g = 0; g < groups; ++g) {
      __m512i plane[4];
      for (int i = 0; i < 4; ++i) {
        const int p = 4 * g + i;
        plane[i] = p < S
                       ? _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, Y + p * plane_stride + first), offset)
                       : offset;
      }
      interleave(plane[0], plane[1], plane[2], plane[3], interleaved[g]);
    }
    for (int k = 0; k < 4; ++k) {
      const std::int64_t i = first + 16 * k, left = length - i;
      if (left <= 0) break;
      __m512i z[groups], word[words];
      for (int g = 0; g < groups; ++g) z[g] = interleaved[g][k];
      crt_words<S>(digits, z, word);
      store_values<words, 0>(word, alpha + i, beta, left, t + i);
      if (left > 8) store_values<words, 1>(word, alpha + i, beta, left, t + i);
    }
  }
}

template <class Real>
using Reconstruct = void (*)(const std::int8_t*, std::int64_t, std::int64_t, const std::int32_t*,
                             std::int32_t, const ModuliTable&, Real*);

template <class Real>
constexpr Reconstruct<Real> reconstruct_by_count[max_moduli - min_moduli + 1] = {
    reconstruct_with<2, Real>,  reconstruct_with<3, Real>,  reconstruct_with<4, Real>,
    reconstruct_with<5, Real>,  reconstruct_with<6, Real>,  reconstruct_with<7, Real>,
    reconstruct_with<8, Real>,  reconstruct_with<9, Real>,  reconstruct_with<10, Real>,
    reconstruct_with<11, Real>, reconstruct_with<12, Real>, reconstruct_with<13, Real>,
    reconstruct_with<14, Real>, reconstruct_with<15, Real>, reconstruct_with<16, Real>,
    reconstruct_with<17, Real>, reconstruct_with<18, Real>, reconstruct_with<19, Real>,
    reconstruct_with<20, Real>};

template <class Real>
void reconstruct(const std::int8_t* Y, std::int64_t plane_stride, std::int64_t length,
                 const std::int32_t* alpha, std::int32_t beta, const ModuliTable& table, Real* t) {
  reconstruct_by_count<Real>[table.count - min_moduli](Y, plane_stride, length, alpha, beta, table, t);
}

// ---- alpha and beta ---------------------------------------------------------------------------------

void combine(const double* t, std::int64_t length, const Epilogue& epilogue, double* c) {
  const __m512d alpha = _mm512_set1_pd(epilogue.alpha), beta = _mm512_set1_pd(epilogue.beta);
  if (epilogue.beta == 0 && epilogue.alpha == 1) {
    std::memmove(c, t, static_cast<std::size_t>(length) * sizeof(double));
  } else if (epilogue.beta == 0) {
    for (std::int64_t i = 0; i < length; i += 8) {
      const __mmask8 mask = first_of_8(length - i);
      _mm512_mask_storeu_pd(c + i, mask, _mm512_mul_pd(alpha, _mm512_maskz_loadu_pd(mask, t + i)));
    }
  } else {
    for (std::int64_t i = 0; i < length; i += 8) {
      const __mmask8 mask = first_of_8(length - i);
      const __m512d scaled = _mm512_mul_pd(beta, _mm512_maskz_loadu_pd(mask, c + i));
      _mm512_mask_storeu_pd(c + i, mask, _mm512_fmadd_pd(alpha, _mm512_maskz_loadu_pd(mask, t + i), scaled));
    }
  }
}

void combine(const float* t, std::int64_t length, const EpilogueOf<float>& epilogue, float* c) {
  const __m512 alpha = _mm512_set1_ps(epilogue.alpha), beta = _mm512_set1_ps(epilogue.beta);
  if (epilogue.beta == 0 && epilogue.alpha == 1) {
    std::memmove(c, t, static_cast<std::size_t>(length) * sizeof(float));
  } else if (epilogue.beta == 0) {
    for (std::int64_t i = 0; i < length; i += 16) {
      const __mmask16 mask = first_of_16(length - i);
      _mm512_mask_storeu_ps(c + i, mask, _mm512_mul_ps(alpha, _mm512_maskz_loadu_ps(mask, t + i)));
    }
  } else {
    for (std::int64_t i = 0; i < length; i += 16) {
      const __mmask16 mask = first_of_16(length - i);
      const __m512 scaled = _mm512_mul_ps(beta, _mm512_maskz_loadu_ps(mask, c + i));
      _mm512_mask_storeu_ps(c + i, mask, _mm512_fmadd_ps(alpha, _mm512_maskz_loadu_ps(mask, t + i), scaled));
    }
  }
}

constexpr StageKernels avx512 = {
    "avx512",
    load_tile,
    chunk_statistics,
    residues,
    quantize,
    reduce,
    reconstruct<double>,
    combine,
    add_residues,
    reduce_complex,
    {load_tile, chunk_statistics, residues, short_residues, quantize, reconstruct<float>, combine}};

}  // namespace

const StageKernels* avx512_stage_kernels() {
  __builtin_cpu_init();
  const bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");
  return supported ? &avx512 : nullptr;
}

}  // namespace KokkosOzaki::Impl
