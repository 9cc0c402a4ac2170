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
  bool unit_stride;  // of the positions
  bool negated;      // the entries are the negatives of what is in memory

  TiledOperand(const ResidueOperandOf<Real>& operand, bool along_positions, bool is_negated)
      : data(operand),
        grid(operand.planes.padded, operand.planes.ld),
        aligned(words_are_aligned(operand.vectors, along_positions)),
        unit_stride(along_positions),
        negated(is_negated) {}
};

/// \brief Residues of two sets of vectors, one tile per team, four rows a warp.
///
/// Entries are converted to digits once, four consecutive positions of each row a lane. The matrix units
/// multiply the digits of a row with the coefficients of four moduli at a time, after which each of these
/// moduli has one lane in four, with 16 consecutive positions: one 16-byte store a row.
/// \tparam Words 32-bit words of digits: 1 for products of floats and s <= 7, 2 for s <= 16, 3 above
template <class Real, int Words, int MinBlocks = (Words == 3 ? 2 : 3)>
struct ResiduesKernel {
  using Policy = TilePolicy<MinBlocks>;

  TiledOperand<Real> first, second;
  int first_tiles;
  const ModuliTable* table;
  bool toward_zero;

  /// Where the rows of a warp go; waits in shared memory, for want of registers.
  struct Place {
    std::int64_t offset;           // of the first row, in a plane
    std::int32_t rows, positions;  // what of it lies in the plane
  };

  static constexpr int group = 4;  // moduli at a time
  static constexpr int digit_count = Words == 1 ? 4 : Words == 2 ? 8 : 10;
  // Coefficients (3), unused; inverse, minus modulus, unused (2); four times the start: copies in registers
  // would cost as much as the sums themselves.
  static constexpr int constant_words = 12;
  static constexpr int entry_bytes = tile_rows * chunk_length * static_cast<int>(sizeof(Real));
  static constexpr int constant_bytes = max_moduli * constant_words * 4;
  static constexpr int place_bytes = tile_rows / quads_per_thread * static_cast<int>(sizeof(Place));
  static constexpr int scratch_bytes = entry_bytes + constant_bytes + 2 * tile_rows * 4 + place_bytes + 16;

  using Bits = typename FormatOf<Real>::Bits;
  // As the matrix units take them: [first and second two of four entries][word][entry].
  using QuadDigits = std::uint32_t[2][Words][2];

  __device__ void store_constants(int p, std::int32_t* c) const {
    const auto* coefficient = reinterpret_cast<const std::int32_t*>(table->residue_coefficient[p]);
    const std::int32_t m = table->modulus[p];
    const std::int32_t start = ((1 << 23) + (1 << 19) + 256 * m - 1) / (256 * m) * (256 * m);
    c[0] = coefficient[0], c[1] = coefficient[1], c[2] = coefficient[2];
    c[4] = __float_as_int(1.0f / static_cast<float>(m));
    c[5] = -m;
    // Less what the offsets of the digits add.
    std::int32_t sum = __float_as_int(static_cast<float>(start));
    for (int i = 0; i < digit_count; ++i) sum -= 128 * table->residue_coefficient[p][i];
    for (int i = 8; i < 12; ++i) c[i] = sum;
  }

  template <bool Subnormals>
  __device__ void convert(const Bits (&bits)[4], std::int32_t alpha, bool negated, QuadDigits& digit) const {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      Digits<Words> digits;
      if constexpr (Words == 1)
        digits = short_digits_of<Subnormals>(bits[i], alpha, toward_zero, negated);
      else
        digits = digits_of<Words, Subnormals>(bits[i], alpha, toward_zero, negated);
#pragma unroll
      for (int w = 0; w < Words; ++w) digit[i / 2][w][i % 2] = digits.word[w];
    }
  }

  /// Without a branch that all of the arithmetic before would go into.
  __device__ static void store_if(bool condition, uint4* to, const uint4& x) {
    asm volatile("{.reg .pred p; setp.ne.s32 p, %0, 0; @p st.global.v4.b32 [%1], {%2, %3, %4, %5};}" ::"r"(
                     static_cast<int>(condition)),
                 "l"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
  }

  /// Residues of the lane's own four entries.
  __device__ static std::uint32_t own_residues(const QuadDigits& digit, const int4& coefficient,
                                               const int2& c, std::int32_t start) {
    std::uint32_t r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const auto word = [&](int w) { return digit[i / 2][w][i % 2]; };
      std::int32_t F = dot4_unsigned(word(0), coefficient.x, start);
      if constexpr (Words >= 2) F = dot4_unsigned(word(1), coefficient.y, F);
      if constexpr (Words == 3) F = dot4_unsigned(word(2), coefficient.z, F);
      r[i] = finish_in_float(F, __int_as_float(c.x), c.y);
    }
    return low_bytes(r[0], r[1], r[2], r[3]);
  }

  /// Residues of the entries of four lanes, for the lane's modulus of the group.
  /// \param column  coefficients as digit_products takes them, for the entries of the first two and the last
  ///   two lanes
  __device__ static uint4 group_residues(const QuadDigits& digit, const std::uint32_t (&column)[2][Words],
                                         const int2& c, const int4& start) {
    std::uint32_t packed[4];
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      std::int32_t F[2][4];
      digit_products<Words>(start, digit[0], column[pair], F[0]);
      digit_products<Words>(start, digit[1], column[pair], F[1]);
#pragma unroll
      for (int i = 0; i < 2; ++i)
        packed[2 * pair + i] = low_bytes(finish_in_float(F[0][i], __int_as_float(c.x), c.y),
                                         finish_in_float(F[0][2 + i], __int_as_float(c.x), c.y),
                                         finish_in_float(F[1][i], __int_as_float(c.x), c.y),
                                         finish_in_float(F[1][2 + i], __int_as_float(c.x), c.y));
    }
    return make_uint4(packed[0], packed[1], packed[2], packed[3]);
  }

  __device__ static Place place_of(const ResiduePlanes& planes, const Tile& tile, int row) {
    const std::int64_t v = tile.vector(row), l = tile.position(row), rows = planes.padded - v,
                       positions = planes.ld - l;
    return {v * planes.ld + l, static_cast<std::int32_t>(rows < quads_per_thread ? rows : quads_per_thread),
            static_cast<std::int32_t>(positions < chunk_length ? positions : chunk_length)};
  }

  __device__ void operator()(const typename Policy::member_type& team) const {
    const int thread = team.team_rank();
    auto* shared = reinterpret_cast<char*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes} - 16, 16));
    auto* entries = reinterpret_cast<Real*>(shared);
    auto* constants = reinterpret_cast<std::int32_t*>(shared + entry_bytes);
    auto* exponents = constants + constant_bytes / 4;  // and alpha, of the rows
    auto* places = reinterpret_cast<Place*>(exponents + 2 * tile_rows);
    {
      const bool of_first = team.league_rank() < first_tiles;
      const TiledOperand<Real> operand = of_first ? this->first : second;
      const Tile tile = operand.grid.place(team.league_rank() - (of_first ? 0 : first_tiles));
      if (thread < 2 * tile_rows) {
        const std::int32_t* from = thread < tile_rows ? operand.data.exponent : operand.data.alpha;
        const std::int64_t v = tile.vector(thread % tile_rows);
        if (v < operand.data.vectors.count)
          start_copy<4>(exponents + thread, from + v);
        else
          exponents[thread] = flagged_vector;
      }
      if (thread < tile_threads / 32)
        places[thread] = place_of(operand.data.planes, tile, thread * quads_per_thread);
      start_copy_of_tile(operand.data.vectors, operand.aligned, operand.unit_stride, tile, thread, entries);
    }
    const int count = table->count;
    if (thread < count) store_constants(thread, constants + thread * constant_words);
    wait_for_copies();
    team.team_barrier();

    const int warp = thread / 32, row = warp * quads_per_thread;
    if (places[warp].rows <= 0 || places[warp].positions <= 0) return;
    const bool of_first = team.league_rank() < first_tiles;
    const bool unit_stride = of_first ? this->first.unit_stride : second.unit_stride,
               negated = of_first ? this->first.negated : second.negated;
    QuadDigits digit[quads_per_thread];
#pragma unroll
    for (int r = 0; r < quads_per_thread; r += in_word<Real>) {
      Bits bits[in_word<Real>][4];
      read_quads(entries, unit_stride, row + r, thread & 31, bits);
#pragma unroll
      for (int i = 0; i < in_word<Real>; ++i) {
        const std::int32_t a =
            exponents[row + r + i] != flagged_vector ? exponents[tile_rows + row + r + i] : vanishing_alpha;
        if (a < least_alpha_of_subnormals<Real>)
          convert<false>(bits[i], a, negated, digit[r + i]);
        else
          convert<true>(bits[i], a, negated, digit[r + i]);
      }
    }
    store_residues(of_first ? this->first.data.planes : second.data.planes, places[warp], thread & 31, digit,
                   count, constants);
  }

  /// Of the rows of the warp.
  __device__ void store_residues(const ResiduePlanes& planes, const Place& place, int lane,
                                 const QuadDigits (&digit)[quads_per_thread], int count,
                                 const std::int32_t* constants) const {
    const int places = 4 * lane < place.positions ? place.rows : 0;  // for what the lane has
    const std::int64_t step = planes.ld;
    std::int8_t* const own = planes.data + place.offset + 4 * lane;

    // Moduli that do not fill a group; 256 is the first, the low bytes themselves.
    const int rest = count % group;
    if (rest > 0) {
      std::int8_t* out = own;
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r, out += step) {
        const QuadDigits& d = digit[r];
        if (r < places)
          *reinterpret_cast<std::uint32_t*>(out) =
              low_bytes(d[0][0][0], d[0][0][1], d[1][0][0], d[1][0][1]) ^ digit_offset;
      }
    }
#pragma unroll 1
    for (int p = 1; p < rest; ++p) {
      const int4 coefficient = *reinterpret_cast<const int4*>(constants + p * constant_words);
      const int2 c = *reinterpret_cast<const int2*>(constants + p * constant_words + 4);
      const std::int32_t start = constants[p * constant_words + 8];
      std::int8_t* out = own + p * planes.plane_stride;
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r, out += step) {
        const std::uint32_t residues = own_residues(digit[r], coefficient, c, start);
        if (r < places) *reinterpret_cast<std::uint32_t*>(out) = residues;
      }
    }
    // The lane finishes this modulus of a group; in the products it hands over coefficients of this entry.
    const int modulus = lane & 3, entry = modulus;
#pragma unroll 1
    for (int p = rest; p < count; p += group) {
      const int4 coefficient = *reinterpret_cast<const int4*>(constants + (p + (lane >> 3)) * constant_words);
      const std::int32_t* of_modulus = constants + (p + modulus) * constant_words;
      const int2 c = *reinterpret_cast<const int2*>(of_modulus + 4);
      const int4 start = *reinterpret_cast<const int4*>(of_modulus + 8);
      // Column 2 t + i holds the coefficients of modulus t for entry i, or 2 + i, and zeros for the others.
      std::uint32_t column[2][Words];
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        const bool own_column = entry == 2 * pair + ((lane >> 2) & 1);
        column[pair][0] = own_column ? static_cast<std::uint32_t>(coefficient.x) : 0u;
        if constexpr (Words >= 2)
          column[pair][1] = own_column ? static_cast<std::uint32_t>(coefficient.y) : 0u;
        if constexpr (Words == 3)
          column[pair][2] = own_column ? static_cast<std::uint32_t>(coefficient.z) : 0u;
      }
      std::int8_t* out = own + (p + modulus) * planes.plane_stride - 4 * modulus;
#pragma unroll
      for (int r = 0; r < quads_per_thread; ++r, out += step) {
        const uint4 residues = group_residues(digit[r], column, c, start);
        store_if(r < places, reinterpret_cast<uint4*>(out), residues);
      }
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
