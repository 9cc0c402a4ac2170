// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_MATRIXGENERATORS_HPP
#define KOKKOSOZAKI_MATRIXGENERATORS_HPP

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace KokkosOzaki::Testing {

/// \brief Column-major matrix on the host: what generators, references and checks of the tests exchange.
template <class T>
class MatrixOf {
 public:
  MatrixOf() = default;
  MatrixOf(std::int64_t rows, std::int64_t cols, T value = T(0))
      : m_rows(rows), m_cols(cols), m_data(static_cast<std::size_t>(rows * cols), value) {}

  std::int64_t rows() const { return m_rows; }
  std::int64_t cols() const { return m_cols; }
  T& operator()(std::int64_t i, std::int64_t j) { return m_data[static_cast<std::size_t>(j * m_rows + i)]; }
  T operator()(std::int64_t i, std::int64_t j) const {
    return m_data[static_cast<std::size_t>(j * m_rows + i)];
  }
  const T* data() const { return m_data.data(); }

  MatrixOf transposed() const {
    MatrixOf t(m_cols, m_rows);
    for (std::int64_t j = 0; j < m_cols; ++j)
      for (std::int64_t i = 0; i < m_rows; ++i) t(j, i) = (*this)(i, j);
    return t;
  }

 private:
  std::int64_t m_rows = 0, m_cols = 0;
  std::vector<T> m_data;
};
using Matrix = MatrixOf<double>;

/// \brief Numbers that depend on the seed only: the distributions of <random> differ between standard
/// libraries.
class Random {
 public:
  explicit Random(std::uint64_t seed) : m_engine(seed) {}

  std::uint64_t bits() { return m_engine(); }

  /// In [0, 1), a multiple of 2^-53.
  double unit() { return std::ldexp(static_cast<double>(m_engine() >> 11), -53); }

  /// In [low, high].
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(m_engine() % static_cast<std::uint64_t>(high - low + 1));
  }

  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - unit()));
    return radius * std::cos(6.283185307179586 * unit());
  }

 private:
  std::mt19937_64 m_engine;
};

template <class Entry>
Matrix generate(std::int64_t rows, std::int64_t cols, std::uint64_t seed, const Entry& entry) {
  Random random(seed);
  Matrix a(rows, cols);
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i) a(i, j) = entry(random);
  return a;
}

inline Matrix uniform(std::int64_t rows, std::int64_t cols, double low, double high, std::uint64_t seed) {
  return generate(rows, cols, seed, [&](Random& random) { return low + (high - low) * random.unit(); });
}

/// (U - 1/2) exp(phi N): entries of magnitudes that spread with phi.
inline Matrix spread(std::int64_t rows, std::int64_t cols, double phi, std::uint64_t seed) {
  return generate(rows, cols, seed, [&](Random& random) {
    const double u = random.unit() - 0.5;
    return u * std::exp(phi * random.normal());
  });
}

/// Integers of magnitude at most `largest`.
inline Matrix integers(std::int64_t rows, std::int64_t cols, std::int64_t largest, std::uint64_t seed) {
  return generate(rows, cols, seed,
                  [&](Random& random) { return static_cast<double>(random.integer(-largest, largest)); });
}

/// Full 53-bit significands with exponents anywhere in [low, high]; below -1022 they are subnormal.
inline Matrix any_exponent(std::int64_t rows, std::int64_t cols, int low, int high, std::uint64_t seed) {
  return generate(rows, cols, seed, [&](Random& random) {
    const double significand = (random.integer(0, 1) == 0 ? 1.0 : -1.0) * (1.0 + random.unit());
    return std::ldexp(significand, static_cast<int>(random.integer(low, high)));
  });
}

/// 2^exponent A, exact unless an entry leaves the range of double.
inline Matrix scaled(const Matrix& a, int exponent) {
  Matrix b = a;
  for (std::int64_t j = 0; j < a.cols(); ++j)
    for (std::int64_t i = 0; i < a.rows(); ++i) b(i, j) = std::ldexp(a(i, j), exponent);
  return b;
}

}  // namespace KokkosOzaki::Testing

#endif
