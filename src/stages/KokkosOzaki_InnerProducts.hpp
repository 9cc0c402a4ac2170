// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_INNERPRODUCTS_HPP
#define KOKKOSOZAKI_INNERPRODUCTS_HPP

#include "../impl/KokkosOzaki_Labels.hpp"
#include "KokkosOzaki_CopyEntries.hpp"
#include "KokkosOzaki_Reconstruct.hpp"

namespace KokkosOzaki::Impl {

/// `Piece` entries of a column per index.
template <class Scalar, class AElement, class BElement, std::int64_t Piece>
struct InnerProductsFunctor {
  using Real = RealOf<Scalar>;

  VectorSet<AElement> a;
  VectorSet<BElement> b;
  EpilogueOf<Scalar> epilogue;
  MatrixRef<Scalar> C;
  std::int64_t pieces;  // of one column

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t j = index / pieces, first = index % pieces * Piece;
    const std::int64_t last = first + Piece < C.rows ? first + Piece : C.rows;
    for (std::int64_t i = first; i < last; ++i) {
      Real re = 0, im = 0;
      for (std::int64_t l = 0; l < a.length; ++l) {
        const Real u = widened<Real>(a.part(i, l, 0)), v = widened<Real>(b.part(j, l, 0));
        re = std::fma(u, v, re);
        if constexpr (is_complex_v<Scalar>) {
          const Real x = widened<Real>(a.part(i, l, 1)), y = widened<Real>(b.part(j, l, 1));
          re = std::fma(-x, y, re);
          im = std::fma(u, y, im);
          im = std::fma(x, v, im);
        }
      }
      Scalar& c = C.data[i * C.row_stride + j * C.col_stride];
      if constexpr (is_complex_v<Scalar>)
        apply_epilogue(Scalar(re, im), epilogue, c);
      else
        apply_epilogue(re, epilogue, c);
    }
  }
};

/// \brief C := alpha a b + beta C by inner products from the first position to the last, one rounding a step: the same
/// bits on every machine, and any strides, conjugation and operand types, but far from the speed of a BLAS.
template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void inner_products(const ExecutionSpace& exec, const Scalar& alpha, const MatrixRef<const AElement>& a,
                    const MatrixRef<const BElement>& b, const Scalar& beta, const MatrixRef<Scalar>& C) {
  constexpr std::int64_t piece = is_host_space_v<ExecutionSpace> ? 64 : 1;
  const std::int64_t pieces = (C.rows + piece - 1) / piece;
  Kokkos::parallel_for(Labels::native, Range<ExecutionSpace>(exec, 0, pieces * C.cols),
                       InnerProductsFunctor<Scalar, AElement, BElement, piece>{
                           rows_of(a), rows_of(b.transposed()), EpilogueOf<Scalar>{alpha, beta}, C, pieces});
}

}  // namespace KokkosOzaki::Impl

#endif
