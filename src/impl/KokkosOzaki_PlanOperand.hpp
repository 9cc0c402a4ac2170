// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_PLANOPERAND_HPP
#define KOKKOSOZAKI_PLANOPERAND_HPP

#include "KokkosOzaki_Checks.hpp"

namespace KokkosOzaki::Impl {

struct KnownVectors;

/// \brief One operand of GemmPlan::execute: a matrix as it is stored, and what is known of it if it is a prepared one.
template <class Element>
struct PlanOperand {
  MatrixRef<const Element> matrix;
  const PreparedTraits* prepared = nullptr;  // null: a View
  const KnownVectors* known = nullptr;       // null with `prepared`: moved from
};

/// \brief How an argument of GemmPlan<ExecutionSpace, Scalar>::execute becomes a PlanOperand: a View here,
/// PreparedMatrix in a specialisation.
template <class Argument, class ExecutionSpace, class Scalar>
struct PlanOperandOf {
  using View = Argument;  // whose type the checks of types see
  static auto make(const View& view) {
    return PlanOperand<typename View::non_const_value_type>{const_matrix_ref(view)};
  }
};

}  // namespace KokkosOzaki::Impl

#endif
