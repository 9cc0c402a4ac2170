// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_PREPAREDMATRIX_HPP
#define KOKKOSOZAKI_PREPAREDMATRIX_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "KokkosOzaki_Error.hpp"
#include "KokkosOzaki_GemmOptions.hpp"
#include "impl/KokkosOzaki_Checks.hpp"
#include "impl/KokkosOzaki_KokkosCompat.hpp"
#include "impl/KokkosOzaki_PlanOperand.hpp"

namespace KokkosOzaki {

namespace Impl {
template <class ExecutionSpace, class Scalar>
struct PreparedData;
struct PreparedAccess;
}  // namespace Impl

/// \brief op(A) or op(B) as GemmPlan::execute needs it, made once by prepare_a or prepare_b for any number of products:
/// a copy of the entries, the statistics of the rows of op(A) (columns of op(B)), and, with the fast exponents, their
/// residues. Where the accurate bound applies the exponents depend on the other operand: the plane of its bound product
/// takes the place of the residues, which each call makes from the copy; where the number of moduli is chosen from the
/// data, too, each call makes the residues. The results have the bits of a call with the View.
///
/// Movable, not copyable. It does not refer to the View. Calls only read it: plans on any instances and threads may use
/// one at the same time. It must live until the work of the last call is done.
/// \tparam ExecutionSpace a space that KokkosOzaki was built for (docs/backends.md); that of the plans
/// \tparam Scalar float, double, Kokkos::complex<float> or Kokkos::complex<double>; that of the plans
template <class ExecutionSpace, class Scalar>
class PreparedMatrix {
  static_assert(Impl::is_enabled_space_v<ExecutionSpace>,
                "KokkosOzaki::PreparedMatrix: ExecutionSpace must be one that Kokkos was built with when "
                "KokkosOzaki was built.");
  static_assert(Impl::is_scalar_v<Scalar>,
                "KokkosOzaki::PreparedMatrix: Scalar must be float, double, Kokkos::complex<float> or "
                "Kokkos::complex<double>.");

 public:
  PreparedMatrix(PreparedMatrix&&) noexcept;
  PreparedMatrix& operator=(PreparedMatrix&&) noexcept;
  ~PreparedMatrix();

  /// 'A' or 'B': whose place it takes.
  char operand() const { return m_traits.operand; }
  /// N, T or C; for real numbers T where C was asked for, which is the same.
  char trans() const { return m_traits.trans; }
  /// Rows of op().
  std::int64_t rows() const { return m_traits.rows; }
  /// Columns of op().
  std::int64_t cols() const { return m_traits.cols; }
  /// Number of moduli, also where it was chosen; 0: each product chooses it from the data.
  int num_moduli() const { return m_traits.num_moduli; }
  /// The bound that was asked for.
  Bound bound() const { return m_traits.bound; }
  /// How scaled entries become integers.
  Rounding rounding() const { return m_traits.rounding; }
  /// Bytes in the memory of the space; 0 once it was moved from.
  std::size_t bytes() const;

 private:
  friend struct Impl::PreparedAccess;

  template <class Element>
  PreparedMatrix(const char* function, char operand, const ExecutionSpace& exec, char trans,
                 const Impl::MatrixRef<const Element>& x, const GemmOptions& options);

  Impl::PlanOperand<Scalar> plan_operand() const;

  Impl::PreparedTraits m_traits;
  std::unique_ptr<const Impl::PreparedData<ExecutionSpace, Scalar>> m_data;
};

namespace Impl {

struct PreparedAccess {
  template <class ExecutionSpace, class Scalar, class Element>
  static PreparedMatrix<ExecutionSpace, Scalar> make(const char* function, char operand,
                                                     const ExecutionSpace& exec, char trans,
                                                     const MatrixRef<const Element>& x,
                                                     const GemmOptions& options) {
    return PreparedMatrix<ExecutionSpace, Scalar>(function, operand, exec, trans, x, options);
  }
  template <class ExecutionSpace, class Scalar>
  static PlanOperand<Scalar> plan_operand(const PreparedMatrix<ExecutionSpace, Scalar>& x) {
    return x.plan_operand();
  }
};

template <class MadeFor, class MadeOf, class ExecutionSpace, class Scalar>
struct PlanOperandOf<PreparedMatrix<MadeFor, MadeOf>, ExecutionSpace, Scalar> {
  static_assert(
      std::is_same_v<MadeFor, ExecutionSpace>,
      "KokkosOzaki::GemmPlan::execute: a PreparedMatrix must have the execution space of the plan.");
  static_assert(
      std::is_same_v<MadeOf, Scalar>,
      "KokkosOzaki::GemmPlan::execute: a PreparedMatrix must have the scalar of the plan (prepare_a<Scalar> "
      "makes one of a narrower View).");
  using View = Kokkos::View<const Scalar**, typename ExecutionSpace::memory_space>;
  static PlanOperand<MadeOf> make(const PreparedMatrix<MadeFor, MadeOf>& x) {
    return PreparedAccess::plan_operand(x);
  }
};

/// The scalar of a prepared matrix: what was asked for, or (void) the View's.
template <class Scalar, class View, bool IsView = Kokkos::is_view<View>::value>
struct PreparedScalarOf {
  using type = Scalar;
};
template <class View>
struct PreparedScalarOf<void, View, true> {
  using type = typename View::non_const_value_type;
};
template <class View>
struct PreparedScalarOf<void, View, false> {
  using type = double;  // for the message about what is no View
};
template <class Scalar, class View>
using PreparedScalar = typename PreparedScalarOf<Scalar, View>::type;

/// The types of a call: one static_assert per condition.
template <class ExecutionSpace, class Scalar, class View>
constexpr void check_prepare_types() {
  static_assert(Kokkos::is_view<View>::value,
                "KokkosOzaki::prepare_a and prepare_b: the matrix must be a Kokkos::View.");
  static_assert(static_cast<int>(View::rank) == 2,
                "KokkosOzaki::prepare_a and prepare_b: the matrix must be a rank-2 Kokkos::View.");
  static_assert(
      is_operand_of_v<typename View::non_const_value_type, Scalar>,
      "KokkosOzaki::prepare_a and prepare_b: the matrix must have the value type of the product, or float "
      "where that is double (complex likewise).");
  static_assert(Kokkos::SpaceAccessibility<ExecutionSpace, typename View::memory_space>::accessible,
                "KokkosOzaki::prepare_a and prepare_b: the matrix must be accessible from exec.");
}

}  // namespace Impl

/// \brief op(A), once for many products.
/// \tparam Scalar of the products; left out, the value type of A
/// \param[in] exec instance that does the work; the call returns when it is done, so that A may change at once
/// \param[in] transA "N", "T" or "C" (conjugate transpose); that of the plans
/// \param[in] A m x k if transA is N, else k x m; of type Scalar, or float where that is double (complex likewise);
///   LayoutLeft, LayoutRight or LayoutStride; accessible from exec
/// \param[in] options num_moduli, accuracy, bound and rounding as those of the plans; the others do not matter
/// \throws std::invalid_argument a wrong trans letter; sizes that are too large; two entries in one place; an option is
///   out of range; too few moduli for this k
/// \throws WorkspaceError the memory cannot be had
/// \throws Error the stream of exec is being captured
/// \note Memory: PreparedMatrix::bytes(): the entries as Scalar, and for each of them, with m and k rounded up to
///   multiples of 16 and 64, a byte per modulus (complex: three), or one byte where the accurate bound applies.
template <class Scalar = void, class ExecSpace, class AView>
PreparedMatrix<ExecSpace, Impl::PreparedScalar<Scalar, AView>> prepare_a(const ExecSpace& exec,
                                                                         const char transA[], const AView& A,
                                                                         const GemmOptions& options = {}) {
  using ProductScalar = Impl::PreparedScalar<Scalar, AView>;
  Impl::check_prepare_types<ExecSpace, ProductScalar, AView>();
  return Impl::PreparedAccess::make<ExecSpace, ProductScalar>("prepare_a", 'A', exec, transA[0],
                                                              Impl::const_matrix_ref(A), options);
}

/// \brief op(B), once for many products; as prepare_a.
/// \param[in] B k x n if transB is N, else n x k
template <class Scalar = void, class ExecSpace, class BView>
PreparedMatrix<ExecSpace, Impl::PreparedScalar<Scalar, BView>> prepare_b(const ExecSpace& exec,
                                                                         const char transB[], const BView& B,
                                                                         const GemmOptions& options = {}) {
  using ProductScalar = Impl::PreparedScalar<Scalar, BView>;
  Impl::check_prepare_types<ExecSpace, ProductScalar, BView>();
  return Impl::PreparedAccess::make<ExecSpace, ProductScalar>("prepare_b", 'B', exec, transB[0],
                                                              Impl::const_matrix_ref(B), options);
}

}  // namespace KokkosOzaki

#endif
