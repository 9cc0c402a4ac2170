// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_SCALE_HPP
#define KOKKOSOZAKI_SCALE_HPP

#include "../impl/KokkosOzaki_Labels.hpp"
#include "KokkosOzaki_BoundProduct.hpp"
#include "KokkosOzaki_Quantize.hpp"
#include "KokkosOzaki_Statistics.hpp"
#include "cuda/KokkosOzaki_Atomics_Cuda.hpp"
#include "cuda/KokkosOzaki_Scale_Cuda.hpp"

namespace KokkosOzaki::Impl {

/// P(w; hb, h): the largest p with w 4^p <= h 2^(hb - 64), for 0 < w < 2^64.
KOKKOS_INLINE_FUNCTION std::int32_t scale_step(std::uint64_t w, const Budget& budget) {
  const int bits = bit_length(w);
  const int d = budget.bits - bits;
  const int p = d >> 1;
  return (d & 1) == 0 && (w << (64 - bits)) > budget.h ? p - 1 : p;
}

inline KOKKOS_FUNCTION bool has_exponent(std::int32_t e) {
  return e != zero_vector && e != flagged_vector;
}

struct FastExponentsFunctor {
  Budget budget;
  const std::int32_t* exponent;
  const std::uint64_t* square_sum;
  std::int32_t* alpha;

  KOKKOS_FUNCTION void operator()(std::int64_t v) const {
    const std::int32_t e = exponent[v];
    alpha[v] = has_exponent(e) ? scale_step(square_sum[v], budget) + 15 - e : 0;
  }
};

/// \brief Fast bound: alpha = P(S) + 15 - e, and 0 for vectors of zeros and flagged ones.
template <class ExecutionSpace>
void scale_fast(const ExecutionSpace& exec, const Budget& budget, std::int64_t count,
                const std::int32_t* exponent, const std::uint64_t* square_sum, std::int32_t* alpha) {
  ScopedRegion region(Labels::scale);
  Kokkos::parallel_for(Labels::scale_fast, Range<ExecutionSpace>(exec, 0, count),
                       FastExponentsFunctor{budget, exponent, square_sum, alpha});
}

/// One vector and position per index, on any space. Positions length..padded-1 and vectors count.. are zeros.
template <class Element, class Quantizer>
struct QuantizeFunctor {
  VectorSet<Element> vectors;
  const std::int32_t* exponent;
  std::int8_t* out;
  std::int64_t ld;
  Quantizer quantizer;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t v = index / ld, l = index % ld;
    out[index] = vectors.holds(v) && l < vectors.length && has_exponent(exponent[v]) ? quantized_entry(v, l)
                                                                                     : std::int8_t{0};
  }

  KOKKOS_FUNCTION std::int8_t quantized_entry(std::int64_t v, std::int64_t l) const {
    if constexpr (is_complex_v<Element>)
      return quantizer(magnitude_bits(vectors.part(v, l, 0)), magnitude_bits(vectors.part(v, l, 1)),
                       exponent[v]);
    else
      return quantizer(magnitude_bits(vectors.part(v, l, 0)), exponent[v]);
  }
};

template <class Element, class Quantizer>
struct HostQuantize {
  const StageKernels* kernels;
  const std::int32_t* exponent;
  std::int8_t* out;
  std::int64_t ld;
  Quantizer quantizer;

  void operator()(std::int64_t v, std::int64_t first, int, const RealOf<Element>* x) const {
    const std::int64_t length = ld - first < chunk_length ? ld - first : chunk_length;
    std::int8_t* q = out + v * ld + first;
    if (!has_exponent(exponent[v])) {
      for (std::int64_t l = 0; l < length; ++l) q[l] = 0;
    } else if constexpr (is_complex_v<Element>) {
      for (std::int64_t l = 0; l < length; ++l)
        q[l] = quantizer(magnitude_bits(x[l]), magnitude_bits(x[chunk_length + l]), exponent[v]);
    } else if constexpr (std::is_same_v<Quantizer, QuantizeUp>) {
      leaves_of<Element>(kernels).quantize(x, length, exponent[v], q);
    } else {
      for (std::int64_t l = 0; l < length; ++l) q[l] = quantizer(magnitude_bits(x[l]), exponent[v]);
    }
  }
};

/// Pieces of 64 entries; a vector is a multiple of that.
struct ZeroVectorsFunctor {
  static constexpr std::int64_t piece = 64;

  std::int8_t* out;
  std::int64_t plane_stride, first, pieces;  // of one plane

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    std::int8_t* zeros = out + index / pieces * plane_stride + first + index % pieces * piece;
    for (std::int64_t l = 0; l < piece; ++l) zeros[l] = 0;
  }
};

/// Zeros for the vectors `count` .. `padded` - 1 of every plane.
template <class ExecutionSpace>
void zero_padding(const ExecutionSpace& exec, std::int8_t* out, int planes, std::int64_t plane_stride,
                  std::int64_t ld, std::int64_t count, std::int64_t padded) {
  const std::int64_t pieces = (padded - count) * ld / ZeroVectorsFunctor::piece;
  if (pieces == 0) return;
  Kokkos::parallel_for(Labels::zero_padding, Range<ExecutionSpace>(exec, 0, planes * pieces),
                       ZeroVectorsFunctor{out, plane_stride, count * ld, pieces});
}

/// \brief Vectors quantised to 7 bits, q[v * ld + l]; zeros for those without an exponent.
/// \param padded  vectors count .. padded-1 become zeros
/// \param quantizer  the accurate bound's by default
/// \param skip  null, or a flag in the memory of `exec`: where it is not zero by then, all may be left undone
template <class ExecutionSpace, class Element, class Quantizer = QuantizeUp>
void quantize(const ExecutionSpace& exec, const StageKernels* kernels, const VectorSet<Element>& vectors,
              const std::int32_t* exponent, std::int8_t* q, std::int64_t ld, std::int64_t padded,
              const Quantizer& quantizer = {}, [[maybe_unused]] const std::int32_t* skip = nullptr) {
  ScopedRegion region(Labels::scale);
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr) return quantize_cuda(exec, vectors, exponent, q, ld, padded, quantizer, skip);
  }
  if (is_host_space_v<ExecutionSpace> && kernels != nullptr) {
    for_each_tile(exec, Labels::quantize, kernels, vectors,
                  HostQuantize<Element, Quantizer>{kernels, exponent, q, ld, quantizer});
    zero_padding(exec, q, 1, 0, ld, vectors.count, padded);
  } else {
    Kokkos::parallel_for(Labels::quantize, Range<ExecutionSpace>(exec, 0, padded * ld),
                         QuantizeFunctor<Element, Quantizer>{vectors, exponent, q, ld, quantizer});
  }
}

struct ResetMaximaFunctor {
  std::int32_t* maxima;
  KOKKOS_FUNCTION void operator()(std::int64_t v) const { maxima[v] = 0; }
};

template <class ExecutionSpace>
void reset_maxima(const ExecutionSpace& exec, std::int64_t count, std::int32_t* maxima) {
  Kokkos::parallel_for(Labels::reset_maxima, Range<ExecutionSpace>(exec, 0, count),
                       ResetMaximaFunctor{maxima});
}

/// Columns of G in blocks: one atomic maximum per row and block, one per column.
struct BoundMaximaFunctor {
  static constexpr std::int64_t block_rows = 256;

  BoundProduct product;
  std::int64_t row_blocks;
  std::int32_t* row_maxima;
  std::int32_t* col_maxima;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t column = index / row_blocks, first = index % row_blocks * block_rows;
    const std::int64_t last = first + block_rows < product.m ? first + block_rows : product.m;
    const std::int64_t entry = product.entries == 1 ? 0 : column / product.n;
    const std::int64_t j = column + entry * (product.col_pitch - product.n);
    std::int32_t* const maxima = row_maxima + entry * product.row_pitch;
    std::int32_t largest = 0;
    for (std::int64_t i = first; i < last; ++i) {
      const std::int32_t g = product.G[j * product.ld + i];
      largest = g > largest ? g : largest;
      if (g > maxima[i]) Kokkos::atomic_fetch_max(&maxima[i], g);
    }
    if (largest > col_maxima[j]) Kokkos::atomic_fetch_max(&col_maxima[j], largest);
  }
};

/// \brief R_i = max_j G_ij and R'_j = max_i G_ij, joined with what the arrays hold already.
template <class ExecutionSpace>
void bound_maxima(const ExecutionSpace& exec, const BoundProduct& product, std::int32_t* row_maxima,
                  std::int32_t* col_maxima) {
  ScopedRegion region(Labels::scale);
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    bound_maxima_cuda(exec, product, row_maxima, col_maxima);
  } else {
    const std::int64_t row_blocks =
        (product.m + BoundMaximaFunctor::block_rows - 1) / BoundMaximaFunctor::block_rows;
    Kokkos::parallel_for(Labels::bound_maxima,
                         Range<ExecutionSpace>(exec, 0, row_blocks * product.n * product.entries),
                         BoundMaximaFunctor{product, row_blocks, row_maxima, col_maxima});
  }
}

/// The same for one product, m x n, G(i, j) at j * ld + i.
template <class ExecutionSpace>
void bound_maxima(const ExecutionSpace& exec, const std::int32_t* G, std::int64_t m, std::int64_t n,
                  std::int64_t ld, std::int32_t* row_maxima, std::int32_t* col_maxima) {
  bound_maxima(exec, BoundProduct{G, m, n, ld}, row_maxima, col_maxima);
}

/// What the accurate bound knows of one side: rows of op(A), or columns of op(B), `count` to an entry.
struct CandidateFunctor {
  Budget budget;
  std::int32_t cap;
  std::int64_t weight;  // extent of the other side
  const std::int32_t* exponent;
  const std::int32_t* maxima;
  const std::int32_t* fast;
  std::int32_t* candidate;
  Control* control;

  std::int64_t count;

  static constexpr std::int64_t vectors_per_index = 8;  // and one atomic addition

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    std::int64_t gain = 0;
    const std::int64_t stride = (count + vectors_per_index - 1) / vectors_per_index;
    const std::int64_t entry = index / stride, end = (entry + 1) * count;
    for (std::int64_t v = entry * count + index % stride; v < end; v += stride) {
      const std::int32_t e = exponent[v];
      std::int32_t alpha = fast[v];
      if (has_exponent(e) && maxima[v] != 0) {
        const std::int32_t p = scale_step(static_cast<std::uint64_t>(maxima[v]), budget);
        alpha = (p < cap ? p : cap) - 1 - e;
      }
      candidate[v] = alpha;
      gain += alpha - fast[v];
    }
    add_atomically(&control[entry].gain, weight * gain);
  }
};

/// \brief Accurate bound, second step: the candidate exponents of one side and their weighted gain over the
/// fast ones.
/// \param count vectors of one entry; maxima, exponents and candidates have count * entries
template <class ExecutionSpace>
void scale_candidates(const ExecutionSpace& exec, const Budget& budget, int cap, std::int64_t weight,
                      std::int64_t count, const std::int32_t* exponent, const std::int32_t* maxima,
                      const std::int32_t* fast, std::int32_t* candidate, Control* control,
                      std::int64_t entries = 1) {
  ScopedRegion region(Labels::scale);
  using Functor = CandidateFunctor;
  const std::int64_t indices = (count + Functor::vectors_per_index - 1) / Functor::vectors_per_index;
  Kokkos::parallel_for(Labels::scale_candidates, Range<ExecutionSpace>(exec, 0, indices * entries),
                       Functor{budget, cap, weight, exponent, maxima, fast, candidate, control, count});
}

struct ChooseFunctor {
  std::int64_t count;  // vectors of one entry
  const std::int32_t* candidate;
  const Control* control;
  std::int32_t* alpha;

  KOKKOS_FUNCTION void operator()(std::int64_t v) const {
    if (control[v / count].gain > 0) alpha[v] = candidate[v];
  }
};

/// \brief Accurate bound, last step: the candidates replace the fast exponents if they are finer on average.
template <class ExecutionSpace>
void scale_choose(const ExecutionSpace& exec, std::int64_t count, const std::int32_t* candidate,
                  const Control* control, std::int32_t* alpha, std::int64_t entries = 1) {
  ScopedRegion region(Labels::scale);
  Kokkos::parallel_for(Labels::scale_choose, Range<ExecutionSpace>(exec, 0, count * entries),
                       ChooseFunctor{count, candidate, control, alpha});
}

}  // namespace KokkosOzaki::Impl

#endif
