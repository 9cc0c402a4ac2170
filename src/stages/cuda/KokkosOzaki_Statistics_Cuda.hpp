// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_STATISTICS_CUDA_HPP
#define KOKKOSOZAKI_STATISTICS_CUDA_HPP

#include "../../impl/KokkosOzaki_Labels.hpp"
#include "../host/KokkosOzaki_StageKernels.hpp"
#include "KokkosOzaki_Tile_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl {

template <class Element>
KOKKOS_INLINE_FUNCTION ChunkStatistics chunk_statistics(const Element* x, std::int64_t stride, int length);
KOKKOS_INLINE_FUNCTION std::uint64_t chunk_share(const ChunkStatistics& record, std::int32_t e);
KOKKOS_INLINE_FUNCTION std::uint64_t chunk_sum_share(const ChunkStatistics& record, std::int32_t e);

namespace CudaStages {

/// \brief Chunk statistics of two sets of vectors, one tile per team: the operands are read once, in one
/// launch.
///
/// Only the high 32-bit words take part: f(x) needs no more where the chunk's largest entry is normal. A
/// chunk of subnormal numbers goes through the general form. The parts of complex numbers make one chunk.
template <class Element>
struct ChunkStatisticsKernel {
  using Format = FormatOf<RealOf<Element>>;
  using Bits = typename Format::Bits;
  static constexpr int parts = parts_of_v<Element>;
  // The exponent field in the high word.
  static constexpr int field_shift = int{Format::fraction_bits} - (sizeof(Bits) == 8 ? 32 : 0);
  static constexpr std::uint32_t field_mask = 2 * Format::bias + 1;

  struct Operand {
    VectorSet<Element> vectors;
    ChunkStatistics* out;  // [chunk][vector]
    TileGrid grid;
    bool aligned;
  };
  Operand first, second;
  int first_tiles;

  static constexpr int scratch_bytes = 8 * tile_rows * 16 + 8;  // two sums and a key of every lane
  using Policy = TilePolicy<parts == 2 && sizeof(Bits) == 8 ? 2 : 4>;

  /// What the statistics keep of an entry: the high word of its magnitude and, in the place of the sign,
  /// whether it differs from zero. The maximum of such words joins both.
  __device__ static std::uint32_t key_of(std::uint64_t bits) {
    const std::uint32_t high = static_cast<std::uint32_t>(bits >> 32) & 0x7FFFFFFFu;
    return high | ((high | static_cast<std::uint32_t>(bits)) != 0 ? 0x80000000u : 0u);
  }
  __device__ static std::uint32_t key_of(std::uint32_t bits) {
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    return magnitude != 0 ? magnitude | 0x80000000u : 0u;
  }
  __device__ static std::uint32_t field_of(std::uint32_t key) { return (key >> field_shift) & field_mask; }

  /// f(x) + 1 of a non-zero entry; 0 of a zero.
  __device__ static std::uint32_t fixed_of(std::uint32_t key, int shift_base) {
    constexpr std::uint32_t implicit = std::uint32_t{1} << field_shift;
    const std::uint32_t field = field_of(key);
    const std::uint32_t h = (key & (implicit - 1)) | (field != 0 ? implicit : 0u);
    const int shift = shift_base - static_cast<int>(field != 0 ? field : 1);
    return key != 0 ? (h >> (shift < 31 ? shift : 31)) + 1 : 0u;
  }

  __device__ static void add_entry(std::uint32_t f, std::uint64_t& square_sum, std::uint32_t& sum) {
    square_sum += static_cast<std::uint64_t>(f) * f;
    sum += f;
  }

  /// A chunk whose largest entry is subnormal. Out of line: the common case stays short.
  __device__ __noinline__ static ChunkStatistics subnormal_chunk(const Element* x, std::int64_t stride,
                                                                 int length) {
    return chunk_statistics(x, stride, length);
  }

  __device__ static ChunkStatistics record(const VectorSet<Element>& vectors, std::uint32_t key,
                                           std::uint64_t square_sum, std::uint32_t sum, std::int64_t v,
                                           std::int64_t first) {
    if (key == 0) return {0, zero_vector};
    const std::uint32_t field = field_of(key);
    if (field == field_mask) return {0, flagged_vector};
    if (field == 0) {
      const std::int64_t left = vectors.length - first;
      return subnormal_chunk(vectors.at(v, first), vectors.position_stride,
                             static_cast<int>(left < chunk_length ? left : chunk_length));
    }
    return {square_sum, static_cast<int>(field) - int{Format::bias}, sum};
  }

  __device__ void operator()(const typename Policy::member_type& team) const {
    const int thread = team.team_rank(), lane = thread & 31, warp = thread >> 5;
    const bool of_first = team.league_rank() < first_tiles;
    const VectorSet<Element> vectors = of_first ? this->first.vectors : second.vectors;
    ChunkStatistics* out = of_first ? this->first.out : second.out;
    const TileGrid grid = of_first ? this->first.grid : second.grid;
    const Tile tile = grid.place(team.league_rank() - (of_first ? 0 : first_tiles));
    const bool unit_stride = vectors.position_stride == 1;

    std::uint32_t key[quads_per_thread][4 * parts];
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      Bits bits[quads_per_thread][4];
      load_entries(component(vectors, part), of_first ? this->first.aligned : second.aligned, unit_stride,
                   tile, thread, bits);
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) key[r][4 * part + i] = key_of(bits[r][i]);
    }

    // By row, then, where a lane is a row, by warp.
    auto* square_sums =
        reinterpret_cast<std::uint64_t*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes}, 8));
    auto* keys = reinterpret_cast<std::uint32_t*>(square_sums + 8 * tile_rows);
    auto* sums = keys + 8 * tile_rows;
    std::uint32_t largest = 0;
    if (unit_stride) {
      // A row is one warp: four rows in turn.
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r) {
        std::uint32_t of_lane = max(max(key[r][0], key[r][1]), max(key[r][2], key[r][3]));
#pragma unroll
        for (int i = 4; i < 4 * parts; ++i) of_lane = max(of_lane, key[r][i]);
        largest = __reduce_max_sync(0xFFFFFFFFu, of_lane);
        const int shift_base = static_cast<int>(field_of(largest)) + field_shift - 15;
        std::uint64_t square_sum = 0;
        std::uint32_t sum = 0;
#pragma unroll
        for (int i = 0; i < 4 * parts; ++i) add_entry(fixed_of(key[r][i], shift_base), square_sum, sum);
        sum = __reduce_add_sync(0xFFFFFFFFu, sum);
        // at most 2^35 a lane: two parts that cannot overflow 32 bits over the warp
        const std::uint32_t low =
            __reduce_add_sync(0xFFFFFFFFu, static_cast<std::uint32_t>(square_sum) & 0xFFFFFu);
        const std::uint32_t rest =
            __reduce_add_sync(0xFFFFFFFFu, static_cast<std::uint32_t>(square_sum >> 20));
        if (lane == 0) {
          const int row = warp * quads_per_thread + r;
          square_sums[row] = (static_cast<std::uint64_t>(rest) << 20) + low;
          keys[row] = largest;
          sums[row] = sum;
        }
      }
    } else {
      // A lane is a row, a warp 16 of its positions: the warps meet in shared memory.
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
        for (int i = 0; i < 4 * parts; ++i) largest = max(largest, key[r][i]);
      keys[warp * tile_rows + lane] = largest;
      team.team_barrier();
#pragma unroll
      for (int w = 0; w < 8; ++w) largest = max(largest, keys[w * tile_rows + lane]);
      const int shift_base = static_cast<int>(field_of(largest)) + field_shift - 15;
      std::uint64_t square_sum = 0;
      std::uint32_t sum = 0;
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
        for (int i = 0; i < 4 * parts; ++i) add_entry(fixed_of(key[r][i], shift_base), square_sum, sum);
      square_sums[warp * tile_rows + lane] = square_sum;
      sums[warp * tile_rows + lane] = sum;
    }
    team.team_barrier();
    const std::int64_t v = tile.vector(lane), first = tile.position(lane);
    if (warp != 0 || v >= vectors.count || first >= vectors.length) return;
    std::uint64_t square_sum = square_sums[lane];
    std::uint32_t sum = sums[lane];
    if (unit_stride) {
      largest = keys[lane];
    } else {
#pragma unroll
      for (int w = 1; w < 8; ++w) {
        square_sum += square_sums[w * tile_rows + lane];
        sum += sums[w * tile_rows + lane];
      }
    }
    out[first / chunk_length * vectors.count + v] = record(vectors, largest, square_sum, sum, v, first);
  }
};

/// \brief As JoinChunksFunctor, a few vectors a team and many threads a vector, for few and long vectors as well.
/// The records of a chunk lie side by side.
/// \tparam TeamVectors  8; 2 where there are too few vectors for teams on all processors
template <int TeamVectors>
struct JoinChunksKernel {
  static constexpr int team_vectors = TeamVectors, team_threads = 512, warps = team_threads / 32;
  static constexpr int scratch_bytes = warps * team_vectors * 20 + 8;
  using Policy = Kokkos::TeamPolicy<Kokkos::Cuda, Kokkos::IndexType<std::int64_t>,
                                    Kokkos::LaunchBounds<team_threads, 2>>;

  const ChunkStatistics* in;  // [chunk][vector], twice
  std::int64_t first_count, second_count, chunks;
  std::int32_t* exponent;
  std::uint64_t* square_sum;
  std::uint64_t* sum;  // may be null
  std::int32_t* any_flagged;

  __device__ void operator()(const typename Policy::member_type& team) const {
    const int thread = team.team_rank(), warp = thread / 32, in_team = thread % team_vectors;
    const std::int64_t v = static_cast<std::int64_t>(team.league_rank()) * team_vectors + in_team;
    const bool inside = v < first_count + second_count, of_first = v < first_count;
    const ChunkStatistics* record = of_first ? in + v : in + first_count * chunks + (v - first_count);
    const std::int64_t stride = of_first ? first_count : second_count;
    const std::int64_t begin = inside ? thread / team_vectors : chunks;
    constexpr int step = team_threads / team_vectors;
    auto* square_sums =
        reinterpret_cast<std::uint64_t*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes}, 8));
    auto* sums = square_sums + warps * team_vectors;
    auto* maxima = reinterpret_cast<std::int32_t*>(sums + warps * team_vectors);

    std::int32_t e = zero_vector;
    // Few teams: what counts is how many loads of each thread are under way.
#pragma unroll 8
    for (std::int64_t c = begin; c < chunks; c += step) e = max(e, record[c * stride].exponent);
#pragma unroll
    for (int distance = team_vectors; distance < 32; distance *= 2)
      e = max(e, __shfl_xor_sync(0xFFFFFFFFu, e, distance));
    maxima[warp * team_vectors + in_team] = e;
    team.team_barrier();
#pragma unroll
    for (int w = 0; w < warps; ++w) e = max(e, maxima[w * team_vectors + in_team]);

    const bool has_sum = e != zero_vector && e != flagged_vector;
    std::uint64_t of_squares = 0, of_entries = 0;
    if (has_sum) {
#pragma unroll 8
      for (std::int64_t c = begin; c < chunks; c += step) {
        const ChunkStatistics of_chunk = record[c * stride];
        of_squares += chunk_share(of_chunk, e);
        of_entries += chunk_sum_share(of_chunk, e);
      }
    }
#pragma unroll
    for (int distance = team_vectors; distance < 32; distance *= 2) {
      of_squares += __shfl_xor_sync(0xFFFFFFFFu, of_squares, distance);
      of_entries += __shfl_xor_sync(0xFFFFFFFFu, of_entries, distance);
    }
    square_sums[warp * team_vectors + in_team] = of_squares;
    sums[warp * team_vectors + in_team] = of_entries;
    team.team_barrier();
    if (thread >= team_vectors || !inside) return;
    of_squares = 0, of_entries = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) {
      of_squares += square_sums[w * team_vectors + in_team];
      of_entries += sums[w * team_vectors + in_team];
    }
    exponent[v] = e;
    square_sum[v] = of_squares;
    if (sum != nullptr) sum[v] = of_entries;
    if (e == flagged_vector) atomicOr(any_flagged, 1);
  }
};

}  // namespace CudaStages

/// \param chunks  the records of `first`, then those of `second`
template <class Element>
void statistics_chunks_cuda(const Kokkos::Cuda& exec, const VectorSet<Element>& first,
                            const VectorSet<Element>& second, ChunkStatistics* chunks) {
  using namespace CudaStages;
  using Kernel = ChunkStatisticsKernel<Element>;
  const TileGrid grid(first.count, first.length), second_grid(second.count, second.length);
  const std::int64_t records = first.count * ((first.length + chunk_length - 1) / chunk_length);
  Kokkos::parallel_for(
      Labels::statistics_chunks,
      typename Kernel::Policy(exec, grid.tiles() + second_grid.tiles(), tile_threads, 1)
          .set_scratch_size(0, Kokkos::PerTeam(int{Kernel::scratch_bytes})),
      Kernel{{first, chunks, grid, words_are_aligned(component(first, 0))},
             {second, chunks + records, second_grid, words_are_aligned(component(second, 0))},
             grid.tiles()});
}

/// \param any_flagged  set where a vector has an Inf or NaN
inline void statistics_join_cuda(const Kokkos::Cuda& exec, const ChunkStatistics* in,
                                 std::int64_t first_count, std::int64_t second_count, std::int64_t chunks,
                                 std::int32_t* exponent, std::uint64_t* square_sum, std::uint64_t* sum,
                                 std::int32_t* any_flagged) {
  const std::int64_t vectors = first_count + second_count;
  const auto launch = [&](auto team_vectors) {
    using Kernel = CudaStages::JoinChunksKernel<decltype(team_vectors)::value>;
    const std::int64_t teams = (vectors + Kernel::team_vectors - 1) / Kernel::team_vectors;
    Kokkos::parallel_for(
        Labels::statistics_join,
        typename Kernel::Policy(exec, static_cast<int>(teams), int{Kernel::team_threads}, 1)
            .set_scratch_size(0, Kokkos::PerTeam(int{Kernel::scratch_bytes})),
        Kernel{in, first_count, second_count, chunks, exponent, square_sum, sum, any_flagged});
  };
  constexpr std::int64_t few = 1024;
  if (vectors < few && chunks > vectors)
    launch(std::integral_constant<int, 2>{});
  else
    launch(std::integral_constant<int, 8>{});
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
