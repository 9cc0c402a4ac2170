// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_HOSTTILES_HPP
#define KOKKOSOZAKI_HOSTTILES_HPP

#include "../impl/KokkosOzaki_KokkosCompat.hpp"
#include "../impl/KokkosOzaki_MatrixRef.hpp"
#include "../impl/KokkosOzaki_Moduli.hpp"
#include "host/KokkosOzaki_StageKernels.hpp"

namespace KokkosOzaki::Impl {

/// The leaf functions for numbers of this type.
template <class Real>
const auto& leaves_of(const StageKernels* kernels) {
  if constexpr (std::is_same_v<Real, float>)
    return kernels->single;
  else
    return *kernels;
}

/// \brief Hands pieces of at most 128 positions of every vector, contiguous in memory, to a leaf on a host
/// space.
///
/// Where the positions are not contiguous, or a piece is short, or the numbers are complex, a tile of vectors
/// goes through a buffer on the stack. The pointer given to the leaf has 128 readable numbers, zeros behind
/// the end of the vector; complex: 128 real parts, then 128 imaginary parts.
template <class Element, class Leaf>
struct VectorTileFunctor {
  using Real = RealOf<Element>;
  static constexpr int parts = parts_of_v<Element>, row = parts * chunk_length;
  // The vectors of one tile are 256 contiguous bytes of a column-major operand; the tile (32 KiB) stays in
  // L1.
  static constexpr int tile_vectors = 256 / static_cast<int>(sizeof(Element));

  const StageKernels* kernels;
  VectorSet<Element> vectors;
  Leaf leaf;
  std::int64_t vector_tiles, pieces;
  std::int64_t tiles_per_entry;  // of a batch

  void operator()(std::int64_t item) const {
    // Neighbouring items share cache lines and pages: along the unit stride.
    const bool along_vector = vectors.position_stride == 1;
    const std::int64_t tile_index = along_vector ? item / pieces : item % vector_tiles;
    std::int64_t v0 = tile_index * tile_vectors, end = vectors.count;
    const std::int64_t first = (along_vector ? item % pieces : item / vector_tiles) * chunk_length;
    const int length =
        static_cast<int>(vectors.length - first < chunk_length ? vectors.length - first : chunk_length);
    if (vectors.pitch != 0) {  // a batch: tiles do not cross entries
      const std::int64_t entry = tile_index / tiles_per_entry;
      v0 = entry * vectors.pitch + (tile_index - entry * tiles_per_entry) * tile_vectors;
      end = entry * vectors.pitch + vectors.per_entry;
      if (end - v0 <= tile_vectors) leaf_of_zeros(end, (entry + 1) * vectors.pitch, first, length);
    }
    const int count = static_cast<int>(end - v0 < tile_vectors ? end - v0 : tile_vectors);
    const Element* x = vectors.at(v0, first);
    if constexpr (parts == 1) {
      if (vectors.position_stride == 1 && length == chunk_length) {
        for (int v = 0; v < count; ++v) leaf(v0 + v, first, length, x + v * vectors.vector_stride);
        return;
      }
    }
    alignas(64) Real tile[tile_vectors * row];
    if (length < chunk_length)
      for (int v = 0; v < parts * count; ++v)
        for (int l = length; l < chunk_length; ++l) tile[v * chunk_length + l] = Real{0};
    if constexpr (parts == 1)
      leaves_of<Real>(kernels).load_tile(x, vectors.vector_stride, vectors.position_stride, count, length,
                                         tile);
    else
      load_parts(v0, first, count, length, tile);
    for (int v = 0; v < count; ++v) leaf(v0 + v, first, length, tile + v * row);
  }

  /// The padding of an entry of a batch.
  void leaf_of_zeros(std::int64_t v, std::int64_t end, std::int64_t first, int length) const {
    alignas(64) Real zeros[row] = {};
    for (; v < end; ++v) leaf(v, first, length, zeros);
  }

  /// Real and imaginary parts of the tile's entries, apart.
  void load_parts(std::int64_t v0, std::int64_t first, int count, int length, Real* tile) const {
    const auto load = [&](int v, int l) {
      const Element& x = *vectors.at(v0 + v, first + l);
      tile[v * row + l] = x.real();
      tile[v * row + chunk_length + l] = vectors.conj ? -x.imag() : x.imag();
    };
    if (vectors.position_stride == 1) {
      for (int v = 0; v < count; ++v)
        for (int l = 0; l < length; ++l) load(v, l);
    } else {
      for (int l = 0; l < length; ++l)
        for (int v = 0; v < count; ++v) load(v, l);
    }
  }
};

/// leaf(vector, first position, length, pointer) for all pieces of all vectors.
template <class ExecutionSpace, class Element, class Leaf>
void for_each_tile(const ExecutionSpace& exec, const std::string& label, const StageKernels* kernels,
                   const VectorSet<Element>& vectors, const Leaf& leaf) {
  if constexpr (is_host_space_v<ExecutionSpace>) {
    using Functor = VectorTileFunctor<Element, Leaf>;
    const std::int64_t per_entry = vectors.pitch == 0 ? vectors.count : vectors.per_entry;
    const std::int64_t tiles_per_entry = (per_entry + Functor::tile_vectors - 1) / Functor::tile_vectors;
    const std::int64_t vector_tiles =
        vectors.pitch == 0 ? tiles_per_entry : vectors.count / vectors.pitch * tiles_per_entry;
    const std::int64_t pieces = (vectors.length + chunk_length - 1) / chunk_length;
    Kokkos::parallel_for(label, Range<ExecutionSpace>(exec, 0, vector_tiles * pieces),
                         Functor{kernels, vectors, leaf, vector_tiles, pieces, tiles_per_entry});
  } else {
    static_cast<void>(exec), static_cast<void>(label), static_cast<void>(kernels), static_cast<void>(vectors),
        static_cast<void>(leaf);
  }
}

}  // namespace KokkosOzaki::Impl

#endif
