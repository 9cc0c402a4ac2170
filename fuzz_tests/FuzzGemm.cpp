// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Sizes, strides, operations, options, exponents, special values and wrong arguments from the fuzzer's bytes. What is
// accepted must have the bits that docs/method.md defines, computed here with multi-precision integers; what is refused
// must be wrong, and C untouched.

#include <KokkosOzaki.hpp>
#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <limits>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "ByteSource.hpp"
#include "ErrorBounds.hpp"
#include "MatrixGenerators.hpp"
#include "ReferenceGemm.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Space = Kokkos::DefaultHostExecutionSpace;

template <class... Scalars>
struct ScalarList {};

/// The scalars of the library.
using FuzzScalars = ScalarList<double, float, Kokkos::complex<double>, Kokkos::complex<float>>;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "FAILED: %s\n", what.c_str());
  std::abort();
}

/// what(): the text, made only where it is needed.
template <class What>
void require(bool holds, const What& what) {
  if (!holds) fail(what());
}

/// \brief What the target needs to know about a real format: its bits, and numbers from bytes.
template <class Real>
struct FuzzReal;

template <>
struct FuzzReal<double> {
  using Bits = std::uint64_t;
  static constexpr Bits poison = 0x7FF8'0123'4567'89AB;  // a NaN that nothing computes
  static constexpr double usual[] = {1.0, 0.0,   -1.0,      -0.0,     0.5,       -2.0,
                                     0.3, 1e300, 0x1p-1060, HUGE_VAL, -HUGE_VAL, NAN};
  static constexpr int lows[] = {0, -10, -30, -200, -540, -1023, -1074, -1090, 500, 900, 1000};
  static double rounded(const ExactNumber& x) { return round_to_double(x); }
};

template <>
struct FuzzReal<float> {
  using Bits = std::uint32_t;
  static constexpr Bits poison = 0x7FC1'2345;
  static constexpr float usual[] = {1.0F, 0.0F,  -1.0F,     -0.0F,     0.5F,       -2.0F,
                                    0.3F, 1e37F, 0x1p-140F, HUGE_VALF, -HUGE_VALF, NAN};
  static constexpr int lows[] = {0, -10, -30, -60, -75, -126, -149, -155, 40, 63, 120};
  static float rounded(const ExactNumber& x) { return round_to_float(x); }
};

template <class Scalar>
struct RealOfScalar {
  using type = Scalar;
  static constexpr int parts = 1;
};
template <class R>
struct RealOfScalar<Kokkos::complex<R>> {
  using type = R;
  static constexpr int parts = 2;
};

/// \brief What the target needs to know about a scalar: entries from bytes, comparison, and the definition of the
/// result.
template <class Scalar>
struct FuzzScalar {
  using Real = typename RealOfScalar<Scalar>::type;
  using Format = FuzzReal<Real>;
  using Limits = std::numeric_limits<Real>;
  using Values = MatrixOf<Scalar>;
  static constexpr int parts = RealOfScalar<Scalar>::parts;
  static constexpr bool is_complex = parts == 2;

  static Real real(const Scalar& x) {
    if constexpr (is_complex)
      return x.real();
    else
      return x;
  }
  static Real imag(const Scalar& x) {
    if constexpr (is_complex)
      return x.imag();
    else
      return static_cast<void>(x), Real(0);
  }
  static Real part(const Scalar& x, int which) { return which == 0 ? real(x) : imag(x); }
  static Scalar make(Real re, Real im) {
    if constexpr (is_complex)
      return Scalar(re, im);
    else
      return static_cast<void>(im), re;
  }
  static Scalar conjugate(const Scalar& x) { return make(real(x), -imag(x)); }

  static typename Format::Bits bits(Real x) {
    typename Format::Bits b;
    std::memcpy(&b, &x, sizeof(b));
    return b;
  }
  static Real from_bits(std::uint64_t word) {
    const auto b = static_cast<typename Format::Bits>(word);
    Real x;
    std::memcpy(&x, &b, sizeof(x));
    return x;
  }

  static Scalar poison() { return make(from_bits(Format::poison), from_bits(Format::poison)); }
  static bool same_bits(const Scalar& x, const Scalar& y) {
    return bits(real(x)) == bits(real(y)) && bits(imag(x)) == bits(imag(y));
  }
  static bool same_value(const Scalar& x, const Scalar& y) {
    const auto same = [](Real u, Real v) { return bits(u) == bits(v) || (std::isnan(u) && std::isnan(v)); };
    return same(real(x), real(y)) && same(imag(x), imag(y));
  }
  static bool is_finite(const Scalar& x) { return std::isfinite(real(x)) && std::isfinite(imag(x)); }
  static bool is_number(const Scalar& x, Real value) { return real(x) == value && imag(x) == 0; }
  static std::string text(const Scalar& x) {
    char text[100];
    std::snprintf(text, sizeof(text), "(%a, %a)", static_cast<double>(real(x)), static_cast<double>(imag(x)));
    return text;
  }

  /// An entry of any bits.
  static Scalar any(ByteSource& bytes) {
    Real x[2] = {0, 0};
    for (int which = 0; which < parts; ++which) x[which] = from_bits(bytes.word(sizeof(Real)));
    return make(x[0], x[1]);
  }
  static Scalar factor(ByteSource& bytes) {
    if (bytes.one_in(4)) return any(bytes);
    const Real re = bytes.pick(Format::usual);
    return make(re, is_complex && bytes.one_in(2) ? bytes.pick(Format::usual) : Real(0));
  }

  /// \brief Entries of one operand: magnitudes, significands, and how many zeros and special values.
  class Entries {
   public:
    explicit Entries(ByteSource& bytes) {
      constexpr int ranges[] = {0, 1, 5, 20, 60, 130, 600, 2100};
      m_low = bytes.pick(Format::lows);
      m_high = std::min(m_low + bytes.pick(ranges), Limits::max_exponent - 1);
      m_significand = bytes.below(5);
      m_zero_in = bytes.below(4) == 3 ? 2 : 1000;
      m_special_in = bytes.below(4) == 3 ? 2 + bytes.byte() : 0;
      m_negative = bytes.below(3);
    }

    Scalar operator()(Random& random) const {
      const Real re = number(random);
      return make(re, is_complex ? number(random) : Real(0));
    }

   private:
    Real number(Random& random) const {
      if (m_special_in != 0 && random.integer(1, m_special_in) == 1) {
        constexpr Real inf = Limits::infinity(), special[] = {inf, -inf, Limits::quiet_NaN(), inf};
        return special[random.integer(0, 3)];
      }
      const bool negative = m_negative == 1 || (m_negative == 0 && random.integer(0, 1) == 1);
      Real x = 0;
      if (random.integer(1, m_zero_in) != 1) {
        x = std::ldexp(significand(random), static_cast<int>(random.integer(m_low, m_high)));
      }
      return negative ? -x : x;
    }

    Real significand(Random& random) const {
      switch (m_significand) {
        case 0:
          return static_cast<Real>(1.0 + random.unit());
        case 1:
          return 1;
        case 2:
          return 2 - Limits::epsilon();
        case 3:
          return 1 + static_cast<Real>(random.integer(0, 127)) / 128;
        default:
          return random.integer(0, 1) == 0 ? 1 + Limits::epsilon() : Real(1.5);
      }
    }

    int m_low, m_high, m_significand, m_zero_in, m_special_in, m_negative;
  };

  /// 2^alpha x rounded to an integer.
  static mpz_class integer(double x, int alpha, Rounding rounding) {
    std::int64_t significand;
    int exponent;
    decompose(x, significand, exponent);
    mpz_class value(static_cast<long>(std::abs(significand)));
    const int shift = exponent + alpha;
    if (shift >= 0) {
      value <<= static_cast<mp_bitcnt_t>(shift);
    } else {
      const auto drop = static_cast<mp_bitcnt_t>(-shift);
      const mpz_class kept = value >> drop, twice_rest = (value - mpz_class(kept << drop)) * 2,
                      unit = mpz_class(1) << drop;
      const bool up = rounding == Rounding::nearest_even &&
                      (twice_rest > unit || (twice_rest == unit && mpz_odd_p(kept.get_mpz_t()) != 0));
      value = up ? mpz_class(kept + 1) : kept;
    }
    return significand < 0 ? mpz_class(-value) : value;
  }

  /// The vectors, the parts of a position side by side; those with special values are zero.
  static Matrix numbers(const Values& x, bool vectors_are_rows, std::vector<bool>& flagged) {
    const std::int64_t vectors = vectors_are_rows ? x.rows() : x.cols(),
                       k = vectors_are_rows ? x.cols() : x.rows();
    Matrix all(vectors, parts * k);
    for (std::int64_t v = 0; v < vectors; ++v) {
      const auto entry = [&](std::int64_t l) { return vectors_are_rows ? x(v, l) : x(l, v); };
      bool special = false;
      for (std::int64_t l = 0; l < k; ++l) special = special || !is_finite(entry(l));
      flagged.push_back(special);
      for (std::int64_t l = 0; l < k && !special; ++l)
        for (int which = 0; which < parts; ++which)
          all(v, parts * l + which) = static_cast<double>(part(entry(l), which));
    }
    return all;
  }

  /// op(A) op(B) as docs/method.md and docs/accuracy.md define it, before alpha and beta.
  static Values product(const Values& A, const Values& B, int s, Bound bound, Rounding rounding) {
    const std::int64_t m = A.rows(), n = B.cols(), k = A.cols();
    std::vector<bool> row_flagged, col_flagged;
    const Matrix a_numbers = numbers(A, true, row_flagged), b_numbers = numbers(B, false, col_flagged);
    const Exponents exponents =
        ExponentModel(a_numbers, b_numbers.transposed(), parts, sizeof(Real) == 4).exponents(s, bound);
    const auto integers = [&](const Matrix& x, const std::vector<int>& scales) {
      std::vector<mpz_class> all;
      for (std::int64_t v = 0; v < x.rows(); ++v)
        for (std::int64_t l = 0; l < x.cols(); ++l)
          all.push_back(integer(x(v, l), scales[static_cast<std::size_t>(v)], rounding));
      return all;
    };
    const std::vector<mpz_class> a = integers(a_numbers, exponents.alpha),
                                 b = integers(b_numbers, exponents.beta);
    const mpz_class range = Detail::range_budget(s);
    Values t(m, n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        const auto row = static_cast<std::size_t>(i), col = static_cast<std::size_t>(j);
        if (row_flagged[row] || col_flagged[col]) {
          t(i, j) = special_dot(A, B, i, j);
          continue;
        }
        mpz_class X[2] = {0, 0};
        for (std::int64_t l = 0; l < k; ++l) {
          const mpz_class *x = &a[static_cast<std::size_t>((i * k + l) * parts)],
                          *y = &b[static_cast<std::size_t>((j * k + l) * parts)];
          X[0] += x[0] * y[0];
          if (is_complex) X[0] -= x[1] * y[1], X[1] += x[0] * y[1] + x[1] * y[0];
        }
        Real rounded[2] = {0, 0};
        for (int which = 0; which < parts; ++which) {
          require(abs(X[which]) <= range, [&] { return std::string("the model itself leaves the range"); });
          rounded[which] =
              Format::rounded({X[which], -static_cast<long>(exponents.alpha[row]) - exponents.beta[col]});
        }
        t(i, j) = make(rounded[0], rounded[1]);
      }
    return t;
  }

  /// \brief One part of an entry of op(A) op(B) without any rounding, of numbers; or (-1) what its error is measured by: the
  /// sum of the products of |Re z| + |Im z|.
  static ExactNumber exact_part(const Values& A, const Values& B, std::int64_t i, std::int64_t j, int which) {
    ExactSum sum;
    const auto add = [&](Real x, Real y, bool negative) {
      std::int64_t significand[2];
      int exponent[2];
      decompose(static_cast<double>(x), significand[0], exponent[0]);
      decompose(static_cast<double>(y), significand[1], exponent[1]);
      sum.add(negative ? -significand[0] : significand[0], exponent[0], significand[1], exponent[1]);
    };
    for (std::int64_t l = 0; l < A.cols(); ++l) {
      const Scalar x = A(i, l), y = B(l, j);
      if (which == 0) {
        add(real(x), real(y), false);
        if (is_complex) add(imag(x), imag(y), true);
      } else if (which == 1) {
        add(real(x), imag(y), false);
        add(imag(x), real(y), false);
      } else {
        for (int p = 0; p < parts; ++p)
          for (int q = 0; q < parts; ++q) add(std::fabs(part(x, p)), std::fabs(part(y, q)), false);
      }
    }
    return sum.value();
  }

  /// Whether |t - exact| <= c u measure + u |t|, and half the smallest number, which rounding may cost.
  static bool keeps_bound(Real t, const ExactNumber& exact, double c, const ExactNumber& measure) {
    constexpr int precision = Limits::digits;
    std::int64_t significand;
    int exponent;
    decompose(static_cast<double>(t), significand, exponent);
    const ExactNumber error = difference(static_cast<double>(t), exact);
    const ExactNumber allowed[] = {
        {measure.numerator * mpz_class(c), measure.exponent - precision},
        {mpz_class(static_cast<long>(std::abs(significand))), exponent - precision},
        {1, Limits::min_exponent - Limits::digits - 1}};
    long lowest = error.exponent;
    for (const ExactNumber& term : allowed) lowest = std::min(lowest, term.exponent);
    const auto at_lowest = [&](const ExactNumber& x) {
      return mpz_class(x.numerator << static_cast<mp_bitcnt_t>(x.exponent - lowest));
    };
    mpz_class sum = 0;
    for (const ExactNumber& term : allowed) sum += at_lowest(term);
    return abs(at_lowest(error)) <= sum;
  }

  /// The sum of those products of parts that have a factor which is no number.
  static Scalar special_dot(const Values& A, const Values& B, std::int64_t i, std::int64_t j) {
    const auto special = [](Real x, Real y) {
      return std::isfinite(x) && std::isfinite(y) ? Real(0) : x * y;
    };
    Real re = 0, im = 0;
    for (std::int64_t l = 0; l < A.cols(); ++l) {
      const Scalar x = A(i, l), y = B(l, j);
      re += special(real(x), real(y));
      if (!is_complex) continue;
      re -= special(imag(x), imag(y));
      im += special(real(x), imag(y));
      im += special(imag(x), real(y));
    }
    return make(re, im);
  }

  static Scalar scaled(const Scalar& beta, const Scalar& c) {
    if (is_number(beta, 0)) return Scalar(0);
    if (is_number(beta, 1)) return c;
    if constexpr (is_complex) {
      const Real across = imag(beta) * imag(c), along = imag(beta) * real(c);
      return Scalar(std::fma(real(beta), real(c), -across), std::fma(real(beta), imag(c), along));
    } else {
      return beta * c;
    }
  }
  static Scalar combined(const Scalar& alpha, const Scalar& t, const Scalar& beta, const Scalar& c) {
    if (is_number(beta, 0) && is_number(alpha, 1)) return t;
    const Scalar p = scaled(beta, c);
    if constexpr (is_complex) {
      if (is_number(alpha, 1)) return Scalar(real(t) + real(p), imag(t) + imag(p));
      return Scalar(std::fma(real(alpha), real(t), std::fma(-imag(alpha), imag(t), real(p))),
                    std::fma(real(alpha), imag(t), std::fma(imag(alpha), real(t), imag(p))));
    } else {
      return is_number(beta, 0) ? alpha * t : std::fma(alpha, t, p);
    }
  }
};

/// \brief An operand in memory of exactly the bytes that its strides span: one step further is an error of the
/// address sanitizer. Gaps are poison.
struct Strides {
  std::int64_t row, col;
};

/// Mostly such that the entries have places of their own.
Strides strides_of(ByteSource& bytes, std::int64_t rows, std::int64_t cols) {
  const std::int64_t step = 1 + (bytes.one_in(4) ? bytes.below(4) : 0),
                     gap = bytes.one_in(3) ? bytes.below(6) : 0;
  const bool row_major = bytes.below(2) == 1;
  if (bytes.one_in(16)) return {bytes.below(9), bytes.below(9)};
  if (row_major) return {step * std::max<std::int64_t>(cols, 1) + gap, step};
  return {step, step * std::max<std::int64_t>(rows, 1) + gap};
}

struct Shape {
  std::int64_t rows, cols;
  Strides strides;
  std::int64_t offset;  // of the first entry in the memory, in entries

  std::int64_t at(std::int64_t i, std::int64_t j) const { return offset + i * strides.row + j * strides.col; }
  std::int64_t end() const { return rows == 0 || cols == 0 ? offset : at(rows - 1, cols - 1) + 1; }
  std::vector<std::int64_t> places() const {
    std::vector<std::int64_t> all;
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < rows; ++i) all.push_back(at(i, j));
    return all;
  }
  bool has_places_of_their_own() const {
    const auto all = places();
    return std::set<std::int64_t>(all.begin(), all.end()).size() == all.size();
  }
  /// Blocks inside each other: the usual way, which the library asks for.
  bool is_nested() const {
    if (rows <= 1 || cols <= 1) return has_places_of_their_own();
    const std::int64_t small = std::min(strides.row, strides.col), large = std::max(strides.row, strides.col);
    const std::int64_t inner = strides.row <= strides.col ? rows : cols;
    return small > 0 && (inner - 1) * small < large;
  }
};

/// Everything that a call depends on, drawn from the bytes.
template <class Scalar>
class Case {
  using Traits = FuzzScalar<Scalar>;
  using Values = MatrixOf<Scalar>;
  using View = Kokkos::View<Scalar**, Kokkos::LayoutStride, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>;

 public:
  explicit Case(ByteSource& bytes) {
    m_m = size(bytes), m_n = size(bytes), m_k = size(bytes);
    if (bytes.one_in(8)) m_k = static_cast<std::int64_t>(bytes.word(2) % 2200);
    if (bytes.one_in(16)) m_m = static_cast<std::int64_t>(bytes.byte());
    if (bytes.one_in(16)) m_n = static_cast<std::int64_t>(bytes.byte());
    while (m_m * m_n * m_k > 4000 || (m_m + m_n) * m_k > 5000)
      m_k /= 2, m_m = std::max(m_m / 2, m_m > 0 ? std::int64_t{1} : 0);
    m_letters[0] = letter(bytes), m_letters[1] = letter(bytes);
    const bool turned_a = m_letters[0] != 'N' && m_letters[0] != 'n',
               turned_b = m_letters[1] != 'N' && m_letters[1] != 'n';
    m_a = {turned_a ? m_k : m_m, turned_a ? m_m : m_k, {}, 0};
    m_b = {turned_b ? m_n : m_k, turned_b ? m_k : m_n, {}, 0};
    m_c = {m_m, m_n, {}, 0};
    if (bytes.one_in(16)) {
      Shape* const shapes[] = {&m_a, &m_b, &m_c};
      Shape& changed = *bytes.pick(shapes);
      (bytes.below(2) == 1 ? changed.rows : changed.cols) += bytes.below(2) == 1 ? 1 : 2;
    }
    // Three allocations, or C in that of an operand.
    for (Shape* shape : {&m_a, &m_b, &m_c}) {
      shape->strides = strides_of(bytes, shape->rows, shape->cols);
      shape->offset = bytes.below(4);
    }
    m_c_memory = bytes.one_in(8) ? bytes.below(2) : 2;
    if (m_c_memory != 2) {
      if (bytes.below(2) == 1) m_c.strides = (m_c_memory == 0 ? m_a : m_b).strides;
      m_c.offset = static_cast<std::int64_t>(bytes.word(2) % 700);
    }
    options(bytes);
    m_alpha = Traits::factor(bytes), m_beta = Traits::factor(bytes);
    m_path = bytes.below(4);
    const typename Traits::Entries a(bytes), b(bytes), c(bytes);
    Random random(bytes.word(4) + 1);
    m_memory[0].assign(static_cast<std::size_t>(std::max(m_a.end(), m_c_memory == 0 ? m_c.end() : 0)),
                       Traits::poison());
    m_memory[1].assign(static_cast<std::size_t>(std::max(m_b.end(), m_c_memory == 1 ? m_c.end() : 0)),
                       Traits::poison());
    m_memory[2].assign(static_cast<std::size_t>(m_c_memory == 2 ? m_c.end() : 0), Traits::poison());
    fill(m_memory[m_c_memory], m_c, c, random);
    fill(m_memory[0], m_a, a, random);
    fill(m_memory[1], m_b, b, random);
    // Some entries are the fuzzer's own.
    for (int count = bytes.below(8); count > 0 && !bytes.is_empty(); --count) {
      const int operand = bytes.below(2);
      const Shape& shape = operand == 0 ? m_a : m_b;
      if (shape.rows == 0 || shape.cols == 0) break;
      const auto place = shape.at(bytes.byte() % shape.rows, bytes.byte() % shape.cols);
      m_memory[operand][static_cast<std::size_t>(place)] = Traits::any(bytes);
    }
  }

  void run() {
    std::vector<Scalar> before[3];
    for (int x = 0; x < 3; ++x) before[x] = m_memory[x];
    const Values A = values(m_memory[0], m_a), B = values(m_memory[1], m_b),
                 C = values(m_memory[m_c_memory], m_c);
    const bool wrong = is_wrong(), may_refuse = is_unusual(), shares = c_shares_an_entry();

    bool refused = false, too_small = false;
    std::string why;
    try {
      call();
    } catch (const WorkspaceError& error) {
      refused = too_small = true, why = error.what();
    } catch (const std::invalid_argument& error) {
      refused = true, why = error.what();
    }
    if (refused) {
      require(!why.empty() && why.rfind("KokkosOzaki", 0) == 0,
              [&] { return "a message without the library's name: " + why; });
      require(wrong || shares || may_refuse || (too_small && m_options.max_workspace_bytes != 0),
              [&] { return "refused without a reason: " + why + description(); });
      for (int x = 0; x < 3; ++x)
        for (std::size_t p = 0; p < before[x].size(); ++p)
          require(Traits::same_bits(before[x][p], m_memory[x][p]),
                  [&] { return "a refused call wrote: " + why + description(); });
      return;
    }
    require(!wrong, [&] { return "a wrong argument was accepted" + description(); });
    if (shares) return;  // not noticed: the result is anybody's guess, the memory is not

    const std::vector<std::int64_t> c_places = m_c.places();
    const std::set<std::int64_t> written(c_places.begin(), c_places.end());
    for (int x = 0; x < 3; ++x)
      for (std::size_t p = 0; p < before[x].size(); ++p)
        if (x != m_c_memory || written.count(static_cast<std::int64_t>(p)) == 0)
          require(Traits::same_bits(before[x][p], m_memory[x][p]), [&] {
            return "memory outside C was written, operand " + std::to_string(x) + " place " +
                   std::to_string(p) + description();
          });

    const bool only_beta = m_alpha == Scalar(0) || m_k == 0;
    if (m_m == 0 || m_n == 0) return;
    if (!only_beta && chooses_from_data())
      return check_chosen(operated(A, m_letters[0]), operated(B, m_letters[1]), C);
    const Values t = only_beta ? Values(m_m, m_n)
                               : Traits::product(operated(A, m_letters[0]), operated(B, m_letters[1]),
                                                 used_moduli(), m_options.bound, m_options.rounding);
    const Values got = values(m_memory[m_c_memory], m_c);
    for (std::int64_t j = 0; j < m_n; ++j)
      for (std::int64_t i = 0; i < m_m; ++i) {
        const Scalar expected =
            only_beta ? Traits::scaled(m_beta, C(i, j)) : Traits::combined(m_alpha, t(i, j), m_beta, C(i, j));
        require(Traits::same_value(expected, got(i, j)), [&] {
          return "entry (" + std::to_string(i) + "," + std::to_string(j) + "): expected " +
                 Traits::text(expected) + ", got " + Traits::text(got(i, j)) + description();
        });
      }
  }

 private:
  bool chooses_from_data() const {
    return m_options.num_moduli == 0 && m_options.accuracy.is_componentwise();
  }

  /// \brief A product whose number of moduli was chosen from the data: what a plan says it did is what it did, in every
  /// entry and for every operation, stride and cap, and the error keeps the promise.
  void check_chosen(const Values& a, const Values& b, const Values& C) const {
    GemmOptions options = m_options;
    options.max_workspace_bytes = 0;
    options.backend = nullptr;
    const auto packed = [](const Values& x) {
      std::vector<Scalar> memory;
      for (std::int64_t j = 0; j < x.cols(); ++j)
        for (std::int64_t i = 0; i < x.rows(); ++i) memory.push_back(x(i, j));
      return memory;
    };
    const auto shape_of = [](std::int64_t rows, std::int64_t cols) {
      return Shape{rows, cols, {1, rows}, 0};
    };
    std::vector<Scalar> memory[3] = {packed(a), packed(b), packed(C)};
    GemmPlan<Space, Scalar> plan(Space{}, 'N', 'N', m_m, m_n, m_k, options);
    plan.execute(Space{}, Scalar(1), view(memory[0], shape_of(m_m, m_k)), view(memory[1], shape_of(m_k, m_n)),
                 Scalar(0), view(memory[2], shape_of(m_m, m_n)));
    const GemmReport report = plan.report();
    const bool is_emulated = report.num_moduli != 0;
    const Values model = is_emulated
                             ? Traits::product(a, b, report.num_moduli, Bound::fast, m_options.rounding)
                             : Values(m_m, m_n);
    const Values got = values(m_memory[m_c_memory], m_c);
    const auto is_special = [](const Values& x, std::int64_t vector, bool is_row) {
      for (std::int64_t l = 0; l < (is_row ? x.cols() : x.rows()); ++l)
        if (!Traits::is_finite(is_row ? x(vector, l) : x(l, vector))) return true;
      return false;
    };
    std::int64_t exact_entries = 0;
    for (std::int64_t j = 0; j < m_n; ++j) {
      const bool special_column = is_special(b, j, false);
      for (std::int64_t i = 0; i < m_m; ++i) {
        const Scalar t = memory[2][static_cast<std::size_t>(j * m_m + i)];
        const auto check = [&](bool right, const char* what) {
          require(right, [&] {
            return std::string(what) + ", entry (" + std::to_string(i) + "," + std::to_string(j) +
                   "): " + Traits::text(t) + ", with C " + Traits::text(got(i, j)) + ", " +
                   std::to_string(report.num_moduli) + " moduli, " + std::to_string(report.exact_entries) +
                   " entries exact" + description();
          });
        };
        check(Traits::same_value(Traits::combined(m_alpha, t, m_beta, C(i, j)), got(i, j)),
              "the call differs from a plan with packed operands");
        if (special_column || is_special(a, i, true)) {
          check(Traits::same_value(t, Traits::special_dot(a, b, i, j)), "a special value");
          continue;
        }
        const ExactNumber measure = Traits::exact_part(a, b, i, j, -1);
        typename Traits::Real rounded[2] = {0, 0};
        for (int which = 0; which < Traits::parts; ++which) {
          const ExactNumber exact = Traits::exact_part(a, b, i, j, which);
          rounded[which] = Traits::Format::rounded(exact);
          const auto x = Traits::part(t, which);
          if (std::isfinite(x) && std::isfinite(rounded[which]))
            check(Traits::keeps_bound(x, exact, report.componentwise_bound, measure),
                  "the promise is broken");
        }
        if (is_emulated && Traits::same_value(t, model(i, j))) continue;
        ++exact_entries;
        check(Traits::same_value(t, Traits::make(rounded[0], rounded[1])), "neither the model nor exact");
      }
    }
    require(exact_entries <= report.exact_entries,
            [&] { return "more entries are exact than reported" + description(); });
  }

  static std::int64_t size(ByteSource& bytes) {
    constexpr int sizes[] = {1,  2,  3,  4,  5,  7,  8,  0,   9,   12,  15, 16,
                             17, 20, 31, 33, 63, 64, 65, 127, 128, 129, 130};
    return bytes.one_in(3) ? bytes.pick(sizes) : bytes.below(9);
  }

  static char letter(ByteSource& bytes) {
    constexpr char letters[] = {'N', 'T', 'C', 'n', 't', 'c'};
    return bytes.one_in(32) ? static_cast<char>(bytes.byte()) : bytes.pick(letters);
  }
  static bool is_letter(char x) { return x != '\0' && std::strchr("NnTtCc", x) != nullptr; }
  static bool is_turned(char x) { return x != 'N' && x != 'n'; }

  void options(ByteSource& bytes) {
    m_options.num_moduli = bytes.below(22);
    if (m_options.num_moduli == 21) m_options.num_moduli = static_cast<int>(bytes.word(4));
    m_options.accuracy = Accuracy::normwise();
    if (bytes.one_in(4)) {
      constexpr double constants[] = {1.0, 1e-3, 1e3, 1e10, 1e-30, 1e-320, 0.0, -1.0, HUGE_VAL, NAN, 0x1p+60};
      m_has_constant = true;
      m_constant = bytes.pick(constants);
      m_options.accuracy = Accuracy::normwise(m_constant);
    }
    m_options.bound = bytes.below(2) == 1 ? Bound::accurate : Bound::fast;
    m_options.rounding = bytes.below(4) == 3 ? Rounding::toward_zero : Rounding::nearest_even;
    if (bytes.below(3) == 2) m_options.max_workspace_bytes = bytes.word(1 + bytes.below(3));
    if (bytes.below(3) == 2) m_options.moduli_per_group = bytes.below(24) - 1;
    constexpr const char* backends[] = {
        nullptr,        nullptr,    "portable", "host-portable", "host-avx2", "host-avx512vnni",
        "host-avxvnni", "host-amx", "onednn",   "cublas",        "",          "none"};
    m_options.backend = bytes.pick(backends);
    if (bytes.below(3) == 2) {
      m_options.num_moduli = 0;
      m_options.accuracy = m_has_constant ? Accuracy::componentwise(m_constant) : Accuracy::componentwise();
    }
  }

  template <class Entries>
  static void fill(std::vector<Scalar>& memory, const Shape& shape, const Entries& entries, Random& random) {
    for (const std::int64_t place : shape.places()) memory[static_cast<std::size_t>(place)] = entries(random);
  }

  static Values values(const std::vector<Scalar>& memory, const Shape& shape) {
    Values x(shape.rows, shape.cols);
    for (std::int64_t j = 0; j < shape.cols; ++j)
      for (std::int64_t i = 0; i < shape.rows; ++i)
        x(i, j) = memory[static_cast<std::size_t>(shape.at(i, j))];
    return x;
  }

  /// op(x)
  static Values operated(const Values& x, char letter) {
    if (!is_turned(letter)) return x;
    Values y = x.transposed();
    if (letter == 'C' || letter == 'c')
      for (std::int64_t j = 0; j < y.cols(); ++j)
        for (std::int64_t i = 0; i < y.rows(); ++i) y(i, j) = Traits::conjugate(y(i, j));
    return y;
  }

  View view(int memory, const Shape& shape) { return view(m_memory[memory], shape); }
  static View view(std::vector<Scalar>& memory, const Shape& shape) {
    return View(memory.data() + shape.offset,
                Kokkos::LayoutStride(
                    static_cast<std::size_t>(shape.rows), static_cast<std::size_t>(shape.strides.row),
                    static_cast<std::size_t>(shape.cols), static_cast<std::size_t>(shape.strides.col)));
  }

  void call() {
    const View a = view(0, m_a), b = view(1, m_b), c = view(m_c_memory, m_c);
    const char texts[] = {m_letters[0], '\0', m_letters[1], '\0'};
    if (m_path == 0) return gemm(Space{}, texts, texts + 2, m_alpha, a, b, m_beta, c, m_options);
    if (m_path == 3) return call_batch(texts, texts + 2);
    const bool can_run = GemmPlan<Space, Scalar>::can_run(m_m, m_n, m_k, m_options);
    try {
      if (m_path == 1) {
        GemmPlan<Space, Scalar> plan(Space{}, m_letters[0], m_letters[1], m_m, m_n, m_k, m_options);
        require(can_run, [&] { return "the constructor took what can_run refused" + description(); });
        plan.execute(Space{}, m_alpha, a, b, m_beta, c);
      } else {
        GemmPlan<Space, Scalar> plan(ExternalWorkspace{}, Space{}, m_letters[0], m_letters[1], m_m, m_n, m_k,
                                     m_options);
        require(can_run, [&] { return "the constructor took what can_run refused" + description(); });
        const std::size_t needed = plan.workspace_bytes();
        require(m_options.max_workspace_bytes == 0 || needed <= m_options.max_workspace_bytes,
                [&] { return "more than the cap" + description(); });
        require(needed == GemmPlan<Space, Scalar>::workspace_bytes(m_m, m_n, m_k, m_options),
                [&] { return "two sizes of a workspace" + description(); });
        std::vector<char> buffer(needed);
        const Kokkos::View<char*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> memory(buffer.data(), needed);
        plan.execute(Space{}, m_alpha, a, b, m_beta, c, memory);
      }
    } catch (const std::exception& error) {
      const bool in_execute = std::string(error.what()).find("execute") != std::string::npos;
      require(in_execute || !can_run || !is_letter(m_letters[0]) || !is_letter(m_letters[1]), [&] {
        return std::string("the constructor refused what can_run took: ") + error.what() + description();
      });
      throw;
    }
  }

  /// A batch of this product and others of its shape; those have the bits of calls of their own.
  void call_batch(const char* transA, const char* transB) {
    const std::size_t others = 2;
    std::vector<Scalar> a[others], b[others], c[others];
    std::vector<View> A{view(0, m_a)}, B{view(1, m_b)}, C{view(m_c_memory, m_c)};
    for (std::size_t e = 0; e < others; ++e) {
      // the same entries in other places: turned around
      a[e].assign(static_cast<std::size_t>(m_a.end()), Traits::poison());
      b[e].assign(static_cast<std::size_t>(m_b.end()), Traits::poison());
      c[e].assign(static_cast<std::size_t>(m_c.end()), Traits::poison());
      const auto copy = [](const std::vector<Scalar>& from, std::vector<Scalar>& to, const Shape& shape,
                           std::size_t turn) {
        const std::vector<std::int64_t> places = shape.places();
        for (std::size_t p = 0; p < places.size(); ++p)
          to[static_cast<std::size_t>(places[p])] =
              from[static_cast<std::size_t>(places[(p + 5 * turn) % places.size()])];
      };
      copy(m_memory[0], a[e], m_a, e + 1), copy(m_memory[1], b[e], m_b, e),
          copy(m_memory[m_c_memory], c[e], m_c, e);
      A.push_back(view(a[e], m_a)), B.push_back(view(b[e], m_b)), C.push_back(view(c[e], m_c));
    }
    std::vector<Scalar> expected[others];
    for (std::size_t e = 0; e < others; ++e) expected[e] = c[e];
    try {
      gemm_batched(Space{}, transA, transB, m_alpha, A, B, m_beta, C, m_options);
    } catch (const std::invalid_argument&) {
      for (std::size_t e = 0; e < others; ++e) compare(expected[e], c[e], "a refused batch wrote");
      throw;
    }
    for (std::size_t e = 0; e < others; ++e) {
      gemm(Space{}, transA, transB, m_alpha, A[e + 1], B[e + 1], m_beta, view(expected[e], m_c), m_options);
      compare(expected[e], c[e], "a product of a batch differs from a call of its own");
    }
  }

  void compare(const std::vector<Scalar>& expected, const std::vector<Scalar>& got, const char* what) const {
    for (std::size_t p = 0; p < got.size(); ++p)
      require(Traits::same_value(expected[p], got[p]), [&] {
        return std::string(what) + ": place " + std::to_string(p) + ": expected " +
               Traits::text(expected[p]) + ", got " + Traits::text(got[p]) + description();
      });
  }

  bool is_plan() const { return m_path == 1 || m_path == 2; }

  bool has_wrong_options() const {
    const int s = m_options.num_moduli;
    return (s != 0 && (s < 2 || s > 20)) || (m_has_constant && !(m_constant > 0)) ||
           (m_has_constant && m_options.accuracy.is_componentwise() && !(m_constant >= 1)) ||
           m_options.moduli_per_group < 0;
  }

  /// Whether the call must be refused.
  bool is_wrong() const {
    if (!is_letter(m_letters[0]) || !is_letter(m_letters[1])) return true;
    const bool turned_a = is_turned(m_letters[0]), turned_b = is_turned(m_letters[1]);
    if ((turned_a ? m_a.cols : m_a.rows) != m_m || (turned_a ? m_a.rows : m_a.cols) != m_k) {
      // gemm reads m and k off A
      if (is_plan()) return true;
    }
    const std::int64_t m = turned_a ? m_a.cols : m_a.rows, k = turned_a ? m_a.rows : m_a.cols;
    if ((turned_b ? m_b.cols : m_b.rows) != k || m_c.rows != m ||
        (turned_b ? m_b.rows : m_b.cols) != m_c.cols)
      return true;
    if (is_plan() && (m_c.rows != m_m || m_c.cols != m_n || k != m_k)) return true;
    for (const Shape* shape : {&m_a, &m_b, &m_c})
      if (!shape->has_places_of_their_own()) return true;
    if (has_wrong_options()) return true;
    if (m_c.rows == 0 || m_c.cols == 0 || k == 0 || (m_alpha == Scalar(0) && !is_plan())) return false;
    const int s = m_options.num_moduli;
    if (s != 0 &&
        (Detail::bit_length(Detail::range_budget(s)) - 1 - Detail::ceil_log2(Traits::parts * k)) >> 1 < 2)
      return true;
    return m_options.backend != nullptr &&
           (std::strcmp(m_options.backend, "") == 0 || std::strcmp(m_options.backend, "none") == 0);
  }

  /// Whether it may be refused: an engine that is not here, an accuracy out of reach, strides that are not nested, a
  /// plan that looks at what its call would not need.
  bool is_unusual() const {
    if (m_options.backend != nullptr) return true;
    if (m_has_constant && m_options.num_moduli == 0) return true;
    for (const Shape* shape : {&m_a, &m_b, &m_c})
      if (!shape->is_nested()) return true;
    return false;
  }

  bool c_shares_an_entry() const {
    if (m_c_memory == 2) return false;
    const std::vector<std::int64_t> c = m_c.places(), x = (m_c_memory == 0 ? m_a : m_b).places();
    const std::set<std::int64_t> places(c.begin(), c.end());
    return std::any_of(x.begin(), x.end(), [&](std::int64_t place) { return places.count(place) != 0; });
  }

  int used_moduli() const {
    if (m_options.num_moduli != 0) return m_options.num_moduli;
    return GemmPlan<Space, Scalar>(ExternalWorkspace{}, Space{}, 'N', 'N', m_m, m_n, m_k, m_options)
        .report()
        .num_moduli;
  }

  std::string description() const {
    const std::string scalar = std::string(Traits::is_complex ? " complex" : "") +
                               (sizeof(typename Traits::Real) == 4 ? " float" : " double");
    const auto text = [](const char* name, const Shape& x) {
      return std::string(" ") + name + " " + std::to_string(x.rows) + "x" + std::to_string(x.cols) +
             " strides " + std::to_string(x.strides.row) + "," + std::to_string(x.strides.col) + " offset " +
             std::to_string(x.offset);
    };
    return "\n " + scalar + " m=" + std::to_string(m_m) + " n=" + std::to_string(m_n) +
           " k=" + std::to_string(m_k) + " trans codes " + std::to_string(m_letters[0]) + "," +
           std::to_string(m_letters[1]) + text("A", m_a) + text("B", m_b) + text("C", m_c) + " in memory " +
           std::to_string(m_c_memory) + "\n  alpha=" + Traits::text(m_alpha) +
           " beta=" + Traits::text(m_beta) + " path=" + std::to_string(m_path) +
           " num_moduli=" + std::to_string(m_options.num_moduli) +
           (m_has_constant ? " c=" + std::to_string(m_constant) : "") +
           " componentwise=" + std::to_string(m_options.accuracy.is_componentwise()) +
           " accurate=" + std::to_string(m_options.bound == Bound::accurate) +
           " toward_zero=" + std::to_string(m_options.rounding == Rounding::toward_zero) +
           " cap=" + std::to_string(m_options.max_workspace_bytes) +
           " group=" + std::to_string(m_options.moduli_per_group) +
           " backend=" + (m_options.backend != nullptr ? m_options.backend : "null");
  }

  std::int64_t m_m, m_n, m_k;
  char m_letters[2];
  Shape m_a, m_b, m_c;
  int m_c_memory;  // 0, 1: that of A, B
  GemmOptions m_options;
  bool m_has_constant = false;
  double m_constant = 0;
  Scalar m_alpha, m_beta;
  int m_path;  // gemm, plan, plan with a buffer, gemm_batched
  std::vector<Scalar> m_memory[3];
};

template <class... Scalars>
void run_case(ByteSource& bytes, ScalarList<Scalars...>) {
  using Run = void (*)(ByteSource&);
  constexpr Run runs[] = {[](ByteSource& b) { Case<Scalars>(b).run(); }...};
  bytes.pick(runs)(bytes);
}

}  // namespace
}  // namespace KokkosOzaki::Testing

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  Kokkos::initialize(*argc, *argv);
  std::atexit([] { Kokkos::finalize(); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  KokkosOzaki::Testing::ByteSource bytes(data, size);
  KokkosOzaki::Testing::run_case(bytes, KokkosOzaki::Testing::FuzzScalars{});
  return 0;
}
