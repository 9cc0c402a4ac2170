// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_NativeGemm.hpp"

#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
#include <cublas_v2.h>

#include <string>

#include "../../src/KokkosOzaki_Error.hpp"
#endif

namespace KokkosOzaki::Impl {

#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
namespace {

void check(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw BackendError(std::string("KokkosOzaki: ") + call + " failed with status " + std::to_string(status) +
                     " (" + cublasGetStatusName(status) + "); C is unspecified.");
}

cublasOperation_t operation(char trans) {
  return trans == 'N' ? CUBLAS_OP_N : trans == 'T' ? CUBLAS_OP_T : CUBLAS_OP_C;
}

// One name for the four types; for complex numbers, which Kokkos and CUDA lay out alike.
#define KOKKOSOZAKI_DEFINE(NAME, TYPE, CUDA_TYPE)                                                           \
  void multiply(cublasHandle_t handle, const BlasProduct<TYPE>& p, const TYPE& alpha, const TYPE& beta) {   \
    const auto* a = reinterpret_cast<const CUDA_TYPE*>(p.a);                                                \
    const auto* b = reinterpret_cast<const CUDA_TYPE*>(p.b);                                                \
    auto* c = reinterpret_cast<CUDA_TYPE*>(p.c);                                                            \
    const auto *x = reinterpret_cast<const CUDA_TYPE*>(&alpha),                                             \
               *y = reinterpret_cast<const CUDA_TYPE*>(&beta);                                              \
    const cublasOperation_t transA = operation(p.transA), transB = operation(p.transB);                     \
    if (p.entries == 1)                                                                                     \
      check(                                                                                                \
          cublas##NAME##gemm_64(handle, transA, transB, p.m, p.n, p.k, x, a, p.lda, b, p.ldb, y, c, p.ldc), \
          "cublas" #NAME "gemm");                                                                           \
    else                                                                                                    \
      check(cublas##NAME##gemmStridedBatched_64(handle, transA, transB, p.m, p.n, p.k, x, a, p.lda,         \
                                                p.stride_a, b, p.ldb, p.stride_b, y, c, p.ldc, p.stride_c,  \
                                                p.entries),                                                 \
            "cublas" #NAME "gemmStridedBatched");                                                           \
  }
KOKKOSOZAKI_DEFINE(S, float, float)
KOKKOSOZAKI_DEFINE(D, double, double)
KOKKOSOZAKI_DEFINE(C, Kokkos::complex<float>, cuComplex)
KOKKOSOZAKI_DEFINE(Z, Kokkos::complex<double>, cuDoubleComplex)
#undef KOKKOSOZAKI_DEFINE

}  // namespace

template <>
struct NativeGemm<Kokkos::Cuda>::Handle {
  cublasHandle_t value = nullptr;
};

template <>
NativeGemm<Kokkos::Cuda>::NativeGemm() : m_handle(std::make_unique<Handle>()) {}
template <>
NativeGemm<Kokkos::Cuda>::~NativeGemm() {
  if (m_handle->value != nullptr) cublasDestroy(m_handle->value);
}
template <>
bool NativeGemm<Kokkos::Cuda>::is_prepared() const {
  return m_handle->value != nullptr;
}
template <>
void NativeGemm<Kokkos::Cuda>::prepare() {
  if (!is_prepared()) check(cublasCreate(&m_handle->value), "cublasCreate");
}

template <>
template <class Scalar>
void NativeGemm<Kokkos::Cuda>::run_vendor(const Kokkos::Cuda& exec, const Scalar& alpha,
                                          const BlasProduct<Scalar>& product, const Scalar& beta) {
  check(cublasSetStream(m_handle->value, exec.cuda_stream()), "cublasSetStream");
  multiply(m_handle->value, product, alpha, beta);
}

#define KOKKOSOZAKI_INSTANTIATE_SCALAR(SPACE, SCALAR)                              \
  template void NativeGemm<SPACE>::run_vendor<SCALAR>(const SPACE&, const SCALAR&, \
                                                      const BlasProduct<SCALAR>&, const SCALAR&);
KOKKOSOZAKI_FOR_EACH_SCALAR(KOKKOSOZAKI_INSTANTIATE_SCALAR, Kokkos::Cuda)
#else
template <>
struct NativeGemm<Kokkos::Cuda>::Handle {};
template <>
NativeGemm<Kokkos::Cuda>::NativeGemm() = default;
template <>
NativeGemm<Kokkos::Cuda>::~NativeGemm() = default;
template <>
bool NativeGemm<Kokkos::Cuda>::is_prepared() const {
  return true;
}
template <>
void NativeGemm<Kokkos::Cuda>::prepare() {}
#endif

}  // namespace KokkosOzaki::Impl
