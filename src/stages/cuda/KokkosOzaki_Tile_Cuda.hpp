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

// A tile has 32 rows of 128 positions (one chunk), read once by a block of 256 threads, 16 entries a thread, coalesced in
// either direction of the unit stride. Its rows are vectors, or, where there are few of those, a few consecutive chunks of
// each. Entries come in quads of 4 consecutive positions.
constexpr int tile_rows = 32;
constexpr int tile_threads = 256;
constexpr int quads_per_thread = 4;
constexpr int quads_per_row = chunk_length / 4;

/// \tparam MinBlocks  blocks that the registers must leave room for
template <int MinBlocks>
using TilePolicy = Kokkos::TeamPolicy<Kokkos::Cuda, Kokkos::IndexType<std::int64_t>,
                                      Kokkos::LaunchBounds<tile_threads, MinBlocks>>;

/// Where the rows of a tile lie: 2^log_chunks of a vector; 1, or at least as many as a thread has quads.
struct Tile {
  std::int64_t first_vector, first_position;
  int log_chunks;

  __device__ std::int64_t vector(int row) const { return first_vector + (row >> log_chunks); }
  __device__ std::int64_t position(int row) const {
    return first_position + (row & ((1 << log_chunks) - 1)) * chunk_length;
  }
  /// Whether all of it lies in so many vectors of that length.
  __device__ bool is_inside(std::int64_t vectors, std::int64_t length) const {
    return first_vector + (tile_rows >> log_chunks) <= vectors &&
           first_position + (chunk_length << log_chunks) <= length;
  }
};

/// \brief The tiles of a set of vectors, in the order of the blocks: along the positions first, so that what
/// is at work at the same time writes long runs of memory; but a few tiles of vectors side by side, which
/// have lines and pages in common where the vectors are the unit stride.
struct TileGrid {
  static constexpr std::uint32_t side_by_side = 4;

  std::uint32_t vector_tiles, chunk_tiles;
  int log_chunks;

  TileGrid(std::int64_t vectors, std::int64_t positions, int log_chunks_of_vector = 0)
      : vector_tiles(tiles_of(vectors, tile_rows >> log_chunks_of_vector)),
        chunk_tiles(tiles_of(positions, std::int64_t{chunk_length} << log_chunks_of_vector)),
        log_chunks(log_chunks_of_vector) {}

  /// The form with the fewest empty rows; of those that are about as good, that with the fewest chunks of a vector.
  /// \param unit_stride  of positions; otherwise the vectors of a tile have to be side by side
  static TileGrid fitted(std::int64_t vectors, std::int64_t positions, bool unit_stride) {
    TileGrid best(vectors, positions);
    if (!unit_stride && vectors > tile_rows / 4) return best;
    for (int log = 2; (1 << log) <= tile_rows; ++log) {
      const TileGrid other(vectors, positions, log);
      if (std::int64_t{other.tiles()} * 20 < std::int64_t{best.tiles()} * 19) best = other;
    }
    return best;
  }

  int tiles() const { return static_cast<int>(std::int64_t{vector_tiles} * chunk_tiles); }

  __device__ Tile place(int tile) const {
    const auto index = static_cast<std::uint32_t>(tile);
    const std::uint32_t first = index / (side_by_side * chunk_tiles) * side_by_side,
                        count = min(side_by_side, vector_tiles - first), rest = index - first * chunk_tiles;
    return {static_cast<std::int64_t>(first + rest % count) * (tile_rows >> log_chunks),
            static_cast<std::int64_t>(rest / count) * (chunk_length << log_chunks), log_chunks};
  }

 private:
  static std::uint32_t tiles_of(std::int64_t size, std::int64_t of_tile) {
    return static_cast<std::uint32_t>((size + of_tile - 1) / of_tile);
  }
};

/// Which row and quad of the tile the thread's entry group `r` is.
struct QuadIndex {
  int row, quad;
};

__device__ inline QuadIndex quad_index(bool unit_stride, int thread, int r) {
  const int lane = thread & 31, warp = thread >> 5;
  return unit_stride ? QuadIndex{warp * quads_per_thread + r, lane}
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

template <class Bits>
struct QuadBits {
  Bits bits[4];
};

/// Of any vectors, inside or not. Out of line: its registers would be missed where this is not needed.
template <class Real>
__device__ __noinline__ QuadBits<typename FormatOf<Real>::Bits> load_quad_anywhere(VectorSet<Real> vectors,
                                                                                   bool aligned,
                                                                                   std::int64_t vector,
                                                                                   std::int64_t position) {
  QuadBits<typename FormatOf<Real>::Bits> quad{};
  if (!vectors.holds(vector)) return quad;
  const Real* x = vectors.at(vector, position);
  if (aligned && position + 4 <= vectors.length && reinterpret_cast<std::uintptr_t>(x) % 16 == 0) {
    load_quad(x, quad.bits);
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (position + i < vectors.length) quad.bits[i] = load_bits(x + i * vectors.position_stride);
  }
  return quad;
}

/// The bits of the thread's 16 entries; zeros outside the vectors.
/// \param unit_stride  neighbouring lanes take neighbouring positions of one vector, otherwise of many
///   vectors
template <class Real>
__device__ inline void load_entries(const VectorSet<Real>& vectors, bool aligned, bool unit_stride,
                                    const Tile& tile, int thread,
                                    typename FormatOf<Real>::Bits (&bits)[quads_per_thread][4]) {
  if (vectors.pitch == 0 && tile.is_inside(vectors.count, vectors.length)) {
    // From one entry to the next without multiplications and questions.
    const QuadIndex at = quad_index(unit_stride, thread, 0);
    const Real* x = vectors.data + tile.vector(at.row) * vectors.vector_stride +
                    (tile.position(at.row) + 4 * at.quad) * vectors.position_stride;
    if (unit_stride) {
      // The parts of complex numbers are not side by side.
      const std::int64_t step = vectors.position_stride,
                         next_row = tile.log_chunks == 0 ? vectors.vector_stride : chunk_length * step;
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r, x += next_row) {
        if (aligned) {
          load_quad(x, bits[r]);
        } else {
#pragma unroll
          for (int i = 0; i < 4; ++i) bits[r][i] = load_bits(x + i * step);
        }
      }
    } else {
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i, x += vectors.position_stride) bits[r][i] = load_bits(x);
    }
    return;
  }
#pragma unroll
  for (int r = 0; r < quads_per_thread; ++r) {
    const QuadIndex at = quad_index(unit_stride, thread, r);
    const auto quad =
        load_quad_anywhere(vectors, aligned, tile.vector(at.row), tile.position(at.row) + 4 * at.quad);
#pragma unroll
    for (int i = 0; i < 4; ++i) bits[r][i] = quad.bits[i];
  }
}

// A tile on its way through shared memory: rows of 128 entries, 16-byte words permuted so that neither a row
// nor a column of quads conflicts.

template <class Real>
__device__ inline int entry_in_shared(int row, int entry) {
  constexpr int in_word = 16 / static_cast<int>(sizeof(Real));
  const int word = entry / in_word;
  return row * chunk_length + (word ^ (row & 7) ^ (in_word == 2 ? (word >> 3) & 1 : 0)) * in_word +
         entry % in_word;
}

/// Starts to copy Bytes bytes from device to shared memory, past the registers; or the first `there` of them,
/// and zeros.
template <int Bytes>
__device__ inline void start_copy(void* to, const void* from) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (Bytes == 16)  // past L1 as well
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(address), "l"(from), "n"(Bytes)
                 : "memory");
}
template <int Bytes>
__device__ inline void start_copy(void* to, const void* from, int there) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(there)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from), "n"(Bytes),
                 "r"(there)
                 : "memory");
}
/// For all copies that this thread has started.
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

/// Of any vectors, inside or not. Out of line: its registers would be missed where this is not needed.
template <class Real>
__device__ __noinline__ void start_copy_of_any_tile(VectorSet<Real> vectors, bool unit_stride, Tile tile,
                                                    int thread, Real* shared) {
  constexpr int size = sizeof(Real), in_word = 16 / size;
  const int lane = thread & 31, warp = thread >> 5;
  const int rows = unit_stride ? quads_per_thread : 1;
  for (int r = 0; r < rows; ++r) {
    const int row = unit_stride ? warp * quads_per_thread + r : lane;
    const std::int64_t v = tile.vector(row), l = tile.position(row), left = vectors.length - l;
    const bool is_there = left > 0 && vectors.holds(v);
    const Real* x = is_there ? vectors.at(v, l) : nullptr;
    const int there = !is_there ? 0 : left < chunk_length ? static_cast<int>(left) : chunk_length;
    if (!unit_stride) {
      const int first = warp * (4 * quads_per_thread), to = entry_in_shared<Real>(row, first);
      x += first * vectors.position_stride;
      for (int i = 0; i < 4 * quads_per_thread; ++i, x += vectors.position_stride)
        start_copy<size>(shared + (to ^ i), x, first + i < there ? size : 0);
    } else if (vectors.position_stride == 1 && reinterpret_cast<std::uintptr_t>(x) % 16 == 0) {
      for (int entry = lane * in_word; entry < chunk_length; entry += 32 * in_word)
        start_copy<16>(shared + entry_in_shared<Real>(row, entry), x + entry,
                       size * max(0, min(there - entry, in_word)));
    } else {
      for (int entry = lane; entry < chunk_length; entry += 32)
        start_copy<size>(shared + entry_in_shared<Real>(row, entry), x + entry * vectors.position_stride,
                         entry < there ? size : 0);
    }
  }
}

/// \brief Starts to copy a tile to shared memory; zeros outside the vectors.
/// \param aligned      quads may be read as 16-byte words
/// \param unit_stride  neighbouring lanes take neighbouring positions of one vector, otherwise of many
///   vectors
template <class Real>
__device__ inline void start_copy_of_tile(const VectorSet<Real>& vectors, bool aligned, bool unit_stride,
                                          const Tile& tile, int thread, Real* shared) {
  constexpr int size = sizeof(Real), in_word = 16 / size;
  if (vectors.pitch != 0 || !tile.is_inside(vectors.count, vectors.length))
    return start_copy_of_any_tile(vectors, unit_stride, tile, thread, shared);
  // From one entry to the next without multiplications and questions.
  const int lane = thread & 31, warp = thread >> 5;
  const int row = unit_stride ? warp * quads_per_thread : lane;
  const int entry = unit_stride ? lane * (aligned ? in_word : 1) : warp * (4 * quads_per_thread);
  const Real* x = vectors.data + tile.vector(row) * vectors.vector_stride +
                  (tile.position(row) + entry) * vectors.position_stride;
  const int to = entry_in_shared<Real>(row, entry);
  if (unit_stride) {
    // The parts of complex numbers are not side by side.
    const std::int64_t step = 32 * vectors.position_stride,
                       next_row = tile.log_chunks == 0 ? vectors.vector_stride : chunk_length / 32 * step;
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r, x += next_row) {
      const int to_row = (to ^ (r * in_word)) + r * chunk_length;
      if (aligned) {
#pragma unroll
        for (int i = 0; i < chunk_length; i += 32 * in_word) start_copy<16>(shared + to_row + i, x + i);
      } else {
        const Real* y = x;
#pragma unroll
        for (int i = 0; i < chunk_length; i += 32, y += step) start_copy<size>(shared + to_row + i, y);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < 4 * quads_per_thread; ++i, x += vectors.position_stride)
      start_copy<size>(shared + (to ^ i), x);
  }
}

/// The bits of quad `quad` of a row.
__device__ inline void read_quad(const double* shared, int row, int quad, std::uint64_t (&bits)[4]) {
  const int at = entry_in_shared<double>(row, 4 * quad);
  const auto low = *reinterpret_cast<const ulonglong2*>(shared + at),
             high = *reinterpret_cast<const ulonglong2*>(shared + (at ^ 2));
  bits[0] = low.x, bits[1] = low.y, bits[2] = high.x, bits[3] = high.y;
}
__device__ inline void read_quad(const float* shared, int row, int quad, std::uint32_t (&bits)[4]) {
  const auto word = *reinterpret_cast<const uint4*>(shared + entry_in_shared<float>(row, 4 * quad));
  bits[0] = word.x, bits[1] = word.y, bits[2] = word.z, bits[3] = word.w;
}

}  // namespace KokkosOzaki::Impl::CudaStages

#endif
#endif
