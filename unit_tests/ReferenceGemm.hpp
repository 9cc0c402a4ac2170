// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_REFERENCEGEMM_HPP
#define KOKKOSOZAKI_REFERENCEGEMM_HPP

#include <gmpxx.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "MatrixGenerators.hpp"

namespace KokkosOzaki::Testing {

/// Bounds and norms: 256 bits and an exponent that no product of doubles leaves.
using Real = mpf_class;
constexpr unsigned real_bits = 256;

/// \brief The number numerator * 2^exponent.
struct ExactNumber {
  mpz_class numerator = 0;
  long exponent = 0;
};

inline Real to_real(const ExactNumber& x) {
  Real r(x.numerator, std::max<mp_bitcnt_t>(real_bits, mpz_sizeinbase(x.numerator.get_mpz_t(), 2)));
  if (x.exponent >= 0)
    mpf_mul_2exp(r.get_mpf_t(), r.get_mpf_t(), static_cast<mp_bitcnt_t>(x.exponent));
  else
    mpf_div_2exp(r.get_mpf_t(), r.get_mpf_t(), static_cast<mp_bitcnt_t>(-x.exponent));
  return r;
}

inline Real to_real(double x) {
  return Real(x, real_bits);
}

/// 2^exponent.
inline Real power_of_two(long exponent) {
  return to_real(ExactNumber{1, exponent});
}

/// A finite double as M * 2^exponent, |M| < 2^53.
inline void decompose(double x, std::int64_t& significand, int& exponent) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  const int field = static_cast<int>(bits >> 52 & 0x7FF);
  const auto fraction = static_cast<std::int64_t>(bits & ((std::uint64_t{1} << 52) - 1));
  significand = field == 0 ? fraction : fraction | std::int64_t{1} << 52;
  if (bits >> 63 != 0) significand = -significand;
  exponent = std::max(field, 1) - 1075;
}

/// \brief x - y without rounding.
inline ExactNumber difference(double x, const ExactNumber& y) {
  std::int64_t significand;
  int exponent;
  decompose(x, significand, exponent);
  ExactNumber d{mpz_class(static_cast<long>(significand)), std::min<long>(exponent, y.exponent)};
  d.numerator <<= static_cast<mp_bitcnt_t>(exponent - d.exponent);
  d.numerator -= mpz_class(y.numerator << static_cast<mp_bitcnt_t>(y.exponent - d.exponent));
  return d;
}

/// \brief The number of a format nearest to x, ties to even; subnormal, zero with the sign of x, or Inf where x asks
/// for it.
/// \param precision, lowest, highest  bits of a significand, exponents of the smallest number and of the largest power
///                                    of two
inline double round_to_format(const ExactNumber& x, int precision, long lowest, long highest) {
  const int sign = sgn(x.numerator);
  if (sign == 0) return 0.0;
  mpz_class magnitude = abs(x.numerator);
  const long top = static_cast<long>(mpz_sizeinbase(magnitude.get_mpz_t(), 2)) - 1 + x.exponent;
  if (top > highest) return sign * HUGE_VAL;
  const long last = std::max(top - (precision - 1), lowest);  // position of the last kept bit
  const long drop = last - x.exponent;
  if (drop <= 0) {
    magnitude <<= static_cast<mp_bitcnt_t>(-drop);
  } else {
    const mpz_class kept = magnitude >> static_cast<mp_bitcnt_t>(drop);
    const mpz_class rest = magnitude - mpz_class(kept << static_cast<mp_bitcnt_t>(drop));
    const mpz_class half = mpz_class(1) << static_cast<mp_bitcnt_t>(drop - 1);
    const int order = cmp(rest, half);
    magnitude = order > 0 || (order == 0 && mpz_odd_p(kept.get_mpz_t()) != 0) ? kept + 1 : kept;
  }
  if (static_cast<long>(mpz_sizeinbase(magnitude.get_mpz_t(), 2)) - 1 + last > highest)
    return sign * HUGE_VAL;
  return sign * std::ldexp(magnitude.get_d(), static_cast<int>(last));  // at most 2^53, so get_d is exact
}

inline double round_to_double(const ExactNumber& x) {
  return round_to_format(x, 53, -1074, 1023);
}
inline float round_to_float(const ExactNumber& x) {
  return static_cast<float>(round_to_format(x, 24, -149, 127));
}

/// \brief Sum of products of finite doubles without any rounding, over the whole range of double.
///
/// A product is an integer below 2^106 times a power of two: one 128-bit accumulator for each power of two
/// holds 2^21 of them. The accumulators are joined at the end.
class ExactSum {
 public:
  ExactSum() : m_bins(bins) {}

  void clear() {
    if (m_first <= m_last) std::fill(m_bins.begin() + m_first, m_bins.begin() + m_last + 1, Bin{0});
    m_first = bins, m_last = -1, m_terms = 0;
  }

  void add(std::int64_t x, int x_exponent, std::int64_t y, int y_exponent) {
    if (++m_terms > std::int64_t{1} << 21) throw std::length_error("ExactSum: more than 2^21 terms.");
    const int bin = x_exponent + y_exponent - lowest;
    m_first = std::min(m_first, bin), m_last = std::max(m_last, bin);
    m_bins[static_cast<std::size_t>(bin)] += static_cast<Bin>(x) * y;
  }

  ExactNumber value() const {
    ExactNumber sum;
    int previous = m_last;
    for (int bin = m_last; bin >= m_first; --bin) {
      const Bin part = m_bins[static_cast<std::size_t>(bin)];
      if (part == 0) continue;
      sum.numerator <<= static_cast<mp_bitcnt_t>(previous - bin);
      mpz_class integer(static_cast<long>(part >> 64));
      integer <<= 64;
      integer += static_cast<unsigned long>(part & ~std::uint64_t{0});
      sum.numerator += integer;
      previous = bin;
    }
    sum.exponent = previous + lowest;
    return sum;
  }

 private:
  __extension__ typedef __int128 Bin;
  static_assert(sizeof(long) == 8, "mpz_class takes 64 bits as a long");
  static constexpr int lowest = -2 * 1074, bins = 2 * 971 - lowest + 1;

  std::vector<Bin> m_bins;
  int m_first = bins, m_last = -1;
  std::int64_t m_terms = 0;
};

/// \brief The exact product of two matrices of finite doubles, and what error bounds are made of.
struct ReferenceProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::vector<ExactNumber> exact;              // column-major
  std::vector<Real> magnitude;                 // (|A||B|)_ij
  std::vector<Real> row_norm, col_norm;        // ||a_i||_2, ||b_j||_2, rounded up
  std::vector<Real> row_abs_sum, col_abs_sum;  // ||a_i||_1, ||b_j||_1

  std::size_t index(std::int64_t i, std::int64_t j) const { return static_cast<std::size_t>(j * m + i); }
  Matrix rounded() const {
    Matrix c(m, n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) c(i, j) = round_to_double(exact[index(i, j)]);
    return c;
  }
};

/// \param A  op(A), m x k
/// \param B  op(B), k x n
inline ReferenceProduct reference_gemm(const Matrix& A, const Matrix& B) {
  struct Parts {
    std::vector<std::int64_t> significand;
    std::vector<int> exponent;
  };
  const std::int64_t k = A.cols();
  const auto vectors_of = [k](const Matrix& x, bool rows) {
    std::vector<Parts> vectors(static_cast<std::size_t>(rows ? x.rows() : x.cols()));
    for (std::size_t v = 0; v < vectors.size(); ++v) {
      vectors[v].significand.resize(static_cast<std::size_t>(k));
      vectors[v].exponent.resize(static_cast<std::size_t>(k));
      for (std::int64_t l = 0; l < k; ++l) {
        const auto w = static_cast<std::int64_t>(v);
        decompose(rows ? x(w, l) : x(l, w), vectors[v].significand[static_cast<std::size_t>(l)],
                  vectors[v].exponent[static_cast<std::size_t>(l)]);
      }
    }
    return vectors;
  };
  const std::vector<Parts> a = vectors_of(A, true), b = vectors_of(B, false);
  ExactSum sum;
  const auto dot = [&](const Parts& x, const Parts& y, bool magnitudes) {
    sum.clear();
    for (std::size_t l = 0; l < x.significand.size(); ++l) {
      const std::int64_t u = x.significand[l], v = y.significand[l];
      if (u != 0 && v != 0)
        sum.add(magnitudes ? std::abs(u) : u, x.exponent[l], magnitudes ? std::abs(v) : v, y.exponent[l]);
    }
    return sum.value();
  };
  Parts ones;
  ones.significand.assign(static_cast<std::size_t>(k), 1);
  ones.exponent.assign(static_cast<std::size_t>(k), 0);
  const Real up = 1 + power_of_two(-100);  // more than mpf's truncations
  const auto norms = [&](const std::vector<Parts>& vectors, std::vector<Real>& norm,
                         std::vector<Real>& abs_sum) {
    for (const Parts& x : vectors) {
      norm.emplace_back(sqrt(to_real(dot(x, x, false))) * up, real_bits);
      abs_sum.emplace_back(to_real(dot(x, ones, true)));
    }
  };

  ReferenceProduct r;
  r.m = A.rows(), r.n = B.cols(), r.k = k;
  norms(a, r.row_norm, r.row_abs_sum);
  norms(b, r.col_norm, r.col_abs_sum);
  for (const Parts& y : b)
    for (const Parts& x : a) {
      r.exact.push_back(dot(x, y, false));
      r.magnitude.push_back(to_real(dot(x, y, true)));
    }
  return r;
}

}  // namespace KokkosOzaki::Testing

#endif
