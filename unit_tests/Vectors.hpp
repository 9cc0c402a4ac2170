// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_VECTORS_HPP
#define KOKKOSOZAKI_VECTORS_HPP

#include <gmpxx.h>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
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

/// \brief One product of vectors/*.json with its intermediates (vectors/make_vectors.py makes them).
struct GemmVector {
  std::string name;
  int num_moduli;
  bool accurate, toward_zero;
  std::int64_t m, n, k;
  double alpha, beta;
  Rows<double> a, b;  // rows of op(A), columns of op(B)
  Rows<double> c_in;  // empty: C is not read
  Rows<double> c;

  /// false: alpha = 0 or k = 0, and c is all there is.
  bool has_stages;
  std::vector<VectorStatistics> stat_a, stat_b;
  std::vector<std::int32_t> alpha_a, alpha_b;  // final exponents
  bool takes_candidates;
  Rows<mpz_class> x;

  /// false: the accurate bound was not asked for, or does not apply.
  bool has_candidates;
  std::vector<std::int32_t> maxima_a, maxima_b, candidate_a, candidate_b, fast_a, fast_b;

  /// false: the integers and residues are not listed, and the following are empty.
  bool has_residues;
  Rows<mpz_class> integer_a, integer_b;
  std::vector<Rows<int>> residue_a, residue_b, y;  // [modulus][i][l], [modulus][j][l], [modulus][i][j]

  std::int64_t k_block;                          // 0: one block
  std::vector<std::vector<Rows<int>>> y_blocks;  // [block][modulus][i][j]

  /// The product of the transposed matrices.
  GemmVector transposed() const;
};

/// The products of doubles: random.json and edge.json, and each once more transposed.
const std::vector<GemmVector>& f64_vectors();

/// A file of the vectors folder, e.g. "tables".
nlohmann::json read_vectors_file(const std::string& name);

}  // namespace KokkosOzaki::Testing

#endif
