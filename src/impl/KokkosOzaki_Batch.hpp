// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_BATCH_HPP
#define KOKKOSOZAKI_BATCH_HPP

#include <algorithm>
#include <cstdint>

#include "../stages/cuda/KokkosOzaki_Pointers_Cuda.hpp"
#include "KokkosOzaki_KokkosCompat.hpp"
#include "KokkosOzaki_MatrixRef.hpp"

namespace KokkosOzaki::Impl {

/// The entries first .. first+count-1 of a batch.
template <class T>
MatrixRef<T> entries_of(MatrixRef<T> x, std::int64_t first, std::int64_t count) {
  if (x.pointers != nullptr)
    x.pointers += first;
  else
    x.data += first * x.entry_stride;
  x.entries = count;
  return x;
}

/// Takes the pointers of a batch from the host to `to`; ordered with what runs on `exec`.
template <class ExecutionSpace, class T>
void move_pointers(const ExecutionSpace& exec, MatrixRef<T>& x, T** to) {
  if (x.pointers == nullptr) return;
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    move_pointers_cuda(exec, x.pointers, x.entries, to);
  } else {
    static_assert(is_host_space_v<ExecutionSpace>);
    static_cast<void>(exec);
    std::copy_n(x.pointers, x.entries, to);
  }
  x.pointers = to;
}

/// Bytes that the entries of one block of a batch take together where no cap is given. On a host space blocks stay in the
/// caches: measured on an x86-64 CPU, a quarter faster than all entries at once.
template <class ExecutionSpace>
std::size_t default_batch_bytes(std::size_t most) {
  if constexpr (is_host_space_v<ExecutionSpace>)
    return std::min(most, static_cast<std::size_t>(ExecutionSpace().concurrency()) << 21);
  return most;
}

}  // namespace KokkosOzaki::Impl

#endif
