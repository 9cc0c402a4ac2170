// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_CHECKS_HPP
#define KOKKOSOZAKI_CHECKS_HPP

#include <cstdint>
#include <string>
#include <type_traits>

#include "../KokkosOzaki_GemmOptions.hpp"
#include "KokkosOzaki_KokkosCompat.hpp"
#include "KokkosOzaki_MatrixRef.hpp"

namespace KokkosOzaki::Impl {

/// The types of a call: one static_assert per condition.
template <class ExecutionSpace, class Scalar, class AView, class BView, class CView>
constexpr void check_types() {
  static_assert(is_enabled_space_v<ExecutionSpace>,
                "KokkosOzaki::gemm: exec must be an execution space that Kokkos was built with when "
                "KokkosOzaki was built.");
  static_assert(Kokkos::is_view<AView>::value, "KokkosOzaki::gemm: A must be a Kokkos::View.");
  static_assert(Kokkos::is_view<BView>::value, "KokkosOzaki::gemm: B must be a Kokkos::View.");
  static_assert(Kokkos::is_view<CView>::value, "KokkosOzaki::gemm: C must be a Kokkos::View.");
  static_assert(static_cast<int>(AView::rank) == 2, "KokkosOzaki::gemm: A must be a rank-2 Kokkos::View.");
  static_assert(static_cast<int>(BView::rank) == 2, "KokkosOzaki::gemm: B must be a rank-2 Kokkos::View.");
  static_assert(static_cast<int>(CView::rank) == 2, "KokkosOzaki::gemm: C must be a rank-2 Kokkos::View.");
  static_assert(!std::is_const_v<typename CView::value_type>,
                "KokkosOzaki::gemm: C must have a non-const value type.");
  static_assert(is_scalar_v<Scalar>,
                "KokkosOzaki::gemm: the value type of C must be float, double, Kokkos::complex<float> or "
                "Kokkos::complex<double>.");
  static_assert(is_operand_of_v<typename AView::non_const_value_type, Scalar>,
                "KokkosOzaki::gemm: A must have the value type of C, or float where that is double (complex "
                "likewise).");
  static_assert(is_operand_of_v<typename BView::non_const_value_type, Scalar>,
                "KokkosOzaki::gemm: B must have the value type of C, or float where that is double (complex "
                "likewise).");
  static_assert(Kokkos::SpaceAccessibility<ExecutionSpace, typename AView::memory_space>::accessible,
                "KokkosOzaki::gemm: A must be accessible from exec.");
  static_assert(Kokkos::SpaceAccessibility<ExecutionSpace, typename BView::memory_space>::accessible,
                "KokkosOzaki::gemm: B must be accessible from exec.");
  static_assert(Kokkos::SpaceAccessibility<ExecutionSpace, typename CView::memory_space>::accessible,
                "KokkosOzaki::gemm: C must be accessible from exec.");
}

template <class View>
MatrixRef<typename View::value_type> matrix_ref(const View& view) {
  return {view.data(), static_cast<std::int64_t>(view.extent(0)), static_cast<std::int64_t>(view.extent(1)),
          static_cast<std::int64_t>(view.stride(0)), static_cast<std::int64_t>(view.stride(1))};
}

template <class View>
MatrixRef<const typename View::non_const_value_type> const_matrix_ref(const View& view) {
  const auto x = matrix_ref(view);
  return {x.data, x.rows, x.cols, x.row_stride, x.col_stride};
}

/// \brief What the checks need to know of a matrix.
struct OperandShape {
  const void* data;
  std::int64_t rows, cols, row_stride, col_stride;  // strides in elements
  std::int64_t element_bytes;
  std::int64_t entries, entry_stride;  // of a batch
  const void* pointers;                // of type T* const*; null: strides

  template <class T>
  OperandShape(const MatrixRef<T>& x)
      : data(x.data),
        rows(x.rows),
        cols(x.cols),
        row_stride(x.row_stride),
        col_stride(x.col_stride),
        element_bytes(sizeof(T)),
        entries(x.entries),
        entry_stride(x.entry_stride),
        pointers(x.pointers),
        m_entry([](const OperandShape& self, std::int64_t e) -> const void* {
          return self.pointers != nullptr ? static_cast<T* const*>(self.pointers)[e]
                                          : static_cast<const T*>(self.data) + e * self.entry_stride;
        }) {}

  /// The first number of an entry of a batch.
  const void* entry(std::int64_t e) const { return m_entry(*this, e); }

 private:
  const void* (*m_entry)(const OperandShape&, std::int64_t);
};

/// \brief What the checks need to know of a scalar.
struct ScalarShape {
  int parts;      // numbers that count for one position of the inner dimension: 2 for complex
  int precision;  // u = 2^-precision

  template <class Scalar>
  static constexpr ScalarShape of() {
    return {parts_of_v<Scalar>, precision_v<Scalar>};
  }
};

/// \brief The arguments of gemm in their documented order: trans letters, extents, strides, overlap, options.
/// \throws std::invalid_argument  naming `function`, the operand, what was expected and what was got
void check_gemm(const char* function, ScalarShape scalar, char transA, char transB, const OperandShape& A,
                const OperandShape& B, const OperandShape& C, const GemmOptions& options);

/// \brief The arguments of gemm_batched, in the same order after the number of matrices; pointers in host memory.
/// Entries of C must not overlap each other or entries of A or B.
void check_gemm_batched(const char* function, ScalarShape scalar, char transA, char transB,
                        const OperandShape& A, const OperandShape& B, const OperandShape& C,
                        const GemmOptions& options);

/// Extents and strides of matrix `index` of an array against those of the first.
void check_same_shape(const char* function, const char* name, std::int64_t index, const OperandShape& first,
                      const OperandShape& got);

/// The arguments of a plan: trans letters, sizes, options; without the check of the number of moduli against
/// k.
void check_plan(const char* function, ScalarShape scalar, char transA, char transB, std::int64_t m,
                std::int64_t n, std::int64_t k, const GemmOptions& options);

/// The operands given to a plan against the sizes it was made for, then strides and overlap.
void check_execute(char transA, char transB, std::int64_t m, std::int64_t n, std::int64_t k,
                   const OperandShape& A, const OperandShape& B, const OperandShape& C);

/// \brief What a prepared matrix was made for, or what a plan asks of one. The trans letter is N, T or C; T for C where
/// that is the same.
struct PreparedTraits {
  char operand, trans;      // 'A' or 'B'
  std::int64_t rows, cols;  // of op()
  int num_moduli;
  Bound bound;
  Rounding rounding;
};

/// The trans letter of PreparedTraits.
char canonical_trans(ScalarShape scalar, char trans);

/// \brief The arguments of prepare_a and prepare_b: trans letter, strides, sizes, options.
/// \param operand 'A' or 'B'
void check_prepare(const char* function, ScalarShape scalar, char operand, char trans, const OperandShape& x,
                   const GemmOptions& options);

/// A prepared matrix in place of an operand against what the plan asks of it.
/// \param moduli_matter false: an empty product, which needs none
void check_prepared(const PreparedTraits& planned, const PreparedTraits& got, bool is_there,
                    bool moduli_matter);

/// Whether the number of moduli is known only once the data are.
constexpr bool chooses_from_data(const GemmOptions& options) {
  return options.method != Method::native && options.num_moduli == 0 && options.accuracy.is_componentwise();
}

/// Whether a native product keeps what is asked for: the default of `accuracy` stands for what it may lose.
constexpr bool native_keeps(ScalarShape scalar, std::int64_t k, const GemmOptions& options) {
  return options.num_moduli != 0 || options.accuracy.is_default() ||
         options.accuracy.constant() >= static_cast<double>(scalar.parts * k);
}

/// The number of moduli that the options ask for, where that does not depend on the data.
/// \throws std::invalid_argument  too few moduli for this k, or an accuracy that 20 moduli do not reach
int resolve_num_moduli(const char* function, ScalarShape scalar, std::int64_t k, const GemmOptions& options);

/// Why resolve_num_moduli would throw; empty if it would not.
std::string moduli_complaint(ScalarShape scalar, std::int64_t k, const GemmOptions& options);

constexpr bool is_transposed(char trans) {
  return trans != 'N' && trans != 'n';
}

/// op(x) as a matrix.
template <class T>
constexpr MatrixRef<T> op(const MatrixRef<T>& x, char trans) {
  MatrixRef<T> y = is_transposed(trans) ? x.transposed() : x;
  y.conj = is_complex_v<std::remove_const_t<T>> && (trans == 'C' || trans == 'c');
  return y;
}

}  // namespace KokkosOzaki::Impl

#endif
