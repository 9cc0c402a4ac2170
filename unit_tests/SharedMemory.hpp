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

/// \brief Name of a typed case: what it is about in a CUDA build, where filters ask for it. Otherwise its number, since CTest
/// shows the type behind a number only (CMake up to 3.25).
inline std::string case_name([[maybe_unused]] int index, [[maybe_unused]] const std::string& name) {
#if defined(KOKKOS_ENABLE_CUDA)
  return name;
#else
  return std::to_string(index);
#endif
}

/// Names typed tests after their space.
struct SpaceNames {
  template <class Space>
  static std::string GetName(int index) {
    return case_name(index, Space::name());
  }
};

#if defined(KOKKOS_ENABLE_CUDA)
/// \brief From now on operator new gives memory that the device can access, so that kernels can work on the
/// memory of a std::vector. What lies on the stack or was made earlier stays out of their reach.
void share_heap_with_device();
#endif

}  // namespace KokkosOzaki::Testing

#endif
