// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_BOUNDPRODUCT_HPP
#define KOKKOSOZAKI_BOUNDPRODUCT_HPP

#include <cstdint>

namespace KokkosOzaki::Impl {

/// \brief The bound product: G(i, j) at j * ld + i, values >= 0. Of a batch: one after the other, `col_pitch`
/// columns each; their rows and columns have the numbers of VectorSet.
struct BoundProduct {
  const std::int32_t* G;
  std::int64_t m, n, ld;
  std::int64_t entries = 1, row_pitch = 0, col_pitch = 0;
};

}  // namespace KokkosOzaki::Impl

#endif
