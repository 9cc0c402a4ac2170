// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_NativeGemm.hpp"

#if defined(KOKKOSOZAKI_ENABLE_BLAS)
extern "C" {
#define KOKKOSOZAKI_DECLARE(NAME, TYPE)                                                             \
  void NAME(const char*, const char*, const int*, const int*, const int*, const TYPE*, const TYPE*, \
            const int*, const TYPE*, const int*, const TYPE*, TYPE*, const int*);
KOKKOSOZAKI_DECLARE(sgemm_, float)
KOKKOSOZAKI_DECLARE(dgemm_, double)
KOKKOSOZAKI_DECLARE(cgemm_, Kokkos::complex<float>)
KOKKOSOZAKI_DECLARE(zgemm_, Kokkos::complex<double>)
#undef KOKKOSOZAKI_DECLARE
}
#endif

namespace KokkosOzaki::Impl {

template <class ExecutionSpace>
struct NativeGemm<ExecutionSpace>::Handle {};

template <class ExecutionSpace>
NativeGemm<ExecutionSpace>::NativeGemm() = default;
template <class ExecutionSpace>
NativeGemm<ExecutionSpace>::~NativeGemm() = default;
template <class ExecutionSpace>
void NativeGemm<ExecutionSpace>::prepare() {}
template <class ExecutionSpace>
bool NativeGemm<ExecutionSpace>::is_prepared() const {
  return true;
}

#if defined(KOKKOSOZAKI_ENABLE_BLAS)
template <class ExecutionSpace>
template <class Scalar>
void NativeGemm<ExecutionSpace>::run_vendor(const ExecutionSpace& exec, const Scalar& alpha,
                                            const BlasProduct<Scalar>& p, const Scalar& beta) {
  exec.fence();  // it runs on the calling thread and its own
  const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
  const int lda = static_cast<int>(p.lda), ldb = static_cast<int>(p.ldb), ldc = static_cast<int>(p.ldc);
  for (std::int64_t e = 0; e < p.entries; ++e) {
    const Scalar *a = p.a + e * p.stride_a, *b = p.b + e * p.stride_b;
    Scalar* const c = p.c + e * p.stride_c;
    if constexpr (std::is_same_v<Scalar, float>)
      sgemm_(&p.transA, &p.transB, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
    else if constexpr (std::is_same_v<Scalar, double>)
      dgemm_(&p.transA, &p.transB, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
    else if constexpr (std::is_same_v<Scalar, Kokkos::complex<float>>)
      cgemm_(&p.transA, &p.transB, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
    else
      zgemm_(&p.transA, &p.transB, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c, &ldc);
  }
}
#define KOKKOSOZAKI_INSTANTIATE_SCALAR(SPACE, SCALAR)                              \
  template void NativeGemm<SPACE>::run_vendor<SCALAR>(const SPACE&, const SCALAR&, \
                                                      const BlasProduct<SCALAR>&, const SCALAR&);
#else
#define KOKKOSOZAKI_INSTANTIATE_SCALAR(SPACE, SCALAR)
#endif

#define KOKKOSOZAKI_INSTANTIATE(SPACE) \
  template class NativeGemm<SPACE>;    \
  KOKKOSOZAKI_FOR_EACH_SCALAR(KOKKOSOZAKI_INSTANTIATE_SCALAR, SPACE)
KOKKOSOZAKI_FOR_EACH_HOST_SPACE(KOKKOSOZAKI_INSTANTIATE)

}  // namespace KokkosOzaki::Impl
