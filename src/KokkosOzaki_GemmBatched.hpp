// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_GEMMBATCHED_HPP
#define KOKKOSOZAKI_GEMMBATCHED_HPP

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "KokkosOzaki_Error.hpp"
#include "KokkosOzaki_GemmOptions.hpp"
#include "impl/KokkosOzaki_Checks.hpp"

namespace KokkosOzaki {

namespace Impl {

/// What a batch is made of: a rank-3 View, or an array of rank-2 Views.
template <class Batch, bool IsArray>
struct BatchTraitsOf {
  using View = Batch;
  static constexpr int rank = 3;
};
template <class Batch>
struct BatchTraitsOf<Batch, true> {
  using View = std::decay_t<decltype(std::declval<const Batch&>()[0])>;
  static constexpr int rank = 2;
};

/// A rank-1 View of Views is an array.
template <class Batch>
constexpr bool is_array_of_views() {
  if constexpr (Kokkos::is_view<Batch>::value)
    return Kokkos::is_view<typename Batch::non_const_value_type>::value;
  else
    return true;
}

template <class Batch>
using BatchTraits = BatchTraitsOf<Batch, is_array_of_views<Batch>()>;
template <class Batch>
using BatchScalar = typename BatchTraits<Batch>::View::non_const_value_type;

/// The matrices of a batch for the length of one call. A View is taken apart into numbers here, an array into
/// addresses.
template <class Batch, class T>
class CollectedBatch {
 public:
  CollectedBatch(const char* function, const char* name, const Batch& batch) {
    if constexpr (is_array_of_views<Batch>()) {
      const std::size_t count = batch.size();
      m_pointers.reserve(count);
      for (std::size_t e = 0; e < count; ++e) {
        const auto& view = batch[e];
        const MatrixRef<T> matrix{
            view.data(), static_cast<std::int64_t>(view.extent(0)), static_cast<std::int64_t>(view.extent(1)),
            static_cast<std::int64_t>(view.stride(0)), static_cast<std::int64_t>(view.stride(1))};
        if (e == 0)
          m_ref = matrix;
        else
          check_same_shape(function, name, static_cast<std::int64_t>(e), m_ref, matrix);
        m_pointers.push_back(view.data());
      }
      m_ref.entries = static_cast<std::int64_t>(count);
      m_ref.pointers = m_pointers.data();
    } else {
      m_ref = {batch.data(), static_cast<std::int64_t>(batch.extent(0)),
               static_cast<std::int64_t>(batch.extent(1)), static_cast<std::int64_t>(batch.stride(0)),
               static_cast<std::int64_t>(batch.stride(1))};
      m_ref.entries = static_cast<std::int64_t>(batch.extent(2));
      m_ref.entry_stride = static_cast<std::int64_t>(batch.stride(2));
    }
  }
  CollectedBatch(const CollectedBatch&) = delete;
  CollectedBatch& operator=(const CollectedBatch&) = delete;

  const MatrixRef<T>& ref() const { return m_ref; }

 private:
  std::vector<T*> m_pointers;
  MatrixRef<T> m_ref;
};

/// The types of a call: one static_assert per condition.
template <class ExecutionSpace, class ABatch, class BBatch, class CBatch>
constexpr void check_batched_types() {
  using AView = typename BatchTraits<ABatch>::View;
  using BView = typename BatchTraits<BBatch>::View;
  using CView = typename BatchTraits<CBatch>::View;
  static_assert(is_enabled_space_v<ExecutionSpace>,
                "KokkosOzaki::gemm_batched: exec must be an execution space that Kokkos was built with when "
                "KokkosOzaki was built.");
  static_assert(Kokkos::is_view<AView>::value && static_cast<int>(AView::rank) == BatchTraits<ABatch>::rank,
                "KokkosOzaki::gemm_batched: A must be a rank-3 Kokkos::View or an array of rank-2 ones.");
  static_assert(Kokkos::is_view<BView>::value && static_cast<int>(BView::rank) == BatchTraits<BBatch>::rank,
                "KokkosOzaki::gemm_batched: B must be a rank-3 Kokkos::View or an array of rank-2 ones.");
  static_assert(Kokkos::is_view<CView>::value && static_cast<int>(CView::rank) == BatchTraits<CBatch>::rank,
                "KokkosOzaki::gemm_batched: C must be a rank-3 Kokkos::View or an array of rank-2 ones.");
  static_assert(!std::is_const_v<typename CView::value_type>,
                "KokkosOzaki::gemm_batched: C must have a non-const value type.");
  static_assert(is_scalar_v<BatchScalar<CBatch>>,
                "KokkosOzaki::gemm_batched: the value type of C must be float, double, "
                "Kokkos::complex<float> or Kokkos::complex<double>.");
  static_assert(is_operand_of_v<BatchScalar<ABatch>, BatchScalar<CBatch>>,
                "KokkosOzaki::gemm_batched: A must have the value type of C, or float where that is double "
                "(complex likewise).");
  static_assert(is_operand_of_v<BatchScalar<BBatch>, BatchScalar<CBatch>>,
                "KokkosOzaki::gemm_batched: B must have the value type of C, or float where that is double "
                "(complex likewise).");
  static_assert(Kokkos::SpaceAccessibility<ExecutionSpace, typename AView::memory_space>::accessible,
                "KokkosOzaki::gemm_batched: A must be accessible from exec.");
  static_assert(Kokkos::SpaceAccessibility<ExecutionSpace, typename BView::memory_space>::accessible,
                "KokkosOzaki::gemm_batched: B must be accessible from exec.");
  static_assert(Kokkos::SpaceAccessibility<ExecutionSpace, typename CView::memory_space>::accessible,
                "KokkosOzaki::gemm_batched: C must be accessible from exec.");
}

/// Pointers of arrays are in host memory.
template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void gemm_batched(const ExecutionSpace& exec, char transA, char transB, const Scalar& alpha,
                  const MatrixRef<const AElement>& A, const MatrixRef<const BElement>& B, const Scalar& beta,
                  const MatrixRef<Scalar>& C, const GemmOptions& options);

}  // namespace Impl

/// \brief C_e := alpha*op(A_e)*op(B_e) + beta*C_e for every matrix e of a batch, with the bits of as many calls
/// of gemm; each stage of the method is one launch for all of them (on a host space, for blocks that fit the
/// caches).
/// \tparam ExecSpace a space that KokkosOzaki was built for (docs/backends.md)
/// \tparam ABatch, BBatch, CBatch a rank-3 Kokkos::View whose last extent is the batch, or an array (anything on
///   the host with size() and operator[], such as a std::vector) of rank-2 Kokkos::Views, all of the same
///   extents and strides; one operand may be the one and another the other
/// \param[in] exec instance; all work is enqueued on it; no fence
/// \param[in] transA "N", "T" or "C" (conjugate transpose)
/// \param[in] transB "N", "T" or "C"
/// \param[in] alpha 0: A and B are not read
/// \param[in] A m x k if transA is N, else k x m; the value type of C, or float where that is double (complex
///   likewise); LayoutLeft, LayoutRight or LayoutStride; accessible from exec; one matrix may be in several entries
/// \param[in] B k x n if transB is N, else n x k; like A
/// \param[in] beta 0: C is overwritten unread
/// \param[in,out] C m x n; float, double, Kokkos::complex<float> or Kokkos::complex<double>; read only if
///   beta != 0; its matrices must not overlap each other, A or B
/// \param[in] options what accuracy is promised and how, see GemmOptions and docs/accuracy.md; every entry is on
///   its own, also where the accurate bound decides. max_workspace_bytes: the batch is done in blocks of
///   entries, or, where one does not fit, entry by entry in blocks of C
/// \throws std::invalid_argument wrong trans letters, numbers of matrices, extents, strides, overlap or options; C
///   is untouched
/// \throws WorkspaceError the workspace cannot be had; C is untouched
/// \throws Error the stream of `exec` is being captured, and memory is missing
/// \throws BackendError a vendor library reported a failure; C is unspecified
/// \note Memory: that of one product times the entries of a block, at most 4 GiB in all; kept for the next call
///   until release_workspaces(). An array may be destroyed once the call returns, the Views' memory only when
///   the work is done.
template <class ExecSpace, class ABatch, class BBatch, class CBatch>
void gemm_batched(const ExecSpace& exec, const char transA[], const char transB[],
                  const Impl::BatchScalar<CBatch>& alpha, const ABatch& A, const BBatch& B,
                  const Impl::BatchScalar<CBatch>& beta, const CBatch& C, const GemmOptions& options = {}) {
  Impl::check_batched_types<ExecSpace, ABatch, BBatch, CBatch>();
  const Impl::CollectedBatch<ABatch, const Impl::BatchScalar<ABatch>> a("gemm_batched", "A", A);
  const Impl::CollectedBatch<BBatch, const Impl::BatchScalar<BBatch>> b("gemm_batched", "B", B);
  const Impl::CollectedBatch<CBatch, Impl::BatchScalar<CBatch>> c("gemm_batched", "C", C);
  Impl::gemm_batched(exec, transA[0], transB[0], alpha, a.ref(), b.ref(), beta, c.ref(), options);
}

/// The same on the default instance of C's execution space.
template <class ABatch, class BBatch, class CBatch>
void gemm_batched(const char transA[], const char transB[], const Impl::BatchScalar<CBatch>& alpha,
                  const ABatch& A, const BBatch& B, const Impl::BatchScalar<CBatch>& beta, const CBatch& C,
                  const GemmOptions& options = {}) {
  gemm_batched(typename Impl::BatchTraits<CBatch>::View::execution_space{}, transA, transB, alpha, A, B, beta,
               C, options);
}

}  // namespace KokkosOzaki

#endif
