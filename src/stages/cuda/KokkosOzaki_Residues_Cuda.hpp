// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RESIDUES_CUDA_HPP
#define KOKKOSOZAKI_RESIDUES_CUDA_HPP

#include "../KokkosOzaki_ResiduePlanes.hpp"
#include "../host/KokkosOzaki_StageKernels.hpp"
#include "KokkosOzaki_ResidueReducer_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl {

namespace CudaStages {

/// \brief Residues of two sets of vectors, one tile per team. Entries are converted to digits once, the
/// digits change hands in shared memory, and then each thread has 16 consecutive positions of one vector: one
/// 16-byte store per modulus.
/// \tparam Words 32-bit words of digits: 2 for s <= 16, 3 above
template <int Words, int MinBlocks = 4>
struct ResiduesKernel {
  using Policy = TilePolicy<MinBlocks>;

  struct Operand {
    ResidueOperand data;
    std::int64_t vector_tiles;
    bool aligned;
  };
  Operand first, second;
  int first_tiles;
  const ModuliTable* table;
  bool toward_zero;

  static constexpr int plane_bytes = tile_vectors * chunk_length * 4;
  static constexpr int constant_words = 8;  // coefficients (3), modulus, inverse, start, two unused
  // The third word of digits has 16 bits only: 40 KiB at most, below what a block gets without asking for
  // more.
  static constexpr int digit_bytes = 2 * plane_bytes + (Words == 3 ? plane_bytes / 2 : 0);
  static constexpr int scratch_bytes = digit_bytes + max_moduli * constant_words * 4 + 16;

  __device__ static int swizzled(int vector, int quad) {
    return vector * quads_per_vector + (((quad >> 2) + 8 * (quad & 3)) ^ (vector & 7));
  }

  __device__ void operator()(const typename Policy::member_type& team) const {
    const int thread = team.team_rank();
    const bool of_first = team.league_rank() < first_tiles;
    const Operand operand = of_first ? this->first : second;
    const VectorSet<double>& vectors = operand.data.vectors;
    const ResiduePlanes& planes = operand.data.planes;
    const std::int64_t tile = of_first ? team.league_rank() : team.league_rank() - first_tiles;
    const std::int64_t first_vector = tile % operand.vector_tiles * tile_vectors;
    const std::int64_t first = tile / operand.vector_tiles * chunk_length;
    std::uint64_t bits[quads_per_thread][4];
    load_entries(vectors, operand.aligned, first_vector, first, thread, bits);

    auto* shared = reinterpret_cast<char*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes}, 16));
    auto* quads = reinterpret_cast<uint4*>(shared);
    auto* short_quads = reinterpret_cast<uint2*>(shared + 2 * plane_bytes);
    auto* constants = reinterpret_cast<std::int32_t*>(shared + digit_bytes);
    const int count = table->count;
    if (thread < count) {
      const auto* coefficient = reinterpret_cast<const std::int32_t*>(table->residue_coefficient[thread]);
      std::int32_t* c = constants + thread * constant_words;
      c[0] = coefficient[0], c[1] = coefficient[1], c[2] = coefficient[2];
      c[3] = table->modulus[thread];
      c[4] = static_cast<std::int32_t>(table->inverse[thread]);
      c[5] = table->start[thread];
    }

    const bool unit_stride = vectors.position_stride == 1;
#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r) {
      const QuadIndex at = quad_index(unit_stride, thread, r);
      const std::int64_t v = first_vector + at.vector;
      const bool usable = v < vectors.count && operand.data.exponent[v] != flagged_vector;
      const std::int32_t a = usable ? operand.data.alpha[v] : 0;
      std::uint32_t word[Words][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Digits<Words> digits = digits_of<Words>(usable ? bits[r][i] : 0, a, toward_zero);
#pragma unroll
        for (int w = 0; w < Words; ++w) word[w][i] = digits.word[w];
      }
      const int to = swizzled(at.vector, at.quad);
      quads[to] = make_uint4(word[0][0], word[0][1], word[0][2], word[0][3]);
      quads[tile_vectors * quads_per_vector + to] =
          make_uint4(word[1][0], word[1][1], word[1][2], word[1][3]);
      if constexpr (Words == 3)
        short_quads[to] = make_uint2(__byte_perm(word[2][0], word[2][1], 0x5410),
                                     __byte_perm(word[2][2], word[2][3], 0x5410));
    }
    team.team_barrier();

    const int vector = thread >> 3, part = thread & 7;
    const std::int64_t v = first_vector + vector, l = first + 16 * part;
    if (v >= planes.padded || l >= planes.ld) return;
    std::uint32_t digit[Words][16];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int from = swizzled(vector, 4 * part + i);
#pragma unroll
      for (int w = 0; w < 2; ++w) {
        const uint4 quad = quads[w * (tile_vectors * quads_per_vector) + from];
        digit[w][4 * i] = quad.x, digit[w][4 * i + 1] = quad.y;
        digit[w][4 * i + 2] = quad.z, digit[w][4 * i + 3] = quad.w;
      }
      if constexpr (Words == 3) {
        const uint2 quad = short_quads[from];
        digit[2][4 * i] = quad.x & 0xFFFFu, digit[2][4 * i + 1] = quad.x >> 16;
        digit[2][4 * i + 2] = quad.y & 0xFFFFu, digit[2][4 * i + 3] = quad.y >> 16;
      }
    }
    std::int8_t* out = planes.data + v * planes.ld + l;
    // Modulus 256: the low bytes themselves.
    *reinterpret_cast<uint4*>(out) =
        make_uint4(low_bytes(digit[0][0], digit[0][1], digit[0][2], digit[0][3]),
                   low_bytes(digit[0][4], digit[0][5], digit[0][6], digit[0][7]),
                   low_bytes(digit[0][8], digit[0][9], digit[0][10], digit[0][11]),
                   low_bytes(digit[0][12], digit[0][13], digit[0][14], digit[0][15]));
    for (int p = 1; p < count; ++p) {
      out += planes.plane_stride;
      const int4 c = *reinterpret_cast<const int4*>(constants + p * constant_words);
      const int2 d = *reinterpret_cast<const int2*>(constants + p * constant_words + 4);
      std::uint32_t packed[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        std::uint32_t r[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          std::int32_t T = dot4(static_cast<std::int32_t>(digit[0][4 * q + i]), c.x, d.y);
          T = dot4(static_cast<std::int32_t>(digit[1][4 * q + i]), c.y, T);
          if constexpr (Words == 3) T = dot4(static_cast<std::int32_t>(digit[2][4 * q + i]), c.z, T);
          r[i] = static_cast<std::uint32_t>(finish(T, c.w, d.x));
        }
        packed[q] = low_bytes(r[0], r[1], r[2], r[3]);
      }
      *reinterpret_cast<uint4*>(out) = make_uint4(packed[0], packed[1], packed[2], packed[3]);
    }
  }
};

}  // namespace CudaStages

/// Both operands in one launch; the second may be empty.
inline void residues_cuda(const Kokkos::Cuda& exec, const ResidueOperand& first, const ResidueOperand& second,
                          const ModuliTable* table, int moduli_count, bool toward_zero) {
  using namespace CudaStages;
  const TileGrid grid(first.planes.padded, first.planes.ld),
      second_grid(second.planes.padded, second.planes.ld);
  const auto launch = [&](auto words) {
    using Kernel = ResiduesKernel<decltype(words)::value>;
    Kokkos::parallel_for(
        "KokkosOzaki::residues",
        typename Kernel::Policy(exec, static_cast<int>(grid.tiles + second_grid.tiles), tile_threads, 1)
            .set_scratch_size(0, Kokkos::PerTeam(int{Kernel::scratch_bytes})),
        Kernel{{first, grid.vector_tiles, quads_are_aligned(first.vectors)},
               {second, second_grid.vector_tiles, quads_are_aligned(second.vectors)},
               static_cast<int>(grid.tiles),
               table,
               toward_zero});
  };
  if (moduli_count <= 16)
    launch(std::integral_constant<int, 2>{});
  else
    launch(std::integral_constant<int, 3>{});
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
