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
// either direction of the unit stride. Its rows are vectors, and behind the last of them the first ones again, in the next
// chunk. Entries come in quads of 4 consecutive positions.
constexpr int tile_rows = 32;
constexpr int tile_threads = 256;
constexpr int quads_per_thread = 4;
constexpr int quads_per_row = chunk_length / 4;

/// \tparam MinBlocks  blocks that the registers must leave room for
template <int MinBlocks>
using TilePolicy = Kokkos::TeamPolicy<Kokkos::Cuda, Kokkos::IndexType<std::int64_t>,
                                      Kokkos::LaunchBounds<tile_threads, MinBlocks>>;

/// Where the rows of a tile lie: consecutive ones of a group of vectors, chunk by chunk. Four of them from a multiple
/// of four on are neighbouring vectors in one chunk.
struct Tile {
  std::int64_t first_vector, first_position;  // of the group; of the chunk of row 0
  std::uint32_t group, start;                 // vectors of the group; number of row 0 among them
  std::uint32_t inverse;                      // ceil(2^16 / group)

  __device__ std::int64_t vector(int row) const {
    return first_vector + (number(row) - chunks_on(row) * group);
  }
  __device__ std::int64_t position(int row) const {
    return first_position + static_cast<std::int64_t>(chunks_on(row)) * chunk_length;
  }
  /// Whether all chunks lie within vectors of that length.
  __device__ bool ends_before(std::int64_t length) const {
    return position(tile_rows - 1) + chunk_length <= length;
  }

 private:
  __device__ std::uint32_t number(int row) const { return start + static_cast<std::uint32_t>(row); }
  /// Exact: numbers are below 160.
  __device__ std::uint32_t chunks_on(int row) const { return number(row) * inverse >> 16; }
};

/// \brief The tiles of a set of vectors, in the order of the blocks: along the positions first, so that what
/// is at work at the same time writes long runs of memory; but groups of vectors side by side, which have
/// lines and pages in common where the vectors are the unit stride.
struct TileGrid {
  static constexpr std::uint32_t group_vectors = 4 * tile_rows;

  std::uint32_t chunks, full_groups, tiles_of_group;
  std::uint32_t last_group, last_inverse;  // of a last group that is not full; vectors, a multiple of 4

  TileGrid(std::int64_t vectors, std::int64_t positions)
      : chunks(static_cast<std::uint32_t>((positions + chunk_length - 1) / chunk_length)),
        full_groups(static_cast<std::uint32_t>(vectors / group_vectors)),
        tiles_of_group(chunks * (group_vectors / tile_rows)),
        last_group(static_cast<std::uint32_t>((vectors % group_vectors + 3) / 4 * 4)),
        last_inverse(last_group == 0 ? 0 : inverse_of(last_group)) {}

  int tiles() const {
    return static_cast<int>(std::int64_t{full_groups} * tiles_of_group +
                            (std::int64_t{last_group} * chunks + tile_rows - 1) / tile_rows);
  }

  __device__ Tile place(int tile) const {
    const auto index = static_cast<std::uint32_t>(tile);
    const std::uint32_t number = index / tiles_of_group, row = (index - number * tiles_of_group) * tile_rows;
    const std::int64_t first_vector = std::int64_t{number} * group_vectors;
    const auto rows_from = [&](std::uint32_t group, std::uint32_t inverse) {
      const std::uint32_t chunk = row / group;
      return Tile{first_vector, std::int64_t{chunk} * chunk_length, group, row - chunk * group, inverse};
    };
    return number < full_groups ? rows_from(group_vectors, inverse_of(group_vectors))
                                : rows_from(last_group, last_inverse);
  }

 private:
  __host__ __device__ static constexpr std::uint32_t inverse_of(std::uint32_t group) {
    return ((1u << 16) + group - 1) / group;
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

/// Whether entries that are side by side can be read as 16-byte words; where there are pointers, if they allow it.
/// \param unit_stride  side by side are the positions, otherwise the vectors
template <class Real>
inline bool words_are_aligned(const VectorSet<Real>& vectors, bool unit_stride = true) {
  constexpr auto word = static_cast<std::int64_t>(16 / sizeof(Real));
  const std::int64_t between = unit_stride ? vectors.position_stride : vectors.vector_stride,
                     next = unit_stride ? vectors.vector_stride : vectors.position_stride;
  return between == 1 && next % word == 0 &&
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
  // From one entry to the next without multiplications and questions.
  const QuadIndex first = quad_index(unit_stride, thread, 0);
  const std::int64_t vector = tile.vector(first.row);
  const bool inside = vectors.pitch == 0 && tile.ends_before(vectors.length);
  const Real* x = vectors.data + vector * vectors.vector_stride +
                  (tile.position(first.row) + 4 * first.quad) * vectors.position_stride;
  if (unit_stride && inside && vector + quads_per_thread <= vectors.count) {
    // The parts of complex numbers are not side by side.
    const std::int64_t step = vectors.position_stride;
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r, x += vectors.vector_stride) {
      if (aligned) {
        load_quad(x, bits[r]);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i) bits[r][i] = load_bits(x + i * step);
      }
    }
    return;
  }
  if (!unit_stride && inside) {
    const bool is_there = vector < vectors.count;
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
      for (int i = 0; i < 4; ++i, x += vectors.position_stride) bits[r][i] = is_there ? load_bits(x) : 0;
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

// A tile on its way through shared memory, 16-byte words permuted so that no access conflicts: as rows of 128 entries, or,
// where the vectors are the unit stride, as positions of 32 entries.

template <class Real>
constexpr int in_word = 16 / static_cast<int>(sizeof(Real));

/// Neither a row nor a column of quads conflicts.
template <class Real>
__device__ inline int entry_of_row(int row, int position) {
  const int word = position / in_word<Real>;
  return row * chunk_length +
         (word ^ (row & 7) ^ (in_word<Real> == 2 ? (word >> 3) & 1 : 0)) * in_word<Real> +
         position % in_word<Real>;
}

/// Neither a position nor every fourth of the positions conflicts.
template <class Real>
__device__ inline int entry_of_position(int row, int position) {
  return position * tile_rows + ((row / in_word<Real>)^((position >> 2) & 7)) * in_word<Real> +
         row % in_word<Real>;
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
  constexpr int size = sizeof(Real), in_word = CudaStages::in_word<Real>;
  const int lane = thread & 31, warp = thread >> 5;
  const int rows = unit_stride ? quads_per_thread : 1;
  for (int r = 0; r < rows; ++r) {
    const int row = unit_stride ? warp * quads_per_thread + r : lane;
    const std::int64_t v = tile.vector(row), l = tile.position(row), left = vectors.length - l;
    const bool is_there = left > 0 && vectors.holds(v);
    const Real* x = is_there ? vectors.at(v, l) : vectors.data;
    const int there = !is_there ? 0 : left < chunk_length ? static_cast<int>(left) : chunk_length;
    if (!unit_stride) {
      for (int i = warp; i < chunk_length; i += tile_threads / 32)
        start_copy<size>(shared + entry_of_position<Real>(row, i), x + i * vectors.position_stride,
                         i < there ? size : 0);
    } else if (vectors.position_stride == 1 && reinterpret_cast<std::uintptr_t>(x) % 16 == 0) {
      for (int entry = lane * in_word; entry < chunk_length; entry += 32 * in_word)
        start_copy<16>(shared + entry_of_row<Real>(row, entry), x + entry,
                       size * max(0, min(there - entry, in_word)));
    } else {
      for (int entry = lane; entry < chunk_length; entry += 32)
        start_copy<size>(shared + entry_of_row<Real>(row, entry), x + entry * vectors.position_stride,
                         entry < there ? size : 0);
    }
  }
}

/// \brief Starts to copy a tile to shared memory; zeros behind the end of the vectors, anything in rows that are
/// none.
/// \param aligned      entries that are side by side may be read as 16-byte words
/// \param unit_stride  rows of positions, otherwise positions of rows
template <class Real>
__device__ inline void start_copy_of_tile(const VectorSet<Real>& vectors, bool aligned, bool unit_stride,
                                          const Tile& tile, int thread, Real* shared) {
  constexpr int size = sizeof(Real), in_word = CudaStages::in_word<Real>;
  // From one entry to the next without multiplications and questions.
  const int lane = thread & 31, warp = thread >> 5;
  const bool inside = vectors.pitch == 0 && tile.ends_before(vectors.length);
  if (unit_stride) {
    const int row = warp * quads_per_thread, entry = lane * (aligned ? in_word : 1);
    const std::int64_t vector = tile.vector(row);
    if (!inside || vector + quads_per_thread > vectors.count)
      return start_copy_of_any_tile(vectors, unit_stride, tile, thread, shared);
    // The parts of complex numbers are not side by side.
    const std::int64_t step = 32 * vectors.position_stride;
    const Real* x = vectors.data + vector * vectors.vector_stride +
                    (tile.position(row) + entry) * vectors.position_stride;
    const int to = entry_of_row<Real>(row, entry);
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r, x += vectors.vector_stride) {
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
  } else if (!inside) {
    start_copy_of_any_tile(vectors, unit_stride, tile, thread, shared);
  } else if (aligned) {
    constexpr int words = tile_rows / in_word, at_once = tile_threads / words;  // of a position; positions
    const int row = thread % words * in_word, position = thread / words;
    const std::int64_t vector = tile.vector(row), left = vectors.count - vector;
    if (left <= 0) return;
    const int there = size * (left < in_word ? static_cast<int>(left) : in_word);
    const Real* x = vectors.data + vector + (tile.position(row) + position) * vectors.position_stride;
    const std::int64_t step = at_once * vectors.position_stride;
    const int to = entry_of_position<Real>(row, position);
#pragma unroll
    for (int i = 0; i < chunk_length; i += at_once, x += step)
      start_copy<16>(shared + (to ^ ((i / 4 & 7) * in_word)) + i * tile_rows, x, there);
  } else {
    constexpr int at_once = tile_threads / 32;
    const std::int64_t vector = tile.vector(lane), step = at_once * vectors.position_stride;
    if (vector >= vectors.count) return;
    const Real* x = vectors.data + vector * vectors.vector_stride +
                    (tile.position(lane) + warp) * vectors.position_stride;
    const int to = entry_of_position<Real>(lane, warp);
#pragma unroll
    for (int i = 0; i < chunk_length; i += at_once, x += step)
      start_copy<size>(shared + (to ^ ((i / 4 & 7) * in_word)) + i * tile_rows, x);
  }
}

__device__ inline void bits_of_word(const double* x, std::uint64_t (&bits)[2]) {
  const auto word = *reinterpret_cast<const ulonglong2*>(x);
  bits[0] = word.x, bits[1] = word.y;
}
__device__ inline void bits_of_word(const float* x, std::uint32_t (&bits)[4]) {
  const auto word = *reinterpret_cast<const uint4*>(x);
  bits[0] = word.x, bits[1] = word.y, bits[2] = word.z, bits[3] = word.w;
}

/// The bits of one quad of so many rows from `row` on as a 16-byte word has entries.
template <class Real>
__device__ inline void read_quads(const Real* shared, bool unit_stride, int row, int quad,
                                  typename FormatOf<Real>::Bits (&bits)[in_word<Real>][4]) {
  constexpr int in_word = CudaStages::in_word<Real>;
  typename FormatOf<Real>::Bits word[in_word];
  if (unit_stride) {
    const int at = entry_of_row<Real>(row, 4 * quad);
#pragma unroll
    for (int r = 0; r < in_word; ++r)
#pragma unroll
      for (int i = 0; i < 4; i += in_word) {
        bits_of_word(shared + (at ^ (r * in_word) ^ i) + r * chunk_length, word);
#pragma unroll
        for (int j = 0; j < in_word; ++j) bits[r][i + j] = word[j];
      }
  } else {
    const int at = entry_of_position<Real>(row, 4 * quad);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      bits_of_word(shared + at + i * tile_rows, word);
#pragma unroll
      for (int j = 0; j < in_word; ++j) bits[j][i] = word[j];
    }
  }
}

}  // namespace KokkosOzaki::Impl::CudaStages

#endif
#endif
