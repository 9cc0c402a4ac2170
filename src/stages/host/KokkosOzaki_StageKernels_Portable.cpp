// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../KokkosOzaki_Reconstruct.hpp"
#include "../KokkosOzaki_ResidueReducer.hpp"
#include "../KokkosOzaki_Scale.hpp"
#include "../KokkosOzaki_Statistics.hpp"
#include "KokkosOzaki_StageKernels.hpp"
#include "KokkosOzaki_config.hpp"

namespace KokkosOzaki::Impl {

namespace {

template <class Real>
void load_tile(const Real* x, std::int64_t vector_stride, std::int64_t position_stride, int vectors,
               int positions, Real* tile) {
  for (int l = 0; l < positions; ++l)
    for (int v = 0; v < vectors; ++v) tile[v * chunk_length + l] = x[v * vector_stride + l * position_stride];
}

template <class Real>
ChunkStatistics contiguous_chunk_statistics(const Real* x, int length) {
  return chunk_statistics(x, 1, length);
}

template <class Real, bool Short>
void residues(const Real* x, std::int64_t length, std::int32_t alpha, const ModuliTable& table,
              bool toward_zero, std::int8_t* out, std::int64_t plane_stride) {
  constexpr int block = 64, most_digits = Short ? short_digits : max_digits;
  const int used_digits = Short ? short_digits : table.digits;
  for (std::int64_t first = 0; first < length; first += block) {
    std::int32_t digits[most_digits]
                       [block];  // one plane per digit: the loop over moduli then runs along the block
    for (int l = 0; l < block; ++l) {
      std::int8_t digit[most_digits];
      if constexpr (Short)
        signed_digits(short_scaled_integer(x[first + l], alpha, toward_zero), digit);
      else
        signed_digits(scaled_integer(x[first + l], alpha, toward_zero), digit);
      for (int i = 0; i < most_digits; ++i) digits[i][l] = digit[i];
    }
    for (int l = 0; l < block; ++l) out[first + l] = static_cast<std::int8_t>(digits[0][l]);
    for (int p = 1; p < table.count; ++p) {
      std::int8_t* r = out + p * plane_stride + first;
      std::int32_t sum[block];
      for (int l = 0; l < block; ++l) sum[l] = table.start[p];
      for (int i = 0; i < used_digits; ++i) {
        const std::int32_t c = table.residue_coefficient[p][i];
        for (int l = 0; l < block; ++l) sum[l] += digits[i][l] * c;
      }
      for (int l = 0; l < block; ++l) r[l] = finish_residue(sum[l], table.modulus[p], table.inverse[p]);
    }
  }
}

template <class Real>
void quantize(const Real* x, std::int64_t length, std::int32_t e, std::int8_t* out) {
  for (std::int64_t l = 0; l < length; ++l) out[l] = quantized(x[l], e);
}

void reduce(const std::int32_t* P, std::int64_t length, const ModuliTable& table, int p, bool accumulate,
            std::int8_t* y) {
  if (accumulate)
    for (std::int64_t i = 0; i < length; ++i) y[i] = output_residue(P[i], y[i], table, p);
  else
    for (std::int64_t i = 0; i < length; ++i) y[i] = output_residue(P[i], 0, table, p);
}

void add_residues(const std::int8_t* r, const std::int8_t* i, std::int64_t length, std::int32_t m,
                  std::int8_t* sum) {
  for (std::int64_t l = 0; l < length; ++l) sum[l] = residue_of_sum(r[l], i[l], m);
}

void reduce_complex(const std::int32_t* const* P, std::int64_t length, const ModuliTable& table, int p,
                    bool accumulate, std::int8_t* const* y) {
  for (std::int64_t i = 0; i < length; ++i) {
    ComplexResidue residue{0, 0};
    if (accumulate) residue = {y[0][i], y[1][i]};
    residue = complex_output_residue(P[0][i], P[1][i], P[2][i], residue, table, p);
    y[0][i] = residue.re;
    y[1][i] = residue.im;
  }
}

template <class Real>
void reconstruct(const std::int8_t* Y, std::int64_t plane_stride, std::int64_t length,
                 const std::int32_t* alpha, std::int32_t beta, const ModuliTable& table, Real* t) {
  for (std::int64_t i = 0; i < length; ++i) {
    std::uint32_t word[max_words];
    crt_words(Y + i, plane_stride, table, word);
    t[i] = round_to<Real>(word, table.words, -(alpha[i] + beta));
  }
}

template <class Real>
void combine(const Real* t, std::int64_t length, const EpilogueOf<Real>& epilogue, Real* c) {
  for (std::int64_t i = 0; i < length; ++i) apply_epilogue(t[i], epilogue, c[i]);
}

constexpr StageKernels portable = {
    "portable",
    load_tile<double>,
    contiguous_chunk_statistics<double>,
    residues<double, false>,
    quantize<double>,
    reduce,
    reconstruct<double>,
    combine<double>,
    add_residues,
    reduce_complex,
    {load_tile<float>, contiguous_chunk_statistics<float>, residues<float, false>, residues<float, true>,
     quantize<float>, reconstruct<float>, combine<float>}};

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
