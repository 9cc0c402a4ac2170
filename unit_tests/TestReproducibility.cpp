// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"
#include "TestMain.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;

/// Inputs that take every path: sizes around tiles and blocks, both bounds, structure, Inf and NaN, a split
/// k.
struct Case {
  std::string name;
  Matrix A, B, C;
  GemmOptions options;
  double alpha, beta;
};

std::vector<Case> make_cases() {
  std::vector<Case> cases;
  const auto add = [&](std::string name, Matrix A, Matrix B, const GemmOptions& options, double alpha = 1.0,
                       double beta = 0.0) {
    Matrix C = uniform(A.rows(), B.cols(), -1, 1, 99);
    cases.push_back({std::move(name), std::move(A), std::move(B), std::move(C), options, alpha, beta});
  };
  add("default", spread(150, 260, 1.0, 1), spread(260, 140, 1.0, 2), {});
  for (const int s : {2, 5, 9, 14, 16, 17, 20})
    for (const Bound bound : both_bounds)
      add("s" + std::to_string(s) + name_of(bound), spread(67, 300, 2.0, 3), spread(300, 45, 2.0, 4),
          with_moduli(s, bound), -0.75, 1.25);
  Matrix A = uniform(60, 130, -1, 1, 5), B = uniform(130, 70, -1, 1, 6);
  for (std::int64_t l = 0; l < 130; ++l) {
    for (std::int64_t i = 0; i < 60; ++i) A(i, l) *= l % 2 == 0 ? 0x1p+12 : 0x1p-12;
    for (std::int64_t j = 0; j < 70; ++j) B(l, j) *= l % 2 == 0 ? 0x1p-12 : 0x1p+12;
  }
  add("structured", A, B, with_moduli(12, Bound::accurate));
  A(3, 5) = infinity, A(59, 129) = quiet_nan, B(0, 69) = -infinity;
  add("nonfinite", A, B, with_moduli(12, Bound::accurate));
  add("all_exponents", any_exponent(33, 200, -1080, 600, 7), any_exponent(200, 35, -1080, 400, 8),
      with_moduli(16));
  add("truncated", spread(40, 90, 1.0, 9), spread(90, 50, 1.0, 10),
      with_moduli(14, Bound::fast, Rounding::toward_zero));
  add("one_row", spread(1, 5000, 1.0, 11), spread(5000, 90, 1.0, 12), {});
  add("one_column", spread(1000, 70, 1.0, 13), spread(70, 1, 1.0, 14), {});
  add("outer", spread(200, 1, 1.0, 15), spread(1, 130, 1.0, 16), {});
  add("split_k", spread(3, 140001, 1.0, 17), spread(140001, 5, 1.0, 18), with_moduli(9));
  return cases;
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = make_cases();
  return cases;
}

template <class Space>
Matrix run(const Case& item, const GemmOptions& options) {
  return product<Space>(item.A, item.B, options, item.alpha, item.beta, item.C);
}

template <class Space>
Matrix run(const Case& item) {
  return run<Space>(item, item.options);
}

/// FNV-1a over the bits; all NaNs are one.
std::uint64_t hash_of(const Matrix& x) {
  std::uint64_t hash = 14695981039346656037u;
  for (std::int64_t j = 0; j < x.cols(); ++j)
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      const std::uint64_t bits = std::isnan(x(i, j)) ? bits_of(quiet_nan) : bits_of(x(i, j));
      for (int byte = 0; byte < 8; ++byte) hash = (hash ^ (bits >> (8 * byte) & 0xFF)) * 1099511628211u;
    }
  return hash;
}

template <class Space>
void print_hashes_of(const char* backend) {
  for (const Case& item : all_cases()) {
    GemmOptions options = item.options;
    options.backend = backend;
    std::printf("%s %s %s %016llx\n", Space::name(), backend, item.name.c_str(),
                static_cast<unsigned long long>(hash_of(run<Space>(item, options))));
  }
}

template <class... Spaces>
void print_hashes_of_all(::testing::Types<Spaces...>) {
  const auto of_space = [](auto space) {
    using Space = decltype(space);
    for (const char* backend : usable_backends<Space>()) print_hashes_of<Space>(backend);
  };
  (of_space(Spaces{}), ...);
}

// compare_thread_counts.cmake compares the output for several numbers of threads.
const MainOption print_hashes("--print-hashes", [] { print_hashes_of_all(HostSpaces{}); });

template <class Space>
class ReproducibilityTest : public ::testing::Test {};
TYPED_TEST_SUITE(ReproducibilityTest, EnabledSpaces, SpaceNames);

TYPED_TEST(ReproducibilityTest, EverySpaceHasTheSameBits) {
  using First = typename SpacesWithThreads::first;
  for (const Case& item : all_cases())
    EXPECT_TRUE(same_values(run<First>(item), run<TypeParam>(item))) << item.name;
}

TYPED_TEST(ReproducibilityTest, TheCasesDiffer) {
  // A hash that does not look at the data, or cases that all fail, would agree for any number of threads.
  std::set<std::uint64_t> hashes;
  for (const Case& item : all_cases()) hashes.insert(hash_of(run<TypeParam>(item)));
  EXPECT_GE(hashes.size(),
            all_cases().size() - 6);  // finely enough scaled, both bounds may round to the same doubles
}

TYPED_TEST(ReproducibilityTest, AHundredRunsHaveTheSameBits) {
  const Case& item = all_cases().front();
  const Matrix expected = run<TypeParam>(item);
  for (int turn = 0; turn < 100; ++turn) ASSERT_TRUE(same_bits(expected, run<TypeParam>(item))) << turn;
}

TYPED_TEST(ReproducibilityTest, EveryEngineHasTheSameBits) {
  const std::vector<const char*> backends = usable_backends<TypeParam>();
  const std::set<std::string> names(backends.begin(), backends.end());
  EXPECT_EQ(1u, names.count("portable")) << "this one is everywhere";
  if (is_host_space<TypeParam>) {
    EXPECT_EQ(1u, names.count("host-portable")) << "and this one on every host";
  }
  for (const Case& item : all_cases()) {
    const Matrix expected = run<TypeParam>(item);
    for (const char* backend : backends) {
      GemmOptions options = item.options;
      options.backend = backend;
      EXPECT_TRUE(same_values(expected, run<TypeParam>(item, options))) << item.name << " " << backend;
    }
  }
}

TYPED_TEST(ReproducibilityTest, GroupsOfModuliHaveTheSameBits) {
  for (const Case& item : all_cases()) {
    const Matrix expected = run<TypeParam>(item);
    for (const int group : {1, 3, 4, 14, 20, 100}) {
      GemmOptions options = item.options;
      options.moduli_per_group = group;
      EXPECT_TRUE(same_values(expected, run<TypeParam>(item, options))) << item.name << " " << group;
    }
  }
}

TYPED_TEST(ReproducibilityTest, WorkspaceCapsHaveTheSameBits) {
  for (const Case& item : all_cases()) {
    const Matrix expected = run<TypeParam>(item);
    const auto m = item.A.rows(), n = item.B.cols(), k = item.A.cols();
    for (const std::size_t divisor : {2, 5}) {
      GemmOptions options = item.options;
      options.max_workspace_bytes = part_of_workspace<TypeParam>(m, n, k, options, divisor);
      if (GemmPlan<TypeParam, double>::can_run(m, n, k, options)) {
        EXPECT_TRUE(same_values(expected, run<TypeParam>(item, options))) << item.name << " 1/" << divisor;
      }
    }
  }
}

TYPED_TEST(ReproducibilityTest, RowMajorResultsAndTransposedProductsHaveTheSameBits) {
  for (const Case& item : all_cases()) {
    const Matrix expected = run<TypeParam>(item);
    const Operand<LayoutLeft> a(item.A);
    const Operand<LayoutRight> b(item.B), c(item.C);
    gemm(TypeParam{}, "N", "N", item.alpha, a.view(), b.view(), item.beta, c.view(), item.options);
    TypeParam{}.fence();
    EXPECT_TRUE(same_values(expected, c.values())) << item.name;
    // C' = B' A'
    const Operand<LayoutLeft> ct(item.C.transposed());
    gemm(TypeParam{}, "T", "T", item.alpha, b.view(), a.view(), item.beta, ct.view(), item.options);
    TypeParam{}.fence();
    EXPECT_TRUE(same_values(expected.transposed(), ct.values())) << item.name;
  }
}

TYPED_TEST(ReproducibilityTest, PermutedRowsAndColumnsHaveTheSameBits) {
  // An entry depends on its row and column only, not on where they are, as long as the fast exponents are
  // taken.
  for (const Case& item : all_cases()) {
    if (item.options.bound == Bound::accurate) continue;
    const auto m = item.A.rows(), n = item.B.cols(), k = item.A.cols();
    Matrix A(m, k), B(k, n), C(m, n);
    const Matrix original = run<TypeParam>(item);
    Matrix expected(m, n);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t l = 0; l < k; ++l) A(i, l) = item.A(m - 1 - i, l);
      for (std::int64_t j = 0; j < n; ++j)
        C(i, j) = item.C(m - 1 - i, n - 1 - j), expected(i, j) = original(m - 1 - i, n - 1 - j);
    }
    for (std::int64_t l = 0; l < k; ++l)
      for (std::int64_t j = 0; j < n; ++j) B(l, j) = item.B(l, n - 1 - j);
    EXPECT_TRUE(same_values(expected, product<TypeParam>(A, B, item.options, item.alpha, item.beta, C)))
        << item.name;
  }
}

TYPED_TEST(ReproducibilityTest, PaddingTheInnerDimensionWithZerosIsInvisible) {
  // as long as k stays within one power of two, which the guard looks at
  const Matrix A = spread(20, 300, 1.0, 31), B = spread(300, 20, 1.0, 32);
  Matrix padded_A(20, 511, 0.0), padded_B(511, 20, 0.0);
  for (std::int64_t l = 0; l < 300; ++l)
    for (std::int64_t i = 0; i < 20; ++i) padded_A(i, l) = A(i, l), padded_B(l, i) = B(l, i);
  for (const int s : {3, 14, 17})
    EXPECT_TRUE(same_bits(product<TypeParam>(A, B, with_moduli(s)),
                          product<TypeParam>(padded_A, padded_B, with_moduli(s))))
        << s;
}

}  // namespace
}  // namespace KokkosOzaki::Testing
