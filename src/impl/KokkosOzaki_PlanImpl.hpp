// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_PLANIMPL_HPP
#define KOKKOSOZAKI_PLANIMPL_HPP

#include <memory>
#include <optional>

#include "../KokkosOzaki_GemmPlan.hpp"
#include "../../backends/KokkosOzaki_Int8Gemm.hpp"
#include "KokkosOzaki_Moduli.hpp"
#include "KokkosOzaki_Workspace.hpp"

namespace KokkosOzaki::Impl {

/// \brief What a call needs besides its sizes: engine, constants, leaf functions, memory. One call at a time.
template <class ExecutionSpace>
struct Context {
  using MemorySpace = typename ExecutionSpace::memory_space;

  explicit Context(const char* backend);

  /// Makes the workspace at least this large.
  /// \throws WorkspaceError the old workspace is kept
  void reserve(std::size_t bytes);

  std::unique_ptr<Int8Gemm<ExecutionSpace>> engine;
  const StageKernels* kernels;
  Kokkos::View<ModuliTable*, MemorySpace> tables;  // s = 2 .. 20
  Kokkos::View<Control, MemorySpace> control;
  Kokkos::View<char*, MemorySpace> workspace;
};

/// \brief The steps of one product: sizes, number of moduli, blocks, workspace layout.
template <class ExecutionSpace>
class PlanImpl {
 public:
  /// Sizes and options are checked already; k >= 1, m, n >= 1.
  /// \throws std::invalid_argument  too few moduli for this k, naming `function`
  /// \throws WorkspaceError         the cap is below the smallest block
  PlanImpl(const char* function, std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options,
           const Int8Gemm<ExecutionSpace>& engine);

  std::size_t workspace_bytes() const { return m_layout.total; }
  GemmReport report(const Context<ExecutionSpace>& context) const;

  /// \brief The table of contents of the method.
  /// \param a, b rows of op(A) and columns of op(B)
  void execute(const ExecutionSpace& exec, Context<ExecutionSpace>& context, double alpha,
               const VectorSet<double>& a, const VectorSet<double>& b, double beta,
               const MatrixRef<double>& C, void* buffer);

 private:
  Blocking choose_blocking(const Int8Gemm<ExecutionSpace>& engine, std::size_t cap, int group) const;
  /// Whether there is one pass over the products of all moduli, reduction and reconstruction together,
  /// without Y.
  bool is_fused(const Blocking& blocking) const;
  /// Planes of INT32 products that are stored at the same time; 0: the engine reduces.
  int product_planes(const Blocking& blocking) const;
  WorkspaceLayout layout(const Int8Gemm<ExecutionSpace>& engine, const Blocking& blocking) const;

  std::int64_t m_m, m_n, m_k;
  int m_num_moduli;
  bool m_accurate;  // the accurate bound applies to these sizes
  bool m_toward_zero;
  bool m_engine_reduces;
  Blocking m_blocking;
  WorkspaceLayout m_layout;
  std::optional<ExecutionSpace> m_last_exec;  // none before the first execute
};

/// C := beta C.
template <class ExecutionSpace>
void apply_beta(const ExecutionSpace& exec, double beta, const MatrixRef<double>& C);

}  // namespace KokkosOzaki::Impl

#endif
