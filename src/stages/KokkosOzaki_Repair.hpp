// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_REPAIR_HPP
#define KOKKOSOZAKI_REPAIR_HPP

#include "KokkosOzaki_Reconstruct.hpp"
#include "KokkosOzaki_Statistics.hpp"

namespace KokkosOzaki::Impl {

/// Rows of one piece of a column per index; at once over where no vector is flagged.
struct RepairFunctor {
  static constexpr std::int64_t piece = 64;

  VectorSet<double> a, b;
  const std::int32_t* row_exponent;
  const std::int32_t* col_exponent;
  const Control* control;
  Epilogue epilogue;
  MatrixRef<double> C;
  std::int64_t pieces;  // of one column

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    if (control->any_flagged == 0) return;
    const std::int64_t j = index / pieces, first = index % pieces * piece;
    const std::int64_t last = first + piece < C.rows ? first + piece : C.rows;
    for (std::int64_t i = first; i < last; ++i) {
      if (row_exponent[i] != flagged_vector && col_exponent[j] != flagged_vector) continue;
      const double* x = a.data + i * a.vector_stride;
      const double* y = b.data + j * b.vector_stride;
      double t = 0.0;  // the first term is Inf or NaN: adding it to zero changes nothing
      for (std::int64_t l = 0; l < a.length; ++l) {
        const double u = x[l * a.position_stride], v = y[l * b.position_stride];
        if (!is_finite(u) || !is_finite(v)) t += u * v;
      }
      apply_epilogue(t, epilogue, C.data[i * C.row_stride + j * C.col_stride]);
    }
  }
};

/// \brief Entries of C whose row of op(A) or column of op(B) holds Inf or NaN: the IEEE sum of the products
/// with a non-finite factor, which is what a dot product returns whatever its order (docs/accuracy.md, "Inf
/// and NaN").
/// \param a, b all positions, with the vectors of this block of C
template <class ExecutionSpace>
void repair(const ExecutionSpace& exec, const VectorSet<double>& a, const VectorSet<double>& b,
            const std::int32_t* row_exponent, const std::int32_t* col_exponent, const Control* control,
            const Epilogue& epilogue, const MatrixRef<double>& C) {
  ScopedRegion region("KokkosOzaki::repair");
  const std::int64_t pieces = (C.rows + RepairFunctor::piece - 1) / RepairFunctor::piece;
  Kokkos::parallel_for("KokkosOzaki::repair", Range<ExecutionSpace>(exec, 0, pieces * C.cols),
                       RepairFunctor{a, b, row_exponent, col_exponent, control, epilogue, C, pieces});
}

}  // namespace KokkosOzaki::Impl

#endif
