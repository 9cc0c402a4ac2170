// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;
using Kokkos::LayoutStride;

template <class Space>
class GemmBadArgumentsTest : public ::testing::Test {};
TYPED_TEST_SUITE(GemmBadArgumentsTest, EnabledSpaces, SpaceNames);

/// The message of the std::invalid_argument that `call` throws.
template <class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "nothing was thrown";
}

/// gemm with these operands throws this message and leaves every byte of C's memory alone.
template <class Space, class A, class B, class C>
void expect_refused(const std::string& message, const char* transA, const char* transB, const A& a,
                    const B& b, const Operand<C>& c, const GemmOptions& options = {}, double alpha = 1.0) {
  const Matrix before = c.values();
  EXPECT_EQ(message, refusal([&] {
              gemm(Space{}, transA, transB, alpha, a.view(), b.view(), 0.5, c.view(), options);
            }));
  Space{}.fence();
  EXPECT_TRUE(same_bits(before, c.values()));
  EXPECT_TRUE(c.gaps_are_intact());
}

Matrix some(std::int64_t rows, std::int64_t cols) {
  return uniform(rows, cols, -1, 1, 5);
}

TYPED_TEST(GemmBadArgumentsTest, TransLetters) {
  const Operand<LayoutLeft> a(some(3, 4)), b(some(4, 5)), c(some(3, 5));
  expect_refused<TypeParam>("KokkosOzaki::gemm: transA must be one of N, T, C, got 'x'.", "x", "N", a, b, c);
  expect_refused<TypeParam>("KokkosOzaki::gemm: transB must be one of N, T, C, got 'H'.", "N", "H", a, b, c);
  expect_refused<TypeParam>("KokkosOzaki::gemm: transA must be one of N, T, C, got character code 0.", "",
                            "N", a, b, c);
  expect_refused<TypeParam>("KokkosOzaki::gemm: transB must be one of N, T, C, got character code 10.", "N",
                            "\n", a, b, c);
  // also where nothing would be computed
  expect_refused<TypeParam>("KokkosOzaki::gemm: transA must be one of N, T, C, got 'x'.", "x", "N", a, b, c,
                            {}, 0.0);
}

TYPED_TEST(GemmBadArgumentsTest, Extents) {
  const Operand<LayoutLeft> a(some(10, 41)), b(some(40, 7)), c(some(10, 7));
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: op(B) has 40 rows, op(A) has 41 columns (transA=N A 10x41, transB=N B 40x7, C "
      "10x7).",
      "N", "N", a, b, c);
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: op(B) has 7 rows, op(A) has 10 columns (transA=T A 10x41, transB=C B 40x7, C "
      "10x7).",
      "T", "C", a, b, c);
  const Operand<LayoutRight> right_b(some(41, 7)), long_c(some(11, 7)), wide_c(some(10, 8));
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: C has 11 rows, op(A) has 10 rows (transA=N A 10x41, transB=N B 41x7, C 11x7).", "N",
      "N", a, right_b, long_c);
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: C has 8 columns, op(B) has 7 columns (transA=N A 10x41, transB=N B 41x7, C 10x8).",
      "N", "N", a, right_b, wide_c);
  // also where nothing would be computed
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: C has 11 rows, op(A) has 10 rows (transA=N A 10x41, transB=N B 41x7, C 11x7).", "N",
      "N", a, right_b, long_c, {}, 0.0);
  const Operand<LayoutLeft> no_a(Matrix(10, 0)), no_b(Matrix(1, 7));
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: op(B) has 1 rows, op(A) has 0 columns (transA=N A 10x0, transB=N B 1x7, C 10x7).",
      "N", "N", no_a, no_b, c);
}

/// A view of any strides on memory that is large enough.
class Strided {
 public:
  using View = Kokkos::View<double**, LayoutStride, SharedSpace, Kokkos::MemoryUnmanaged>;
  Strided(std::size_t rows, std::size_t cols, std::size_t row_stride, std::size_t col_stride)
      : m_memory(1 + rows * row_stride + cols * col_stride, 0.25),
        m_view(m_memory.data(), Kokkos::LayoutStride(rows, row_stride, cols, col_stride)) {}
  const View& view() const { return m_view; }

  bool is_untouched() const {
    for (const double x : m_memory)
      if (x != 0.25) return false;
    return true;
  }

 private:
  std::vector<double> m_memory;
  View m_view;
};

TYPED_TEST(GemmBadArgumentsTest, StridesThatStoreTwoEntriesInOnePlace) {
  const Operand<LayoutLeft> a(some(5, 4)), b(some(4, 3)), c(some(5, 3));
  const auto message = [](const char* name, const char* shape, std::size_t row_stride,
                          std::size_t col_stride) {
    return std::string("KokkosOzaki::gemm: ") + name + " must not store two entries in one place, got " +
           shape + " with strides " + std::to_string(row_stride) + " and " + std::to_string(col_stride) + ".";
  };
  for (const auto& [row_stride, col_stride] :
       {std::pair<std::size_t, std::size_t>{1, 0}, {0, 1}, {0, 0}, {1, 1}, {1, 2}, {2, 1}, {2, 2}}) {
    const Strided bad_a(5, 4, row_stride, col_stride), bad_b(4, 3, row_stride, col_stride),
        bad_c(5, 3, row_stride, col_stride);
    expect_refused<TypeParam>(message("A", "5x4", row_stride, col_stride), "N", "N", bad_a, b, c);
    expect_refused<TypeParam>(message("B", "4x3", row_stride, col_stride), "N", "N", a, bad_b, c);
    EXPECT_EQ(message("C", "5x3", row_stride, col_stride),
              refusal([&] { gemm(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.0, bad_c.view()); }));
    EXPECT_TRUE(bad_c.is_untouched());
  }
  // one less than the leading dimension of a packed matrix, for each kind of operand
  const Strided lda(5, 4, 1, 4), lda_of_transposed(4, 5, 1, 3), ldb(4, 3, 2, 1), ldc(5, 3, 2, 1);
  expect_refused<TypeParam>(message("A", "5x4", 1, 4), "N", "N", lda, b, c);
  expect_refused<TypeParam>(message("A", "4x5", 1, 3), "T", "N", lda_of_transposed, b, c);
  expect_refused<TypeParam>(message("B", "4x3", 2, 1), "N", "N", a, ldb, c);
  EXPECT_EQ(message("C", "5x3", 2, 1),
            refusal([&] { gemm(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.0, ldc.view()); }));
  EXPECT_TRUE(ldc.is_untouched());
}

TYPED_TEST(GemmBadArgumentsTest, StridesOfSingleRowsAndColumnsDoNotMatter) {
  const Strided a(1, 4, 0, 1), b(4, 1, 1, 0), c(1, 1, 0, 0);
  gemm(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.0, c.view());
  TypeParam{}.fence();
  EXPECT_EQ(0.25, c.view()(0, 0));  // 4 / 16
}

TYPED_TEST(GemmBadArgumentsTest, OverlapOfCWithAnOperand) {
  using range = std::pair<std::int64_t, std::int64_t>;
  const auto check = [](const auto& memory, range rows_a, range cols_a, range rows_c, range cols_c,
                        bool overlap) {
    SCOPED_TRACE("A " + std::to_string(rows_a.first) + ".." + std::to_string(rows_a.second) + " x " +
                 std::to_string(cols_a.first) + ".." + std::to_string(cols_a.second) + ", C " +
                 std::to_string(rows_c.first) + ".. x " + std::to_string(cols_c.first) + "..");
    const Matrix before = memory.values();
    const auto x = Kokkos::subview(memory.view(), rows_a, cols_a),
               c = Kokkos::subview(memory.view(), rows_c, cols_c);
    const auto m = static_cast<std::int64_t>(c.extent(0)), n = static_cast<std::int64_t>(c.extent(1));
    const auto p = static_cast<std::int64_t>(x.extent(0)), q = static_cast<std::int64_t>(x.extent(1));
    const auto sizes = [](std::int64_t rows, std::int64_t cols) {
      return std::to_string(rows) + "x" + std::to_string(cols);
    };
    const Operand<LayoutLeft> b(some(q, n)), a(some(m, p));
    if (p == m) {
      const auto call = [&] { gemm(TypeParam{}, "N", "N", 1.0, x, b.view(), 0.0, c); };
      if (overlap)
        EXPECT_EQ("KokkosOzaki::gemm: C must not overlap A (A " + sizes(p, q) + ", C " + sizes(m, n) + ").",
                  refusal(call));
      else
        EXPECT_NO_THROW(call());
    }
    if (q == n) {
      const auto call = [&] { gemm(TypeParam{}, "N", "N", 1.0, a.view(), x, 0.0, c); };
      if (overlap)
        EXPECT_EQ("KokkosOzaki::gemm: C must not overlap B (B " + sizes(p, q) + ", C " + sizes(m, n) + ").",
                  refusal(call));
      else
        EXPECT_NO_THROW(call());
    }
    TypeParam{}.fence();
    if (overlap) {
      EXPECT_TRUE(same_bits(before, memory.values()));
    }
  };
  const Matrix M = some(20, 20);
  const auto all = [&](const auto& memory) {
    check(memory, {0, 20}, {0, 20}, {0, 20}, {0, 20}, true);     // the same
    check(memory, {0, 10}, {0, 10}, {9, 19}, {9, 19}, true);     // one entry
    check(memory, {0, 10}, {0, 10}, {9, 19}, {0, 10}, true);     // one row
    check(memory, {9, 19}, {9, 19}, {0, 10}, {0, 10}, true);     // one entry, C first
    check(memory, {9, 19}, {0, 10}, {0, 10}, {9, 19}, true);     // one entry at another corner
    check(memory, {5, 15}, {0, 20}, {5, 15}, {7, 8}, true);      // a column inside
    check(memory, {0, 10}, {0, 10}, {10, 20}, {0, 10}, false);   // below
    check(memory, {0, 10}, {0, 10}, {0, 10}, {10, 20}, false);   // beside
    check(memory, {0, 10}, {0, 10}, {10, 20}, {10, 20}, false);  // diagonal
    check(memory, {10, 20}, {0, 10}, {0, 10}, {10, 20}, false);  // the other diagonal
    check(memory, {10, 20}, {10, 20}, {0, 10}, {0, 10}, false);
    check(memory, {3, 4}, {0, 20}, {4, 5}, {0, 20}, false);  // neighbouring rows
    check(memory, {0, 20}, {4, 5}, {0, 20}, {3, 4}, false);  // neighbouring columns
    check(memory, {3, 4}, {0, 20}, {3, 4}, {0, 20}, true);
    check(memory, {0, 20}, {4, 5}, {0, 20}, {4, 5}, true);
  };
  all(Operand<LayoutLeft>(M));
  all(Operand<LayoutLeft>(M, {1, 3, 1, false}));
  all(Operand<LayoutRight>(M, {1, 1, 1, false}));
  all(Operand<LayoutStride>(M, {0, 3, 2, false}));
  all(Operand<LayoutStride>(M, {0, 3, 3, true}));
}

TYPED_TEST(GemmBadArgumentsTest, OverlapThroughOtherLayouts) {
  // C column-major and A row-major on the same memory, and shifted by half an entry's row.
  Matrix M = some(12, 12);
  const Operand<LayoutLeft> memory(M), b(some(12, 12));
  const Kokkos::View<double**, LayoutRight, SharedSpace, Kokkos::MemoryUnmanaged> turned(memory.view().data(),
                                                                                         12, 12);
  EXPECT_EQ("KokkosOzaki::gemm: C must not overlap A (A 12x12, C 12x12).",
            refusal([&] { gemm(TypeParam{}, "N", "N", 1.0, turned, b.view(), 0.0, memory.view()); }));
  EXPECT_EQ("KokkosOzaki::gemm: C must not overlap B (B 12x12, C 12x12).",
            refusal([&] { gemm(TypeParam{}, "N", "T", 1.0, b.view(), turned, 0.0, memory.view()); }));
  EXPECT_TRUE(same_bits(M, memory.values()));
  const Kokkos::View<double**, LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged> shifted(
      memory.view().data() + 5, 12, 11),
      c(memory.view().data(), 12, 11);
  EXPECT_EQ("KokkosOzaki::gemm: C must not overlap B (B 12x11, C 12x11).",
            refusal([&] { gemm(TypeParam{}, "N", "N", 1.0, b.view(), shifted, 0.0, c); }));
  EXPECT_TRUE(same_bits(M, memory.values()));
}

TYPED_TEST(GemmBadArgumentsTest, Options) {
  const Operand<LayoutLeft> a(some(3, 4)), b(some(4, 5)), c(some(3, 5));
  const auto moduli = [](int s) { return with_moduli(s); };
  for (const int s : {-1, 1, 21, 100, -20})
    expect_refused<TypeParam>(
        "KokkosOzaki::gemm: num_moduli must be 0 or 2..20, got " + std::to_string(s) + ".", "N", "N", a, b, c,
        moduli(s));
  GemmOptions options;
  options.accuracy = Accuracy::normwise(0.0);
  expect_refused<TypeParam>("KokkosOzaki::gemm: the constant of accuracy must be positive, got 0.", "N", "N",
                            a, b, c, options);
  options.accuracy = Accuracy::normwise(-1.5);
  expect_refused<TypeParam>("KokkosOzaki::gemm: the constant of accuracy must be positive, got -1.5.", "N",
                            "N", a, b, c, options);
  options.accuracy = Accuracy::normwise(quiet_nan);
  expect_refused<TypeParam>("KokkosOzaki::gemm: the constant of accuracy must be positive, got nan.", "N",
                            "N", a, b, c, options);
  options = {};
  options.moduli_per_group = -1;
  expect_refused<TypeParam>("KokkosOzaki::gemm: moduli_per_group must not be negative, got -1.", "N", "N", a,
                            b, c, options);
  options = {};
  options.method = static_cast<Method>(7);
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: method must be emulated, native or automatic, got the number 7.", "N", "N", a, b, c,
      options);
  options = {};
  options.fallback = static_cast<Fallback>(-1);
  expect_refused<TypeParam>("KokkosOzaki::gemm: fallback must be exact or vendor, got the number -1.", "N",
                            "N", a, b, c, options);
  options.fallback = Fallback::vendor;
  options.accuracy = Accuracy::componentwise(3);
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: Fallback::vendor keeps a componentwise accuracy of c=k or more, got c=3 with k=4.",
      "N", "N", a, b, c, options);
  options = {};
  options.accuracy = Accuracy::normwise(1e-30);
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: the accuracy asked for (normwise, c=1e-30) needs more than 20 moduli for k=4.", "N",
      "N", a, b, c, options);
}

TYPED_TEST(GemmBadArgumentsTest, TooFewModuliForThisK) {
  using Plan = GemmPlan<TypeParam, double>;
  struct Row {
    int s;
    std::int64_t k;
    int enough;
  };
  for (const Row& row : {Row{2, 1025, 3}, Row{2, 300000, 4}, Row{3, (1 << 18) + 1, 4}}) {
    const std::string what = ": too few moduli for this k: num_moduli=" + std::to_string(row.s) +
                             ", k=" + std::to_string(row.k) + " needs at least " +
                             std::to_string(row.enough) + ".";
    const Operand<LayoutLeft> a(Matrix(1, row.k, 0.5)), b(Matrix(row.k, 1, 0.5)), c(Matrix(1, 1, 3.0));
    expect_refused<TypeParam>("KokkosOzaki::gemm" + what, "N", "N", a, b, c, with_moduli(row.s));
    EXPECT_EQ("KokkosOzaki::GemmPlan" + what,
              refusal([&] { Plan(TypeParam{}, 'N', 'N', 1, 1, row.k, with_moduli(row.s)); }));
    EXPECT_FALSE(Plan::can_run(1, 1, row.k, with_moduli(row.s)));
    EXPECT_TRUE(Plan::can_run(1, 1, row.k, with_moduli(row.enough)));
    // k does not matter where the operands are not read
    gemm(TypeParam{}, "N", "N", 0.0, a.view(), b.view(), 1.0, c.view(), with_moduli(row.s));
    TypeParam{}.fence();
    EXPECT_EQ(3.0, c.values()(0, 0));
  }
  EXPECT_TRUE(Plan::can_run(1, 1, 1 << 10, with_moduli(2)));
  EXPECT_TRUE(Plan::can_run(1, 1, 1 << 18, with_moduli(3)));
}

TYPED_TEST(GemmBadArgumentsTest, UnknownBackend) {
  const Operand<LayoutLeft> a(some(3, 4)), b(some(4, 5)), c(some(3, 5));
  product<TypeParam>(some(3, 4), some(4, 5));  // a call with the default engine must not make "" a name
  for (const std::string name : {"abacus", "", "Portable", "host", "portable "}) {
    GemmOptions options;
    options.backend = name.c_str();
    const std::string before = "KokkosOzaki: backend must be one of ", after = " here, got " + name + ".";
    const std::string message =
        refusal([&] { gemm(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.5, c.view(), options); });
    ASSERT_EQ(before, message.substr(0, before.size()));
    ASSERT_GT(message.size(), before.size() + after.size());
    ASSERT_EQ(after, message.substr(message.size() - after.size()));
    std::istringstream names(message.substr(before.size(), message.size() - before.size() - after.size()));
    std::vector<std::string> listed;
    for (std::string each; std::getline(names >> std::ws, each, ',');) listed.push_back(each);
    const std::vector<const char*> usable = usable_backends<TypeParam>();
    std::vector<std::string> expected(usable.begin(), usable.end());
    std::sort(listed.begin(), listed.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(expected, listed);
    EXPECT_TRUE(same_bits(some(3, 5), c.values()));
    EXPECT_EQ(message,
              refusal([&] { GemmPlan<TypeParam, double>(TypeParam{}, 'N', 'N', 3, 5, 4, options); }));
  }
}

TYPED_TEST(GemmBadArgumentsTest, TheFirstWrongArgumentIsNamed) {
  // letters, extents, strides, overlap, options: in this order
  const Operand<LayoutLeft> a(some(3, 4)), b(some(4, 5)), c(some(3, 5));
  expect_refused<TypeParam>("KokkosOzaki::gemm: transA must be one of N, T, C, got '?'.", "?", "?", b, b, c,
                            with_moduli(99));
  expect_refused<TypeParam>(
      "KokkosOzaki::gemm: op(B) has 4 rows, op(A) has 5 columns (transA=N A 4x5, transB=N B 4x5, C 3x5).",
      "N", "N", b, b, c, with_moduli(99));
  const Operand<LayoutLeft> square(some(4, 4));
  EXPECT_EQ("KokkosOzaki::gemm: C must not overlap A (A 4x4, C 4x4).", refusal([&] {
              gemm(TypeParam{}, "N", "N", 1.0, square.view(), square.view(), 0.0, square.view(),
                   with_moduli(99));
            }));
  EXPECT_EQ("KokkosOzaki::gemm: C must not overlap B (B 4x4, C 4x4).", refusal([&] {
              const Operand<LayoutLeft> other(some(4, 4));
              gemm(TypeParam{}, "N", "N", 1.0, other.view(), square.view(), 0.0, square.view(),
                   with_moduli(99));
            }));
}

TYPED_TEST(GemmBadArgumentsTest, Plan) {
  using Plan = GemmPlan<TypeParam, double>;
  const auto message = [](char transA, char transB, std::int64_t m, std::int64_t n, std::int64_t k,
                          const GemmOptions& options) {
    EXPECT_EQ(refusal([&] { Plan(TypeParam{}, transA, transB, m, n, k, options); }),
              refusal([&] { Plan(ExternalWorkspace{}, TypeParam{}, transA, transB, m, n, k, options); }));
    return refusal([&] { Plan(TypeParam{}, transA, transB, m, n, k, options); });
  };
  EXPECT_EQ("KokkosOzaki::GemmPlan: transA must be one of N, T, C, got 'Q'.", message('Q', 'N', 1, 1, 1, {}));
  EXPECT_EQ("KokkosOzaki::GemmPlan: transB must be one of N, T, C, got character code 0.",
            message('N', '\0', 1, 1, 1, {}));
  EXPECT_EQ("KokkosOzaki::GemmPlan: transB must be one of N, T, C, got character code 255.",
            message('N', '\xFF', 1, 1, 1, {}));
  EXPECT_EQ("KokkosOzaki::GemmPlan: sizes must not be negative, got m=-1, n=2, k=3.",
            message('N', 'N', -1, 2, 3, {}));
  EXPECT_EQ("KokkosOzaki::GemmPlan: sizes must not be negative, got m=1, n=-2, k=3.",
            message('N', 'N', 1, -2, 3, {}));
  EXPECT_EQ("KokkosOzaki::GemmPlan: sizes must not be negative, got m=1, n=2, k=-3.",
            message('N', 'N', 1, 2, -3, {}));
  EXPECT_EQ("KokkosOzaki::GemmPlan: num_moduli must be 0 or 2..20, got 21.",
            message('N', 'N', 1, 2, 3, with_moduli(21)));
  EXPECT_EQ("KokkosOzaki::GemmPlan::workspace_bytes: sizes must not be negative, got m=-1, n=2, k=3.",
            refusal([] { static_cast<void>(Plan::workspace_bytes(-1, 2, 3)); }));
  EXPECT_EQ(
      "KokkosOzaki::GemmPlan::workspace_bytes: too few moduli for this k: num_moduli=2, k=4096 needs at "
      "least 3.",
      refusal([] { static_cast<void>(Plan::workspace_bytes(1, 2, 4096, with_moduli(2))); }));
}

TYPED_TEST(GemmBadArgumentsTest, PlanExecute) {
  using Plan = GemmPlan<TypeParam, double>;
  Plan plan(TypeParam{}, 'T', 'N', 6, 5, 4);
  const Operand<LayoutLeft> a(some(4, 6)), wrong_a(some(6, 4)), b(some(4, 5)), wrong_b(some(5, 4)),
      c(some(6, 5)), wrong_c(some(5, 6)), small_a(some(3, 6));
  const auto run = [&](const auto& x, const auto& y, const auto& z) {
    const Matrix before = z.values();
    const std::string message =
        refusal([&] { plan.execute(TypeParam{}, 1.0, x.view(), y.view(), 0.0, z.view()); });
    EXPECT_TRUE(same_bits(before, z.values()));
    return message;
  };
  const std::string planned = " as planned (transA=T, transB=N, m=6, n=5, k=4), got ";
  EXPECT_EQ("KokkosOzaki::GemmPlan::execute: A must be 4x6" + planned + "6x4.", run(wrong_a, b, c));
  EXPECT_EQ("KokkosOzaki::GemmPlan::execute: A must be 4x6" + planned + "3x6.", run(small_a, b, c));
  EXPECT_EQ("KokkosOzaki::GemmPlan::execute: B must be 4x5" + planned + "5x4.", run(a, wrong_b, c));
  EXPECT_EQ("KokkosOzaki::GemmPlan::execute: C must be 6x5" + planned + "5x6.", run(a, b, wrong_c));
  Plan square(TypeParam{}, 'N', 'N', 4, 4, 4);
  const Operand<LayoutLeft> x(some(4, 4)), y(some(4, 4));
  const Matrix before = x.values();
  EXPECT_EQ("KokkosOzaki::GemmPlan::execute: C must not overlap A (A 4x4, C 4x4).",
            refusal([&] { square.execute(TypeParam{}, 1.0, x.view(), y.view(), 0.0, x.view()); }));
  EXPECT_EQ("KokkosOzaki::GemmPlan::execute: C must not overlap B (B 4x4, C 4x4).",
            refusal([&] { square.execute(TypeParam{}, 1.0, y.view(), x.view(), 0.0, x.view()); }));
  const Strided two_in_one(4, 4, 1, 2);
  EXPECT_EQ(
      "KokkosOzaki::GemmPlan::execute: A must not store two entries in one place, got 4x4 with strides 1 and "
      "2.",
      refusal([&] { square.execute(TypeParam{}, 1.0, two_in_one.view(), y.view(), 0.0, x.view()); }));
  EXPECT_TRUE(same_bits(before, x.values()));
  // and the plan still works
  plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.0, c.view());
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(product<TypeParam>(a.values().transposed(), b.values()), c.values()));
}

}  // namespace
}  // namespace KokkosOzaki::Testing
