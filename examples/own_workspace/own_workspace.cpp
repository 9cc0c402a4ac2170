// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Workspace from the application's own memory: a plan says how many bytes it needs, several plans and calls
// share one buffer, and a cap makes the same product run in less, with the same bits.

#include <KokkosOzaki.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>

namespace {

using ExecutionSpace = Kokkos::DefaultExecutionSpace;
using Matrix = Kokkos::View<double**, Kokkos::LayoutLeft, ExecutionSpace::memory_space>;
using Buffer = Kokkos::View<char*, ExecutionSpace::memory_space>;
using Plan = KokkosOzaki::GemmPlan<ExecutionSpace, double>;

Matrix make_matrix(const std::string& label, int rows, int cols, double seed) {
  Matrix matrix(label, static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
  const auto host = Kokkos::create_mirror_view(matrix);
  for (int j = 0; j < cols; ++j)
    for (int i = 0; i < rows; ++i) host(i, j) = std::sin(seed + i + 0.7 * j * (1.0 + i % 5));
  Kokkos::deep_copy(matrix, host);
  return matrix;
}

bool same_bits(const Matrix& X, const Matrix& Y) {
  const auto X_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), X);
  const auto Y_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), Y);
  for (std::size_t j = 0; j < X.extent(1); ++j)
    for (std::size_t i = 0; i < X.extent(0); ++i)
      if (!(X_host(i, j) == Y_host(i, j))) return false;
  return true;
}

bool is_zero(const Matrix& X) {
  const auto X_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), X);
  for (std::size_t j = 0; j < X.extent(1); ++j)
    for (std::size_t i = 0; i < X.extent(0); ++i)
      if (X_host(i, j) != 0.0) return false;
  return true;
}

bool run() {
  const ExecutionSpace exec;
  const int m = 256, n = 192, k = 320;
  const Matrix A = make_matrix("A", m, k, 1.0), B = make_matrix("B", k, n, 2.0);

  // ExternalWorkspace: the plans allocate none of their own.
  Plan product(KokkosOzaki::ExternalWorkspace{}, exec, 'N', 'N', m, n, k);
  Plan gram(KokkosOzaki::ExternalWorkspace{}, exec, 'T', 'N', n, n, m);  // of the product: C^T C
  const std::size_t bytes = std::max(product.workspace_bytes(), gram.workspace_bytes());
  const Buffer buffer(Kokkos::view_alloc(Kokkos::WithoutInitializing, "workspace"), bytes);

  Matrix C("C", m, n), G("G", n, n);
  for (int step = 0; step < 3;
       ++step) {  // both on one instance, so one after the other: they may share the buffer
    product.execute(exec, 1.0, A, B, 0.0, C, buffer);
    gram.execute(exec, 1.0, C, C, 0.0, G, buffer);
  }

  KokkosOzaki::GemmOptions capped;
  capped.max_workspace_bytes = product.workspace_bytes() / 2;
  Plan small(KokkosOzaki::ExternalWorkspace{}, exec, 'N', 'N', m, n, k, capped);
  const Buffer small_buffer(Kokkos::view_alloc(Kokkos::WithoutInitializing, "small workspace"),
                            small.workspace_bytes());
  Matrix C_small("C_small", m, n), G_own("G_own", n, n);
  small.execute(exec, 1.0, A, B, 0.0, C_small, small_buffer);

  Matrix C_own("C_own", m, n);
  KokkosOzaki::gemm(exec, "N", "N", 1.0, A, B, 0.0, C_own);  // with the workspace that the library keeps
  KokkosOzaki::gemm(exec, "T", "N", 1.0, C_own, C_own, 0.0, G_own);
  exec.fence();

  const bool within_cap = small.workspace_bytes() <= capped.max_workspace_bytes;
  const bool same = same_bits(C, C_own) && same_bits(G, G_own) && same_bits(C_small, C_own);
  std::printf("one buffer of %zu bytes for %d x %d x %d and %d x %d x %d; capped: %zu bytes; same bits: %s\n",
              bytes, m, n, k, n, n, m, small.workspace_bytes(), same ? "yes" : "NO");

  // A buffer that is too small is refused before anything is written.
  bool refused = false;
  Matrix untouched("untouched", m, n);
  try {
    product.execute(exec, 1.0, A, B, 0.0, untouched, small_buffer);
  } catch (const KokkosOzaki::WorkspaceError& error) {
    std::printf("%s\n", error.what());
    refused =
        error.needed_bytes() == product.workspace_bytes() && error.got_bytes() == small.workspace_bytes();
  }
  exec.fence();
  return within_cap && same && !is_zero(C) && !is_zero(G) && refused && is_zero(untouched);
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard guard(argc, argv);
  return run() ? 0 : 1;
}
