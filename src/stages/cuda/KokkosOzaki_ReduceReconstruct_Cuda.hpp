// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_REDUCERECONSTRUCT_CUDA_HPP
#define KOKKOSOZAKI_REDUCERECONSTRUCT_CUDA_HPP

#include "../KokkosOzaki_Reconstruct.hpp"
#include "../KokkosOzaki_Reduce.hpp"
#include "KokkosOzaki_ResidueReducer_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl::CudaStages {

/// As round_to_double, for W words in registers.
template <int W>
__device__ inline double round_words(std::uint32_t (&word)[W], std::int32_t exponent) {
  const bool negative = (word[W - 1] >> 31) != 0;
  std::uint64_t carry = negative ? 1 : 0;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    carry += negative ? ~word[j] : word[j];
    word[j] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  // The three leading words and what follows; no word is addressed by a variable.
  std::uint32_t w0 = word[0], w1 = 0, w2 = 0, rest = 0;
  int top_word = 0;
#pragma unroll
  for (int j = 1; j < W; ++j)
    if (word[j] != 0) {
      w0 = word[j], w1 = word[j - 1], w2 = j >= 2 ? word[j >= 2 ? j - 2 : 0] : 0, rest = 0;
#pragma unroll
      for (int i = 0; i < j - 2; ++i) rest |= word[i];
      top_word = j;
    }
  if (w0 == 0) return 0.0;
  const int zeros = __clz(static_cast<int>(w0));
  const std::uint64_t lead =
      (static_cast<std::uint64_t>(__funnelshift_l(w1, w0, zeros)) << 32) | __funnelshift_l(w2, w1, zeros);
  const bool sticky = ((w2 << zeros) | rest) != 0;

  const std::uint64_t sign = negative ? sign_bit : 0;
  const int top = 32 * top_word + 31 - zeros + exponent;
  if (top > 1023) return double_of(sign | infinity_bits);
  if (top < -1075) return double_of(sign);
  const bool subnormal = top < -1022;
  const int drop = subnormal ? 11 + (-1022 - top) : 11;
  const std::uint64_t kept = drop < 64 ? lead >> drop : 0;
  const std::uint64_t tail = lead << (64 - drop);
  const bool up = tail > sign_bit || (tail == sign_bit && (sticky || (kept & 1) != 0));
  const std::uint64_t field = subnormal ? 0 : static_cast<std::uint64_t>(top + 1022) << 52;
  return double_of(sign | (field + kept + (up ? 1 : 0)));
}

/// The four low bytes w_p P as signed digits.
__device__ inline std::int32_t output_digits(std::int32_t P) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(P) + 0x80808080u) ^ 0x80808080u);
}

/// \brief Reduction and reconstruction in one: four rows of one column per index, P of all moduli is read
/// once and Y is not stored. Equal to reduce (first block of k) and reconstruct. \tparam W  32-bit words of X
template <int W>
struct ReduceReconstructKernel {
  ReducePlanes planes;  // P of all moduli; Y is not used
  ReconstructBlock block;
  const ModuliTable* table;
  Epilogue epilogue;
  MatrixRef<double> C;
  std::int64_t row_groups;

  __device__ void operator()(std::int64_t index) const {
    const std::int64_t j = index / row_groups, i0 = index % row_groups * 4;
    if (block.col_exponent[j] == flagged_vector) return;
    const std::int32_t* P = planes.P + j * planes.ld + i0;
    std::int64_t sum[4][W] = {};
    std::int32_t quotient[4] = {1 << 23, 1 << 23, 1 << 23, 1 << 23};
    const int count = table->count;
    for (int g = 0, p = 0; p < count; ++g) {
      std::int32_t z[4] = {};
#pragma unroll
      for (int in_group = 0; in_group < 3; ++in_group, ++p) {
        if (p >= count) break;
        const int4 product = __ldcs(reinterpret_cast<const int4*>(P + p * planes.stride_p));
        const std::int32_t coefficient = *reinterpret_cast<const std::int32_t*>(table->output_coefficient[p]);
        const std::int32_t m = table->modulus[p], start = table->start[p];
        const auto inverse = static_cast<std::int32_t>(table->inverse[p]);
        const std::int32_t weight = table->group_weight[p], kappa = table->quotient_weight[p];
        const std::int32_t value[4] = {product.x, product.y, product.z, product.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::int32_t y =
              p == 0 ? static_cast<std::int8_t>(value[i] * static_cast<std::int8_t>(coefficient))
                     : finish(dot4(output_digits(value[i]), coefficient, start), m, inverse);
          z[i] += y * weight;
          quotient[i] += y * kappa;
        }
      }
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const std::int32_t limb = table->group_limb[g][w];
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i][w] += static_cast<std::int64_t>(z[i]) * limb;
      }
    }
    const std::int32_t beta = block.col_alpha[j];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i0 + i >= C.rows) return;
      if (block.row_exponent[i0 + i] == flagged_vector) continue;
      const std::int32_t q = quotient[i] >> 24;
      std::uint32_t word[W];
      std::int64_t carry = 0;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        carry += sum[i][w] - static_cast<std::int64_t>(q) * table->product_limb[w];
        word[w] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
      const double t = round_words<W>(word, -(block.row_alpha[i0 + i] + beta));
      apply_epilogue(t, epilogue, C.data[(i0 + i) * C.row_stride + j * C.col_stride]);
    }
  }
};

template <int W>
void launch_reduce_reconstruct(const Kokkos::Cuda& exec, const ReducePlanes& planes,
                               const ReconstructBlock& block, const ModuliTable* table,
                               const Epilogue& epilogue, const MatrixRef<double>& C) {
  const std::int64_t row_groups = (C.rows + 3) / 4;
  using Policy =
      Kokkos::RangePolicy<Kokkos::Cuda, Kokkos::IndexType<std::int64_t>, Kokkos::LaunchBounds<256, 3>>;
  Kokkos::parallel_for("KokkosOzaki::reduce_reconstruct", Policy(exec, 0, row_groups * C.cols),
                       ReduceReconstructKernel<W>{planes, block, table, epilogue, C, row_groups});
}

}  // namespace KokkosOzaki::Impl::CudaStages

namespace KokkosOzaki::Impl {

/// \brief The stages reduce and reconstruct in one pass, for products of all moduli and a single block of k.
/// \param words  32-bit words of X, as in the table
inline void reduce_reconstruct(const Kokkos::Cuda& exec, const ReducePlanes& planes,
                               const ReconstructBlock& block, const ModuliTable* table, int words,
                               const Epilogue& epilogue, const MatrixRef<double>& C) {
  ScopedRegion region("KokkosOzaki::reconstruct");
  switch (words) {
    case 1:
      return CudaStages::launch_reduce_reconstruct<1>(exec, planes, block, table, epilogue, C);
    case 2:
      return CudaStages::launch_reduce_reconstruct<2>(exec, planes, block, table, epilogue, C);
    case 3:
      return CudaStages::launch_reduce_reconstruct<3>(exec, planes, block, table, epilogue, C);
    case 4:
      return CudaStages::launch_reduce_reconstruct<4>(exec, planes, block, table, epilogue, C);
    default:
      return CudaStages::launch_reduce_reconstruct<5>(exec, planes, block, table, epilogue, C);
  }
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
