// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_GEMM_HPP
#define KOKKOSOZAKI_GEMM_HPP

#include "KokkosOzaki_Error.hpp"
#include "KokkosOzaki_GemmOptions.hpp"
#include "impl/KokkosOzaki_Checks.hpp"

namespace KokkosOzaki {

namespace Impl {

template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void gemm(const ExecutionSpace& exec, char transA, char transB, const Scalar& alpha,
          const MatrixRef<const AElement>& A, const MatrixRef<const BElement>& B, const Scalar& beta,
          const MatrixRef<Scalar>& C, const GemmOptions& options);

}  // namespace Impl

/// \brief C := alpha*op(A)*op(B) + beta*C to the accuracy of C's type, computed with INT8 products.
/// \tparam ExecSpace a space that KokkosOzaki was built for (docs/backends.md)
/// \param[in] exec instance; all work is enqueued on it; no fence
/// \param[in] transA "N", "T" or "C" (conjugate transpose)
/// \param[in] transB "N", "T" or "C"
/// \param[in] alpha 0: A and B are not read
/// \param[in] A m x k if transA is N, else k x m; the value type of C, or float where that is double (complex
///   likewise; it is converted entry by entry, without a copy); LayoutLeft, LayoutRight or LayoutStride;
///   accessible from exec
/// \param[in] B k x n if transB is N, else n x k; like A
/// \param[in] beta 0: C is overwritten unread
/// \param[in,out] C m x n; float, double, Kokkos::complex<float> or Kokkos::complex<double>; read only if
///   beta != 0; must not overlap A or B
/// \param[in] options what accuracy is promised and how, see GemmOptions and docs/accuracy.md
/// \throws std::invalid_argument wrong trans letters, extents, strides, overlap or options; C is untouched
/// \throws WorkspaceError the workspace cannot be had; C is untouched
/// \throws Error the stream of exec is being captured and the call would allocate; the capture and C are
///   untouched
/// \throws BackendError a vendor library reported a failure; C is unspecified
/// \note Memory: GemmPlan::workspace_bytes(m, n, k, options), kept for the next call until
///   release_workspaces().
/// \note Reproducibility: the same bits for every space, number of threads, layout, workspace cap and engine.
///   Source: Ozaki Scheme II, arXiv:2504.08009; symbols as in docs/method.md.
template <class ExecSpace, class AView, class BView, class CView>
void gemm(const ExecSpace& exec, const char transA[], const char transB[],
          typename CView::const_value_type& alpha, const AView& A, const BView& B,
          typename CView::const_value_type& beta, const CView& C, const GemmOptions& options = {}) {
  Impl::check_types<ExecSpace, typename CView::non_const_value_type, AView, BView, CView>();
  Impl::gemm(exec, transA[0], transB[0], alpha, Impl::const_matrix_ref(A), Impl::const_matrix_ref(B), beta,
             Impl::matrix_ref(C), options);
}

/// The same on the default instance of C's execution space.
template <class AView, class BView, class CView>
void gemm(const char transA[], const char transB[], typename CView::const_value_type& alpha, const AView& A,
          const BView& B, typename CView::const_value_type& beta, const CView& C,
          const GemmOptions& options = {}) {
  gemm(typename CView::execution_space{}, transA, transB, alpha, A, B, beta, C, options);
}

/// \brief Gives back the memory that gemm keeps between calls, on all spaces; done by Kokkos::finalize as
/// well. No gemm may be running.
void release_workspaces();

}  // namespace KokkosOzaki

#endif
