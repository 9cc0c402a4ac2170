// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_STATISTICS_CUDA_HPP
#define KOKKOSOZAKI_STATISTICS_CUDA_HPP

#include "../host/KokkosOzaki_StageKernels.hpp"
#include "KokkosOzaki_Tile_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl {

KOKKOS_INLINE_FUNCTION ChunkStatistics chunk_statistics(const double* x, std::int64_t stride, int length);

namespace CudaStages {

/// \brief Chunk statistics of two sets of vectors, one tile per team: the operands are read once, in one
/// launch.
///
/// Only the high 32-bit words take part: f(x) needs no more where the chunk's largest entry is normal. A
/// chunk of subnormal numbers goes through the general form.
struct ChunkStatisticsKernel {
  struct Operand {
    VectorSet<double> vectors;
    ChunkStatistics* out;  // [chunk][vector]
    std::int64_t vector_tiles;
    bool aligned;
  };
  Operand first, second;
  int first_tiles;

  static constexpr int scratch_bytes = 8 * tile_vectors * static_cast<int>(sizeof(std::uint64_t)) + 8;

  __device__ static std::uint32_t fixed15_of_high_word(std::uint32_t high, int shift_base) {
    const std::uint32_t field = high >> 20;
    const std::uint32_t h = (high & 0xFFFFF) | (field != 0 ? 1u << 20 : 0u);
    const int shift = shift_base - static_cast<int>(field != 0 ? field : 1);
    return h >> (shift < 31 ? shift : 31);
  }

  /// A chunk whose largest entry is subnormal. Out of line: the common case stays short.
  __device__ __noinline__ static ChunkStatistics subnormal_chunk(const double* x, std::int64_t stride,
                                                                 int length) {
    return chunk_statistics(x, stride, length);
  }

  __device__ static ChunkStatistics record(const VectorSet<double>& vectors, std::uint32_t largest, bool any,
                                           std::uint64_t sum, std::int64_t v, std::int64_t first) {
    if (!any) return {0, zero_vector};
    if (largest >= 0x7FF00000u) return {0, flagged_vector};
    if (largest < 0x00100000u) {
      const std::int64_t left = vectors.length - first;
      return subnormal_chunk(vectors.data + v * vectors.vector_stride + first * vectors.position_stride,
                             vectors.position_stride,
                             static_cast<int>(left < chunk_length ? left : chunk_length));
    }
    return {sum, static_cast<int>(largest >> 20) - 1023};
  }

  __device__ void operator()(const TilePolicy<4>::member_type& team) const {
    const int thread = team.team_rank(), lane = thread & 31, warp = thread >> 5;
    const bool of_first = team.league_rank() < first_tiles;
    const VectorSet<double> vectors = of_first ? this->first.vectors : second.vectors;
    ChunkStatistics* out = of_first ? this->first.out : second.out;
    const std::int64_t vector_tiles = of_first ? this->first.vector_tiles : second.vector_tiles;
    const std::int64_t tile = of_first ? team.league_rank() : team.league_rank() - first_tiles;
    const std::int64_t first_vector = tile % vector_tiles * tile_vectors;
    const std::int64_t chunk = tile / vector_tiles, first = chunk * chunk_length;
    std::uint64_t bits[quads_per_thread][4];
    load_entries(vectors, of_first ? this->first.aligned : second.aligned, first_vector, first, thread, bits);

    if (vectors.position_stride == 1) {
      // A vector's chunk is one warp: four vectors in turn.
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r) {
        std::uint32_t high[4], largest = 0;
        bool any = false;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          high[i] = static_cast<std::uint32_t>(bits[r][i] >> 32) & 0x7FFFFFFFu;
          largest = max(largest, high[i]);
          any = any || (bits[r][i] << 1) != 0;
        }
        largest = __reduce_max_sync(0xFFFFFFFFu, largest);
        any = __any_sync(0xFFFFFFFFu, any);
        std::uint64_t sum = 0;
        const int shift_base = static_cast<int>(largest >> 20) + 5;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const std::uint32_t f = fixed15_of_high_word(high[i], shift_base) + 1;
          sum += (bits[r][i] << 1) != 0 ? static_cast<std::uint64_t>(f) * f : 0;
        }
        // sum <= 2^34 a lane: two parts that cannot overflow 32 bits over the warp
        const std::uint32_t low = __reduce_add_sync(0xFFFFFFFFu, static_cast<std::uint32_t>(sum) & 0xFFFFFu);
        const std::uint32_t rest = __reduce_add_sync(0xFFFFFFFFu, static_cast<std::uint32_t>(sum >> 20));
        const std::int64_t v = first_vector + warp * quads_per_thread + r;
        if (lane == 0 && v < vectors.count)
          out[chunk * vectors.count + v] =
              record(vectors, largest, any, (static_cast<std::uint64_t>(rest) << 20) + low, v, first);
      }
      return;
    }

    // A lane is a vector, a warp 16 of its positions: the warps meet in shared memory.
    auto* shared =
        reinterpret_cast<std::uint64_t*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes}, 8));
    std::uint32_t largest = 0;
    bool any = false;
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        largest = max(largest, static_cast<std::uint32_t>(bits[r][i] >> 32) & 0x7FFFFFFFu);
        any = any || (bits[r][i] << 1) != 0;
      }
    // Largest word and, below it, whether anything is non-zero: one maximum joins both.
    shared[warp * tile_vectors + lane] = (static_cast<std::uint64_t>(largest) << 1) | (any ? 1 : 0);
    team.team_barrier();
    std::uint64_t joined = 0;
    any = false;
#pragma unroll
    for (int w = 0; w < 8; ++w) {
      const std::uint64_t other = shared[w * tile_vectors + lane];
      joined = max(joined, other >> 1);
      any = any || (other & 1) != 0;
    }
    largest = static_cast<std::uint32_t>(joined);
    team.team_barrier();
    const int shift_base = static_cast<int>(largest >> 20) + 5;
    std::uint64_t sum = 0;
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const std::uint32_t f =
            fixed15_of_high_word(static_cast<std::uint32_t>(bits[r][i] >> 32) & 0x7FFFFFFFu, shift_base) + 1;
        sum += (bits[r][i] << 1) != 0 ? static_cast<std::uint64_t>(f) * f : 0;
      }
    shared[warp * tile_vectors + lane] = sum;
    team.team_barrier();
    const std::int64_t v = first_vector + lane;
    if (warp == 0 && v < vectors.count) {
      sum = 0;
#pragma unroll
      for (int w = 0; w < 8; ++w) sum += shared[w * tile_vectors + lane];
      out[chunk * vectors.count + v] = record(vectors, largest, any, sum, v, first);
    }
  }
};

}  // namespace CudaStages

/// \param chunks  the records of `first`, then those of `second`
inline void statistics_chunks_cuda(const Kokkos::Cuda& exec, const VectorSet<double>& first,
                                   const VectorSet<double>& second, ChunkStatistics* chunks) {
  using namespace CudaStages;
  const TileGrid grid(first.count, first.length), second_grid(second.count, second.length);
  const std::int64_t records = first.count * ((first.length + chunk_length - 1) / chunk_length);
  Kokkos::parallel_for(
      "KokkosOzaki::statistics_chunks",
      TilePolicy<4>(exec, static_cast<int>(grid.tiles + second_grid.tiles), tile_threads, 1)
          .set_scratch_size(0, Kokkos::PerTeam(int{ChunkStatisticsKernel::scratch_bytes})),
      ChunkStatisticsKernel{{first, chunks, grid.vector_tiles, quads_are_aligned(first)},
                            {second, chunks + records, second_grid.vector_tiles, quads_are_aligned(second)},
                            static_cast<int>(grid.tiles)});
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
