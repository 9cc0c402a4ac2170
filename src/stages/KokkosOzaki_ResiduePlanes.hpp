// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RESIDUEPLANES_HPP
#define KOKKOSOZAKI_RESIDUEPLANES_HPP

#include <cstdint>

#include "../impl/KokkosOzaki_MatrixRef.hpp"

namespace KokkosOzaki::Impl {

/// \brief Where the residues of a set of vectors go: plane p, vector v, position l at p * plane_stride + v *
/// ld + l. Complex: the planes 3 p, 3 p + 1 and 3 p + 2 are those of the real part, the imaginary part and
/// their sum.
struct ResiduePlanes {
  std::int8_t* data = nullptr;
  std::int64_t plane_stride = 0, ld = 0;
  std::int64_t padded = 0;  // vectors count .. padded-1 become zeros, positions length .. ld-1 too
};

/// \brief One operand of the residue stage.
template <class Element>
struct ResidueOperandOf {
  VectorSet<Element>
      vectors;  // the positions of one block of k; planes.ld is their number rounded up to a multiple of 64
  const std::int32_t* exponent;  // [count]; flagged vectors become zeros
  const std::int32_t* alpha;     // [count] scaling exponents
  ResiduePlanes planes;
};
using ResidueOperand = ResidueOperandOf<double>;

}  // namespace KokkosOzaki::Impl

#endif
