// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_MULTIPLY_HPP
#define KOKKOSOZAKI_MULTIPLY_HPP

#include "../../backends/KokkosOzaki_Int8Gemm.hpp"
#include "../impl/KokkosOzaki_KokkosCompat.hpp"
#include "../impl/KokkosOzaki_Labels.hpp"

namespace KokkosOzaki::Impl {

/// \brief INT8 products of the planes by the engine.
/// \param region  "KokkosOzaki::multiply", or that of the stage which needs the product for itself
/// \param skip    null, or a flag in the memory of `exec`: where it is not zero by then, the products may be left out
template <class ExecutionSpace>
void multiply(const ExecutionSpace& exec, Int8Gemm<ExecutionSpace>& engine, const PlaneGeometry& geometry,
              const std::int8_t* rA, const std::int8_t* rB, std::int32_t* P, bool accumulate, void* workspace,
              const std::string& region = Labels::multiply, const std::int32_t* skip = nullptr) {
  ScopedRegion scoped(region);
  if (skip != nullptr)
    engine.run_unless(skip, exec, geometry, rA, rB, P, accumulate, workspace);
  else
    engine.run(exec, geometry, rA, rB, P, accumulate, workspace);
}

/// \brief The stages multiply and reduce by an engine that does both (can_reduce).
/// \param first       modulus of the first plane
/// \param Y           of that modulus
/// \param accumulate  as in reduce
template <class ExecutionSpace>
void multiply_reduce(const ExecutionSpace& exec, Int8Gemm<ExecutionSpace>& engine,
                     const PlaneGeometry& geometry, const std::int8_t* rA, const std::int8_t* rB,
                     const ModuliTable* table, int first, std::int8_t* Y, bool accumulate, void* workspace) {
  ScopedRegion scoped(Labels::multiply);
  engine.run_reduced(exec, geometry, rA, rB, table, first, Y, accumulate, workspace);
}

}  // namespace KokkosOzaki::Impl

#endif
