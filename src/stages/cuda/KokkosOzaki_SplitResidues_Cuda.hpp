// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_SPLITRESIDUES_CUDA_HPP
#define KOKKOSOZAKI_SPLITRESIDUES_CUDA_HPP

#include "../../impl/KokkosOzaki_Labels.hpp"
#include "../host/KokkosOzaki_StageKernels.hpp"
#include "../KokkosOzaki_ScaledIntegers.hpp"
#include "KokkosOzaki_ResidueReducer_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl {

namespace CudaStages {

/// A pair of 64-bit words of a tile that a thread reads or writes as 16 bytes: a warp has 512 contiguous
/// bytes.
struct PairIndex {
  int row, pair;
};
constexpr int pairs_per_thread = 2 * quads_per_thread;
constexpr int pairs_per_row = chunk_length / 2;

__device__ inline PairIndex pair_index(int thread, int r) {
  return {(thread >> 5) * quads_per_thread + r / 2, (thread & 31) + 32 * (r & 1)};
}

/// \brief Scaled, rounded entries of two sets of vectors as integers, one tile per team.
/// \tparam Words 2: 64 bits an entry; 3: and a second word of 32 bits
template <int Words>
struct ScaledIntegersKernel {
  using Policy = TilePolicy<4>;

  struct Operand {
    SplitOperand data;
    TileGrid grid;
    bool aligned;
  };
  Operand first, second;
  int first_tiles;
  bool toward_zero;

  // Rows keep pairs on 16-byte boundaries, and vectors in different banks. Of the second word the low half
  // is enough: 80 bits.
  static constexpr int row = chunk_length + 2, short_row = chunk_length + 8;
  static constexpr int low_bytes = tile_rows * row * 8;
  static constexpr int scratch_bytes = low_bytes + (Words == 3 ? tile_rows * short_row * 2 : 0) + 16;

  __device__ static void store(const ScaledIntegers& to, std::int64_t v, std::int64_t l, ulonglong2 low,
                               int2 high) {
    if (v >= to.padded || l >= to.ld) return;
    *reinterpret_cast<ulonglong2*>(to.low + v * to.ld + l) = low;
    if constexpr (Words == 3) *reinterpret_cast<int2*>(to.high + v * to.ld + l) = high;
  }

  __device__ void operator()(const typename Policy::member_type& team) const {
    const int thread = team.team_rank();
    const bool of_first = team.league_rank() < first_tiles;
    const Operand operand = of_first ? this->first : second;
    const VectorSet<double>& vectors = operand.data.vectors;
    const Tile tile = operand.grid.place(team.league_rank() - (of_first ? 0 : first_tiles));
    const auto usable = [&](std::int64_t v) {
      return v < vectors.count && operand.data.exponent[v] != flagged_vector;
    };

    if (vectors.position_stride == 1) {
      // Nothing changes hands.
      ulonglong2 bits[pairs_per_thread];
#pragma unroll
      for (int r = 0; r < pairs_per_thread; ++r) {
        const PairIndex at = pair_index(thread, r);
        const std::int64_t v = tile.vector(at.row), l = tile.position(at.row) + 2 * at.pair;
        const double* x = vectors.data + v * vectors.vector_stride + l;
        bits[r] = make_ulonglong2(0, 0);
        if (operand.aligned && v < vectors.count && l + 2 <= vectors.length) {
          bits[r] = __ldg(reinterpret_cast<const ulonglong2*>(x));
        } else if (v < vectors.count && l < vectors.length) {
          bits[r].x = static_cast<unsigned long long>(__double_as_longlong(__ldg(x)));
          if (l + 1 < vectors.length)
            bits[r].y = static_cast<unsigned long long>(__double_as_longlong(__ldg(x + 1)));
        }
      }
#pragma unroll
      for (int r = 0; r < pairs_per_thread; ++r) {
        const PairIndex at = pair_index(thread, r);
        const std::int64_t v = tile.vector(at.row);
        const bool use = usable(v);
        const std::int32_t alpha = use ? operand.data.alpha[v] : 0;
        const ScaledInteger x = scaled_integer(double_of(use ? bits[r].x : 0), alpha, toward_zero);
        const ScaledInteger y = scaled_integer(double_of(use ? bits[r].y : 0), alpha, toward_zero);
        store(operand.data.integers, v, tile.position(at.row) + 2 * at.pair, make_ulonglong2(x.low, y.low),
              make_int2(x.high, y.high));
      }
      return;
    }

    std::uint64_t bits[quads_per_thread][4];
    load_entries(vectors, false, false, tile, thread, bits);
    auto* shared = reinterpret_cast<char*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes}, 16));
    auto* low = reinterpret_cast<std::uint64_t*>(shared);
    auto* high = reinterpret_cast<std::int16_t*>(shared + low_bytes);
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r) {
      const QuadIndex at = quad_index(false, thread, r);
      const std::int64_t v = tile.vector(at.row);
      const bool use = usable(v);
      const std::int32_t alpha = use ? operand.data.alpha[v] : 0;
      ScaledInteger a[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = scaled_integer(double_of(use ? bits[r][i] : 0), alpha, toward_zero);
      auto* pairs = reinterpret_cast<ulonglong2*>(low + at.row * row + 4 * at.quad);
      pairs[0] = make_ulonglong2(a[0].low, a[1].low);
      pairs[1] = make_ulonglong2(a[2].low, a[3].low);
      if constexpr (Words == 3)
        *reinterpret_cast<short4*>(high + at.row * short_row + 4 * at.quad) =
            make_short4(static_cast<short>(a[0].high), static_cast<short>(a[1].high),
                        static_cast<short>(a[2].high), static_cast<short>(a[3].high));
    }
    team.team_barrier();
#pragma unroll
    for (int r = 0; r < pairs_per_thread; ++r) {
      const PairIndex at = pair_index(thread, r);
      int2 above = make_int2(0, 0);
      if constexpr (Words == 3) {
        const short2 two = *reinterpret_cast<const short2*>(high + at.row * short_row + 2 * at.pair);
        above = make_int2(two.x, two.y);
      }
      store(operand.data.integers, tile.vector(at.row), tile.position(at.row) + 2 * at.pair,
            *reinterpret_cast<const ulonglong2*>(low + at.row * row + 2 * at.pair), above);
    }
  }
};

// The reducers: what an entry becomes before the first modulus, the constants of a modulus, and a residue in
// the low byte of a word.

template <int Words_>
struct ReducerByteDot {
  static constexpr int Words = Words_;
  static constexpr bool has_low_byte = true;
  /// Signed digits, four to a word.
  struct Entry {
    std::uint32_t word[Words];
  };

  __device__ static Entry entry(std::uint64_t low, std::uint32_t high) {
    constexpr std::uint64_t offset = 0x8080808080808080u;
    const std::uint64_t w = low + offset;
    Entry digits;
    digits.word[0] = static_cast<std::uint32_t>(w) ^ 0x80808080u;
    digits.word[1] = static_cast<std::uint32_t>(w >> 32) ^ 0x80808080u;
    if constexpr (Words == 3)
      digits.word[2] = ((high + 0x8080u + (w < offset ? 1u : 0u)) ^ 0x8080u) & 0xFFFFu;
    return digits;
  }
  __device__ static std::uint32_t low_byte(const Entry& digits) { return digits.word[0]; }
  __device__ static void constants(const ModuliTable& table, int p, std::int32_t* c) {
    const auto* coefficient = reinterpret_cast<const std::int32_t*>(table.residue_coefficient[p]);
    c[0] = coefficient[0], c[1] = coefficient[1], c[2] = coefficient[2];
    c[3] = table.modulus[p];
    c[4] = static_cast<std::int32_t>(table.inverse[p]);
    c[5] = table.start[p];
  }
  __device__ static std::uint32_t residue(const Entry& digits, const int4& c, const int4& d) {
    std::int32_t T = dot4(static_cast<std::int32_t>(digits.word[0]), c.x, d.y);
    T = dot4(static_cast<std::int32_t>(digits.word[1]), c.y, T);
    if constexpr (Words == 3) T = dot4(static_cast<std::int32_t>(digits.word[2]), c.z, T);
    return static_cast<std::uint32_t>(finish(T, c.w, d.x));
  }
};

/// As residue_high_low.
struct ReducerHighLow {
  static constexpr int Words = 2;
  static constexpr bool has_low_byte = true;
  struct Entry {
    std::uint32_t low;
    std::int32_t high;
  };

  __device__ static Entry entry(std::uint64_t low, std::uint32_t) {
    return {static_cast<std::uint32_t>(low), static_cast<std::int32_t>(low >> 32)};
  }
  __device__ static std::uint32_t low_byte(const Entry& entry) { return entry.low; }
  __device__ static void constants(const ModuliTable& table, int p, std::int32_t* c) {
    const std::int32_t half = (table.modulus[p] - 1) / 2;
    c[0] = static_cast<std::int32_t>(table.inverse[p] - 1);
    c[1] = table.residue_coefficient[p][4];
    c[2] = table.start[p] + half;
    c[3] = table.modulus[p];
    c[4] = static_cast<std::int32_t>(table.inverse[p]);
    c[5] = half;
  }
  __device__ static std::uint32_t residue(const Entry& entry, const int4& c, const int4& d) {
    const auto m = static_cast<std::uint32_t>(c.w);
    const std::uint32_t low = entry.low - __umulhi(entry.low, static_cast<std::uint32_t>(c.x)) * m;
    const std::int32_t high = entry.high - __mulhi(entry.high, c.x) * c.w;
    const auto T = static_cast<std::uint32_t>(high * c.y + static_cast<std::int32_t>(low) + c.z);
    return T - __umulhi(T, static_cast<std::uint32_t>(d.x)) * m - static_cast<std::uint32_t>(d.y);
  }
};

/// As residue_fp64_chain, the divisions ahead.
struct ReducerFp64Chain {
  static constexpr int Words = 2;
  static constexpr bool has_low_byte = false;
  using Entry = double;

  __device__ static Entry entry(std::uint64_t low, std::uint32_t) { return double_of(low); }
  __device__ static std::uint32_t low_byte(const Entry&) { return 0; }
  __device__ static void constants(const ModuliTable& table, int p, std::int32_t* c) {
    const double m = table.modulus[p];
    reinterpret_cast<double*>(c)[0] = 1.0 / m;
    reinterpret_cast<double*>(c)[1] = -m;
    reinterpret_cast<float*>(c)[4] = 1.0f / static_cast<float>(m);
    reinterpret_cast<float*>(c)[5] = -static_cast<float>(m);
  }
  __device__ static std::uint32_t residue(const Entry& x, const int4& c, const int4& d) {
    const double inverse = __hiloint2double(c.y, c.x), minus_m = __hiloint2double(c.w, c.z);
    const float inverse32 = __int_as_float(d.x), minus_m32 = __int_as_float(d.y);
    auto r = static_cast<float>(fma(minus_m, rint(x * inverse), x));
    r = fmaf(rintf(r * inverse32), minus_m32, r);
    r = fmaf(rintf(r * inverse32), minus_m32, r);
    return static_cast<std::uint32_t>(static_cast<std::int32_t>(r));
  }
};

/// \brief Residues of stored integers, one tile per team; each thread has 16 consecutive positions of one
/// vector and stores 16 bytes for each modulus.
template <class ReducerType>
struct StoredResiduesKernel {
  using Policy = TilePolicy<4>;
  static constexpr int Words = ReducerType::Words;

  struct Operand {
    ScaledIntegers integers;
    ResiduePlanes planes;
    TileGrid grid;
  };
  Operand first, second;
  int first_tiles;
  const ModuliTable* table;

  static constexpr int constant_words = 8;
  static constexpr int low_bytes = tile_rows * chunk_length * 8;
  static constexpr int digit_bytes = low_bytes + (Words == 3 ? tile_rows * chunk_length * 2 : 0);
  static constexpr int scratch_bytes = digit_bytes + max_moduli * constant_words * 4 + 16;

  /// Neither the writes of consecutive pairs nor the reads of pairs that are 8 apart conflict.
  __device__ static int swizzled(int vector, int pair) {
    return vector * pairs_per_row + (pair ^ ((pair >> 3) & 7));
  }

  __device__ void operator()(const typename Policy::member_type& team) const {
    const int thread = team.team_rank();
    const bool of_first = team.league_rank() < first_tiles;
    const Operand operand = of_first ? this->first : second;
    const ScaledIntegers& from = operand.integers;
    const ResiduePlanes& planes = operand.planes;
    const Tile tile = operand.grid.place(team.league_rank() - (of_first ? 0 : first_tiles));

    auto* shared = reinterpret_cast<char*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes}, 16));
    auto* pairs = reinterpret_cast<ulonglong2*>(shared);
    auto* short_quads = reinterpret_cast<uint2*>(shared + low_bytes);
    auto* constants = reinterpret_cast<std::int32_t*>(shared + digit_bytes);
    ulonglong2 word[pairs_per_thread];
#pragma unroll
    for (int r = 0; r < pairs_per_thread; ++r) {
      const PairIndex at = pair_index(thread, r);
      const std::int64_t v = tile.vector(at.row), l = tile.position(at.row) + 2 * at.pair;
      word[r] = v < from.padded && l < from.ld
                    ? __ldg(reinterpret_cast<const ulonglong2*>(from.low + v * from.ld + l))
                    : make_ulonglong2(0, 0);
    }
    const int count = table->count;
    if (thread < count) ReducerType::constants(*table, thread, constants + thread * constant_words);
#pragma unroll
    for (int r = 0; r < pairs_per_thread; ++r) {
      const PairIndex at = pair_index(thread, r);
      pairs[swizzled(at.row, at.pair)] = word[r];
    }
    if constexpr (Words == 3) {
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r) {
        const int vector = (thread >> 5) * quads_per_thread + r, quad = thread & 31;
        const std::int64_t v = tile.vector(vector), l = tile.position(vector) + 4 * quad;
        const uint4 high = v < from.padded && l < from.ld
                               ? __ldg(reinterpret_cast<const uint4*>(from.high + v * from.ld + l))
                               : make_uint4(0, 0, 0, 0);
        short_quads[vector * quads_per_row + quad] =
            make_uint2(__byte_perm(high.x, high.y, 0x5410), __byte_perm(high.z, high.w, 0x5410));
      }
    }
    team.team_barrier();

    const int vector = thread >> 3, part = thread & 7;
    const std::int64_t v = tile.vector(vector), l = tile.position(vector) + 16 * part;
    if (v >= planes.padded || l >= planes.ld) return;
    typename ReducerType::Entry entry[16];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const ulonglong2 two = pairs[swizzled(vector, 8 * part + i)];
      std::uint32_t high[2] = {0, 0};
      if constexpr (Words == 3) {
        const uint2 quad = short_quads[vector * quads_per_row + 4 * part + i / 2];
        const std::uint32_t both = i % 2 == 0 ? quad.x : quad.y;
        high[0] = both & 0xFFFFu, high[1] = both >> 16;
      }
      entry[2 * i] = ReducerType::entry(two.x, high[0]);
      entry[2 * i + 1] = ReducerType::entry(two.y, high[1]);
    }
    std::int8_t* out = planes.data + v * planes.ld + l;
    int p = 0;
    if constexpr (ReducerType::has_low_byte) {
      std::uint32_t packed[4];
#pragma unroll
      for (int q = 0; q < 4; ++q)
        packed[q] =
            low_bytes_of(ReducerType::low_byte(entry[4 * q]), ReducerType::low_byte(entry[4 * q + 1]),
                         ReducerType::low_byte(entry[4 * q + 2]), ReducerType::low_byte(entry[4 * q + 3]));
      *reinterpret_cast<uint4*>(out) = make_uint4(packed[0], packed[1], packed[2], packed[3]);
      out += planes.plane_stride;
      p = 1;
    }
    for (; p < count; ++p, out += planes.plane_stride) {
      const int4 c = *reinterpret_cast<const int4*>(constants + p * constant_words);
      const int4 d = *reinterpret_cast<const int4*>(constants + p * constant_words + 4);
      std::uint32_t packed[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        std::uint32_t r[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) r[i] = ReducerType::residue(entry[4 * q + i], c, d);
        packed[q] = low_bytes_of(r[0], r[1], r[2], r[3]);
      }
      *reinterpret_cast<uint4*>(out) = make_uint4(packed[0], packed[1], packed[2], packed[3]);
    }
  }

  // `low_bytes` is a member here.
  __device__ static std::uint32_t low_bytes_of(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                               std::uint32_t d) {
    return CudaStages::low_bytes(a, b, c, d);
  }
};

}  // namespace CudaStages

inline void scaled_integers_cuda(const Kokkos::Cuda& exec, const SplitOperand& first,
                                 const SplitOperand& second, int moduli_count, bool toward_zero) {
  using namespace CudaStages;
  const TileGrid grid(first.integers.padded, first.integers.ld),
      second_grid(second.integers.padded, second.integers.ld);
  const auto launch = [&](auto words) {
    using Kernel = ScaledIntegersKernel<decltype(words)::value>;
    Kokkos::parallel_for(Labels::scaled_integers,
                         typename Kernel::Policy(exec, grid.tiles() + second_grid.tiles(), tile_threads, 1)
                             .set_scratch_size(0, Kokkos::PerTeam(int{Kernel::scratch_bytes})),
                         Kernel{{first, grid, words_are_aligned(first.vectors)},
                                {second, second_grid, words_are_aligned(second.vectors)},
                                grid.tiles(),
                                toward_zero});
  };
  if (moduli_count <= 16)
    launch(std::integral_constant<int, 2>{});
  else
    launch(std::integral_constant<int, 3>{});
}

template <Reducer R>
void stored_residues_cuda(ReducerTag<R>, const Kokkos::Cuda& exec, const SplitOperand& first,
                          const SplitOperand& second, const ModuliTable* table, int moduli_count) {
  using namespace CudaStages;
  const TileGrid grid(first.planes.padded, first.planes.ld),
      second_grid(second.planes.padded, second.planes.ld);
  const auto launch = [&](auto reducer) {
    using Kernel = StoredResiduesKernel<decltype(reducer)>;
    Kokkos::parallel_for(Labels::stored_residues,
                         typename Kernel::Policy(exec, grid.tiles() + second_grid.tiles(), tile_threads, 1)
                             .set_scratch_size(0, Kokkos::PerTeam(int{Kernel::scratch_bytes})),
                         Kernel{{first.integers, first.planes, grid},
                                {second.integers, second.planes, second_grid},
                                grid.tiles(),
                                table});
  };
  if constexpr (R == Reducer::high_low)
    launch(ReducerHighLow{});
  else if constexpr (R == Reducer::fp64_chain)
    launch(ReducerFp64Chain{});
  else if (moduli_count <= 16)
    launch(ReducerByteDot<2>{});
  else
    launch(ReducerByteDot<3>{});
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
