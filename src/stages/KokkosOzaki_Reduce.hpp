// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_REDUCE_HPP
#define KOKKOSOZAKI_REDUCE_HPP

#include "../impl/KokkosOzaki_KokkosCompat.hpp"
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

/// \brief y_p = centered(w_p P_p), the inverse of the Chinese remainder theorem folded in; later blocks of k
/// add to it.
/// \param accumulate y_p = centered(w_p P_p + y_p): not the first block of k
template <class ExecutionSpace>
void reduce(const ExecutionSpace& exec, const StageKernels* kernels, const ReducePlanes& planes,
            const ModuliTable* table, bool accumulate) {
  ScopedRegion region("KokkosOzaki::reduce");
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr) return reduce_cuda(exec, planes, table, accumulate);
  }
  if constexpr (is_host_space_v<ExecutionSpace>) {
    if (kernels != nullptr) {
      Kokkos::parallel_for("KokkosOzaki::reduce", Range<ExecutionSpace>(exec, 0, planes.n * planes.count),
                           HostReduceFunctor{kernels, planes, table, accumulate});
      return;
    }
  }
  Kokkos::parallel_for("KokkosOzaki::reduce",
                       Range<ExecutionSpace>(exec, 0, planes.m * planes.n * planes.count),
                       ReduceFunctor{planes, table, accumulate});
}

}  // namespace KokkosOzaki::Impl

#include "cuda/KokkosOzaki_Reconstruct_Cuda.hpp"

#endif
