// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_INT8GEMM_ONEDNN_HPP
#define KOKKOSOZAKI_INT8GEMM_ONEDNN_HPP

#include "../../src/impl/KokkosOzaki_KokkosCompat.hpp"
#include "../KokkosOzaki_Int8Gemm.hpp"

namespace KokkosOzaki::Impl {

/// \brief Whether dnnl_gemm_s8s8s32 is exact: without AVX-512 VNNI (which AMX implies) it saturates 16-bit
/// intermediates, with status success.
/// \param cpu_has_avx512vnni this CPU and its operating system
/// \param onednn_isa what oneDNN allows itself, a dnnl_cpu_isa_t; the environment can lower it
bool onednn_is_exact(bool cpu_has_avx512vnni, unsigned onednn_isa);

/// The same for this process.
bool onednn_is_exact();

/// One column-major product; `threads` threads of the caller's OpenMP pool. Throws BackendError.
void onednn_multiply(const PlaneGeometry& geometry, const std::int8_t* rA, const std::int8_t* rB,
                     std::int32_t* P, bool accumulate, int threads);

/// \brief INT8 products by oneDNN (dnnl_gemm_s8s8s32), one call per plane.
template <class ExecutionSpace>
class OneDnnInt8Gemm final : public Int8Gemm<ExecutionSpace> {
 public:
  const char* name() const override { return "onednn"; }

  void run(const ExecutionSpace& exec, const PlaneGeometry& geometry, const std::int8_t* rA,
           const std::int8_t* rB, std::int32_t* P, bool accumulate, void*) override {
    const int threads = static_cast<int>(exec.concurrency());
    for (int p = 0; p < geometry.count; ++p)
      onednn_multiply(geometry, rA + p * geometry.stride_a, rB + p * geometry.stride_b,
                      P + p * geometry.stride_p, accumulate, threads);
  }
};

}  // namespace KokkosOzaki::Impl

#endif
