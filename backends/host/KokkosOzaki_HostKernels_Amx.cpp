// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_HostKernels.hpp"
#include "KokkosOzaki_HostPack_Avx512.hpp"

#include <immintrin.h>

namespace KokkosOzaki::Impl {
namespace {

constexpr std::int64_t max_rows = 128, max_depth = 1024, strip_cols = 32;

struct alignas(64) TileConfiguration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfiguration) == 64);

// A constant object: gcc declares only the first 8 bytes as read by ldtilecfg, so stores to a local one may
// vanish.
constexpr TileConfiguration configuration;

// gcc's tile loads do not name the memory that they read.
inline void compiler_barrier() {
  __asm__ volatile("" ::: "memory");
}

// Tiles: 0..3 products (column half, row half), 4 and 5 columns of b, 6 and 7 packed rows of a.
template <int RowTiles, int ColTiles>
void multiply_block(const std::uint8_t* a, std::int64_t panel_bytes, const std::int8_t* b, std::int64_t ldb,
                    std::int64_t depth, std::int32_t* p, std::int64_t ldp, bool add) {
  const auto p_stride = static_cast<std::size_t>(ldp) * sizeof(std::int32_t);
  const auto b_stride = static_cast<std::size_t>(ldb);
  std::int32_t* const p1 = p + 16 * ldp;
  const std::int8_t* const b1 = b + 16 * ldb;
  compiler_barrier();
  if (add) {
    _tile_loadd(0, p, p_stride);
    if constexpr (RowTiles == 2) _tile_loadd(1, p + 16, p_stride);
    if constexpr (ColTiles == 2) _tile_loadd(2, p1, p_stride);
    if constexpr (RowTiles == 2 && ColTiles == 2) _tile_loadd(3, p1 + 16, p_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (std::int64_t l = 0; l < depth; l += 64) {
    _tile_loadd(6, a + 16 * l, 64);
    _tile_loadd(4, b + l, b_stride);
    _tile_dpbssd(0, 4, 6);
    if constexpr (RowTiles == 2) {
      _tile_loadd(7, a + panel_bytes + 16 * l, 64);
      _tile_dpbssd(1, 4, 7);
    }
    if constexpr (ColTiles == 2) {
      _tile_loadd(5, b1 + l, b_stride);
      _tile_dpbssd(2, 5, 6);
    }
    if constexpr (RowTiles == 2 && ColTiles == 2) _tile_dpbssd(3, 5, 7);
  }
  _tile_stored(0, p, p_stride);
  if constexpr (RowTiles == 2) _tile_stored(1, p + 16, p_stride);
  if constexpr (ColTiles == 2) _tile_stored(2, p1, p_stride);
  if constexpr (RowTiles == 2 && ColTiles == 2) _tile_stored(3, p1 + 16, p_stride);
}

template <int ColTiles>
void multiply_strip(const std::uint8_t* a, std::int64_t rows, const std::int8_t* b, std::int64_t ldb,
                    std::int64_t depth, std::int32_t* p, std::int64_t ldp, bool add) {
  const std::int64_t panel_bytes = 16 * depth;
  std::int64_t i = 0;
  for (; i + 32 <= rows; i += 32)
    multiply_block<2, ColTiles>(a + i * depth, panel_bytes, b, ldb, depth, p + i, ldp, add);
  if (i < rows) multiply_block<1, ColTiles>(a + i * depth, panel_bytes, b, ldb, depth, p + i, ldp, add);
}

}  // namespace

void multiply_tile_amx(const HostTile& t) {
  alignas(64) std::uint8_t packed[max_rows * max_depth];
  _tile_loadconfig(&configuration);
  std::int64_t k0 = 0;
  do {
    const std::int64_t depth = t.depth - k0 < max_depth ? t.depth - k0 : max_depth;
    const bool add = t.accumulate || k0 > 0;
    for (std::int64_t i = 0; i < t.rows; i += 16)
      pack_16_rows(t.a + i * t.lda + k0, t.lda, depth, 0, packed + i * depth);
    for (std::int64_t j = 0; j < t.cols; j += strip_cols) {
      const std::int8_t* const b = t.b + j * t.ldb + k0;
      std::int32_t* const p = t.p + j * t.ldp;
      if (t.cols - j > 16)
        multiply_strip<2>(packed, t.rows, b, t.ldb, depth, p, t.ldp, add);
      else
        multiply_strip<1>(packed, t.rows, b, t.ldb, depth, p, t.ldp, add);
    }
    k0 += max_depth;
  } while (k0 < t.depth);
  _tile_release();
}

}  // namespace KokkosOzaki::Impl
