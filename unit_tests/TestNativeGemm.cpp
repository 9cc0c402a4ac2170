// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <KokkosOzaki_config.hpp>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "ScalarOperands.hpp"

// Products in the format of C (Method::native, Fallback::vendor). Entries are small integers where results are compared:
// every order of summation then gives the exact product.

namespace KokkosOzaki::Testing {
namespace {

/// What the tests of one space and scalar share.
template <class Case>
struct Native {
  using Space = typename Case::Space;
  using Scalar = typename Case::Scalar;
  using Traits = ScalarTraits<Scalar>;
  using Real = typename Traits::Real;
  using Plan = GemmPlan<Space, Scalar>;

  static Scalar number(std::int64_t i, std::int64_t j, std::int64_t seed) {
    const auto digit = [&](std::int64_t part) {
      return static_cast<Real>((i * 31 + j * 17 + seed * 7 + part * 5 + i * j) % 15 - 7);
    };
    return Traits::make(digit(1), Traits::is_complex ? digit(2) : 0);
  }
  static auto numbers(std::int64_t seed) {
    return [seed](std::int64_t i, std::int64_t j) { return number(i, j, seed); };
  }
  static Scalar product(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t a, std::int64_t b) {
    Real re = 0, im = 0;
    for (std::int64_t l = 0; l < k; ++l) {
      const Scalar x = number(i, l, a), y = number(l, j, b);
      re += Traits::real(x) * Traits::real(y) - Traits::imag(x) * Traits::imag(y);
      im += Traits::real(x) * Traits::imag(y) + Traits::imag(x) * Traits::real(y);
    }
    return Traits::make(re, im);
  }
  static Scalar sum(const Scalar& x, const Scalar& y) {
    return Traits::make(Traits::real(x) + Traits::real(y), Traits::imag(x) + Traits::imag(y));
  }

  /// Equal to expected(i, j) everywhere; a BLAS may give a zero either sign.
  template <class Expected>
  static ::testing::AssertionResult equals(const ScalarOperand<Scalar>& C, std::int64_t m, std::int64_t n,
                                           const Expected& expected) {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        const Scalar right = expected(i, j), got = C(i, j);
        if (Traits::real(right) != Traits::real(got) || Traits::imag(right) != Traits::imag(got))
          return ::testing::AssertionFailure() << "entry (" << i << "," << j << "): expected "
                                               << text_of(right) << ", got " << text_of(got);
      }
    return ::testing::AssertionSuccess();
  }

  static GemmOptions native() {
    GemmOptions options;
    options.method = Method::native;
    return options;
  }

  static std::string vendor() {
    if (!is_host_space<Space>) return "cublas";
#if defined(KOKKOSOZAKI_ENABLE_BLAS)
    return "blas";
#else
    return "inner_products";
#endif
  }
};

template <class Case>
class NativeGemmTest : public ::testing::Test {};
TYPED_TEST_SUITE(NativeGemmTest, ContractCases, ContractNames);

constexpr Place places[] = {{false, 0, 0, 1}, {true, 1, 3, 1},  {false, 3, 1, 1},
                            {true, 0, 0, 1},  {false, 1, 2, 2}, {true, 2, 1, 3}};

TYPED_TEST(NativeGemmTest, AllOperationsAndPlacesHaveTheExactProduct) {
  using Self = Native<TypeParam>;
  using Scalar = typename Self::Scalar;
  const std::int64_t m = 9, n = 6, k = 11;
  for (const char transA : trans_letters)
    for (const char transB : trans_letters)
      for (const Place& of_a : places)
        for (const Place& of_b : places)
          for (const Place& of_c : places) {
            const auto A = stored_operand<Scalar>(m, k, transA, of_a, Self::numbers(1));
            const auto B = stored_operand<Scalar>(k, n, transB, of_b, Self::numbers(2));
            const ScalarOperand<Scalar> C(m, n, of_c, Self::numbers(3));
            run_gemm<typename Self::Space, Scalar>(transA, transB, Scalar(1), A, B, Scalar(1), C,
                                                   Self::native());
            ASSERT_TRUE(Self::equals(C, m, n,
                                     [&](std::int64_t i, std::int64_t j) {
                                       return Self::sum(Self::product(i, j, k, 1, 2), Self::number(i, j, 3));
                                     }))
                << transA << transB;
            ASSERT_TRUE(C.gaps_are_intact()) << transA << transB;
          }
}

TYPED_TEST(NativeGemmTest, SizesOfOneAndNothing) {
  using Self = Native<TypeParam>;
  using Scalar = typename Self::Scalar;
  for (const std::int64_t m : {0, 1, 2, 33})
    for (const std::int64_t n : {0, 1, 3})
      for (const std::int64_t k : {0, 1, 5}) {
        for (const char trans : trans_letters) {
          const auto A = stored_operand<Scalar>(m, k, trans, places[static_cast<std::size_t>(m + k) % 6],
                                                Self::numbers(1));
          const auto B = stored_operand<Scalar>(k, n, trans, places[static_cast<std::size_t>(n + k) % 6],
                                                Self::numbers(2));
          const ScalarOperand<Scalar> C(m, n, places[static_cast<std::size_t>(m + n) % 6],
                                        [](auto, auto) { return poison_of<Scalar>(); });
          run_gemm<typename Self::Space, Scalar>(trans, trans, Scalar(1), A, B, Scalar(0), C, Self::native());
          ASSERT_TRUE(Self::equals(
              C, m, n, [&](std::int64_t i, std::int64_t j) { return Self::product(i, j, k, 1, 2); }))
              << m << "x" << n << "x" << k << trans << ": beta = 0 does not read C";
          ASSERT_TRUE(C.gaps_are_intact());
        }
      }
}

TYPED_TEST(NativeGemmTest, MixedOperandsAreConvertedExactly) {
  using Self = Native<TypeParam>;
  using Scalar = typename Self::Scalar;
  if constexpr (std::is_same_v<typename Self::Real, double>) {
    using Narrow = std::conditional_t<Self::Traits::is_complex, Kokkos::complex<float>, float>;
    const std::int64_t m = 5, n = 4, k = 7;
    const auto narrow = [](std::int64_t i, std::int64_t j) {
      const Scalar x = Self::number(i, j, 1);
      return ScalarTraits<Narrow>::make(static_cast<float>(Self::Traits::real(x)),
                                        static_cast<float>(Self::Traits::imag(x)));
    };
    const ScalarOperand<Narrow> A(m, k, places[1], narrow);
    const ScalarOperand<Scalar> B(k, n, places[2], Self::numbers(2)), C(m, n, places[0], Self::numbers(3));
    const typename Self::Space exec{};
    gemm(exec, "N", "N", Scalar(1), A.view(), B.view(), Scalar(0), C.view(), Self::native());
    exec.fence();
    EXPECT_TRUE(
        Self::equals(C, m, n, [&](std::int64_t i, std::int64_t j) { return Self::product(i, j, k, 1, 2); }));
  }
}

TYPED_TEST(NativeGemmTest, BatchesHaveTheirProducts) {
  using Self = Native<TypeParam>;
  using Scalar = typename Self::Scalar;
  const std::int64_t m = 4, n = 3, k = 5, entries = 7;
  std::vector<Scalar> a(static_cast<std::size_t>(m * k * entries)),
      b(static_cast<std::size_t>(k * n * entries)), c(static_cast<std::size_t>(m * n * entries));
  using Batch = Kokkos::View<Scalar***, Kokkos::LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged>;
  const Batch A(a.data(), m, k, entries), B(b.data(), k, n, entries), C(c.data(), m, n, entries);
  for (std::int64_t e = 0; e < entries; ++e) {
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t i = 0; i < m; ++i) A(i, l, e) = Self::number(i, l, e);
      for (std::int64_t j = 0; j < n; ++j) B(l, j, e) = Self::number(l, j, e + 1);
    }
  }
  const auto check = [&](const char* what) {
    for (std::int64_t e = 0; e < entries; ++e)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i)
          ASSERT_EQ(Self::product(i, j, k, e, e + 1), C(i, j, e)) << what << " " << e;
  };
  const typename Self::Space exec{};
  gemm_batched(exec, "N", "N", Scalar(1), A, B, Scalar(0), C, Self::native());
  exec.fence();
  check("rank 3");
  using Entry = Kokkos::View<Scalar**, Kokkos::LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged>;
  std::vector<Entry> of_a, of_c;
  for (std::int64_t e = 0; e < entries; ++e) {
    of_a.emplace_back(a.data() + e * m * k, m, k);
    of_c.emplace_back(c.data() + e * m * n, m, n);
  }
  std::fill(c.begin(), c.end(), Scalar(0));
  gemm_batched(exec, "N", "N", Scalar(1), of_a, B, Scalar(0), of_c, Self::native());
  exec.fence();
  check("arrays");
}

TYPED_TEST(NativeGemmTest, ReportSaysWhatRanAndWhatItPromises) {
  using Self = Native<TypeParam>;
  using Scalar = typename Self::Scalar;
  const std::int64_t m = 8, n = 7, k = 100;
  const typename Self::Space exec{};
  EXPECT_EQ(0u, Self::Plan::workspace_bytes(m, n, k, Self::native()));
  typename Self::Plan plan(exec, 'N', 'N', m, n, k, Self::native());
  EXPECT_EQ(0u, plan.workspace_bytes());
  const ScalarOperand<Scalar> A(m, k, {}, Self::numbers(1)), B(k, n, {}, Self::numbers(2)),
      strided(m, k, {false, 0, 0, 2}, Self::numbers(1)), C(m, n, {}, Self::numbers(3));
  const auto expect_native = [&](const std::string& backend) {
    const GemmReport report = plan.report();
    EXPECT_EQ(Method::native, report.method);
    EXPECT_STREQ("native", report.reason);
    EXPECT_EQ(backend, report.backend);
    EXPECT_EQ(0, report.num_moduli);
    const double terms = Self::Traits::is_complex ? 200 : 100;
    EXPECT_GE(report.componentwise_bound, terms) << "gamma_k / u";
    EXPECT_LE(report.componentwise_bound, terms * (1 + 1e-4));
    EXPECT_EQ(report.error_bound, report.componentwise_bound);
  };
  expect_native(Self::vendor());
  plan.execute(exec, Scalar(1), A.view(), B.view(), Scalar(0), C.view());
  expect_native(Self::vendor());
  plan.execute(exec, Scalar(1), strided.view(), B.view(), Scalar(0), C.view());
  expect_native("inner_products");
  exec.fence();
  EXPECT_TRUE(
      Self::equals(C, m, n, [&](std::int64_t i, std::int64_t j) { return Self::product(i, j, k, 1, 2); }));

  // a prepared operand is as good as a View
  const auto prepared = prepare_a(exec, "N", A.view(), Self::native());
  plan.execute(exec, Scalar(1), prepared, B.view(), Scalar(0), C.view());
  expect_native(Self::vendor());
  exec.fence();
  EXPECT_TRUE(
      Self::equals(C, m, n, [&](std::int64_t i, std::int64_t j) { return Self::product(i, j, k, 1, 2); }));

  GemmOptions emulated;
  EXPECT_EQ(Method::emulated, typename Self::Plan(exec, 'N', 'N', m, n, k, emulated).report().method);
}

TYPED_TEST(NativeGemmTest, FallbackOfTheVendorTakesWhatNoNumberOfModuliPromises) {
  using Self = Native<TypeParam>;
  using Scalar = typename Self::Scalar;
  using Real = typename Self::Real;
  const bool is_single = std::is_same_v<Real, float>;
  const std::int64_t n = 32, k = 64;
  const auto power = [](int e) { return Scalar(std::ldexp(Real(1), e)); };
  const int large = is_single ? 60 : 80, small = is_single ? -70 : -90;
  // [2^80, 1] . [2^-90, 1]
  const ScalarOperand<Scalar> A(n, k, {}, [&](auto i, auto l) {
    return i != 0 ? Scalar(Real((i + l) % 3)) : l == 0 ? power(large) : Scalar(Real(l == 1));
  });
  const ScalarOperand<Scalar> B(k, n, {}, [&](auto l, auto j) {
    return j != 0 ? Scalar(Real((l + 2 * j) % 3)) : l == 0 ? power(small) : Scalar(Real(l == 1));
  });
  const ScalarOperand<Scalar> fallback(n, n, {}, Self::numbers(3)), native(n, n, {}, Self::numbers(3)),
      emulated(n, n, {}, Self::numbers(3));
  const typename Self::Space exec{};
  GemmOptions options;
  options.fallback = Fallback::vendor;
  typename Self::Plan plan(exec, 'N', 'N', n, n, k, options);
  EXPECT_EQ(Method::emulated, plan.report().method) << "not known yet";
  plan.execute(exec, Scalar(1), A.view(), B.view(), Scalar(0), fallback.view());
  const GemmReport report = plan.report();
  EXPECT_EQ(Method::native, report.method);
  EXPECT_STREQ("fallback", report.reason);
  EXPECT_EQ(Self::vendor(), report.backend);
  run_gemm<typename Self::Space, Scalar>('N', 'N', Scalar(1), A, B, Scalar(0), native, Self::native());
  exec.fence();
  EXPECT_TRUE(fallback.equals([&](std::int64_t i, std::int64_t j) { return native(i, j); }));
  EXPECT_EQ(std::ldexp(Real(1), large + small) + 1, Self::Traits::real(fallback(0, 0)));
  run_gemm<typename Self::Space, Scalar>('N', 'N', Scalar(1), A, B, Scalar(0), emulated, options);
  EXPECT_TRUE(emulated.equals([&](std::int64_t i, std::int64_t j) { return native(i, j); }))
      << "gemm does what a plan does";

  // the same plan with data that moduli can do
  const ScalarOperand<Scalar> plain(n, k, {}, Self::numbers(1)), other(k, n, {}, Self::numbers(2));
  plan.execute(exec, Scalar(1), plain.view(), other.view(), Scalar(0), fallback.view());
  EXPECT_EQ(Method::emulated, plan.report().method);
  EXPECT_STREQ("componentwise", plan.report().reason);
  exec.fence();
}

TYPED_TEST(NativeGemmTest, AutomaticKeepsAStricterPromise) {
  using Self = Native<TypeParam>;
  using Scalar = typename Self::Scalar;
  // c = 1 is more than a native product promises: nothing is measured, and the result is the emulated one
  const std::int64_t n = 20, k = 40;
  const ScalarOperand<Scalar> A(n, k, {}, Self::numbers(1)), B(k, n, {}, Self::numbers(2)),
      C(n, n, {}, Self::numbers(3));
  GemmOptions options;
  options.method = Method::automatic;
  options.accuracy = Accuracy::componentwise(1);
  const typename Self::Space exec{};
  typename Self::Plan plan(exec, 'N', 'N', n, n, k, options);
  plan.execute(exec, Scalar(1), A.view(), B.view(), Scalar(0), C.view());
  EXPECT_EQ(Method::emulated, plan.report().method);
  EXPECT_EQ(1.0, plan.report().componentwise_bound);
  exec.fence();
  EXPECT_TRUE(
      Self::equals(C, n, n, [&](std::int64_t i, std::int64_t j) { return Self::product(i, j, k, 1, 2); }));
}

}  // namespace
}  // namespace KokkosOzaki::Testing
