// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The shortest program: C := A * B, called like KokkosBlas::gemm, and compared with the plain triple loop.

#include <KokkosOzaki.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace {

using Matrix = Kokkos::View<double**, Kokkos::LayoutLeft>;

double multiply_and_compare(int m, int n, int k) {
  Matrix A("A", m, k), B("B", k, n), C("C", m, n);
  const auto A_host = Kokkos::create_mirror_view(A), B_host = Kokkos::create_mirror_view(B);
  for (int l = 0; l < k; ++l) {
    for (int i = 0; i < m; ++i) A_host(i, l) = std::sin(1.0 + i + 7.0 * l);
    for (int j = 0; j < n; ++j) B_host(l, j) = std::cos(2.0 + 3.0 * l + 5.0 * j);
  }
  Kokkos::deep_copy(A, A_host);
  Kokkos::deep_copy(B, B_host);

  KokkosOzaki::gemm("N", "N", 1.0, A, B, 0.0, C);
  Kokkos::fence();

  const auto C_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), C);
  double largest = 0.0;  // |C - loop| / (|A||B|)
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0.0, absolute = 0.0;
      for (int l = 0; l < k; ++l) {
        sum += A_host(i, l) * B_host(l, j);
        absolute += std::abs(A_host(i, l) * B_host(l, j));
      }
      const double difference = std::abs(C_host(i, j) - sum) / absolute;
      largest = std::isnan(difference) ? difference : std::max(largest, difference);
      if (std::isnan(largest)) return largest;
    }
  return largest;
}

}  // namespace

int main(int argc, char* argv[]) {
  Kokkos::ScopeGuard guard(argc, argv);
  const int m = 300, n = 200, k = 500;
  const double difference = multiply_and_compare(m, n, k);
  // The loop's own rounding is at most k u |A||B|; that of gemm is far smaller for entries of similar size.
  const double allowed = k * std::numeric_limits<double>::epsilon() / 2.0;
  std::printf("%d x %d x %d: difference from the plain loop at most %.1e of |A||B|, allowed %.1e\n", m, n, k,
              difference, allowed);
  return difference <= allowed ? 0 : 1;
}
