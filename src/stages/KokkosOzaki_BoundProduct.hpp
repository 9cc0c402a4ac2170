// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_BOUNDPRODUCT_HPP
#define KOKKOSOZAKI_BOUNDPRODUCT_HPP

#include <cstdint>

namespace KokkosOzaki::Impl {

/// The bound product: G(i, j) at j * ld + i, entries >= 0.
struct BoundProduct {
  const std::int32_t* G;
  std::int64_t m, n, ld;
};

}  // namespace KokkosOzaki::Impl

#endif
