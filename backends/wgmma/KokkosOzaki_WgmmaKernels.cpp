// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// INT8 products by the warpgroup instructions of compute capability 9.0 (wgmma), with operands brought in by
// the bulk tensor copy engine. One persistent launch covers all planes. Written against the PTX ISA manual
// (wgmma, cp.async.bulk.tensor, mbarrier).
//
// A cluster of two blocks computes 256 x 256 entries of one product. A block has 128 columns of C (vectors of
// rB) and 256 rows (vectors of rA); the rows are the same in both, so each block fetches half of them for both.
// Vectors of rB are the rows of the instruction's result, so that a thread holds entries that are consecutive
// in a column of C. Two warpgroups multiply, 64 columns each; one thread of a third keeps four stages of
// 128 positions under way.
//
// Products of few vectors are cut along their positions instead, so that all processors read: a block
// computes its part of 128 x 128 entries of one product and adds it to what is in memory.
#include "KokkosOzaki_WgmmaKernels.hpp"

#include <cuda.h>

#include <algorithm>

namespace KokkosOzaki::Impl {

namespace {

constexpr int tile_cols = 128;        // columns of C of a block
constexpr int tile_rows = 256;        // rows of C of a cluster
constexpr int stage_positions = 128;  // bytes of a vector in one stage: the width of the 128-byte swizzle
constexpr int stages = 4;
constexpr int cluster_blocks = 2;
constexpr int cluster_cols = tile_cols * cluster_blocks;
constexpr int consumers = 2;  // warpgroups that multiply
constexpr int block_threads = 128 * (consumers + 1);
constexpr int cols_bytes = tile_cols * stage_positions, rows_bytes = tile_rows * stage_positions;
constexpr int stage_bytes = cols_bytes + rows_bytes;
constexpr int shared_bytes = stages * stage_bytes + 2 * stages * 8 + 1024;  // with room to align to 1024
constexpr int accumulators = 128;                                           // of a thread

constexpr int part_tile = 128;  // rows and columns of C of a block that has a part of the positions
constexpr int part_stages = 6;
// Of a stage as many vectors as there are. The instruction reads 128 and 64; what lies behind those does not
// matter.
constexpr int most_part_bytes = part_stages * 2 * part_tile * stage_positions;
constexpr int part_shared_bytes = most_part_bytes + 2 * part_stages * 8 + 1024;  // with room to align
constexpr int part_threads = 128 * consumers + 32;
constexpr int part_accumulators = 64;
constexpr int least_part_steps = 8;

/// How the clusters go through the tiles of all planes: columns of C in bands, so that what is at work at the
/// same time shares its operands in L2.
struct Tiles {
  static constexpr std::uint32_t band = 8;

  std::uint32_t row_tiles, col_tiles, planes;  // of one plane, in clusters

  __host__ __device__ std::uint32_t per_plane() const { return row_tiles * col_tiles; }
  __host__ __device__ std::uint32_t total() const { return per_plane() * planes; }

  __device__ void place(std::uint32_t index, int& plane, int& row, int& col) const {
    plane = static_cast<int>(index / per_plane());
    std::uint32_t rest = index % per_plane();
    const std::uint32_t first = rest / (band * row_tiles) * band;
    const std::uint32_t width = min(band, col_tiles - first);
    rest -= first * row_tiles;
    col = static_cast<int>(first + rest % width);
    row = static_cast<int>(rest / width);
  }
};

/// How the positions of all tiles of all planes are shared out, one part a block.
struct Parts {
  std::uint32_t row_tiles, col_tiles, planes;
  std::uint32_t parts;   // of the positions of a tile
  int row_box, col_box;  // vectors that are fetched

  __host__ __device__ int row_bytes() const { return row_box * stage_positions; }
  __host__ __device__ int stage_bytes() const { return (row_box + col_box) * stage_positions; }
};

enum class Output { products, residues };

/// Where a launch writes; entry (i, j) of plane p at p * stride + j * ld + i.
struct Target {
  void* data;  // int32 products, or int8 residues
  std::int64_t ld, stride;
  std::int64_t rows, cols;  // what may be written: padded, but for parts
  const ModuliTable* table;
  int first;  // modulus of plane 0
  int steps;  // stages of a tile
  int planes_per_modulus;
  const std::int32_t* skip;  // null, or what leaves products undone where it is not zero
};

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

__device__ inline void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

__device__ inline void barrier_wait(std::uint32_t barrier, int phase) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra ready;\n"
      "bra again;\n"
      "ready:\n"
      "}\n" ::"r"(barrier),
      "r"(phase)
      : "memory");
}

/// One arrival, and a promise of `bytes` by the copy engine.
__device__ inline void barrier_expect(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

__device__ inline void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// One arrival at the barrier in the same place of another block of the cluster. Nothing was written that the
/// other must see, so there is no release at cluster scope: it would be a memory fence of 1400 cycles in every
/// stage.
__device__ inline void barrier_arrive(std::uint32_t barrier, int block) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(block)
      : "memory");
}

__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// A box of the plane's vectors into the shared memory of this block.
__device__ inline void copy_box(std::uint32_t to, const CUtensorMap& map, std::uint32_t barrier, int position,
                                int vector, int plane) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], "
      "[%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(position), "r"(vector), "r"(plane)
      : "memory");
}

/// The same, into both blocks of the cluster.
__device__ inline void copy_box_to_cluster(std::uint32_t to, const CUtensorMap& map, std::uint32_t barrier,
                                           int position, int vector, int plane) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%3, %4, %5}], [%2], %6;" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(position), "r"(vector), "r"(plane),
      "h"(static_cast<unsigned short>((1 << cluster_blocks) - 1))
      : "memory");
}

/// Descriptor of vectors in shared memory, position the unit stride, 128-byte swizzle, groups of eight vectors
/// 1024 bytes apart.
__device__ inline std::uint64_t operand_descriptor(std::uint32_t address) {
  return (std::uint64_t{1} << 62) | (std::uint64_t{1024 >> 4} << 32) | (std::uint64_t{1} << 16) |
         ((address & 0x3FFFF) >> 4);
}

/// d (+)= 64 x 32 times 32 x 256 entries, by a warpgroup; asynchronous.
__device__ inline void multiply_step(std::int32_t (&d)[accumulators], std::uint64_t cols, std::uint64_t rows,
                                     int accumulate) {
#define KOKKOSOZAKI_ACC4(i) "+r"(d[i]), "+r"(d[i + 1]), "+r"(d[i + 2]), "+r"(d[i + 3])
#define KOKKOSOZAKI_ACC16(i) \
  KOKKOSOZAKI_ACC4(i), KOKKOSOZAKI_ACC4(i + 4), KOKKOSOZAKI_ACC4(i + 8), KOKKOSOZAKI_ACC4(i + 12)
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
      "%128, %129, add;\n"
      "}\n"
      : KOKKOSOZAKI_ACC16(0), KOKKOSOZAKI_ACC16(16), KOKKOSOZAKI_ACC16(32), KOKKOSOZAKI_ACC16(48),
        KOKKOSOZAKI_ACC16(64), KOKKOSOZAKI_ACC16(80), KOKKOSOZAKI_ACC16(96), KOKKOSOZAKI_ACC16(112)
      : "l"(cols), "l"(rows), "r"(accumulate));
}

/// The same, 64 x 32 times 32 x 128 entries.
__device__ inline void multiply_step(std::int32_t (&d)[part_accumulators], std::uint64_t cols,
                                     std::uint64_t rows, int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.s8 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, add;\n"
      "}\n"
      : KOKKOSOZAKI_ACC16(0), KOKKOSOZAKI_ACC16(16), KOKKOSOZAKI_ACC16(32), KOKKOSOZAKI_ACC16(48)
      : "l"(cols), "l"(rows), "r"(accumulate));
}
#undef KOKKOSOZAKI_ACC16
#undef KOKKOSOZAKI_ACC4

/// Keeps the compiler from moving uses of the accumulators across asynchronous products.
template <int Size>
__device__ inline void multiply_fence(std::int32_t (&d)[Size]) {
#pragma unroll
  for (int i = 0; i < Size; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

template <int Pending>
__device__ inline void multiply_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
}

/// Residue of one product in the low byte (spec: digits by an offset of 0x80 a byte, dot product, finish);
/// c = {coefficients, modulus, inverse, start}, as in OutputConstants.
__device__ inline std::uint32_t reduced(std::int32_t product, const int4& c, std::int32_t before) {
  std::int32_t T;
  asm("dp4a.u32.s32 %0, %1, %2, %3;"
      : "=r"(T)
      : "r"(static_cast<std::uint32_t>(product) + 0x80808080u), "r"(c.x), "r"(c.w + before));
  return static_cast<std::uint32_t>(__mulhi(
      static_cast<std::int32_t>(static_cast<std::uint32_t>(T) * static_cast<std::uint32_t>(c.z)), c.y));
}

/// \brief Residues of a warpgroup's 64 columns x 256 rows. A thread has two neighbouring rows of 32 groups of
/// eight in two columns; four lanes exchange theirs, so that each stores a whole group.
template <bool Accumulate>
__device__ inline void store_residues(const std::int32_t (&d)[accumulators], const Target& target, int plane,
                                      std::int64_t row, std::int64_t col, int lane) {
  const int4 c = __ldg(reinterpret_cast<const int4*>(
      target.table->outputs.reducer[target.first + plane / target.planes_per_modulus]));
  const int quarter = lane & 3;
  const bool high = (quarter & 2) != 0, odd = (quarter & 1) != 0;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t j = col + lane / 4 + 8 * half;
    auto* y = static_cast<std::int8_t*>(target.data) + plane * target.stride + j * target.ld + row;
    const bool inside = j < target.cols;
#pragma unroll
    for (int group = 0; group < accumulators / 4; group += 4) {
      std::uint32_t pair[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = 4 * (group + i) + 2 * half;
        std::int32_t before[2] = {0, 0};
        if constexpr (Accumulate) {
          if (inside && row + 8 * (group + i) < target.rows) {
            const char2 old = *reinterpret_cast<const char2*>(y + 8 * (group + i) + 2 * quarter);
            before[0] = old.x, before[1] = old.y;
          }
        }
        pair[i] = __byte_perm(reduced(d[at], c, before[0]), reduced(d[at + 1], c, before[1]), 0x0040);
      }
      const std::uint32_t low = __byte_perm(pair[0], pair[1], 0x5410),
                          top = __byte_perm(pair[2], pair[3], 0x5410);
      // After the first exchange: groups 0 and 1 in lanes 0 and 1, groups 2 and 3 in lanes 2 and 3, from this
      // lane and its partner; after the second, all of one group.
      const std::uint32_t other = __shfl_xor_sync(0xFFFFFFFFu, high ? low : top, 2);
      const std::uint32_t of_lower = high ? other : low, of_upper = high ? top : other;
      const std::uint32_t gone = __byte_perm(of_lower, of_upper, odd ? 0x5410 : 0x7632);
      const std::uint32_t kept = __byte_perm(of_lower, of_upper, odd ? 0x7632 : 0x5410);
      const std::uint32_t come = __shfl_xor_sync(0xFFFFFFFFu, gone, 1);
      const std::uint32_t even_lane = odd ? come : kept, odd_lane = odd ? kept : come;
      const uint2 word =
          make_uint2(__byte_perm(even_lane, odd_lane, 0x5410), __byte_perm(even_lane, odd_lane, 0x7632));
      const int first = 8 * (group + quarter);
      if (inside && row + first < target.rows) *reinterpret_cast<uint2*>(y + first) = word;
    }
  }
}

template <bool Accumulate>
__device__ inline void store_products(const std::int32_t (&d)[accumulators], const Target& target, int plane,
                                      std::int64_t row, std::int64_t col, int lane) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t j = col + lane / 4 + 8 * half;
    if (j >= target.cols) continue;
    auto* p = static_cast<std::int32_t*>(target.data) + plane * target.stride + j * target.ld + row +
              2 * (lane & 3);
#pragma unroll
    for (int group = 0; group < accumulators / 4; ++group)
      if (row + 8 * group < target.rows) {
        auto* to = reinterpret_cast<int2*>(p + 8 * group);
        int2 word = make_int2(d[4 * group + 2 * half], d[4 * group + 2 * half + 1]);
        if constexpr (Accumulate) word.x += to->x, word.y += to->y;
        *to = word;
      }
  }
}

#endif

template <Output Kind, bool Accumulate>
__global__ void __cluster_dims__(cluster_blocks, 1, 1) __launch_bounds__(block_threads, 1)
    multiply_kernel(const __grid_constant__ CUtensorMap rows_map,
                    const __grid_constant__ CUtensorMap cols_map, const __grid_constant__ Target target,
                    const __grid_constant__ Tiles tiles) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if (Kind == Output::products && target.skip != nullptr && *target.skip != 0) return;
  extern __shared__ char dynamic_shared[];
  const std::uint32_t shared = (shared_address(dynamic_shared) + 1023) / 1024 * 1024;
  const std::uint32_t full = shared + stages * stage_bytes, empty = full + stages * 8;
  const int warpgroup = threadIdx.x / 128;
  const int block = blockIdx.x % cluster_blocks;
  const std::uint32_t cluster = blockIdx.x / cluster_blocks, clusters = gridDim.x / cluster_blocks;
  if (threadIdx.x == 0) {
    for (int i = 0; i < stages; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, consumers * cluster_blocks);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_sync();

  int stage = 0, phase = 0;
  const auto advance = [&] {
    if (++stage == stages) stage = 0, phase ^= 1;
  };
  if (warpgroup == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) {
      for (std::uint32_t index = cluster; index < tiles.total(); index += clusters) {
        int plane, row, col;
        tiles.place(index, plane, row, col);
        const int first_row = row * tile_rows + block * (tile_rows / cluster_blocks);
        const int first_col = (col * cluster_blocks + block) * tile_cols;
        for (int step = 0; step < target.steps; ++step) {
          barrier_wait(empty + 8 * stage, phase ^ 1);
          const std::uint32_t cols = shared + stage * stage_bytes, barrier = full + 8 * stage;
          barrier_expect(barrier, stage_bytes);
          copy_box(cols, cols_map, barrier, step * stage_positions, first_col, plane);
          copy_box_to_cluster(cols + cols_bytes + block * (rows_bytes / cluster_blocks), rows_map, barrier,
                              step * stage_positions, first_row, plane);
          advance();
        }
      }
    }
    __syncwarp();
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    const bool signals = threadIdx.x % 128 < cluster_blocks;
    std::int32_t d[accumulators];
    for (std::uint32_t index = cluster; index < tiles.total(); index += clusters) {
      int plane, row, col;
      tiles.place(index, plane, row, col);
      int last = -1;  // stage whose products are still under way
      for (int step = 0; step < target.steps; ++step) {
        barrier_wait(full + 8 * stage, phase);
        const std::uint32_t cols = shared + stage * stage_bytes;
        const std::uint64_t cols_at = operand_descriptor(cols + (warpgroup - 1) * (cols_bytes / consumers));
        const std::uint64_t rows_at = operand_descriptor(cols + cols_bytes);
        multiply_fence(d);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int part = 0; part < stage_positions / 32; ++part)
          multiply_step(d, cols_at + 2 * part, rows_at + 2 * part, step > 0 || part > 0);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        multiply_wait<1>();
        if (last >= 0 && signals) barrier_arrive(empty + 8 * last, threadIdx.x % 128);
        last = stage;
        advance();
      }
      multiply_wait<0>();
      multiply_fence(d);
      if (signals) barrier_arrive(empty + 8 * last, threadIdx.x % 128);
      const std::int64_t first_row = std::int64_t{row} * tile_rows;
      const std::int64_t first_col =
          (std::int64_t{col} * cluster_blocks + block) * tile_cols + (warpgroup - 1) * 64 + warp * 16;
      if constexpr (Kind == Output::residues)
        store_residues<Accumulate>(d, target, plane, first_row, first_col, lane);
      else
        store_products<Accumulate>(d, target, plane, first_row, first_col, lane);
    }
  }
  cluster_sync();  // no block may leave while the other still writes to it
#endif
}

/// \brief Adds the products of a part of the positions to what is there. Two warpgroups multiply, 64 columns
/// each; one thread of another warp keeps the stages under way.
__global__ void __launch_bounds__(part_threads, 1)
    add_part_kernel(const __grid_constant__ CUtensorMap rows_map,
                    const __grid_constant__ CUtensorMap cols_map, const __grid_constant__ Target target,
                    const __grid_constant__ Parts parts) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ char dynamic_shared[];
  const std::uint32_t shared = (shared_address(dynamic_shared) + 1023) / 1024 * 1024;
  const std::uint32_t full = shared + most_part_bytes, empty = full + part_stages * 8;
  if (threadIdx.x == 0) {
    for (int i = 0; i < part_stages; ++i) {
      barrier_init(full + 8 * i, 1);
      barrier_init(empty + 8 * i, consumers);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();

  const std::uint32_t part = blockIdx.x % parts.parts, tile = blockIdx.x / parts.parts;
  const int first_row = static_cast<int>(tile % parts.row_tiles) * part_tile,
            first_col = static_cast<int>(tile / parts.row_tiles % parts.col_tiles) * part_tile,
            plane = static_cast<int>(tile / parts.row_tiles / parts.col_tiles);
  const auto begin_of = [&](std::uint32_t of_part) {
    return static_cast<int>(static_cast<std::int64_t>(target.steps) * of_part / parts.parts);
  };
  const int begin = begin_of(part), end = begin_of(part + 1);
  const int warpgroup = threadIdx.x / 128;
  int stage = 0, phase = 0;
  const auto advance = [&] {
    if (++stage == part_stages) stage = 0, phase ^= 1;
  };
  if (warpgroup == consumers) {
    if (threadIdx.x % 32 != 0) return;
    for (int step = begin; step < end; ++step) {
      barrier_wait(empty + 8 * stage, phase ^ 1);
      const std::uint32_t rows = shared + stage * parts.stage_bytes(), barrier = full + 8 * stage;
      barrier_expect(barrier, parts.stage_bytes());
      copy_box(rows, rows_map, barrier, step * stage_positions, first_row, plane);
      copy_box(rows + parts.row_bytes(), cols_map, barrier, step * stage_positions, first_col, plane);
      advance();
    }
    return;
  }
  std::int32_t d[part_accumulators];
  int last = -1;  // stage whose products are still under way
  for (int step = begin; step < end; ++step) {
    barrier_wait(full + 8 * stage, phase);
    const std::uint32_t rows = shared + stage * parts.stage_bytes();
    const std::uint64_t rows_at = operand_descriptor(rows);
    const std::uint64_t cols_at =
        operand_descriptor(rows + parts.row_bytes() + warpgroup * (part_tile / consumers * stage_positions));
    multiply_fence(d);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < stage_positions / 32; ++i)
      multiply_step(d, cols_at + 2 * i, rows_at + 2 * i, step > begin || i > 0);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    multiply_wait<1>();
    if (last >= 0 && threadIdx.x % 128 == 0) barrier_arrive(empty + 8 * last);
    last = stage;
    advance();
  }
  multiply_wait<0>();
  multiply_fence(d);
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const std::int64_t j = first_col + static_cast<int>(threadIdx.x / 32) * 16 + lane / 4 + 8 * half;
    if (j >= target.cols) continue;
    auto* p = static_cast<std::int32_t*>(target.data) + plane * target.stride + j * target.ld;
#pragma unroll
    for (int i = 0; i < part_accumulators / 2; ++i) {
      const std::int64_t row = first_row + i / 2 * 8 + 2 * (lane & 3) + i % 2;
      if (row < target.rows) atomicAdd(p + row, d[i / 2 * 4 + 2 * half + i % 2]);
    }
  }
#endif
}

/// The planes of one operand as a tensor {position, vector, plane}; what lies outside reads as zero.
const char* make_map(CUtensorMap& map, const std::int8_t* data, std::int64_t positions, std::int64_t vectors,
                     std::int64_t ld, std::int64_t stride, int planes, int box_vectors, int& status) {
  static const auto encode = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault,
                                         &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess)
      function = nullptr;
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
  }();
  if (encode == nullptr) {
    status = cudaErrorSymbolNotFound;
    return "cudaGetDriverEntryPointByVersion";
  }
  const cuuint64_t size[3] = {static_cast<cuuint64_t>(positions), static_cast<cuuint64_t>(vectors),
                              static_cast<cuuint64_t>(planes)};
  const cuuint64_t strides[2] = {static_cast<cuuint64_t>(ld), static_cast<cuuint64_t>(stride)};
  const cuuint32_t box[3] = {stage_positions, static_cast<cuuint32_t>(box_vectors), 1};
  const cuuint32_t step[3] = {1, 1, 1};
  status = encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT8, 3, const_cast<std::int8_t*>(data), size, strides, box,
                  step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return status == CUDA_SUCCESS ? nullptr : "cuTensorMapEncodeTiled";
}

constexpr std::int64_t padded(std::int64_t size, std::int64_t multiple) {
  return (size + multiple - 1) / multiple * multiple;
}

int processors_of(int device, int& status) {
  int processors = 0;
  status = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  return processors;
}

std::uint32_t tiles_of(std::int64_t size, int tile) {
  return static_cast<std::uint32_t>((size + tile - 1) / tile);
}

/// Parts of the positions of a tile for which all processors have work; 1: no gain.
Parts parts_of(const PlaneGeometry& g, int processors) {
  Parts parts{};
  parts.row_tiles = tiles_of(g.m, part_tile), parts.col_tiles = tiles_of(g.n, part_tile);
  parts.planes = static_cast<std::uint32_t>(g.count);
  const auto box = [](std::int64_t size) {
    return static_cast<int>(std::min<std::int64_t>(padded(size, 8), part_tile));
  };
  parts.row_box = box(g.m), parts.col_box = box(g.n);
  const auto tiles = static_cast<std::int64_t>(parts.row_tiles) * parts.col_tiles * parts.planes;
  const std::int64_t most = g.k / (least_part_steps * stage_positions);
  parts.parts = static_cast<std::uint32_t>(std::max<std::int64_t>(1, std::min(processors / tiles, most)));
  return parts;
}

template <Output Kind>
const char* launch(cudaStream_t stream, int device, const PlaneGeometry& g, const std::int8_t* rA,
                   const std::int8_t* rB, Target target, bool accumulate, int& status) {
  const std::int64_t k = padded(g.k, 64);
  target.rows = padded(g.m, 16), target.cols = padded(g.n, 16);
  target.ld = g.ldp, target.stride = g.stride_p;
  target.steps = static_cast<int>((k + stage_positions - 1) / stage_positions);
  CUtensorMap rows, cols;
  if (const char* failed =
          make_map(rows, rA, k, target.rows, g.lda, g.stride_a, g.count, tile_rows / cluster_blocks, status))
    return failed;
  if (const char* failed = make_map(cols, rB, k, target.cols, g.ldb, g.stride_b, g.count, tile_cols, status))
    return failed;
  const Tiles tiles{static_cast<std::uint32_t>((target.rows + tile_rows - 1) / tile_rows),
                    static_cast<std::uint32_t>((target.cols + cluster_cols - 1) / cluster_cols),
                    static_cast<std::uint32_t>(g.count)};
  const int processors = processors_of(device, status);
  if (status != cudaSuccess) return "cudaDeviceGetAttribute";
  const auto clusters = static_cast<std::uint32_t>(processors / cluster_blocks);
  const auto kernel = accumulate ? multiply_kernel<Kind, true> : multiply_kernel<Kind, false>;
  status = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
  if (status != cudaSuccess) return "cudaFuncSetAttribute";
  const unsigned blocks = cluster_blocks * std::min(tiles.total(), clusters);
  kernel<<<blocks, block_threads, shared_bytes, stream>>>(rows, cols, target, tiles);
  status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : "multiply_kernel";
}

}  // namespace

bool wgmma_usable(int device) {
  int major = 0, minor = 0;
  return cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess &&
         major == 9 && minor == 0;
}

bool wgmma_fits(const PlaneGeometry& g) {
  // In floating point: sizes that no memory could hold come here as well.
  const auto share = [](std::int64_t size, int tile) {
    return static_cast<double>(size) / static_cast<double>(padded(size, tile));
  };
  return share(g.m, tile_rows) * share(g.n, cluster_cols) > 0.25;
}

const char* wgmma_multiply(cudaStream_t stream, int device, const PlaneGeometry& geometry,
                           const std::int8_t* rA, const std::int8_t* rB, std::int32_t* P, bool accumulate,
                           const std::int32_t* skip, int& status) {
  Target target{};
  target.data = P, target.skip = skip;
  return launch<Output::products>(stream, device, geometry, rA, rB, target, accumulate, status);
}

bool wgmma_adds_parts(int device, const PlaneGeometry& geometry) {
  int status = 0;
  return parts_of(geometry, processors_of(device, status)).parts > 1;
}

const char* wgmma_multiply_parts(cudaStream_t stream, int device, const PlaneGeometry& g,
                                 const std::int8_t* rA, const std::int8_t* rB, std::int32_t* P,
                                 bool accumulate, int& status) {
  const int processors = processors_of(device, status);
  if (status != cudaSuccess) return "cudaDeviceGetAttribute";
  const Parts parts = parts_of(g, processors);
  Target target{};
  target.data = P, target.rows = g.m, target.cols = g.n, target.ld = g.ldp, target.stride = g.stride_p;
  target.steps = static_cast<int>((g.k + stage_positions - 1) / stage_positions);
  CUtensorMap rows, cols;
  // Vectors and positions that are not there read as zeros.
  if (const char* failed = make_map(rows, rA, g.k, g.m, g.lda, g.stride_a, g.count, parts.row_box, status))
    return failed;
  if (const char* failed = make_map(cols, rB, g.k, g.n, g.ldb, g.stride_b, g.count, parts.col_box, status))
    return failed;
  if (!accumulate) {
    const auto bytes = [](std::int64_t entries) {
      return static_cast<std::size_t>(entries) * sizeof(std::int32_t);
    };
    const std::int64_t padded_rows = padded(g.m, 16), padded_cols = padded(g.n, 16);
    const bool without_gaps = g.ldp == padded_rows && g.stride_p == g.ldp * padded_cols;
    if (without_gaps) status = cudaMemsetAsync(P, 0, bytes(g.stride_p * g.count), stream);
    for (int p = 0; p < g.count && !without_gaps && status == cudaSuccess; ++p)
      status = cudaMemset2DAsync(P + p * g.stride_p, bytes(g.ldp), 0, bytes(padded_rows),
                                 static_cast<std::size_t>(padded_cols), stream);
    if (status != cudaSuccess) return "cudaMemsetAsync";
  }
  status =
      cudaFuncSetAttribute(add_part_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, part_shared_bytes);
  if (status != cudaSuccess) return "cudaFuncSetAttribute";
  const unsigned blocks = parts.row_tiles * parts.col_tiles * parts.planes * parts.parts;
  add_part_kernel<<<blocks, part_threads, part_shared_bytes, stream>>>(rows, cols, target, parts);
  status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : "add_part_kernel";
}

const char* wgmma_multiply_reduce(cudaStream_t stream, int device, const PlaneGeometry& geometry,
                                  const std::int8_t* rA, const std::int8_t* rB, const ModuliTable* table,
                                  int first, std::int8_t* Y, bool accumulate, int& status) {
  Target target{};
  target.data = Y, target.table = table, target.first = first;
  target.planes_per_modulus = geometry.planes_per_modulus;
  return launch<Output::residues>(stream, device, geometry, rA, rB, target, accumulate, status);
}

}  // namespace KokkosOzaki::Impl
