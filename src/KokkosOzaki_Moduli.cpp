// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "impl/KokkosOzaki_Moduli.hpp"

#include <array>
#include <cmath>

namespace KokkosOzaki::Impl {

const ModuliTable* moduli_tables() {
  static const auto tables = [] {
    std::array<ModuliTable, max_moduli - min_moduli + 1> all;
    for (int s = min_moduli; s <= max_moduli; ++s)
      all[static_cast<std::size_t>(s - min_moduli)] = make_moduli_table(s);
    return all;
  }();
  return tables.data();
}

namespace {

using Wide = WideInteger<24>;

/// floor(sqrt(2^30 k))
std::uint64_t root_of_k(std::int64_t k) {
  const Wide square = Wide(static_cast<std::uint64_t>(k)) << 30;
  std::uint64_t root = 0;
  for (int bit = 47; bit >= 0; --bit) {
    const std::uint64_t trial = root | (std::uint64_t{1} << bit);
    if (Wide(trial) * Wide(trial) <= square) root = trial;
  }
  return root;
}

}  // namespace

int select_normwise(std::int64_t k, const Wide& numerator_squared, const Wide& denominator_squared,
                    int precision, bool toward_zero) {
  const Wide one_plus_eta(root_of_k(k) + 1 +
                          (std::uint64_t{1} << 30));  // (1 + 2^-15 sqrt(k)) 2^30, rounded up
  const Wide left = (Wide(static_cast<std::uint64_t>(k)) * one_plus_eta * one_plus_eta * denominator_squared)
                    << (2 * precision + (toward_zero ? 4 : 2));
  for (int s = min_moduli; s <= max_moduli; ++s) {
    if (guard_fast(s, k) < 2) continue;
    const Budget budget = fast_budget(s, k);
    // 4 k (2^30 + rho)^2 d^2 4^p <= n^2 h 2^(bits - 4)
    const Wide right = numerator_squared * Wide(budget.h);
    const int shift = budget.bits - 4;
    if (shift >= 0 ? left <= (right << shift) : (left << -shift) <= right) return s;
  }
  return 0;
}

int select_normwise(std::int64_t k, const Accuracy& accuracy, Rounding rounding, int precision) {
  const bool toward_zero = rounding == Rounding::toward_zero;
  if (accuracy.is_default())
    return select_normwise(k, Wide(static_cast<std::uint64_t>(k)), Wide(1), precision, toward_zero);
  double c = accuracy.constant();
  // Outside these limits the answer does not change: 20 moduli cannot give 2^-64, 2 moduli give 2^64.
  if (c < std::ldexp(1.0, -64)) return 0;
  if (c > std::ldexp(1.0, 64)) c = std::ldexp(1.0, 64);
  int exponent = 0;
  const double fraction = std::frexp(c, &exponent);
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  exponent -= 53;
  const Wide square = Wide(mantissa) * Wide(mantissa);
  return exponent >= 0 ? select_normwise(k, square << (2 * exponent), Wide(1), precision, toward_zero)
                       : select_normwise(k, square, Wide(1) << (-2 * exponent), precision, toward_zero);
}

}  // namespace KokkosOzaki::Impl
