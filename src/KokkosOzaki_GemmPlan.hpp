// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_GEMMPLAN_HPP
#define KOKKOSOZAKI_GEMMPLAN_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "KokkosOzaki_Error.hpp"
#include "KokkosOzaki_GemmOptions.hpp"
#include "impl/KokkosOzaki_Checks.hpp"
#include "impl/KokkosOzaki_KokkosCompat.hpp"
#include "impl/KokkosOzaki_MatrixRef.hpp"
#include "impl/KokkosOzaki_PlanOperand.hpp"

namespace KokkosOzaki {

/// \brief What a plan did in its last execute, or will do in its next one.
struct GemmReport {
  Method method = Method::emulated;  ///< emulated or native
  int num_moduli = 0;  ///< number of moduli; 0: not known before the first execute, or no entry was emulated
  Bound bound_used =
      Bound::fast;           ///< fast where the accurate bound found the fast exponents at least as fine
  const char* backend = "";  ///< INT8 engine; of a native product "cublas", "blas" or "inner_products"
  double error_bound =
      0;  ///< c with |C - op(A) op(B)|_ij <= c u ||a_i||_2 ||b_j||_2 + u |C_ij| (alpha = 1, beta
          ///< = 0); complex: for the real and for the imaginary part
  double componentwise_bound =
      0;  ///< c with |C - op(A) op(B)|_ij <= c u (|op(A)| |op(B)|)_ij + u |C_ij|, likewise,
          ///< in the measure of Accuracy::componentwise; 0: not promised
  std::int64_t exact_entries =
      0;  ///< entries that were computed exactly because no number of moduli could promise that
  const char* reason =
      "";  ///< why this number of moduli: "num_moduli" (given), "normwise", "componentwise", or
           ///< "exact" where every entry was computed exactly; why a native product: "native" (asked for),
           ///< "automatic" (expected to be faster) or "fallback" (not every entry could be promised)
};

namespace Impl {
template <class ExecutionSpace>
struct Context;
template <class ExecutionSpace, class Scalar>
class PlanImpl;
template <class ExecutionSpace, class Scalar>
class ComponentwiseProduct;
struct Selection;
}  // namespace Impl

/// Tag of the GemmPlan constructor that leaves the workspace to the caller.
struct ExternalWorkspace {};

/// \brief A product of fixed sizes and options with its workspace and INT8 engine, executed any number of
/// times. Movable, not copyable. One call at a time: for concurrent products make two plans. The result has
/// the same bits on every execution space, for every number of threads, layout, workspace cap and engine.
/// \tparam ExecutionSpace a space that KokkosOzaki was built for (docs/backends.md)
/// \tparam Scalar float, double, Kokkos::complex<float> or Kokkos::complex<double>; the value type of C
template <class ExecutionSpace, class Scalar>
class GemmPlan {
  static_assert(Impl::is_enabled_space_v<ExecutionSpace>,
                "KokkosOzaki::GemmPlan: ExecutionSpace must be one that Kokkos was built with when "
                "KokkosOzaki was built.");
  static_assert(Impl::is_scalar_v<Scalar>,
                "KokkosOzaki::GemmPlan: Scalar must be float, double, Kokkos::complex<float> or "
                "Kokkos::complex<double>.");

 public:
  /// Whether the constructor accepts these sizes and options (memory aside).
  static bool can_run(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options = {});

  /// \brief Bytes of workspace for these sizes, at most max_workspace_bytes if that is given.
  /// \throws std::invalid_argument, WorkspaceError  as the constructor
  static std::size_t workspace_bytes(std::int64_t m, std::int64_t n, std::int64_t k,
                                     const GemmOptions& options = {});

  /// \brief Plans C := alpha op(A) op(B) + beta C with op(A) m x k and op(B) k x n, and allocates its
  /// workspace.
  /// \throws std::invalid_argument a trans letter is not one of N, T, C; a size is negative or too large
  ///   (k >= 2^32, complex 2^31, or a matrix of 2^56 entries); an option is out of range; too few moduli for this k; no such backend
  /// \throws WorkspaceError the workspace cannot be had, or the cap is below the smallest block
  /// \throws Error the stream of exec is being captured
  GemmPlan(const ExecutionSpace& exec, char transA, char transB, std::int64_t m, std::int64_t n,
           std::int64_t k, const GemmOptions& options = {});

  /// The same without a workspace: every execute needs a buffer.
  GemmPlan(ExternalWorkspace, const ExecutionSpace& exec, char transA, char transB, std::int64_t m,
           std::int64_t n, std::int64_t k, const GemmOptions& options = {});

  GemmPlan(GemmPlan&&) noexcept;
  GemmPlan& operator=(GemmPlan&&) noexcept;
  ~GemmPlan();

  /// Bytes of workspace that a call needs.
  std::size_t workspace_bytes() const;

  /// \brief C := alpha op(A) op(B) + beta C; enqueues on `exec` and returns, no fence.
  /// \param[in] A m x k if transA is N, else k x m; LayoutLeft, LayoutRight or LayoutStride; of Scalar's type,
  ///   or float where that is double (complex likewise); or a PreparedMatrix made by prepare_a with the plan's letter,
  ///   number of moduli, bound and rounding, which must live until the work is done
  /// \param[in] B k x n if transB is N, else n x k; like A, prepared by prepare_b
  /// \param[in,out] C m x n; read only if beta != 0; must not overlap A or B
  /// \throws std::invalid_argument a size differs from the plan's; two entries of an operand in one place;
  ///   overlap; a prepared matrix that does not fit; C is untouched
  /// \throws WorkspaceError the plan was made without a workspace
  /// \throws BackendError a vendor library reported a failure
  template <class AOperand, class BOperand, class CView>
  void execute(const ExecutionSpace& exec, const Scalar& alpha, const AOperand& A, const BOperand& B,
               const Scalar& beta, const CView& C) {
    using OperandA = Impl::PlanOperandOf<AOperand, ExecutionSpace, Scalar>;
    using OperandB = Impl::PlanOperandOf<BOperand, ExecutionSpace, Scalar>;
    Impl::check_types<ExecutionSpace, Scalar, typename OperandA::View, typename OperandB::View, CView>();
    run(exec, alpha, OperandA::make(A), OperandB::make(B), beta, Impl::matrix_ref(C), nullptr, 0);
  }

  /// \brief The same with the caller's memory.
  /// \param buffer  rank-1 View of a trivial type, contiguous, at least workspace_bytes() bytes, accessible
  /// from exec; not
  ///                touched by anybody else until the work is done; contents do not matter
  /// \throws WorkspaceError  the buffer is too small
  template <class AOperand, class BOperand, class CView, class Buffer>
  void execute(const ExecutionSpace& exec, const Scalar& alpha, const AOperand& A, const BOperand& B,
               const Scalar& beta, const CView& C, const Buffer& buffer) {
    using OperandA = Impl::PlanOperandOf<AOperand, ExecutionSpace, Scalar>;
    using OperandB = Impl::PlanOperandOf<BOperand, ExecutionSpace, Scalar>;
    Impl::check_types<ExecutionSpace, Scalar, typename OperandA::View, typename OperandB::View, CView>();
    static_assert(Kokkos::is_view<Buffer>::value && static_cast<int>(Buffer::rank) == 1,
                  "KokkosOzaki::GemmPlan::execute: buffer must be a rank-1 Kokkos::View.");
    static_assert(!std::is_const_v<typename Buffer::value_type>,
                  "KokkosOzaki::GemmPlan::execute: buffer must have a non-const value type.");
    static_assert(Kokkos::SpaceAccessibility<ExecutionSpace, typename Buffer::memory_space>::accessible,
                  "KokkosOzaki::GemmPlan::execute: buffer must be accessible from exec.");
    const std::size_t bytes =
        buffer.span_is_contiguous() ? buffer.extent(0) * sizeof(typename Buffer::value_type) : 0;
    run(exec, alpha, OperandA::make(A), OperandB::make(B), beta, Impl::matrix_ref(C), buffer.data(), bytes);
  }

  /// What the last execute did; waits for it only where the answer is on the device (accurate bound).
  GemmReport report() const;

  /// Name of the INT8 engine.
  const char* backend_name() const;

 private:
  template <class AElement, class BElement>
  void run(const ExecutionSpace& exec, const Scalar& alpha, const Impl::PlanOperand<AElement>& A,
           const Impl::PlanOperand<BElement>& B, const Scalar& beta, const Impl::MatrixRef<Scalar>& C,
           void* buffer, std::size_t buffer_bytes);

  char m_transA, m_transB;
  std::int64_t m_m, m_n, m_k;
  std::unique_ptr<Impl::Context<ExecutionSpace>> m_context;
  std::unique_ptr<Impl::PlanImpl<ExecutionSpace, Scalar>> m_impl;
  std::size_t m_workspace_bytes = 0;
  GemmOptions m_options;
  bool m_prefers_native = false;     // where the operands let it choose
  bool m_was_native = false;         // in the last execute
  const char* m_native_reason = "";  // of that
  const char* m_native_backend = "";
  // Where the number of moduli is chosen from the data:
  std::unique_ptr<Impl::ComponentwiseProduct<ExecutionSpace, Scalar>> m_componentwise;
  std::unique_ptr<Impl::Selection> m_selection;  // of the last execute
};

}  // namespace KokkosOzaki

#endif
