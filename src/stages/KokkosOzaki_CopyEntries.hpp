// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_COPYENTRIES_HPP
#define KOKKOSOZAKI_COPYENTRIES_HPP

#include "../impl/KokkosOzaki_FloatBits.hpp"
#include "../impl/KokkosOzaki_KokkosCompat.hpp"
#include "../impl/KokkosOzaki_Labels.hpp"
#include "../impl/KokkosOzaki_MatrixRef.hpp"

namespace KokkosOzaki::Impl {

/// The number as a `Real`. A subnormal float is a normal double, also where the caller has subnormal operands taken for
/// zeros.
template <class Real, class From>
KOKKOS_INLINE_FUNCTION Real widened(From x) {
  if constexpr (sizeof(From) < sizeof(Real)) {
    using Format = FormatOf<From>;
    const auto bits = bits_of(x);
    if ((bits & Format::infinity) == 0) {
      const Real magnitude = static_cast<Real>(bits & Format::fraction) * Real(0x1p-149);
      return (bits & Format::sign) != 0 ? -magnitude : magnitude;
    }
  }
  return static_cast<Real>(x);
}

/// `Piece` entries along the smaller stride per index.
template <class Scalar, class Element, std::int64_t Piece>
struct CopyEntriesFunctor {
  MatrixRef<const Element> from;
  MatrixRef<Scalar> to;
  std::int64_t pieces;  // of one column

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t j = index / pieces, first = index % pieces * Piece;
    const std::int64_t last = first + Piece < from.rows ? first + Piece : from.rows;
    for (std::int64_t i = first; i < last; ++i) {
      const Element& x = from.data[i * from.row_stride + j * from.col_stride];
      Scalar& y = to.data[i * to.row_stride + j * to.col_stride];
      if constexpr (is_complex_v<Scalar>)
        y = Scalar(widened<RealOf<Scalar>>(x.real()), widened<RealOf<Scalar>>(x.imag()));
      else
        y = widened<Scalar>(x);
    }
  }
};

/// \brief to := from, entry by entry; both have the smaller stride from row to row, or both from column to column.
template <class ExecutionSpace, class Scalar, class Element>
void copy_entries(const ExecutionSpace& exec, const MatrixRef<const Element>& from,
                  const MatrixRef<Scalar>& to) {
  ScopedRegion region(Labels::copy_entries);
  if (to.row_stride > to.col_stride) return copy_entries(exec, from.transposed(), to.transposed());
  constexpr std::int64_t piece =
      is_host_space_v<ExecutionSpace> ? 64 : 1;  // GPU: neighbours for neighbouring threads
  const std::int64_t pieces = (from.rows + piece - 1) / piece;
  Kokkos::parallel_for(Labels::copy_entries, Range<ExecutionSpace>(exec, 0, pieces * from.cols),
                       CopyEntriesFunctor<Scalar, Element, piece>{from, to, pieces});
}

}  // namespace KokkosOzaki::Impl

#endif
