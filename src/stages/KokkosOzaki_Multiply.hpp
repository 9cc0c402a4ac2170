// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_MULTIPLY_HPP
#define KOKKOSOZAKI_MULTIPLY_HPP

#include "../../backends/KokkosOzaki_Int8Gemm.hpp"
#include "../impl/KokkosOzaki_KokkosCompat.hpp"

namespace KokkosOzaki::Impl {

/// \brief INT8 products of the planes by the engine.
/// \param region  "KokkosOzaki::multiply", or "KokkosOzaki::scale" for the bound product
template <class ExecutionSpace>
void multiply(const ExecutionSpace& exec, Int8Gemm<ExecutionSpace>& engine, const PlaneGeometry& geometry,
              const std::int8_t* rA, const std::int8_t* rB, std::int32_t* P, bool accumulate, void* workspace,
              const char* region = "KokkosOzaki::multiply") {
  ScopedRegion scoped(region);
  engine.run(exec, geometry, rA, rB, P, accumulate, workspace);
}

}  // namespace KokkosOzaki::Impl

#endif
