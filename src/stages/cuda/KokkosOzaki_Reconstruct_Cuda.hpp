// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_RECONSTRUCT_CUDA_HPP
#define KOKKOSOZAKI_RECONSTRUCT_CUDA_HPP

#include "../../impl/KokkosOzaki_Labels.hpp"
#include "../KokkosOzaki_Reconstruct.hpp"
#include "../KokkosOzaki_Reduce.hpp"
#include "KokkosOzaki_ResidueReducer_Cuda.hpp"

#if defined(KOKKOS_ENABLE_CUDA)

namespace KokkosOzaki::Impl::CudaStages {

/// Results beyond the normal range: subnormal, with one rounding, or 0 or Inf. Rare, and so out of the way of
/// the others.
template <class Real>
__device__ __noinline__ Real round_outside_normal(std::uint64_t lead, bool sticky,
                                                  typename FormatOf<Real>::Bits sign, int top) {
  using Format = FormatOf<Real>;
  using Bits = typename Format::Bits;
  constexpr int least = Format::min_exponent, fraction_bits = Format::fraction_bits;
  if (top > int{Format::max_exponent}) return real_of<Real>(sign | Bits{Format::infinity});
  if (top < least - fraction_bits - 1) return real_of<Real>(sign);
  const int drop = 63 - fraction_bits + (least - top);
  const std::uint64_t kept = drop < 64 ? lead >> drop : 0;
  const std::uint64_t tail = lead << (64 - drop);
  const bool up = tail > sign_bit || (tail == sign_bit && (sticky || (kept & 1) != 0));
  return real_of<Real>(sign | static_cast<Bits>(kept + (up ? 1 : 0)));
}

/// As round_to, for W words in registers.
template <class Real, int W>
__device__ inline Real round_words(std::uint32_t (&word)[W], std::int32_t exponent) {
  const bool negative = (word[W - 1] >> 31) != 0;
  std::uint64_t carry = negative ? 1 : 0;
#pragma unroll
  for (int j = 0; j < W; ++j) {
    carry += negative ? ~word[j] : word[j];
    word[j] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  // The three leading words and what follows; no word is addressed by a variable.
  std::uint32_t w0 = word[0], w1 = 0, w2 = 0, rest = 0;
  int top_word = 0;
#pragma unroll
  for (int j = 1; j < W; ++j)
    if (word[j] != 0) {
      w0 = word[j], w1 = word[j - 1], w2 = j >= 2 ? word[j >= 2 ? j - 2 : 0] : 0, rest = 0;
#pragma unroll
      for (int i = 0; i < j - 2; ++i) rest |= word[i];
      top_word = j;
    }
  if (w0 == 0) return Real{0};
  const int zeros = __clz(static_cast<int>(w0));
  const std::uint64_t lead =
      (static_cast<std::uint64_t>(__funnelshift_l(w1, w0, zeros)) << 32) | __funnelshift_l(w2, w1, zeros);
  const bool sticky = ((w2 << zeros) | rest) != 0;

  using Format = FormatOf<Real>;
  using Bits = typename Format::Bits;
  const Bits sign = negative ? Bits{Format::sign} : Bits{0};
  const int top = 32 * top_word + 31 - zeros + exponent;
  if (top <= int{Format::max_exponent} && top >= int{Format::min_exponent}) {
    const Bits field = static_cast<Bits>(top - int{Format::min_exponent}) << int{Format::fraction_bits};
    if constexpr (sizeof(Bits) == 8) {
      // The 11 bits below the last kept one, and the last kept one decides a tie.
      const auto low = static_cast<std::uint32_t>(lead);
      const std::uint32_t up =
          ((low & 0x7FFu) << 1 | (sticky ? 1u : 0u)) + ((low >> 11) & 1u) > 0x800u ? 1u : 0u;
      return real_of<Real>(sign | (field + (lead >> 11) + up));
    } else {
      // The 8 bits of the high word below the last kept one; all that follows is one bit more.
      const auto high = static_cast<std::uint32_t>(lead >> 32);
      const bool follows = sticky || static_cast<std::uint32_t>(lead) != 0;
      const std::uint32_t up =
          ((high & 0xFFu) << 1 | (follows ? 1u : 0u)) + ((high >> 8) & 1u) > 0x100u ? 1u : 0u;
      return real_of<Real>(sign | (field + (high >> 8) + up));
    }
  }
  return round_outside_normal<Real>(lead, sticky, sign, top);
}

constexpr int reconstruct_threads = 128;
// Groups of three moduli whose products are on their way to shared memory.
constexpr int groups_in_flight = 4;

/// \brief Reconstruction of four rows of one column per thread, from the residues Y, or from the products P
/// of all moduli: then the reduction is done on the way, P is read once and Y is not stored. Both equal
/// reduce and reconstruct. A thread's products travel through shared memory, several moduli ahead of their
/// use, and meet no other thread: what limits the kernel is then the memory and not the latency of one load.
/// Modulus 256 needs no branch: with inverse 2^24 the last step of the reducer is the sign extension of the
/// low byte.
/// \tparam W 32-bit words of X
/// \tparam FromProducts reads P and reduces; otherwise reads Y
template <class Real, int W, bool FromProducts>
struct ReconstructKernel {
  static constexpr int min_blocks = (FromProducts || W > 4) ? 6 : 8;
  using Policy = Kokkos::TeamPolicy<Kokkos::Cuda, Kokkos::IndexType<std::int64_t>,
                                    Kokkos::LaunchBounds<reconstruct_threads, min_blocks>>;

  const std::int32_t* P;  // of modulus 0; laid out as block.Y
  ReconstructBlock block;
  const ModuliTable* table;
  EpilogueOf<Real> epilogue;
  MatrixRef<Real> C;
  std::int64_t row_groups, groups;  // of four rows: in a column, in all
  int count;                        // moduli
  bool aligned;                     // rows of C are 16-byte words

  static constexpr int most_groups = ((4 * W < max_moduli ? 4 * W : max_moduli) + 2) / 3;  // with W words
  static constexpr int constant_bytes = static_cast<int>(sizeof(OutputConstants));
  static constexpr int scratch_bytes =
      constant_bytes + (FromProducts ? 3 * groups_in_flight * reconstruct_threads * 16 : 0) + 16;

  /// Starts the copies of group `group`; always one group of asynchronous copies, if need be an empty one.
  __device__ void start_group(int4* ring, const std::int32_t* products, int group) const {
    if (3 * group < count) {
#pragma unroll
      for (int i = 0; i < 3; ++i)
        start_copy<16>(
            ring + (group % groups_in_flight * 3 + i) * reconstruct_threads,
            reinterpret_cast<const int4*>(products + min(3 * group + i, count - 1) * block.stride_y));
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  __device__ void operator()(const typename Policy::member_type& team) const {
    auto* shared = reinterpret_cast<char*>(team.team_shmem().get_shmem_aligned(int{scratch_bytes} - 16, 16));
    const auto& constants = *reinterpret_cast<const OutputConstants*>(shared);
    int4* ring = reinterpret_cast<int4*>(shared + constant_bytes) + team.team_rank();
    const std::int64_t index =
        static_cast<std::int64_t>(team.league_rank()) * reconstruct_threads + team.team_rank();
    // A 64-bit division costs as much as an entry.
    const std::int64_t column_of_all =
        groups <= 0xFFFFFFFF ? static_cast<std::uint32_t>(index) / static_cast<std::uint32_t>(row_groups)
                             : index / row_groups;
    const std::int64_t i0 = 4 * (index - column_of_all * row_groups);
    const PlaceInBatch at(C, block, column_of_all);
    const std::int64_t offset = at.column * block.ld + i0;
    const bool inside = index < groups;
    if constexpr (FromProducts) {
      if (inside) {
#pragma unroll
        for (int g = 0; g < groups_in_flight; ++g) start_group(ring, P + offset, g);
      }
    }
    // The digits of P enter as the unsigned bytes of P + 0x80808080, each 128 too large: the start takes that
    // back.
    if (team.team_rank() < constant_bytes / 16)
      reinterpret_cast<int4*>(shared)[team.team_rank()] =
          __ldg(reinterpret_cast<const int4*>(&table->outputs) + team.team_rank());
    team.team_barrier();
    if (!inside || block.col_exponent[at.column] == flagged_vector) return;

    // All residues are on their way before the first is needed.
    [[maybe_unused]] std::uint32_t residue[FromProducts ? 1 : 3 * most_groups];
    if constexpr (!FromProducts) {
#pragma unroll
      for (int p = 0; p < 3 * most_groups; ++p)
        residue[p] =
            p < count ? __ldcs(reinterpret_cast<const std::uint32_t*>(block.Y + p * block.stride_y + offset))
                      : 0;
    }

    std::int64_t sum[4][W] = {};
    std::int32_t quotient[4] = {1 << 23, 1 << 23, 1 << 23, 1 << 23};
    const auto add_group = [&](int g) {
      if constexpr (FromProducts)
        asm volatile("cp.async.wait_group %0;" ::"n"(groups_in_flight - 1) : "memory");
      std::int32_t z[4] = {};
#pragma unroll
      for (int in_group = 0; in_group < 3; ++in_group) {
        const int2 weight = *reinterpret_cast<const int2*>(constants.weight[3 * g + in_group]);
        std::int32_t y[4];
        if constexpr (FromProducts) {
          const int4 word = ring[(g % groups_in_flight * 3 + in_group) * reconstruct_threads];
          const int4 c = *reinterpret_cast<const int4*>(constants.reducer[3 * g + in_group]);
          const std::int32_t product[4] = {word.x, word.y, word.z, word.w};
#pragma unroll
          for (int i = 0; i < 4; ++i)
            y[i] = finish(dot4_unsigned(static_cast<std::uint32_t>(product[i]) + 0x80808080u, c.x, c.w), c.y,
                          c.z);
        } else {
#pragma unroll
          for (int i = 0; i < 4; ++i)
            y[i] = static_cast<std::int32_t>(residue[3 * g + in_group] << (24 - 8 * i)) >> 24;
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          z[i] += y[i] * weight.x;
          quotient[i] += y[i] * weight.y;
        }
      }
      if constexpr (FromProducts) start_group(ring, P + offset, g + groups_in_flight);
#pragma unroll
      for (int w = 0; w < W; ++w) {
        const std::int32_t limb = constants.group_limb[g][w];
#pragma unroll
        for (int i = 0; i < 4; ++i) sum[i][w] += static_cast<std::int64_t>(z[i]) * limb;
      }
    };
    if constexpr (FromProducts) {
      for (int g = 0; 3 * g < count; ++g) add_group(g);
    } else {
#pragma unroll
      for (int g = 0; g < most_groups; ++g)
        if (3 * g < count) add_group(g);
    }

    const std::int32_t beta = block.col_alpha[at.column];
    const std::int32_t* const row_exponent = block.row_exponent + at.row;
    const std::int32_t* const row_alpha = block.row_alpha + at.row;
    Real t[4];
    bool written[4], all = true;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      written[i] = i0 + i < C.rows && row_exponent[i0 + i] != flagged_vector;
      all = all && written[i];
      const std::int32_t q = quotient[i] >> 24;
      std::uint32_t word[W];
      std::int64_t carry = 0;
#pragma unroll
      for (int w = 0; w < W; ++w) {
        carry += sum[i][w] - static_cast<std::int64_t>(q) * constants.product_limb[w];
        word[w] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
      t[i] = written[i] ? round_words<Real, W>(word, -(row_alpha[i0 + i] + beta)) : Real{0};
    }
    Real* c = C.entry(at.entry) + i0 * C.row_stride + at.j * C.col_stride;
    if (aligned && epilogue.beta == 0 && all &&
        (C.pointers == nullptr || reinterpret_cast<std::uintptr_t>(c) % 16 == 0)) {
#pragma unroll
      for (int i = 0; i < 4; ++i) apply_epilogue(t[i], epilogue, t[i]);
      if constexpr (sizeof(Real) == 8) {
        *reinterpret_cast<double2*>(c) = make_double2(t[0], t[1]);
        *reinterpret_cast<double2*>(c + 2) = make_double2(t[2], t[3]);
      } else {
        *reinterpret_cast<float4*>(c) = make_float4(t[0], t[1], t[2], t[3]);
      }
      return;
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (written[i]) apply_epilogue(t[i], epilogue, c[i * C.row_stride]);
  }
};

template <int W, bool FromProducts, class Real>
void launch_reconstruct(const std::string& label, const Kokkos::Cuda& exec, const std::int32_t* P,
                        const ReconstructBlock& block, const ModuliTable* table, int count,
                        const EpilogueOf<Real>& epilogue, const MatrixRef<Real>& C) {
  const std::int64_t row_groups = (C.rows + 3) / 4, groups = row_groups * C.cols * C.entries;
  constexpr auto word = static_cast<std::int64_t>(16 / sizeof(Real));
  // Where there are pointers: if they allow it.
  const bool aligned = C.row_stride == 1 && C.col_stride % word == 0 &&
                       (C.pointers != nullptr ||
                        (reinterpret_cast<std::uintptr_t>(C.data) % 16 == 0 && C.entry_stride % word == 0));
  const auto teams = static_cast<int>((groups + reconstruct_threads - 1) / reconstruct_threads);
  using Kernel = ReconstructKernel<Real, W, FromProducts>;
  Kokkos::parallel_for(label,
                       typename Kernel::Policy(exec, teams, reconstruct_threads, 1)
                           .set_scratch_size(0, Kokkos::PerTeam(int{Kernel::scratch_bytes})),
                       Kernel{P, block, table, epilogue, C, row_groups, groups, count, aligned});
}

template <bool FromProducts, class Real>
void reconstruct(const std::string& label, const Kokkos::Cuda& exec, const std::int32_t* P,
                 const ReconstructBlock& block, const ModuliTable* table, int count,
                 const EpilogueOf<Real>& epilogue, const MatrixRef<Real>& C) {
  switch (moduli_tables()[count - min_moduli].words) {
    case 1:
      return launch_reconstruct<1, FromProducts>(label, exec, P, block, table, count, epilogue, C);
    case 2:
      return launch_reconstruct<2, FromProducts>(label, exec, P, block, table, count, epilogue, C);
    case 3:
      return launch_reconstruct<3, FromProducts>(label, exec, P, block, table, count, epilogue, C);
    case 4:
      return launch_reconstruct<4, FromProducts>(label, exec, P, block, table, count, epilogue, C);
    default:
      return launch_reconstruct<5, FromProducts>(label, exec, P, block, table, count, epilogue, C);
  }
}

/// Four rows of one column of one plane per index.
struct ReduceKernel {
  ReducePlanes planes;
  const ModuliTable* table;
  std::int64_t row_groups;
  bool accumulate;

  __device__ void operator()(std::int64_t index) const {
    const std::int64_t i0 = 4 * (index % row_groups), rest = index / row_groups;
    const std::int64_t j = rest % planes.n, q = rest / planes.n;
    const int p = planes.first + static_cast<int>(q);
    const int4 c = __ldg(reinterpret_cast<const int4*>(table->outputs.reducer[p]));
    const int4 word =
        __ldcs(reinterpret_cast<const int4*>(planes.P + q * planes.stride_p + j * planes.ld + i0));
    auto* y = reinterpret_cast<std::uint32_t*>(planes.Y + p * planes.stride_y + j * planes.ld + i0);
    const std::int32_t product[4] = {word.x, word.y, word.z, word.w};
    const std::uint32_t before = accumulate ? *y : 0;
    std::uint32_t r[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const std::int32_t carry = static_cast<std::int8_t>(before >> (8 * i));
      r[i] = static_cast<std::uint32_t>(finish(
          dot4_unsigned(static_cast<std::uint32_t>(product[i]) + 0x80808080u, c.x, c.w + carry), c.y, c.z));
    }
    *y = low_bytes(r[0], r[1], r[2], r[3]);
  }
};

}  // namespace KokkosOzaki::Impl::CudaStages

namespace KokkosOzaki::Impl {

inline void reduce_cuda(const Kokkos::Cuda& exec, const ReducePlanes& planes, const ModuliTable* table,
                        bool accumulate) {
  const std::int64_t row_groups = (planes.m + 3) / 4;
  Kokkos::parallel_for(Labels::reduce, Range<Kokkos::Cuda>(exec, 0, row_groups * planes.n * planes.count),
                       CudaStages::ReduceKernel{planes, table, row_groups, accumulate});
}

/// \param count  number of moduli, as in the table
template <class Real>
void reconstruct_cuda(const Kokkos::Cuda& exec, const ReconstructBlock& block, const ModuliTable* table,
                      int count, const EpilogueOf<Real>& epilogue, const MatrixRef<Real>& C) {
  CudaStages::reconstruct<false>(Labels::reconstruct, exec, nullptr, block, table, count, epilogue, C);
}

/// \brief The stages reduce and reconstruct in one pass, for products of all moduli and a single block of k.
/// \param P  plane of modulus 0; entry (i, j) of plane p at p * block.stride_y + j * block.ld + i; block.Y is
/// not used
template <class Real>
void reduce_reconstruct(const Kokkos::Cuda& exec, const std::int32_t* P, const ReconstructBlock& block,
                        const ModuliTable* table, int count, const EpilogueOf<Real>& epilogue,
                        const MatrixRef<Real>& C) {
  ScopedRegion region(Labels::reconstruct);
  CudaStages::reconstruct<true>(Labels::reduce_reconstruct, exec, P, block, table, count, epilogue, C);
}

}  // namespace KokkosOzaki::Impl

#endif
#endif
