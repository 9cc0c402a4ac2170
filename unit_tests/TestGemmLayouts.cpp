// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;
using Kokkos::LayoutStride;

template <class Space>
class GemmLayoutsTest : public ::testing::Test {};
TYPED_TEST_SUITE(GemmLayoutsTest, EnabledSpaces, SpaceNames);

enum class Layout { left, right, stride };
constexpr Layout layouts[] = {Layout::left, Layout::right, Layout::stride};
constexpr const char* layout_names[] = {"LayoutLeft", "LayoutRight", "LayoutStride"};
constexpr char letters[] = {'N', 'T', 'C'};

/// Where an operand can lie: packed, shifted by one entry with an odd leading dimension, with gaps between
/// neighbours.
const std::vector<Placement> placements = {
    {0, 0, 1, false}, {1, 3, 1, false}, {1, 2, 2, false}, {3, 1, 3, true}, {0, 5, 1, true}};

/// An operand whose layout is chosen at run time: the calls are compiled once for all tests.
class AnyOperand {
 public:
  AnyOperand(Layout layout, const Matrix& values, const Placement& placement) {
    if (layout == Layout::left)
      m_operand = std::make_unique<Operand<LayoutLeft>>(values, placement);
    else if (layout == Layout::right)
      m_operand = std::make_unique<Operand<LayoutRight>>(values, placement);
    else
      m_operand = std::make_unique<Operand<LayoutStride>>(values, placement);
  }

  /// body(the Operand).
  template <class Body>
  auto with(const Body& body) const {
    return std::visit([&](const auto& operand) { return body(*operand); }, m_operand);
  }

  Matrix values() const {
    return with([](const auto& operand) { return operand.values(); });
  }
  ::testing::AssertionResult gaps_are_intact() const {
    return with([](const auto& operand) { return operand.gaps_are_intact(); });
  }

 private:
  std::variant<std::unique_ptr<Operand<LayoutLeft>>, std::unique_ptr<Operand<LayoutRight>>,
               std::unique_ptr<Operand<LayoutStride>>>
      m_operand;
};

/// gemm, or a plan where one is given, with operands of any layouts.
template <class Space>
void run(char transA, char transB, double alpha, const AnyOperand& A, const AnyOperand& B, double beta,
         const AnyOperand& C, const GemmOptions& options, GemmPlan<Space, double>* plan = nullptr) {
  const char texts[] = {transA, '\0', transB, '\0'};
  A.with([&](const auto& a) {
    B.with([&](const auto& b) {
      C.with([&](const auto& c) {
        if (plan != nullptr)
          plan->execute(Space{}, alpha, a.view(), b.const_view(), beta, c.view());
        else
          gemm(Space{}, texts, texts + 2, alpha, a.const_view(), b.view(), beta, c.view(), options);
      });
    });
  });
  Space{}.fence();
}

template <class Body>
void for_all_layouts(const Body& body) {
  for (const Layout a : layouts)
    for (const Layout b : layouts)
      for (const Layout c : layouts) {
        SCOPED_TRACE(std::string(layout_names[static_cast<int>(a)]) + " " +
                     layout_names[static_cast<int>(b)] + " " + layout_names[static_cast<int>(c)]);
        body(a, b, c);
      }
}

/// All layouts and operations against one product of packed column-major operands; the placements in turn, or
/// all of them.
template <class Space>
void check_all(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options, double alpha,
               double beta, bool every_placement = false) {
  const Matrix A = spread(m, k, 1.0, 11), B = spread(k, n, 1.0, 12), C = spread(m, n, 1.0, 13);
  const Matrix expected = product<Space>(A, B, options, alpha, beta, C);
  std::size_t turn = 0;
  for_all_layouts([&](Layout layout_a, Layout layout_b, Layout layout_c) {
    for (const char transA : letters)
      for (const char transB : letters)
        for (std::size_t p = 0; p < (every_placement ? placements.size() : 1); ++p) {
          const std::size_t first = turn++ % placements.size();
          SCOPED_TRACE(std::string("trans ") + transA + transB + ", placement " + std::to_string(first));
          const AnyOperand a(layout_a, stored(A, transA), placements[first]);
          const AnyOperand b(layout_b, stored(B, transB), placements[(first + 1) % placements.size()]);
          const AnyOperand c(layout_c, C, placements[(first + 2) % placements.size()]);
          run<Space>(transA, transB, alpha, a, b, beta, c, options);
          EXPECT_TRUE(same_bits(expected, c.values()));
          EXPECT_TRUE(c.gaps_are_intact());
          EXPECT_TRUE(same_bits(stored(A, transA), a.values()));
          EXPECT_TRUE(same_bits(stored(B, transB), b.values()));
        }
  });
}

TYPED_TEST(GemmLayoutsTest, AllOperationsHaveTheSameBits) {
  check_all<TypeParam>(17, 19, 23, {}, 1.0, 0.0, true);
  check_all<TypeParam>(17, 19, 23, with_moduli(17, Bound::accurate), -0.5, 1.5);
}

TYPED_TEST(GemmLayoutsTest, LongerThanATileAndAChunkHaveTheSameBits) {
  check_all<TypeParam>(35, 33, 131, with_moduli(14, Bound::accurate), 1.0, 1.0);
}

TYPED_TEST(GemmLayoutsTest, SingleRowsColumnsAndEntriesHaveTheSameBits) {
  using Sizes = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  for (const auto& [m, n, k] :
       {Sizes{1, 1, 1}, Sizes{1, 9, 5}, Sizes{9, 1, 5}, Sizes{1, 1, 300}, Sizes{5, 4, 1}})
    check_all<TypeParam>(m, n, k, with_moduli(15), 2.0, -1.0);
}

TYPED_TEST(GemmLayoutsTest, PlansAndCapsHaveTheSameBits) {
  const Matrix A = spread(50, 70, 1.0, 21), B = spread(70, 45, 1.0, 22);
  GemmOptions options = with_moduli(14, Bound::accurate);
  const Matrix expected = product<TypeParam>(A, B, options);
  options.max_workspace_bytes = part_of_workspace<TypeParam>(50, 45, 70, options, 2);
  for (const char transA : letters)
    for (const char transB : letters) {
      GemmPlan<TypeParam, double> plan(TypeParam{}, transA, transB, 50, 45, 70, options);
      for_all_layouts([&](Layout layout_a, Layout layout_b, Layout layout_c) {
        const AnyOperand a(layout_a, stored(A, transA), placements[1]),
            b(layout_b, stored(B, transB), placements[2]),
            c(layout_c, Matrix(50, 45, poison()), placements[3]);
        run<TypeParam>(transA, transB, 1.0, a, b, 0.0, c, options, &plan);
        EXPECT_TRUE(same_bits(expected, c.values())) << transA << transB;
        EXPECT_TRUE(c.gaps_are_intact());
      });
    }
}

template <class Space>
class GemmViewsTest : public ::testing::Test {};
TYPED_TEST_SUITE(GemmViewsTest, EnabledSpaces, SpaceNames);

template <class View>
void fill(const View& view, const Matrix& values) {
  for (std::int64_t j = 0; j < values.cols(); ++j)
    for (std::int64_t i = 0; i < values.rows(); ++i) view(i, j) = values(i, j);
}

template <class View>
Matrix read(const View& view) {
  Matrix values(static_cast<std::int64_t>(view.extent(0)), static_cast<std::int64_t>(view.extent(1)));
  for (std::int64_t j = 0; j < values.cols(); ++j)
    for (std::int64_t i = 0; i < values.rows(); ++i) values(i, j) = view(i, j);
  return values;
}

TYPED_TEST(GemmViewsTest, StaticExtents) {
  const Matrix A = uniform(6, 7, -1, 1, 31), B = uniform(7, 5, -1, 1, 32);
  const Kokkos::View<double[6][7], LayoutLeft, Shared<TypeParam>> a("a");
  const Kokkos::View<double* [5], LayoutRight, Shared<TypeParam>> b("b", 7);
  const Kokkos::View<double[6][5], LayoutRight, Shared<TypeParam>> c("c");
  fill(a, A), fill(b, B);
  gemm(TypeParam{}, "N", "N", 1.0, a, b, 0.0, c);
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(product<TypeParam>(A, B), read(c)));
}

TYPED_TEST(GemmViewsTest, SlicesOfHigherRank) {
  const Matrix A = uniform(6, 7, -1, 1, 33), B = uniform(7, 5, -1, 1, 34);
  const Kokkos::View<double***, LayoutRight, Shared<TypeParam>> cube("cube", 6, 7, 3);
  const Kokkos::View<double***, LayoutLeft, Shared<TypeParam>> other("other", 2, 7, 5);
  const Kokkos::View<double****, LayoutLeft, Shared<TypeParam>> result("result", 6, 3, 5, 2);
  const auto a = Kokkos::subview(cube, Kokkos::ALL, Kokkos::ALL, 1);
  const auto b = Kokkos::subview(other, 1, Kokkos::ALL, Kokkos::ALL);
  const auto c = Kokkos::subview(result, Kokkos::ALL, 2, Kokkos::ALL, 1);
  Kokkos::deep_copy(cube, poison());
  Kokkos::deep_copy(other, poison());
  Kokkos::deep_copy(result, poison());
  fill(a, A), fill(b, B);
  gemm(TypeParam{}, "N", "N", 1.0, a, b, 0.0, c);
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(product<TypeParam>(A, B), read(c)));
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t x = 0; x < 3; ++x)
      for (std::size_t j = 0; j < 5; ++j)
        for (std::size_t y = 0; y < 2; ++y)
          if (x != 2 || y != 1) {
            EXPECT_EQ(bits_of(poison()), bits_of(result(i, x, j, y)));
          }
}

TYPED_TEST(GemmViewsTest, SubviewsOfManagedViewsWithOddOffsets) {
  const Matrix A = uniform(8, 21, -1, 1, 35), B = uniform(21, 9, -1, 1, 36);
  const Kokkos::View<double**, LayoutLeft, Shared<TypeParam>> whole_a("a", 11, 24), whole_c("c", 13, 12);
  const Kokkos::View<double**, LayoutRight, Shared<TypeParam>> whole_b("b", 23, 11);
  Kokkos::deep_copy(whole_a, poison());
  Kokkos::deep_copy(whole_b, poison());
  Kokkos::deep_copy(whole_c, poison());
  using range = std::pair<int, int>;
  const auto a = Kokkos::subview(whole_a, range(1, 9), range(2, 23));
  const auto b = Kokkos::subview(whole_b, range(1, 22), range(1, 10));
  const auto c = Kokkos::subview(whole_c, range(3, 11), range(1, 10));
  fill(a, A), fill(b, B);
  gemm(TypeParam{}, "N", "N", 1.0, a, b, 0.0, c);
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(product<TypeParam>(A, B), read(c)));
  for (int j = 0; j < 12; ++j)
    for (int i = 0; i < 13; ++i)
      if (i < 3 || i >= 11 || j < 1 || j >= 10) {
        EXPECT_EQ(bits_of(poison()), bits_of(whole_c(i, j)));
      }
}

TYPED_TEST(GemmViewsTest, ConstAndRandomAccessViews) {
  const Matrix A = uniform(6, 7, -1, 1, 37), B = uniform(7, 5, -1, 1, 38);
  const Kokkos::View<double**, LayoutLeft, Shared<TypeParam>> a("a", 6, 7), b("b", 7, 5);
  const Kokkos::View<double**, Shared<TypeParam>> c("c", 6, 5);
  fill(a, A), fill(b, B);
  const Kokkos::View<const double**, LayoutLeft, Shared<TypeParam>,
                     Kokkos::MemoryTraits<Kokkos::RandomAccess>>
      random(a);
  const Kokkos::View<const double**, LayoutStride, Shared<TypeParam>> strided(b);
  gemm(TypeParam{}, "N", "N", 1.0, random, strided, 0.0, c);
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(product<TypeParam>(A, B), read(c)));
}

TYPED_TEST(GemmViewsTest, LeadingDimensionsFarApart) {
  // A stride of 2^20 between columns of A and C; only the entries are touched.
  const std::int64_t far = 1 << 20;
  const Matrix A = uniform(3, 4, -1, 1, 39), B = uniform(4, 2, -1, 1, 40);
  const Operand<LayoutStride> a(A, {5, far, 1, false}), b(B), c(Matrix(3, 2, poison()), {1, far, 2, true});
  gemm(TypeParam{}, "N", "N", 1.0, a.view(), b.view(), 0.0, c.view());
  TypeParam{}.fence();
  EXPECT_TRUE(same_bits(product<TypeParam>(A, B), c.values()));
}

}  // namespace
}  // namespace KokkosOzaki::Testing
