// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_STAGEREFERENCE_HPP
#define KOKKOSOZAKI_STAGEREFERENCE_HPP

// The arithmetic of the stages once more: plain loops, multi-precision integers, no bit tricks, nothing
// shared with the library but its tables of moduli.

#include <gmpxx.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "impl/KokkosOzaki_Moduli.hpp"
#include "stages/host/KokkosOzaki_StageKernels.hpp"

namespace KokkosOzaki::Testing {

static_assert(sizeof(unsigned long) == 8, "mpz_class takes 64-bit integers as long");

inline mpz_class power_of_two(std::int64_t exponent) {
  mpz_class result;
  mpz_ui_pow_ui(result.get_mpz_t(), 2, static_cast<unsigned long>(exponent));
  return result;
}

inline std::int64_t bit_length_of(const mpz_class& x) {
  return sgn(x) == 0 ? 0 : static_cast<std::int64_t>(mpz_sizeinbase(x.get_mpz_t(), 2));
}

/// x 2^exponent rounded towards minus infinity, and towards plus infinity.
inline mpz_class scaled_floor(const mpz_class& x, std::int64_t exponent) {
  if (exponent >= 0) return x * power_of_two(exponent);
  mpz_class result;
  mpz_fdiv_q_2exp(result.get_mpz_t(), x.get_mpz_t(), static_cast<mp_bitcnt_t>(-exponent));
  return result;
}
inline mpz_class scaled_ceil(const mpz_class& x, std::int64_t exponent) {
  return -scaled_floor(-x, exponent);
}

/// |x| 2^exponent for x >= 0, rounded to the nearest integer, ties to even.
inline mpz_class scaled_nearest(const mpz_class& x, std::int64_t exponent) {
  mpz_class result = scaled_floor(x, exponent);
  if (exponent >= 0) return result;
  const mpz_class twice_rest = (x - result * power_of_two(-exponent)) * 2, unit = power_of_two(-exponent);
  if (twice_rest > unit || (twice_rest == unit && mpz_odd_p(result.get_mpz_t()))) ++result;
  return result;
}

/// A finite double as mantissa 2^exponent.
struct ExactDouble {
  mpz_class mantissa;
  std::int64_t exponent;
};
inline ExactDouble exact(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return {mpz_class(std::ldexp(fraction, 53)), exponent - 53};
}

/// X 2^exponent rounded once to a format with this many bits, ties to even; overflow gives Inf, gradual
/// underflow.
inline double reference_rounded(const mpz_class& X, std::int64_t exponent, int precision, int max_exponent) {
  if (sgn(X) == 0) return 0.0;
  const mpz_class magnitude = abs(X);
  const std::int64_t top = bit_length_of(magnitude) - 1 + exponent;
  // place of the last kept bit
  const std::int64_t last = std::max<std::int64_t>(top - precision + 1, 2 - max_exponent - precision);
  const mpz_class kept = scaled_nearest(magnitude, exponent - last);  // at most 2^precision
  const double value = bit_length_of(kept) - 1 + last > max_exponent
                           ? std::numeric_limits<double>::infinity()
                           : std::ldexp(kept.get_d(), static_cast<int>(last));
  return sgn(X) < 0 ? -value : value;
}
inline double reference_double(const mpz_class& X, std::int64_t exponent) {
  return reference_rounded(X, exponent, 53, 1023);
}
inline double reference_float(const mpz_class& X, std::int64_t exponent) {
  return reference_rounded(X, exponent, 24, 127);
}

/// floor(|x| 2^(15 - e))
inline mpz_class reference_fixed15(double x, int e) {
  const ExactDouble magnitude = exact(std::fabs(x));
  return scaled_floor(magnitude.mantissa, magnitude.exponent + 15 - e);
}

/// e, S and S1 (below 2^32) of one vector, or zero_vector or flagged_vector with zeros.
/// \param chunk  numbers in a chunk
inline Impl::ChunkStatistics reference_statistics(const std::vector<double>& x, std::size_t chunk = 128) {
  for (const double value : x)
    if (!std::isfinite(value)) return {0, Impl::flagged_vector};
  const auto exponent_of = [&x](std::size_t begin, std::size_t end) {
    int e = std::numeric_limits<int>::min();
    for (std::size_t l = begin; l < end; ++l)
      if (x[l] != 0) e = std::max(e, std::ilogb(x[l]));
    return e;
  };
  const int e = exponent_of(0, x.size());
  if (e == std::numeric_limits<int>::min()) return {0, Impl::zero_vector};
  mpz_class square_sum = 0, sum = 0;
  for (std::size_t begin = 0; begin < x.size(); begin += chunk) {
    const std::size_t end = std::min(begin + chunk, x.size());
    const int chunk_e = exponent_of(begin, end);
    if (chunk_e == std::numeric_limits<int>::min()) continue;
    mpz_class chunk_square_sum = 0, chunk_sum = 0;
    for (std::size_t l = begin; l < end; ++l)
      if (x[l] != 0) {
        const mpz_class f = reference_fixed15(x[l], chunk_e) + 1;
        chunk_square_sum += f * f;
        chunk_sum += f;
      }
    square_sum += scaled_ceil(chunk_square_sum, 2 * (static_cast<std::int64_t>(chunk_e) - e));
    sum += scaled_ceil(chunk_sum, static_cast<std::int64_t>(chunk_e) - e);
  }
  return {square_sum.get_ui(), e, static_cast<std::uint32_t>(sum.get_ui())};
}

/// The largest p with w 4^p <= h 2^(hb - 64).
inline std::int32_t reference_scale_step(std::uint64_t w, const Impl::Budget& budget) {
  constexpr int offset = 512;  // keeps both sides integers
  const mpz_class limit = mpz_class(budget.h) * power_of_two(budget.bits - 64 + offset);
  int p = 130;
  while (mpz_class(w) * power_of_two(2 * p + offset) > limit) --p;
  return p;
}

/// 2^alpha x rounded to an integer, ties to even, or truncated.
inline mpz_class reference_integer(double x, std::int32_t alpha, bool toward_zero) {
  const ExactDouble magnitude = exact(std::fabs(x));
  const std::int64_t exponent = magnitude.exponent + alpha;
  const mpz_class rounded =
      toward_zero ? scaled_floor(magnitude.mantissa, exponent) : scaled_nearest(magnitude.mantissa, exponent);
  return std::signbit(x) ? mpz_class(-rounded) : rounded;
}

/// The representative of x mod m in [-(m div 2), (m-1) div 2].
inline int reference_centered(const mpz_class& x, int m) {
  const auto residue = static_cast<int>(mpz_fdiv_ui(x.get_mpz_t(), static_cast<unsigned long>(m)));
  return residue > (m - 1) / 2 ? residue - m : residue;
}

/// M_s and the constants that follow from it.
inline mpz_class reference_product(int s) {
  mpz_class product = 1;
  for (int t = 0; t < s; ++t) product *= Impl::moduli[t];
  return product;
}
inline mpz_class reference_range(int s) {
  return reference_product(s) * 255 / 512;
}
inline int reference_inverse(int s, int t) {
  const mpz_class m = Impl::moduli[t], cofactor = reference_product(s) / m;
  mpz_class inverse;
  mpz_invert(inverse.get_mpz_t(), cofactor.get_mpz_t(), m.get_mpz_t());
  return static_cast<int>(inverse.get_si());
}

inline std::vector<int> reference_inverses(int s) {
  std::vector<int> w;
  for (int t = 0; t < s; ++t) w.push_back(reference_inverse(s, t));
  return w;
}

/// C := alpha t + beta C as docs/method.md says it.
inline double reference_epilogue(double t, double alpha, double beta, double c) {
  if (beta == 0) return alpha == 1 ? t : alpha * t;
  return std::fma(alpha, t, beta * c);
}

}  // namespace KokkosOzaki::Testing

#endif
