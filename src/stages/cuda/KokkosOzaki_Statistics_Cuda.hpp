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
    TileGrid grid;
    bool aligned;
  };
  Operand first, second;
  int first_tiles;

  static constexpr int scratch_bytes = 8 * tile_vectors * 12 + 8;  // a sum and a key of every lane
  using Policy = TilePolicy<4>;

  /// What the statistics keep of an entry: the high word of its magnitude and, in the place of the sign,
  /// whether it differs from zero. The maximum of such words joins both.
  __device__ static std::uint32_t key_of(std::uint64_t bits) {
    const std::uint32_t high = static_cast<std::uint32_t>(bits >> 32) & 0x7FFFFFFFu;
    return high | ((high | static_cast<std::uint32_t>(bits)) != 0 ? 0x80000000u : 0u);
  }

  /// (f(x) + 1)^2 of a non-zero entry; 0 of a zero.
  __device__ static std::uint64_t square_of(std::uint32_t key, int shift_base) {
    const std::uint32_t field = (key >> 20) & 0x7FFu;
    const std::uint32_t h = (key & 0xFFFFFu) | (field != 0 ? 1u << 20 : 0u);
    const int shift = shift_base - static_cast<int>(field != 0 ? field : 1);
    const std::uint32_t f = (h >> (shift < 31 ? shift : 31)) + 1;
    return key != 0 ? static_cast<std::uint64_t>(f) * f : 0;
  }

  /// A chunk whose largest entry is subnormal. Out of line: the common case stays short.
  __device__ __noinline__ static ChunkStatistics subnormal_chunk(const double* x, std::int64_t stride,
                                                                 int length) {
    return chunk_statistics(x, stride, length);
  }

  __device__ static ChunkStatistics record(const VectorSet<double>& vectors, std::uint32_t key,
                                           std::uint64_t sum, std::int64_t v, std::int64_t first) {
    if (key == 0) return {0, zero_vector};
    const std::uint32_t largest = key & 0x7FFFFFFFu;
    if (largest >= 0x7FF00000u) return {0, flagged_vector};
    if (largest < 0x00100000u) {
      const std::int64_t left = vectors.length - first;
      return subnormal_chunk(vectors.data + v * vectors.vector_stride + first * vectors.position_stride,
                             vectors.position_stride,
                             static_cast<int>(left < chunk_length ? left : chunk_length));
    }
    return {sum, static_cast<int>(largest >> 20) - 1023};
  }

  __device__ void operator()(const Policy::member_type& team) const {
    const int thread = team.team_rank(), lane = thread & 31, warp = thread >> 5;
    const bool of_first = team.league_rank() < first_tiles;
    const VectorSet<double> vectors = of_first ? this->first.vectors : second.vectors;
    ChunkStatistics* out = of_first ? this->first.out : second.out;
    const TileGrid grid = of_first ? this->first.grid : second.grid;
    std::int64_t first_vector, chunk;
    grid.place(team.league_rank() - (of_first ? 0 : first_tiles), first_vector, chunk);
    const std::int64_t first = chunk * chunk_length;
    std::uint64_t bits[quads_per_thread][4];
    load_entries(vectors, of_first ? this->first.aligned : second.aligned, first_vector, first, thread, bits);

    std::uint32_t key[quads_per_thread][4];
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i) key[r][i] = key_of(bits[r][i]);

    if (vectors.position_stride == 1) {
      // A vector's chunk is one warp: four vectors in turn.
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r) {
        const std::uint32_t largest =
            __reduce_max_sync(0xFFFFFFFFu, max(max(key[r][0], key[r][1]), max(key[r][2], key[r][3])));
        const int shift_base = static_cast<int>((largest >> 20) & 0x7FFu) + 5;
        std::uint64_t sum = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) sum += square_of(key[r][i], shift_base);
        // sum <= 2^34 a lane: two parts that cannot overflow 32 bits over the warp
        const std::uint32_t low = __reduce_add_sync(0xFFFFFFFFu, static_cast<std::uint32_t>(sum) & 0xFFFFFu);
        const std::uint32_t rest = __reduce_add_sync(0xFFFFFFFFu, static_cast<std::uint32_t>(sum >> 20));
        const std::int64_t v = first_vector + warp * quads_per_thread + r;
        if (lane == 0 && v < vectors.count)
          out[chunk * vectors.count + v] =
              record(vectors, largest, (static_cast<std::uint64_t>(rest) << 20) + low, v, first);
      }
      return;
    }

    // A lane is a vector, a warp 16 of its positions: the warps meet in shared memory.
    auto* sums = reinterpret_cast<std::uint64_t*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes}, 8));
    auto* keys = reinterpret_cast<std::uint32_t*>(sums + 8 * tile_vectors);
    std::uint32_t largest = 0;
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i) largest = max(largest, key[r][i]);
    keys[warp * tile_vectors + lane] = largest;
    team.team_barrier();
#pragma unroll
    for (int w = 0; w < 8; ++w) largest = max(largest, keys[w * tile_vectors + lane]);
    const int shift_base = static_cast<int>((largest >> 20) & 0x7FFu) + 5;
    std::uint64_t sum = 0;
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i) sum += square_of(key[r][i], shift_base);
    sums[warp * tile_vectors + lane] = sum;
    team.team_barrier();
    const std::int64_t v = first_vector + lane;
    if (warp == 0 && v < vectors.count) {
      sum = 0;
#pragma unroll
      for (int w = 0; w < 8; ++w) sum += sums[w * tile_vectors + lane];
      out[chunk * vectors.count + v] = record(vectors, largest, sum, v, first);
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
      ChunkStatisticsKernel::Policy(exec, grid.tiles() + second_grid.tiles(), tile_threads, 1)
          .set_scratch_size(0, Kokkos::PerTeam(int{ChunkStatisticsKernel::scratch_bytes})),
      ChunkStatisticsKernel{{first, chunks, grid, quads_are_aligned(first)},
                            {second, chunks + records, second_grid, quads_are_aligned(second)},
                            grid.tiles()});
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
