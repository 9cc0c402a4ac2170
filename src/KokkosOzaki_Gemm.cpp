// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_Gemm.hpp"
#include "KokkosOzaki_GemmBatched.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "impl/KokkosOzaki_PlanImpl.hpp"
#include "stages/cuda/KokkosOzaki_Capture_Cuda.hpp"

namespace KokkosOzaki {

namespace Impl {

namespace {

/// \brief The contexts that gemm keeps between calls: one per execution space instance and backend.
template <class ExecutionSpace>
class ContextRegistry {
 public:
  static ContextRegistry& instance() {
    // Never destroyed: Kokkos may be finalised by the destructor of an object that is older than this one.
    static auto* const registry = new ContextRegistry;
    return *registry;
  }

  /// Calls `body` with the context of this instance, under a lock: whoever shares the instance waits until
  /// the work is enqueued.
  template <class Body>
  void with_context(const char* function, const ExecutionSpace& exec, const char* backend, const Body& body) {
    const std::lock_guard<std::mutex> lock(m_mutex);
    if (!m_hook_is_set) {
      Kokkos::push_finalize_hook([] { instance().clear(); });
      m_hook_is_set = true;
    }
    auto& context = m_contexts[{instance_key(exec), backend != nullptr ? std::string("=") + backend : ""}];
    if (context == nullptr) {
      check_not_captured(function, exec);
      context = std::make_unique<Context<ExecutionSpace>>(backend);
    }
    body(*context);
  }

  void clear() {
    const std::lock_guard<std::mutex> lock(m_mutex);
    m_contexts.clear();
  }

 private:
  std::mutex m_mutex;
  std::map<std::pair<std::uintptr_t, std::string>, std::unique_ptr<Context<ExecutionSpace>>> m_contexts;
  bool m_hook_is_set = false;
};

}  // namespace

template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void gemm(const ExecutionSpace& exec, char transA, char transB, const Scalar& alpha,
          const MatrixRef<const AElement>& A, const MatrixRef<const BElement>& B, const Scalar& beta,
          const MatrixRef<Scalar>& C, const GemmOptions& options) {
  check_gemm("gemm", ScalarShape::of<Scalar>(), transA, transB, A, B, C, options);
  const VectorSet<AElement> a = rows_of(op(A, transA));
  const VectorSet<BElement> b = rows_of(op(B, transB).transposed());
  if (C.rows == 0 || C.cols == 0) return;
  if (alpha == Scalar(0) || a.length == 0) return apply_beta(exec, beta, C);
  ContextRegistry<ExecutionSpace>::instance().with_context(
      "gemm", exec, options.backend, [&](Context<ExecutionSpace>& context) {
        PlanImpl<ExecutionSpace, Scalar> plan("gemm", C.rows, C.cols, a.length, options, *context.engine);
        if (context.workspace.extent(0) < plan.workspace_bytes()) check_not_captured("gemm", exec);
        context.reserve(plan.workspace_bytes());
        plan.execute(exec, context, alpha, a, b, beta, C, context.workspace.data());
      });
}

template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void gemm_batched(const ExecutionSpace& exec, char transA, char transB, const Scalar& alpha,
                  const MatrixRef<const AElement>& A, const MatrixRef<const BElement>& B, const Scalar& beta,
                  const MatrixRef<Scalar>& C, const GemmOptions& options) {
  const char* function = "gemm_batched";
  check_gemm_batched(function, ScalarShape::of<Scalar>(), transA, transB, A, B, C, options);
  if (C.entries == 0 || C.rows == 0 || C.cols == 0) return;
  const MatrixRef<const AElement> a = op(A, transA);
  const MatrixRef<const BElement> b = op(B, transB).transposed();
  const bool scales_only = alpha == Scalar(0) || a.cols == 0;
  if (scales_only && C.pointers == nullptr) return apply_beta(exec, beta, C);
  ContextRegistry<ExecutionSpace>::instance().with_context(
      function, exec, options.backend, [&](Context<ExecutionSpace>& context) {
        const auto reserve = [&](std::size_t bytes) {
          if (context.workspace.extent(0) < bytes) check_not_captured(function, exec);
          context.reserve(bytes);
        };
        if (scales_only) {
          reserve(static_cast<std::size_t>(C.entries) * sizeof(void*) + 63);
          return apply_beta_to_array(exec, beta, C, context.workspace.data());
        }
        PlanImpl<ExecutionSpace, Scalar> plan(function, C.rows, C.cols, a.cols, options, *context.engine,
                                              C.entries);
        reserve(plan.workspace_bytes());
        plan.execute_batch(exec, context, alpha, a, b, beta, C, context.workspace.data());
      });
}

#define KOKKOSOZAKI_INSTANTIATE_MIX(SPACE, SCALAR, A, B)                                                \
  template void gemm<SPACE, SCALAR, A, B>(const SPACE&, char, char, const SCALAR&,                      \
                                          const MatrixRef<const A>&, const MatrixRef<const B>&,         \
                                          const SCALAR&, const MatrixRef<SCALAR>&, const GemmOptions&); \
  template void gemm_batched<SPACE, SCALAR, A, B>(                                                      \
      const SPACE&, char, char, const SCALAR&, const MatrixRef<const A>&, const MatrixRef<const B>&,    \
      const SCALAR&, const MatrixRef<SCALAR>&, const GemmOptions&);
#define KOKKOSOZAKI_INSTANTIATE(SPACE) KOKKOSOZAKI_FOR_EACH_MIX(KOKKOSOZAKI_INSTANTIATE_MIX, SPACE)
KOKKOSOZAKI_FOR_EACH_SPACE(KOKKOSOZAKI_INSTANTIATE)
#undef KOKKOSOZAKI_INSTANTIATE

}  // namespace Impl

void release_workspaces() {
#define KOKKOSOZAKI_CLEAR(SPACE) Impl::ContextRegistry<SPACE>::instance().clear();
  KOKKOSOZAKI_FOR_EACH_SPACE(KOKKOSOZAKI_CLEAR)
#undef KOKKOSOZAKI_CLEAR
}

}  // namespace KokkosOzaki
