// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_WORKSPACE_HPP
#define KOKKOSOZAKI_WORKSPACE_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "../../backends/KokkosOzaki_Int8Gemm.hpp"
#include "../stages/KokkosOzaki_Statistics.hpp"

namespace KokkosOzaki::Impl {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

constexpr std::int64_t vector_padding = 16;  // vectors of a residue plane
constexpr std::int64_t k_padding = 64;       // positions of a residue vector

/// \brief How a product is cut: blocks of C of at most mb x nb entries, blocks of k of at most kb positions,
/// groups of moduli. A batch is cut into blocks of whole entries, or, where one entry is too large for that,
/// is one product after the other.
struct Blocking {
  std::int64_t mb, nb, kb;
  int group;
  std::int64_t entries = 1;
};

/// \brief One allocation, cut into typed slices; offsets and sizes in bytes, every slice on a 64-byte
/// boundary.
///
/// The residue planes are written only after the statistics are joined and the maxima of the accurate bound
/// are known, so the chunk records and the quantised planes lie in the same bytes.
struct WorkspaceLayout {
  std::size_t exponent, square_sum, alpha, candidate, maxima;
  std::size_t residues, products, outputs, engine;
  std::size_t control, pointers;  // of a batch: one record an entry; where the entries of A, B and C are
  std::size_t residue_bytes;
  std::size_t total;  // with room to align a caller's buffer; too_large where no memory could hold it

  static constexpr std::size_t too_large = ~std::size_t{0};

  /// \param product_planes  planes of INT32 products that are stored at the same time
  /// \param keeps_outputs   whether the residues of C are stored
  WorkspaceLayout(std::int64_t m, std::int64_t n, std::int64_t k, int num_moduli, bool accurate,
                  const Blocking& blocking, std::size_t engine_bytes, int product_planes, bool keeps_outputs,
                  int products_per_modulus = 1, int parts = 1) {
    std::size_t end = 0;
    bool fits = true;
    // Sizes are products of up to five factors: formed in floating point first, so that they cannot wrap
    // around.
    const auto product_of = [&fits](std::initializer_list<std::size_t> factors) {
      double estimate = 1;
      std::size_t bytes = 1;
      for (const std::size_t factor : factors) {
        estimate *= static_cast<double>(factor);
        bytes *= factor;
      }
      fits = fits && estimate < 0x1p+60;
      return fits ? bytes : 0;
    };
    const auto slice = [&end](std::size_t bytes) {
      const std::size_t begin = end;
      end = begin + (bytes + 63) / 64 * 64;
      return begin;
    };
    const auto rows = static_cast<std::size_t>(round_up(blocking.mb, vector_padding));
    const auto cols = static_cast<std::size_t>(round_up(blocking.nb, vector_padding));
    const auto entries = static_cast<std::size_t>(blocking.entries);
    const std::size_t vectors = entries == 1 ? static_cast<std::size_t>(m + n) : entries * (rows + cols);
    control = slice(entries == 1 ? 0 : entries * sizeof(Control));
    pointers = slice(entries == 1 ? 0 : 3 * entries * sizeof(void*));
    exponent = slice(vectors * sizeof(std::int32_t));
    square_sum = slice(vectors * sizeof(std::uint64_t));
    alpha = slice(vectors * sizeof(std::int32_t));
    candidate = slice(accurate ? vectors * sizeof(std::int32_t) : 0);
    maxima = slice(accurate ? vectors * sizeof(std::int32_t) : 0);
    const auto length = static_cast<std::size_t>(round_up(blocking.kb, k_padding));
    const auto s = static_cast<std::size_t>(num_moduli);
    const auto per_modulus = static_cast<std::size_t>(products_per_modulus);
    // At least the chunk records of one vector; of all vectors of a batch, whose k is whole.
    residue_bytes = product_of({entries, per_modulus * s, rows + cols, length});
    const std::size_t records = static_cast<std::size_t>(chunks_of(k)) * sizeof(ChunkStatistics);
    if (residue_bytes < records) residue_bytes = records;
    residues = slice(residue_bytes);
    products = slice(
        product_of({entries, static_cast<std::size_t>(product_planes), rows, cols, sizeof(std::int32_t)}));
    outputs =
        slice(keeps_outputs ? product_of({entries, static_cast<std::size_t>(parts) * s, rows, cols}) : 0);
    engine = slice(engine_bytes);
    total = fits ? end + 63 : too_large;
  }
};

}  // namespace KokkosOzaki::Impl

#endif
