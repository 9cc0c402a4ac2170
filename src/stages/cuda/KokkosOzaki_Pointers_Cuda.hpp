// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_POINTERS_CUDA_HPP
#define KOKKOSOZAKI_POINTERS_CUDA_HPP

#include "../../impl/KokkosOzaki_KokkosCompat.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

#include <algorithm>
#include <string>

#include "../../KokkosOzaki_Error.hpp"

namespace KokkosOzaki::Impl {

namespace CudaStages {

/// What a kernel takes as its argument, 4 KiB in all.
template <class T>
struct PointerPiece {
  static constexpr std::int64_t capacity = 500;
  T* value[capacity];
};

template <class T>
__global__ void store_pointers(const PointerPiece<T> piece, int count, T** to) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += static_cast<int>(blockDim.x))
    to[i] = piece.value[i];
}

}  // namespace CudaStages

/// \brief Pointers from the host to the device as arguments of kernels: unlike a copy, that leaves nothing behind that
/// must live until the device has come to it, and a captured graph repeats it.
/// \throws BackendError  a launch failed
template <class T>
void move_pointers_cuda(const Kokkos::Cuda& exec, T* const* from, std::int64_t count, T** to) {
  using Piece = CudaStages::PointerPiece<T>;
  for (std::int64_t first = 0; first < count; first += Piece::capacity) {
    const std::int64_t length = std::min(std::int64_t{Piece::capacity}, count - first);
    Piece piece{};
    std::copy_n(from + first, length, piece.value);
    // Not by Kokkos, which has no asynchronous launch for more than 512 bytes of arguments.
    CudaStages::store_pointers<<<1, 256, 0, exec.cuda_stream()>>>(piece, static_cast<int>(length),
                                                                  to + first);
    const cudaError_t status = cudaGetLastError();
    if (status != cudaSuccess)
      throw BackendError(std::string("KokkosOzaki: the launch of store_pointers failed with status ") +
                         std::to_string(status) + " (" + cudaGetErrorName(status) + "); C is unspecified.");
  }
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
