// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_GEMMOPTIONS_HPP
#define KOKKOSOZAKI_GEMMOPTIONS_HPP

#include <cstddef>
#include <cstdint>

namespace KokkosOzaki {

/// \brief How the scaling exponents of rows of op(A) and columns of op(B) are found.
enum class Bound {
  fast,     ///< from the norm of each vector alone (Cauchy-Schwarz)
  accurate  ///< from one more INT8 product of the quantised operands, where that gives finer exponents on
            ///< average
};

/// \brief How scaled entries become integers.
enum class Rounding {
  nearest_even,  ///< error at most 1/2, unbiased
  toward_zero    ///< truncation, as in the literature on Ozaki Scheme II; for comparison
};

/// \brief How a product is computed.
enum class Method {
  emulated,  ///< by INT8 products: the bits do not depend on the machine
  native,  ///< in the format of C: cuBLAS, a BLAS that was found when the library was built, or, where neither takes
           ///< the operands, inner products of our own; the bits may depend on the machine
  automatic  ///< what is expected to be faster, see docs/native.md; the bits may depend on the machine. Native only where
  ///< a vendor's library takes the operands, and not where a constant of `accuracy` is below what it can promise
};

/// \brief What happens where no number of moduli keeps the promise of Accuracy::componentwise for all entries.
enum class Fallback {
  exact,  ///< these entries are computed exactly; the bits do not depend on the machine
  vendor  ///< the whole product is computed as by Method::native; the bits may depend on the machine
};

/// \brief What is promised when GemmOptions::num_moduli is 0. Constants are in units of u (2^-53 for double, 2^-24
/// for float). Complex: for the real and for the imaginary part.
class Accuracy {
 public:
  /// |C - exact| <= sqrt(k) u ||a_i||_2 ||b_j||_2 (plus the final rounding; complex: 2k for k): 14 moduli for double,
  /// 7 for float, for k <= 2^17.
  static constexpr Accuracy normwise() { return Accuracy(0.0, true, false); }

  /// |C - exact| <= c u ||a_i||_2 ||b_j||_2 (plus the final rounding), from k alone; c > 0.
  static constexpr Accuracy normwise(double c) { return Accuracy(c, false, false); }

  /// |C - exact| <= k u (|op(A)| |op(B)|)_ij (plus the final rounding), what an inner product in the format of C may
  /// lose in any order; complex: |z| stands for |Re z| + |Im z|. The number of moduli is chosen from the data: the call
  /// waits for the device once or a few times before the product is enqueued, and cannot be captured in a graph.
  static constexpr Accuracy componentwise() { return Accuracy(0.0, true, true); }

  /// |C - exact| <= c u (|op(A)| |op(B)|)_ij (plus the final rounding); c >= 1, fractions are cut off, and
  /// what is above 2^20 - 1 counts as that.
  static constexpr Accuracy componentwise(double c) { return Accuracy(c, false, true); }

  constexpr bool is_componentwise() const { return m_is_componentwise; }

  /// Whether c follows from k: sqrt(k) for normwise, k for componentwise.
  constexpr bool is_default() const { return m_is_default; }

  /// c where it is a number.
  constexpr double constant() const { return m_constant; }

 private:
  constexpr Accuracy(double c, bool is_default, bool is_componentwise)
      : m_constant(c), m_is_default(is_default), m_is_componentwise(is_componentwise) {}
  double m_constant;
  bool m_is_default, m_is_componentwise;
};

/// \brief Options of gemm and GemmPlan; by default the number of moduli is chosen from the data so that the result is as
/// good as that of an inner product in the format of C, or better.
struct GemmOptions {
  int num_moduli = 0;                             ///< 2..20; 0: the smallest number that `accuracy` allows
  Accuracy accuracy = Accuracy::componentwise();  ///< used when num_moduli is 0
  Bound bound = Bound::fast;                      ///< a componentwise accuracy always has the fast exponents
  Rounding rounding = Rounding::nearest_even;
  std::size_t max_workspace_bytes =
      0;                     ///< 0: no cap; otherwise C and k are cut into blocks that fit. Same bits.
  int moduli_per_group = 0;  ///< moduli whose INT32 products are kept at a time; 0: chosen. Same bits.
  const char* backend =
      nullptr;  ///< INT8 engine by name (docs/backends.md); null: the best one here. Same bits.
  Method method = Method::emulated;     ///< what computes it (docs/native.md)
  Fallback fallback = Fallback::exact;  ///< used when the number of moduli is chosen from the data
};

}  // namespace KokkosOzaki

#endif
