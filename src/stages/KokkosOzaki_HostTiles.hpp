// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_HOSTTILES_HPP
#define KOKKOSOZAKI_HOSTTILES_HPP

#include "../impl/KokkosOzaki_KokkosCompat.hpp"
#include "../impl/KokkosOzaki_MatrixRef.hpp"
#include "../impl/KokkosOzaki_Moduli.hpp"
#include "host/KokkosOzaki_StageKernels.hpp"

namespace KokkosOzaki::Impl {

/// \brief Hands pieces of at most 128 positions of every vector, contiguous in memory, to a leaf on a host
/// space.
///
/// Where the positions are not contiguous, or a piece is short, a tile of vectors goes through a buffer on
/// the stack. The pointer given to the leaf has 128 readable entries, zeros behind the end of the vector.
template <class Leaf>
struct VectorTileFunctor {
  // 32 vectors of one tile are 256 contiguous bytes of a column-major operand; the tile (32 KiB) stays in L1.
  static constexpr int tile_vectors = 32;

  const StageKernels* kernels;
  VectorSet<double> vectors;
  Leaf leaf;
  std::int64_t vector_tiles, pieces;

  void operator()(std::int64_t item) const {
    // Neighbouring items share cache lines and pages: along the unit stride.
    const bool along_vector = vectors.position_stride == 1;
    const std::int64_t v0 = (along_vector ? item / pieces : item % vector_tiles) * tile_vectors;
    const std::int64_t first = (along_vector ? item % pieces : item / vector_tiles) * chunk_length;
    const int count = static_cast<int>(vectors.count - v0 < tile_vectors ? vectors.count - v0 : tile_vectors);
    const int length =
        static_cast<int>(vectors.length - first < chunk_length ? vectors.length - first : chunk_length);
    const double* x = vectors.data + v0 * vectors.vector_stride + first * vectors.position_stride;
    if (vectors.position_stride == 1 && length == chunk_length) {
      for (int v = 0; v < count; ++v) leaf(v0 + v, first, length, x + v * vectors.vector_stride);
      return;
    }
    alignas(64) double tile[tile_vectors * chunk_length];
    if (length < chunk_length)
      for (int v = 0; v < count; ++v)
        for (int l = length; l < chunk_length; ++l) tile[v * chunk_length + l] = 0.0;
    kernels->load_tile(x, vectors.vector_stride, vectors.position_stride, count, length, tile);
    for (int v = 0; v < count; ++v) leaf(v0 + v, first, length, tile + v * chunk_length);
  }
};

/// leaf(vector, first position, length, pointer) for all pieces of all vectors.
template <class ExecutionSpace, class Leaf>
void for_each_tile(const ExecutionSpace& exec, const char* label, const StageKernels* kernels,
                   const VectorSet<double>& vectors, const Leaf& leaf) {
  if constexpr (is_host_space_v<ExecutionSpace>) {
    using Functor = VectorTileFunctor<Leaf>;
    const std::int64_t vector_tiles = (vectors.count + Functor::tile_vectors - 1) / Functor::tile_vectors;
    const std::int64_t pieces = (vectors.length + chunk_length - 1) / chunk_length;
    Kokkos::parallel_for(label, Range<ExecutionSpace>(exec, 0, vector_tiles * pieces),
                         Functor{kernels, vectors, leaf, vector_tiles, pieces});
  } else {
    static_cast<void>(exec), static_cast<void>(label), static_cast<void>(kernels), static_cast<void>(vectors),
        static_cast<void>(leaf);
  }
}

}  // namespace KokkosOzaki::Impl

#endif
