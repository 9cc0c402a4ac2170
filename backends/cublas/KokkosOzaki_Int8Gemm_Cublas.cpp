// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_Int8Gemm_Cublas.hpp"

#include <cublas_v2.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "../../src/KokkosOzaki_Error.hpp"

namespace KokkosOzaki::Impl {

namespace {

/// Enough for every INT8 kernel of cuBLAS on compute capability 9.0 (its own recommendation for that
/// architecture).
constexpr std::size_t cublas_workspace_bytes = std::size_t{32} << 20;

/// Up to this many entries of one product the planes go in one batched call, above one call each. Measured on
/// an H200: docs/performance.md.
constexpr std::int64_t batched_entries = std::int64_t{2560} * 2560;

constexpr std::int64_t small_entries = 256 * 256;

/// A grid of CUDA has no more blocks in its third dimension, where kernels count the products of a batch.
constexpr int most_planes = 65535;

void check(cublasStatus_t status, const char* call, const PlaneGeometry& g) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw BackendError(std::string("KokkosOzaki: ") + call + " failed with status " + std::to_string(status) +
                     " (" + cublasGetStatusName(status) + "; m=" + std::to_string(g.m) +
                     ", n=" + std::to_string(g.n) + ", k=" + std::to_string(g.k) +
                     ", planes=" + std::to_string(g.count) + "); C is unspecified.");
}

constexpr std::int64_t padded(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

}  // namespace

struct CublasInt8Gemm::Handle {
  cublasHandle_t value = nullptr;
};

CublasInt8Gemm::CublasInt8Gemm() : m_handle(std::make_unique<Handle>()) {}

CublasInt8Gemm::~CublasInt8Gemm() {
  if (m_handle->value != nullptr) cublasDestroy(m_handle->value);
}

void CublasInt8Gemm::prepare() {
  if (m_handle->value != nullptr) return;
  const cublasStatus_t status = cublasCreate(&m_handle->value);
  if (status != CUBLAS_STATUS_SUCCESS)
    throw BackendError(std::string("KokkosOzaki: cublasCreate failed with status ") + std::to_string(status) +
                       " (" + cublasGetStatusName(status) + ").");
}

std::size_t CublasInt8Gemm::workspace_bytes(const PlaneGeometry&) const {
  return cublas_workspace_bytes;
}

std::int64_t CublasInt8Gemm::zero_padding(const PlaneGeometry& g) const {
  // 4 is what cuBLAS asks for. Small products are bound by the vectors that they read.
  return g.m * g.n <= small_entries ? 4 : 16;
}

void CublasInt8Gemm::run(const Kokkos::Cuda& exec, const PlaneGeometry& g, const std::int8_t* rA,
                         const std::int8_t* rB, std::int32_t* P, bool accumulate, void* workspace) {
  check(cublasSetStream(m_handle->value, exec.cuda_stream()), "cublasSetStream", g);
  // Setting the stream takes the workspace away again.
  check(cublasSetWorkspace(m_handle->value, workspace, cublas_workspace_bytes), "cublasSetWorkspace", g);

  // Leading dimensions and strides are multiples of 16.
  const std::int64_t m = padded(g.m, zero_padding(g)), n = padded(g.n, zero_padding(g)), k = padded(g.k, 64);
  const std::int32_t alpha = 1, beta = accumulate ? 1 : 0;
  if (g.count > 1 && m * n <= batched_entries) {
    for (int p = 0; p < g.count; p += most_planes)
      check(cublasGemmStridedBatchedEx_64(
                m_handle->value, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, rA + p * g.stride_a, CUDA_R_8I,
                g.lda, g.stride_a, rB + p * g.stride_b, CUDA_R_8I, g.ldb, g.stride_b, &beta,
                P + p * g.stride_p, CUDA_R_32I, g.ldp, g.stride_p, std::min(most_planes, g.count - p),
                CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT),
            "cublasGemmStridedBatchedEx", g);
    return;
  }
  for (int p = 0; p < g.count; ++p)
    check(cublasGemmEx_64(m_handle->value, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &alpha, rA + p * g.stride_a,
                          CUDA_R_8I, g.lda, rB + p * g.stride_b, CUDA_R_8I, g.ldb, &beta, P + p * g.stride_p,
                          CUDA_R_32I, g.ldp, CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx", g);
}

}  // namespace KokkosOzaki::Impl
