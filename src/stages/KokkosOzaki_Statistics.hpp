// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_STATISTICS_HPP
#define KOKKOSOZAKI_STATISTICS_HPP

#include "../impl/KokkosOzaki_FloatBits.hpp"
#include "../impl/KokkosOzaki_KokkosCompat.hpp"
#include "../impl/KokkosOzaki_MatrixRef.hpp"
#include "../impl/KokkosOzaki_Moduli.hpp"
#include "KokkosOzaki_HostTiles.hpp"
#include "cuda/KokkosOzaki_Statistics_Cuda.hpp"
#include "host/KokkosOzaki_StageKernels.hpp"

namespace KokkosOzaki::Impl {

/// \brief What one call decides on the device; zeroed before the statistics.
struct Control {
  std::int64_t gain;         // accurate bound: n sum(alpha_cand - alpha_fast) + m sum(beta_cand - beta_fast)
  std::int32_t any_flagged;  // some vector has an Inf or NaN
};

/// Statistics of the chunk x[0], x[stride], ..., x[(length-1) stride]; length <= 128.
KOKKOS_INLINE_FUNCTION ChunkStatistics chunk_statistics(const double* x, std::int64_t stride, int length) {
  std::uint64_t largest = 0;
  for (int l = 0; l < length; ++l) {
    const std::uint64_t bits = bits_of(x[l * stride]) & ~sign_bit;
    largest = bits > largest ? bits : largest;
  }
  if (largest == 0) return {0, zero_vector};
  if (largest >= infinity_bits) return {0, flagged_vector};
  const int e = ilogb_of(largest);
  std::uint64_t sum = 0;
  for (int l = 0; l < length; ++l) {
    const std::uint64_t bits = bits_of(x[l * stride]) & ~sign_bit;
    if (bits == 0) continue;
    const std::uint64_t f = fixed15(bits, e) + std::uint64_t{1};  // <= 2^16
    sum += f * f;
  }
  return {sum, e};
}

/// The statistics of a vector from those of its chunks, `stride` records apart: e = max e_c, S = sum ceil(S_c
/// / 4^(e - e_c)).
KOKKOS_INLINE_FUNCTION ChunkStatistics join_chunks(const ChunkStatistics* chunk, std::int64_t stride,
                                                   std::int64_t chunks) {
  std::int32_t e = zero_vector;
  for (std::int64_t c = 0; c < chunks; ++c)
    e = chunk[c * stride].exponent > e ? chunk[c * stride].exponent : e;
  if (e == zero_vector || e == flagged_vector) return {0, e};
  std::uint64_t sum = 0;
  for (std::int64_t c = 0; c < chunks; ++c) {
    const ChunkStatistics& record = chunk[c * stride];
    if (record.exponent == zero_vector) continue;
    const int shift = 2 * (e - record.exponent);
    sum += shift >= 64 ? 1 : ((record.square_sum - 1) >> shift) + 1;  // ceil, S_c >= 1
  }
  return {sum, e};
}

/// One chunk of one vector per index, on any space.
struct ChunkStatisticsFunctor {
  VectorSet<double> vectors;
  ChunkStatistics* out;  // [chunk][vector]

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t v = index % vectors.count, first = index / vectors.count * chunk_length;
    const std::int64_t left = vectors.length - first;
    out[index] = chunk_statistics(vectors.data + v * vectors.vector_stride + first * vectors.position_stride,
                                  vectors.position_stride,
                                  static_cast<int>(left < chunk_length ? left : chunk_length));
  }
};

/// One vector of either set per index; the records of the first set come before those of the second.
struct JoinChunksFunctor {
  const ChunkStatistics* in;  // [chunk][vector], twice
  std::int64_t first_count, second_count, chunks;
  std::int32_t* exponent;
  std::uint64_t* square_sum;
  Control* control;

  KOKKOS_FUNCTION void operator()(std::int64_t v) const {
    const bool of_first = v < first_count;
    const ChunkStatistics* records = of_first ? in + v : in + first_count * chunks + (v - first_count);
    const ChunkStatistics s = join_chunks(records, of_first ? first_count : second_count, chunks);
    exponent[v] = s.exponent;
    square_sum[v] = s.square_sum;
    if (s.exponent == flagged_vector) Kokkos::atomic_fetch_or(&control->any_flagged, 1);
  }
};

struct HostChunkStatistics {
  const StageKernels* kernels;
  std::int64_t count;
  ChunkStatistics* out;  // [chunk][vector]

  void operator()(std::int64_t v, std::int64_t first, int length, const double* x) const {
    out[first / chunk_length * count + v] = kernels->chunk_statistics(x, length);
  }
};

struct ResetControlFunctor {
  Control* control;
  KOKKOS_FUNCTION void operator()(std::int64_t) const { *control = Control{0, 0}; }
};

/// Clears what a call gathers; before its first statistics.
template <class ExecutionSpace>
void reset_control(const ExecutionSpace& exec, Control* control) {
  Kokkos::parallel_for("KokkosOzaki::reset_control", Range<ExecutionSpace>(exec, 0, 1),
                       ResetControlFunctor{control});
}

inline std::int64_t chunks_of(std::int64_t length) {
  return (length + chunk_length - 1) / chunk_length;
}

/// \brief Exponent e and integer square sum S of every vector (method.md, "Statistics"); one read of each
/// operand.
/// \param kernels leaf functions on a host space, any non-null pointer on CUDA; null: the form for any space
/// \param first, second sets of vectors of one length >= 1; the second may be empty
/// \param chunks scratch for chunks_of(length) records per vector
/// \param exponent out, of the first set's vectors, then the second's: e, zero_vector or flagged_vector
/// \param square_sum out, likewise: S, 2^30 <= S <= 2^32 length; 0 where there is no e
template <class ExecutionSpace>
void statistics(const ExecutionSpace& exec, const StageKernels* kernels, const VectorSet<double>& first,
                const VectorSet<double>& second, ChunkStatistics* chunks, std::int32_t* exponent,
                std::uint64_t* square_sum, Control* control) {
  ScopedRegion region("KokkosOzaki::statistics");
  const std::int64_t chunk_count = chunks_of(first.length);
  if constexpr (is_cuda_space_v<ExecutionSpace>) {
    if (kernels != nullptr) statistics_chunks_cuda(exec, first, second, chunks);
  }
  if (!is_cuda_space_v<ExecutionSpace> || kernels == nullptr) {
    ChunkStatistics* out = chunks;
    for (const VectorSet<double>& vectors : {first, second}) {
      if (vectors.count == 0) continue;
      if (kernels != nullptr)
        for_each_tile(exec, "KokkosOzaki::statistics_chunks", kernels, vectors,
                      HostChunkStatistics{kernels, vectors.count, out});
      else
        Kokkos::parallel_for("KokkosOzaki::statistics_chunks",
                             Range<ExecutionSpace>(exec, 0, vectors.count * chunk_count),
                             ChunkStatisticsFunctor{vectors, out});
      out += vectors.count * chunk_count;
    }
  }
  Kokkos::parallel_for(
      "KokkosOzaki::statistics_join", Range<ExecutionSpace>(exec, 0, first.count + second.count),
      JoinChunksFunctor{chunks, first.count, second.count, chunk_count, exponent, square_sum, control});
}

/// The same for one set.
template <class ExecutionSpace>
void statistics(const ExecutionSpace& exec, const StageKernels* kernels, const VectorSet<double>& vectors,
                ChunkStatistics* chunks, std::int32_t* exponent, std::uint64_t* square_sum,
                Control* control) {
  statistics(exec, kernels, vectors, VectorSet<double>{}, chunks, exponent, square_sum, control);
}

}  // namespace KokkosOzaki::Impl

#endif
