// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_Int8Gemm_OneDnn.hpp"

#include <dnnl.h>
#include <omp.h>

#include <string>

#include "../../src/KokkosOzaki_Error.hpp"
#include "../host/KokkosOzaki_HostKernels.hpp"

namespace KokkosOzaki::Impl {

bool onednn_is_exact(bool cpu_has_avx512vnni, unsigned onednn_isa) {
  constexpr unsigned vnni = dnnl_cpu_isa_avx512_core_vnni;  // a set of bits that every newer set contains
  return cpu_has_avx512vnni && (onednn_isa & vnni) == vnni;
}

bool onednn_is_exact() {
  return onednn_is_exact(find_host_kernel_set("host-avx512vnni") != nullptr,
                         static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
}

void onednn_multiply(const PlaneGeometry& geometry, const std::int8_t* rA, const std::int8_t* rB,
                     std::int32_t* P, bool accumulate, int threads) {
  // oneDNN's matrices are row-major: P^T (n x m, leading dimension ldp) = rB (n x k) times rA^T (rA is m x
  // k).
  const std::int32_t offset = 0;
  const int callers_threads = omp_get_max_threads();
  omp_set_num_threads(threads);
  const dnnl_status_t status =
      dnnl_gemm_s8s8s32('N', 'T', 'F', geometry.n, geometry.m, geometry.k, 1.0f, rB, geometry.ldb, 0, rA,
                        geometry.lda, 0, accumulate ? 1.0f : 0.0f, P, geometry.ldp, &offset);
  omp_set_num_threads(callers_threads);
  if (status != dnnl_success)
    throw BackendError("KokkosOzaki: dnnl_gemm_s8s8s32 failed with status " + std::to_string(status) +
                       " (m=" + std::to_string(geometry.m) + ", n=" + std::to_string(geometry.n) +
                       ", k=" + std::to_string(geometry.k) + "); C is unspecified.");
}

}  // namespace KokkosOzaki::Impl
