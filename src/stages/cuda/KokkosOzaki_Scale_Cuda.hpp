// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_SCALE_CUDA_HPP
#define KOKKOSOZAKI_SCALE_CUDA_HPP

#include "../../impl/KokkosOzaki_Labels.hpp"
#include "../host/KokkosOzaki_StageKernels.hpp"
#include "../KokkosOzaki_BoundProduct.hpp"
#include "../KokkosOzaki_Quantize.hpp"
#include "KokkosOzaki_Tile_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl {

namespace CudaStages {

/// Quantised entries of one tile per team, or, where all may be skipped, of several, so that there are few teams to do
/// nothing; four entries change hands as one word.
template <class Element, class Quantizer>
struct QuantizeKernel {
  using Bits = typename FormatOf<RealOf<Element>>::Bits;
  static constexpr int parts = parts_of_v<Element>;
  using Policy = TilePolicy<parts == 2 && sizeof(Bits) == 8 ? 2 : 4>;

  VectorSet<Element> vectors;
  const std::int32_t* exponent;
  std::int8_t* out;
  std::int64_t ld, padded;
  TileGrid grid;
  int tiles;
  bool aligned;
  Quantizer quantizer;
  const std::int32_t* skip;  // may be null

  static constexpr int row_words = quads_per_row + 1;  // odd: neither direction conflicts
  static constexpr int scratch_bytes = tile_rows * row_words * 4 + 16;

  __device__ static Bits magnitude(Bits bits) { return bits & static_cast<Bits>(~FormatOf<Bits>::sign); }

  static constexpr int most_teams_to_skip = 2048;

  int teams() const {
    return skip != nullptr && grid.tiles() > most_teams_to_skip ? most_teams_to_skip : grid.tiles();
  }

  __device__ void operator()(const typename Policy::member_type& team) const {
    if (skip != nullptr && *skip != 0) return;
    auto* words =
        reinterpret_cast<std::uint32_t*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes} - 16, 16));
    for (int index = team.league_rank(); index < tiles; index += team.league_size()) {
      quantize_tile(grid.place(index), team.team_rank(), words, team);
      if (skip != nullptr) team.team_barrier();  // the words of the next tile
    }
  }

  __device__ void quantize_tile(const Tile& tile, int thread, std::uint32_t* words,
                                const typename Policy::member_type& team) const {
    const bool unit_stride = vectors.position_stride == 1;
    Bits bits[parts][quads_per_thread][4];
#pragma unroll
    for (int part = 0; part < parts; ++part)
      load_entries(component(vectors, part), aligned, unit_stride, tile, thread, bits[part]);
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r) {
      const QuadIndex at = quad_index(unit_stride, thread, r);
      const std::int64_t v = tile.vector(at.row);
      const std::int32_t e = v < vectors.count ? exponent[v] : zero_vector;
      std::uint32_t word = 0;
      if (e != zero_vector && e != flagged_vector) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          std::int8_t q;
          if constexpr (parts == 2)
            q = quantizer(magnitude(bits[0][r][i]), magnitude(bits[1][r][i]), e);
          else
            q = quantizer(magnitude(bits[0][r][i]), e);
          word |= static_cast<std::uint32_t>(q) << (8 * i);
        }
      }
      words[at.row * row_words + at.quad] = word;
    }
    team.team_barrier();
    const int row = thread >> 3, part = thread & 7;
    const std::int64_t v = tile.vector(row), l = tile.position(row) + 16 * part;
    if (v >= padded || l >= ld) return;
    const std::uint32_t* w = words + row * row_words + 4 * part;
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
  std::int64_t row_blocks, col_blocks;  // of one entry of a batch
  std::int32_t* row_maxima;
  std::int32_t* col_maxima;

  using Policy =
      Kokkos::TeamPolicy<Kokkos::Cuda, Kokkos::IndexType<std::int64_t>, Kokkos::LaunchBounds<threads, 4>>;

  __device__ void operator()(const Policy::member_type& team) const {
    const std::int64_t i0 = team.league_rank() % row_blocks * rows + 4 * team.team_rank();
    const std::int64_t col_block = team.league_rank() / row_blocks;
    const std::int64_t entry = product.entries == 1 ? 0 : col_block / col_blocks;
    const std::int64_t end = entry * product.col_pitch + product.n;
    const std::int64_t j0 = entry * product.col_pitch + (col_block - entry * col_blocks) * columns;
    const std::int64_t j1 = j0 + columns < end ? j0 + columns : end;
    std::int32_t* const entry_row_maxima = row_maxima + entry * product.row_pitch;
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
      if (i0 + i < product.m && row[i] > 0) atomicMax(entry_row_maxima + i0 + i, row[i]);
  }
};

}  // namespace CudaStages

template <class Element, class Quantizer>
void quantize_cuda(const Kokkos::Cuda& exec, const VectorSet<Element>& vectors, const std::int32_t* exponent,
                   std::int8_t* q, std::int64_t ld, std::int64_t padded, const Quantizer& quantizer,
                   const std::int32_t* skip) {
  using namespace CudaStages;
  using Kernel = QuantizeKernel<Element, Quantizer>;
  const TileGrid grid(padded, ld);
  const Kernel kernel{
      vectors,   exponent, q, ld, padded, grid, grid.tiles(), words_are_aligned(component(vectors, 0)),
      quantizer, skip};
  Kokkos::parallel_for(Labels::quantize,
                       typename Kernel::Policy(exec, kernel.teams(), tile_threads, 1)
                           .set_scratch_size(0, Kokkos::PerTeam(int{Kernel::scratch_bytes})),
                       kernel);
}

inline void bound_maxima_cuda(const Kokkos::Cuda& exec, const BoundProduct& product, std::int32_t* row_maxima,
                              std::int32_t* col_maxima) {
  using Kernel = CudaStages::BoundMaximaKernel;
  const std::int64_t row_blocks = (product.m + Kernel::rows - 1) / Kernel::rows;
  const std::int64_t col_blocks = (product.n + Kernel::columns - 1) / Kernel::columns;
  Kokkos::parallel_for(Labels::bound_maxima,
                       Kernel::Policy(exec, static_cast<int>(row_blocks * col_blocks * product.entries),
                                      int{Kernel::threads}, 1),
                       Kernel{product, row_blocks, col_blocks, row_maxima, col_maxima});
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
