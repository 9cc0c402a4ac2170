// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_MATRIXREF_HPP
#define KOKKOSOZAKI_MATRIXREF_HPP

#include <cstdint>

#include "KokkosOzaki_ScalarTraits.hpp"

namespace KokkosOzaki::Impl {

/// \brief A matrix in memory: element (i, j) is data[i * row_stride + j * col_stride], or its conjugate.
/// Strides in elements. Or a batch of matrices of one shape: entry e begins at pointers[e], or, without
/// pointers, at data + e * entry_stride.
template <class T>
struct MatrixRef {
  T* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_stride = 1, col_stride = 1;
  bool conj = false;
  std::int64_t entries = 1, entry_stride = 0;
  T* const* pointers = nullptr;

  constexpr MatrixRef transposed() const {
    return {data, cols, rows, col_stride, row_stride, conj, entries, entry_stride, pointers};
  }
  KOKKOS_INLINE_FUNCTION T* entry(std::int64_t e) const {
    return pointers != nullptr ? pointers[e] : data + e * entry_stride;
  }
  /// Entry and column of a column of the whole batch.
  KOKKOS_INLINE_FUNCTION void place(std::int64_t column, std::int64_t& e, std::int64_t& j) const {
    e = 0, j = column;
    if (entries == 1) return;
    e = ((column | cols) >> 32) == 0 ? static_cast<std::uint32_t>(column) / static_cast<std::uint32_t>(cols)
                                     : column / cols;
    j = column - e * cols;
  }
};

/// One entry of a batch as a matrix of its own; pointers in host memory.
template <class T>
MatrixRef<T> single_entry(const MatrixRef<T>& x, std::int64_t index) {
  return {x.entry(index), x.rows, x.cols, x.row_stride, x.col_stride, x.conj};
}

/// \brief The rows of op(A), or the columns of op(B): `count` vectors of `length` positions (the inner
/// dimension).
///
/// Those of a batch (pitch != 0) follow each other with a padding: an entry takes `pitch` vectors, as its
/// residue planes do, of which those from `per_entry` on have zeros for entries and nothing in memory. All
/// that is known of single vectors (statistics, exponents, residues) is stored in this numbering.
template <class T>
struct VectorSet {
  const T* data = nullptr;
  std::int64_t count = 0, length = 0;
  std::int64_t vector_stride = 1, position_stride = 1;
  bool conj = false;  // the entries are the conjugates of what is in memory
  std::int32_t pitch = 0, per_entry = 0;
  std::int64_t entry_stride = 0;
  const T* const* pointers = nullptr;  // as in MatrixRef; entry_stride is then added to each

  KOKKOS_INLINE_FUNCTION const T* at(std::int64_t vector, std::int64_t position) const {
    if (pitch == 0) return data + vector * vector_stride + position * position_stride;
    const std::int64_t e = entry_of(vector);
    return (pointers != nullptr ? pointers[e] + entry_stride : data + e * entry_stride) +
           (vector - e * pitch) * vector_stride + position * position_stride;
  }
  /// Whether the vector is in memory.
  KOKKOS_INLINE_FUNCTION bool holds(std::int64_t vector) const {
    return vector < count && (pitch == 0 || vector - entry_of(vector) * pitch < per_entry);
  }
  /// Real or imaginary part of an entry.
  KOKKOS_INLINE_FUNCTION RealOf<T> part(std::int64_t vector, std::int64_t position, int which) const {
    const RealOf<T> x = part_of(*at(vector, position), which);
    return which == 1 && conj ? -x : x;
  }
  /// Of a batch, whose vectors number less than 2^31.
  KOKKOS_INLINE_FUNCTION std::int64_t entry_of(std::int64_t vector) const {
    return static_cast<std::uint32_t>(vector) / static_cast<std::uint32_t>(pitch);
  }
};

/// Real (0) or imaginary (1) parts of vectors as vectors of their own, as they are in memory.
template <class T>
KOKKOS_INLINE_FUNCTION VectorSet<RealOf<T>> component(const VectorSet<T>& v, int which) {
  if constexpr (is_complex_v<T>)
    return {reinterpret_cast<const RealOf<T>*>(v.data) + which,
            v.count,
            v.length,
            2 * v.vector_stride,
            2 * v.position_stride,
            false,
            v.pitch,
            v.per_entry,
            2 * v.entry_stride + (v.pointers != nullptr ? which : 0),
            reinterpret_cast<const RealOf<T>* const*>(v.pointers)};
  else
    return v;
}

/// The rows of a matrix as vectors.
template <class T>
constexpr VectorSet<T> rows_of(const MatrixRef<const T>& a) {
  return {a.data, a.rows, a.cols, a.row_stride, a.col_stride, a.conj};
}

/// The rows of a batch of matrices as vectors, `pitch` from one entry to the next.
template <class T>
constexpr VectorSet<T> rows_of(const MatrixRef<const T>& a, std::int64_t pitch) {
  return {a.data,
          a.entries * pitch,
          a.cols,
          a.row_stride,
          a.col_stride,
          a.conj,
          static_cast<std::int32_t>(pitch),
          static_cast<std::int32_t>(a.rows),
          a.entry_stride,
          a.pointers};
}

}  // namespace KokkosOzaki::Impl

#endif
