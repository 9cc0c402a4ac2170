// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RESIDUES_HPP
#define KOKKOSOZAKI_RESIDUES_HPP

#include "../impl/KokkosOzaki_Labels.hpp"
#include "KokkosOzaki_ResidueReducer.hpp"
#include "KokkosOzaki_ResiduePlanes.hpp"
#include "KokkosOzaki_Scale.hpp"
#include "cuda/KokkosOzaki_Residues_Cuda.hpp"

namespace KokkosOzaki::Impl {

/// \brief Largest number of moduli for which scaled entries of a product of floats fit 32 bits: |a'| <= 2^30.
constexpr int max_short_moduli = 7;

/// One vector and position per index, on any space.
/// \tparam Short integers of 32 bits
template <class Element, bool Short>
struct ResiduesFunctor {
  VectorSet<Element> vectors;
  const std::int32_t* exponent;
  const std::int32_t* alpha;
  const ModuliTable* table;
  bool toward_zero;
  ResiduePlanes planes;

  static constexpr int parts = parts_of_v<Element>, products = products_of_v<Element>;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t v = index / planes.ld, l = index % planes.ld;
    std::int8_t* out = planes.data + index;
    if (!vectors.holds(v) || l >= vectors.length || exponent[v] == flagged_vector) {
      for (int p = 0; p < products * table->count; ++p) out[p * planes.plane_stride] = 0;
      return;
    }
    std::int8_t digit[parts][max_digits];
    for (int part = 0; part < parts; ++part) {
      const RealOf<Element> x = vectors.part(v, l, part);
      if constexpr (Short)
        signed_digits(short_scaled_integer(x, alpha[v], toward_zero), digit[part]);
      else
        signed_digits(scaled_integer(x, alpha[v], toward_zero), digit[part]);
    }
    const int digits = Short ? short_digits : table->digits;
    for (int p = 0; p < table->count; ++p, out += products * planes.plane_stride) {
      const std::int8_t re = residue_of(digit[0], digits, *table, p);
      out[0] = re;
      if constexpr (is_complex_v<Element>) {
        const std::int8_t im = residue_of(digit[1], digits, *table, p);
        out[planes.plane_stride] = im;
        out[2 * planes.plane_stride] = residue_of_sum(re, im, table->modulus[p]);
      }
    }
  }
};

template <class Element, bool Short>
struct HostResidues {
  const StageKernels* kernels;
  const std::int32_t* exponent;
  const std::int32_t* alpha;
  const ModuliTable* table;
  bool toward_zero;
  ResiduePlanes planes;

  static constexpr int parts = parts_of_v<Element>, products = products_of_v<Element>;

  void operator()(std::int64_t v, std::int64_t first, int, const RealOf<Element>* x) const {
    const std::int64_t length = planes.ld - first < chunk_length ? planes.ld - first : chunk_length;
    const std::int64_t modulus_stride = products * planes.plane_stride;
    std::int8_t* out = planes.data + v * planes.ld + first;
    if (exponent[v] == flagged_vector) {
      for (int p = 0; p < products * table->count; ++p)
        for (std::int64_t l = 0; l < length; ++l) out[p * planes.plane_stride + l] = 0;
      return;
    }
    const auto& leaves = leaves_of<RealOf<Element>>(kernels);
    for (int part = 0; part < parts; ++part) {
      std::int8_t* to = out + part * planes.plane_stride;
      if constexpr (Short)
        leaves.short_residues(x + part * chunk_length, length, alpha[v], *table, toward_zero, to,
                              modulus_stride);
      else
        leaves.residues(x + part * chunk_length, length, alpha[v], *table, toward_zero, to, modulus_stride);
    }
    if constexpr (is_complex_v<Element>) {
      for (int p = 0; p < table->count; ++p, out += modulus_stride)
        kernels->add_residues(out, out + planes.plane_stride, length, table->modulus[p],
                              out + 2 * planes.plane_stride);
    }
  }
};

template <bool Short, class ExecutionSpace, class Element>
void residues_of_operand(const ExecutionSpace& exec, const StageKernels* kernels,
                         const ResidueOperandOf<Element>& operand, const ModuliTable* table, int moduli_count,
                         bool toward_zero) {
  const auto& [vectors, exponent, alpha, planes] = operand;
  if (planes.padded == 0) return;
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr) {
      if constexpr (is_complex_v<Element>)
        complex_residues_cuda(std::bool_constant<Short>{}, exec, operand, table, moduli_count, toward_zero);
      else
        residues_cuda(std::bool_constant<Short>{}, exec, operand, ResidueOperandOf<Element>{}, table,
                      moduli_count, toward_zero);
      return;
    }
  }
  if (is_host_space_v<ExecutionSpace> && kernels != nullptr) {
    for_each_tile(exec, Labels::residues, kernels, vectors,
                  HostResidues<Element, Short>{kernels, exponent, alpha, table, toward_zero, planes});
    zero_padding(exec, planes.data, moduli_count * products_of_v<Element>, planes.plane_stride, planes.ld,
                 vectors.count, planes.padded);
  } else {
    Kokkos::parallel_for(
        Labels::residues, Range<ExecutionSpace>(exec, 0, planes.padded * planes.ld),
        ResiduesFunctor<Element, Short>{vectors, exponent, alpha, table, toward_zero, planes});
  }
}

template <bool Short, class ExecutionSpace, class FirstElement, class SecondElement>
void residues_of_operands(const ExecutionSpace& exec, const StageKernels* kernels,
                          const ResidueOperandOf<FirstElement>& first,
                          const ResidueOperandOf<SecondElement>& second, const ModuliTable* table,
                          int moduli_count, bool toward_zero) {
  if constexpr (is_cuda_space_v<ExecutionSpace> && std::is_same_v<FirstElement, SecondElement> &&
                !is_complex_v<FirstElement>) {
    if (kernels != nullptr)
      return residues_cuda(std::bool_constant<Short>{}, exec, first, second, table, moduli_count,
                           toward_zero);
  }
  residues_of_operand<Short>(exec, kernels, first, table, moduli_count, toward_zero);
  residues_of_operand<Short>(exec, kernels, second, table, moduli_count, toward_zero);
}

/// \brief Residues of the scaled, rounded entries for all moduli: each entry is converted once, then integers
/// only.
/// \tparam Scalar of the product: with float and few moduli the integers have 32 bits
/// \param first, second the operands; the second may be empty
/// \param table in the memory of `exec`
template <class Scalar, class ExecutionSpace, class FirstElement, class SecondElement>
void residues_for(const ExecutionSpace& exec, const StageKernels* kernels,
                  const ResidueOperandOf<FirstElement>& first, const ResidueOperandOf<SecondElement>& second,
                  const ModuliTable* table, int moduli_count, bool toward_zero) {
  ScopedRegion region(Labels::residues);
  if constexpr (std::is_same_v<RealOf<Scalar>, float>) {
    if (moduli_count <= max_short_moduli)
      return residues_of_operands<true>(exec, kernels, first, second, table, moduli_count, toward_zero);
  }
  residues_of_operands<false>(exec, kernels, first, second, table, moduli_count, toward_zero);
}

/// The same for two operands of the product's type.
template <class ExecutionSpace>
void residues(const ExecutionSpace& exec, const StageKernels* kernels, const ResidueOperand& first,
              const ResidueOperand& second, const ModuliTable* table, int moduli_count, bool toward_zero) {
  residues_for<double>(exec, kernels, first, second, table, moduli_count, toward_zero);
}

/// The same for one operand.
template <class ExecutionSpace, class Element>
void residues(const ExecutionSpace& exec, const StageKernels* kernels, const VectorSet<Element>& vectors,
              const std::int32_t* exponent, const std::int32_t* alpha, const ModuliTable* table,
              int moduli_count, bool toward_zero, const ResiduePlanes& planes) {
  residues_for<Element>(exec, kernels, ResidueOperandOf<Element>{vectors, exponent, alpha, planes},
                        ResidueOperandOf<Element>{}, table, moduli_count, toward_zero);
}

}  // namespace KokkosOzaki::Impl

#endif
