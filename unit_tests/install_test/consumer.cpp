// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>

#include <Kokkos_Core.hpp>

#include <cstdio>

// A consumer's program: small integers, so the product must be exact.
int main() {
  Kokkos::initialize();
  int wrong = 0;
  {
    const int m = 5, n = 4, k = 7;
    Kokkos::View<double**, Kokkos::HostSpace> A("A", m, k), B("B", k, n), C("C", m, n);
    for (int l = 0; l < k; ++l) {
      for (int i = 0; i < m; ++i) A(i, l) = i - 2 * l;
      for (int j = 0; j < n; ++j) B(l, j) = 3 * l + j;
    }
    KokkosOzaki::gemm("N", "N", 1.0, A, B, 0.0, C);
    Kokkos::fence();
    for (int i = 0; i < m; ++i) {
      for (int j = 0; j < n; ++j) {
        double expected = 0;
        for (int l = 0; l < k; ++l) expected += double(i - 2 * l) * double(3 * l + j);
        if (C(i, j) != expected) {
          std::printf("C(%d,%d) = %.17g, expected %.17g\n", i, j, C(i, j), expected);
          ++wrong;
        }
      }
    }
    KokkosOzaki::release_workspaces();
  }
  Kokkos::finalize();
  std::printf("%d wrong entries\n", wrong);
  return wrong == 0 ? 0 : 1;
}
