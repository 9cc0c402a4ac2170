// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <KokkosOzaki.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "ReferenceGemm.hpp"
#include "ScalarOperands.hpp"

// The number of moduli chosen from the data. The grading cases are in the spirit of those that BLAS
// implementations are graded with: data for which a method that scales whole rows and columns loses digits first.

namespace KokkosOzaki::Testing {
namespace {

/// What the tests of one space and scalar share.
template <class Case>
struct Graded {
  using Space = typename Case::Space;
  using Scalar = typename Case::Scalar;
  using Traits = ScalarTraits<Scalar>;
  using R = typename Traits::Real;
  using Plan = GemmPlan<Space, Scalar>;

  static constexpr bool is_single = std::is_same_v<R, float>;
  static constexpr int precision = is_single ? 24 : 53;
  static constexpr int least_exponent = is_single ? -149 : -1074;
  static constexpr int largest_exponent = is_single ? 127 : 1023;

  static GemmOptions options_for(const Accuracy& accuracy) {
    GemmOptions options;
    options.accuracy = accuracy;
    return options;
  }

  /// alpha = 1, beta = 0.
  static GemmReport multiply(const MatrixOf<Scalar>& A, const MatrixOf<Scalar>& B, const GemmOptions& options,
                             MatrixOf<Scalar>& C) {
    const auto operand = [](const MatrixOf<Scalar>& x) {
      return ScalarOperand<Scalar>(x.rows(), x.cols(), {}, x);
    };
    const ScalarOperand<Scalar> a = operand(A), b = operand(B), c = operand(C);
    const Space exec{};
    Plan plan(exec, 'N', 'N', A.rows(), B.cols(), A.cols(), options);
    plan.execute(exec, Scalar(1), a.view(), b.view(), Scalar(0), c.view());
    exec.fence();
    for (std::int64_t j = 0; j < C.cols(); ++j)
      for (std::int64_t i = 0; i < C.rows(); ++i) C(i, j) = c(i, j);
    return plan.report();
  }

  static double part(const Scalar& x, int which) {
    return static_cast<double>(which == 0 ? Traits::real(x) : Traits::imag(x));
  }

  /// The exact real or imaginary part of an entry, and the measure that the promise is about.
  static ExactNumber exact_part(const MatrixOf<Scalar>& A, const MatrixOf<Scalar>& B, std::int64_t i,
                                std::int64_t j, int which, bool magnitudes) {
    static ExactSum sum;
    sum.clear();
    const auto add = [](double x, double y, bool minus, bool magnitude) {
      std::int64_t u, v;
      int e, f;
      decompose(x, u, e);
      decompose(y, v, f);
      if (u == 0 || v == 0) return;
      if (magnitude) u = std::abs(u), v = std::abs(v);
      sum.add(minus && !magnitude ? -u : u, e, v, f);
    };
    for (std::int64_t l = 0; l < A.cols(); ++l) {
      const Scalar x = A(i, l), y = B(l, j);
      if constexpr (Traits::is_complex) {
        for (int p = 0; p < 2; ++p)
          for (int q = 0; q < 2; ++q)
            if (magnitudes || (p ^ q) == which) add(part(x, p), part(y, q), p == 1 && q == 1, magnitudes);
      } else {
        add(part(x, 0), part(y, 0), false, magnitudes);
      }
    }
    return sum.value();
  }

  /// |C - exact| <= c u W + u |C| + half the smallest number, for every part of every entry.
  static void expect_bound(const MatrixOf<Scalar>& A, const MatrixOf<Scalar>& B, const MatrixOf<Scalar>& C,
                           double c) {
    const Real u = power_of_two(-precision), half_least = power_of_two(least_exponent - 1);
    const Real largest = power_of_two(largest_exponent + 1) - power_of_two(largest_exponent - precision);
    for (std::int64_t j = 0; j < C.cols(); ++j)
      for (std::int64_t i = 0; i < C.rows(); ++i) {
        const Real allowed = to_real(c) * u * to_real(exact_part(A, B, i, j, 0, true));
        for (int which = 0; which < (Traits::is_complex ? 2 : 1); ++which) {
          const ExactNumber exact = exact_part(A, B, i, j, which, false);
          const double got = part(C(i, j), which);
          if (std::isinf(got)) {
            const Real value = to_real(exact);
            ASSERT_TRUE((got > 0 ? value : Real(-value)) + allowed >= largest)
                << "Inf at (" << i << "," << j << ")";
            continue;
          }
          const Real error = abs(to_real(difference(got, exact)));
          ASSERT_TRUE(error <= allowed + u * to_real(std::fabs(got)) + half_least)
              << "part " << which << " of (" << i << "," << j << "): got " << got << ", exact "
              << round_to_double(exact);
        }
      }
  }

  /// From real entries; the imaginary parts of complex ones are draws of their own.
  static MatrixOf<Scalar> matrix(std::int64_t rows, std::int64_t cols,
                                 const std::function<double(std::int64_t, std::int64_t)>& entry) {
    MatrixOf<Scalar> x(rows, cols);
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < rows; ++i) {
        const R re = static_cast<R>(entry(i, j));
        x(i, j) = Traits::make(re, Traits::is_complex ? static_cast<R>(entry(i, j)) : R{0});
      }
    return x;
  }
};

template <class Case>
class ComponentwiseTest : public ::testing::Test {};
TYPED_TEST_SUITE(ComponentwiseTest, ContractCases, ContractNames);

// ---- the grading suite ------------------------------------------------------------------------------

struct Family {
  const char* name;
  /// Entries of op(A) (row i, position l) and of op(B) (column j, position l).
  std::function<double(Random&, std::int64_t, std::int64_t)> a, b;
};

/// \param least, largest  exponents of the smallest subnormal number and of the largest numbers of the format
std::vector<Family> families(int least, int largest) {
  const auto sign = [](Random& r) { return r.integer(0, 1) == 0 ? -1.0 : 1.0; };
  const auto number = [sign](Random& r, std::int64_t exponent) {
    return std::ldexp(sign(r) * (1 + r.unit()), static_cast<int>(exponent));
  };
  const auto anywhere = [=](Random& r, std::int64_t, std::int64_t) {
    return number(r, r.integer(least, largest));
  };
  const auto lognormal = [](double phi) {
    return [phi](Random& r, std::int64_t, std::int64_t) {
      return (r.unit() - 0.5) * std::exp(phi * r.normal());
    };
  };
  const auto sparse = [=](Random& r, std::int64_t, std::int64_t) {
    return r.integer(0, 3) == 0 ? number(r, r.integer(-20, 20)) : r.integer(0, 1) == 0 ? 0.0 : -0.0;
  };
  const int wide = largest / 4;
  return {
      {"uniform", [](Random& r, std::int64_t, std::int64_t) { return r.unit() - 0.5; },
       [](Random& r, std::int64_t, std::int64_t) { return r.unit() - 0.5; }},
      {"positive", [](Random& r, std::int64_t, std::int64_t) { return r.unit(); },
       [](Random& r, std::int64_t, std::int64_t) { return r.unit(); }},
      {"graded rows and columns", [=](Random& r, std::int64_t i, std::int64_t) { return number(r, -12 * i); },
       [=](Random& r, std::int64_t j, std::int64_t) { return number(r, 9 * j); }},
      {"graded along k", [=](Random& r, std::int64_t, std::int64_t l) { return number(r, -3 * l); },
       [=](Random& r, std::int64_t, std::int64_t l) { return number(r, -2 * l); }},
      {"large meets small", [=](Random& r, std::int64_t, std::int64_t l) { return number(r, 3 * l % wide); },
       [=](Random& r, std::int64_t, std::int64_t l) { return number(r, -(3 * l % wide)); }},
      {"spread 1", lognormal(1), lognormal(1)},
      {"spread 4", lognormal(4), lognormal(4)},
      {"spread 16", lognormal(least < -200 ? 16 : 5), lognormal(least < -200 ? 16 : 5)},
      {"any exponent", anywhere, anywhere},
      {"any exponent by flat", anywhere,
       [](Random& r, std::int64_t, std::int64_t) { return r.unit() - 0.5; }},
      {"sparse", sparse, sparse},
      {"cancellation",
       [=](Random& r, std::int64_t, std::int64_t l) { return l % 2 == 0 ? 3.0 : -3.0 + number(r, -20); },
       [=](Random& r, std::int64_t, std::int64_t) { return 1.0 + std::ldexp(r.unit(), -18); }},
      {"subnormal",
       [=](Random& r, std::int64_t, std::int64_t) { return number(r, least + r.integer(0, 12)); },
       [=](Random& r, std::int64_t, std::int64_t) { return number(r, r.integer(-8, 8)); }},
      {"outlier column",
       [=](Random& r, std::int64_t, std::int64_t l) { return number(r, l == 3 ? wide : 0); },
       [=](Random& r, std::int64_t j, std::int64_t l) { return number(r, l == 3 && j == 0 ? wide / 2 : 0); }},
      {"triangular", [=](Random& r, std::int64_t i, std::int64_t l) { return l <= i ? number(r, 0) : 0.0; },
       [=](Random& r, std::int64_t j, std::int64_t l) { return l >= j ? number(r, 0) : 0.0; }},
      {"blocks", [=](Random& r, std::int64_t i, std::int64_t l) { return (l ^ i) & 1 ? 0.0 : number(r, 0); },
       [=](Random& r, std::int64_t j, std::int64_t l) { return (l ^ j) & 1 ? 0.0 : number(r, 0); }},
      {"blocks of different size",
       [=](Random& r, std::int64_t i, std::int64_t l) { return number(r, (l ^ i) & 1 ? -40 : 30); },
       [=](Random& r, std::int64_t j, std::int64_t l) { return number(r, (l ^ j) & 1 ? -30 : 40); }},
      {"integers",
       [](Random& r, std::int64_t, std::int64_t) { return static_cast<double>(r.integer(-9, 9)); },
       [](Random& r, std::int64_t, std::int64_t) { return static_cast<double>(r.integer(-1000, 1000)); }},
  };
}

TYPED_TEST(ComponentwiseTest, NoGradedCaseIsAboveItsBound) {
  using G = Graded<TypeParam>;
  using Scalar = typename G::Scalar;
  const std::vector<Family> all = families(G::least_exponent, G::largest_exponent);
  // With the spaces Serial and OpenMP more than 10000 of each scalar.
  const int cases = 5004 / static_cast<int>(all.size());
  std::vector<int> chosen(21, 0);
  std::int64_t exact_entries = 0;
  for (const Family& family : all)
    for (int number = 0; number < cases; ++number) {
      SCOPED_TRACE(std::string(family.name) + ", case " + std::to_string(number));
      Random random(static_cast<std::uint64_t>(number) * 64 +
                    static_cast<std::uint64_t>(&family - all.data()));
      const std::int64_t m = random.integer(1, 3), n = random.integer(1, 3),
                         k = random.integer(1, number % 50 == 0 ? 300 : 24);
      const auto A = G::matrix(m, k, [&](std::int64_t i, std::int64_t l) { return family.a(random, i, l); });
      const auto B = G::matrix(k, n, [&](std::int64_t l, std::int64_t j) { return family.b(random, j, l); });
      MatrixOf<Scalar> C(m, n);
      const double constants[] = {1, 2, 10, 1000, 1e7};
      const int which = static_cast<int>(random.integer(0, 7));
      GemmOptions options =
          G::options_for(which < 5 ? Accuracy::componentwise(constants[which]) : Accuracy::componentwise());
      if (number % 8 == 7) options.rounding = Rounding::toward_zero;
      const GemmReport report = G::multiply(A, B, options, C);
      const double expected = which < 5 ? std::min(constants[which], 1048575.0) : static_cast<double>(k);
      ASSERT_EQ(report.componentwise_bound, expected);
      ASSERT_NO_FATAL_FAILURE(G::expect_bound(A, B, C, expected));
      ++chosen[static_cast<std::size_t>(report.num_moduli)];
      exact_entries += report.exact_entries;
    }
  // The suite sees easy data, hard data, and data for which there is no number of moduli.
  EXPECT_GT(exact_entries, 100);
  const std::size_t least = G::is_single ? 4 : 10, many = G::is_single ? 9 : 18;
  EXPECT_GT(std::accumulate(chosen.begin() + static_cast<std::ptrdiff_t>(least), chosen.begin() + 14, 0),
            100);
  EXPECT_GT(std::accumulate(chosen.begin() + static_cast<std::ptrdiff_t>(many), chosen.end(), 0), 100);
}

// ---- known products ---------------------------------------------------------------------------------

template <class Case>
struct GradedReal : Graded<Case> {
  using Base = Graded<Case>;
  using R = typename Base::R;

  static R dot(const std::vector<double>& x, const std::vector<double>& y, const Accuracy& accuracy) {
    const auto k = static_cast<std::int64_t>(x.size());
    const auto A =
        Base::matrix(1, k, [&](std::int64_t, std::int64_t l) { return x[static_cast<std::size_t>(l)]; });
    const auto B =
        Base::matrix(k, 1, [&](std::int64_t l, std::int64_t) { return y[static_cast<std::size_t>(l)]; });
    MatrixOf<R> C(1, 1);
    Base::multiply(A, B, Base::options_for(accuracy), C);
    return C(0, 0);
  }
};

template <class Case>
class RealComponentwiseTest : public ::testing::Test {};
TYPED_TEST_SUITE(RealComponentwiseTest, RealContractCases, ContractNames);

TYPED_TEST(RealComponentwiseTest, HardInnerProductsAreRight) {
  using G = GradedReal<TypeParam>;
  const int least = G::least_exponent;
  for (const Accuracy& accuracy : {Accuracy::componentwise(), Accuracy::componentwise(1)}) {
    EXPECT_EQ(G::dot({0x1p80, 1}, {0x1p-90, 1}, accuracy), 1 + 0x1p-10f);
    EXPECT_EQ(G::dot({0x1p60, 0, 1}, {0, 0x1p60, 1}, accuracy), 1);
    EXPECT_EQ(G::dot({std::ldexp(1.0, least), std::ldexp(1.0, least + 4)}, {1, 1}, accuracy),
              std::ldexp(17.0, least));
    EXPECT_EQ(G::dot({0, 0}, {1, 1}, accuracy), 0);
  }
}

TYPED_TEST(RealComponentwiseTest, LargeEntriesThatMeetZerosFarApartDoNotCount) {
  using G = GradedReal<TypeParam>;
  struct Form {
    std::int64_t k;
    std::array<std::int64_t, 3> places;
  };
  // In one chunk of the statistics (128 positions) and in three of them; in three of the eighths of k of which
  // the first lower bound takes one; in three blocks of k (131008 positions).
  const std::vector<Form> forms = {{1000, {3, 70, 127}},         {1000, {0, 500, 999}},
                                   {1000, {127, 128, 256}},      {16384, {100, 2048, 4096}},
                                   {16384, {7000, 9000, 16383}}, {300000, {131007, 131008, 262016}},
                                   {300000, {5, 140000, 299999}}};
  for (const Accuracy& accuracy : {Accuracy::componentwise(), Accuracy::componentwise(1)})
    for (const Form& form : forms)
      for (std::size_t turn = 0; turn < 3; ++turn) {
        const auto place = [&](std::size_t which) {
          return static_cast<std::size_t>(form.places[(which + turn) % 3]);
        };
        std::vector<double> x(static_cast<std::size_t>(form.k)), y(x.size());
        x[place(0)] = y[place(1)] = 0x1p60;
        x[place(2)] = y[place(2)] = 1;
        EXPECT_EQ(G::dot(x, y, accuracy), 1)
            << "k=" << form.k << " places " << place(0) << " " << place(1) << " " << place(2);
      }
}

TYPED_TEST(RealComponentwiseTest, AHardInnerProductAmongOrdinaryOnesIsRight) {
  using G = GradedReal<TypeParam>;
  struct Place {
    std::int64_t i, j, large, one;
  };
  for (const Place& place : {Place{0, 0, 0, 1}, Place{17, 5, 40, 9}, Place{31, 31, 63, 0}}) {
    SCOPED_TRACE("entry (" + std::to_string(place.i) + "," + std::to_string(place.j) + ")");
    Random random(219);
    auto A = G::matrix(32, 64, [&](std::int64_t, std::int64_t) { return random.unit() - 0.5; });
    auto B = G::matrix(64, 32, [&](std::int64_t, std::int64_t) { return random.unit() - 0.5; });
    for (std::int64_t l = 0; l < 64; ++l) A(place.i, l) = 0, B(l, place.j) = 0;
    A(place.i, place.large) = 0x1p80f, B(place.large, place.j) = 0x1p-90f;
    A(place.i, place.one) = B(place.one, place.j) = 1;
    MatrixOf<typename G::R> C(32, 32);
    const GemmReport report = G::multiply(A, B, {}, C);
    EXPECT_EQ(C(place.i, place.j), 1 + 0x1p-10f);
    EXPECT_STREQ(report.reason, "componentwise");
    EXPECT_EQ(report.exact_entries, 1);
    ASSERT_NO_FATAL_FAILURE(G::expect_bound(A, B, C, 64));
  }
}

// ---- the choice -------------------------------------------------------------------------------------

TYPED_TEST(ComponentwiseTest, PowersOfTwoChangeNeitherTheChoiceNorTheBits) {
  using G = Graded<TypeParam>;
  using Scalar = typename G::Scalar;
  Random random(211);
  for (const double phi : {0.0, 1.0, 4.0}) {
    const auto entry = [&](std::int64_t, std::int64_t) {
      return (random.unit() - 0.5) * std::exp(phi * random.normal());
    };
    MatrixOf<Scalar> A = G::matrix(9, 40, entry), B = G::matrix(40, 7, entry), C(9, 7), D(9, 7);
    const GemmReport report = G::multiply(A, B, G::options_for(Accuracy::componentwise()), C);
    const auto scale = [](Scalar x, int e) {
      using Real = typename G::R;
      return x * static_cast<Real>(std::ldexp(1.0, e));
    };
    for (std::int64_t l = 0; l < 40; ++l) {
      for (std::int64_t i = 0; i < 9; ++i) A(i, l) = scale(A(i, l), static_cast<int>(3 * i - 11));
      for (std::int64_t j = 0; j < 7; ++j) B(l, j) = scale(B(l, j), static_cast<int>(5 - 4 * j));
    }
    const GemmReport again = G::multiply(A, B, G::options_for(Accuracy::componentwise()), D);
    EXPECT_EQ(report.num_moduli, again.num_moduli);
    for (std::int64_t i = 0; i < 9; ++i)
      for (std::int64_t j = 0; j < 7; ++j)
        ASSERT_TRUE(same_scalar(scale(C(i, j), static_cast<int>(3 * i - 11 + 5 - 4 * j)), D(i, j)));
  }
}

TYPED_TEST(ComponentwiseTest, AStricterRequestNeverTakesFewerModuli) {
  using G = Graded<TypeParam>;
  Random random(212);
  for (const double phi : {0.0, 1.0, 2.0, 4.0}) {
    const auto entry = [&](std::int64_t, std::int64_t) {
      return (random.unit() - 0.5) * std::exp(phi * random.normal());
    };
    const auto A = G::matrix(5, 64, entry), B = G::matrix(64, 6, entry);
    MatrixOf<typename G::Scalar> C(5, 6);
    int previous = 21;
    for (const double c : {1.0, 3.0, 64.0, 5000.0, 1e6}) {
      const GemmReport report = G::multiply(A, B, G::options_for(Accuracy::componentwise(c)), C);
      EXPECT_LE(report.num_moduli, previous);
      previous = report.num_moduli;
    }
  }
}

TYPED_TEST(ComponentwiseTest, StructuralZerosAreProvenNotComputed) {
  using G = Graded<TypeParam>;
  const std::int64_t n = 24;
  Random random(213);
  // Two blocks on the diagonal: half of the entries have no product that is not zero.
  const auto entry = [&](std::int64_t i, std::int64_t j) {
    return (i < 12) == (j < 12) ? random.unit() - 0.5 : 0.0;
  };
  const auto A = G::matrix(n, n, entry), B = G::matrix(n, n, entry);
  MatrixOf<typename G::Scalar> C(n, n);
  const GemmReport report = G::multiply(A, B, G::options_for(Accuracy::componentwise()), C);
  EXPECT_EQ(report.exact_entries, 0);
  EXPECT_GT(report.num_moduli, 0);
  for (std::int64_t i = 0; i < 12; ++i) EXPECT_TRUE(same_scalar(C(i, 12 + i), typename G::Scalar(0)));
  ASSERT_NO_FATAL_FAILURE(G::expect_bound(A, B, C, static_cast<double>(n)));
}

TYPED_TEST(ComponentwiseTest, FewHopelessEntriesAreComputedExactly) {
  using G = Graded<TypeParam>;
  using Scalar = typename G::Scalar;
  using Traits = ScalarTraits<Scalar>;
  using R = typename G::R;
  Random random(214);
  // Row 2 and column 3 have large entries that do not meet; where they meet, all is tiny.
  const auto A = G::matrix(6, 10, [&](std::int64_t i, std::int64_t l) {
    return i == 2 && l >= 5 ? std::ldexp(random.unit() + 1, -50) : random.unit() - 0.5;
  });
  const auto B = G::matrix(10, 5, [&](std::int64_t l, std::int64_t j) {
    return j == 3 && l < 5 ? std::ldexp(random.unit() + 1, -50) : random.unit() - 0.5;
  });
  for (const Scalar beta : {Scalar(0), Scalar(1), Traits::make(R(-0.75), R(0))}) {
    const Scalar alpha = Traits::make(R(1.25), R(0));
    const Scalar old = Traits::make(R(3), R(-2));
    const ScalarOperand<Scalar> a(6, 10, {}, A), b(10, 5, {}, B);
    const ScalarOperand<Scalar> c(6, 5, {}, [&](std::int64_t, std::int64_t) { return old; });
    const typename G::Space exec{};
    typename G::Plan plan(exec, 'N', 'N', 6, 5, 10, G::options_for(Accuracy::componentwise(1)));
    EXPECT_EQ(plan.report().num_moduli, 0);
    plan.execute(exec, alpha, a.view(), b.view(), beta, c.view());
    exec.fence();
    const GemmReport report = plan.report();
    EXPECT_EQ(report.exact_entries, 1);
    EXPECT_STREQ(report.reason, "componentwise");
    if constexpr (!Traits::is_complex) {
      const ExactNumber exact = G::exact_part(A, B, 2, 3, 0, false);
      const R t =
          static_cast<R>(G::is_single ? static_cast<double>(round_to_float(exact)) : round_to_double(exact));
      EXPECT_EQ(c(2, 3), beta == R(0) ? alpha * t : std::fma(alpha, t, beta * old));
    }
    // The others are those of the plain call.
    GemmOptions plain;
    plain.num_moduli = report.num_moduli;
    const ScalarOperand<Scalar> d(6, 5, {}, [&](std::int64_t, std::int64_t) { return old; });
    run_gemm<typename G::Space>('N', 'N', alpha, a, b, beta, d, plain);
    EXPECT_TRUE(
        c.equals([&](std::int64_t i, std::int64_t j) { return i == 2 && j == 3 ? c(i, j) : d(i, j); }));
  }
}

TYPED_TEST(ComponentwiseTest, HopelessDataAreComputedExactly) {
  using G = Graded<TypeParam>;
  Random random(215);
  const auto entry = [&](std::int64_t, std::int64_t) {
    return std::ldexp(random.unit() + 1,
                      static_cast<int>(random.integer(G::least_exponent, G::largest_exponent - 1)));
  };
  const std::int64_t n = 40;
  const auto A = G::matrix(n, 6, entry), B = G::matrix(6, n, entry);
  MatrixOf<typename G::Scalar> C(n, n);
  const GemmReport report = G::multiply(A, B, G::options_for(Accuracy::componentwise(1)), C);
  EXPECT_STREQ(report.reason, "exact");
  EXPECT_EQ(report.exact_entries, n * n);
  ASSERT_NO_FATAL_FAILURE(G::expect_bound(A, B, C, 0));
}

TYPED_TEST(ComponentwiseTest, LongInnerDimensionsKeepThePromise) {
  using G = Graded<TypeParam>;
  Random random(216);
  for (const std::int64_t k : {1500, 2100, 140000})
    for (const double phi : {0.0, 2.0}) {
      const auto entry = [&](std::int64_t, std::int64_t) {
        return (random.unit() - 0.5) * std::exp(phi * random.normal());
      };
      const auto A = G::matrix(2, k, entry), B = G::matrix(k, 1, entry);
      MatrixOf<typename G::Scalar> C(2, 1);
      for (const Accuracy& accuracy : {Accuracy::componentwise(), Accuracy::componentwise(1)}) {
        const GemmReport report = G::multiply(A, B, G::options_for(accuracy), C);
        EXPECT_EQ(report.exact_entries, 0);
        ASSERT_NO_FATAL_FAILURE(G::expect_bound(A, B, C, report.componentwise_bound));
      }
    }
}

TYPED_TEST(ComponentwiseTest, ADataPassIsSavedByTheFirstPositions) {
  // Large entries only behind the first eighth: the first lower bound knows nothing, the whole one does.
  using G = Graded<TypeParam>;
  Random random(217);
  const std::int64_t k = 2000;
  const auto entry = [&](std::int64_t l) { return l < 1024 ? 0.0 : random.unit() + 0.5; };
  const auto A = G::matrix(3, k, [&](std::int64_t, std::int64_t l) { return entry(l); });
  const auto B = G::matrix(k, 2, [&](std::int64_t l, std::int64_t) { return entry(l); });
  MatrixOf<typename G::Scalar> C(3, 2);
  const GemmReport report = G::multiply(A, B, G::options_for(Accuracy::componentwise()), C);
  EXPECT_EQ(report.exact_entries, 0);
  EXPECT_LE(report.num_moduli, G::is_single ? 8 : 14);
  ASSERT_NO_FATAL_FAILURE(G::expect_bound(A, B, C, static_cast<double>(k)));
}

// ---- the call ---------------------------------------------------------------------------------------

TYPED_TEST(ComponentwiseTest, EveryWayToCallGivesTheSameBits) {
  using G = Graded<TypeParam>;
  using Scalar = typename G::Scalar;
  using Space = typename G::Space;
  Random random(218);
  const auto entry = [&](std::int64_t, std::int64_t) {
    return (random.unit() - 0.5) * std::exp(2 * random.normal());
  };
  const std::int64_t m = 37, n = 21, k = 90;
  MatrixOf<Scalar> A = G::matrix(m, k, entry);
  const auto B = G::matrix(k, n, entry);
  A(4, 5) = Scalar(std::numeric_limits<typename G::R>::infinity());
  const GemmOptions options = G::options_for(Accuracy::componentwise());
  MatrixOf<Scalar> C(m, n);
  const GemmReport report = G::multiply(A, B, options, C);
  ASSERT_GT(report.num_moduli, 0);
  for (const char transA : trans_letters)
    for (const char transB : trans_letters)
      for (const bool row_major : {false, true}) {
        Place place;
        place.row_major = row_major;
        const auto a = stored_operand<Scalar>(m, k, transA, place, A);
        const auto b = stored_operand<Scalar>(k, n, transB, {}, B);
        const ScalarOperand<Scalar> c(m, n, place, [](std::int64_t, std::int64_t) { return Scalar(7); });
        run_gemm<Space>(transA, transB, Scalar(1), a, b, Scalar(0), c, options);
        ASSERT_TRUE(c.equals(C)) << transA << transB << row_major;
      }
  GemmOptions plain;
  plain.num_moduli = report.num_moduli;
  MatrixOf<Scalar> D(m, n);
  G::multiply(A, B, plain, D);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i) ASSERT_TRUE(same_scalar(C(i, j), D(i, j)));

  // Blocks of C and of k, and a buffer of the caller.
  const Space exec{};
  GemmOptions capped = options;
  const std::size_t whole = G::Plan::workspace_bytes(m, n, k, options);
  // What the engine needs for any product.
  GemmOptions tiny;
  tiny.num_moduli = 2;
  const std::size_t fixed = G::Plan::workspace_bytes(1, 1, 1, tiny);
  for (const std::size_t divisor : {2, 4}) {
    const std::size_t cap = fixed + (whole - fixed) / divisor;
    capped.max_workspace_bytes = cap;
    const std::size_t bytes = G::Plan::workspace_bytes(m, n, k, capped);
    ASSERT_LE(bytes, cap);
    const ScalarOperand<Scalar> a(m, k, {}, A), b(k, n, {}, B);
    const ScalarOperand<Scalar> c(m, n, {}, [](std::int64_t, std::int64_t) { return Scalar(7); });
    typename G::Plan plan(ExternalWorkspace{}, exec, 'N', 'N', m, n, k, capped);
    const Kokkos::View<char*, typename Space::memory_space> buffer("buffer", bytes);
    plan.execute(exec, Scalar(1), a.view(), b.view(), Scalar(0), c.view(), buffer);
    exec.fence();
    EXPECT_TRUE(c.equals(C)) << cap;
  }
  capped.max_workspace_bytes = 2000;
  EXPECT_FALSE(G::Plan::can_run(m, n, k, capped));
  EXPECT_THROW(G::Plan::workspace_bytes(m, n, k, capped), WorkspaceError);
}

TYPED_TEST(ComponentwiseTest, ConstantsBelowOneAreRefused) {
  using G = Graded<TypeParam>;
  for (const double c : {0.5, 0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    try {
      G::Plan::workspace_bytes(3, 3, 3, G::options_for(Accuracy::componentwise(c)));
      FAIL() << c;
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(
          std::string(error.what()).find("the constant of a componentwise accuracy must be at least 1, got"),
          std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
