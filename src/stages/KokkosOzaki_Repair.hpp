// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_REPAIR_HPP
#define KOKKOSOZAKI_REPAIR_HPP

#include "../impl/KokkosOzaki_Labels.hpp"
#include "KokkosOzaki_Reconstruct.hpp"
#include "KokkosOzaki_Statistics.hpp"

namespace KokkosOzaki::Impl {

/// Rows of one piece of a column per index; at once over where no vector is flagged.
template <class Scalar, class AElement, class BElement>
struct RepairFunctor {
  using Real = RealOf<Scalar>;
  static constexpr std::int64_t piece = 64;

  VectorSet<AElement> a;
  VectorSet<BElement> b;
  const std::int32_t* row_exponent;
  const std::int32_t* col_exponent;
  const Control* control;
  EpilogueOf<Scalar> epilogue;
  MatrixRef<Scalar> C;
  std::int64_t pieces;  // of one column

  /// t += u v, or t -= u v, if one factor is not finite. The first term is Inf or NaN: adding it to zero
  /// changes nothing.
  KOKKOS_FUNCTION static void add_special(Real u, Real v, bool subtract, Real& t) {
    if (is_finite(u) && is_finite(v)) return;
    if (subtract)
      t -= u * v;
    else
      t += u * v;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    if (control->any_flagged == 0) return;
    const std::int64_t first = index % pieces * piece;
    std::int64_t entry, j_in_entry;
    C.place(index / pieces, entry, j_in_entry);
    const std::int64_t i0 = entry * a.pitch, j = entry * b.pitch + j_in_entry;
    const std::int64_t last = first + piece < C.rows ? first + piece : C.rows;
    for (std::int64_t i = first; i < last; ++i) {
      if (row_exponent[i0 + i] != flagged_vector && col_exponent[j] != flagged_vector) continue;
      Scalar& c = C.entry(entry)[i * C.row_stride + j_in_entry * C.col_stride];
      Real re = 0, im = 0;
      for (std::int64_t l = 0; l < a.length; ++l) {
        const Real u = a.part(i0 + i, l, 0), v = b.part(j, l, 0);
        add_special(u, v, false, re);
        if constexpr (is_complex_v<Scalar>) {
          const Real x = a.part(i0 + i, l, 1), y = b.part(j, l, 1);
          add_special(x, y, true, re);
          add_special(u, y, false, im);
          add_special(x, v, false, im);
        }
      }
      if constexpr (is_complex_v<Scalar>)
        apply_epilogue(Scalar(re, im), epilogue, c);
      else
        apply_epilogue(re, epilogue, c);
    }
  }
};

/// \brief Entries of C whose row of op(A) or column of op(B) holds Inf or NaN: the IEEE sum of the products
/// with a non-finite factor, which is what a dot product returns whatever its order (docs/accuracy.md, "Inf
/// and NaN").
/// \param a, b all positions, with the vectors of this block of C
template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void repair(const ExecutionSpace& exec, const VectorSet<AElement>& a, const VectorSet<BElement>& b,
            const std::int32_t* row_exponent, const std::int32_t* col_exponent, const Control* control,
            const EpilogueOf<Scalar>& epilogue, const MatrixRef<Scalar>& C) {
  ScopedRegion region(Labels::repair);
  using Functor = RepairFunctor<Scalar, AElement, BElement>;
  const std::int64_t pieces = (C.rows + Functor::piece - 1) / Functor::piece;
  Kokkos::parallel_for(Labels::repair, Range<ExecutionSpace>(exec, 0, pieces * C.cols * C.entries),
                       Functor{a, b, row_exponent, col_exponent, control, epilogue, C, pieces});
}

}  // namespace KokkosOzaki::Impl

#endif
