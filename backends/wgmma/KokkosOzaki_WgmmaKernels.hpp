// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_WGMMAKERNELS_HPP
#define KOKKOSOZAKI_WGMMAKERNELS_HPP

#include <cuda_runtime_api.h>

#include <cstdint>

#include "../../src/impl/KokkosOzaki_ModuliTable.hpp"
#include "../KokkosOzaki_Int8Gemm.hpp"

/// \file
/// What the kernels of compute capability 9.0 offer to the engine; free of Kokkos, because they are compiled
/// for an architecture of their own (sm_90a).

namespace KokkosOzaki::Impl {

/// Whether the device has the instructions of sm_90a. \param device  CUDA device number
bool wgmma_usable(int device);

/// Whether the tiles of 256 x 256 entries are filled by more than a quarter.
bool wgmma_fits(const PlaneGeometry& geometry);

/// \brief Enqueues P[p] = rA[p]^T rB[p] of all planes; contract as Int8Gemm::run, or run_unless where `skip` is not null.
/// \return a null pointer, or the call that failed, with its code in `status`
const char* wgmma_multiply(cudaStream_t stream, int device, const PlaneGeometry& geometry,
                           const std::int8_t* rA, const std::int8_t* rB, std::int32_t* P, bool accumulate,
                           const std::int32_t* skip, int& status);

/// Whether these planes have so few tiles that at least two blocks can share the positions of each.
bool wgmma_adds_parts(int device, const PlaneGeometry& geometry);

/// \brief As wgmma_multiply, for few and long vectors: several blocks share the positions of a tile and add
/// their parts to P, which is set to zero before unless `accumulate`. Vectors of the padding are not read,
/// products of them not written.
const char* wgmma_multiply_parts(cudaStream_t stream, int device, const PlaneGeometry& geometry,
                                 const std::int8_t* rA, const std::int8_t* rB, std::int32_t* P,
                                 bool accumulate, int& status);

/// \brief Enqueues products and reduction of all planes; contract as Int8Gemm::run_reduced.
/// \return as wgmma_multiply
const char* wgmma_multiply_reduce(cudaStream_t stream, int device, const PlaneGeometry& geometry,
                                  const std::int8_t* rA, const std::int8_t* rB, const ModuliTable* table,
                                  int first, std::int8_t* Y, bool accumulate, int& status);

}  // namespace KokkosOzaki::Impl

#endif
