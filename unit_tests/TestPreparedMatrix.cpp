// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Prepared operands: the bits of the call with the Views, and what is refused. Used by two instances at once:
// TestExecutionInstances; by host threads: TestHostThreads; what is not done again: TestKernelLabels.
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"
#include "ScalarOperands.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;
using Kokkos::LayoutStride;

template <class Case>
class PreparedMatrixTest : public ::testing::Test {};
TYPED_TEST_SUITE(PreparedMatrixTest, ContractCases, ContractNames);

template <class Space>
class PreparedMatrixOfDoublesTest : public ::testing::Test {};
TYPED_TEST_SUITE(PreparedMatrixOfDoublesTest, EnabledSpaces, SpaceNames);

template <class Scalar, class Generate>
MatrixOf<Scalar> joined(const Generate& generate_part) {
  using Traits = ScalarTraits<Scalar>;
  using Real = typename Traits::Real;
  const Matrix re = generate_part(0), im = generate_part(1);
  MatrixOf<Scalar> x(re.rows(), re.cols());
  for (std::int64_t j = 0; j < x.cols(); ++j)
    for (std::int64_t i = 0; i < x.rows(); ++i)
      x(i, j) = Traits::make(static_cast<Real>(re(i, j)), static_cast<Real>(im(i, j)));
  return x;
}

template <class Scalar>
MatrixOf<Scalar> spread_of(std::int64_t rows, std::int64_t cols, std::uint64_t seed, double phi = 1.0) {
  return joined<Scalar>([&](std::uint64_t part) { return spread(rows, cols, phi, seed + 1000 * part); });
}

template <class Scalar>
Scalar number(double re, double im) {
  using Traits = ScalarTraits<Scalar>;
  using Real = typename Traits::Real;
  return Traits::make(static_cast<Real>(re), static_cast<Real>(im));
}

/// What is stored so that op() of it is x.
template <class Scalar>
MatrixOf<Scalar> stored_for(const MatrixOf<Scalar>& x, char trans) {
  MatrixOf<Scalar> y = trans == 'N' ? x : x.transposed();
  if (trans == 'C')
    for (std::int64_t j = 0; j < y.cols(); ++j)
      for (std::int64_t i = 0; i < y.rows(); ++i) {
        using Traits = ScalarTraits<Scalar>;
        const Scalar z = y(i, j);
        y(i, j) = Traits::make(Traits::real(z), -Traits::imag(z));
      }
  return y;
}

/// How a product is done: the letters, and where the operands lie.
struct Form {
  char transA = 'N', transB = 'N';
  Placement a = {}, b = {}, c = {};
};

/// \brief Both operands of a product prepared, each alone and together, with the plan's memory and with a buffer: the
/// values (bits, but for NaNs) of the call with the Views.
/// \param A, B op(A) and op(B)
template <class Space, class Scalar, class AElement, class BElement>
void expect_values_of_plain_call(const MatrixOf<AElement>& A, const MatrixOf<BElement>& B,
                                 const GemmOptions& options, const Form& form = {}) {
  SCOPED_TRACE(std::string(name_of(options.bound)) + ", " + std::to_string(options.num_moduli) +
               " moduli, trans " + form.transA + form.transB + ", group " +
               std::to_string(options.moduli_per_group) + ", cap " +
               std::to_string(options.max_workspace_bytes));
  const std::int64_t m = A.rows(), n = B.cols(), k = A.cols();
  Operand<LayoutStride, SharedSpace, AElement> a(stored_for(A, form.transA), form.a);
  Operand<LayoutStride, SharedSpace, BElement> b(stored_for(B, form.transB), form.b);
  GemmPlan<Space, Scalar> plan(Space{}, form.transA, form.transB, m, n, k, options);
  const Space exec{};
  const auto alpha = number<Scalar>(-0.75, 0.3), beta = number<Scalar>(1.25, -0.6);
  const MatrixOf<Scalar> C = spread_of<Scalar>(m, n, 77);
  Operand<LayoutStride, SharedSpace, Scalar> c(C, form.c);
  plan.execute(exec, alpha, a.view(), b.view(), beta, c.view());
  exec.fence();
  const MatrixOf<Scalar> expected = c.values();
  const auto check = [&](const char* prepared) {
    exec.fence();
    EXPECT_TRUE(same_values(expected, c.values())) << prepared;
    EXPECT_TRUE(c.gaps_are_intact()) << prepared;
    c.assign(C);
  };
  c.assign(C);

  const char letters[] = {form.transA, '\0', form.transB, '\0'};
  GemmOptions of_matrix = options;  // what is the plan's business does not matter
  of_matrix.max_workspace_bytes = 1;
  of_matrix.moduli_per_group = 5;
  const auto prepared_a = prepare_a<Scalar>(exec, letters, a.view(), of_matrix);
  const auto prepared_b = prepare_b<Scalar>(exec, letters + 2, b.view(), of_matrix);
  const int num_moduli = options.num_moduli == 0 ? 0 : plan.report().num_moduli;  // 0: chosen by each product
  EXPECT_EQ(num_moduli, prepared_a.num_moduli());
  EXPECT_EQ(num_moduli, prepared_b.num_moduli());
  a.assign(MatrixOf<AElement>(a.values().rows(), a.values().cols(), poison_of<AElement>()));
  plan.execute(exec, alpha, prepared_a, b.view(), beta, c.view());
  check("A");
  plan.execute(exec, alpha, prepared_a, prepared_b, beta, c.view());
  check("A and B");
  a.assign(stored_for(A, form.transA));
  b.assign(MatrixOf<BElement>(b.values().rows(), b.values().cols(), poison_of<BElement>()));
  plan.execute(exec, alpha, a.view(), prepared_b, beta, c.view());
  check("B");
  const Kokkos::View<char*, Shared<Space>> buffer("buffer", plan.workspace_bytes());
  plan.execute(exec, alpha, prepared_a, prepared_b, beta, c.view(), buffer);
  check("A and B, with a buffer");
}

constexpr Placement by_columns{1, 3, 1, false}, by_rows{0, 0, 1, true}, with_gaps{2, 1, 3, true};

TYPED_TEST(PreparedMatrixTest, LettersAndLayoutsHaveTheBitsOfThePlainCall) {
  using Scalar = typename TypeParam::Scalar;
  const auto A = spread_of<Scalar>(21, 150, 1), B = spread_of<Scalar>(150, 18, 2);
  const Placement places[] = {by_columns, by_rows, with_gaps};
  std::size_t turn = 0;
  for (const Bound bound : both_bounds)
    for (const char transA : {'N', 'T', 'C'})
      for (const char transB : {'N', 'T', 'C'}) {
        const int moduli[] = {0, 6, 16};
        const Form form{transA, transB, places[turn % 3], places[turn / 2 % 3], places[turn / 3 % 3]};
        expect_values_of_plain_call<typename TypeParam::Space, Scalar>(
            A, B, with_moduli(moduli[turn % 3], bound), form);
        ++turn;
      }
}

TYPED_TEST(PreparedMatrixTest, BlocksGroupsAndEnginesHaveTheBitsOfThePlainCall) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  const std::int64_t m = 36, n = 25, k = 260;
  const auto A = spread_of<Scalar>(m, k, 3), B = spread_of<Scalar>(k, n, 4);
  int blocked = 0;
  for (const Bound bound : both_bounds) {
    const GemmOptions options = with_moduli(9, bound);
    const std::size_t all = GemmPlan<Space, Scalar>::workspace_bytes(m, n, k, options);
    for (const Placement& of_c : {by_columns, by_rows}) {
      const Form form{'N', 'T', by_columns, by_rows, of_c};
      for (const int group : {1, 4}) {
        GemmOptions other = options;
        other.moduli_per_group = group;
        expect_values_of_plain_call<Space, Scalar>(A, B, other, form);
      }
      // blocks of C and, with little left, of k
      const std::size_t fixed = engine_bytes<Space>();
      for (const std::size_t divisor : {2, 6}) {
        GemmOptions other = options;
        other.max_workspace_bytes = fixed + (all - fixed) / divisor;
        expect_values_of_plain_call<Space, Scalar>(A, B, other, form);
        ++blocked;
      }
    }
    for (const char* backend : usable_backends<Space>()) {
      GemmOptions other = options;
      other.backend = backend;
      expect_values_of_plain_call<Space, Scalar>(A, B, other);
    }
  }
  EXPECT_EQ(8, blocked);
}

TYPED_TEST(PreparedMatrixTest, LongInnerDimensionsHaveTheBitsOfThePlainCall) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  // more than one INT8 product can take: blocks of k also without a cap
  const std::int64_t m = 2, n = 3, k = 131008 + 70;
  const auto A = spread_of<Scalar>(m, k, 5), B = spread_of<Scalar>(k, n, 6);
  expect_values_of_plain_call<Space, Scalar>(A, B, with_moduli(5),
                                             {'N', 'N', by_columns, by_columns, by_columns});
  expect_values_of_plain_call<Space, Scalar>(A, B, with_moduli(4, Bound::accurate),
                                             {'T', 'T', by_columns, by_rows, by_rows});
}

TYPED_TEST(PreparedMatrixTest, SpecialValuesAndTruncationAreAsInThePlainCall) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Limits = std::numeric_limits<typename ScalarTraits<Scalar>::Real>;
  const auto smallest = static_cast<double>(Limits::denorm_min()),
             largest = static_cast<double>(Limits::max());
  const auto A = spread_of<Scalar>(19, 140, 9), B = spread_of<Scalar>(140, 17, 10);
  const auto with = [](MatrixOf<Scalar> x, double value) {
    x(3, 5) = number<Scalar>(value, -1.5);
    x(7, 2) = number<Scalar>(-0.0, value);
    for (std::int64_t l = 0; l < x.cols(); ++l) x(11, l) = Scalar(0);
    return x;
  };
  const auto expect = [](const MatrixOf<Scalar>& a, const MatrixOf<Scalar>& b) {
    for (const Bound bound : both_bounds)
      for (const Rounding rounding : {Rounding::nearest_even, Rounding::toward_zero})
        expect_values_of_plain_call<Space, Scalar>(a, b, with_moduli(12, bound, rounding),
                                                   {'C', 'N', by_rows, by_columns, by_columns});
  };
  for (const double value : {infinity, quiet_nan, smallest, largest}) {
    SCOPED_TRACE(to_text(value));
    expect(with(A, value), B);
    expect(A, with(B, value));
  }
  expect(with(A, -infinity), with(B, quiet_nan));
}

// ---- operands of two types --------------------------------------------------------------------------

/// The scalars that have a narrow form.
template <class Case>
class PreparedWideMatrixTest : public ::testing::Test {};
using WideCases = Crossed<EnabledSpaces, ::testing::Types<double, Kokkos::complex<double>>>::type;
TYPED_TEST_SUITE(PreparedWideMatrixTest, WideCases, ContractNames);

TYPED_TEST(PreparedWideMatrixTest, NarrowOperandsHaveTheBitsOfThePlainCall) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Narrow = std::conditional_t<ScalarTraits<Scalar>::is_complex, Kokkos::complex<float>, float>;
  auto A = spread_of<Narrow>(21, 150, 11), B = spread_of<Narrow>(150, 18, 12);
  A(2, 3) = number<Narrow>(0x1p-149, -0x1.8p-140);
  B(4, 5) = number<Narrow>(infinity, 1.0);
  // each prepared one meets a narrow View and a prepared one
  for (const Bound bound : both_bounds)
    expect_values_of_plain_call<Space, Scalar>(A, B, with_moduli(0, bound),
                                               {'T', 'C', by_columns, by_rows, by_columns});
}

// ---- the object -------------------------------------------------------------------------------------

TYPED_TEST(PreparedMatrixOfDoublesTest, KnowsWhatItIs) {
  using Prepared = PreparedMatrix<TypeParam, double>;
  static_assert(!std::is_copy_constructible_v<Prepared> && !std::is_copy_assignable_v<Prepared>);
  static_assert(std::is_nothrow_move_constructible_v<Prepared> &&
                std::is_nothrow_move_assignable_v<Prepared>);
  const Operand<LayoutLeft> x(uniform(30, 150, -1, 1, 1));
  const Operand<LayoutRight> y(uniform(30, 150, -1, 1, 1));
  const Prepared a = prepare_a(TypeParam{}, "n", x.view());
  EXPECT_EQ('A', a.operand());
  EXPECT_EQ('N', a.trans());
  EXPECT_EQ(30, a.rows());
  EXPECT_EQ(150, a.cols());
  EXPECT_EQ(0, a.num_moduli()) << "chosen by each product";
  EXPECT_EQ(Bound::fast, a.bound());
  EXPECT_EQ(Rounding::nearest_even, a.rounding());
  EXPECT_GT(a.bytes(), 30u * 150u * (sizeof(double) + 1));
  const Prepared b =
      prepare_b(TypeParam{}, "C", y.const_view(), with_moduli(7, Bound::accurate, Rounding::toward_zero));
  EXPECT_EQ('B', b.operand());
  EXPECT_EQ('T', b.trans());
  EXPECT_EQ(150, b.rows());
  EXPECT_EQ(30, b.cols());
  EXPECT_EQ(7, b.num_moduli());
  EXPECT_EQ(Bound::accurate, b.bound());
  EXPECT_EQ(Rounding::toward_zero, b.rounding());
  EXPECT_GT(b.bytes(), 30u * 150u * (sizeof(double) + 1));
}

/// Few moduli: the guard of the accurate bound leaves it out, and the fast exponents are prepared.
TYPED_TEST(PreparedMatrixOfDoublesTest, WhereTheAccurateBoundDoesNotApplyTheFastOneIsPrepared) {
  const Matrix A = spread(5, 400, 1.0, 7), B = spread(400, 6, 1.0, 8);
  const Operand<LayoutLeft> a(A);
  for (const int s : {2, 3, 4}) {
    expect_values_of_plain_call<TypeParam, double>(A, B, with_moduli(s, Bound::accurate));
    EXPECT_EQ(Bound::accurate,
              prepare_a(TypeParam{}, "N", a.view(), with_moduli(s, Bound::accurate)).bound());
  }
  const auto bytes = [&](int s, Bound bound) {
    return prepare_a(TypeParam{}, "N", a.view(), with_moduli(s, bound)).bytes();
  };
  EXPECT_EQ(bytes(2, Bound::fast), bytes(2, Bound::accurate)) << "the same residues";
  EXPECT_EQ(bytes(8, Bound::accurate), bytes(16, Bound::accurate)) << "one plane";
  EXPECT_LT(bytes(16, Bound::accurate), bytes(16, Bound::fast));
}

TYPED_TEST(PreparedMatrixOfDoublesTest, HasManyPartnersAndMayMove) {
  const Matrix A = spread(20, 130, 1.0, 21);
  for (const Bound bound : both_bounds) {
    const GemmOptions options = with_moduli(15, bound);
    auto x = std::make_unique<Operand<LayoutLeft>>(A);
    std::vector<PreparedMatrix<TypeParam, double>> moved;
    {
      auto a = prepare_a(TypeParam{}, "N", x->view(), options);
      x.reset();  // nothing refers to the View any more
      moved.push_back(std::move(a));
      EXPECT_EQ(0u, a.bytes());
    }
    auto other = prepare_a(TypeParam{}, "T", Operand<LayoutLeft>(Matrix(3, 4, 1.0)).view());
    other = std::move(moved[0]);
    GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', 20, 11, 130, options);
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const Matrix B = spread(130, 11, 1.0, seed);
      const Operand<LayoutLeft> b(B);
      const Operand<LayoutRight> c(Matrix(20, 11, poison()));
      plan.execute(TypeParam{}, 1.0, other, b.view(), 0.0, c.view());
      TypeParam{}.fence();
      EXPECT_TRUE(same_bits(product<TypeParam>(A, B, options), c.values()));
    }
    // with partners of other widths, in other plans
    for (const std::int64_t n : {1, 16, 50}) {
      const Operand<LayoutLeft> b(spread(130, n, 1.0, 5)), c(Matrix(20, n, poison()));
      GemmPlan<TypeParam, double> another(TypeParam{}, 'N', 'N', 20, n, 130, options);
      another.execute(TypeParam{}, 1.0, other, b.view(), 0.0, c.view());
      TypeParam{}.fence();
      EXPECT_TRUE(same_bits(product<TypeParam>(A, b.values(), options), c.values()));
    }
  }
}

TYPED_TEST(PreparedMatrixOfDoublesTest, EmptySizesNeedNothing) {
  for (const auto& [m, n, k] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{0, 5, 5}, {5, 0, 5000}, {5, 4, 0}, {0, 0, 0}})
    for (const int s : {0, 14}) {
      const Operand<LayoutLeft> x(Matrix(m, k, quiet_nan)), y(Matrix(k, n, quiet_nan)), c(Matrix(m, n, 3.0));
      const auto a = prepare_a(TypeParam{}, "N", x.view(), with_moduli(s));
      const auto b = prepare_b(TypeParam{}, "N", y.view(), with_moduli(s));
      EXPECT_EQ(m == 0 || k == 0, a.bytes() == 0);
      EXPECT_EQ(n == 0 || k == 0, b.bytes() == 0);
      GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', m, n, k, with_moduli(s));
      plan.execute(TypeParam{}, 1.0, a, b, 2.0, c.view());
      TypeParam{}.fence();
      EXPECT_TRUE(same_bits(Matrix(m, n, 6.0), c.values()));
    }
  // an empty matrix is content with any number of moduli, as its plan is
  const Operand<LayoutLeft> x(Matrix(0, 5000)), y(Matrix(5000, 3, 1.0)), c(Matrix(0, 3));
  const auto a = prepare_a(TypeParam{}, "N", x.view(), with_moduli(2));
  GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', 0, 3, 5000, with_moduli(2));
  plan.execute(TypeParam{}, 1.0, a, y.view(), 0.0, c.view());
  TypeParam{}.fence();
}

// ---- what is refused --------------------------------------------------------------------------------

template <class Error = std::invalid_argument, class Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TYPED_TEST(PreparedWideMatrixTest, WhatDoesNotFitIsNamed) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  constexpr bool is_complex = ScalarTraits<Scalar>::is_complex;
  const std::int64_t size = 12;  // square, so that only one thing is wrong at a time
  const Operand<LayoutLeft, SharedSpace, Scalar> x(spread_of<Scalar>(size, size, 31)),
      narrow(spread_of<Scalar>(size, 7, 32)), c(spread_of<Scalar>(size, size, 33));
  const MatrixOf<Scalar> before = c.values();
  const Space exec{};
  GemmPlan<Space, Scalar> plan(exec, 'N', 'c', size, size, size, with_moduli(9));
  const GemmOptions options = with_moduli(9);
  const auto good_a = prepare_a(exec, "N", x.view(), options);
  const auto good_b = prepare_b(exec, "C", x.view(), options);
  const auto expect = [&](const std::string& message, const auto& a, const auto& b) {
    for (const double alpha : {1.0, 0.0})  // also where nothing would be multiplied
      EXPECT_EQ("KokkosOzaki::GemmPlan::execute: " + message + ".", message_of([&] {
                  plan.execute(exec, number<Scalar>(alpha, 0.0), a, b, Scalar(0), c.view());
                }));
    exec.fence();
    EXPECT_TRUE(same_bits(before, c.values()));
  };
  expect("A must be prepared by prepare_a, got one by prepare_b", good_b, good_b);
  expect("B must be prepared by prepare_b, got one by prepare_a", x.view(), good_a);
  expect("A must be prepared with transA=N as planned, got transA=T", prepare_a(exec, "t", x.view(), options),
         x.view());
  expect(
      std::string("B must be prepared with transB=") + (is_complex ? 'C' : 'T') + " as planned, got transB=N",
      good_a, prepare_b(exec, "N", x.view(), options));
  if (is_complex)
    expect("B must be prepared with transB=C as planned, got transB=T", good_a,
           prepare_b(exec, "T", x.view(), options));
  expect("op(A) must be 12x12 as planned, got a prepared 12x7", prepare_a(exec, "N", narrow.view(), options),
         good_b);
  expect("op(B) must be 12x12 as planned, got a prepared 7x12", x.view(),
         prepare_b(exec, "C", narrow.view(), options));
  expect("A must be prepared with 9 moduli as planned, got 10",
         prepare_a(exec, "N", x.view(), with_moduli(10)), good_b);
  expect("B must be prepared for the bound fast as planned, got accurate", good_a,
         prepare_b(exec, "C", x.view(), with_moduli(9, Bound::accurate)));
  expect("A must be prepared with rounding nearest_even as planned, got toward_zero",
         prepare_a(exec, "N", x.view(), with_moduli(9, Bound::fast, Rounding::toward_zero)), good_b);
  auto source = prepare_b(exec, "C", x.view(), options);
  const auto target = std::move(source);
  expect("B must not be a PreparedMatrix that was moved from", good_a, source);
  // the other operand and C are held to the sizes as well
  expect("B must be 12x12 as planned (transA=N, transB=c, m=12, n=12, k=12), got 12x7", good_a,
         narrow.view());
  EXPECT_EQ(
      "KokkosOzaki::GemmPlan::execute: C must be 12x12 as planned (transA=N, transB=c, m=12, n=12, k=12), "
      "got 12x7.",
      message_of([&] { plan.execute(exec, Scalar(1), good_a, target, Scalar(0), narrow.view()); }));
  // and what fits is taken, T for C where the numbers are real
  const auto same_letter = prepare_b(exec, is_complex ? "c" : "T", x.view(), options);
  plan.execute(exec, Scalar(1), good_a, same_letter, Scalar(0), c.view());
  exec.fence();
  const Operand<LayoutLeft, SharedSpace, Scalar> expected(before);
  gemm(exec, "N", "C", Scalar(1), x.view(), x.view(), Scalar(0), expected.view(), options);
  exec.fence();
  EXPECT_TRUE(same_bits(expected.values(), c.values()));
}

TYPED_TEST(PreparedMatrixOfDoublesTest, AccuratePlansTakeNoFastMatrices) {
  const Operand<LayoutLeft> x(uniform(8, 8, -1, 1, 1)), c(Matrix(8, 8));
  GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', 8, 8, 8,
                                   with_moduli(14, Bound::accurate, Rounding::toward_zero));
  EXPECT_EQ("KokkosOzaki::GemmPlan::execute: A must be prepared for the bound accurate as planned, got fast.",
            message_of([&] {
              plan.execute(TypeParam{}, 1.0, prepare_a(TypeParam{}, "N", x.view(), with_moduli(14)), x.view(),
                           0.0, c.view());
            }));
  EXPECT_EQ(
      "KokkosOzaki::GemmPlan::execute: B must be prepared with rounding toward_zero as planned, got "
      "nearest_even.",
      message_of([&] {
        plan.execute(TypeParam{}, 1.0, x.view(),
                     prepare_b(TypeParam{}, "N", x.view(), with_moduli(14, Bound::accurate)), 0.0, c.view());
      }));
}

TYPED_TEST(PreparedMatrixOfDoublesTest, BadArgumentsAreNamed) {
  const Operand<LayoutLeft> x(uniform(8, 2000, -1, 1, 1));
  const auto of_a = [&](const char* trans, const auto& view, const GemmOptions& options) {
    return message_of([&] { prepare_a(TypeParam{}, trans, view, options); });
  };
  const auto of_b = [&](const char* trans, const auto& view, const GemmOptions& options) {
    return message_of([&] { prepare_b(TypeParam{}, trans, view, options); });
  };
  EXPECT_EQ("KokkosOzaki::prepare_a: transA must be one of N, T, C, got 'X'.", of_a("X", x.view(), {}));
  EXPECT_EQ("KokkosOzaki::prepare_b: transB must be one of N, T, C, got character code 0.",
            of_b("", x.view(), {}));
  EXPECT_EQ("KokkosOzaki::prepare_a: num_moduli must be 0 or 2..20, got 21.",
            of_a("N", x.view(), with_moduli(21)));
  EXPECT_EQ("KokkosOzaki::prepare_a: too few moduli for this k: num_moduli=2, k=2000 needs at least 3.",
            of_a("N", x.view(), with_moduli(2)));
  EXPECT_EQ("nothing was thrown", of_b("N", x.view(), with_moduli(2))) << "k = 8";
  GemmOptions out_of_reach;
  out_of_reach.accuracy = Accuracy::normwise(1e-30);
  EXPECT_EQ(
      "KokkosOzaki::prepare_b: the accuracy asked for (normwise, c=1e-30) needs more than 20 moduli for "
      "k=2000.",
      of_b("T", x.view(), out_of_reach));
  const Kokkos::View<double**, LayoutStride, SharedSpace, Kokkos::MemoryUnmanaged> twice(
      x.view().data(), LayoutStride(4, 1, 5, 0));
  EXPECT_EQ(
      "KokkosOzaki::prepare_b: B must not store two entries in one place, got 4x5 with strides 1 and 0.",
      of_b("N", twice, {}));
}

TYPED_TEST(PreparedMatrixOfDoublesTest, SizesThatNoMachineHasMemoryForAreRefused) {
  // extents alone: nothing is read before the memory is there
  double entry = 0;
  const auto large = [&](std::size_t rows, std::size_t cols) {
    return Kokkos::View<double**, LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged>(&entry, rows, cols);
  };
  EXPECT_EQ(
      "KokkosOzaki::prepare_a: sizes are too large (k must be below 2^32, a matrix below 2^56 entries), got "
      "m=1, n=1, k=4294967296.",
      message_of([&] { prepare_a(TypeParam{}, "N", large(1, std::size_t{1} << 32)); }));
  for (const Bound bound : both_bounds) {
    const auto matrix = large(std::size_t{1} << 40, 1 << 10);
    try {
      prepare_a(TypeParam{}, "N", matrix, with_moduli(14, bound));
      ADD_FAILURE() << "nothing was thrown";
    } catch (const WorkspaceError& error) {
      EXPECT_GE(error.needed_bytes(), std::size_t{1} << 53);
      EXPECT_EQ("KokkosOzaki::prepare_a: " + std::to_string(error.needed_bytes()) +
                    " bytes for the prepared matrix could not be allocated: ",
                std::string(error.what())
                    .substr(0, std::string(error.what()).find("could not be allocated: ") + 24));
    }
  }
  EXPECT_NE(std::string::npos, message_of<WorkspaceError>([&] {
                                 prepare_b(TypeParam{}, "T", large(std::size_t{1} << 48, 200),
                                           with_moduli(20));
                               }).find("more than can be addressed"));
}

}  // namespace
}  // namespace KokkosOzaki::Testing
