// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_STATISTICS_HPP
#define KOKKOSOZAKI_STATISTICS_HPP

#include "../impl/KokkosOzaki_FloatBits.hpp"
#include "../impl/KokkosOzaki_KokkosCompat.hpp"
#include "../impl/KokkosOzaki_Labels.hpp"
#include "../impl/KokkosOzaki_MatrixRef.hpp"
#include "../impl/KokkosOzaki_Moduli.hpp"
#include "KokkosOzaki_HostTiles.hpp"
#include "cuda/KokkosOzaki_Statistics_Cuda.hpp"
#include "host/KokkosOzaki_StageKernels.hpp"

namespace KokkosOzaki::Impl {

/// \brief What one call decides on the device; zeroed before the statistics. A batch has one per entry, and
/// any_flagged in the first of them.
struct Control {
  std::int64_t gain;         // accurate bound: n sum(alpha_cand - alpha_fast) + m sum(beta_cand - beta_fast)
  std::int32_t any_flagged;  // some vector has an Inf or NaN
};

/// Statistics of the chunk x[0], x[stride], ..., x[(length-1) stride]; length <= 256. Complex numbers count
/// as two real ones each.
template <class Element>
KOKKOS_INLINE_FUNCTION ChunkStatistics chunk_statistics(const Element* x, std::int64_t stride, int length) {
  using Bits = typename FormatOf<RealOf<Element>>::Bits;
  Bits largest = 0;
  for (int l = 0; l < length; ++l)
    for (int part = 0; part < parts_of_v<Element>; ++part) {
      const Bits bits = magnitude_bits(part_of(x[l * stride], part));
      largest = bits > largest ? bits : largest;
    }
  if (largest == 0) return {0, zero_vector};
  if (largest >= FormatOf<Bits>::infinity) return {0, flagged_vector};
  const int e = ilogb_of(largest);
  std::uint64_t square_sum = 0;
  std::uint32_t sum = 0;
  for (int l = 0; l < length; ++l)
    for (int part = 0; part < parts_of_v<Element>; ++part) {
      const Bits bits = magnitude_bits(part_of(x[l * stride], part));
      if (bits == 0) continue;
      const std::uint32_t f = fixed15(bits, e) + 1;  // <= 2^16
      square_sum += static_cast<std::uint64_t>(f) * f;
      sum += f;
    }
  return {square_sum, e, sum};
}

/// What a chunk adds to the square sum of a vector with exponent e: ceil(S_c / 4^(e - e_c)).
KOKKOS_INLINE_FUNCTION std::uint64_t chunk_share(const ChunkStatistics& record, std::int32_t e) {
  if (record.exponent == zero_vector) return 0;
  const int shift = 2 * (e - record.exponent);
  return shift >= 64 ? 1 : ((record.square_sum - 1) >> shift) + 1;  // S_c >= 1
}

/// What a chunk adds to the sum of a vector with exponent e: ceil(S1_c / 2^(e - e_c)).
KOKKOS_INLINE_FUNCTION std::uint64_t chunk_sum_share(const ChunkStatistics& record, std::int32_t e) {
  if (record.exponent == zero_vector) return 0;
  const int shift = e - record.exponent;
  return shift >= 32 ? 1 : ((record.sum - 1) >> shift) + 1;  // S1_c >= 1
}

/// \brief Statistics of a vector.
struct VectorStatistics {
  std::int32_t exponent;          // e, zero_vector or flagged_vector
  std::uint64_t square_sum, sum;  // S and S1; 0 where there is no e
};

/// The statistics of a vector from those of its chunks, `stride` records apart: e = max e_c, S = sum ceil(S_c
/// / 4^(e - e_c)), S1 = sum ceil(S1_c / 2^(e - e_c)).
KOKKOS_INLINE_FUNCTION VectorStatistics join_chunks(const ChunkStatistics* chunk, std::int64_t stride,
                                                    std::int64_t chunks) {
  std::int32_t e = zero_vector;
  for (std::int64_t c = 0; c < chunks; ++c)
    e = chunk[c * stride].exponent > e ? chunk[c * stride].exponent : e;
  VectorStatistics joined{e, 0, 0};
  if (e == zero_vector || e == flagged_vector) return joined;
  for (std::int64_t c = 0; c < chunks; ++c) {
    joined.square_sum += chunk_share(chunk[c * stride], e);
    joined.sum += chunk_sum_share(chunk[c * stride], e);
  }
  return joined;
}

/// One chunk of one vector per index, on any space.
template <class Element>
struct ChunkStatisticsFunctor {
  VectorSet<Element> vectors;
  ChunkStatistics* out;  // [chunk][vector]

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t v = index % vectors.count, first = index / vectors.count * chunk_length;
    const std::int64_t left = vectors.length - first;
    out[index] = vectors.holds(v)
                     ? chunk_statistics(vectors.at(v, first), vectors.position_stride,
                                        static_cast<int>(left < chunk_length ? left : chunk_length))
                     : ChunkStatistics{0, zero_vector};
  }
};

/// One vector of either set per index; the records of the first set come before those of the second.
struct JoinChunksFunctor {
  const ChunkStatistics* in;  // [chunk][vector], twice
  std::int64_t first_count, second_count, chunks;
  std::int32_t* exponent;
  std::uint64_t* square_sum;
  std::uint64_t* sum;  // may be null
  Control* control;

  KOKKOS_FUNCTION void operator()(std::int64_t v) const {
    const bool of_first = v < first_count;
    const ChunkStatistics* records = of_first ? in + v : in + first_count * chunks + (v - first_count);
    const VectorStatistics s = join_chunks(records, of_first ? first_count : second_count, chunks);
    exponent[v] = s.exponent;
    square_sum[v] = s.square_sum;
    if (sum != nullptr) sum[v] = s.sum;
    if (s.exponent == flagged_vector) Kokkos::atomic_fetch_or(&control->any_flagged, 1);
  }
};

template <class Element>
struct HostChunkStatistics {
  const StageKernels* kernels;
  std::int64_t count;
  ChunkStatistics* out;  // [chunk][vector]

  void operator()(std::int64_t v, std::int64_t first, int length, const RealOf<Element>* x) const {
    // The zeros behind the real parts do not count.
    out[first / chunk_length * count + v] = leaves_of<RealOf<Element>>(kernels).chunk_statistics(
        x, is_complex_v<Element> ? 2 * chunk_length : length);
  }
};

struct ResetControlFunctor {
  Control* control;
  KOKKOS_FUNCTION void operator()(std::int64_t entry) const { control[entry] = Control{0, 0}; }
};

/// Clears what a call gathers; before its first statistics.
template <class ExecutionSpace>
void reset_control(const ExecutionSpace& exec, Control* control, std::int64_t entries = 1) {
  Kokkos::parallel_for(Labels::reset_control, Range<ExecutionSpace>(exec, 0, entries),
                       ResetControlFunctor{control});
}

inline std::int64_t chunks_of(std::int64_t length) {
  return (length + chunk_length - 1) / chunk_length;
}

template <class ExecutionSpace, class Element>
void statistics_chunks(const ExecutionSpace& exec, const StageKernels* kernels,
                       const VectorSet<Element>& vectors, ChunkStatistics* out) {
  if (vectors.count == 0) return;
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr) return statistics_chunks_cuda(exec, vectors, VectorSet<Element>{}, out);
  }
  if (is_host_space_v<ExecutionSpace> && kernels != nullptr)
    for_each_tile(exec, Labels::statistics_chunks, kernels, vectors,
                  HostChunkStatistics<Element>{kernels, vectors.count, out});
  else
    Kokkos::parallel_for(Labels::statistics_chunks,
                         Range<ExecutionSpace>(exec, 0, vectors.count * chunks_of(vectors.length)),
                         ChunkStatisticsFunctor<Element>{vectors, out});
}

/// \brief Exponent e and integer square sum S of every vector (method.md, "Statistics"); one read of each
/// operand.
/// \param kernels leaf functions on a host space, any non-null pointer on CUDA; null: the form for any space
/// \param first, second sets of vectors of one length >= 1; the second may be empty
/// \param chunks scratch for chunks_of(length) records per vector
/// \param exponent out, of the first set's vectors, then the second's: e, zero_vector or flagged_vector
/// \param square_sum out, likewise: S, 2^30 <= S <= 2^32 length (complex: 2^33 length); 0 where there is no e
/// \param sum out, likewise: S1, 2^15 <= S1 <= 2^16 length (complex: 2^17 length); null: not asked for
template <class ExecutionSpace, class FirstElement, class SecondElement>
void statistics(const ExecutionSpace& exec, const StageKernels* kernels, const VectorSet<FirstElement>& first,
                const VectorSet<SecondElement>& second, ChunkStatistics* chunks, std::int32_t* exponent,
                std::uint64_t* square_sum, Control* control, std::uint64_t* sum = nullptr) {
  ScopedRegion region(Labels::statistics);
  const std::int64_t chunk_count = chunks_of(first.length);
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr) {
      if constexpr (std::is_same_v<FirstElement, SecondElement>) {
        statistics_chunks_cuda(exec, first, second, chunks);
      } else {
        statistics_chunks(exec, kernels, first, chunks);
        statistics_chunks(exec, kernels, second, chunks + first.count * chunk_count);
      }
      return statistics_join_cuda(exec, chunks, first.count, second.count, chunk_count, exponent, square_sum,
                                  sum, &control->any_flagged);
    }
  }
  statistics_chunks(exec, kernels, first, chunks);
  statistics_chunks(exec, kernels, second, chunks + first.count * chunk_count);
  Kokkos::parallel_for(
      Labels::statistics_join, Range<ExecutionSpace>(exec, 0, first.count + second.count),
      JoinChunksFunctor{chunks, first.count, second.count, chunk_count, exponent, square_sum, sum, control});
}

/// The same for one set.
template <class ExecutionSpace, class Element>
void statistics(const ExecutionSpace& exec, const StageKernels* kernels, const VectorSet<Element>& vectors,
                ChunkStatistics* chunks, std::int32_t* exponent, std::uint64_t* square_sum, Control* control,
                std::uint64_t* sum = nullptr) {
  statistics(exec, kernels, vectors, VectorSet<Element>{}, chunks, exponent, square_sum, control, sum);
}

/// One vector per index.
struct AdoptStatisticsFunctor {
  const std::int32_t* known_exponent;
  const std::uint64_t* known_square_sum;
  const std::uint64_t* known_sum;
  std::int32_t* exponent;
  std::uint64_t* square_sum;
  std::uint64_t* sum;  // may be null
  Control* control;

  KOKKOS_FUNCTION void operator()(std::int64_t v) const {
    exponent[v] = known_exponent[v];
    square_sum[v] = known_square_sum[v];
    if (sum != nullptr) sum[v] = known_sum[v];
    if (exponent[v] == flagged_vector) Kokkos::atomic_fetch_or(&control->any_flagged, 1);
  }
};

/// \brief Statistics that are there already, in place of statistics().
/// \param known_sum  may be null where sum is
template <class ExecutionSpace>
void adopt_statistics(const ExecutionSpace& exec, std::int64_t count, const std::int32_t* known_exponent,
                      const std::uint64_t* known_square_sum, const std::uint64_t* known_sum,
                      std::int32_t* exponent, std::uint64_t* square_sum, Control* control,
                      std::uint64_t* sum = nullptr) {
  ScopedRegion region(Labels::statistics);
  Kokkos::parallel_for(Labels::adopt_statistics, Range<ExecutionSpace>(exec, 0, count),
                       AdoptStatisticsFunctor{known_exponent, known_square_sum, known_sum, exponent,
                                              square_sum, sum, control});
}

}  // namespace KokkosOzaki::Impl

#endif
