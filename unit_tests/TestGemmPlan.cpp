// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ErrorBounds.hpp"
#include "HostViews.hpp"
#include "MatrixGenerators.hpp"
#include "ReferenceGemm.hpp"
#include "Vectors.hpp"

// Allocations that no machine can serve shall throw, also where the sanitizer would rather stop.
#if defined(__SANITIZE_ADDRESS__)
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
#endif

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;

template <class Space>
class GemmPlanTest : public ::testing::Test {};
TYPED_TEST_SUITE(GemmPlanTest, EnabledSpaces, SpaceNames);

template <class Space>
using Plan = GemmPlan<Space, double>;

template <class Space>
Matrix execute(Plan<Space>& plan, const Matrix& A, const Matrix& B) {
  const Operand<LayoutLeft> a(A), b(B), c(Matrix(A.rows(), B.cols(), poison()));
  plan.execute(Space{}, 1.0, a.view(), b.view(), 0.0, c.view());
  Space{}.fence();
  return c.values();
}

/// Columns of A that are large where rows of B are small: the accurate bound finds finer exponents.
void make_structured(Matrix& A, Matrix& B) {
  for (std::int64_t l = 0; l < A.cols(); ++l) {
    for (std::int64_t i = 0; i < A.rows(); ++i) A(i, l) *= l % 2 == 0 ? 0x1p+10 : 0x1p-10;
    for (std::int64_t j = 0; j < B.cols(); ++j) B(l, j) *= l % 2 == 0 ? 0x1p-10 : 0x1p+10;
  }
}

TYPED_TEST(GemmPlanTest, IsMovableOnly) {
  static_assert(!std::is_copy_constructible_v<Plan<TypeParam>> &&
                !std::is_copy_assignable_v<Plan<TypeParam>>);
  static_assert(std::is_nothrow_move_constructible_v<Plan<TypeParam>> &&
                std::is_nothrow_move_assignable_v<Plan<TypeParam>>);
  const Matrix A = uniform(9, 30, -1, 1, 1), B = uniform(30, 8, -1, 1, 2);
  const Matrix expected = product<TypeParam>(A, B);
  Plan<TypeParam> first(TypeParam{}, 'N', 'N', 9, 8, 30);
  EXPECT_TRUE(same_bits(expected, execute(first, A, B)));
  Plan<TypeParam> second(std::move(first));
  EXPECT_TRUE(same_bits(expected, execute(second, A, B)));
  Plan<TypeParam> other(TypeParam{}, 'N', 'N', 2, 3, 4, with_moduli(5));
  other = std::move(second);
  EXPECT_TRUE(same_bits(expected, execute(other, A, B)));
  EXPECT_EQ(14, other.report().num_moduli);
  std::vector<Plan<TypeParam>> plans;
  for (int s = 2; s <= 20; ++s) plans.emplace_back(TypeParam{}, 'N', 'N', 9, 8, 30, with_moduli(s));
  for (int s = 2; s <= 20; ++s)
    EXPECT_TRUE(same_bits(product<TypeParam>(A, B, with_moduli(s)),
                          execute(plans[static_cast<std::size_t>(s - 2)], A, B)));
}

TYPED_TEST(GemmPlanTest, ServesAnyNumberOfCalls) {
  Plan<TypeParam> plan(TypeParam{}, 'N', 'N', 21, 19, 200, with_moduli(14, Bound::accurate));
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Matrix A = spread(21, 200, 1.0, seed), B = spread(200, 19, 1.0, seed + 100);
    if (seed % 2 == 1) make_structured(A, B);
    if (seed % 3 == 1) A(5, 7) = quiet_nan, B(9, 3) = infinity;  // leaves no trace in the next call
    EXPECT_TRUE(same_values(product<TypeParam>(A, B, with_moduli(14, Bound::accurate)), execute(plan, A, B)))
        << seed;
  }
}

TYPED_TEST(GemmPlanTest, AppliesAlphaBetaAndTransposition) {
  const Matrix A = uniform(9, 30, -1, 1, 1), B = uniform(30, 8, -1, 1, 2), C = uniform(9, 8, -1, 1, 3);
  for (const char transA : {'N', 'T', 'C', 'n', 't', 'c'})
    for (const char transB : {'N', 'T', 'C'}) {
      Plan<TypeParam> plan(TypeParam{}, transA, transB, 9, 8, 30);
      const bool turned = transA != 'N' && transA != 'n';
      const Operand<LayoutRight> a(turned ? A.transposed() : A);
      const Operand<LayoutLeft> b(stored(B, transB));
      for (const auto& [alpha, beta] :
           {std::pair<double, double>{1, 0}, {-2.5, 0}, {1, 1}, {0.3, -0.7}, {0, 1}, {0, 0}, {0, 2}}) {
        const Operand<LayoutLeft> c(beta == 0 ? Matrix(9, 8, poison()) : C, {1, 3, 1, false});
        plan.execute(TypeParam{}, alpha, a.view(), b.view(), beta, c.view());
        TypeParam{}.fence();
        EXPECT_TRUE(same_bits(product<TypeParam>(A, B, {}, alpha, beta, C), c.values()))
            << alpha << " " << beta;
        EXPECT_TRUE(c.gaps_are_intact());
      }
    }
}

TYPED_TEST(GemmPlanTest, EmptySizesNeedNothing) {
  for (const Method method : {Method::emulated, Method::native, Method::automatic})
    for (const auto& [m, n, k] :
         {std::tuple<std::int64_t, std::int64_t, std::int64_t>{0, 5, 5}, {5, 0, 5}, {5, 4, 0}, {0, 0, 0}}) {
      GemmOptions options;
      options.method = method;
      EXPECT_TRUE(Plan<TypeParam>::can_run(m, n, k, options));
      EXPECT_EQ(0u, Plan<TypeParam>::workspace_bytes(m, n, k, options));
      Plan<TypeParam> plan(TypeParam{}, 'N', 'N', m, n, k, options);
      EXPECT_EQ(0u, plan.workspace_bytes());
      EXPECT_EQ(method == Method::native ? Method::native : Method::emulated, plan.report().method);
      const Operand<LayoutLeft> a(Matrix(m, k, quiet_nan)), b(Matrix(k, n, quiet_nan)), c(Matrix(m, n, 3.0));
      plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 2.0, c.view());
      TypeParam{}.fence();
      EXPECT_TRUE(same_bits(Matrix(m, n, 6.0), c.values()));
      plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.0, c.view());
      TypeParam{}.fence();
      EXPECT_TRUE(same_bits(Matrix(m, n, 0.0), c.values()));
    }
}

TYPED_TEST(GemmPlanTest, CanRunWhatTheConstructorTakes) {
  int accepted = 0, refused = 0;
  const auto check = [&](std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options) {
    bool constructed = true;
    try {
      Plan<TypeParam>(ExternalWorkspace{}, TypeParam{}, 'N', 'N', m, n, k, options);
    } catch (const std::invalid_argument&) {
      constructed = false;
    } catch (const WorkspaceError&) {
      constructed = false;
    }
    EXPECT_EQ(constructed, Plan<TypeParam>::can_run(m, n, k, options))
        << m << "x" << n << "x" << k << " s=" << options.num_moduli << " cap=" << options.max_workspace_bytes;
    ++(constructed ? accepted : refused);
  };
  for (const int s : {-1, 0, 1, 2, 3, 4, 14, 20, 21})
    for (const std::int64_t k : {-1, 0, 1, 1024, 1025, 1 << 18, (1 << 18) + 1})
      check(3, 5, k, with_moduli(s));
  for (const std::int64_t bad : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min()}) {
    check(bad, 5, 5, {});
    check(5, bad, 5, {});
    check(5, 5, bad, {});
  }
  for (const std::size_t cap : {1, 1000, 10000, 100000, 1000000}) {
    GemmOptions options;
    options.max_workspace_bytes = cap;
    check(200, 300, 400, options);
  }
  for (const double c : {1e-30, 0.01, 1.0, 1e30, -1.0, 0.0}) {
    GemmOptions options;
    options.accuracy = Accuracy::normwise(c);
    check(3, 5, 1000, options);
  }
  for (const char* name : {"portable", "no such engine"}) {
    GemmOptions options;
    options.backend = name;
    check(3, 5, 1000, options);
    check(0, 5, 1000, options);
  }
  // an empty product is content with any cap, number of moduli and accuracy
  for (const auto& [m, n, k] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{0, 5, 5000}, {5, 0, 1 << 30}, {5, 4, 0}})
    for (const int s : {0, 2, 3})
      for (const std::size_t cap : {0, 1})
        for (const double c : {1e-320, 1.0}) {
          GemmOptions options = with_moduli(s);
          options.max_workspace_bytes = cap;
          options.accuracy = Accuracy::normwise(c);
          check(m, n, k, options);
          EXPECT_TRUE(Plan<TypeParam>::can_run(m, n, k, options));
        }
  EXPECT_GT(accepted, 20);
  EXPECT_GT(refused, 20);
}

TYPED_TEST(GemmPlanTest, WorkspaceBytesAreTheSameBeforeAndAfter) {
  for (const auto& [m, n, k] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 1, 1},
                                {100, 7, 33},
                                {63, 65, 1000},
                                {2, 2, 200000}})
    for (const Bound bound : both_bounds)
      for (const int s : {4, 14, 20})
        for (const int group : {0, 1, 3, 20}) {
          GemmOptions options = with_moduli(s, bound);
          options.moduli_per_group = group;
          const std::size_t bytes = Plan<TypeParam>::workspace_bytes(m, n, k, options);
          EXPECT_GT(bytes, 0u);
          const char trans = group == 3 ? 'T' : 'N';
          EXPECT_EQ(bytes, Plan<TypeParam>(ExternalWorkspace{}, TypeParam{}, trans, 'N', m, n, k, options)
                               .workspace_bytes());
        }
}

// ---- the report -------------------------------------------------------------------------------------

TYPED_TEST(GemmPlanTest, ReportsTheNumberOfModuliOfTheNormwiseAccuracy) {
  GemmOptions options;
  options.accuracy = Accuracy::normwise();
  for (const std::int64_t k : {1, 2, 100, 4096, 131008, 1 << 17}) {
    const Plan<TypeParam> plan(ExternalWorkspace{}, TypeParam{}, 'N', 'N', 1, 1, k, options);
    const GemmReport report = plan.report();
    EXPECT_EQ(14, report.num_moduli) << k;
    EXPECT_EQ(Bound::fast, report.bound_used);
    EXPECT_GT(report.error_bound, 0.0);
    EXPECT_LE(report.error_bound, std::sqrt(static_cast<double>(k))) << "normwise(): c = sqrt(k)";
  }
}

TYPED_TEST(GemmPlanTest, ReportsTheEngine) {
  for (const char* name : usable_backends<TypeParam>()) {
    GemmOptions options;
    options.backend = name;
    const Plan<TypeParam> plan(TypeParam{}, 'N', 'N', 4, 4, 4, options);
    EXPECT_STREQ(name, plan.backend_name());
    EXPECT_STREQ(name, plan.report().backend);
  }
  const std::vector<const char*> usable = usable_backends<TypeParam>();
  const std::string best = Plan<TypeParam>(TypeParam{}, 'N', 'N', 4, 4, 4).backend_name();
  EXPECT_NE(std::find(usable.begin(), usable.end(), best), usable.end()) << best;
}

TYPED_TEST(GemmPlanTest, ReportsTheBoundThatWasUsed) {
  Matrix A = uniform(20, 64, -1, 1, 4), B = uniform(64, 15, -1, 1, 5);
  const Matrix flat_A = A, flat_B = B;
  make_structured(A, B);
  for (const int s : {8, 14, 18}) {
    Plan<TypeParam> fast(TypeParam{}, 'N', 'N', 20, 15, 64, with_moduli(s)),
        accurate(TypeParam{}, 'N', 'N', 20, 15, 64, with_moduli(s, Bound::accurate));
    execute(fast, A, B);
    EXPECT_EQ(Bound::fast, fast.report().bound_used);
    execute(accurate, A, B);
    EXPECT_EQ(Bound::accurate, accurate.report().bound_used) << "large entries that never meet";
    // the other data through the same plan: the report is that of the last call
    execute(accurate, flat_A, flat_B);
    const bool candidates = ExponentModel(flat_A, flat_B).exponents(s, Bound::accurate).candidates;
    EXPECT_EQ(candidates ? Bound::accurate : Bound::fast, accurate.report().bound_used);
    execute(accurate, A, B);
    EXPECT_EQ(Bound::accurate, accurate.report().bound_used);
    // all-positive equal entries: the norms are attained, the quantised bound can only be coarser
    execute(accurate, Matrix(20, 64, 1.0), Matrix(64, 15, 1.0));
    EXPECT_EQ(
        ExponentModel(Matrix(20, 64, 1.0), Matrix(64, 15, 1.0)).exponents(s, Bound::accurate).candidates,
        accurate.report().bound_used == Bound::accurate);
  }
  // where the accurate bound does not apply the fast one is reported at once
  EXPECT_EQ(Bound::fast, Plan<TypeParam>(ExternalWorkspace{}, TypeParam{}, 'N', 'N', 3, 3, 131009,
                                         with_moduli(14, Bound::accurate))
                             .report()
                             .bound_used);
  EXPECT_EQ(Bound::fast, Plan<TypeParam>(ExternalWorkspace{}, TypeParam{}, 'N', 'N', 3, 3, 1000,
                                         with_moduli(3, Bound::accurate))
                             .report()
                             .bound_used);
}

TYPED_TEST(GemmPlanTest, ReportedErrorBoundFallsWithEveryModulus) {
  for (const std::int64_t k : {std::int64_t{1}, std::int64_t{100}, std::int64_t{1} << 18})
    for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero}) {
      double previous = std::numeric_limits<double>::infinity();
      for (int s = fewest_moduli(k); s <= 20; ++s) {
        const double c = Plan<TypeParam>(ExternalWorkspace{}, TypeParam{}, 'N', 'N', 2, 2, k,
                                         with_moduli(s, Bound::fast, rounding))
                             .report()
                             .error_bound;
        EXPECT_LT(c, previous / 8) << "s=" << s << " k=" << k;
        previous = c;
      }
    }
}

/// The number of moduli that an accuracy selects; 0 where the constructor refuses.
template <class Space>
int selected(std::int64_t k, const Accuracy& accuracy, Rounding rounding = Rounding::nearest_even) {
  GemmOptions options;
  options.accuracy = accuracy;
  options.rounding = rounding;
  try {
    const Plan<Space> plan(ExternalWorkspace{}, Space{}, 'N', 'N', 1, 1, k, options);
    return plan.report().num_moduli;
  } catch (const std::invalid_argument&) {
    return 0;
  }
}

int number_or_zero(const nlohmann::json& entry) {
  return entry.is_null() ? 0 : entry.get<int>();
}

TYPED_TEST(GemmPlanTest, SelectsTheSpecifiedNumberOfModuli) {
  int used = 0;
  for (const nlohmann::json& item : read_vectors_file("selection")) {
    if (item.at("kind") != "normwise") continue;
    const std::int64_t k = item.at("k");
    SCOPED_TRACE(item.dump());
    if (item.contains("u_bits")) {
      if (item.at("u_bits") != 53) continue;
      EXPECT_EQ(number_or_zero(item.at("s_c1")), selected<TypeParam>(k, Accuracy::normwise(1.0)));
      EXPECT_EQ(number_or_zero(item.at("s_root")),
                selected<TypeParam>(k, Accuracy::normwise(item.at("c_root").get<double>())));
      EXPECT_EQ(number_or_zero(item.at("s_k")),
                selected<TypeParam>(k, Accuracy::normwise(static_cast<double>(k))));
    } else if (item.contains("c_square")) {
      if (item.at("c_square") != k) continue;
      EXPECT_EQ(number_or_zero(item.at("s").at("53")), selected<TypeParam>(k, Accuracy::normwise()));
      EXPECT_EQ(number_or_zero(item.at("s_toward_zero").at("53")),
                selected<TypeParam>(k, Accuracy::normwise(), Rounding::toward_zero));
    } else {
      const double c = item.at("c_num").get<double>() / item.at("c_den").get<double>();
      EXPECT_EQ(number_or_zero(item.at("s").at("53")), selected<TypeParam>(k, Accuracy::normwise(c)));
    }
    ++used;
  }
  EXPECT_GT(used, 20);
}

TYPED_TEST(GemmPlanTest, SelectedModuliKeepThePromise) {
  // the classical constant k: 14 moduli up to 82, 13 up to 17971, then 12
  EXPECT_EQ(14, selected<TypeParam>(82, Accuracy::normwise(82.0)));
  EXPECT_EQ(13, selected<TypeParam>(83, Accuracy::normwise(83.0)));
  EXPECT_EQ(13, selected<TypeParam>(17971, Accuracy::normwise(17971.0)));
  EXPECT_EQ(12, selected<TypeParam>(17972, Accuracy::normwise(17972.0)));
  EXPECT_EQ(0, selected<TypeParam>(1000, Accuracy::normwise(1e-30))) << "out of reach of 20 moduli";
  for (const double c : {1e-5, 0.3, 1.0, 30.0, 1e6, 1e12}) {
    GemmOptions options;
    options.accuracy = Accuracy::normwise(c);
    const Matrix A = uniform(8, 900, -1, 1, 6), B = uniform(900, 8, -1, 1, 7);
    const ReferenceProduct reference = reference_gemm(A, B);
    EXPECT_TRUE(within(reference, product<TypeParam>(A, B, options), [&](std::int64_t i, std::int64_t j) {
      return normwise_bound(reference, c, i, j);
    })) << c;
  }
}

// ---- the caller's memory ----------------------------------------------------------------------------

template <class T, class Space>
using Buffer = Kokkos::View<T*, Shared<Space>>;

TYPED_TEST(GemmPlanTest, RunsInTheCallersBuffer) {
  const Matrix A = spread(30, 150, 1.0, 8), B = spread(150, 20, 1.0, 9);
  for (const Bound bound : both_bounds) {
    const Matrix expected = product<TypeParam>(A, B, with_moduli(15, bound));
    Plan<TypeParam> plan(ExternalWorkspace{}, TypeParam{}, 'N', 'N', 30, 20, 150, with_moduli(15, bound));
    const std::size_t bytes = plan.workspace_bytes();
    const Operand<LayoutLeft> a(A), b(B);
    const auto check = [&](const auto& buffer) {
      for (const bool row_major : {false, true}) {
        Matrix got;
        if (row_major) {
          const Operand<LayoutRight> c(Matrix(30, 20, poison()));
          plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.0, c.view(), buffer);
          TypeParam{}.fence();
          got = c.values();
        } else {
          const Operand<LayoutLeft> c(Matrix(30, 20, poison()));
          plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.0, c.view(), buffer);
          TypeParam{}.fence();
          got = c.values();
        }
        EXPECT_TRUE(same_bits(expected, got));
      }
    };
    // exactly as large as asked for at every alignment, with guards around it
    constexpr std::size_t guard = 128;
    const Buffer<char, TypeParam> memory("memory", bytes + 2 * guard);
    for (std::size_t shift = 0; shift < 64; shift += 7) {
      Kokkos::deep_copy(memory, static_cast<char>(0x5A));
      check(Buffer<char, TypeParam>(
          Kokkos::subview(memory, std::make_pair(guard + shift, guard + shift + bytes))));
      for (std::size_t p = 0; p < guard + shift; ++p) ASSERT_EQ(0x5A, memory(p)) << p;
      for (std::size_t p = guard + shift + bytes; p < bytes + 2 * guard; ++p) ASSERT_EQ(0x5A, memory(p)) << p;
    }
    check(Buffer<char, TypeParam>("larger", 2 * bytes + 12345));
    check(Buffer<double, TypeParam>("doubles", bytes / sizeof(double) + 1));
    check(Kokkos::View<std::int32_t*, LayoutRight, SharedSpace, Kokkos::MemoryUnmanaged>(
        reinterpret_cast<std::int32_t*>(memory.data()), bytes / 4 + 1));
  }
}

TYPED_TEST(GemmPlanTest, RefusesABufferThatIsTooSmall) {
  Plan<TypeParam> plan(ExternalWorkspace{}, TypeParam{}, 'N', 'N', 30, 20, 150);
  const std::size_t bytes = plan.workspace_bytes();
  const Operand<LayoutLeft> a(uniform(30, 150, -1, 1, 8)), b(uniform(150, 20, -1, 1, 9)),
      c(uniform(30, 20, -1, 1, 10));
  const Matrix before = c.values();
  const auto expect_error = [&](std::size_t got, const auto& call) {
    try {
      call();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const WorkspaceError& error) {
      EXPECT_EQ("KokkosOzaki::GemmPlan::execute: the workspace must have " + std::to_string(bytes) +
                    " contiguous bytes, got " + std::to_string(got) + ".",
                std::string(error.what()));
      EXPECT_EQ(bytes, error.needed_bytes());
      EXPECT_EQ(got, error.got_bytes());
    }
    EXPECT_TRUE(same_bits(before, c.values()));
  };
  for (const std::size_t got : {bytes - 1, bytes / 2, std::size_t{1}})
    expect_error(got, [&] {
      plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.5, c.view(),
                   Buffer<char, TypeParam>("buffer", got));
    });
  expect_error(0, [&] {
    plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.5, c.view(), Buffer<char, TypeParam>());
  });
  expect_error(0, [&] { plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.5, c.view()); });
  // long enough, but not contiguous
  const Kokkos::View<char**, LayoutLeft, Shared<TypeParam>> wide("wide", 2, bytes);
  expect_error(0, [&] {
    plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.5, c.view(), Kokkos::subview(wide, 1, Kokkos::ALL));
  });
  // what needs no workspace takes any buffer
  plan.execute(TypeParam{}, 0.0, a.view(), b.view(), 1.0, c.view(), Buffer<char, TypeParam>());
  plan.execute(TypeParam{}, 0.0, a.view(), b.view(), 1.0, c.view());
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(before, c.values()));
}

TYPED_TEST(GemmPlanTest, APlanWithAWorkspaceTakesABufferToo) {
  const Matrix A = uniform(30, 150, -1, 1, 8), B = uniform(150, 20, -1, 1, 9);
  Plan<TypeParam> plan(TypeParam{}, 'N', 'N', 30, 20, 150);
  const Operand<LayoutLeft> a(A), b(B), c(Matrix(30, 20, poison()));
  plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.0, c.view(),
               Buffer<char, TypeParam>("buffer", plan.workspace_bytes()));
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(product<TypeParam>(A, B), c.values()));
  EXPECT_TRUE(same_bits(product<TypeParam>(A, B), execute(plan, A, B)));
}

// ---- sizes that no machine has memory for -----------------------------------------------------------

TYPED_TEST(GemmPlanTest, AbsurdSizesAreRefused) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t sizes[] = {1,
                                64,
                                std::int64_t{1} << 31,
                                (std::int64_t{1} << 32) + 3,
                                std::int64_t{1} << 40,
                                std::int64_t{1} << 48,
                                std::int64_t{1} << 60,
                                most - 63,
                                most};
  const std::int64_t lengths[] = {1, std::int64_t{1} << 17, (std::int64_t{1} << 32) - 1,
                                  std::int64_t{1} << 40, most};
  const auto needed = [](const auto& call) {
    try {
      return static_cast<double>(call());
    } catch (const std::invalid_argument&) {
    } catch (const WorkspaceError& error) {
      return static_cast<double>(error.needed_bytes());
    }
    return std::numeric_limits<double>::infinity();
  };
  for (const std::int64_t m : sizes)
    for (const std::int64_t n : sizes)
      for (const std::int64_t k : lengths)
        for (const Bound bound : both_bounds)
          for (const int s : {5, 20}) {
            // one byte for each entry of C and s for each position of a block of k
            const double least =
                static_cast<double>(m) * static_cast<double>(n) +
                s * (static_cast<double>(m) + static_cast<double>(n)) * std::min(static_cast<double>(k), 1e5);
            if (least < 0x1p+48) continue;  // the address space of a process
            // On a device C is cut into blocks also without a cap; what is left is still more than one has.
            const double promised = is_host_space<TypeParam> ? least : 0x1p+40;
            SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
            GemmOptions options = with_moduli(s, bound);
            EXPECT_GE(needed([&] { return Plan<TypeParam>::workspace_bytes(m, n, k, options); }), promised);
            EXPECT_GE(needed([&] {
                        const Plan<TypeParam> plan(TypeParam{}, 'N', 'N', m, n, k, options);
                        ADD_FAILURE() << "the constructor found " << plan.workspace_bytes() << " bytes";
                        return plan.workspace_bytes();
                      }),
                      promised);
            options.max_workspace_bytes = std::size_t{1} << 34;
            if (Plan<TypeParam>::can_run(m, n, k, options)) {
              EXPECT_LE(Plan<TypeParam>::workspace_bytes(m, n, k, options), options.max_workspace_bytes);
            }
          }
}

TYPED_TEST(GemmPlanTest, TooLargeSizesAreNamed) {
  for (const auto& [m, n, k] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 1, std::int64_t{1} << 32},
        {(std::int64_t{1} << 48) + 1, 1, 1},
        {1, (std::int64_t{1} << 48) + 1, 1},
        {std::int64_t{1} << 29, std::int64_t{1} << 28, 1},
        {std::int64_t{1} << 29, 1, std::int64_t{1} << 28}}) {
    EXPECT_FALSE(Plan<TypeParam>::can_run(m, n, k, with_moduli(20)));
    try {
      const Plan<TypeParam> plan(TypeParam{}, 'N', 'N', m, n, k, with_moduli(20));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(
          "KokkosOzaki::GemmPlan: sizes are too large (k must be below 2^32, a matrix below 2^56 entries), "
          "got m=" +
              std::to_string(m) + ", n=" + std::to_string(n) + ", k=" + std::to_string(k) + ".",
          std::string(error.what()));
    }
  }
  // the longest k: the sums of its statistics still fit
  EXPECT_TRUE(Plan<TypeParam>::can_run(1, 1, (std::int64_t{1} << 32) - 1, with_moduli(20)));
}

}  // namespace
}  // namespace KokkosOzaki::Testing
