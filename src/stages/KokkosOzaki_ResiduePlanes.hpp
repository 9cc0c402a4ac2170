// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RESIDUEPLANES_HPP
#define KOKKOSOZAKI_RESIDUEPLANES_HPP

#include <cstdint>

namespace KokkosOzaki::Impl {

/// \brief Where the residues of a set of vectors go: plane p, vector v, position l at p * plane_stride + v *
/// ld + l.
struct ResiduePlanes {
  std::int8_t* data;
  std::int64_t plane_stride, ld;
  std::int64_t padded;  // vectors count .. padded-1 become zeros, positions length .. ld-1 too
};

}  // namespace KokkosOzaki::Impl

#endif
