// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_REDUCE_HPP
#define KOKKOSOZAKI_REDUCE_HPP

#include "../impl/KokkosOzaki_KokkosCompat.hpp"
#include "../impl/KokkosOzaki_Labels.hpp"
#include "KokkosOzaki_ResidueReducer.hpp"
#include "host/KokkosOzaki_StageKernels.hpp"

namespace KokkosOzaki::Impl {

/// \brief A group of planes of products and the planes of residues that they become.
struct ReducePlanes {
  int first, count;       // moduli of the group
  std::int64_t m, n, ld;  // both P and Y: entry (i, j) at j * ld + i
  const std::int32_t* P;  // plane of modulus first
  std::int64_t stride_p;  // elements between planes of P
  std::int8_t* Y;         // plane of modulus 0
  std::int64_t stride_y;  // elements between planes of Y
};

/// The planes of one entry or column of a complex product, for the modulus with index q of the group: P of
/// real parts, imaginary parts and sums, Y of the real and the imaginary part.
struct ComplexReducePlanes {
  const std::int32_t* P[3];
  std::int8_t* Y[2];

  KOKKOS_INLINE_FUNCTION ComplexReducePlanes(const ReducePlanes& planes, std::int64_t q,
                                             std::int64_t offset) {
    for (int i = 0; i < 3; ++i) P[i] = planes.P + (3 * q + i) * planes.stride_p + offset;
    for (int i = 0; i < 2; ++i) Y[i] = planes.Y + (2 * (planes.first + q) + i) * planes.stride_y + offset;
  }
};

/// One entry of one plane per index, on any space.
struct ReduceFunctor {
  ReducePlanes planes;
  const ModuliTable* table;
  bool accumulate;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t i = index % planes.m, rest = index / planes.m;
    const std::int64_t j = rest % planes.n, q = rest / planes.n;
    const int p = planes.first + static_cast<int>(q);
    std::int8_t* y = planes.Y + p * planes.stride_y + j * planes.ld + i;
    *y = output_residue(planes.P[q * planes.stride_p + j * planes.ld + i], accumulate ? *y : 0, *table, p);
  }
};

struct HostReduceFunctor {
  const StageKernels* kernels;
  ReducePlanes planes;
  const ModuliTable* table;
  bool accumulate;

  void operator()(std::int64_t index) const {
    const std::int64_t j = index % planes.n, q = index / planes.n;
    const int p = planes.first + static_cast<int>(q);
    kernels->reduce(planes.P + q * planes.stride_p + j * planes.ld, planes.m, *table, p, accumulate,
                    planes.Y + p * planes.stride_y + j * planes.ld);
  }
};

struct ComplexReduceFunctor {
  ReducePlanes planes;
  const ModuliTable* table;
  bool accumulate;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t i = index % planes.m, rest = index / planes.m;
    const std::int64_t j = rest % planes.n, q = rest / planes.n;
    const ComplexReducePlanes at(planes, q, j * planes.ld + i);
    ComplexResidue y{0, 0};
    if (accumulate) y = {*at.Y[0], *at.Y[1]};
    y = complex_output_residue(*at.P[0], *at.P[1], *at.P[2], y, *table, planes.first + static_cast<int>(q));
    *at.Y[0] = y.re;
    *at.Y[1] = y.im;
  }
};

struct HostComplexReduceFunctor {
  const StageKernels* kernels;
  ReducePlanes planes;
  const ModuliTable* table;
  bool accumulate;

  void operator()(std::int64_t index) const {
    const std::int64_t j = index % planes.n, q = index / planes.n;
    const ComplexReducePlanes at(planes, q, j * planes.ld);
    kernels->reduce_complex(at.P, planes.m, *table, planes.first + static_cast<int>(q), accumulate, at.Y);
  }
};

/// \brief y_p = centered(w_p P_p), the inverse of the Chinese remainder theorem folded in; later blocks of k
/// add to it.
/// \param accumulate y_p = centered(w_p P_p + y_p): not the first block of k
template <class ExecutionSpace>
void reduce(const ExecutionSpace& exec, const StageKernels* kernels, const ReducePlanes& planes,
            const ModuliTable* table, bool accumulate) {
  ScopedRegion region(Labels::reduce);
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr) return reduce_cuda(exec, planes, table, accumulate);
  }
  if constexpr (is_host_space_v<ExecutionSpace>) {
    if (kernels != nullptr) {
      Kokkos::parallel_for(Labels::reduce, Range<ExecutionSpace>(exec, 0, planes.n * planes.count),
                           HostReduceFunctor{kernels, planes, table, accumulate});
      return;
    }
  }
  Kokkos::parallel_for(Labels::reduce, Range<ExecutionSpace>(exec, 0, planes.m * planes.n * planes.count),
                       ReduceFunctor{planes, table, accumulate});
}

/// \brief The same for a complex product: the planes 3 p, 3 p + 1, 3 p + 2 of P become the planes 2 p, 2 p + 1
/// of Y, the residues of the real and the imaginary part. The differences are formed modulo m_p, so nothing
/// cancels.
template <class ExecutionSpace>
void reduce_complex(const ExecutionSpace& exec, const StageKernels* kernels, const ReducePlanes& planes,
                    const ModuliTable* table, bool accumulate) {
  ScopedRegion region(Labels::reduce);
  if constexpr (is_host_space_v<ExecutionSpace>) {
    if (kernels != nullptr) {
      Kokkos::parallel_for(Labels::reduce, Range<ExecutionSpace>(exec, 0, planes.n * planes.count),
                           HostComplexReduceFunctor{kernels, planes, table, accumulate});
      return;
    }
  }
  Kokkos::parallel_for(Labels::reduce, Range<ExecutionSpace>(exec, 0, planes.m * planes.n * planes.count),
                       ComplexReduceFunctor{planes, table, accumulate});
}

}  // namespace KokkosOzaki::Impl

#include "cuda/KokkosOzaki_Reconstruct_Cuda.hpp"

#endif
