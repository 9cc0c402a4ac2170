// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_SHAREDMEMORY_HPP
#define KOKKOSOZAKI_SHAREDMEMORY_HPP

#include <Kokkos_Core.hpp>
#include <string>

namespace KokkosOzaki::Testing {

// The same tests run on the host and on a device: what they hand to kernels is memory that both can reach.

#if defined(KOKKOS_ENABLE_CUDA)
/// Memory that every enabled space and the test itself can access.
using SharedSpace = Kokkos::CudaHostPinnedSpace;
#else
using SharedSpace = Kokkos::HostSpace;
#endif

/// `Space` as the execution space of a View whose elements the test accesses as well.
template <class Space>
using Shared = Kokkos::Device<Space, SharedSpace>;

/// Names typed tests after their space.
struct SpaceNames {
  template <class Space>
  static std::string GetName(int) {
    return Space::name();
  }
};

#if defined(KOKKOS_ENABLE_CUDA)
/// \brief From now on operator new gives memory that the device can access, so that kernels can work on the
/// memory of a std::vector. What lies on the stack or was made earlier stays out of their reach.
void share_heap_with_device();
#endif

}  // namespace KokkosOzaki::Testing

#endif
