// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_CERTIFY_HPP
#define KOKKOSOZAKI_CERTIFY_HPP

#include "../impl/KokkosOzaki_Certificate.hpp"
#include "../impl/KokkosOzaki_Labels.hpp"
#include "KokkosOzaki_Scale.hpp"

namespace KokkosOzaki::Impl {

/// One record of a batch per index.
struct ResetCertificateFunctor {
  CertificateRecord* record;
  bool of_vectors;

  KOKKOS_FUNCTION void operator()(std::int64_t entry) const {
    record[entry].reset();
    record[entry].skip_whole = record[entry].skip_fine = 0;
    if (of_vectors) record[entry].row_norm_2 = record[entry].col_norm_2 = 0;
  }
};

/// One vector per index: rows, then columns.
struct CertificateVectorsFunctor {
  std::int64_t rows;
  std::int64_t row_pitch, col_pitch;  // of a batch
  const std::int32_t* exponent;
  const std::uint64_t* square_sum;
  const std::uint64_t* sum;
  CertificateVector* vectors;
  CertificateRecord* record;

  KOKKOS_FUNCTION void operator()(std::int64_t v) const {
    if (!has_exponent(exponent[v])) {
      vectors[v] = CertificateVector{};
      return;
    }
    vectors[v] = CertificateVector::of(square_sum[v], sum[v]);
    const std::int64_t entry = row_pitch == 0 ? 0 : v < rows ? v / row_pitch : (v - rows) / col_pitch;
    std::int32_t* largest = v < rows ? &record[entry].row_norm_2 : &record[entry].col_norm_2;
    if (vectors[v].norm_2 > *largest) max_atomically(largest, vectors[v].norm_2);
  }
};

/// \brief Clears the record, and what the certificate needs of the vectors, from their statistics. Of a batch: a record
/// for each entry.
/// \param exponent, square_sum, sum  of the rows of op(A), then of the columns of op(B)
/// \param row_pitch, col_pitch  of a batch: vectors from one entry to the next (VectorSet)
template <class ExecutionSpace>
void certificate_vectors(const ExecutionSpace& exec, std::int64_t rows, std::int64_t cols,
                         const std::int32_t* exponent, const std::uint64_t* square_sum,
                         const std::uint64_t* sum, CertificateVector* vectors, CertificateRecord* record,
                         std::int64_t row_pitch = 0, std::int64_t col_pitch = 0) {
  ScopedRegion region(Labels::certify);
  Kokkos::parallel_for(Labels::certify, Range<ExecutionSpace>(exec, 0, row_pitch == 0 ? 1 : rows / row_pitch),
                       ResetCertificateFunctor{record, true});
  Kokkos::parallel_for(
      Labels::certify, Range<ExecutionSpace>(exec, 0, rows + cols),
      CertificateVectorsFunctor{rows, row_pitch, col_pitch, exponent, square_sum, sum, vectors, record});
}

template <class ExecutionSpace>
void reset_certificate(const ExecutionSpace& exec, CertificateRecord* record) {
  Kokkos::parallel_for(Labels::certify, Range<ExecutionSpace>(exec, 0, 1),
                       ResetCertificateFunctor{record, false});
}

struct ChooseBoundFunctor {
  CertificateTable table;
  bool is_whole;
  std::int64_t a_few;
  CertificateRecord* record;

  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    const bool done = table.accepted(*record, is_whole) != 0;
    const bool whole = !done && !is_whole && (record->open == 0 || record->open > a_few);
    record->skip_whole = whole ? 0 : 1;
    record->skip_fine = done || whole ? 1 : 0;
    if (!done) record->reset();
  }
};

struct ChooseFineBoundFunctor {
  CertificateRecord* record;

  KOKKOS_FUNCTION void operator()(std::int64_t) const {
    if (record->skip_whole != 0 || record->open == 0) return;
    record->skip_fine = 0;
    record->reset();
  }
};

/// \brief After the first lower bound, on the device: whether the coarse one over all positions follows, or the fine one, or
/// neither; clears the record for them.
/// \param is_whole  the first one went over all positions
/// \param a_few     with more open entries than that, or with none, the coarse one follows
template <class ExecutionSpace>
void choose_bound(const ExecutionSpace& exec, const CertificateTable& table, bool is_whole,
                  std::int64_t a_few, CertificateRecord* record) {
  Kokkos::parallel_for(Labels::certify, Range<ExecutionSpace>(exec, 0, 1),
                       ChooseBoundFunctor{table, is_whole, a_few, record});
}

/// After the coarse one over all positions, if it was not left out: whether the fine one follows.
template <class ExecutionSpace>
void choose_fine_bound(const ExecutionSpace& exec, CertificateRecord* record) {
  Kokkos::parallel_for(Labels::certify, Range<ExecutionSpace>(exec, 0, 1), ChooseFineBoundFunctor{record});
}

/// \brief One block of op(A) op(B) with lower bounds of |op(A)| |op(B)|; entry (i, j) of a product at j * ld + i. Or those
/// of all entries of a batch, the products `stride` apart, with the vectors numbered as in VectorSet.
struct CertifyBlock {
  std::int64_t m, n, ld;
  const std::int32_t* coarse;   // G_2
  const std::int32_t* fine;     // G_8, or null
  const std::int32_t* support;  // positions at which both vectors differ from zero, or null
  const CertificateVector* rows;
  const CertificateVector* cols;
  std::uint64_t constant;  // c
  std::int32_t most_bits;  // entries with a larger T are open
  int parts;               // 2: complex
  std::int64_t entries = 1, stride = 0, row_pitch = 0, col_pitch = 0;
};

/// Where the numbers i + j * rows of open entries go; null: nowhere.
struct OpenEntries {
  std::int64_t* list;
  std::int64_t capacity;
  std::int64_t first_row, first_col, rows;
};

/// Neighbouring entries of a column of products, read as one word where the machine has such words.
template <int Rows>
struct alignas(Rows % 4 == 0 ? 16 : 4) ProductRows {
  std::int32_t value[Rows];
};

/// A few rows and columns per index; neighbouring indices have neighbouring rows.
/// \tparam Ahead  columns that are looked at together: most entries need nothing but their numbers
/// \tparam Fine   there are two lower bounds
template <int Rows, int Cols, int Ahead, bool Fine>
struct CertifyFunctor {
  static_assert(Cols % Ahead == 0);

  CertifyBlock block;
  OpenEntries open;
  CertificateRecord* records;  // of the entries
  const std::int32_t* skip;    // null, or what leaves everything undone where it is not zero
  std::int64_t row_groups, col_groups;

  /// What is known so far. Most entries change nothing, and a look in FP32 tells that of nearly all of them: its errors,
  /// of 2^-21 at most, are less than what norm_1_above is above, so where n <= limit is seen, it is so.
  struct Known {
    std::int32_t bits, least_bits;
    float limit, coarse_limit, least_limit;
    std::int64_t open = 0;
  };

  /// c 2^(bits + more); 0 where there is no T yet.
  KOKKOS_FUNCTION float limit_of(std::int32_t bits, int more) const {
    const std::int32_t exponent = bits + more;
    if (exponent < -60 || exponent > 60) return 0.0f;
    using Format = FormatOf<float>;
    const auto field = static_cast<Format::Bits>(exponent + int{Format::bias});
    return static_cast<float>(block.constant) * real_of<float>(field << int{Format::fraction_bits});
  }

  KOKKOS_FUNCTION void set_bits(Known& known, std::int32_t bits) const {
    known.bits = bits, known.limit = limit_of(bits, 0), known.coarse_limit = known.limit * 4096.0f;
  }
  KOKKOS_FUNCTION void set_least_bits(Known& known, std::int32_t bits) const {
    known.least_bits = bits, known.least_limit = limit_of(bits, 21 + block.parts);
  }

  KOKKOS_FUNCTION static bool changes_nothing(std::int32_t coarse, std::int32_t fine,
                                              const CertificateVector::Rough& x,
                                              const CertificateVector::Rough& y, const Known& known) {
    const float above = y.norm_1_above * x.power + x.norm_1_above * y.power;
    float limit = static_cast<float>(coarse) * known.coarse_limit;
    if constexpr (Fine) {
      const float fine_limit = static_cast<float>(fine) * known.limit;
      limit = fine_limit > limit ? fine_limit : limit;
    }
    return above <= limit && above <= x.root * y.root * known.least_limit;
  }

  /// \param at  of the products
  KOKKOS_FUNCTION void look_at(std::int64_t i, std::int64_t j, std::int64_t at, const CertificateVector& x,
                               const CertificateVector& y, CertificateRecord* record, Known& known) const {
    if (x.root == 0 || y.root == 0) return;
    const std::uint64_t n = certificate_error(x, y);
    // |op(A)| |op(B)| <= ||a|| ||b||, twice that in the measure of complex products.
    const std::int32_t least = certificate_bits(n, block.constant * x.root * y.root) - 21 - block.parts;
    std::uint64_t g = static_cast<std::uint64_t>(block.coarse[at]) << 12;
    if constexpr (Fine) {
      if (static_cast<std::uint64_t>(block.fine[at]) > g) g = static_cast<std::uint64_t>(block.fine[at]);
    }
    if (g != 0) {
      const std::int32_t t = certificate_bits(n, block.constant * g);
      if (t <= block.most_bits) {
        if (t > known.bits) set_bits(known, t);
        if (least > known.least_bits) set_least_bits(known, least);
        return;
      }
    } else if (block.support != nullptr && block.support[at] == 0) {
      return;  // every product is zero, and so is X
    }
    ++known.open;
    if (open.list == nullptr) return;
    const std::int64_t slot = add_atomically(&record->open, std::int64_t{1});
    if (slot < open.capacity) open.list[slot] = (open.first_col + j) * open.rows + open.first_row + i;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    if (skip != nullptr && *skip != 0) return;
    // A 64-bit division costs as much as several entries.
    const auto divided = [](std::int64_t x, std::int64_t y) {
      return x <= 0xFFFFFFFF
                 ? static_cast<std::int64_t>(static_cast<std::uint32_t>(x) / static_cast<std::uint32_t>(y))
                 : x / y;
    };
    const std::int64_t column = divided(index, row_groups),
                       entry = block.entries == 1 ? 0 : divided(column, col_groups);
    const std::int64_t i0 = (index - column * row_groups) * Rows, j0 = (column - entry * col_groups) * Cols;
    const CertificateVector *rows = block.rows + entry * block.row_pitch,
                            *cols = block.cols + entry * block.col_pitch;
    CertificateRecord* const record = records + entry;
    const std::int64_t i1 = i0 + Rows < block.m ? i0 + Rows : block.m;
    const std::int64_t j1 = j0 + Cols < block.n ? j0 + Cols : block.n;
    Known known{};
    set_bits(known, record->bits), set_least_bits(known, record->least_bits);
    CertificateVector::Rough x[Rows];
    for (int r = 0; r < Rows; ++r)
      if (i0 + r < i1) x[r] = rows[i0 + r].rough;
    std::int64_t at = entry * block.stride + j0 * block.ld + i0;
    for (std::int64_t j = j0; j < j1; j += Ahead, at += Ahead * block.ld) {
      if (i0 + Rows <= i1 && j + Ahead <= j1) {
        ProductRows<Rows> coarse[Ahead], fine[Fine ? Ahead : 1];
        for (int c = 0; c < Ahead; ++c) {
          coarse[c] = *reinterpret_cast<const ProductRows<Rows>*>(block.coarse + at + c * block.ld);
          if constexpr (Fine)
            fine[c] = *reinterpret_cast<const ProductRows<Rows>*>(block.fine + at + c * block.ld);
        }
        bool nothing = true;
        for (int c = 0; c < Ahead; ++c) {
          const CertificateVector::Rough y = cols[j + c].rough;
          for (int r = 0; r < Rows; ++r)
            nothing &= changes_nothing(coarse[c].value[r], fine[Fine ? c : 0].value[r], x[r], y, known);
        }
        if (nothing) continue;
      }
      for (int c = 0; c < Ahead && j + c < j1; ++c)
        for (std::int64_t i = i0; i < i1; ++i) {
          const std::int64_t e = at + c * block.ld + (i - i0);
          if (!changes_nothing(block.coarse[e], Fine ? block.fine[e] : 0, rows[i].rough, cols[j + c].rough,
                               known))
            look_at(i, j + c, e, rows[i], cols[j + c], record, known);
        }
    }
    if (known.bits > record->bits) max_atomically(&record->bits, known.bits);
    if (known.least_bits > record->least_bits) max_atomically(&record->least_bits, known.least_bits);
    if (open.list == nullptr && known.open != 0) add_atomically(&record->open, known.open);
  }
};

template <bool Fine, int Cols, class ExecutionSpace>
void launch_certify(const ExecutionSpace& exec, const CertifyBlock& block, const OpenEntries& open,
                    CertificateRecord* record, const std::int32_t* skip) {
  constexpr bool on_host = is_host_space_v<ExecutionSpace>;
  constexpr int rows = on_host ? 64 : 4, cols = on_host ? 1 : Cols, ahead = on_host ? 1 : Cols / 8;
  // Left alone, Kokkos 3.4 has blocks of one warp for so many registers, which fill half of a processor.
  using Policy =
      Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>, Kokkos::LaunchBounds<128, 8>>;
  const std::int64_t row_groups = (block.m + rows - 1) / rows, col_groups = (block.n + cols - 1) / cols;
  Kokkos::parallel_for(
      Labels::certify, Policy(exec, 0, row_groups * col_groups * block.entries),
      CertifyFunctor<rows, cols, ahead, Fine>{block, open, record, skip, row_groups, col_groups});
}

/// \brief The certificate of every entry of a block, joined with what the record holds already; of a batch, the records.
/// \param skip  null, or a flag in the memory of `exec`: nothing happens where it is not zero by then
template <class ExecutionSpace>
void certify(const ExecutionSpace& exec, const CertifyBlock& block, const OpenEntries& open,
             CertificateRecord* record, const std::int32_t* skip = nullptr) {
  ScopedRegion region(Labels::certify);
  // Many columns an index where there are threads enough: what comes before the first one takes as long as twenty.
  const bool many = block.m * block.n * block.entries >= std::int64_t{1} << 24;
  const auto launch = [&](auto fine) {
    if (many && !is_host_space_v<ExecutionSpace>)
      launch_certify<decltype(fine)::value, 32>(exec, block, open, record, skip);
    else
      launch_certify<decltype(fine)::value, 8>(exec, block, open, record, skip);
  };
  if (block.fine != nullptr)
    launch(std::true_type{});
  else
    launch(std::false_type{});
}

}  // namespace KokkosOzaki::Impl

#endif
