// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_ATOMICS_CUDA_HPP
#define KOKKOSOZAKI_ATOMICS_CUDA_HPP

#include <Kokkos_Core.hpp>
#include <cstdint>

namespace KokkosOzaki::Impl {

// On CUDA by the native instructions: for these Kokkos 3.4 has compare-and-swap loops. 512 additions to one address take
// 140 us on an H200, and the time grows with the square.

/// *to += value, atomically; returns the old value.
KOKKOS_INLINE_FUNCTION std::int64_t add_atomically(std::int64_t* to, std::int64_t value) {
#if defined(__CUDA_ARCH__)
  return static_cast<std::int64_t>(
      atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value)));
#else
  return Kokkos::atomic_fetch_add(to, value);
#endif
}

/// *to = max(*to, value), atomically.
KOKKOS_INLINE_FUNCTION void max_atomically(std::int32_t* to, std::int32_t value) {
#if defined(__CUDA_ARCH__)
  atomicMax(to, value);
#else
  Kokkos::atomic_fetch_max(to, value);
#endif
}

}  // namespace KokkosOzaki::Impl

#endif
