// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_MATRIXREF_HPP
#define KOKKOSOZAKI_MATRIXREF_HPP

#include <cstdint>

#include "KokkosOzaki_ScalarTraits.hpp"

namespace KokkosOzaki::Impl {

/// \brief A matrix in memory: element (i, j) is data[i * row_stride + j * col_stride], or its conjugate.
/// Strides in elements.
template <class T>
struct MatrixRef {
  T* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_stride = 1, col_stride = 1;
  bool conj = false;

  constexpr MatrixRef transposed() const { return {data, cols, rows, col_stride, row_stride, conj}; }
};

/// \brief The rows of op(A), or the columns of op(B): `count` vectors of `length` positions (the inner
/// dimension).
template <class T>
struct VectorSet {
  const T* data = nullptr;
  std::int64_t count = 0, length = 0;
  std::int64_t vector_stride = 1, position_stride = 1;
  bool conj = false;  // the entries are the conjugates of what is in memory

  KOKKOS_INLINE_FUNCTION const T* at(std::int64_t vector, std::int64_t position) const {
    return data + vector * vector_stride + position * position_stride;
  }
  /// Real or imaginary part of an entry.
  KOKKOS_INLINE_FUNCTION RealOf<T> part(std::int64_t vector, std::int64_t position, int which) const {
    const RealOf<T> x = part_of(*at(vector, position), which);
    return which == 1 && conj ? -x : x;
  }
};

/// Real (0) or imaginary (1) parts of vectors as vectors of their own, as they are in memory.
template <class T>
KOKKOS_INLINE_FUNCTION VectorSet<RealOf<T>> component(const VectorSet<T>& v, int which) {
  if constexpr (is_complex_v<T>)
    return {reinterpret_cast<const RealOf<T>*>(v.data) + which, v.count, v.length, 2 * v.vector_stride,
            2 * v.position_stride};
  else
    return v;
}

/// The rows of a matrix as vectors.
template <class T>
constexpr VectorSet<T> rows_of(const MatrixRef<const T>& a) {
  return {a.data, a.rows, a.cols, a.row_stride, a.col_stride, a.conj};
}

}  // namespace KokkosOzaki::Impl

#endif
