// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_SCALEDINTEGERS_HPP
#define KOKKOSOZAKI_SCALEDINTEGERS_HPP

#include <type_traits>

#include "KokkosOzaki_ResiduePlanes.hpp"

namespace KokkosOzaki::Impl {

/// \brief Stored scaled entries: vector v, position l at v * ld + l, ld a multiple of 64, on a 16-byte
/// boundary.
struct ScaledIntegers {
  std::uint64_t* low = nullptr;  // two's complement
  std::int32_t* high = nullptr;  // the bits above, where 64 do not suffice (s >= 17); otherwise null
  std::int64_t ld = 0, padded = 0;
};

/// One operand of the residue stage in two steps; `integers` and `planes` have the same ld and padded.
struct SplitOperand {
  VectorSet<double> vectors;
  const std::int32_t* exponent = nullptr;
  const std::int32_t* alpha = nullptr;
  ScaledIntegers integers;
  ResiduePlanes planes;
};

/// How a residue is made from a scaled entry.
enum class Reducer {
  byte_dot,   // the library's: signed bytes times 256^i mod m
  high_low,   // 32-bit remainders of the two halves
  fp64_chain  // the literature's: residue_fp64_chain
};
template <Reducer R>
using ReducerTag = std::integral_constant<Reducer, R>;

}  // namespace KokkosOzaki::Impl

#endif
