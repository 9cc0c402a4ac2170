// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RESIDUES_CUDA_HPP
#define KOKKOSOZAKI_RESIDUES_CUDA_HPP

#include "../../impl/KokkosOzaki_Labels.hpp"
#include "../host/KokkosOzaki_StageKernels.hpp"
#include "../KokkosOzaki_ResiduePlanes.hpp"
#include "KokkosOzaki_ResidueReducer_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl {

namespace CudaStages {

/// An operand of the residue kernel.
template <class Real>
struct TiledOperand {
  ResidueOperandOf<Real> data;
  TileGrid grid;
  bool aligned;
  bool unit_stride;  // neighbouring lanes take neighbouring positions
  bool negated;      // the entries are the negatives of what is in memory

  TiledOperand(const ResidueOperandOf<Real>& operand, bool along_vectors, bool is_negated)
      : data(operand),
        grid(TileGrid::fitted(operand.planes.padded, operand.planes.ld, along_vectors)),
        aligned(quads_are_aligned(operand.vectors)),
        unit_stride(along_vectors),
        negated(is_negated) {}
};

/// \brief Residues of two sets of vectors, one tile per team. Entries are converted to digits once, the
/// digits change hands in shared memory, and then each thread has 16 consecutive positions of one vector: one
/// 16-byte store per modulus.
/// \tparam Words 32-bit words of digits: 1 for products of floats and s <= 7, 2 for s <= 16, 3 above
template <class Real, int Words, int MinBlocks = 4>
struct ResiduesKernel {
  using Policy = TilePolicy<MinBlocks>;

  TiledOperand<Real> first, second;
  int first_tiles;
  const ModuliTable* table;
  bool toward_zero;

  static constexpr int plane_bytes = tile_rows * chunk_length * 4;
  static constexpr int constant_words = 8;  // coefficients (3), start; inverse, shift, minus modulus, unused
  // The third word of digits has 16 bits only: 40 KiB at most, below what a block gets without asking for
  // more.
  static constexpr int whole_words = Words < 2 ? Words : 2;
  static constexpr int digit_bytes = whole_words * plane_bytes + (Words == 3 ? plane_bytes / 2 : 0);
  static constexpr int scratch_bytes = digit_bytes + max_moduli * constant_words * 4 + 16;

  __device__ static int swizzled(int row, int quad) {
    return row * quads_per_row + (((quad >> 2) + 8 * (quad & 3)) ^ (row & 7));
  }

  __device__ void operator()(const typename Policy::member_type& team) const {
    const int thread = team.team_rank();
    const bool of_first = team.league_rank() < first_tiles;
    const TiledOperand<Real> operand = of_first ? this->first : second;
    const VectorSet<Real>& vectors = operand.data.vectors;
    const ResiduePlanes& planes = operand.data.planes;
    const Tile tile = operand.grid.place(team.league_rank() - (of_first ? 0 : first_tiles));
    using Bits = typename FormatOf<Real>::Bits;
    Bits bits[quads_per_thread][4];
    load_entries(vectors, operand.aligned, operand.unit_stride, tile, thread, bits);

    if (operand.negated) {
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r)
#pragma unroll
        for (int i = 0; i < 4; ++i) bits[r][i] ^= Bits{FormatOf<Real>::sign};
    }

    auto* shared = reinterpret_cast<char*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes}, 16));
    auto* quads = reinterpret_cast<uint4*>(shared);
    auto* short_quads = reinterpret_cast<uint2*>(shared + 2 * plane_bytes);
    auto* constants = reinterpret_cast<std::int32_t*>(shared + digit_bytes);
    const int count = table->count;
    if (thread < count) {
      const auto* coefficient = reinterpret_cast<const std::int32_t*>(table->residue_coefficient[thread]);
      std::int32_t* c = constants + thread * constant_words;
      const std::int32_t m = table->modulus[thread];
      const std::int32_t quotient = ((1 << 23) + (1 << 19) + 256 * m - 1) / (256 * m) * 256;
      c[0] = coefficient[0], c[1] = coefficient[1], c[2] = coefficient[2];
      c[3] = __float_as_int(static_cast<float>(quotient * m));
      c[4] = __float_as_int(1.0f / static_cast<float>(m));
      c[5] = __float_as_int(static_cast<float>(12582912 + quotient));
      c[6] = __float_as_int(static_cast<float>(-m));
    }

#pragma unroll
    for (int r = 0; r < quads_per_thread; ++r) {
      const QuadIndex at = quad_index(operand.unit_stride, thread, r);
      const std::int64_t v = tile.vector(at.row);
      if (v >= vectors.count) continue;
      const bool usable = operand.data.exponent[v] != flagged_vector;
      const std::int32_t a = usable ? operand.data.alpha[v] : 0;
      std::uint32_t word[Words][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const Digits<Words> digits = digits_of<Words>(usable ? bits[r][i] : Bits{0}, a, toward_zero);
#pragma unroll
        for (int w = 0; w < Words; ++w) word[w][i] = digits.word[w];
      }
      const int to = swizzled(at.row, at.quad);
      quads[to] = make_uint4(word[0][0], word[0][1], word[0][2], word[0][3]);
      if constexpr (Words >= 2)
        quads[tile_rows * quads_per_row + to] = make_uint4(word[1][0], word[1][1], word[1][2], word[1][3]);
      if constexpr (Words == 3)
        short_quads[to] = make_uint2(__byte_perm(word[2][0], word[2][1], 0x5410),
                                     __byte_perm(word[2][2], word[2][3], 0x5410));
    }
    team.team_barrier();

    const int row = thread >> 3, part = thread & 7;
    const std::int64_t v = tile.vector(row), l = tile.position(row) + 16 * part;
    if (v >= planes.padded || l >= planes.ld) return;
    std::int8_t* out = planes.data + v * planes.ld + l;
    if (v >= vectors.count) {
      for (int p = 0; p < count; ++p, out += planes.plane_stride)
        *reinterpret_cast<uint4*>(out) = make_uint4(0, 0, 0, 0);
      return;
    }
    std::uint32_t digit[Words][16];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int from = swizzled(row, 4 * part + i);
#pragma unroll
      for (int w = 0; w < whole_words; ++w) {
        const uint4 quad = quads[w * (tile_rows * quads_per_row) + from];
        digit[w][4 * i] = quad.x, digit[w][4 * i + 1] = quad.y;
        digit[w][4 * i + 2] = quad.z, digit[w][4 * i + 3] = quad.w;
      }
      if constexpr (Words == 3) {
        const uint2 quad = short_quads[from];
        digit[2][4 * i] = quad.x & 0xFFFFu, digit[2][4 * i + 1] = quad.x >> 16;
        digit[2][4 * i + 2] = quad.y & 0xFFFFu, digit[2][4 * i + 3] = quad.y >> 16;
      }
    }
    // Modulus 256: the low bytes themselves.
    *reinterpret_cast<uint4*>(out) =
        make_uint4(low_bytes(digit[0][0], digit[0][1], digit[0][2], digit[0][3]),
                   low_bytes(digit[0][4], digit[0][5], digit[0][6], digit[0][7]),
                   low_bytes(digit[0][8], digit[0][9], digit[0][10], digit[0][11]),
                   low_bytes(digit[0][12], digit[0][13], digit[0][14], digit[0][15]));
    for (int p = 1; p < count; ++p) {
      out += planes.plane_stride;
      const int4 c = *reinterpret_cast<const int4*>(constants + p * constant_words);
      const float4 d = *reinterpret_cast<const float4*>(constants + p * constant_words + 4);
      std::uint32_t packed[4];
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        std::uint32_t r[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          std::int32_t T = dot4(static_cast<std::int32_t>(digit[0][4 * q + i]), c.x, c.w);
          if constexpr (Words >= 2) T = dot4(static_cast<std::int32_t>(digit[1][4 * q + i]), c.y, T);
          if constexpr (Words == 3) T = dot4(static_cast<std::int32_t>(digit[2][4 * q + i]), c.z, T);
          r[i] = finish_in_float(T, d.x, d.y, d.z);
        }
        packed[q] = low_bytes(r[0], r[1], r[2], r[3]);
      }
      *reinterpret_cast<uint4*>(out) = make_uint4(packed[0], packed[1], packed[2], packed[3]);
    }
  }
};

/// The planes of sums from those of real and imaginary parts, 16 bytes per index.
struct AddResiduesKernel {
  ResiduePlanes planes;
  const ModuliTable* table;
  std::int64_t pieces;  // of one plane

  __device__ static std::uint32_t sums(std::uint32_t x, std::uint32_t y, std::int32_t m) {
    std::uint32_t r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      r[i] = static_cast<std::uint8_t>(
          residue_of_sum(static_cast<std::int8_t>(x >> (8 * i)), static_cast<std::int8_t>(y >> (8 * i)), m));
    return low_bytes(r[0], r[1], r[2], r[3]);
  }

  __device__ void operator()(std::int64_t index) const {
    const std::int64_t p = index / pieces;
    std::int8_t* re = planes.data + 3 * p * planes.plane_stride + 16 * (index % pieces);
    const std::int32_t m = table->modulus[p];
    const uint4 x = *reinterpret_cast<const uint4*>(re);
    const uint4 y = *reinterpret_cast<const uint4*>(re + planes.plane_stride);
    *reinterpret_cast<uint4*>(re + 2 * planes.plane_stride) =
        make_uint4(sums(x.x, y.x, m), sums(x.y, y.y, m), sums(x.z, y.z, m), sums(x.w, y.w, m));
  }
};

}  // namespace CudaStages

/// Two operands in one launch; the second may be empty.
/// \tparam Short  integers of 32 bits, for float; below it is a tag, for lookup where there is no CUDA
template <bool Short, class Real>
void launch_residues(const Kokkos::Cuda& exec, const CudaStages::TiledOperand<Real>& first,
                     const CudaStages::TiledOperand<Real>& second, const ModuliTable* table, int moduli_count,
                     bool toward_zero) {
  using namespace CudaStages;
  const auto launch = [&](auto words) {
    using Kernel = ResiduesKernel<Real, decltype(words)::value>;
    Kokkos::parallel_for(
        Labels::residues,
        typename Kernel::Policy(exec, first.grid.tiles() + second.grid.tiles(), tile_threads, 1)
            .set_scratch_size(0, Kokkos::PerTeam(int{Kernel::scratch_bytes})),
        Kernel{first, second, first.grid.tiles(), table, toward_zero});
  };
  if constexpr (Short) {
    launch(std::integral_constant<int, 1>{});
  } else {
    if (moduli_count <= 16)
      launch(std::integral_constant<int, 2>{});
    else
      launch(std::integral_constant<int, 3>{});
  }
}

/// Real operands.
template <bool Short, class Real>
void residues_cuda(std::bool_constant<Short>, const Kokkos::Cuda& exec, const ResidueOperandOf<Real>& first,
                   const ResidueOperandOf<Real>& second, const ModuliTable* table, int moduli_count,
                   bool toward_zero) {
  const auto tiled = [](const ResidueOperandOf<Real>& x) {
    return CudaStages::TiledOperand<Real>(x, x.vectors.position_stride == 1, false);
  };
  launch_residues<Short>(exec, tiled(first), tiled(second), table, moduli_count, toward_zero);
}

/// One complex operand: real and imaginary parts in one launch, then the sums of their residues.
template <bool Short, class Real>
void complex_residues_cuda(std::bool_constant<Short>, const Kokkos::Cuda& exec,
                           const ResidueOperandOf<Kokkos::complex<Real>>& operand, const ModuliTable* table,
                           int moduli_count, bool toward_zero) {
  const VectorSet<Kokkos::complex<Real>>& vectors = operand.vectors;
  const ResiduePlanes& planes = operand.planes;
  const auto part = [&](int which) {
    const ResiduePlanes of_part{planes.data + which * planes.plane_stride, 3 * planes.plane_stride, planes.ld,
                                planes.padded};
    return CudaStages::TiledOperand<Real>(
        {component(vectors, which), operand.exponent, operand.alpha, of_part}, vectors.position_stride == 1,
        which == 1 && vectors.conj);
  };
  launch_residues<Short>(exec, part(0), part(1), table, moduli_count, toward_zero);
  const std::int64_t pieces = planes.padded * planes.ld / 16;
  Kokkos::parallel_for(Labels::add_residues, Range<Kokkos::Cuda>(exec, 0, moduli_count * pieces),
                       CudaStages::AddResiduesKernel{planes, table, pieces});
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
