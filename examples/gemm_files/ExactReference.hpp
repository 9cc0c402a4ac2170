// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_EXACTREFERENCE_HPP
#define KOKKOSOZAKI_EXACTREFERENCE_HPP

#include "MatrixFiles.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gmpxx.h>

namespace GemmFiles {

/// \brief The number integer * 2^exponent.
struct ExactNumber {
  mpz_class integer;
  std::int64_t exponent = 0;
};

/// \brief Exact sum of x[l] * y[l] and of |x[l]| * |y[l]|; both have the same exponent.
struct ExactDot {
  ExactNumber value;
  ExactNumber absolute;
};

/// \brief Exact dot product of finite doubles of any size, subnormal ones included.
ExactDot exact_dot(const std::vector<double>& x, const std::vector<double>& y);

/// \brief The nearest double, ties to even, subnormal and infinite where the number is.
double round_to_double(const ExactNumber& number);

/// \brief |c - exact| / absolute in units of u = 2^-53, computed exactly and then rounded.
///
/// Where the exact value is below the normal range of double, half of the smallest subnormal is taken off |c
/// - exact|: no double is nearer. An absolute value of 0 asks for c = 0. Infinity: c is not finite, or not 0
/// where it should be; but an infinite c has error 0 where the exact value rounds to it.
double error_in_u(double c, const ExactDot& exact);

struct ErrorSummary {
  double max = 0.0;
  double median = 0.0;
};

/// \brief Exact values of entries of op(A) op(B): all of them where that is cheap, else a fixed choice that
/// includes
///        the corners. Rows and columns with Inf or NaN are left out.
class ExactSample {
 public:
  static constexpr std::int64_t max_entries = 4096;   ///< up to here every entry is taken, if k allows
  static constexpr std::int64_t some_entries = 1000;  ///< otherwise that many,
  static constexpr std::int64_t few_entries = 32;     ///< or down to that many for a very long k,
  static constexpr std::int64_t max_products = std::int64_t(1)
                                               << 23;  ///< so that they take about that many products

  ExactSample(const DenseMatrix& A, char transA, const DenseMatrix& B, char transB);

  std::size_t size() const { return m_entries.size(); }
  bool is_complete() const { return m_is_complete; }  ///< every entry of finite rows and columns
  std::int64_t nonfinite_rows() const { return m_nonfinite_rows; }
  std::int64_t nonfinite_cols() const { return m_nonfinite_cols; }

  /// Of a matrix of the product's size; {0, 0} for an empty sample.
  ErrorSummary errors_of(const DenseMatrix& C) const;

  /// Of the exact product, each entry rounded once: what no method can go below on every input.
  ErrorSummary errors_of_rounded_product() const;

 private:
  struct Entry {
    std::int64_t i, j;
    ExactDot exact;
  };
  std::vector<Entry> m_entries;
  bool m_is_complete = true;
  std::int64_t m_nonfinite_rows = 0;
  std::int64_t m_nonfinite_cols = 0;
};

}  // namespace GemmFiles

#endif
