// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_NATIVEGEMM_HPP
#define KOKKOSOZAKI_NATIVEGEMM_HPP

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>

#include <KokkosOzaki_config.hpp>

#include "../../src/impl/KokkosOzaki_KokkosCompat.hpp"
#include "../../src/stages/KokkosOzaki_InnerProducts.hpp"

namespace KokkosOzaki::Impl {

/// \brief A product as the BLAS knows it: all matrices column-major, those that are not given as their transposes.
template <class Scalar>
struct BlasProduct {
  char transA, transB;  // N, T or C
  std::int64_t m, n, k;
  const Scalar* a;
  std::int64_t lda;
  const Scalar* b;
  std::int64_t ldb;
  Scalar* c;
  std::int64_t ldc;
  std::int64_t entries, stride_a, stride_b, stride_c;  // of a batch
};

/// How the BLAS takes an operand, or nothing: two strides above 1, or conjugated but not transposed.
struct BlasOperand {
  char trans;
  std::int64_t ld;
};
template <class T>
std::optional<BlasOperand> blas_operand(const MatrixRef<T>& x) {
  if (!x.conj && (x.row_stride == 1 || x.rows == 1))
    return BlasOperand{'N', std::max(x.cols == 1 ? 1 : x.col_stride, x.rows)};
  if (x.col_stride == 1 || x.cols == 1)
    return BlasOperand{x.conj ? 'C' : 'T', std::max(x.rows == 1 ? 1 : x.row_stride, x.cols)};
  return std::nullopt;
}

/// C := a b in the form of the BLAS, if there is one.
/// \param a, b op(A) and op(B), not empty; a batch without pointers
template <class Scalar>
std::optional<BlasProduct<Scalar>> blas_product(const MatrixRef<const Scalar>& a,
                                                const MatrixRef<const Scalar>& b,
                                                const MatrixRef<Scalar>& C) {
  const auto of = [](const auto& x, const auto& y, const auto& z) -> std::optional<BlasProduct<Scalar>> {
    const auto left = blas_operand(x), right = blas_operand(y);
    const auto out = blas_operand(z);
    if (!left || !right || !out || out->trans != 'N') return std::nullopt;
    return BlasProduct<Scalar>{left->trans, right->trans, z.rows,         z.cols,         x.cols,
                               x.data,      left->ld,     y.data,         right->ld,      z.data,
                               out->ld,     z.entries,    x.entry_stride, y.entry_stride, z.entry_stride};
  };
  if (auto straight = of(a, b, C)) return straight;
  return of(b.transposed(), a.transposed(), C.transposed());
}

/// \brief Products in the format of the scalar: by a vendor's library where that takes the operands, else by inner
/// products.
template <class ExecutionSpace>
class NativeGemm {
 public:
  NativeGemm();
  ~NativeGemm();

  /// Whether the library was built with a vendor's for this space.
  static constexpr bool has_vendor() {
#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
    if (is_cuda_space_v<ExecutionSpace>) return true;
#endif
#if defined(KOKKOSOZAKI_ENABLE_BLAS)
    if (is_host_space_v<ExecutionSpace>) return true;
#endif
    return false;
  }

  /// Whether run() uses it for these operands, or those of each entry.
  template <class Scalar, class AElement, class BElement>
  static bool vendor_takes(const MatrixRef<const AElement>& a, const MatrixRef<const BElement>& b,
                           const MatrixRef<Scalar>& C) {
    if constexpr (has_vendor() && std::is_same_v<AElement, Scalar> && std::is_same_v<BElement, Scalar>) {
      const auto product = blas_product<Scalar>(a, b, C);
      return product.has_value() && fits(*product);
    } else {
      return false;
    }
  }

  /// Acquires what a call needs, where it is not there yet; not while the stream is being captured.
  /// \throws BackendError
  void prepare();
  bool is_prepared() const;

  /// \brief C := alpha a b + beta C, or that of every entry of a batch; enqueues on `exec`, on a host space waits for
  /// what was enqueued there.
  /// \param a, b op(A) and op(B), not empty; pointers of all three in host memory
  /// \throws BackendError
  template <class Scalar, class AElement, class BElement>
  void run(const ExecutionSpace& exec, const Scalar& alpha, const MatrixRef<const AElement>& a,
           const MatrixRef<const BElement>& b, const Scalar& beta, const MatrixRef<Scalar>& C) {
    if (a.pointers != nullptr || b.pointers != nullptr || C.pointers != nullptr) {
      for (std::int64_t e = 0; e < C.entries; ++e)
        run(exec, alpha, single_entry(a, e), single_entry(b, e), beta, single_entry(C, e));
      return;
    }
    ScopedRegion region(Labels::native);
    if constexpr (has_vendor() && std::is_same_v<AElement, Scalar> && std::is_same_v<BElement, Scalar>) {
      const auto product = blas_product<Scalar>(a, b, C);
      if (product.has_value() && fits(*product)) return run_vendor(exec, alpha, *product, beta);
    }
    for (std::int64_t e = 0; e < C.entries; ++e)
      inner_products(exec, alpha, single_entry(a, e), single_entry(b, e), beta, single_entry(C, e));
  }

  /// Of the last part of a report.
  static const char* name(bool by_vendor) {
    return !by_vendor ? "inner_products" : is_cuda_space_v<ExecutionSpace> ? "cublas" : "blas";
  }

 private:
  /// Whether its integers hold the sizes.
  template <class Scalar>
  static bool fits(const BlasProduct<Scalar>& p) {
    constexpr std::int64_t most = is_host_space_v<ExecutionSpace> ? 0x7fffffff : std::int64_t{1} << 62;
    return std::max({p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) <= most;
  }

  template <class Scalar>
  void run_vendor(const ExecutionSpace& exec, const Scalar& alpha, const BlasProduct<Scalar>& product,
                  const Scalar& beta);

  struct Handle;
  std::unique_ptr<Handle> m_handle;
};

}  // namespace KokkosOzaki::Impl

#endif
