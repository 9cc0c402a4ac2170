// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Two products in flight on two execution space instances: a plan serves one call at a time, so each instance
// has its own. Nothing waits until the results are needed. (Instances made as here share the device's default
// queue; an application passes those it has, from Kokkos::Experimental::partition_space or around its own
// streams.)

#include <KokkosOzaki.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>

namespace {

using ExecutionSpace = Kokkos::DefaultExecutionSpace;
using Matrix = Kokkos::View<double**, Kokkos::LayoutLeft, ExecutionSpace::memory_space>;
using Plan = KokkosOzaki::GemmPlan<ExecutionSpace, double>;

Matrix make_matrix(const std::string& label, int rows, int cols, double seed) {
  Matrix matrix(label, static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
  const auto host = Kokkos::create_mirror_view(matrix);
  for (int j = 0; j < cols; ++j)
    for (int i = 0; i < rows; ++i) host(i, j) = std::sin(seed + i + 0.7 * j * (1.0 + i % 5));
  Kokkos::deep_copy(matrix, host);
  return matrix;
}

// Entries whose bits differ.
int count_different(const Matrix& X, const Matrix& Y) {
  const auto X_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), X);
  const auto Y_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), Y);
  int different = 0;
  for (std::size_t j = 0; j < X.extent(1); ++j)
    for (std::size_t i = 0; i < X.extent(0); ++i)
      if (std::memcmp(&X_host(i, j), &Y_host(i, j), sizeof(double)) != 0) ++different;
  return different;
}

bool run() {
  const int m = 200, n = 150, k = 300, rounds = 5;
  const ExecutionSpace first, second;
  const Matrix A = make_matrix("A", m, k, 1.0), B = make_matrix("B", k, n, 2.0),
               D = make_matrix("D", n, k, 3.0);

  // One after the other, with a fence between: the reference.
  Matrix AB("AB", m, n), AD("AD", m, n);
  KokkosOzaki::gemm(first, "N", "N", 1.0, A, B, 0.0, AB);
  first.fence();
  KokkosOzaki::gemm(first, "N", "T", 1.0, A, D, 0.0, AD);
  first.fence();

  Plan first_plan(first, 'N', 'N', m, n, k), second_plan(second, 'N', 'T', m, n, k);
  int different = 0;
  for (int round = 0; round < rounds; ++round) {
    Matrix C("C", m, n), E("E", m, n);
    first_plan.execute(first, 1.0, A, B, 0.0, C);  // enqueued, not waited for
    second_plan.execute(second, 1.0, A, D, 0.0, E);
    first.fence();
    second.fence();
    different += count_different(C, AB) + count_different(E, AD);
  }
  // The two references are not the same matrix, so mixed-up results would have been seen.
  const bool distinct = count_different(AB, AD) == m * n;
  std::printf(
      "%d rounds of two products of %d x %d x %d on two instances: %d of %d entries differ from one at a "
      "time\n",
      rounds, m, n, k, different, 2 * rounds * m * n);
  return different == 0 && distinct;
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard guard(argc, argv);
  return run() ? 0 : 1;
}
