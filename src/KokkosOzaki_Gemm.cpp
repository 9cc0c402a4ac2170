// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_Gemm.hpp"
#include "KokkosOzaki_GemmBatched.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "impl/KokkosOzaki_Dispatch.hpp"
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

template <class ExecutionSpace>
void reserve(const char* function, const ExecutionSpace& exec,
             Kokkos::View<char*, typename ExecutionSpace::memory_space>& memory, std::size_t bytes) {
  if (memory.extent(0) < bytes) check_not_captured(function, exec);
  Context<ExecutionSpace>::reserve(memory, bytes);
}

/// Whether the options make a product, or a batch, native before anything is known of the data. Prepares what a native
/// one needs.
template <class ExecutionSpace, class Scalar, class AElement, class BElement>
bool is_native(const char* function, const ExecutionSpace& exec, Context<ExecutionSpace>& context,
               const MatrixRef<const AElement>& a, const MatrixRef<const BElement>& b,
               const MatrixRef<Scalar>& C, const GemmOptions& options) {
  if (!may_be_native(options)) return false;
  if (!context.native.is_prepared()) {
    check_not_captured(function, exec);
    context.native.prepare();
  }
  if (options.method != Method::automatic) return options.method == Method::native;
  return NativeGemm<ExecutionSpace>::vendor_takes(a, b, C) &&
         native_is_faster<ExecutionSpace, Scalar>(function, exec, context,
                                                  {C.rows, C.cols, a.cols, C.entries}, options);
}

/// One emulated product that is not empty, with the memory of `context`; native after all where the data ask for it.
/// \param op_a, op_b  op(A) and op(B)
template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void multiply_in(const char* function, const ExecutionSpace& exec, Context<ExecutionSpace>& context,
                 const Scalar& alpha, const MatrixRef<const AElement>& op_a,
                 const MatrixRef<const BElement>& op_b, const Scalar& beta, const MatrixRef<Scalar>& C,
                 const GemmOptions& options) {
  using Plan = PlanImpl<ExecutionSpace, Scalar>;
  const VectorSet<AElement> a = rows_of(op_a);
  const VectorSet<BElement> b = rows_of(op_b.transposed());
  if (!chooses_from_data(options)) {
    Plan plan(function, C.rows, C.cols, a.length, options, *context.engine);
    reserve(function, exec, context.workspace, plan.workspace_bytes());
    return plan.execute(exec, context, alpha, a, b, beta, C, context.workspace.data());
  }
  check_not_captured(function, exec, captured_selection);
  const ComponentwiseProduct<ExecutionSpace, Scalar> product(C.rows, C.cols, a.length, options,
                                                             *context.engine);
  reserve(function, exec, context.kept, product.kept_bytes());
  reserve(function, exec, context.workspace, product.scratch_bytes());
  const Selection selection = product.select(exec, context, a, b, KnownVectors{}, KnownVectors{},
                                             context.kept.data(), context.workspace.data());
  if (turns_native<ExecutionSpace, Scalar>(function, exec, context, {C.rows, C.cols, a.length}, options,
                                           selection,
                                           NativeGemm<ExecutionSpace>::vendor_takes(op_a, op_b, C)))
    return context.native.run(exec, alpha, op_a, op_b, beta, C);
  Plan plan = product.plan(function, options, selection.num_moduli, *context.engine);
  if (!selection.all_exact) reserve(function, exec, context.workspace, plan.workspace_bytes());
  product.execute(exec, context, selection, plan, alpha, a, b, beta, C, context.kept.data(),
                  context.workspace.data());
}

/// The entries with these numbers as a batch of their own, whose addresses are in `addresses`.
template <class T>
MatrixRef<T> entries_at(MatrixRef<T> x, const std::vector<std::int64_t>& numbers,
                        std::vector<T*>& addresses) {
  addresses.clear();
  for (const std::int64_t e : numbers) addresses.push_back(x.entry(e));
  x.entries = static_cast<std::int64_t>(numbers.size());
  x.pointers = addresses.data();
  x.entry_stride = 0;
  return x;
}

/// A batch of emulated products, each with a number of moduli of its own: those with the same number together, those
/// that need a closer look one by one.
/// \param a, b  op(A) and op(B)
template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void multiply_batch_in(const char* function, const ExecutionSpace& exec, Context<ExecutionSpace>& context,
                       const Scalar& alpha, const MatrixRef<const AElement>& a,
                       const MatrixRef<const BElement>& b, const Scalar& beta, const MatrixRef<Scalar>& C,
                       const GemmOptions& options) {
  check_not_captured(function, exec, captured_selection);
  const ComponentwiseProduct<ExecutionSpace, Scalar> product(C.rows, C.cols, a.cols, options,
                                                             *context.engine);
  std::vector<int> num_moduli(static_cast<std::size_t>(C.entries), 0);
  if (const std::size_t bytes = product.batch_bytes(options, *context.engine, C.entries); bytes != 0) {
    reserve(function, exec, context.kept, bytes);
    num_moduli = product.select_batch(exec, context, a, b.transposed(), context.kept.data());
  }
  std::map<int, std::vector<std::int64_t>> entries_of_number;
  for (std::int64_t e = 0; e < C.entries; ++e)
    entries_of_number[num_moduli[static_cast<std::size_t>(e)]].push_back(e);

  // Memory for all of them before the first: a later one must not fail for want of it.
  std::size_t bytes = 0;
  for (const auto& [number, entries] : entries_of_number)
    bytes = std::max(bytes, number != 0 ? product
                                              .plan(function, options, number, *context.engine,
                                                    static_cast<std::int64_t>(entries.size()))
                                              .workspace_bytes()
                                        : product.workspace_bytes(function, options, *context.engine) -
                                              product.kept_bytes());
  reserve(function, exec, context.workspace, bytes);
  if (entries_of_number.count(0) != 0) reserve(function, exec, context.kept, product.kept_bytes());

  for (const auto& [number, entries] : entries_of_number) {
    if (number == 0) {
      for (const std::int64_t e : entries)
        multiply_in(function, exec, context, alpha, single_entry(a, e), single_entry(b, e), beta,
                    single_entry(C, e), options);
      continue;
    }
    const auto count = static_cast<std::int64_t>(entries.size());
    auto plan = product.plan(function, options, number, *context.engine, count);
    void* const workspace = context.workspace.data();
    if (count == C.entries) {
      plan.execute_batch(exec, context, alpha, a, b.transposed(), beta, C, workspace);
      continue;
    }
    std::vector<const AElement*> of_a;
    std::vector<const BElement*> of_b;
    std::vector<Scalar*> of_c;
    plan.execute_batch(exec, context, alpha, entries_at(a, entries, of_a),
                       entries_at(b, entries, of_b).transposed(), beta, entries_at(C, entries, of_c),
                       workspace);
  }
}

}  // namespace

template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void gemm(const ExecutionSpace& exec, char transA, char transB, const Scalar& alpha,
          const MatrixRef<const AElement>& A, const MatrixRef<const BElement>& B, const Scalar& beta,
          const MatrixRef<Scalar>& C, const GemmOptions& options) {
  check_gemm("gemm", ScalarShape::of<Scalar>(), transA, transB, A, B, C, options);
  const MatrixRef<const AElement> a = op(A, transA);
  const MatrixRef<const BElement> b = op(B, transB);
  if (C.rows == 0 || C.cols == 0) return;
  if (alpha == Scalar(0) || a.cols == 0) return apply_beta(exec, beta, C);
  if (options.method == Method::emulated && chooses_from_data(options))
    check_not_captured("gemm", exec, captured_selection);
  ContextRegistry<ExecutionSpace>::instance().with_context(
      "gemm", exec, options.backend, [&](Context<ExecutionSpace>& context) {
        if (is_native<ExecutionSpace, Scalar>("gemm", exec, context, a, b, C, options))
          context.native.run(exec, alpha, a, b, beta, C);
        else
          multiply_in("gemm", exec, context, alpha, a, b, beta, C, options);
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
  const MatrixRef<const BElement> b = op(B, transB);
  const bool scales_only = alpha == Scalar(0) || a.cols == 0;
  if (scales_only && C.pointers == nullptr) return apply_beta(exec, beta, C);
  if (!scales_only && options.method == Method::emulated && chooses_from_data(options))
    check_not_captured(function, exec, captured_selection);
  ContextRegistry<ExecutionSpace>::instance().with_context(
      function, exec, options.backend, [&](Context<ExecutionSpace>& context) {
        if (scales_only) {
          reserve(function, exec, context.workspace,
                  static_cast<std::size_t>(C.entries) * sizeof(void*) + 63);
          return apply_beta_to_array(exec, beta, C, context.workspace.data());
        }
        if (is_native<ExecutionSpace, Scalar>(function, exec, context, a, b, C, options))
          return context.native.run(exec, alpha, a, b, beta, C);
        if (chooses_from_data(options))
          return multiply_batch_in(function, exec, context, alpha, a, b, beta, C, options);
        PlanImpl<ExecutionSpace, Scalar> plan(function, C.rows, C.cols, a.cols, options, *context.engine,
                                              C.entries);
        reserve(function, exec, context.workspace, plan.workspace_bytes());
        plan.execute_batch(exec, context, alpha, a, b.transposed(), beta, C, context.workspace.data());
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
