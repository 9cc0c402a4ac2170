// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_INT8GEMM_HOST_HPP
#define KOKKOSOZAKI_INT8GEMM_HOST_HPP

#include "../../src/impl/KokkosOzaki_Labels.hpp"
#include "../KokkosOzaki_Int8Gemm.hpp"
#include "KokkosOzaki_HostKernels.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace KokkosOzaki::Impl {

/// How the planes of a product are cut into tiles; tile numbers run over rows, then columns, then planes.
struct HostTiling {
  std::int64_t tile_rows, tile_cols;    // multiples of 16
  std::int64_t row_panels, col_panels;  // tiles of one plane
  std::int64_t padded_rows, padded_depth;

  /// Tiles of the kernels' own shape, evened out, and smaller where that leaves some of the threads without
  /// work.
  HostTiling(const PlaneGeometry& g, const HostKernelSet& kernels, std::int64_t threads)
      : padded_rows(round_up(g.m, 16)), padded_depth(round_up(g.k, 64)) {
    constexpr std::int64_t tiles_per_thread = 4;
    constexpr std::int64_t worthwhile_products = std::int64_t{1} << 19;
    set_tile(g.n, kernels.tile_rows, kernels.tile_cols);
    while (row_panels * col_panels * g.count < tiles_per_thread * threads &&
           tile_rows * tile_cols * padded_depth > worthwhile_products &&
           std::max(tile_rows, tile_cols) > 16) {
      if (tile_cols >= tile_rows)
        set_tile(g.n, tile_rows, round_up(tile_cols / 2, 16));
      else
        set_tile(g.n, round_up(tile_rows / 2, 16), tile_cols);
    }
  }

  std::int64_t tiles_per_plane() const { return row_panels * col_panels; }

 private:
  static std::int64_t divide_up(std::int64_t x, std::int64_t y) { return (x + y - 1) / y; }
  static std::int64_t round_up(std::int64_t x, std::int64_t multiple) {
    return divide_up(x, multiple) * multiple;
  }

  void set_tile(std::int64_t n, std::int64_t most_rows, std::int64_t most_cols) {
    const std::int64_t padded_cols = round_up(n, 16);
    tile_rows = round_up(divide_up(padded_rows, divide_up(padded_rows, most_rows)), 16);
    tile_cols = round_up(divide_up(padded_cols, divide_up(padded_cols, most_cols)), 16);
    row_panels = divide_up(padded_rows, tile_rows);
    col_panels = divide_up(padded_cols, tile_cols);
  }
};

/// Multiplies one tile of one plane per call.
struct HostTileFunctor {
  PlaneGeometry geometry;
  HostTiling tiling;
  const std::int8_t* rA;
  const std::int8_t* rB;
  std::int32_t* P;
  bool accumulate;
  void (*multiply_tile)(const HostTile&);

  void operator()(std::int64_t number) const {
    const PlaneGeometry& g = geometry;
    const std::int64_t p = number / tiling.tiles_per_plane();
    const std::int64_t in_plane = number % tiling.tiles_per_plane();
    const std::int64_t i = (in_plane % tiling.row_panels) * tiling.tile_rows;
    const std::int64_t j = (in_plane / tiling.row_panels) * tiling.tile_cols;
    HostTile tile;
    tile.a = rA + p * g.stride_a + i * g.lda;
    tile.b = rB + p * g.stride_b + j * g.ldb;
    tile.p = P + p * g.stride_p + j * g.ldp + i;
    tile.lda = g.lda;
    tile.ldb = g.ldb;
    tile.ldp = g.ldp;
    tile.rows = std::min(tiling.tile_rows, tiling.padded_rows - i);
    tile.cols = std::min(tiling.tile_cols, g.n - j);
    tile.depth = tiling.padded_depth;
    tile.accumulate = accumulate;
    multiply_tile(tile);
  }
};

/// \brief Byte dot products in the CPU's own instructions, for host execution spaces; which ones is found at
/// run time.
///
/// Needs no workspace: each thread packs into at most 132 KiB of its stack.
template <class ExecutionSpace>
class HostInt8Gemm final : public Int8Gemm<ExecutionSpace> {
 public:
  /// \param kernel_set  one of kernel_sets(), or null for the first of them
  /// \throws std::invalid_argument  no such set is built, or this CPU cannot run it
  explicit HostInt8Gemm(const char* kernel_set = nullptr) : m_kernels(find_host_kernel_set(kernel_set)) {
    if (m_kernels == nullptr)
      throw std::invalid_argument("KokkosOzaki::HostInt8Gemm: kernel set " + std::string(kernel_set) +
                                  " is not built or this CPU cannot run it.");
  }

  /// Names of the kernel sets that are built and that this CPU can run, fastest first.
  static std::vector<std::string> kernel_sets() {
    std::vector<std::string> names;
    for (int index = 0; index < host_kernel_set_count(); ++index)
      names.emplace_back(host_kernel_set(index).name);
    return names;
  }

  const char* name() const override { return m_kernels->name; }

  void run(const ExecutionSpace& exec, const PlaneGeometry& geometry, const std::int8_t* rA,
           const std::int8_t* rB, std::int32_t* P, bool accumulate, void*) override {
    if (geometry.m <= 0 || geometry.n <= 0 || geometry.count <= 0) return;
    const HostTiling tiling(geometry, *m_kernels, static_cast<std::int64_t>(exec.concurrency()));
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>,
                                       Kokkos::Schedule<Kokkos::Dynamic>>;
    Kokkos::parallel_for(Labels::multiply_host, Policy(exec, 0, tiling.tiles_per_plane() * geometry.count),
                         HostTileFunctor{geometry, tiling, rA, rB, P, accumulate, m_kernels->multiply_tile});
  }

 private:
  const HostKernelSet* m_kernels;
};

}  // namespace KokkosOzaki::Impl

#endif
