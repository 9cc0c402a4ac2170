// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_STAGEKERNELS_HPP
#define KOKKOSOZAKI_STAGEKERNELS_HPP

// Leaf functions of the stages for CPUs. Included by files that are compiled for newer instruction sets than
// the rest of the library, so there are no inline functions and no templates here: the linker could pick such
// a file's copy.

#include <cstdint>

#include "../../impl/KokkosOzaki_ModuliTable.hpp"

namespace KokkosOzaki::Impl {

/// \brief Statistics of one chunk of at most 128 positions of one vector.
struct ChunkStatistics {
  std::uint64_t square_sum;  // S_c; 0 for a chunk of zeros
  std::int32_t exponent;     // e_c, or zero_vector, or flagged_vector
  std::uint32_t sum = 0;     // S1_c, at most 2^24; 0 where there is no e_c
};

constexpr std::int32_t zero_vector = INT32_MIN;     // in place of an exponent: every entry is zero
constexpr std::int32_t flagged_vector = INT32_MAX;  // in place of an exponent: an entry is Inf or NaN

/// \brief What the last stage does with t, the value of op(A) op(B): C := alpha t + beta C.
template <class Scalar>
struct EpilogueOf {
  Scalar alpha;
  Scalar beta;
};
using Epilogue = EpilogueOf<double>;

/// \brief The leaf functions for float where they differ from those for double.
struct FloatKernels {
  void (*load_tile)(const float* x, std::int64_t vector_stride, std::int64_t position_stride, int vectors,
                    int positions, float* tile);
  ChunkStatistics (*chunk_statistics)(const float* x, int length);
  void (*residues)(const float* x, std::int64_t length, std::int32_t alpha, const ModuliTable& table,
                   bool toward_zero, std::int8_t* out, std::int64_t plane_stride);

  /// As residues, where every |2^alpha x| <= 2^30: integers of 32 bits.
  void (*short_residues)(const float* x, std::int64_t length, std::int32_t alpha, const ModuliTable& table,
                         bool toward_zero, std::int8_t* out, std::int64_t plane_stride);
  void (*quantize)(const float* x, std::int64_t length, std::int32_t e, std::int8_t* out);
  void (*reconstruct)(const std::int8_t* Y, std::int64_t plane_stride, std::int64_t length,
                      const std::int32_t* alpha, std::int32_t beta, const ModuliTable& table, float* t);
  void (*combine)(const float* t, std::int64_t length, const EpilogueOf<float>& epilogue, float* c);
};

/// \brief One set of leaf functions; all sets give the same bits. The parts of complex numbers are rows of
/// real ones here.
struct StageKernels {
  const char* name;

  /// tile[v * 128 + l] := x[v * vector_stride + l * position_stride], v < vectors, l < positions <= 128
  void (*load_tile)(const double* x, std::int64_t vector_stride, std::int64_t position_stride, int vectors,
                    int positions, double* tile);

  /// Statistics of the `length` <= 256 contiguous numbers of one chunk.
  ChunkStatistics (*chunk_statistics)(const double* x, int length);

  /// Section "residues": out[p * plane_stride + l] for all moduli p of the table and l < length, length a
  /// multiple of 64.
  void (*residues)(const double* x, std::int64_t length, std::int32_t alpha, const ModuliTable& table,
                   bool toward_zero, std::int8_t* out, std::int64_t plane_stride);

  /// q(x) of the accurate bound for a vector with exponent e; length a multiple of 64.
  void (*quantize)(const double* x, std::int64_t length, std::int32_t e, std::int8_t* out);

  /// y[i] := centered(w_p P[i] + y[i]) if accumulate, else centered(w_p P[i]); i < length.
  void (*reduce)(const std::int32_t* P, std::int64_t length, const ModuliTable& table, int p, bool accumulate,
                 std::int8_t* y);

  /// t[i] := the value of X_i 2^-(alpha[i] + beta), correctly rounded; X_i from the residues Y[p *
  /// plane_stride + i].
  void (*reconstruct)(const std::int8_t* Y, std::int64_t plane_stride, std::int64_t length,
                      const std::int32_t* alpha, std::int32_t beta, const ModuliTable& table, double* t);

  /// c[i] := alpha t[i] + beta c[i] as Epilogue says; c is not read if beta is 0.
  void (*combine)(const double* t, std::int64_t length, const Epilogue& epilogue, double* c);

  /// sum[l] := centered(r[l] + i[l]) modulo m, from centered r and i; length a multiple of 64.
  void (*add_residues)(const std::int8_t* r, const std::int8_t* i, std::int64_t length, std::int32_t m,
                       std::int8_t* sum);

  /// As reduce, for the products of real parts, of imaginary parts and of sums: P[0 .. 2] become y[0], y[1].
  void (*reduce_complex)(const std::int32_t* const* P, std::int64_t length, const ModuliTable& table, int p,
                         bool accumulate, std::int8_t* const* y);

  FloatKernels single;
};

/// The plain C++ set; always there.
const StageKernels* portable_stage_kernels();

/// The set for CPUs with AVX-512 F, BW, DQ, VL, VBMI and VNNI, or null where it was not built or this CPU
/// lacks them.
const StageKernels* avx512_stage_kernels();

/// The best set for this CPU.
const StageKernels* best_stage_kernels();

}  // namespace KokkosOzaki::Impl

#endif
