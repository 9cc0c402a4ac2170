// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_CAPTURE_CUDA_HPP
#define KOKKOSOZAKI_CAPTURE_CUDA_HPP

#include <string>

#include "../../KokkosOzaki_Error.hpp"
#include "../../impl/KokkosOzaki_KokkosCompat.hpp"

namespace KokkosOzaki::Impl {

/// \brief For what allocates, or waits for the device: that would end the capture of a CUDA graph with an error.
/// \param why  what cannot be done, and what would help
/// \throws Error  the stream of `exec` is being captured
template <class ExecutionSpace>
void check_not_captured([[maybe_unused]] const char* function, [[maybe_unused]] const ExecutionSpace& exec,
                        [[maybe_unused]] const char* why =
                            "memory would have to be allocated, and the stream is being captured; make the "
                            "plan or the prepared matrix, or make this call with these sizes and options "
                            "once, before the capture.") {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    const cudaError_t status = cudaStreamIsCapturing(exec.cuda_stream(), &capture);
    // The legacy default stream cannot be asked while a stream that waits for it is being captured.
    if (status == cudaErrorStreamCaptureImplicit) cudaGetLastError();
    if (status == cudaErrorStreamCaptureImplicit || capture != cudaStreamCaptureStatusNone)
      throw Error(std::string("KokkosOzaki::") + function + ": " + why);
  }
#endif
}

}  // namespace KokkosOzaki::Impl

#endif
