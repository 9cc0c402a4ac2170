// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_ERRORBOUNDS_HPP
#define KOKKOSOZAKI_ERRORBOUNDS_HPP

#include <gtest/gtest.h>

#include <KokkosOzaki.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "ReferenceGemm.hpp"

// Bounds on |C - AB| for alpha = 1, beta = 0, with u = 2^-53, 2^-alpha_i and 2^-beta_j the units to which row
// i of A and column j of B are rounded (docs/accuracy.md):
//
//  componentwise   E_ij + u |C_ij| + 2^-1075, E_ij = 2^-alpha_i ||b_j||_1 / 2 + 2^-beta_j ||a_i||_1 / 2 + k
//  2^-(alpha_i+beta_j) / 4.
//                  From AB - A~B~ = (A-A~)B + A(B-B~) - (A-A~)(B-B~) with errors of at most 2^-alpha_i / 2
//                  and 2^-beta_j / 2 in an entry; A~B~ is exact, and rounded once. Truncated entries: errors
//                  of at most 2^-alpha_i, so E_ij has twice the first two terms and four times the last one.
//  normwise        c u ||a_i||_2 ||b_j||_2 + u |C_ij| + 2^-1075 with GemmReport::error_bound as c: from
//                  2^-alpha_i <= y ||a_i||_2, 2^-beta_j <= y ||b_j||_2, ||x||_1 <= sqrt(k) ||x||_2 inserted
//                  above.
//
// The exponents are derived here once more, from the definition and with multi-precision integers.

namespace KokkosOzaki::Testing {

/// \brief The scaling exponents of a call as the method defines them (docs/method.md).
struct Exponents {
  std::vector<int> alpha, beta;
  bool candidates = false;  // those of the accurate bound
};

namespace Detail {

inline mpz_class range_budget(int s) {
  const int moduli[20] = {256, 253, 251, 249, 247, 241, 239, 235, 233, 229,
                          227, 223, 217, 211, 199, 197, 193, 191, 181, 179};
  mpz_class product = 1;
  for (int t = 0; t < s; ++t) product *= moduli[t];
  return product * 255 / 512;
}

inline int bit_length(const mpz_class& x) {
  return x == 0 ? 0 : static_cast<int>(mpz_sizeinbase(x.get_mpz_t(), 2));
}

inline int ceil_log2(std::int64_t n) {
  int bits = 0;
  while ((std::int64_t{1} << bits) < n) ++bits;
  return bits;
}

/// The largest p with w 4^p <= h 2^shift, where h 2^shift is V(1 - 2^-guard) cut to 64 bits.
inline int scale_step(std::uint64_t w, const mpz_class& V, int guard) {
  int shift = bit_length(V) - 64;
  mpz_class h = shift >= 0 ? mpz_class(V >> static_cast<mp_bitcnt_t>(shift))
                           : mpz_class(V << static_cast<mp_bitcnt_t>(-shift));
  const mpz_class one = 1;
  const mpz_class unit = one << static_cast<mp_bitcnt_t>(guard);
  h -= (h + unit - 1) / unit;
  while (bit_length(h) < 64) h *= 2, --shift;
  for (int p = (64 + shift - bit_length(mpz_class(w))) / 2 + 2;; --p) {
    const int up = 2 * p - shift;
    const mpz_class left = up >= 0 ? mpz_class(mpz_class(w) << static_cast<mp_bitcnt_t>(up)) : mpz_class(w);
    const mpz_class right = up >= 0 ? h : mpz_class(h << static_cast<mp_bitcnt_t>(-up));
    if (left <= right) return p;
  }
}

struct Statistics {
  bool zero = true;
  int e = 0;
  std::uint64_t S = 0;
};

inline std::uint64_t fixed15(double x, int e) {
  return static_cast<std::uint64_t>(std::floor(std::ldexp(std::fabs(x), 15 - e)));
}

template <class Entry>
Statistics statistics(std::int64_t k, int chunk_size, const Entry& x) {
  Statistics result;
  std::vector<Statistics> chunks;
  for (std::int64_t first = 0; first < k; first += chunk_size) {
    const std::int64_t last = std::min<std::int64_t>(first + chunk_size, k);
    Statistics chunk;
    double largest = 0;
    for (std::int64_t l = first; l < last; ++l) largest = std::max(largest, std::fabs(x(l)));
    if (largest == 0) continue;
    chunk.e = std::ilogb(largest);
    for (std::int64_t l = first; l < last; ++l)
      if (x(l) != 0) {
        const std::uint64_t f = fixed15(x(l), chunk.e) + 1;
        chunk.S += f * f;
      }
    chunks.push_back(chunk);
    result.e = result.zero ? chunk.e : std::max(result.e, chunk.e);
    result.zero = false;
  }
  for (const Statistics& chunk : chunks) {
    const int shift = 2 * (result.e - chunk.e);
    result.S += shift >= 64 ? 1 : ((chunk.S - 1) >> shift) + 1;
  }
  return result;
}

}  // namespace Detail

/// \brief The exponents for every number of moduli and both bounds; what does not depend on them is computed
/// once.
class ExponentModel {
 public:
  /// \param A, B  op(A) and op(B), finite; complex ones with the two parts of a position side by side, so that k is
  ///              twice the number of positions
  /// \param parts  2 for complex numbers
  explicit ExponentModel(const Matrix& A, const Matrix& B, int parts = 1, bool is_single = false)
      : m_k(A.cols()), m_parts(parts), m_is_single(is_single) {
    for (std::int64_t i = 0; i < A.rows(); ++i)
      m_rows.push_back(Detail::statistics(m_k, 128 * m_parts, [&](std::int64_t l) { return A(i, l); }));
    for (std::int64_t j = 0; j < B.cols(); ++j)
      m_cols.push_back(Detail::statistics(m_k, 128 * m_parts, [&](std::int64_t l) { return B(l, j); }));
    if (m_k > longest_bound_product) return;
    const Matrix At = A.transposed();
    std::vector<std::vector<std::int32_t>> qa, qb;
    for (std::int64_t i = 0; i < A.rows(); ++i)
      qa.push_back(quantized(&At.data()[i * m_k], m_rows[static_cast<std::size_t>(i)].e));
    for (std::int64_t j = 0; j < B.cols(); ++j)
      qb.push_back(quantized(&B.data()[j * m_k], m_cols[static_cast<std::size_t>(j)].e));
    m_row_maxima.assign(qa.size(), 0), m_col_maxima.assign(qb.size(), 0);
    for (std::size_t i = 0; i < qa.size(); ++i)
      for (std::size_t j = 0; j < qb.size(); ++j) {
        std::int64_t g = 0;
        for (std::size_t l = 0; l < qa[i].size(); ++l) g += qa[i][l] * qb[j][l];
        m_row_maxima[i] = std::max(m_row_maxima[i], g), m_col_maxima[j] = std::max(m_col_maxima[j], g);
      }
  }

  Exponents exponents(int s, Bound bound) const {
    using Detail::bit_length;
    const mpz_class H = Detail::range_budget(s);
    const int guard = (bit_length(H) - 1 - Detail::ceil_log2(m_k)) >> 1;
    const auto fast = [&](const std::vector<Detail::Statistics>& vectors) {
      std::vector<int> out;
      for (const Detail::Statistics& x : vectors)
        out.push_back(x.zero ? 0 : Detail::scale_step(x.S, H, guard) + 15 - x.e);
      return out;
    };
    const Exponents chosen{fast(m_rows), fast(m_cols)};
    const int accurate_guard = ((bit_length(H) - 2 - Detail::ceil_log2(m_k)) >> 1) - 8;
    if (bound == Bound::fast || accurate_guard < 2 || m_k > longest_bound_product) return chosen;

    const int cap = s > 16 ? 78 : m_is_single && s <= 7 ? 30 : 62;
    const int levels = m_parts == 2 ? 89 : 127;
    const auto candidates = [&](const std::vector<Detail::Statistics>& vectors,
                                const std::vector<std::int64_t>& maxima, std::vector<int> out) {
      for (std::size_t v = 0; v < vectors.size(); ++v)
        if (!vectors[v].zero && maxima[v] != 0) {
          const int p =
              Detail::scale_step(static_cast<std::uint64_t>(maxima[v]), H * levels * levels, accurate_guard);
          out[v] = std::min(p, cap) - 1 - vectors[v].e;
        }
      return out;
    };
    const Exponents other{candidates(m_rows, m_row_maxima, chosen.alpha),
                          candidates(m_cols, m_col_maxima, chosen.beta), true};
    std::int64_t gain = 0;
    const auto m = static_cast<std::int64_t>(m_rows.size()), n = static_cast<std::int64_t>(m_cols.size());
    for (std::size_t i = 0; i < m_rows.size(); ++i) gain += n * (other.alpha[i] - chosen.alpha[i]);
    for (std::size_t j = 0; j < m_cols.size(); ++j) gain += m * (other.beta[j] - chosen.beta[j]);
    return gain > 0 ? other : chosen;
  }

 private:
  static constexpr std::int64_t longest_bound_product = 131008;

  /// One number for each position, at least its magnitude in units of 2^(e+1) over the number of levels.
  std::vector<std::int32_t> quantized(const double* x, int e) const {
    const auto upper = [e](double y) { return y == 0 ? std::uint64_t{0} : Detail::fixed15(y, e) + 1; };
    std::vector<std::int32_t> q;
    for (std::int64_t l = 0; l < m_k; l += m_parts) {
      std::uint64_t q_l = 0;
      if (m_parts == 1) {
        q_l = (upper(x[l]) * 127 + 65535) >> 16;
      } else {
        // |z| <= max + (sqrt(2) - 1) min
        const std::uint64_t re = upper(x[l]), im = upper(x[l + 1]);
        q_l = ((std::max(re, im) + ((std::min(re, im) * 27146 + 65535) >> 16)) * 89 + 65535) >> 16;
      }
      q.push_back(static_cast<std::int32_t>(q_l));
    }
    return q;
  }

  std::int64_t m_k;
  int m_parts;
  bool m_is_single;
  std::vector<Detail::Statistics> m_rows, m_cols;
  std::vector<std::int64_t> m_row_maxima, m_col_maxima;
};

/// E_ij of the head of this file.
inline Real componentwise_bound(const ReferenceProduct& reference, const Exponents& exponents,
                                Rounding rounding, std::int64_t i, std::int64_t j) {
  const auto row = static_cast<std::size_t>(i), col = static_cast<std::size_t>(j);
  const long per_entry =
      rounding == Rounding::toward_zero ? 0 : -1;  // log2 of the error of an entry in its unit
  const Real da = power_of_two(per_entry - exponents.alpha[row]),
             db = power_of_two(per_entry - exponents.beta[col]);
  return da * reference.col_abs_sum[col] + db * reference.row_abs_sum[row] +
         static_cast<double>(reference.k) * da * db;
}

/// c u ||a_i||_2 ||b_j||_2.
inline Real normwise_bound(const ReferenceProduct& reference, double c, std::int64_t i, std::int64_t j) {
  return c * power_of_two(-53) * reference.row_norm[static_cast<std::size_t>(i)] *
         reference.col_norm[static_cast<std::size_t>(j)];
}

/// \brief Whether |C - exact| <= bound(i, j) + u |C_ij| + 2^-1075 everywhere; an exact product that rounds to
/// Inf must be Inf.
template <class BoundOfEntry>
::testing::AssertionResult within(const ReferenceProduct& reference, const Matrix& C,
                                  const BoundOfEntry& bound) {
  if (C.rows() != reference.m || C.cols() != reference.n)
    return ::testing::AssertionFailure() << "C is " << C.rows() << "x" << C.cols();
  double worst = -1.0, worst_error = 0, worst_allowed = 0;
  std::int64_t worst_i = 0, worst_j = 0, failures = 0;
  const Real u = power_of_two(-53), tiny = power_of_two(-1075);
  const Real overflow = power_of_two(1024) - power_of_two(970);
  for (std::int64_t j = 0; j < C.cols(); ++j)
    for (std::int64_t i = 0; i < C.rows(); ++i) {
      const ExactNumber& exact = reference.exact[reference.index(i, j)];
      double ratio, error_value = 0, allowed_value = 0;
      if (!std::isfinite(C(i, j))) {
        // Inf stands for every number that rounds to it: one of them must be within the bound.
        const Real shifted = (C(i, j) > 0 ? 1 : -1) * to_real(exact) + bound(i, j);
        ratio = !std::isnan(C(i, j)) && shifted >= overflow ? 0.0 : std::numeric_limits<double>::infinity();
      } else {
        const Real allowed = bound(i, j) + u * abs(to_real(C(i, j))) + tiny;
        const Real error = abs(to_real(difference(C(i, j), exact)));
        error_value = error.get_d(), allowed_value = allowed.get_d();
        const Real quotient = error / allowed;
        ratio = quotient.get_d();
        if (error > allowed) ratio = std::max(ratio, std::nextafter(1.0, 2.0));
      }
      if (ratio > 1) ++failures;
      if (ratio > worst)
        worst = ratio, worst_i = i, worst_j = j, worst_error = error_value, worst_allowed = allowed_value;
    }
  if (failures == 0) return ::testing::AssertionSuccess();
  char text[400];
  std::snprintf(
      text, sizeof(text),
      "%lld of %lld entries are outside the bound; the worst is C(%lld,%lld): got %.17g (%a), exact value "
      "rounded %.17g, error %.3e, allowed %.3e",
      static_cast<long long>(failures), static_cast<long long>(C.rows() * C.cols()),
      static_cast<long long>(worst_i), static_cast<long long>(worst_j), C(worst_i, worst_j),
      C(worst_i, worst_j), round_to_double(reference.exact[reference.index(worst_i, worst_j)]), worst_error,
      worst_allowed);
  return ::testing::AssertionFailure() << text;
}

/// Largest |C - exact| in units of unit(i, j).
template <class Unit>
double largest_error(const ReferenceProduct& reference, const Matrix& C, const Unit& unit) {
  double worst = 0;
  for (std::int64_t j = 0; j < C.cols(); ++j)
    for (std::int64_t i = 0; i < C.rows(); ++i) {
      if (!std::isfinite(C(i, j))) return std::numeric_limits<double>::infinity();
      const Real error = abs(to_real(difference(C(i, j), reference.exact[reference.index(i, j)])));
      if (error == 0) continue;
      const Real one = unit(i, j);
      if (one == 0) return std::numeric_limits<double>::infinity();
      const Real quotient = error / one;
      worst = std::max(worst, quotient.get_d());
    }
  return worst;
}

/// Largest |C - exact| / (|A||B|) in units of u.
inline double componentwise_error(const ReferenceProduct& reference, const Matrix& C) {
  return largest_error(reference, C, [&](std::int64_t i, std::int64_t j) {
    return Real(power_of_two(-53) * reference.magnitude[reference.index(i, j)]);
  });
}

/// Largest |C - exact| / (||a_i||_2 ||b_j||_2) in units of u.
inline double normwise_error(const ReferenceProduct& reference, const Matrix& C) {
  return largest_error(reference, C,
                       [&](std::int64_t i, std::int64_t j) { return normwise_bound(reference, 1.0, i, j); });
}

}  // namespace KokkosOzaki::Testing

#endif
