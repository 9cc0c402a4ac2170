// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_KOKKOSCOMPAT_HPP
#define KOKKOSOZAKI_KOKKOSCOMPAT_HPP

// The only file that looks at KOKKOS_VERSION or at which spaces Kokkos was built with.

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <string>
#include <type_traits>

namespace KokkosOzaki::Impl {

/// Execution policy over 64-bit indices. Kokkos' own size type is 32-bit on some devices.
template <class ExecutionSpace>
using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;

/// The same with work handed out as it is asked for, for items of unequal cost.
template <class ExecutionSpace>
using DynamicRange =
    Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>, Kokkos::Schedule<Kokkos::Dynamic>>;

/// Profiling region for the life of the object.
class ScopedRegion {
 public:
  explicit ScopedRegion(const std::string& name) { Kokkos::Profiling::pushRegion(name); }
  ~ScopedRegion() { Kokkos::Profiling::popRegion(); }
  ScopedRegion(const ScopedRegion&) = delete;
  ScopedRegion& operator=(const ScopedRegion&) = delete;
};

/// Something that tells instances of one execution space apart: the stream on a GPU. Kokkos 3.4 gives every
/// instance the id 0, so there all host instances are one.
template <class ExecutionSpace>
std::uintptr_t instance_key(const ExecutionSpace& exec) {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (std::is_same_v<ExecutionSpace, Kokkos::Cuda>)
    return reinterpret_cast<std::uintptr_t>(exec.cuda_stream());
#endif
#if KOKKOS_VERSION >= 30500
  return static_cast<std::uintptr_t>(exec.impl_instance_id());
#else
  (void)exec;
  return 0;
#endif
}

}  // namespace KokkosOzaki::Impl

#if defined(KOKKOS_ENABLE_SERIAL)
#define KOKKOSOZAKI_IF_SERIAL(X) X(Kokkos::Serial)
#else
#define KOKKOSOZAKI_IF_SERIAL(X)
#endif
#if defined(KOKKOS_ENABLE_OPENMP)
#define KOKKOSOZAKI_IF_OPENMP(X) X(Kokkos::OpenMP)
#else
#define KOKKOSOZAKI_IF_OPENMP(X)
#endif
#if defined(KOKKOS_ENABLE_THREADS)
#define KOKKOSOZAKI_IF_THREADS(X) X(Kokkos::Threads)
#else
#define KOKKOSOZAKI_IF_THREADS(X)
#endif
#if defined(KOKKOS_ENABLE_CUDA)
#define KOKKOSOZAKI_IF_CUDA(X) X(Kokkos::Cuda)
#else
#define KOKKOSOZAKI_IF_CUDA(X)
#endif

/// X(ExecutionSpace) for every execution space that the library is compiled for.
#define KOKKOSOZAKI_FOR_EACH_SPACE(X) KOKKOSOZAKI_FOR_EACH_HOST_SPACE(X) KOKKOSOZAKI_IF_CUDA(X)
#define KOKKOSOZAKI_FOR_EACH_HOST_SPACE(X) \
  KOKKOSOZAKI_IF_SERIAL(X) KOKKOSOZAKI_IF_OPENMP(X) KOKKOSOZAKI_IF_THREADS(X)

namespace KokkosOzaki::Impl {

template <class ExecutionSpace>
constexpr bool is_enabled_space_v = false;
template <class ExecutionSpace>
constexpr bool is_host_space_v = false;
#define KOKKOSOZAKI_DECLARE(SPACE) \
  template <>                      \
  inline constexpr bool is_enabled_space_v<SPACE> = true;
KOKKOSOZAKI_FOR_EACH_SPACE(KOKKOSOZAKI_DECLARE)
#undef KOKKOSOZAKI_DECLARE
#define KOKKOSOZAKI_DECLARE(SPACE) \
  template <>                      \
  inline constexpr bool is_host_space_v<SPACE> = true;
KOKKOSOZAKI_FOR_EACH_HOST_SPACE(KOKKOSOZAKI_DECLARE)
#undef KOKKOSOZAKI_DECLARE
template <class ExecutionSpace>
constexpr bool is_cuda_space_v = false;
#define KOKKOSOZAKI_DECLARE(SPACE) \
  template <>                      \
  inline constexpr bool is_cuda_space_v<SPACE> = true;
KOKKOSOZAKI_IF_CUDA(KOKKOSOZAKI_DECLARE)
#undef KOKKOSOZAKI_DECLARE

}  // namespace KokkosOzaki::Impl

#endif
