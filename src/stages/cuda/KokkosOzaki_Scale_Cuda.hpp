// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_SCALE_CUDA_HPP
#define KOKKOSOZAKI_SCALE_CUDA_HPP

#include "../host/KokkosOzaki_StageKernels.hpp"
#include "../KokkosOzaki_BoundProduct.hpp"
#include "KokkosOzaki_Tile_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl {

namespace CudaStages {

/// Quantised entries of one tile per team; four of them change hands as one word.
struct QuantizeKernel {
  VectorSet<double> vectors;
  const std::int32_t* exponent;
  std::int8_t* out;
  std::int64_t ld, padded, vector_tiles;
  bool aligned;

  static constexpr int row_words = quads_per_vector + 1;  // odd: neither direction conflicts
  static constexpr int scratch_bytes = tile_vectors * row_words * 4 + 16;

  __device__ void operator()(const TilePolicy<4>::member_type& team) const {
    const int thread = team.team_rank();
    const std::int64_t first_vector = team.league_rank() % vector_tiles * tile_vectors;
    const std::int64_t first = team.league_rank() / vector_tiles * chunk_length;
    std::uint64_t bits[quads_per_thread][4];
    load_entries(vectors, aligned, first_vector, first, thread, bits);
    auto* words =
        reinterpret_cast<std::uint32_t*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes} - 16, 16));
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r) {
      const QuadIndex at = quad_index(vectors.position_stride == 1, thread, r);
      const std::int64_t v = first_vector + at.vector;
      const std::int32_t e = v < vectors.count ? exponent[v] : zero_vector;
      std::uint32_t word = 0;
      if (e != zero_vector && e != flagged_vector) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::uint64_t absolute = bits[r][i] & ~sign_bit;
          const std::uint32_t q = absolute != 0 ? ((fixed15(absolute, e) + 1) * 127 + 65535) >> 16 : 0;
          word |= q << (8 * i);
        }
      }
      words[at.vector * row_words + at.quad] = word;
    }
    team.team_barrier();
    const int vector = thread >> 3, part = thread & 7;
    const std::int64_t v = first_vector + vector, l = first + 16 * part;
    if (v >= padded || l >= ld) return;
    const std::uint32_t* w = words + vector * row_words + 4 * part;
    *reinterpret_cast<uint4*>(out + v * ld + l) = make_uint4(w[0], w[1], w[2], w[3]);
  }
};

/// One column of 128 rows per warp and step: row maxima stay in registers, column maxima are joined over the
/// warp.
struct BoundMaximaKernel {
  static constexpr int columns = 32, threads = 256;
  static constexpr int in_flight = 4;  // columns whose loads are under way
  static constexpr int rows = threads * 4;

  BoundProduct product;
  std::int64_t row_blocks;
  std::int32_t* row_maxima;
  std::int32_t* col_maxima;

  using Policy =
      Kokkos::TeamPolicy<Kokkos::Cuda, Kokkos::IndexType<std::int64_t>, Kokkos::LaunchBounds<threads, 4>>;

  __device__ void operator()(const Policy::member_type& team) const {
    const std::int64_t i0 = team.league_rank() % row_blocks * rows + 4 * team.team_rank();
    const std::int64_t j0 = team.league_rank() / row_blocks * columns;
    const std::int64_t j1 = j0 + columns < product.n ? j0 + columns : product.n;
    std::int32_t row[4] = {0, 0, 0, 0};
    for (std::int64_t j = j0; j < j1; j += in_flight) {
      int4 g[in_flight];
#pragma unroll
      for (int c = 0; c < in_flight; ++c)
        g[c] = i0 < product.m && j + c < j1
                   ? __ldcs(reinterpret_cast<const int4*>(product.G + (j + c) * product.ld + i0))
                   : make_int4(0, 0, 0, 0);
#pragma unroll
      for (int c = 0; c < in_flight; ++c) {
        // Rows m .. ld-1 may hold anything.
        const std::int32_t value[4] = {g[c].x, i0 + 1 < product.m ? g[c].y : 0,
                                       i0 + 2 < product.m ? g[c].z : 0, i0 + 3 < product.m ? g[c].w : 0};
#pragma unroll
        for (int i = 0; i < 4; ++i) row[i] = max(row[i], value[i]);
        const int column =
            __reduce_max_sync(0xFFFFFFFFu, max(max(value[0], value[1]), max(value[2], value[3])));
        if ((team.team_rank() & 31) == 0 && column > 0) atomicMax(col_maxima + j + c, column);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (i0 + i < product.m && row[i] > 0) atomicMax(row_maxima + i0 + i, row[i]);
  }
};

}  // namespace CudaStages

inline void quantize_cuda(const Kokkos::Cuda& exec, const VectorSet<double>& vectors,
                          const std::int32_t* exponent, std::int8_t* q, std::int64_t ld,
                          std::int64_t padded) {
  using namespace CudaStages;
  const TileGrid grid(padded, ld);
  Kokkos::parallel_for(
      "KokkosOzaki::quantize",
      TilePolicy<4>(exec, static_cast<int>(grid.tiles), tile_threads, 1)
          .set_scratch_size(0, Kokkos::PerTeam(int{QuantizeKernel::scratch_bytes})),
      QuantizeKernel{vectors, exponent, q, ld, padded, grid.vector_tiles, quads_are_aligned(vectors)});
}

inline void bound_maxima_cuda(const Kokkos::Cuda& exec, const BoundProduct& product, std::int32_t* row_maxima,
                              std::int32_t* col_maxima) {
  using Kernel = CudaStages::BoundMaximaKernel;
  const std::int64_t row_blocks = (product.m + Kernel::rows - 1) / Kernel::rows;
  const std::int64_t col_blocks = (product.n + Kernel::columns - 1) / Kernel::columns;
  Kokkos::parallel_for(
      "KokkosOzaki::bound_maxima",
      Kernel::Policy(exec, static_cast<int>(row_blocks * col_blocks), int{Kernel::threads}, 1),
      Kernel{product, row_blocks, row_maxima, col_maxima});
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
