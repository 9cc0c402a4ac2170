// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_CAPTURE_CUDA_HPP
#define KOKKOSOZAKI_CAPTURE_CUDA_HPP

#include <string>

#include "../../KokkosOzaki_Error.hpp"
#include "../../impl/KokkosOzaki_KokkosCompat.hpp"

namespace KokkosOzaki::Impl {

/// \brief For what allocates: that would end the capture of a CUDA graph with an error.
/// \throws Error  the stream of `exec` is being captured
template <class ExecutionSpace>
void check_not_captured([[maybe_unused]] const char* function, [[maybe_unused]] const ExecutionSpace& exec) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaError_t status = cudaStreamIsCapturing(exec.cuda_stream(), &capture);
    // The legacy default stream cannot be asked while a stream that waits for it is being captured.
    if (status == cudaErrorStreamCaptureImplicit) cudaGetLastError();
    if (status == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone)
      throw Error(std::string("KokkosOzaki::") + function +
                  ": memory would have to be allocated, and the stream is being captured; make the plan or "
                  "the prepared "
                  "matrix, or call gemm with these sizes and options once, before the capture.");
  }
#endif
}

}  // namespace KokkosOzaki::Impl

#endif
