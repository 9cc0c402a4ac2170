// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RECONSTRUCT_HPP
#define KOKKOSOZAKI_RECONSTRUCT_HPP

#include <cmath>

#include "../impl/KokkosOzaki_FloatBits.hpp"
#include "../impl/KokkosOzaki_KokkosCompat.hpp"
#include "../impl/KokkosOzaki_MatrixRef.hpp"
#include "../impl/KokkosOzaki_ModuliTable.hpp"
#include "host/KokkosOzaki_StageKernels.hpp"

namespace KokkosOzaki::Impl {

/// \brief X in two's complement, 32-bit words, little endian, from its residues y_p = Y[p * plane_stride].
///
/// X = sum_g z_g (M_s / M_g) - q M_s with z_g = sum over the group of y_p (M_g / m_p), |z_g| < 2^25, and
/// q = round(sum y_p / m_p), exact because |X| <= 255/512 M_s.
KOKKOS_INLINE_FUNCTION void crt_words(const std::int8_t* Y, std::int64_t plane_stride,
                                      const ModuliTable& table, std::uint32_t* word) {
  std::int64_t sum[max_words] = {};
  std::int32_t quotient = 1 << 23;
  for (int g = 0, p = 0; g < table.groups; ++g) {
    std::int32_t z = 0;
    for (const int last = p + 3 < table.count ? p + 3 : table.count; p < last; ++p) {
      const std::int32_t y = Y[p * plane_stride];
      z += y * table.group_weight[p];
      quotient += y * table.quotient_weight[p];
    }
    for (int j = 0; j < table.words; ++j) sum[j] += static_cast<std::int64_t>(z) * table.group_limb[g][j];
  }
  quotient >>= 24;
  std::int64_t carry = 0;
  for (int j = 0; j < table.words; ++j) {
    carry += sum[j] - static_cast<std::int64_t>(quotient) * table.product_limb[j];
    word[j] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
}

/// \brief The double nearest to X 2^exponent, ties to even; overflow gives Inf, underflow is gradual with one
/// rounding.
/// \param word X, two's complement; overwritten
/// \param words number of 32-bit words
KOKKOS_INLINE_FUNCTION double round_to_double(std::uint32_t* word, int words, std::int32_t exponent) {
  const bool negative = (word[words - 1] >> 31) != 0;
  if (negative) {
    std::uint64_t carry = 1;
    for (int j = 0; j < words; ++j) {
      carry += static_cast<std::uint32_t>(~word[j]);
      word[j] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
  }
  int top_word = words - 1;
  while (top_word >= 0 && word[top_word] == 0) --top_word;
  if (top_word < 0) return 0.0;
  // The 64 leading bits, the first of them set, and whether anything follows.
  const int zeros = 32 - bit_length(word[top_word]);
  const std::uint64_t w0 = word[top_word], w1 = top_word > 0 ? word[top_word - 1] : 0,
                      w2 = top_word > 1 ? word[top_word - 2] : 0;
  const std::uint64_t lead =
      zeros == 0 ? (w0 << 32) | w1 : (w0 << (32 + zeros)) | (w1 << zeros) | (w2 >> (32 - zeros));
  bool sticky = zeros == 0 ? w2 != 0 : static_cast<std::uint32_t>(w2 << zeros) != 0;
  for (int j = 0; j < top_word - 2; ++j) sticky = sticky || word[j] != 0;

  const std::uint64_t sign = negative ? sign_bit : 0;
  const int top = 32 * top_word + 31 - zeros + exponent;  // floor(log2 |value|)
  if (top > 1023) return double_of(sign | infinity_bits);
  if (top < -1075) return double_of(sign);
  const bool subnormal = top < -1022;
  const int drop = subnormal ? 11 + (-1022 - top) : 11;  // 11 .. 64 of the 64 leading bits
  const std::uint64_t kept = drop < 64 ? lead >> drop : 0;
  const std::uint64_t rest = lead << (64 - drop);
  const bool up = rest > sign_bit || (rest == sign_bit && (sticky || (kept & 1) != 0));
  // The carry of a full significand runs into the exponent field, up to Inf or out of the subnormals, as it
  // should.
  const std::uint64_t field = subnormal ? 0 : static_cast<std::uint64_t>(top + 1022) << 52;
  return double_of(sign | (field + kept + (up ? 1 : 0)));
}

/// C := alpha t + beta C with two roundings at most; the old C is read only if beta is not 0.
KOKKOS_INLINE_FUNCTION void apply_epilogue(double t, const Epilogue& epilogue, double& c) {
  if (epilogue.beta == 0)
    c = epilogue.alpha == 1 ? t : epilogue.alpha * t;
  else
    c = std::fma(epilogue.alpha, t, epilogue.beta * c);
}

/// \brief One block of C, and what belongs to its rows and columns.
struct ReconstructBlock {
  const std::int8_t* Y;  // entry (i, j) of plane p at p * stride_y + j * ld + i
  std::int64_t stride_y, ld;
  const std::int32_t* row_exponent;  // e: flagged_vector means that the entry is not written here
  const std::int32_t* col_exponent;
  const std::int32_t* row_alpha;
  const std::int32_t* col_alpha;
  int num_moduli =
      0;  // as in the table; the CUDA form is chosen by it on the host, 0: the form for any space
};

/// One entry per index, on any space.
struct ReconstructFunctor {
  ReconstructBlock block;
  const ModuliTable* table;
  Epilogue epilogue;
  MatrixRef<double> C;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t i = index % C.rows, j = index / C.rows;
    if (block.row_exponent[i] == flagged_vector || block.col_exponent[j] == flagged_vector) return;
    std::uint32_t word[max_words];
    crt_words(block.Y + j * block.ld + i, block.stride_y, *table, word);
    const double t = round_to_double(word, table->words, -(block.row_alpha[i] + block.col_alpha[j]));
    apply_epilogue(t, epilogue, C.data[i * C.row_stride + j * C.col_stride]);
  }
};

/// A piece of one column per index.
struct HostReconstructFunctor {
  static constexpr std::int64_t piece = 256;

  const StageKernels* kernels;
  ReconstructBlock block;
  const ModuliTable* table;
  Epilogue epilogue;
  MatrixRef<double> C;
  std::int64_t pieces;  // of one column

  void operator()(std::int64_t index) const {
    const std::int64_t j = index / pieces, first = index % pieces * piece;
    const std::int64_t length = C.rows - first < piece ? C.rows - first : piece;
    if (block.col_exponent[j] == flagged_vector) return;
    alignas(64) double t[piece];
    kernels->reconstruct(block.Y + j * block.ld + first, block.stride_y, length, block.row_alpha + first,
                         block.col_alpha[j], *table, t);
    double* c = C.data + j * C.col_stride + first * C.row_stride;
    bool flagged = false;
    for (std::int64_t i = 0; i < length; ++i) flagged |= block.row_exponent[first + i] == flagged_vector;
    if (C.row_stride == 1 && !flagged) {
      kernels->combine(t, length, epilogue, c);
      return;
    }
    for (std::int64_t i = 0; i < length; ++i)
      if (block.row_exponent[first + i] != flagged_vector)
        apply_epilogue(t[i], epilogue, c[i * C.row_stride]);
  }
};

/// \brief The exact integers X from their residues, one correctly rounded value 2^-(alpha_i + beta_j) X_ij
/// each, then C := alpha t + beta C. Entries of flagged rows and columns are left alone.
template <class ExecutionSpace>
void reconstruct(const ExecutionSpace& exec, const StageKernels* kernels, const ReconstructBlock& block,
                 const ModuliTable* table, const Epilogue& epilogue, const MatrixRef<double>& C) {
  ScopedRegion region("KokkosOzaki::reconstruct");
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr && block.num_moduli != 0)
      return reconstruct_cuda(exec, block, table, block.num_moduli, epilogue, C);
  }
  if constexpr (is_host_space_v<ExecutionSpace>) {
    if (kernels != nullptr) {
      const std::int64_t pieces =
          (C.rows + HostReconstructFunctor::piece - 1) / HostReconstructFunctor::piece;
      Kokkos::parallel_for("KokkosOzaki::reconstruct", Range<ExecutionSpace>(exec, 0, pieces * C.cols),
                           HostReconstructFunctor{kernels, block, table, epilogue, C, pieces});
      return;
    }
  }
  Kokkos::parallel_for("KokkosOzaki::reconstruct", Range<ExecutionSpace>(exec, 0, C.rows * C.cols),
                       ReconstructFunctor{block, table, epilogue, C});
}

struct ScaleCFunctor {
  double beta;
  MatrixRef<double> C;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    double& c = C.data[index % C.rows * C.row_stride + index / C.rows * C.col_stride];
    c = beta == 0 ? 0.0 : beta * c;
  }
};

/// \brief C := beta C, for alpha = 0 or k = 0; zeros without reading C if beta is 0, nothing if beta is 1.
template <class ExecutionSpace>
void scale_c(const ExecutionSpace& exec, double beta, const MatrixRef<double>& C) {
  if (beta == 1) return;
  Kokkos::parallel_for("KokkosOzaki::scale_c", Range<ExecutionSpace>(exec, 0, C.rows * C.cols),
                       ScaleCFunctor{beta, C});
}

}  // namespace KokkosOzaki::Impl

#include "cuda/KokkosOzaki_Reconstruct_Cuda.hpp"

#endif
