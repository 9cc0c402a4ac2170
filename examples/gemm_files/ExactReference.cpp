// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ExactReference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace GemmFiles {
namespace {

constexpr int significand_bits = 53;
constexpr int min_exponent = -1074;  // of the smallest subnormal
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double smallest_normal = std::numeric_limits<double>::min();

// x = integer * 2^exponent, |integer| < 2^53; a zero has no meaningful exponent.
struct Decomposed {
  std::int64_t integer;
  int exponent;
};

Decomposed decompose(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return {static_cast<std::int64_t>(std::ldexp(fraction, significand_bits)), exponent - significand_bits};
}

std::vector<Decomposed> decompose(const std::vector<double>& x) {
  std::vector<Decomposed> result;
  result.reserve(x.size());
  for (const double value : x) result.push_back(decompose(value));
  return result;
}

std::int64_t bit_length(const mpz_class& x) {
  return sgn(x) == 0 ? 0 : static_cast<std::int64_t>(mpz_sizeinbase(x.get_mpz_t(), 2));
}

mpz_class shifted_left(const mpz_class& x, std::int64_t bits) {
  mpz_class result;
  mpz_mul_2exp(result.get_mpz_t(), x.get_mpz_t(), static_cast<mp_bitcnt_t>(bits));
  return result;
}

ExactDot exact_dot(const std::vector<Decomposed>& x, const std::vector<Decomposed>& y) {
  static_assert(sizeof(long) == 8, "a 53-bit significand must fit into GMP's long");
  int exponent = std::numeric_limits<int>::max();
  for (std::size_t l = 0; l < x.size(); ++l)
    if (x[l].integer != 0 && y[l].integer != 0) exponent = std::min(exponent, x[l].exponent + y[l].exponent);
  ExactDot result;
  if (exponent == std::numeric_limits<int>::max()) return result;
  mpz_class positive, negative, product;
  for (std::size_t l = 0; l < x.size(); ++l) {
    if (x[l].integer == 0 || y[l].integer == 0) continue;
    product = static_cast<long>(x[l].integer);
    mpz_mul_si(product.get_mpz_t(), product.get_mpz_t(), static_cast<long>(y[l].integer));
    mpz_mul_2exp(product.get_mpz_t(), product.get_mpz_t(),
                 static_cast<mp_bitcnt_t>(x[l].exponent + y[l].exponent - exponent));
    (sgn(product) > 0 ? positive : negative) += product;
  }
  result.value = {positive + negative, exponent};
  result.absolute = {positive - negative, exponent};
  return result;
}

// numerator / denominator * 2^exponent, rounded towards zero to at least 64 bits and then to double.
double quotient(const mpz_class& numerator, const mpz_class& denominator, std::int64_t exponent) {
  if (sgn(numerator) == 0) return 0.0;
  const std::int64_t shift = std::max<std::int64_t>(0, 64 + bit_length(denominator) - bit_length(numerator));
  const mpz_class ratio = shifted_left(numerator, shift) / denominator;
  return round_to_double({ratio, exponent - shift});
}

bool is_finite_row(const std::vector<double>& row) {
  return std::all_of(row.begin(), row.end(), [](double x) { return std::isfinite(x); });
}

std::int64_t outer_extent(const DenseMatrix& X, bool by_columns) {
  return by_columns ? X.cols : X.rows;
}

std::vector<double> vector_of(const DenseMatrix& X, bool by_columns, std::int64_t index) {
  const std::int64_t length = by_columns ? X.rows : X.cols;
  std::vector<double> result(static_cast<std::size_t>(length));
  for (std::int64_t l = 0; l < length; ++l)
    result[static_cast<std::size_t>(l)] = by_columns ? X(l, index) : X(index, l);
  return result;
}

std::vector<std::int64_t> finite_vectors(const DenseMatrix& X, bool by_columns) {
  std::vector<std::int64_t> result;
  for (std::int64_t index = 0; index < outer_extent(X, by_columns); ++index)
    if (is_finite_row(vector_of(X, by_columns, index))) result.push_back(index);
  return result;
}

// SplitMix64 (Steele, Lea, Flood 2014): the sample is the same everywhere.
std::uint64_t next_random(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Positions in a rows x cols grid, sorted by column; the corners are among them.
std::set<std::pair<std::int64_t, std::int64_t>> choose(std::int64_t rows, std::int64_t cols,
                                                       std::int64_t count) {
  std::set<std::pair<std::int64_t, std::int64_t>> chosen;
  if (rows == 0 || cols == 0) return chosen;
  if (cols <= count / rows) {
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < rows; ++i) chosen.emplace(j, i);
    return chosen;
  }
  for (const std::int64_t i : {std::int64_t(0), rows - 1})
    for (const std::int64_t j : {std::int64_t(0), cols - 1}) chosen.emplace(j, i);
  std::uint64_t state = 1;
  while (static_cast<std::int64_t>(chosen.size()) < count) {
    const auto i = static_cast<std::int64_t>(next_random(state) % static_cast<std::uint64_t>(rows));
    const auto j = static_cast<std::int64_t>(next_random(state) % static_cast<std::uint64_t>(cols));
    chosen.emplace(j, i);
  }
  return chosen;
}

ErrorSummary summary_of(std::vector<double> errors) {
  if (errors.empty()) return {};
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::nth_element(errors.begin(), middle, errors.end());
  return {*std::max_element(middle, errors.end()), *middle};
}

}  // namespace

ExactDot exact_dot(const std::vector<double>& x, const std::vector<double>& y) {
  return exact_dot(decompose(x), decompose(y));
}

double round_to_double(const ExactNumber& number) {
  const std::int64_t length = bit_length(number.integer);
  if (length == 0) return 0.0;
  if (length + number.exponent > 1024) return sgn(number.integer) > 0 ? infinity : -infinity;
  const std::int64_t drop = std::max(length - significand_bits, min_exponent - number.exponent);
  if (drop <= 0) return std::ldexp(number.integer.get_d(), static_cast<int>(number.exponent));
  if (drop > length) return sgn(number.integer) > 0 ? 0.0 : -0.0;
  const mpz_class magnitude = abs(number.integer);
  const auto bits = static_cast<mp_bitcnt_t>(drop);
  mpz_class kept = magnitude >> bits;
  const bool at_least_half = mpz_tstbit(magnitude.get_mpz_t(), bits - 1) != 0;
  const bool more_than_half = at_least_half && mpz_scan1(magnitude.get_mpz_t(), 0) < bits - 1;
  if (more_than_half || (at_least_half && mpz_odd_p(kept.get_mpz_t()) != 0)) ++kept;
  const double result = std::ldexp(kept.get_d(), static_cast<int>(drop + number.exponent));
  return sgn(number.integer) > 0 ? result : -result;
}

double error_in_u(double c, const ExactDot& exact) {
  const double rounded = round_to_double(exact.value);
  if (!std::isfinite(c)) return c == rounded ? 0.0 : infinity;
  if (sgn(exact.absolute.integer) == 0) return c == 0.0 ? 0.0 : infinity;
  const Decomposed part = decompose(c);
  const std::int64_t exponent = std::min<std::int64_t>(exact.value.exponent, c == 0.0 ? 0 : part.exponent);
  mpz_class difference = shifted_left(exact.value.integer, exact.value.exponent - exponent);
  if (c != 0.0)
    difference -= shifted_left(mpz_class(static_cast<long>(part.integer)), part.exponent - exponent);
  mpz_class numerator = abs(difference);
  std::int64_t its_unit = exponent;
  if (std::abs(rounded) < smallest_normal) {
    // in units of 2^-1075 or finer
    const std::int64_t unit = std::min<std::int64_t>(its_unit, min_exponent - 1);
    numerator = shifted_left(numerator, its_unit - unit) - shifted_left(1, min_exponent - 1 - unit);
    if (sgn(numerator) < 0) numerator = 0;
    its_unit = unit;
  }
  return quotient(numerator, exact.absolute.integer, its_unit - exact.absolute.exponent + significand_bits);
}

ExactSample::ExactSample(const DenseMatrix& A, char transA, const DenseMatrix& B, char transB) {
  const bool columns_of_A = transA != 'N';
  const bool columns_of_B = transB == 'N';
  const std::vector<std::int64_t> rows = finite_vectors(A, columns_of_A),
                                  cols = finite_vectors(B, columns_of_B);
  const auto num_rows = static_cast<std::int64_t>(rows.size()),
             num_cols = static_cast<std::int64_t>(cols.size());
  m_nonfinite_rows = outer_extent(A, columns_of_A) - num_rows;
  m_nonfinite_cols = outer_extent(B, columns_of_B) - num_cols;
  if (num_rows == 0 || num_cols == 0) return;

  const std::int64_t k = std::max<std::int64_t>(1, columns_of_A ? A.rows : A.cols);
  const std::int64_t affordable = max_products / k;
  const std::int64_t all = std::min(max_entries, affordable);
  const std::int64_t some = std::clamp(affordable, few_entries, some_entries);
  m_is_complete = num_cols <= std::max(all, some) / num_rows;
  const auto chosen = choose(num_rows, num_cols, m_is_complete ? max_entries : some);
  m_entries.reserve(chosen.size());
  std::vector<Decomposed> column;
  std::int64_t column_index = -1;
  for (const auto& [jj, ii] : chosen) {
    const std::int64_t i = rows[static_cast<std::size_t>(ii)], j = cols[static_cast<std::size_t>(jj)];
    if (j != column_index) column = decompose(vector_of(B, columns_of_B, j));
    column_index = j;
    m_entries.push_back({i, j, exact_dot(decompose(vector_of(A, columns_of_A, i)), column)});
  }
}

ErrorSummary ExactSample::errors_of(const DenseMatrix& C) const {
  std::vector<double> errors;
  errors.reserve(m_entries.size());
  for (const Entry& entry : m_entries) errors.push_back(error_in_u(C(entry.i, entry.j), entry.exact));
  return summary_of(std::move(errors));
}

ErrorSummary ExactSample::errors_of_rounded_product() const {
  std::vector<double> errors;
  errors.reserve(m_entries.size());
  for (const Entry& entry : m_entries)
    errors.push_back(error_in_u(round_to_double(entry.exact.value), entry.exact));
  return summary_of(std::move(errors));
}

}  // namespace GemmFiles
