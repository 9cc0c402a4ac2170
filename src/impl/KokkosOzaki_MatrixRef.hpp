// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_MATRIXREF_HPP
#define KOKKOSOZAKI_MATRIXREF_HPP

#include <cstdint>

namespace KokkosOzaki::Impl {

/// \brief A matrix in memory: element (i, j) is data[i * row_stride + j * col_stride]. Strides in elements.
template <class T>
struct MatrixRef {
  T* data = nullptr;
  std::int64_t rows = 0, cols = 0;
  std::int64_t row_stride = 1, col_stride = 1;

  constexpr MatrixRef transposed() const { return {data, cols, rows, col_stride, row_stride}; }
};

/// \brief The rows of op(A), or the columns of op(B): `count` vectors of `length` positions (the inner
/// dimension).
template <class T>
struct VectorSet {
  const T* data = nullptr;
  std::int64_t count = 0, length = 0;
  std::int64_t vector_stride = 1, position_stride = 1;
};

/// The rows of a matrix as vectors.
template <class T>
constexpr VectorSet<T> rows_of(const MatrixRef<const T>& a) {
  return {a.data, a.rows, a.cols, a.row_stride, a.col_stride};
}

}  // namespace KokkosOzaki::Impl

#endif
