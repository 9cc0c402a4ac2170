// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_EXACTPRODUCTS_HPP
#define KOKKOSOZAKI_EXACTPRODUCTS_HPP

#include "../impl/KokkosOzaki_Labels.hpp"
#include "KokkosOzaki_Reconstruct.hpp"

namespace KokkosOzaki::Impl {

/// A number x as a factor: |x| = significand 2^(exponent - unit), see FloatFormat.
template <class Real>
struct Factor {
  typename FormatOf<Real>::Bits bits;  // of x, for its sign
  std::int32_t exponent;
  std::int64_t significand;

  Factor() = default;
  KOKKOS_INLINE_FUNCTION explicit Factor(Real x) : bits(bits_of(x)) {
    const auto m = significand_of(magnitude_bits(x));
    significand = static_cast<std::int64_t>(m.value);
    exponent = m.exponent;
  }
  KOKKOS_INLINE_FUNCTION Factor operator-() const {
    Factor minus = *this;
    minus.bits ^= FormatOf<Real>::sign;
    return minus;
  }
};

/// The significand of x with the sign of x y.
template <class Real>
KOKKOS_INLINE_FUNCTION std::int64_t signed_significand(const Factor<Real>& x, const Factor<Real>& y) {
  const std::int64_t mask = -static_cast<std::int64_t>((x.bits ^ y.bits) >> (8 * sizeof(x.bits) - 1));
  return (x.significand ^ mask) - mask;
}

/// The digits first <= d <= last of a superaccumulator are those where a product begins.
struct DigitWindow {
  int first = INT32_MAX, last = -1;
};

/// \brief Exact sum of up to 2^33 products, a superaccumulator after Kulisch: sum_d digit[d] 2^(32 d) in
/// units of the smallest product, 2^unit_exponent. Integers only, so the order of the products is of no
/// account.
///
/// Digits are carry-save: 64 bits, of which 32 belong to the place. A product takes `pieces` digits, the
/// topmost of them all that is left, less than 2^47 in magnitude; with the carries propagated after
/// max_additions = 2^15 products, digits stay below 2^32 + 2^62. Inf and NaN count as some number, within the
/// digits.
template <class Real>
struct Superaccumulator {
  using Format = FormatOf<Real>;
  static constexpr int product_bits = 2 * (Format::fraction_bits + 1);
  static constexpr int pieces = product_bits > 64 ? 4 : 2;
  static constexpr int largest_place = 2 * (2 * Format::bias + 1) - 2;  // of infinite factors
  static constexpr int words = largest_place / 32 + pieces + 2;
  static constexpr int unit_exponent = 2 - 2 * Format::unit;
  static constexpr int max_additions = 1 << 15;

  std::int64_t digit[words];

  KOKKOS_INLINE_FUNCTION void clear() {
    for (int d = 0; d < words; ++d) digit[d] = 0;
  }

  /// += x y
  KOKKOS_INLINE_FUNCTION void add(const Factor<Real>& x, const Factor<Real>& y, DigitWindow& window) {
    const int place = x.exponent + y.exponent - 2;  // >= 0
    const int shift = place & 31, d = place >> 5;
    add_shifted(signed_significand(x, y), y.significand, shift, digit + d);
    if (d < window.first) window.first = d;
    if (d > window.last) window.last = d;
  }

  /// The sum, correctly rounded. The digits of the window are overwritten.
  KOKKOS_INLINE_FUNCTION Real rounded(const DigitWindow& window) {
    if (window.last < 0) return Real{0};
    propagate(window);
    std::uint32_t word[words];
    const int end = end_of(window);
    for (int d = window.first; d <= end; ++d) word[d - window.first] = static_cast<std::uint32_t>(digit[d]);
    return round_to<Real>(word, end - window.first + 1, 32 * window.first + unit_exponent);
  }

  /// Leaves 32 bits in all digits of the window but the topmost, which has the sign.
  KOKKOS_INLINE_FUNCTION void propagate(const DigitWindow& window) {
    const int end = end_of(window);
    std::int64_t carry = 0;
    for (int d = window.first; d < end; ++d) {
      carry += digit[d];
      digit[d] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    digit[end] += carry;
  }

 private:
  // Two digits above those of the last product there is room for the sum of 2^33 of them and its sign.
  static_assert(31 + product_bits + 33 < 32 * (pieces + 2));
  KOKKOS_INLINE_FUNCTION static int end_of(const DigitWindow& window) { return window.last + pieces + 1; }

  KOKKOS_INLINE_FUNCTION static void add_shifted(std::int64_t x, std::int64_t y, int shift,
                                                 std::int64_t* at) {
    if constexpr (pieces == 2) {
      const std::int64_t p = x * y;  // |p| < 2^48
      at[0] += static_cast<std::uint32_t>(static_cast<std::uint64_t>(p) << shift);
      at[1] += p >> (32 - shift);
    } else {
      // |x y| < 2^106 as high 2^64 + low, from halves of 32 bits; the upper half of x is signed.
      const std::int64_t x1 = x >> 32, x0 = static_cast<std::uint32_t>(x);
      const std::int64_t y1 = y >> 32, y0 = static_cast<std::uint32_t>(y);
      const std::uint64_t bottom = static_cast<std::uint64_t>(x0) * static_cast<std::uint64_t>(y0);
      const std::int64_t middle = x0 * y1 + x1 * y0 + static_cast<std::int64_t>(bottom >> 32);
      const std::int64_t high = x1 * y1 + (middle >> 32);
      const std::uint64_t low =
          (static_cast<std::uint64_t>(middle) << 32) | static_cast<std::uint32_t>(bottom);
      at[0] += static_cast<std::uint32_t>(low << shift);
      at[1] += static_cast<std::uint32_t>(low >> (32 - shift));
      at[2] += static_cast<std::uint32_t>((low >> 1 >> (63 - shift)) |
                                          (static_cast<std::uint64_t>(high) << shift));
      at[3] += high >> (32 - shift);
    }
  }
};

/// How many entries of C are accumulated side by side. On hosts a cache line of op(A) or op(B) serves several,
/// and their accumulators, 17 KiB, stay in L1.
template <class ExecutionSpace, class Scalar>
struct ExactTileShape {
  static constexpr int rows = is_host_space_v<ExecutionSpace> ? 4 : 1;
  static constexpr int cols = is_host_space_v<ExecutionSpace> ? 4 / parts_of_v<Scalar> : 1;
};

/// \brief The exact values of neighbouring entries of op(A) op(B).
template <class Scalar, class AElement, class BElement, int MaxRows, int MaxCols>
class ExactTile {
  using Real = RealOf<Scalar>;
  using Accumulator = Superaccumulator<Real>;
  static constexpr int parts = parts_of_v<Scalar>;

 public:
  /// The rows i .. i + rows - 1 of op(A) with the columns j .. j + cols - 1 of op(B).
  KOKKOS_INLINE_FUNCTION ExactTile(const VectorSet<AElement>& a, std::int64_t i, int rows,
                                   const VectorSet<BElement>& b, std::int64_t j, int cols) {
    for (int c = 0; c < cols; ++c)
      for (int r = 0; r < rows; ++r)
        for (int part = 0; part < parts; ++part) m_sum[c][r][part].clear();
    if (a.length == 0) return;
    const AElement* const x = a.at(i, 0);
    const BElement* const y = b.at(j, 0);
    constexpr int step = Accumulator::max_additions / parts;
    int room = step;
    for (std::int64_t l = 0; l < a.length; ++l) {
      if (room-- == 0) {
        propagate(rows, cols);
        room = step - 1;
      }
      add(x + l * a.position_stride, a.vector_stride, a.conj, rows, y + l * b.position_stride,
          b.vector_stride, b.conj, cols);
    }
  }

  KOKKOS_INLINE_FUNCTION Scalar value(int r, int c) {
    if constexpr (is_complex_v<Scalar>)
      return Scalar(m_sum[c][r][0].rounded(m_window), m_sum[c][r][1].rounded(m_window));
    else
      return m_sum[c][r][0].rounded(m_window);
  }

 private:
  using Number = Factor<Real>[parts];

  template <class Element>
  KOKKOS_INLINE_FUNCTION static void decode(const Element& x, [[maybe_unused]] bool conj,
                                            Factor<Real>* number) {
    for (int part = 0; part < parts; ++part) number[part] = Factor<Real>(static_cast<Real>(part_of(x, part)));
    if constexpr (is_complex_v<Scalar>)
      if (conj) number[1] = -number[1];
  }

  /// Position x of some rows with position y of some columns.
  KOKKOS_INLINE_FUNCTION void add(const AElement* x, std::int64_t x_stride, bool x_conj, int rows,
                                  const BElement* y, std::int64_t y_stride, bool y_conj, int cols) {
    Number u[MaxRows];
    for (int r = 0; r < rows; ++r) decode(x[r * x_stride], x_conj, u[r]);
    for (int c = 0; c < cols; ++c) {
      Number v;
      decode(y[c * y_stride], y_conj, v);
      for (int r = 0; r < rows; ++r) {
        Accumulator* const sum = m_sum[c][r];
        add_product(sum[0], u[r][0], v[0]);
        if constexpr (is_complex_v<Scalar>) {
          add_product(sum[0], u[r][1], -v[1]);
          add_product(sum[1], u[r][0], v[1]);
          add_product(sum[1], u[r][1], v[0]);
        }
      }
    }
  }

  /// Zeros do not count: their exponents would widen the window.
  KOKKOS_INLINE_FUNCTION void add_product(Accumulator& sum, const Factor<Real>& x, const Factor<Real>& y) {
    if (x.significand != 0 && y.significand != 0) sum.add(x, y, m_window);
  }

  KOKKOS_INLINE_FUNCTION void propagate(int rows, int cols) {
    if (m_window.last < 0) return;
    for (int c = 0; c < cols; ++c)
      for (int r = 0; r < rows; ++r)
        for (int part = 0; part < parts; ++part) m_sum[c][r][part].propagate(m_window);
  }

  Accumulator m_sum[MaxCols][MaxRows][parts];
  DigitWindow m_window;  // of all of them
};

/// One listed entry per index.
template <class Scalar, class AElement, class BElement>
struct ExactEntriesFunctor {
  VectorSet<AElement> a;
  VectorSet<BElement> b;
  EpilogueOf<Scalar> epilogue;
  MatrixRef<Scalar> C;
  const std::int64_t* entries;
  Scalar* values;

  KOKKOS_FUNCTION void operator()(std::int64_t e) const {
    const std::int64_t j = entries[e] / C.rows, i = entries[e] - j * C.rows;
    ExactTile<Scalar, AElement, BElement, 1, 1> tile(a, i, 1, b, j, 1);
    Scalar c{};
    if (epilogue.beta != Scalar(0)) c = C.data[i * C.row_stride + j * C.col_stride];
    apply_epilogue(tile.value(0, 0), epilogue, c);
    values[e] = c;
  }
};

/// \brief values[e] := alpha t + beta C(i, j) with t the exact entry of op(A) op(B), rounded once, for the
/// listed entries i + j C.rows of C. C stays as it is, and is read only if beta is not 0: place_entries puts
/// the values there once the emulated product has overwritten it.
/// \param a, b rows of op(A) and columns of op(B), all positions, at most 2^32; no batches. Finite in the
/// vectors of these entries, otherwise values are arbitrary.
/// \param entries in any order, each 0 <= entries[e] < C.rows C.cols
template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void exact_entries(const ExecutionSpace& exec, const VectorSet<AElement>& a, const VectorSet<BElement>& b,
                   const EpilogueOf<Scalar>& epilogue, const MatrixRef<Scalar>& C,
                   const std::int64_t* entries, std::int64_t count, Scalar* values) {
  ScopedRegion region(Labels::exact_entries);
  Kokkos::parallel_for(Labels::exact_entries, Range<ExecutionSpace>(exec, 0, count),
                       ExactEntriesFunctor<Scalar, AElement, BElement>{a, b, epilogue, C, entries, values});
}

template <class Scalar>
struct PlaceEntriesFunctor {
  MatrixRef<Scalar> C;
  const std::int64_t* entries;
  const Scalar* values;

  KOKKOS_FUNCTION void operator()(std::int64_t e) const {
    const std::int64_t j = entries[e] / C.rows, i = entries[e] - j * C.rows;
    C.data[i * C.row_stride + j * C.col_stride] = values[e];
  }
};

/// \brief C(i, j) := values[e] for the entries i + j C.rows of a list without repetitions.
template <class ExecutionSpace, class Scalar>
void place_entries(const ExecutionSpace& exec, const MatrixRef<Scalar>& C, const std::int64_t* entries,
                   std::int64_t count, const Scalar* values) {
  ScopedRegion region(Labels::place_entries);
  Kokkos::parallel_for(Labels::place_entries, Range<ExecutionSpace>(exec, 0, count),
                       PlaceEntriesFunctor<Scalar>{C, entries, values});
}

/// A tile of one entry of a batch per index.
template <class Scalar, class AElement, class BElement, int MaxRows, int MaxCols>
struct ExactProductFunctor {
  VectorSet<AElement> a;
  VectorSet<BElement> b;
  const std::int32_t* row_exponent;
  const std::int32_t* col_exponent;
  EpilogueOf<Scalar> epilogue;
  MatrixRef<Scalar> C;
  std::int64_t row_tiles, col_tiles;

  KOKKOS_FUNCTION static bool all_flagged(const std::int32_t* exponent, int count) {
    for (int v = 0; v < count; ++v)
      if (exponent[v] != flagged_vector) return false;
    return true;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t tile_column = index / row_tiles, entry = tile_column / col_tiles;
    const std::int64_t i0 = (index - tile_column * row_tiles) * MaxRows,
                       j0 = (tile_column - entry * col_tiles) * MaxCols;
    const int rows = C.rows - i0 < MaxRows ? static_cast<int>(C.rows - i0) : MaxRows;
    const int cols = C.cols - j0 < MaxCols ? static_cast<int>(C.cols - j0) : MaxCols;
    const std::int64_t row = entry * a.pitch + i0, column = entry * b.pitch + j0;
    if (all_flagged(row_exponent + row, rows) || all_flagged(col_exponent + column, cols)) return;
    ExactTile<Scalar, AElement, BElement, MaxRows, MaxCols> tile(a, row, rows, b, column, cols);
    Scalar* const corner = C.entry(entry) + i0 * C.row_stride + j0 * C.col_stride;
    for (int c = 0; c < cols; ++c) {
      if (col_exponent[column + c] == flagged_vector) continue;
      for (int r = 0; r < rows; ++r)
        if (row_exponent[row + r] != flagged_vector)
          apply_epilogue(tile.value(r, c), epilogue, corner[r * C.row_stride + c * C.col_stride]);
    }
  }
};

/// \brief C := alpha t + beta C with t the exact entries of op(A) op(B), each rounded once. Entries of flagged
/// rows and columns are left alone.
/// \param a, b all positions, at most 2^32, with the vectors of this block of C
template <class ExecutionSpace, class Scalar, class AElement, class BElement>
void exact_product(const ExecutionSpace& exec, const VectorSet<AElement>& a, const VectorSet<BElement>& b,
                   const std::int32_t* row_exponent, const std::int32_t* col_exponent,
                   const EpilogueOf<Scalar>& epilogue, const MatrixRef<Scalar>& C) {
  ScopedRegion region(Labels::exact_product);
  using Shape = ExactTileShape<ExecutionSpace, Scalar>;
  const std::int64_t row_tiles = (C.rows + Shape::rows - 1) / Shape::rows,
                     col_tiles = (C.cols + Shape::cols - 1) / Shape::cols;
  Kokkos::parallel_for(Labels::exact_product,
                       Range<ExecutionSpace>(exec, 0, row_tiles * col_tiles * C.entries),
                       ExactProductFunctor<Scalar, AElement, BElement, Shape::rows, Shape::cols>{
                           a, b, row_exponent, col_exponent, epilogue, C, row_tiles, col_tiles});
}

}  // namespace KokkosOzaki::Impl

#endif
