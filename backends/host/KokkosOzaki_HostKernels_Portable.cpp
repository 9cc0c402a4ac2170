// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_HostKernels.hpp"

namespace KokkosOzaki::Impl {
namespace {

constexpr std::int64_t max_rows = 64, max_depth = 512, block_rows = 4, strip_cols = 2;

// Compilers know the 16-bit dot product as one instruction of most vector instruction sets, the 8-bit one of
// few.
void widen(const std::int8_t* vectors, std::int64_t ld, std::int64_t count, std::int64_t depth,
           std::int16_t* widened) {
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t l = 0; l < depth; ++l) widened[i * max_depth + l] = vectors[i * ld + l];
}

// 4 x 2 dot products in named scalars: each becomes one vector accumulator. The constant length of the inner
// loop is what lets compilers vectorise it at -O2 as well.
void multiply_block(const std::int16_t* a, const std::int16_t* b, std::int64_t depth, std::int32_t* p,
                    std::int64_t ldp, bool add) {
  std::int32_t s00 = 0, s10 = 0, s20 = 0, s30 = 0, s01 = 0, s11 = 0, s21 = 0, s31 = 0;
  for (std::int64_t l0 = 0; l0 < depth; l0 += 64) {
    const std::int16_t *const a0 = a + l0, *const a1 = a0 + max_depth, *const a2 = a1 + max_depth,
                              *const a3 = a2 + max_depth;
    const std::int16_t *const b0 = b + l0, *const b1 = b0 + max_depth;
    for (int l = 0; l < 64; ++l) {
      s00 += a0[l] * b0[l];
      s10 += a1[l] * b0[l];
      s20 += a2[l] * b0[l];
      s30 += a3[l] * b0[l];
      s01 += a0[l] * b1[l];
      s11 += a1[l] * b1[l];
      s21 += a2[l] * b1[l];
      s31 += a3[l] * b1[l];
    }
  }
  const std::int32_t sums[strip_cols][block_rows] = {{s00, s10, s20, s30}, {s01, s11, s21, s31}};
  for (int j = 0; j < strip_cols; ++j)
    for (int i = 0; i < block_rows; ++i) {
      std::int32_t& out = p[j * ldp + i];
      // Unsigned, because P plus the first blocks of k may leave the range that P plus all of them comes back
      // to.
      const auto before = static_cast<std::uint32_t>(add ? out : 0);
      out = static_cast<std::int32_t>(before + static_cast<std::uint32_t>(sums[j][i]));
    }
}

}  // namespace

void multiply_tile_portable(const HostTile& t) {
  alignas(64) std::int16_t rows[max_rows * max_depth];
  alignas(64) std::int16_t strip[strip_cols * max_depth];
  std::int64_t k0 = 0;
  do {
    const std::int64_t depth = t.depth - k0 < max_depth ? t.depth - k0 : max_depth;
    const bool add = t.accumulate || k0 > 0;
    widen(t.a + k0, t.lda, t.rows, depth, rows);
    for (std::int64_t j = 0; j < t.cols; j += strip_cols) {
      widen(t.b + j * t.ldb + k0, t.ldb, strip_cols, depth, strip);
      for (std::int64_t i = 0; i < t.rows; i += block_rows)
        multiply_block(rows + i * max_depth, strip, depth, t.p + j * t.ldp + i, t.ldp, add);
    }
    k0 += max_depth;
  } while (k0 < t.depth);
}

}  // namespace KokkosOzaki::Impl
