// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_SPLITRESIDUES_HPP
#define KOKKOSOZAKI_SPLITRESIDUES_HPP

// The residue stage in two steps with stored integers between them, and other reducers than the library's:
// for comparison in tests and benchmarks. The library converts and reduces in one kernel.

#include "../impl/KokkosOzaki_Labels.hpp"
#include "KokkosOzaki_Residues.hpp"
#include "KokkosOzaki_ScaledIntegers.hpp"
#include "cuda/KokkosOzaki_SplitResidues_Cuda.hpp"

namespace KokkosOzaki::Impl {

/// \brief Centered residue of a 64-bit integer a' = h 2^32 + l by remainders of 32-bit numbers, each by one
/// multiplication with the reciprocal.
///
/// The remainders of h and l are short of full reduction, in (-m, m) and [0, 2m): with c = centered(2^32)
/// |r_h c + r_l| < 2^15.1, and the last one, of A_m + r_h c + r_l + (m-1)/2 < 2^18, is exact.
KOKKOS_INLINE_FUNCTION std::int8_t residue_high_low(std::uint64_t a, const ModuliTable& table, int p) {
  if (p == 0) return static_cast<std::int8_t>(a & 0xFF);
  const std::int32_t m = table.modulus[p], half = (m - 1) / 2;
  const std::uint32_t above = table.inverse[p], below = above - 1;  // 2^32 / m is no integer
  const auto low = static_cast<std::uint32_t>(a);
  const auto high = static_cast<std::int32_t>(a >> 32);
  const auto low_quotient = static_cast<std::uint32_t>((std::uint64_t{low} * below) >> 32);
  const auto high_quotient = static_cast<std::int32_t>((std::int64_t{high} * std::int64_t{below}) >> 32);
  const auto r_low = static_cast<std::int32_t>(low - low_quotient * static_cast<std::uint32_t>(m));
  // The quotient times m may leave 32 bits by less than m: modulo 2^32.
  const auto r_high =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(high) -
                                static_cast<std::uint32_t>(high_quotient) * static_cast<std::uint32_t>(m));
  const std::int32_t T = table.start[p] + half + r_low + r_high * table.residue_coefficient[p][4];
  const auto quotient =
      static_cast<std::int32_t>((std::uint64_t{static_cast<std::uint32_t>(T)} * above) >> 32);
  return static_cast<std::int8_t>(T - quotient * m - half);
}

/// One vector and position per index, on any space.
struct ScaledIntegersFunctor {
  SplitOperand operand;
  bool toward_zero;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const VectorSet<double>& vectors = operand.vectors;
    const std::int64_t v = index / operand.integers.ld, l = index % operand.integers.ld;
    ScaledInteger a{0, 0};
    if (v < vectors.count && l < vectors.length && operand.exponent[v] != flagged_vector)
      a = scaled_integer(vectors.data[v * vectors.vector_stride + l * vectors.position_stride],
                         operand.alpha[v], toward_zero);
    operand.integers.low[index] = a.low;
    if (operand.integers.high != nullptr) operand.integers.high[index] = a.high;
  }
};

template <Reducer R>
struct StoredResiduesFunctor {
  ScaledIntegers integers;
  const ModuliTable* table;
  ResiduePlanes planes;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::uint64_t low = integers.low[index];
    std::int8_t* out = planes.data + index;
    std::int8_t digit[max_digits];
    if constexpr (R == Reducer::byte_dot)
      signed_digits({low, integers.high != nullptr ? integers.high[index] : -static_cast<int>(low >> 63)},
                    digit);
    for (int p = 0; p < table->count; ++p) {
      std::int8_t r;
      if constexpr (R == Reducer::byte_dot) r = residue_of(digit, *table, p);
      if constexpr (R == Reducer::high_low) r = residue_high_low(low, *table, p);
      if constexpr (R == Reducer::fp64_chain) r = residue_fp64_chain(double_of(low), table->modulus[p]);
      out[p * planes.plane_stride] = r;
    }
  }
};

/// \brief First step: integers.low and .high := the scaled, rounded entries; zeros for flagged vectors and
/// padding.
/// \param kernels null: the form for any space; otherwise, on CUDA, the kernel for it
/// \param moduli_count above 16 the second words are written
template <class ExecutionSpace>
void scaled_integers(const ExecutionSpace& exec, [[maybe_unused]] const StageKernels* kernels,
                     const SplitOperand& first, const SplitOperand& second, [[maybe_unused]] int moduli_count,
                     bool toward_zero) {
  ScopedRegion region(Labels::scaled_integers);
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr) return scaled_integers_cuda(exec, first, second, moduli_count, toward_zero);
  }
  for (const SplitOperand& operand : {first, second})
    Kokkos::parallel_for(Labels::scaled_integers,
                         Range<ExecutionSpace>(exec, 0, operand.integers.padded * operand.integers.ld),
                         ScaledIntegersFunctor{operand, toward_zero});
}

/// \brief Second step: the residues of the stored integers; operands as for scaled_integers.
/// \tparam R high_low and fp64_chain: at most 16 moduli; fp64_chain: .low holds the bits of doubles
/// \param table in the memory of `exec`
template <Reducer R = Reducer::byte_dot, class ExecutionSpace>
void stored_residues(const ExecutionSpace& exec, [[maybe_unused]] const StageKernels* kernels,
                     const SplitOperand& first, const SplitOperand& second, const ModuliTable* table,
                     [[maybe_unused]] int moduli_count) {
  ScopedRegion region(Labels::stored_residues);
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr)
      return stored_residues_cuda(ReducerTag<R>{}, exec, first, second, table, moduli_count);
  }
  for (const SplitOperand& operand : {first, second})
    Kokkos::parallel_for(Labels::stored_residues,
                         Range<ExecutionSpace>(exec, 0, operand.planes.padded * operand.planes.ld),
                         StoredResiduesFunctor<R>{operand.integers, table, operand.planes});
}

}  // namespace KokkosOzaki::Impl

#endif
