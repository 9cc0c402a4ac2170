// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stages/KokkosOzaki_Repair.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::Epilogue;
using Impl::flagged_vector;
using Impl::zero_vector;

using Matrix = std::vector<std::vector<double>>;

/// The IEEE sum of the products with a non-finite factor, from the first position on.
double sum_of_special_products(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  bool is_first = true;
  for (std::size_t l = 0; l < x.size(); ++l)
    if (!std::isfinite(x[l]) || !std::isfinite(y[l])) {
      sum = is_first ? x[l] * y[l] : sum + x[l] * y[l];
      is_first = false;
    }
  return sum;
}

double dot_product(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t l = 0; l < x.size(); ++l) sum += x[l] * y[l];
  return sum;
}

/// e of every vector; other numbers than the statistics would give are of no interest here.
std::vector<std::int32_t> exponents(const Matrix& vectors) {
  std::vector<std::int32_t> result;
  for (const auto& x : vectors) {
    bool is_finite = true, is_zero = true;
    for (const double value : x) {
      is_finite = is_finite && std::isfinite(value);
      is_zero = is_zero && value == 0;
    }
    result.push_back(!is_finite ? flagged_vector : is_zero ? zero_vector : 0);
  }
  return result;
}

template <class ExecutionSpace>
class Repair : public ::testing::Test {
 protected:
  ExecutionSpace exec;

  /// Repairs an m x n matrix in every placement and compares: flagged entries by value, all others by their
  /// bits.
  void expect(const Matrix& a, const Matrix& b, const Epilogue& epilogue, Random& random) {
    const std::int64_t m = size_of(a), n = size_of(b), k = size_of(a.front());
    const std::vector<std::int32_t> row_exponent = exponents(a), col_exponent = exponents(b);
    const auto is_flagged = [&](std::int64_t i, std::int64_t j) {
      return at(row_exponent, i) == flagged_vector || at(col_exponent, j) == flagged_vector;
    };
    const auto control = std::make_unique<Impl::Control>(Impl::Control{0, 0});
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        if (is_flagged(i, j)) control->any_flagged = 1;

    Matrix before(static_cast<std::size_t>(m), std::vector<double>(static_cast<std::size_t>(n)));
    for (auto& row : before)
      for (double& c : row)
        c = random.below(8) == 0   ? -0.0
            : random.below(8) == 0 ? quiet_nan
            : random.below(8) == 0 ? infinity
                                   : random.real(-20, 20);
    Matrix after = before;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        if (is_flagged(i, j))
          at(at(after, i), j) = reference_epilogue(sum_of_special_products(at(a, i), at(b, j)),
                                                   epilogue.alpha, epilogue.beta, at(before, i, j));

    struct Strides {
      std::int64_t row, col;
    };
    for (const Placement& place_a : placements(m, k))
      for (const Strides strides : {Strides{1, m + 2}, Strides{n + 1, 1}}) {
        const std::vector<Placement> places_b = placements(n, k);
        const PlacedVectors rows(a, place_a), cols(b, at(places_b, random.below(size_of(places_b))));
        std::vector<double> memory(
            static_cast<std::size_t>((m - 1) * strides.row + (n - 1) * strides.col + 1), 0x1.badp55);
        const std::vector<double> untouched = memory;
        std::vector<bool> inside(memory.size(), false);
        const auto index = [&](std::int64_t i, std::int64_t j) {
          return static_cast<std::size_t>(i * strides.row + j * strides.col);
        };
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j) {
            memory[index(i, j)] = at(before, i, j);
            inside[index(i, j)] = true;
          }
        Impl::repair(exec, rows.set(), cols.set(), row_exponent.data(), col_exponent.data(), control.get(),
                     epilogue, {memory.data(), m, n, strides.row, strides.col});
        exec.fence();
        for (std::int64_t i = 0; i < m; ++i)
          for (std::int64_t j = 0; j < n; ++j)
            ASSERT_TRUE(equal_values(at(after, i, j), memory[index(i, j)]))
                << place_a.name << ", entry (" << i << ", " << j << ") flagged " << is_flagged(i, j)
                << ", alpha " << epilogue.alpha << ", beta " << epilogue.beta;
        for (std::size_t e = 0; e < memory.size(); ++e)
          if (!inside[e]) {
            ASSERT_TRUE(equal_values(untouched[e], memory[e])) << "gap at " << e;
          }
      }
  }
};
TYPED_TEST_SUITE(Repair, EnabledSpaces, SpaceNames);

const std::vector<Epilogue>& all_epilogues() {
  static const std::vector<Epilogue> epilogues = [] {
    std::vector<Epilogue> all;
    for (const double alpha : {1.0, -1.0, 0.3, -2e300, 5e-324})
      for (const double beta : {0.0, -0.0, 1.0, -0.5, infinity, quiet_nan}) all.push_back({alpha, beta});
    return all;
  }();
  return epilogues;
}

/// Entries that a product treats in its own way: zeros of both signs, numbers whose products overflow, few
/// specials.
double entry(Random& random, std::int64_t specials_in) {
  if (random.below(specials_in) == 0)
    return random.below(3) == 0 ? quiet_nan : random.below(2) == 0 ? infinity : -infinity;
  switch (random.below(6)) {
    case 0:
      return 0.0;
    case 1:
      return -0.0;
    case 2:
      return random.real(1000, 1023);
    case 3:
      return random.real(-1074, -1020);
    default:
      return random.real(-5, 5);
  }
}

TYPED_TEST(Repair, EqualsTheIeeeSumOfSpecialProducts) {
  Random random(80);
  for (const std::int64_t m : {1, 2, 63, 64, 65, 130})
    for (const std::int64_t n : {1, 3, 20})
      for (const std::int64_t k : {1, 2, 9, 140}) {
        SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
        Matrix a, b;
        const auto fill = [&](Matrix& matrix, std::int64_t count) {
          for (std::int64_t v = 0; v < count; ++v) {
            matrix.emplace_back();
            const std::int64_t specials_in =
                random.below(3) == 0 ? std::int64_t{1} << 60 : random.between(2, 2 * k + 2);
            for (std::int64_t l = 0; l < k; ++l) matrix.back().push_back(entry(random, specials_in));
          }
        };
        fill(a, m);
        fill(b, n);
        ASSERT_NO_FATAL_FAILURE(
            this->expect(a, b, at(all_epilogues(), random.below(size_of(all_epilogues()))), random));
      }
}

TYPED_TEST(Repair, EveryAlphaAndBeta) {
  Random random(81);
  Matrix a = {{1, infinity, 2}, {1, 2, 3}, {quiet_nan, 0, 1}, {infinity, -infinity, 0}, {-infinity, -0.0, 4}};
  Matrix b = {{1, 2, 3}, {1, 0, 1}, {0.5, -infinity, 1}, {1, 1, 0}, {-0.0, 5, -0.0}};
  for (const Epilogue& epilogue : all_epilogues())
    ASSERT_NO_FATAL_FAILURE(this->expect(a, b, epilogue, random));
}

TYPED_TEST(Repair, DoesNothingWhereNoVectorIsFlagged) {
  Random random(82);
  Matrix a, b;
  for (int v = 0; v < 70; ++v) a.push_back({random.real(0, 1023), 0.0, random.real(1000, 1023)});
  for (int v = 0; v < 5; ++v) b.push_back({random.real(0, 1023), 1.0, random.real(1000, 1023)});
  ASSERT_NO_FATAL_FAILURE(this->expect(a, b, {2.0, 3.0}, random));
}

/// Where no product of finite entries overflows, the repaired entry is what a plain dot product returns.
TYPED_TEST(Repair, EqualsAPlainDotProductWithoutOverflow) {
  Random random(83);
  for (int trial = 0; trial < 2000; ++trial) {
    const std::int64_t k = random.between(1, 12);
    std::vector<double> x, y;
    for (std::int64_t l = 0; l < k; ++l) {
      const auto moderate = [&] { return random.below(5) == 0 ? 0.0 : random.real(-100, 100); };
      const auto special = [&] {
        return random.below(4) == 0 ? quiet_nan : random.below(2) == 0 ? infinity : -infinity;
      };
      x.push_back(random.below(6) == 0 ? special() : moderate());
      y.push_back(random.below(6) == 0 ? special() : moderate());
    }
    x[0] = random.below(2) == 0 ? infinity : -infinity;
    std::vector<double> c = {quiet_nan};
    const std::vector<std::int32_t> flagged = {flagged_vector}, regular = {0};
    const auto control = std::make_unique<Impl::Control>(Impl::Control{0, 1});
    Impl::repair(this->exec, Impl::VectorSet<double>{x.data(), 1, k, k, 1},
                 Impl::VectorSet<double>{y.data(), 1, k, k, 1}, flagged.data(), regular.data(), control.get(),
                 Epilogue{1, 0}, Impl::MatrixRef<double>{c.data(), 1, 1, 1, 1});
    this->exec.fence();
    ASSERT_TRUE(equal_values(dot_product(x, y), c[0]));
  }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
