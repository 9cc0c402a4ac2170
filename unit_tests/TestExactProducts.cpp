// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stages/KokkosOzaki_ExactProducts.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::EpilogueOf;
using Impl::flagged_vector;
using Impl::is_complex_v;
using Impl::MatrixRef;
using Impl::RealOf;
using Impl::VectorSet;

using Complex = Kokkos::complex<double>;
using FloatComplex = Kokkos::complex<float>;

// ---- the exact values -------------------------------------------------------------------------------

/// Sum of products in units of 2^exponent.
class ExactDot {
 public:
  void add(double x, double y) {
    const ExactDouble u = exact(x), v = exact(y);
    m_sum += u.mantissa * v.mantissa << static_cast<mp_bitcnt_t>(u.exponent + v.exponent - exponent);
  }
  template <class Real>
  Real rounded() const {
    return static_cast<Real>(std::is_same_v<Real, float> ? reference_float(m_sum, exponent)
                                                         : reference_double(m_sum, exponent));
  }

 private:
  static constexpr std::int64_t exponent = -2 * (1074 + 53);
  mpz_class m_sum;
};

template <class Scalar, class A, class B>
Scalar reference_product(const std::vector<A>& x, const std::vector<B>& y, bool conj_x, bool conj_y) {
  using Real = RealOf<Scalar>;
  ExactDot re;
  for (std::size_t l = 0; l < x.size(); ++l)
    re.add(Impl::part_of(x[l], 0), static_cast<double>(Impl::part_of(y[l], 0)));
  if constexpr (is_complex_v<Scalar>) {
    ExactDot im;
    for (std::size_t l = 0; l < x.size(); ++l) {
      const double x_im = conj_x ? -x[l].imag() : x[l].imag(), y_im = conj_y ? -y[l].imag() : y[l].imag();
      re.add(x_im, -y_im);
      im.add(x[l].real(), y_im);
      im.add(x_im, y[l].real());
    }
    return Scalar(re.rounded<Real>(), im.rounded<Real>());
  } else {
    return re.rounded<Real>();
  }
}

template <class Scalar>
::testing::AssertionResult equal_scalars(const Scalar& expected, const Scalar& got) {
  for (int part = 0; part < Impl::parts_of_v<Scalar>; ++part)
    if (const auto result = equal_values(Impl::part_of(expected, part), Impl::part_of(got, part)); !result)
      return result;
  return ::testing::AssertionSuccess();
}

template <class Scalar>
::testing::AssertionResult equal_vectors(const std::vector<Scalar>& expected,
                                         const std::vector<Scalar>& got) {
  for (std::size_t e = 0; e < expected.size(); ++e)
    if (auto result = equal_scalars(expected[e], got[e]); !result) return result << " at " << e;
  return ::testing::AssertionSuccess();
}

/// alpha t + beta c for all entries, column-major.
template <class Scalar, class A, class B>
std::vector<Scalar> reference_entries(const Rows<A>& a, bool conj_a, const Rows<B>& b, bool conj_b,
                                      const EpilogueOf<Scalar>& epilogue, std::vector<Scalar> c) {
  std::size_t e = 0;
  for (const auto& y : b)
    for (const auto& x : a)
      Impl::apply_epilogue(reference_product<Scalar>(x, y, conj_a, conj_b), epilogue, c[e++]);
  return c;
}

// ---- operands ---------------------------------------------------------------------------------------

/// Exponents first .. last as far as the format has them, a zero now and then.
template <class Element>
Element random_element(Random& random, int first, int last) {
  constexpr bool is_single = std::is_same_v<RealOf<Element>, float>;
  const int lowest = is_single ? -149 : -1074, highest = is_single ? 126 : 1022;  // may be rounded up
  first = std::clamp(first, lowest, highest), last = std::clamp(last, lowest, highest);
  const auto real = [&] { return random.below(16) == 0 ? 0.0 : random.real(first, last); };
  const double re = real();
  return make<Element>(re, real());
}

template <class Element>
Rows<Element> random_rows(Random& random, std::int64_t count, std::int64_t length, int first, int last) {
  Rows<Element> rows(static_cast<std::size_t>(count));
  for (auto& row : rows)
    for (std::int64_t l = 0; l < length; ++l) row.push_back(random_element<Element>(random, first, last));
  return rows;
}

template <class T>
void shuffle(std::vector<T>& x, Random& random) {
  for (std::int64_t i = size_of(x) - 1; i > 0; --i) std::swap(at(x, i), at(x, random.below(i + 1)));
}

/// A scalar and the operands of a product.
template <class Scalar_, class A_, class B_>
struct Operands {
  using Scalar = Scalar_;
  using A = A_;
  using B = B_;
};

/// f(Operands) for all scalars and mixes.
template <class F>
void for_each_mix(const F& f) {
  f(Operands<double, double, double>());
  f(Operands<float, float, float>());
  f(Operands<double, float, double>());
  f(Operands<double, double, float>());
  f(Operands<Complex, Complex, Complex>());
  f(Operands<FloatComplex, FloatComplex, FloatComplex>());
  f(Operands<Complex, FloatComplex, Complex>());
}

template <class ExecutionSpace>
class ExactProducts : public ::testing::Test {
 protected:
  ExecutionSpace exec;

  /// All entries of the product, and half of them from a list, in several placements. Rows and columns that are
  /// multiples of three are taken for flagged in the former if the test asks for it.
  template <class Scalar, class A, class B>
  void expect(const Rows<A>& a, const Rows<B>& b, const EpilogueOf<Scalar>& epilogue, Random& random,
              bool flags = false) {
    const std::int64_t m = size_of(a), n = size_of(b), k = size_of(a.front());
    const bool conj_a = random.below(2) == 0, conj_b = random.below(2) == 0;
    const auto is_flagged = [&](std::int64_t v) { return flags && v % 3 == 0; };
    std::vector<std::int32_t> row_exponent, col_exponent;
    for (std::int64_t i = 0; i < m; ++i) row_exponent.push_back(is_flagged(i) ? flagged_vector : 0);
    for (std::int64_t j = 0; j < n; ++j) col_exponent.push_back(is_flagged(j) ? flagged_vector : 0);

    std::vector<Scalar> before;
    for (std::int64_t e = 0; e < m * n; ++e)
      before.push_back(random.below(4) == 0 ? make<Scalar>(quiet_nan, quiet_nan)
                                            : random_element<Scalar>(random, -20, 20));
    const std::vector<Scalar> after = reference_entries(a, conj_a, b, conj_b, epilogue, before);
    std::vector<std::int64_t> entries(before.size());
    std::iota(entries.begin(), entries.end(), std::int64_t{0});
    shuffle(entries, random);
    const std::int64_t listed = (m * n + 1) / 2;

    for (const Placement& place_a : placements(m, k))
      for (const bool row_major : {false, true}) {
        SCOPED_TRACE(place_a.name);
        const std::vector<Placement> places_b = placements(n, k);
        const PlacedVectorsOf<A> rows(a, place_a, conj_a);
        const PlacedVectorsOf<B> cols(b, at(places_b, random.below(size_of(places_b))), conj_b);
        const std::int64_t row_stride = row_major ? n + 1 : 1, col_stride = row_major ? 1 : m + 2;
        const auto place = [&](std::int64_t e) { return e % m * row_stride + e / m * col_stride; };
        std::vector<Scalar> memory(static_cast<std::size_t>(place(m * n - 1) + 1), make<Scalar>(0x1.bad0p55));
        for (std::int64_t e = 0; e < m * n; ++e) at(memory, place(e)) = at(before, e);
        const MatrixRef<Scalar> C{memory.data(), m, n, row_stride, col_stride};
        const std::vector<Scalar> untouched = memory;
        std::vector<Scalar> listed_only = memory, product = memory;

        std::vector<Scalar> values(entries.size(), Scalar(7)), expected_values = values;
        for (std::int64_t e = 0; e < listed; ++e)
          at(expected_values, e) = at(listed_only, place(at(entries, e))) = at(after, at(entries, e));
        Impl::exact_entries(exec, rows.set(), cols.set(), epilogue, C, entries.data(), listed, values.data());
        exec.fence();
        ASSERT_TRUE(equal_vectors(untouched, memory));
        ASSERT_TRUE(equal_vectors(expected_values, values));
        Impl::place_entries(exec, C, entries.data(), listed, values.data());
        exec.fence();
        ASSERT_TRUE(equal_vectors(listed_only, memory));

        std::copy(untouched.begin(), untouched.end(), memory.begin());
        for (std::int64_t e = 0; e < m * n; ++e)
          if (!is_flagged(e % m) && !is_flagged(e / m)) at(product, place(e)) = at(after, e);
        Impl::exact_product(exec, rows.set(), cols.set(), row_exponent.data(), col_exponent.data(), epilogue,
                            C);
        exec.fence();
        ASSERT_TRUE(equal_vectors(product, memory));
      }
  }

  /// The product of two vectors.
  template <class Scalar, class A, class B>
  Scalar dot(const std::vector<A>& x, const std::vector<B>& y) {
    const std::vector<std::int64_t> entries = {0};
    std::vector<Scalar> value(1);
    Impl::exact_entries(exec, VectorSet<A>{x.data(), 1, size_of(x)}, VectorSet<B>{y.data(), 1, size_of(y)},
                        EpilogueOf<Scalar>{Scalar(1), Scalar(0)}, MatrixRef<Scalar>{nullptr, 1, 1},
                        entries.data(), 1, value.data());
    exec.fence();
    return value[0];
  }

  /// The same from complex products: x (i y) has it in the imaginary part, (i x) (-i y) in the real part.
  template <class Real>
  Real dot_of_parts(const std::vector<Real>& x, const std::vector<Real>& y) {
    using Scalar = Kokkos::complex<Real>;
    std::vector<Scalar> re_x, im_x, im_y, minus_im_y;
    for (std::size_t l = 0; l < x.size(); ++l) {
      re_x.emplace_back(x[l], Real(0));
      im_x.emplace_back(Real(0), x[l]);
      im_y.emplace_back(Real(0), y[l]);
      minus_im_y.emplace_back(Real(0), -y[l]);
    }
    const Scalar z = dot<Scalar>(re_x, im_y), w = dot<Scalar>(im_x, minus_im_y);
    EXPECT_TRUE(equal_values(0, z.real()));
    EXPECT_TRUE(equal_values(0, w.imag()));
    EXPECT_TRUE(equal_values(z.imag(), w.real()));
    return z.imag();
  }
};
TYPED_TEST_SUITE(ExactProducts, EnabledSpaces, SpaceNames);

template <class Scalar>
const EpilogueOf<Scalar> plain_product = {Scalar(1), Scalar(0)};

TYPED_TEST(ExactProducts, RandomExponents) {
  Random random(90);
  struct Exponents {
    int first, last;
  };
  for_each_mix([&](auto mix) {
    using Mix = decltype(mix);
    for (const Exponents range :
         {Exponents{-1074, 1023}, {-149, 127}, {-60, 60}, {-5, 5}, {-1074, -500}, {-149, -60}, {480, 520}})
      for (const std::int64_t k : {1, 2, 30}) {
        const std::int64_t m = random.between(1, 9), n = random.between(1, 9);
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
        const auto a = random_rows<typename Mix::A>(random, m, k, range.first, range.last);
        const auto b = random_rows<typename Mix::B>(random, n, k, range.first, range.last);
        ASSERT_NO_FATAL_FAILURE(this->expect(a, b, plain_product<typename Mix::Scalar>, random));
      }
  });
}

/// Every product is there with both signs but for one, which is far below the others.
TYPED_TEST(ExactProducts, CancellationToTheLastBit) {
  Random random(91);
  for_each_mix([&](auto mix) {
    using A = typename decltype(mix)::A;
    using B = typename decltype(mix)::B;
    constexpr bool is_single = std::is_same_v<RealOf<A>, float> || std::is_same_v<RealOf<B>, float>;
    constexpr int range = is_single ? 60 : 500;
    for (int trial = 0; trial < 4; ++trial) {
      std::vector<std::pair<A, B>> pairs;
      for (int l = 0; l < 20; ++l) {
        pairs.emplace_back(random_element<A>(random, -range, range),
                           random_element<B>(random, -range, range));
        pairs.emplace_back(-pairs.back().first, pairs.back().second);
      }
      pairs.emplace_back(random_element<A>(random, -range - 10, -range - 5),
                         random_element<B>(random, -range - 10, -range - 5));
      Rows<A> a;
      Rows<B> b(1);
      shuffle(pairs, random);
      a.emplace_back();
      for (const auto& pair : pairs) {
        a[0].push_back(pair.first);
        b[0].push_back(pair.second);
      }
      a.push_back(random_rows<A>(random, 1, size_of(pairs), -range, range).front());
      ASSERT_NO_FATAL_FAILURE(this->expect(a, b, plain_product<typename decltype(mix)::Scalar>, random));
    }
  });
}

/// Values at the borders of rounding, from their definition.
template <class Real>
void expect_hand_made_cases(
    const std::function<Real(const std::vector<Real>&, const std::vector<Real>&)>& dot) {
  using Limits = std::numeric_limits<Real>;
  const Real tiny = Limits::denorm_min(), big = Limits::max(), inf = Limits::infinity();
  const Real eps = Limits::epsilon(), normal = Limits::min(), half = Real(0.5);
  const Real half_ulp_of_big = std::ldexp(Real(1), Limits::max_exponent - Limits::digits - 1);
  struct Case {
    std::vector<Real> x, y;
    Real expected;
  };
  const std::vector<Case> cases = {
      {{0}, {1}, 0},
      {{Real(-0.0)}, {1}, 0},  // an exact zero
      {{1, -1}, {1, 1}, 0},
      {{tiny}, {tiny}, 0},
      {{-tiny}, {tiny}, Real(-0.0)},  // rounded to zero
      {{tiny, tiny}, {tiny, -tiny}, 0},
      {{tiny}, {half}, 0},  // ties below the smallest number
      {{tiny}, {-half}, Real(-0.0)},
      {{tiny, tiny}, {half, tiny}, tiny},
      {{-tiny, tiny}, {half, -tiny}, -tiny},
      {{tiny, tiny}, {1, half}, 2 * tiny},
      {{tiny, tiny, tiny}, {1, half, -tiny}, tiny},
      {{normal, tiny}, {1, -half}, normal},  // subnormal or not
      {{normal, tiny, tiny}, {1, -half, -tiny}, normal - tiny},
      {{1, 1}, {1, eps / 2}, 1},  // ties at 1
      {{1, 1, tiny}, {1, eps / 2, tiny}, 1 + eps},
      {{1, 1, tiny}, {1, eps / 2, -tiny}, 1},
      {{1 + eps, 1}, {1, eps / 2}, 1 + 2 * eps},
      {{-1 - eps, 1}, {1, -eps / 2}, -1 - 2 * eps},
      {{1, 1}, {1, -eps / 4}, 1},
      {{1, 1, tiny}, {1, -eps / 4, -tiny}, 1 - eps / 2},
      {{big}, {big}, inf},
      {{big}, {-big}, -inf},
      {{big, -big, 1}, {big, big, 1}, 1},  // products that overflow but cancel
      {{big, tiny, -big}, {big, 1, big}, tiny},
      {{big, big, big}, {1, 1, -2}, 0},
      {{big, big}, {1, 1}, inf},
      {{-big, big}, {1, -1}, -inf},
      {{big, half_ulp_of_big}, {1, 1}, inf},
      {{big, half_ulp_of_big, tiny}, {1, 1, -tiny}, big},
      {{std::ldexp(Real(1), 80), 1}, {std::ldexp(Real(1), -90), 1}, std::ldexp(Real(1), -10) + 1},
  };
  for (std::size_t c = 0; c < cases.size(); ++c)
    EXPECT_TRUE(equal_values(cases[c].expected, dot(cases[c].x, cases[c].y)))
        << (std::is_same_v<Real, float> ? "float" : "double") << ", case " << c;
}

TYPED_TEST(ExactProducts, HandMadeCases) {
  expect_hand_made_cases<double>(
      [this](const auto& x, const auto& y) { return this->template dot<double>(x, y); });
  expect_hand_made_cases<float>(
      [this](const auto& x, const auto& y) { return this->template dot<float>(x, y); });
  expect_hand_made_cases<double>(
      [this](const auto& x, const auto& y) { return this->template dot_of_parts<double>(x, y); });
  expect_hand_made_cases<float>(
      [this](const auto& x, const auto& y) { return this->template dot_of_parts<float>(x, y); });
}

/// Float operands of a double product, none of whose terms is a float.
TYPED_TEST(ExactProducts, FloatOperandsKeepTheRangeOfDouble) {
  constexpr float tiny = std::numeric_limits<float>::denorm_min(), big = std::numeric_limits<float>::max();
  const std::vector<float> x = {tiny, big, big, 1}, y = {tiny, big, -big, 0};
  EXPECT_TRUE(equal_values(0x1p-298, (this->template dot<double>(x, y))));
  const std::vector<double> z = {0x1p-925, 0, 0, 0x1p-1074};
  EXPECT_TRUE(equal_values(0x1p-1073, (this->template dot<double>(x, z))));
}

/// Carries are propagated every so often; the largest significands of one sign, at every shift.
TYPED_TEST(ExactProducts, DigitsDoNotOverflow) {
  const auto check = [this](auto zero) {
    using Real = decltype(zero);
    const std::int64_t k = (std::int64_t{3} << 15) + 7;
    const Real largest = 2 - std::numeric_limits<Real>::epsilon();
    for (int shift = 0; shift < 32; ++shift)
      for (const int sign : {-1, 1}) {
        const Real u = std::ldexp(largest, shift) * static_cast<Real>(sign);
        const std::vector<Real> x(static_cast<std::size_t>(k), u), y(x.size(), largest);
        const ExactDouble a = exact(u), b = exact(largest);
        const mpz_class sum = a.mantissa * b.mantissa * mpz_class(static_cast<long>(k));
        const double expected = std::is_same_v<Real, float> ? reference_float(sum, a.exponent + b.exponent)
                                                            : reference_double(sum, a.exponent + b.exponent);
        ASSERT_TRUE(equal_values(expected, (this->template dot<Real>(x, y)))) << "shift " << shift;
        if (shift % 8 != 0) continue;
        using Scalar = Kokkos::complex<Real>;
        const std::vector<Scalar> z(x.size(), Scalar(u, -u)), w(x.size(), Scalar(largest, largest));
        const Scalar product = this->template dot<Scalar>(z, w);
        ASSERT_TRUE(equal_values(2 * static_cast<Real>(expected), product.real())) << "shift " << shift;
        ASSERT_TRUE(equal_values(0, product.imag())) << "shift " << shift;
      }
  };
  check(double{});
  check(float{});
}

TYPED_TEST(ExactProducts, LongVectors) {
  Random random(92);
  constexpr std::int64_t k = 200000;
  const auto check = [&](auto mix) {
    using Mix = decltype(mix);
    const auto a = random_rows<typename Mix::A>(random, 1, k, -1074, 1022).front();
    const auto b = random_rows<typename Mix::B>(random, 1, k, -1074, 500).front();
    using Scalar = typename Mix::Scalar;
    ASSERT_TRUE(
        equal_scalars(reference_product<Scalar>(a, b, false, false), this->template dot<Scalar>(a, b)));
  };
  check(Operands<float, float, float>());
  check(Operands<Complex, Complex, Complex>());

  // A million terms that cancel but for one.
  std::vector<double> x, y;
  for (int l = 0; l < 500000; ++l) {
    x.push_back(random.real(-1000, 1000));
    y.push_back(random.real(-1000, 1000));
  }
  for (std::size_t l = 0; l < 500000; ++l) {
    x.push_back(x[499999 - l]);
    y.push_back(-y[499999 - l]);
  }
  EXPECT_TRUE(equal_values(0, (this->template dot<double>(x, y))));
  x.push_back(0x1p-1073);
  y.push_back(1);
  EXPECT_TRUE(equal_values(0x1p-1073, (this->template dot<double>(x, y))));
}

template <class Scalar>
std::vector<EpilogueOf<Scalar>> epilogues() {
  using Real = RealOf<Scalar>;
  constexpr Real nan = std::numeric_limits<Real>::quiet_NaN();
  std::vector<EpilogueOf<Scalar>> all;
  for (const Real alpha : {Real(1), Real(-1), Real(0.3)})
    for (const Real beta : {Real(0), Real(-0.0), Real(1), Real(-0.7), nan})
      all.push_back({Scalar(alpha), Scalar(beta)});
  if constexpr (is_complex_v<Scalar>) {
    all.push_back({Scalar(2, 3), Scalar(0)});
    all.push_back({Scalar(1), Scalar(0, 1)});
    all.push_back({Scalar(Real(0.1), -2), Scalar(3, Real(0.2))});
  }
  return all;
}

TYPED_TEST(ExactProducts, EveryAlphaAndBeta) {
  Random random(93);
  for_each_mix([&](auto mix) {
    using Mix = decltype(mix);
    for (const auto& epilogue : epilogues<typename Mix::Scalar>()) {
      const auto a = random_rows<typename Mix::A>(random, 5, 3, -10, 10);
      const auto b = random_rows<typename Mix::B>(random, 3, 3, -10, 10);
      ASSERT_NO_FATAL_FAILURE(this->expect(a, b, epilogue, random));
    }
  });
}

TYPED_TEST(ExactProducts, FlaggedVectorsAreSkipped) {
  Random random(94);
  for_each_mix([&](auto mix) {
    using Mix = decltype(mix);
    using Scalar = typename Mix::Scalar;
    for (const std::int64_t m : {1, 4, 5, 11})
      for (const std::int64_t n : {1, 2, 7}) {
        const auto a = random_rows<typename Mix::A>(random, m, 4, -10, 10);
        const auto b = random_rows<typename Mix::B>(random, n, 4, -10, 10);
        ASSERT_NO_FATAL_FAILURE(this->expect(a, b, EpilogueOf<Scalar>{Scalar(2), Scalar(1)}, random, true));
      }
  });
}

/// What flagged vectors hold does not touch the entries beside them.
TYPED_TEST(ExactProducts, InfAndNaNStayInFlaggedVectors) {
  const double inf = infinity, nan = quiet_nan;
  const std::vector<double> x = {inf, -inf, 1, 2, nan, inf}, y = {3, -4, inf, nan};  // rows and columns of 2
  const std::vector<std::int32_t> rows = {flagged_vector, 0, flagged_vector}, cols = {0, flagged_vector};
  std::vector<double> c(6, 7.5);
  Impl::exact_product(this->exec, VectorSet<double>{x.data(), 3, 2, 2, 1},
                      VectorSet<double>{y.data(), 2, 2, 2, 1}, rows.data(), cols.data(),
                      plain_product<double>, MatrixRef<double>{c.data(), 3, 2, 1, 3});
  this->exec.fence();
  EXPECT_EQ(c, (std::vector<double>{7.5, 1 * 3 - 2 * 4, 7.5, 7.5, 7.5, 7.5}));
}

TYPED_TEST(ExactProducts, BatchesOfProducts) {
  Random random(95);
  constexpr std::int64_t m = 5, n = 6, k = 7, count = 3;
  const auto a = random_rows<double>(random, count * m, k, -300, 300);
  const auto b = random_rows<double>(random, count * n, k, -300, 300);
  std::vector<double> x, y, c(count * m * n, quiet_nan);  // vectors contiguous, one entry after the other
  for (const auto& row : a) x.insert(x.end(), row.begin(), row.end());
  for (const auto& row : b) y.insert(y.end(), row.begin(), row.end());
  const std::int32_t pitch_a = 8, pitch_b = 16;
  std::vector<std::int32_t> rows(count * pitch_a, 0), cols(count * pitch_b, 0);
  at(rows, 2 * pitch_a + 1) = at(cols, pitch_b + 5) = flagged_vector;
  MatrixRef<double> C{c.data(), m, n, 1, m};
  C.entries = count, C.entry_stride = m * n;
  Impl::exact_product(this->exec,
                      VectorSet<double>{x.data(), count * pitch_a, k, k, 1, false, pitch_a, m, m * k},
                      VectorSet<double>{y.data(), count * pitch_b, k, k, 1, false, pitch_b, n, n * k},
                      rows.data(), cols.data(), plain_product<double>, C);
  this->exec.fence();
  for (std::int64_t e = 0; e < count; ++e)
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        const bool is_flagged = (e == 2 && i == 1) || (e == 1 && j == 5);
        const double expected =
            is_flagged ? quiet_nan
                       : reference_product<double>(at(a, e * m + i), at(b, e * n + j), false, false);
        ASSERT_TRUE(equal_values(expected, at(c, i + m * (j + n * e))));
      }
}

TYPED_TEST(ExactProducts, WithoutTermsOrEntries) {
  std::vector<double> c = {quiet_nan, 1, 2, 3}, values = {4, 5};
  const std::vector<std::int32_t> regular = {0, 0};
  const std::vector<std::int64_t> entries = {3, 1};
  const VectorSet<double> empty{nullptr, 2, 0};
  const MatrixRef<double> C{c.data(), 2, 2, 1, 2};
  Impl::exact_entries(this->exec, empty, empty, {2.0, -3.0}, C, entries.data(), 2, values.data());
  Impl::exact_product(this->exec, empty, empty, regular.data(), regular.data(), plain_product<double>, C);
  this->exec.fence();
  EXPECT_EQ(values, (std::vector<double>{-9, -3}));
  EXPECT_EQ(c, (std::vector<double>(4, 0.0)));

  Impl::exact_entries(this->exec, empty, empty, plain_product<double>, C, nullptr, 0, values.data());
  Impl::place_entries(this->exec, C, nullptr, 0, values.data());
  const MatrixRef<double> none{nullptr, 0, 2, 1, 1};
  Impl::exact_product(this->exec, empty, empty, regular.data(), regular.data(), plain_product<double>, none);
  this->exec.fence();
  EXPECT_EQ(values, (std::vector<double>{-9, -3}));
}

}  // namespace
}  // namespace KokkosOzaki::Testing
