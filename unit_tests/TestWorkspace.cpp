// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;

template <class Space>
class WorkspaceTest : public ::testing::Test {};
TYPED_TEST_SUITE(WorkspaceTest, EnabledSpaces, SpaceNames);

template <class Space>
using Plan = GemmPlan<Space, double>;

std::int64_t padded(std::int64_t size) {
  return (size + 63) / 64 * 64;
}

/// The bytes that the documentation promises for one group of one modulus: INT8 residues of both operands,
/// INT32 products and INT8 residues of the result, 64 bytes for each row and column, 1 MiB; and what the
/// engine needs.
std::size_t promised_bytes(std::int64_t s, std::int64_t m, std::int64_t n, std::int64_t k) {
  const std::int64_t pm = padded(m), pn = padded(n), pk = padded(k);
  return static_cast<std::size_t>(s * (pm * pk + pk * pn) + (4 + s) * pm * pn + 64 * (pm + pn) + (1 << 20));
}

TYPED_TEST(WorkspaceTest, IsAsLargeAsPromised) {
  const std::vector<std::int64_t> sizes = {1,   2,   16,  17,   63,   64,    65,
                                           100, 129, 500, 1000, 2048, 10000, 100000};
  for (const char* backend : usable_backends<TypeParam>()) {
    const std::size_t of_engine = engine_bytes<TypeParam>(backend);
    for (const int s : {4, 14, 20})
      for (const Bound bound : both_bounds)
        for (const std::int64_t m : sizes)
          for (const std::int64_t n : sizes)
            for (const std::int64_t k : sizes) {
              GemmOptions options = with_moduli(s, bound);
              options.backend = backend;
              options.moduli_per_group = 1;
              if ((m + n + k) % 7 != 0 && std::max({m, n, k}) > 2048) continue;  // a share of the largest
              ASSERT_LE(Plan<TypeParam>::workspace_bytes(m, n, k, options),
                        promised_bytes(s, m, n, k) + of_engine)
                  << backend << " s=" << s << " " << name_of(bound) << " " << m << "x" << n << "x" << k;
            }
  }
  // k in blocks: no more than for the largest block
  GemmOptions options = with_moduli(14);
  options.moduli_per_group = 1;
  EXPECT_LE(Plan<TypeParam>::workspace_bytes(100, 100, 1 << 20, options),
            promised_bytes(14, 100, 100, 131008) + engine_bytes<TypeParam>());
}

TYPED_TEST(WorkspaceTest, GroupsOfModuliNeedMore) {
  std::size_t previous = 0;
  for (const int group : {1, 2, 5, 14}) {
    GemmOptions options = with_moduli(14);
    options.backend = "portable";  // an engine that reduces stores no products
    options.moduli_per_group = group;
    const std::size_t bytes = Plan<TypeParam>::workspace_bytes(100, 100, 100, options);
    EXPECT_GT(bytes, previous);
    previous = bytes;
  }
  GemmOptions all = with_moduli(14), more = with_moduli(14);
  all.backend = more.backend = "portable";
  all.moduli_per_group = 14, more.moduli_per_group = 1000;
  EXPECT_EQ(Plan<TypeParam>::workspace_bytes(100, 100, 100, all),
            Plan<TypeParam>::workspace_bytes(100, 100, 100, more));
}

/// The smallest cap that is accepted.
template <class Space>
std::size_t smallest_cap(std::int64_t m, std::int64_t n, std::int64_t k, GemmOptions options) {
  options.max_workspace_bytes = 1;
  try {
    Plan<Space>::workspace_bytes(m, n, k, options);
  } catch (const WorkspaceError& error) {
    return error.needed_bytes();
  }
  ADD_FAILURE() << "one byte was enough";
  return 1;
}

TYPED_TEST(WorkspaceTest, EveryCapGivesTheSameBits) {
  const std::int64_t m = 70, n = 53, k = 300;
  const Matrix A = spread(m, k, 1.0, 21), B = spread(k, n, 1.0, 22), C = uniform(m, n, -1, 1, 23);
  for (const auto& [s, bound, group] : {std::tuple<int, Bound, int>{14, Bound::fast, 0},
                                        {14, Bound::accurate, 1},
                                        {8, Bound::accurate, 8},
                                        {17, Bound::fast, 3}}) {
    GemmOptions options = with_moduli(s, bound);
    options.moduli_per_group = group;
    const Matrix expected = product<TypeParam>(A, B, options, 1.0, -0.5, C);
    const std::size_t whole = Plan<TypeParam>::workspace_bytes(m, n, k, options);
    const std::size_t least = smallest_cap<TypeParam>(m, n, k, options);
    ASSERT_LT(least, part_of_workspace<TypeParam>(m, n, k, options, 4));
    std::vector<std::size_t> caps = {least, least + 1, whole - 1, whole, 10 * whole};
    for (std::size_t i = 1; i < 40; ++i) caps.push_back(least + (whole - least) * i / 40);
    for (const std::size_t cap : caps) {
      SCOPED_TRACE("cap " + std::to_string(cap) + " of " + std::to_string(whole) +
                   ", s=" + std::to_string(s));
      options.max_workspace_bytes = cap;
      EXPECT_LE(Plan<TypeParam>::workspace_bytes(m, n, k, options), cap);
      EXPECT_TRUE(same_bits(expected, product<TypeParam>(A, B, options, 1.0, -0.5, C)));
      const Operand<LayoutLeft> a(A.transposed()), b(B.transposed());
      const Operand<LayoutRight> c(C, {1, 3, 1, false});
      Plan<TypeParam> plan(TypeParam{}, 'T', 'C', m, n, k, options);
      EXPECT_LE(plan.workspace_bytes(), cap);
      plan.execute(TypeParam{}, 1.0, a.view(), b.view(), -0.5, c.view());
      TypeParam{}.fence();
      EXPECT_TRUE(same_bits(expected, c.values())) << "row-major C";
      EXPECT_TRUE(c.gaps_are_intact());
    }
  }
}

TYPED_TEST(WorkspaceTest, CapsOfSkinnyProductsGiveTheSameBits) {
  // longer than one chunk record fits, longer than one block of k
  for (const auto& [m, n, k] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{2, 3, 140000}, {1, 700, 5}, {900, 1, 70}}) {
    const Matrix A = spread(m, k, 1.0, 31), B = spread(k, n, 1.0, 32);
    for (const Bound bound : both_bounds) {
      GemmOptions options = with_moduli(6, bound);
      const Matrix expected = product<TypeParam>(A, B, options);
      const std::size_t least = smallest_cap<TypeParam>(m, n, k, options),
                        whole = Plan<TypeParam>::workspace_bytes(m, n, k, options);
      for (const std::size_t cap : {least, (least + whole) / 2, least + (whole - least) / 10}) {
        options.max_workspace_bytes = cap;
        EXPECT_TRUE(same_bits(expected, product<TypeParam>(A, B, options)))
            << m << "x" << n << "x" << k << " cap " << cap;
      }
    }
  }
}

TYPED_TEST(WorkspaceTest, ACapBelowTheSmallestBlockIsRefused) {
  const std::int64_t m = 70, n = 53, k = 300;
  const Operand<LayoutLeft> a(uniform(m, k, -1, 1, 1)), b(uniform(k, n, -1, 1, 2)),
      c(uniform(m, n, -1, 1, 3));
  const Matrix before = c.values();
  GemmOptions options = with_moduli(14);
  const std::size_t least = smallest_cap<TypeParam>(m, n, k, options);
  for (const std::size_t cap : {std::size_t{1}, std::size_t{63}, least / 2, least - 1}) {
    options.max_workspace_bytes = cap;
    const std::string message = "KokkosOzaki: max_workspace_bytes is " + std::to_string(cap) +
                                ", the smallest block of this product (m=70, n=53, k=300, 14 moduli) needs " +
                                std::to_string(least);
    const auto expect_error = [&](const auto& call) {
      try {
        call();
        ADD_FAILURE() << "nothing was thrown for a cap of " << cap;
      } catch (const WorkspaceError& error) {
        EXPECT_EQ(message, std::string(error.what()).substr(0, message.size()));
        EXPECT_EQ(least, error.needed_bytes());
        EXPECT_EQ(cap, error.got_bytes());
      }
    };
    expect_error([&] { gemm(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.5, c.view(), options); });
    expect_error([&] { Plan<TypeParam>(TypeParam{}, 'N', 'N', m, n, k, options); });
    expect_error([&] { static_cast<void>(Plan<TypeParam>::workspace_bytes(m, n, k, options)); });
    EXPECT_FALSE(Plan<TypeParam>::can_run(m, n, k, options));
    EXPECT_TRUE(same_bits(before, c.values()));
  }
  options.max_workspace_bytes = least;
  EXPECT_TRUE(Plan<TypeParam>::can_run(m, n, k, options));
  EXPECT_LE(Plan<TypeParam>::workspace_bytes(m, n, k, options), least);
}

TYPED_TEST(WorkspaceTest, GemmKeepsItsWorkspaceForCallsOfAnySize) {
  const Matrix A = uniform(130, 210, -1, 1, 41), B = uniform(210, 120, -1, 1, 42);
  const Matrix small_A = uniform(6, 5, -1, 1, 43), small_B = uniform(5, 7, -1, 1, 44);
  Plan<TypeParam> large(TypeParam{}, 'N', 'N', 130, 120, 210), small(TypeParam{}, 'N', 'N', 6, 7, 5);
  const auto run = [](Plan<TypeParam>& plan, const Matrix& X, const Matrix& Y) {
    const Operand<LayoutLeft> x(X), y(Y), c(Matrix(X.rows(), Y.cols(), poison()));
    plan.execute(TypeParam{}, 1.0, x.view(), y.view(), 0.0, c.view());
    TypeParam{}.fence();
    return c.values();
  };
  const Matrix expected = run(large, A, B), small_expected = run(small, small_A, small_B);
  release_workspaces();
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_TRUE(same_bits(small_expected, product<TypeParam>(small_A, small_B)));
    EXPECT_TRUE(same_bits(expected, product<TypeParam>(A, B)));
    EXPECT_TRUE(same_bits(small_expected, product<TypeParam>(small_A, small_B)));
    if (turn == 1) release_workspaces();
  }
  release_workspaces();
  release_workspaces();  // with nothing to give back
  EXPECT_TRUE(same_bits(expected, product<TypeParam>(A, B)));
}

}  // namespace
}  // namespace KokkosOzaki::Testing
