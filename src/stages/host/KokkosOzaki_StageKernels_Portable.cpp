// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../KokkosOzaki_Reconstruct.hpp"
#include "../KokkosOzaki_ResidueReducer.hpp"
#include "../KokkosOzaki_Scale.hpp"
#include "../KokkosOzaki_Statistics.hpp"
#include "KokkosOzaki_StageKernels.hpp"
#include "KokkosOzaki_config.hpp"

namespace KokkosOzaki::Impl {

namespace {

void load_tile(const double* x, std::int64_t vector_stride, std::int64_t position_stride, int vectors,
               int positions, double* tile) {
  for (int l = 0; l < positions; ++l)
    for (int v = 0; v < vectors; ++v) tile[v * chunk_length + l] = x[v * vector_stride + l * position_stride];
}

ChunkStatistics contiguous_chunk_statistics(const double* x, int length) {
  return chunk_statistics(x, 1, length);
}

void residues(const double* x, std::int64_t length, std::int32_t alpha, const ModuliTable& table,
              bool toward_zero, std::int8_t* out, std::int64_t plane_stride) {
  constexpr int block = 64;
  for (std::int64_t first = 0; first < length; first += block) {
    std::int32_t digits[max_digits]
                       [block];  // one plane per digit: the loop over moduli then runs along the block
    for (int l = 0; l < block; ++l) {
      std::int8_t digit[max_digits];
      signed_digits(scaled_integer(x[first + l], alpha, toward_zero), digit);
      for (int i = 0; i < max_digits; ++i) digits[i][l] = digit[i];
    }
    for (int l = 0; l < block; ++l) out[first + l] = static_cast<std::int8_t>(digits[0][l]);
    for (int p = 1; p < table.count; ++p) {
      std::int8_t* r = out + p * plane_stride + first;
      std::int32_t sum[block];
      for (int l = 0; l < block; ++l) sum[l] = table.start[p];
      for (int i = 0; i < table.digits; ++i) {
        const std::int32_t c = table.residue_coefficient[p][i];
        for (int l = 0; l < block; ++l) sum[l] += digits[i][l] * c;
      }
      for (int l = 0; l < block; ++l) r[l] = finish_residue(sum[l], table.modulus[p], table.inverse[p]);
    }
  }
}

void quantize(const double* x, std::int64_t length, std::int32_t e, std::int8_t* out) {
  for (std::int64_t l = 0; l < length; ++l) out[l] = quantized(x[l], e);
}

void reduce(const std::int32_t* P, std::int64_t length, const ModuliTable& table, int p, bool accumulate,
            std::int8_t* y) {
  if (accumulate)
    for (std::int64_t i = 0; i < length; ++i) y[i] = output_residue(P[i], y[i], table, p);
  else
    for (std::int64_t i = 0; i < length; ++i) y[i] = output_residue(P[i], 0, table, p);
}

void reconstruct(const std::int8_t* Y, std::int64_t plane_stride, std::int64_t length,
                 const std::int32_t* alpha, std::int32_t beta, const ModuliTable& table, double* t) {
  for (std::int64_t i = 0; i < length; ++i) {
    std::uint32_t word[max_words];
    crt_words(Y + i, plane_stride, table, word);
    t[i] = round_to_double(word, table.words, -(alpha[i] + beta));
  }
}

void combine(const double* t, std::int64_t length, const Epilogue& epilogue, double* c) {
  for (std::int64_t i = 0; i < length; ++i) apply_epilogue(t[i], epilogue, c[i]);
}

constexpr StageKernels portable = {
    "portable", load_tile, contiguous_chunk_statistics, residues, quantize, reduce, reconstruct, combine};

}  // namespace

const StageKernels* portable_stage_kernels() {
  return &portable;
}

#if !defined(KOKKOSOZAKI_HAVE_STAGE_AVX512)
const StageKernels* avx512_stage_kernels() {
  return nullptr;
}
#endif

const StageKernels* best_stage_kernels() {
  const StageKernels* wide = avx512_stage_kernels();
  return wide != nullptr ? wide : &portable;
}

}  // namespace KokkosOzaki::Impl
