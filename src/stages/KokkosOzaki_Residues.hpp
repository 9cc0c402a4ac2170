// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RESIDUES_HPP
#define KOKKOSOZAKI_RESIDUES_HPP

#include "KokkosOzaki_ResidueReducer.hpp"
#include "KokkosOzaki_ResiduePlanes.hpp"
#include "KokkosOzaki_Scale.hpp"
#include "cuda/KokkosOzaki_Residues_Cuda.hpp"

namespace KokkosOzaki::Impl {

/// One vector and position per index, on any space.
struct ResiduesFunctor {
  VectorSet<double> vectors;
  const std::int32_t* exponent;
  const std::int32_t* alpha;
  const ModuliTable* table;
  bool toward_zero;
  ResiduePlanes planes;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t v = index / planes.ld, l = index % planes.ld;
    std::int8_t* out = planes.data + index;
    if (v >= vectors.count || l >= vectors.length || exponent[v] == flagged_vector) {
      for (int p = 0; p < table->count; ++p) out[p * planes.plane_stride] = 0;
      return;
    }
    std::int8_t digit[max_digits];
    const double x = vectors.data[v * vectors.vector_stride + l * vectors.position_stride];
    signed_digits(scaled_integer(x, alpha[v], toward_zero), digit);
    for (int p = 0; p < table->count; ++p) out[p * planes.plane_stride] = residue_of(digit, *table, p);
  }
};

struct HostResidues {
  const StageKernels* kernels;
  const std::int32_t* exponent;
  const std::int32_t* alpha;
  const ModuliTable* table;
  bool toward_zero;
  ResiduePlanes planes;

  void operator()(std::int64_t v, std::int64_t first, int, const double* x) const {
    const std::int64_t length = planes.ld - first < chunk_length ? planes.ld - first : chunk_length;
    std::int8_t* out = planes.data + v * planes.ld + first;
    if (exponent[v] != flagged_vector) {
      kernels->residues(x, length, alpha[v], *table, toward_zero, out, planes.plane_stride);
    } else {
      for (int p = 0; p < table->count; ++p)
        for (std::int64_t l = 0; l < length; ++l) out[p * planes.plane_stride + l] = 0;
    }
  }
};

/// \brief Residues of the scaled, rounded entries for all moduli: each entry is converted once, then integers
/// only.
/// \param first, second the operands; the second may be empty
/// \param table in the memory of `exec`
template <class ExecutionSpace>
void residues(const ExecutionSpace& exec, const StageKernels* kernels, const ResidueOperand& first,
              const ResidueOperand& second, const ModuliTable* table, int moduli_count, bool toward_zero) {
  ScopedRegion region("KokkosOzaki::residues");
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr) return residues_cuda(exec, first, second, table, moduli_count, toward_zero);
  }
  for (const ResidueOperand& operand : {first, second}) {
    const auto& [vectors, exponent, alpha, planes] = operand;
    if (planes.padded == 0) continue;
    if (is_host_space_v<ExecutionSpace> && kernels != nullptr) {
      for_each_tile(exec, "KokkosOzaki::residues", kernels, vectors,
                    HostResidues{kernels, exponent, alpha, table, toward_zero, planes});
      zero_padding(exec, planes.data, moduli_count, planes.plane_stride, planes.ld, vectors.count,
                   planes.padded);
    } else {
      Kokkos::parallel_for("KokkosOzaki::residues", Range<ExecutionSpace>(exec, 0, planes.padded * planes.ld),
                           ResiduesFunctor{vectors, exponent, alpha, table, toward_zero, planes});
    }
  }
}

/// The same for one operand.
template <class ExecutionSpace>
void residues(const ExecutionSpace& exec, const StageKernels* kernels, const VectorSet<double>& vectors,
              const std::int32_t* exponent, const std::int32_t* alpha, const ModuliTable* table,
              int moduli_count, bool toward_zero, const ResiduePlanes& planes) {
  residues(exec, kernels, {vectors, exponent, alpha, planes}, {}, table, moduli_count, toward_zero);
}

}  // namespace KokkosOzaki::Impl

#endif
