// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_VECTORS_HPP
#define KOKKOSOZAKI_VECTORS_HPP

#include <gmpxx.h>
#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace KokkosOzaki::Testing {

template <class T>
using Rows = std::vector<std::vector<T>>;  // matrix[i][j]

/// Statistics of one row of op(A) or column of op(B); the numbers are 0 unless kind is regular.
struct VectorStatistics {
  enum class Kind { regular, zero, flagged } kind;
  std::int32_t exponent;
  std::uint64_t square_sum, sum;
};

/// An entry of a matrix: one number, or real and imaginary part.
template <int Parts, class T>
using Entry = std::conditional_t<Parts == 1, T, std::array<T, 2>>;

/// \brief One product of vectors/*.json with its intermediates (vectors/make_vectors.py makes them). Floats
/// are stored as doubles.
template <int Parts>
struct GemmVectorOf {
  template <class T>
  using Matrix = Rows<Entry<Parts, T>>;

  std::string name;
  bool is_single;  // of floats
  int num_moduli;
  bool accurate, toward_zero;
  bool conj_a, conj_b;  // a and b are listed before conjugation
  std::int64_t m, n, k;
  Entry<Parts, double> alpha, beta;
  Matrix<double> a, b;  // rows of op(A), columns of op(B)
  Matrix<double> c_in;  // empty: C is not read
  Matrix<double> c;

  /// false: alpha = 0 or k = 0, and c is all there is.
  bool has_stages;
  std::vector<VectorStatistics> stat_a, stat_b;
  std::vector<std::int32_t> alpha_a, alpha_b;  // final exponents
  bool takes_candidates;
  Matrix<mpz_class> x;

  /// false: the accurate bound was not asked for, or does not apply.
  bool has_candidates;
  std::vector<std::int32_t> maxima_a, maxima_b, candidate_a, candidate_b, fast_a, fast_b;

  /// false: the integers and residues are not listed, and the following are empty.
  bool has_residues;
  Matrix<mpz_class> integer_a, integer_b;
  std::vector<Matrix<int>> residue_a, residue_b, y;  // [modulus][i][l], [modulus][j][l], [modulus][i][j]

  std::int64_t k_block;                            // 0: one block
  std::vector<std::vector<Matrix<int>>> y_blocks;  // [block][modulus][i][j]

  /// The product of the transposed matrices.
  GemmVectorOf transposed() const;
};
using GemmVector = GemmVectorOf<1>;
using ComplexGemmVector = GemmVectorOf<2>;

/// The products of doubles: random.json and edge.json, and each once more transposed.
const std::vector<GemmVector>& f64_vectors();

/// The products of floats: f32.json, likewise.
const std::vector<GemmVector>& f32_vectors();

/// The products of complex numbers, of doubles and of floats: complex.json, likewise.
const std::vector<ComplexGemmVector>& complex_vectors();

/// A file of the vectors folder, e.g. "tables".
nlohmann::json read_vectors_file(const std::string& name);

}  // namespace KokkosOzaki::Testing

#endif
