// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_TILE_CUDA_HPP
#define KOKKOSOZAKI_TILE_CUDA_HPP

#include "../../impl/KokkosOzaki_KokkosCompat.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

#include <cstdint>

#include "../../impl/KokkosOzaki_FloatBits.hpp"
#include "../../impl/KokkosOzaki_MatrixRef.hpp"
#include "../../impl/KokkosOzaki_Moduli.hpp"

namespace KokkosOzaki::Impl::CudaStages {

// A tile is 32 vectors x 128 positions (one chunk), read once by a block of 256 threads, 16 entries a thread,
// coalesced in either direction of the unit stride. Entries come in quads of 4 consecutive positions.
constexpr int tile_vectors = 32;
constexpr int tile_threads = 256;
constexpr int quads_per_thread = 4;
constexpr int quads_per_vector = chunk_length / 4;

/// \tparam MinBlocks  blocks that the registers must leave room for
template <int MinBlocks>
using TilePolicy = Kokkos::TeamPolicy<Kokkos::Cuda, Kokkos::IndexType<std::int64_t>,
                                      Kokkos::LaunchBounds<tile_threads, MinBlocks>>;

/// \brief The tiles of a set of vectors, in the order of the blocks: along the positions first, so that what is
/// at work at the same time writes long runs of memory.
struct TileGrid {
  std::uint32_t vector_tiles, chunks;

  TileGrid(std::int64_t vectors, std::int64_t positions)
      : vector_tiles(static_cast<std::uint32_t>((vectors + tile_vectors - 1) / tile_vectors)),
        chunks(static_cast<std::uint32_t>((positions + chunk_length - 1) / chunk_length)) {}

  int tiles() const { return static_cast<int>(std::int64_t{vector_tiles} * chunks); }

  __device__ void place(int tile, std::int64_t& first_vector, std::int64_t& chunk) const {
    const auto index = static_cast<std::uint32_t>(tile);
    first_vector = static_cast<std::int64_t>(index / chunks) * tile_vectors;
    chunk = index % chunks;
  }
};

/// Which vector and quad of the tile the thread's entry group `r` is.
struct QuadIndex {
  int vector, quad;
};

__device__ inline QuadIndex quad_index(bool unit_stride, int thread, int r) {
  const int lane = thread & 31, warp = thread >> 5;
  // Along a vector the lanes of a quarter-warp take quads 4 apart: together with the swizzle of the residue
  // kernel neither the writes nor the reads of shared memory conflict, and a warp still reads one contiguous
  // kilobyte.
  return unit_stride ? QuadIndex{warp * quads_per_thread + r, (lane & 7) * 4 + (lane >> 3)}
                     : QuadIndex{lane, warp * quads_per_thread + r};
}

/// Whether quads can be read as 16-byte words; where there are pointers, if they allow it.
template <class Real>
inline bool quads_are_aligned(const VectorSet<Real>& vectors) {
  constexpr auto word = static_cast<std::int64_t>(16 / sizeof(Real));
  return vectors.position_stride == 1 && vectors.vector_stride % word == 0 &&
         (vectors.pointers != nullptr ||
          (reinterpret_cast<std::uintptr_t>(vectors.data) % 16 == 0 && vectors.entry_stride % word == 0));
}

__device__ inline void load_quad(const double* x, std::uint64_t (&bits)[4]) {
  const auto* pair = reinterpret_cast<const ulonglong2*>(x);
  const ulonglong2 low = __ldg(pair), high = __ldg(pair + 1);
  bits[0] = low.x, bits[1] = low.y, bits[2] = high.x, bits[3] = high.y;
}
__device__ inline void load_quad(const float* x, std::uint32_t (&bits)[4]) {
  const uint4 quad = __ldg(reinterpret_cast<const uint4*>(x));
  bits[0] = quad.x, bits[1] = quad.y, bits[2] = quad.z, bits[3] = quad.w;
}
__device__ inline std::uint64_t load_bits(const double* x) {
  return static_cast<std::uint64_t>(__double_as_longlong(__ldg(x)));
}
__device__ inline std::uint32_t load_bits(const float* x) {
  return __float_as_uint(__ldg(x));
}

/// The bits of the thread's 16 entries; zeros outside the vectors.
/// \param unit_stride  neighbouring lanes take neighbouring positions of one vector, otherwise of many vectors
template <class Real>
__device__ inline void load_entries(const VectorSet<Real>& vectors, bool aligned, bool unit_stride,
                                    std::int64_t first_vector, std::int64_t first_position, int thread,
                                    typename FormatOf<Real>::Bits (&bits)[quads_per_thread][4]) {
#pragma unroll
  for (int r = 0; r < quads_per_thread; ++r) {
    const QuadIndex at = quad_index(unit_stride, thread, r);
    const std::int64_t v = first_vector + at.vector, l = first_position + 4 * at.quad;
    const bool inside = vectors.holds(v);
    const Real* x = inside ? vectors.at(v, l) : nullptr;
    if (aligned && inside && l + 4 <= vectors.length &&
        (vectors.pointers == nullptr || reinterpret_cast<std::uintptr_t>(x) % 16 == 0)) {
      load_quad(x, bits[r]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i)
        bits[r][i] = inside && l + i < vectors.length ? load_bits(x + i * vectors.position_stride) : 0;
    }
  }
}
template <class Real>
__device__ inline void load_entries(const VectorSet<Real>& vectors, bool aligned, std::int64_t first_vector,
                                    std::int64_t first_position, int thread,
                                    typename FormatOf<Real>::Bits (&bits)[quads_per_thread][4]) {
  load_entries(vectors, aligned, vectors.position_stride == 1, first_vector, first_position, thread, bits);
}

}  // namespace KokkosOzaki::Impl::CudaStages

#endif
#endif
