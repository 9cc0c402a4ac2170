// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RECONSTRUCT_HPP
#define KOKKOSOZAKI_RECONSTRUCT_HPP

#include <cmath>

#include "../impl/KokkosOzaki_FloatBits.hpp"
#include "../impl/KokkosOzaki_KokkosCompat.hpp"
#include "../impl/KokkosOzaki_Labels.hpp"
#include "../impl/KokkosOzaki_MatrixRef.hpp"
#include "../impl/KokkosOzaki_ModuliTable.hpp"
#include "KokkosOzaki_HostTiles.hpp"
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

/// \brief The number nearest to X 2^exponent, ties to even; overflow gives Inf, underflow is gradual with one
/// rounding.
/// \param word X, two's complement; overwritten
/// \param words number of 32-bit words
template <class Real>
KOKKOS_INLINE_FUNCTION Real round_to(std::uint32_t* word, int words, std::int32_t exponent) {
  using Format = FormatOf<Real>;
  using Bits = typename Format::Bits;
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
  if (top_word < 0) return Real{0};
  // The 64 leading bits, the first of them set, and whether anything follows.
  const int zeros = 32 - bit_length(word[top_word]);
  const std::uint64_t w0 = word[top_word], w1 = top_word > 0 ? word[top_word - 1] : 0,
                      w2 = top_word > 1 ? word[top_word - 2] : 0;
  const std::uint64_t lead =
      zeros == 0 ? (w0 << 32) | w1 : (w0 << (32 + zeros)) | (w1 << zeros) | (w2 >> (32 - zeros));
  bool sticky = zeros == 0 ? w2 != 0 : static_cast<std::uint32_t>(w2 << zeros) != 0;
  for (int j = 0; j < top_word - 2; ++j) sticky = sticky || word[j] != 0;

  const Bits sign = negative ? Bits{Format::sign} : Bits{0};
  const int top = 32 * top_word + 31 - zeros + exponent;  // floor(log2 |value|)
  constexpr int least = Format::min_exponent, fraction_bits = Format::fraction_bits;
  if (top > int{Format::max_exponent}) return real_of<Real>(sign | Bits{Format::infinity});
  if (top < least - fraction_bits - 1) return real_of<Real>(sign);
  const bool subnormal = top < least;
  constexpr int surplus = 63 - fraction_bits;
  const int drop = subnormal ? surplus + (least - top) : surplus;  // up to 64 of the 64 leading bits
  const std::uint64_t kept = drop < 64 ? lead >> drop : 0;
  const std::uint64_t rest = lead << (64 - drop);
  const bool up = rest > sign_bit || (rest == sign_bit && (sticky || (kept & 1) != 0));
  // The carry of a full significand runs into the exponent field, up to Inf or out of the subnormals, as it
  // should.
  const Bits field = subnormal ? Bits{0} : static_cast<Bits>(top - least) << fraction_bits;
  return real_of<Real>(sign | (field + static_cast<Bits>(kept) + (up ? 1 : 0)));
}

KOKKOS_INLINE_FUNCTION double round_to_double(std::uint32_t* word, int words, std::int32_t exponent) {
  return round_to<double>(word, words, exponent);
}

/// C := alpha t + beta C with two roundings at most; the old C is read only if beta is not 0.
template <class Real>
KOKKOS_INLINE_FUNCTION void apply_epilogue(Real t, const EpilogueOf<Real>& epilogue, Real& c) {
  if (epilogue.beta == 0)
    c = epilogue.alpha == 1 ? t : epilogue.alpha * t;
  else
    c = std::fma(epilogue.alpha, t, epilogue.beta * c);
}

template <class Real>
KOKKOS_INLINE_FUNCTION bool is_value(const Kokkos::complex<Real>& z, Real x) {
  return z.real() == x && z.imag() == 0;
}

/// beta C: zeros for beta = 0, where C is not read, and C itself for beta = 1.
template <class Real>
KOKKOS_INLINE_FUNCTION Kokkos::complex<Real> scaled_c(const Kokkos::complex<Real>& beta,
                                                      const Kokkos::complex<Real>& c) {
  if (is_value(beta, Real{0})) return {Real{0}, Real{0}};
  if (is_value(beta, Real{1})) return c;
  const Real across = beta.imag() * c.imag();
  return {std::fma(beta.real(), c.real(), -across), std::fma(beta.real(), c.imag(), beta.imag() * c.real())};
}

template <class Real>
KOKKOS_INLINE_FUNCTION void apply_epilogue(const Kokkos::complex<Real>& t,
                                           const EpilogueOf<Kokkos::complex<Real>>& epilogue,
                                           Kokkos::complex<Real>& c) {
  const Kokkos::complex<Real>&alpha = epilogue.alpha, &beta = epilogue.beta;
  const Kokkos::complex<Real> p = scaled_c(beta, c);
  if (!is_value(alpha, Real{1}))
    c = Kokkos::complex<Real>(std::fma(alpha.real(), t.real(), std::fma(-alpha.imag(), t.imag(), p.real())),
                              std::fma(alpha.real(), t.imag(), std::fma(alpha.imag(), t.real(), p.imag())));
  else if (is_value(beta, Real{0}))
    c = t;
  else
    c = Kokkos::complex<Real>(t.real() + p.real(), t.imag() + p.imag());
}

/// \brief One block of C, and what belongs to its rows and columns.
struct ReconstructBlock {
  const std::int8_t*
      Y;  // entry (i, j) of plane p at p * stride_y + j * ld + i; complex: planes 2 p and 2 p + 1
  std::int64_t stride_y, ld;
  const std::int32_t* row_exponent;  // e: flagged_vector means that the entry is not written here
  const std::int32_t* col_exponent;
  const std::int32_t* row_alpha;
  const std::int32_t* col_alpha;
  int num_moduli =
      0;  // as in the table; the CUDA form is chosen by it on the host, 0: the form for any space
  std::int64_t row_pitch = 0, col_pitch = 0;  // of a batch: rows and columns have the numbers of VectorSet
};

/// Where a column of a batch is in C, and in the arrays of the block.
struct PlaceInBatch {
  std::int64_t entry, j;     // column j of this entry
  std::int64_t row, column;  // numbers of the entry's first row, and of the column

  template <class Scalar>
  KOKKOS_INLINE_FUNCTION PlaceInBatch(const MatrixRef<Scalar>& C, const ReconstructBlock& block,
                                      std::int64_t column_of_all) {
    C.place(column_of_all, entry, j);
    row = entry * block.row_pitch;
    column = entry * block.col_pitch + j;
  }
};

/// One entry per index, on any space.
template <class Scalar>
struct ReconstructFunctor {
  ReconstructBlock block;
  const ModuliTable* table;
  EpilogueOf<Scalar> epilogue;
  MatrixRef<Scalar> C;

  KOKKOS_FUNCTION RealOf<Scalar> part(std::int64_t i, std::int64_t row, std::int64_t column,
                                      int which) const {
    std::uint32_t word[max_words] = {};
    crt_words(block.Y + which * block.stride_y + column * block.ld + i, parts_of_v<Scalar> * block.stride_y,
              *table, word);
    return round_to<RealOf<Scalar>>(word, table->words, -(block.row_alpha[row] + block.col_alpha[column]));
  }

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t i = index % C.rows;
    const PlaceInBatch at(C, block, index / C.rows);
    const std::int64_t row = at.row + i;
    if (block.row_exponent[row] == flagged_vector || block.col_exponent[at.column] == flagged_vector) return;
    Scalar& c = C.entry(at.entry)[i * C.row_stride + at.j * C.col_stride];
    if constexpr (is_complex_v<Scalar>)
      apply_epilogue(Scalar(part(i, row, at.column, 0), part(i, row, at.column, 1)), epilogue, c);
    else
      apply_epilogue(part(i, row, at.column, 0), epilogue, c);
  }
};

/// A piece of one column per index.
template <class Scalar>
struct HostReconstructFunctor {
  using Real = RealOf<Scalar>;
  static constexpr int parts = parts_of_v<Scalar>;
  static constexpr std::int64_t piece = 256;

  const StageKernels* kernels;
  ReconstructBlock block;
  const ModuliTable* table;
  EpilogueOf<Scalar> epilogue;
  MatrixRef<Scalar> C;
  std::int64_t pieces;  // of one column

  void operator()(std::int64_t index) const {
    const std::int64_t first = index % pieces * piece;
    const std::int64_t length = C.rows - first < piece ? C.rows - first : piece;
    const PlaceInBatch at(C, block, index / pieces);
    if (block.col_exponent[at.column] == flagged_vector) return;
    const std::int32_t* const row_exponent = block.row_exponent + at.row + first;
    alignas(64) Real t[parts][piece];
    for (int part = 0; part < parts; ++part)
      leaves_of<Real>(kernels).reconstruct(block.Y + part * block.stride_y + at.column * block.ld + first,
                                           parts * block.stride_y, length, block.row_alpha + at.row + first,
                                           block.col_alpha[at.column], *table, t[part]);
    Scalar* c = C.entry(at.entry) + at.j * C.col_stride + first * C.row_stride;
    if constexpr (is_complex_v<Scalar>) {
      for (std::int64_t i = 0; i < length; ++i)
        if (row_exponent[i] != flagged_vector)
          apply_epilogue(Scalar(t[0][i], t[1][i]), epilogue, c[i * C.row_stride]);
    } else {
      bool flagged = false;
      for (std::int64_t i = 0; i < length; ++i) flagged |= row_exponent[i] == flagged_vector;
      if (C.row_stride == 1 && !flagged) {
        leaves_of<Real>(kernels).combine(t[0], length, epilogue, c);
        return;
      }
      for (std::int64_t i = 0; i < length; ++i)
        if (row_exponent[i] != flagged_vector) apply_epilogue(t[0][i], epilogue, c[i * C.row_stride]);
    }
  }
};

/// \brief The exact integers X from their residues, one correctly rounded value 2^-(alpha_i + beta_j) X_ij
/// each, then C := alpha t + beta C. Entries of flagged rows and columns are left alone.
template <class ExecutionSpace, class Scalar>
void reconstruct(const ExecutionSpace& exec, const StageKernels* kernels, const ReconstructBlock& block,
                 const ModuliTable* table, const EpilogueOf<Scalar>& epilogue, const MatrixRef<Scalar>& C) {
  ScopedRegion region(Labels::reconstruct);
  if constexpr (is_cuda_space_v<ExecutionSpace> && !is_complex_v<Scalar>) {
    if (kernels != nullptr && block.num_moduli != 0)
      return reconstruct_cuda(exec, block, table, block.num_moduli, epilogue, C);
  }
  if constexpr (is_host_space_v<ExecutionSpace>) {
    if (kernels != nullptr) {
      using Functor = HostReconstructFunctor<Scalar>;
      const std::int64_t pieces = (C.rows + Functor::piece - 1) / Functor::piece;
      Kokkos::parallel_for(Labels::reconstruct, Range<ExecutionSpace>(exec, 0, pieces * C.cols * C.entries),
                           Functor{kernels, block, table, epilogue, C, pieces});
      return;
    }
  }
  Kokkos::parallel_for(Labels::reconstruct, Range<ExecutionSpace>(exec, 0, C.rows * C.cols * C.entries),
                       ReconstructFunctor<Scalar>{block, table, epilogue, C});
}

template <class Scalar>
struct ScaleCFunctor {
  Scalar beta;
  MatrixRef<Scalar> C;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    std::int64_t entry, j;
    C.place(index / C.rows, entry, j);
    Scalar& c = C.entry(entry)[index % C.rows * C.row_stride + j * C.col_stride];
    if constexpr (is_complex_v<Scalar>)
      c = scaled_c(beta, c);
    else
      c = beta == 0 ? Scalar{0} : beta * c;
  }
};

/// \brief C := beta C, for alpha = 0 or k = 0; zeros without reading C if beta is 0, nothing if beta is 1.
template <class ExecutionSpace, class Scalar>
void scale_c(const ExecutionSpace& exec, const Scalar& beta, const MatrixRef<Scalar>& C) {
  if (beta == Scalar(1)) return;
  Kokkos::parallel_for(Labels::scale_c, Range<ExecutionSpace>(exec, 0, C.rows * C.cols * C.entries),
                       ScaleCFunctor<Scalar>{beta, C});
}

}  // namespace KokkosOzaki::Impl

#include "cuda/KokkosOzaki_Reconstruct_Cuda.hpp"

#endif
