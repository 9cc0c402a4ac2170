// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "stages/KokkosOzaki_Reconstruct.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "Vectors.hpp"
#include "stages/KokkosOzaki_Reduce.hpp"
#include "stages/KokkosOzaki_Repair.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Impl::Epilogue;
using Impl::flagged_vector;
using Impl::MatrixRef;
using Impl::zero_vector;

constexpr std::int32_t some_exponent = 3;  // of a vector that is neither zero nor flagged

mpz_class from_words(const std::uint32_t* word, int words) {
  mpz_class x = 0;
  for (int j = words - 1; j >= 0; --j) x = (x << 32) + word[j];
  return (word[words - 1] >> 31) != 0 ? mpz_class(x - power_of_two(32 * words)) : x;
}

void to_words(const mpz_class& x, int words, std::uint32_t* word) {
  for (int j = 0; j < words; ++j)
    word[j] = static_cast<std::uint32_t>(mpz_class((x >> (32 * j)) & 0xFFFFFFFFul).get_ui());
}

/// Integers of a matrix whose arithmetic is exact but whose conversion is hard: any number of bits, ties,
/// powers of two.
class IntegerSource {
 public:
  IntegerSource(Random& random, int s)
      : m_random(random), m_range(reference_range(s)), m_bits(bit_length_of(m_range)) {}

  mpz_class next() {
    mpz_class x;
    switch (m_random.below(12)) {
      case 0:
        x = m_range - static_cast<long>(m_random.below(4));
        break;
      case 1:
        x = static_cast<long>(m_random.below(3));
        break;
      case 2:
        x = power_of_two(m_random.below(m_bits)) + static_cast<long>(m_random.between(-1, 1));
        break;
      case 3:  // few significant bits: ties in the subnormal range
        x = mpz_class(static_cast<long>(m_random.below(64)))
            << static_cast<mp_bitcnt_t>(m_random.below(m_bits));
        break;
      case 4:
      case 5: {  // half an ulp beyond 53 bits, exactly or nearly
        const mpz_class significand = power_of_two(53) + static_cast<long>(m_random.bits() >> 12);
        x = ((significand * 2 + 1) << static_cast<mp_bitcnt_t>(m_random.below(100))) +
            static_cast<long>(m_random.between(-1, 1));
        break;
      }
      case 6:  // rounds up to a power of two
        x = power_of_two(m_random.between(50, 155)) - static_cast<long>(m_random.below(3));
        break;
      default: {
        for (int i = 0; i < 3; ++i) x = (x << 64) + mpz_class(m_random.bits());
        x >>= static_cast<mp_bitcnt_t>(m_random.between(192 - m_bits, 191));
      }
    }
    if (abs(x) > m_range) x %= m_range + 1;
    return (m_random.bits() & 1) != 0 ? mpz_class(-x) : x;
  }
  std::int64_t bits() const { return m_bits; }

 private:
  Random& m_random;
  mpz_class m_range;
  std::int64_t m_bits;
};

// ---- the integer
// -----------------------------------------------------------------------------------------------------

TEST(CrtWords, ReconstructEveryIntegerOfTheRange) {
  Random random(70);
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
    const Impl::ModuliTable& table = table_of(s);
    const std::vector<int> w = reference_inverses(s);
    const auto expect = [&](const mpz_class& x) {
      std::int8_t y[2 * Impl::max_moduli];  // every second byte
      for (int p = 0; p < s; ++p)
        y[2 * p] = static_cast<std::int8_t>(reference_centered(x * at(w, p), table.modulus[p]));
      std::uint32_t word[Impl::max_words] = {};
      Impl::crt_words(y, 2, table, word);
      ASSERT_EQ(from_words(word, table.words), x) << "s = " << s;
    };
    const mpz_class range = reference_range(s);
    for (int offset = 0; offset < 100; ++offset) {
      expect(range - offset);
      expect(offset - range);
      expect(offset - 50);
    }
    for (int p = 0; p < s; ++p)
      for (int offset = -2; offset <= 2; ++offset) {
        const mpz_class near = reference_product(s) / Impl::moduli[p] + offset;
        for (const mpz_class& x : {near, mpz_class(-near), mpz_class(near * (Impl::moduli[p] / 2 - 2))})
          if (abs(x) <= range) expect(x);
      }
    IntegerSource source(random, s);
    for (int trial = 0; trial < 5000; ++trial) expect(source.next());
  }
}

// ---- one value
// -------------------------------------------------------------------------------------------------------

void expect_rounded(const mpz_class& x, std::int32_t exponent) {
  for (int words = 1; words <= Impl::max_words; ++words) {
    if (bit_length_of(x) > 32 * words - 1) continue;
    for (const mpz_class& signed_x : {x, mpz_class(-x)}) {
      std::uint32_t word[Impl::max_words];
      to_words(signed_x, words, word);
      ASSERT_TRUE(
          equal_values(reference_double(signed_x, exponent), Impl::round_to_double(word, words, exponent)))
          << signed_x << " 2^" << exponent << " from " << words << " words";
    }
  }
}

TEST(RoundToDouble, RoundsOnceInTheWholeRange) {
  Random random(71);
  IntegerSource source(random, Impl::max_moduli);
  for (int trial = 0; trial < 60000; ++trial) {
    mpz_class x = source.next();
    if (random.below(3) == 0) x >>= static_cast<mp_bitcnt_t>(random.below(150));
    const auto top = static_cast<std::int32_t>(bit_length_of(x)) - 1;
    switch (random.below(4)) {
      case 0:
        expect_rounded(x, static_cast<std::int32_t>(random.between(-1000, 800)));
        break;
      case 1:
        expect_rounded(x, static_cast<std::int32_t>(random.between(-1080, -1020)) - top);
        break;  // subnormal
      case 2:
        expect_rounded(x, static_cast<std::int32_t>(random.between(1020, 1026)) - top);
        break;  // overflow
      default:
        expect_rounded(x, static_cast<std::int32_t>(random.between(-2400, 2300)));
    }
  }
}

TEST(RoundToDouble, TiesAndLimits) {
  for (int bits = 1; bits <= 155; ++bits)
    for (int offset = -2; offset <= 2; ++offset) {
      const mpz_class x = power_of_two(bits) + offset;
      for (const int top : {-1076, -1075, -1074, -1073, -1023, -1022, -1021, 0, 1022, 1023, 1024})
        expect_rounded(x, top - bits);
      const mpz_class halfway =
          (power_of_two(std::max(bits - 54, 0)) * (power_of_two(54) - 1)) + offset;  // up to a power of two
      for (const int top : {-1075, -1023, -1022, 0, 1023})
        expect_rounded(halfway, top - static_cast<int>(bit_length_of(halfway)) + 1);
    }
  std::uint32_t one[1] = {1}, minus_one[1] = {~std::uint32_t{0}}, zero[5] = {};
  EXPECT_TRUE(equal_values(0.0, Impl::round_to_double(zero, 5, 5)));
  EXPECT_TRUE(equal_values(0.0, Impl::round_to_double(one, 1, -1075)));  // a tie, to even
  one[0] = 3;
  EXPECT_TRUE(equal_values(0x1p-1074 * 2, Impl::round_to_double(one, 1, -1075)));
  EXPECT_TRUE(equal_values(-0.0, Impl::round_to_double(minus_one, 1, -1076)));
}

TEST(Epilogue, HasTwoRoundingsAtMost) {
  Random random(72);
  for (int trial = 0; trial < 20000; ++trial) {
    const double t = random.real(-30, 30), c_in = random.real(-30, 30);
    for (const double alpha : {1.0, -1.0, 0.3, 2.0, random.real(-5, 5)})
      for (const double beta : {0.0, -0.0, 1.0, -1.7, random.real(-5, 5)}) {
        double c = beta == 0 ? quiet_nan : c_in;
        Impl::apply_epilogue(t, {alpha, beta}, c);
        ASSERT_TRUE(equal_values(reference_epilogue(t, alpha, beta, c_in), c))
            << t << ", " << alpha << ", " << beta;
      }
  }
}

// ---- the stage
// -------------------------------------------------------------------------------------------------------

/// A matrix in memory with gaps, which nobody may touch.
class PlacedMatrix {
 public:
  PlacedMatrix(std::int64_t rows, std::int64_t cols, std::int64_t row_stride, std::int64_t col_stride)
      : memory(static_cast<std::size_t>((rows - 1) * row_stride + (cols - 1) * col_stride + 1), poison),
        ref{memory.data(), rows, cols, row_stride, col_stride} {}
  PlacedMatrix(const PlacedMatrix&) = delete;
  PlacedMatrix& operator=(const PlacedMatrix&) = delete;

  double& operator()(std::int64_t i, std::int64_t j) {
    return ref.data[i * ref.row_stride + j * ref.col_stride];
  }

  /// Number of elements between the entries that are no longer what they were.
  std::int64_t touched_gaps() const {
    std::vector<bool> inside(memory.size(), false);
    for (std::int64_t j = 0; j < ref.cols; ++j)
      for (std::int64_t i = 0; i < ref.rows; ++i)
        inside[static_cast<std::size_t>(i * ref.row_stride + j * ref.col_stride)] = true;
    std::int64_t touched = 0;
    for (std::size_t i = 0; i < memory.size(); ++i)
      touched += !inside[i] && !same_value(memory[i], poison) ? 1 : 0;
    return touched;
  }

  static constexpr double poison = 0x1.badp77;
  std::vector<double> memory;
  MatrixRef<double> ref;
};

struct Strides {
  const char* name;
  std::int64_t row, col;
};
std::vector<Strides> strides_for(std::int64_t m, std::int64_t n) {
  return {{"column-major", 1, m},
          {"column-major, gaps", 1, m + 3},
          {"row-major", n, 1},
          {"nothing contiguous", 2, 2 * m + 1}};
}

/// Reduction and reconstruction in one pass over products whose residues are those of the block.
struct FusedCudaForm : CudaForm {
  static constexpr const char* name = "fused";
};

template <class Types, class... More>
struct ExtendedTypes;
template <class... Types, class... More>
struct ExtendedTypes<::testing::Types<Types...>, More...> {
  using type = ::testing::Types<Types..., More...>;
};
#define KOKKOSOZAKI_FUSED_VARIANT(SPACE) , StageVariant<SPACE, FusedCudaForm>
using ReconstructVariants =
    typename ExtendedTypes<StageVariants KOKKOSOZAKI_IF_CUDA(KOKKOSOZAKI_FUSED_VARIANT)>::type;
#undef KOKKOSOZAKI_FUSED_VARIANT

template <class Variant>
class ReconstructStage : public StageTest<Variant> {
 protected:
  static constexpr bool is_fused = std::is_same_v<typename Variant::Form, FusedCudaForm>;
  static constexpr std::int64_t padding = Variant::Form::row_padding;

  /// One block of C.
  struct Block {
    int s;
    std::int64_t m, n;
    Rows<mpz_class> x;
    std::vector<std::int32_t> row_exponent, col_exponent, row_alpha, col_alpha;
    Rows<double> c_in;
    Epilogue epilogue;
  };

  std::vector<std::int8_t> planes(const Block& b, std::int64_t ld, std::int64_t stride) {
    std::vector<std::int8_t> Y(static_cast<std::size_t>(stride * b.s), 0x33);
    for (int p = 0; p < b.s; ++p) {
      const int w = reference_inverse(b.s, p);
      for (std::int64_t j = 0; j < b.n; ++j)
        for (std::int64_t i = 0; i < b.m; ++i)
          at(Y, p * stride + j * ld + i) =
              static_cast<std::int8_t>(reference_centered(at(b.x, i, j) * w, Impl::moduli[p]));
    }
    return Y;
  }

  /// Products that the reduction turns into Y: y (M_s / m_p) and any multiple of m_p, in four signed bytes.
  std::vector<std::int32_t> products_of(const Block& b, const std::vector<std::int8_t>& Y, std::int64_t ld,
                                        std::int64_t stride) {
    constexpr std::int64_t largest = 0x7F7F7F7F;
    std::vector<std::int32_t> P(static_cast<std::size_t>(stride * b.s), -1);
    for (int p = 0; p < b.s; ++p) {
      const std::int64_t m = Impl::moduli[p];
      const std::int64_t cofactor =
          mpz_class(mpz_class(reference_product(b.s) / Impl::moduli[p]) % Impl::moduli[p]).get_si();
      for (std::int64_t j = 0; j < b.n; ++j)
        for (std::int64_t i = 0; i < b.m; ++i) {
          const std::int64_t smallest = at(Y, p * stride + j * ld + i) * cofactor % m;
          const std::int64_t multiples = (largest - m) / m;
          at(P, p * stride + j * ld + i) =
              static_cast<std::int32_t>(smallest + m * m_random.between(-multiples, multiples));
        }
    }
    return P;
  }

  void run(const Block& b, const std::vector<std::int8_t>& Y, std::int64_t ld, std::int64_t stride,
           PlacedMatrix& C) {
    const Impl::ReconstructBlock block{
        Y.data(),           stride, ld, b.row_exponent.data(), b.col_exponent.data(), b.row_alpha.data(),
        b.col_alpha.data(), b.s};
    if constexpr (is_fused) {
      const std::vector<std::int32_t> P = products_of(b, Y, ld, stride);
      std::vector<std::int8_t> reduced = Y;
      Impl::reduce(this->exec, nullptr, {0, b.s, b.m, b.n, ld, P.data(), stride, reduced.data(), stride},
                   &table_of(b.s), false);
      Impl::ReconstructBlock without_residues = block;
      without_residues.Y = nullptr;
      // on CUDA only, and so found by its arguments
      reduce_reconstruct(this->exec, P.data(), without_residues, &table_of(b.s), b.s, b.epilogue, C.ref);
      this->exec.fence();
      ASSERT_EQ(reduced, Y);
    } else {
      Impl::reconstruct(this->exec, this->kernels, block, &table_of(b.s), b.epilogue, C.ref);
      this->exec.fence();
    }
  }

  void expect(const Block& b) {
    const std::int64_t ld = Impl::round_up(b.m, padding) + 7 * padding, stride = ld * b.n + 9 * padding;
    const std::vector<std::int8_t> Y = planes(b, ld, stride);
    Rows<double> expected = b.c_in;
    for (std::int64_t i = 0; i < b.m; ++i)
      for (std::int64_t j = 0; j < b.n; ++j)
        if (at(b.row_exponent, i) != flagged_vector && at(b.col_exponent, j) != flagged_vector)
          at(at(expected, i), j) =
              reference_epilogue(reference_double(at(b.x, i, j), -(at(b.row_alpha, i) + at(b.col_alpha, j))),
                                 b.epilogue.alpha, b.epilogue.beta, at(b.c_in, i, j));
    for (const Strides& strides : strides_for(b.m, b.n)) {
      PlacedMatrix C(b.m, b.n, strides.row, strides.col);
      for (std::int64_t i = 0; i < b.m; ++i)
        for (std::int64_t j = 0; j < b.n; ++j) C(i, j) = at(b.c_in, i, j);
      run(b, Y, ld, stride, C);
      for (std::int64_t i = 0; i < b.m; ++i)
        for (std::int64_t j = 0; j < b.n; ++j)
          if (!same_value(at(expected, i, j), C(i, j)))
            FAIL() << strides.name << ", entry (" << i << ", " << j << ") of X = " << at(b.x, i, j)
                   << ", exponents " << at(b.row_alpha, i) << " + " << at(b.col_alpha, j) << ": "
                   << equal_values(at(expected, i, j), C(i, j)).message();
      ASSERT_EQ(C.touched_gaps(), 0) << strides.name;
    }
  }

 private:
  Random m_random{75};
};
TYPED_TEST_SUITE(ReconstructStage, ReconstructVariants, VariantNames);

/// From the listed X and exponents to the listed bits of C, with the repair of flagged rows and columns.
TYPED_TEST(ReconstructStage, EqualsTheVectors) {
  int cases = 0, flagged = 0;
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_stages) continue;
    SCOPED_TRACE(v.name);
    ++cases;
    typename TestFixture::Block b{v.num_moduli,
                                  v.m,
                                  v.n,
                                  v.x,
                                  stored_exponents(v.stat_a),
                                  stored_exponents(v.stat_b),
                                  v.alpha_a,
                                  v.alpha_b,
                                  v.c_in,
                                  {v.alpha, v.beta}};
    const std::int64_t ld = Impl::round_up(v.m, Impl::vector_padding), stride = ld * v.n;
    const std::vector<std::int8_t> Y = this->planes(b, ld, stride);
    for (std::int64_t p = 0; p < size_of(v.y); ++p)
      for (std::int64_t i = 0; i < v.m; ++i)
        for (std::int64_t j = 0; j < v.n; ++j)
          ASSERT_EQ(at(Y, p * stride + j * ld + i), at(at(v.y, p), i, j));
    const auto control = std::make_unique<Impl::Control>(Impl::Control{0, 0});
    for (const auto& side : {v.stat_a, v.stat_b})
      for (const VectorStatistics& s : side)
        if (s.kind == VectorStatistics::Kind::flagged) control->any_flagged = 1;
    flagged += control->any_flagged;
    for (const Strides& strides : strides_for(v.m, v.n)) {
      PlacedMatrix C(v.m, v.n, strides.row, strides.col);
      for (std::int64_t i = 0; i < v.m; ++i)
        for (std::int64_t j = 0; j < v.n; ++j) C(i, j) = v.c_in.empty() ? quiet_nan : at(v.c_in, i, j);
      this->run(b, Y, ld, stride, C);
      const PlacedVectors rows(v.a, {"", v.k, 1}), cols(v.b, {"", 1, v.n});
      Impl::repair(this->exec, rows.set(), cols.set(), b.row_exponent.data(), b.col_exponent.data(),
                   control.get(), b.epilogue, C.ref);
      this->exec.fence();
      for (std::int64_t i = 0; i < v.m; ++i)
        for (std::int64_t j = 0; j < v.n; ++j)
          ASSERT_TRUE(equal_values(at(v.c, i, j), C(i, j)))
              << strides.name << ", entry (" << i << ", " << j << ")";
      ASSERT_EQ(C.touched_gaps(), 0) << strides.name;
    }
  }
  EXPECT_GT(cases, 250);
  EXPECT_EQ(flagged, 4);
}

/// Where the values of a block lie.
enum class Region { normal, subnormal, overflow, anywhere };  // 0 .. 3

TYPED_TEST(ReconstructStage, EqualsGmpForEveryNumberOfModuli) {
  Random random(73);
  const std::vector<Epilogue> epilogues = {{1, 0}, {-2.5, 0}, {1, 1}, {0.3, -1.7}, {1, 0.1}, {-1, -0.0}};
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s)
    for (int block = 0; block < 24; ++block) {
      const auto region = static_cast<Region>(block % 4);
      const std::int64_t m = random.between(1, 90), n = random.between(1, 9);
      SCOPED_TRACE("s = " + std::to_string(s) + ", region " + std::to_string(static_cast<int>(region)) +
                   ", " + std::to_string(m) + " x " + std::to_string(n));
      IntegerSource source(random, s);
      typename TestFixture::Block b{s,  m,  n,  {}, {},
                                    {}, {}, {}, {}, at(epilogues, random.below(size_of(epilogues)))};
      const auto exponent = [&] {
        // Half of the exponent of a value with half of the bits.
        const auto half_bits = static_cast<int>(source.bits() / 4);
        switch (region) {
          case Region::normal:
            return static_cast<std::int32_t>(random.between(-400, 400));
          case Region::subnormal:
            return static_cast<std::int32_t>(random.between(505, 560)) + half_bits;
          case Region::overflow:
            return static_cast<std::int32_t>(random.between(-520, -500)) + half_bits;
          default:
            return static_cast<std::int32_t>(random.between(-960, 1152));
        }
      };
      for (std::int64_t i = 0; i < m; ++i) {
        b.x.emplace_back();
        b.c_in.emplace_back();
        for (std::int64_t j = 0; j < n; ++j) {
          b.x.back().push_back(source.next());
          b.c_in.back().push_back(b.epilogue.beta == 0          ? quiet_nan
                                  : region == Region::subnormal ? random.real(-1074, -1020)
                                                                : random.real(-1000, 1000));
        }
        b.row_alpha.push_back(exponent());
        b.row_exponent.push_back(random.below(20) == 0   ? flagged_vector
                                 : random.below(20) == 0 ? zero_vector
                                                         : some_exponent);
      }
      for (std::int64_t j = 0; j < n; ++j) {
        b.col_alpha.push_back(exponent());
        b.col_exponent.push_back(random.below(20) == 0 ? flagged_vector : some_exponent);
      }
      ASSERT_NO_FATAL_FAILURE(this->expect(b));
    }
}

TYPED_TEST(ReconstructStage, SizesAroundPiecesAndLanes) {
  Random random(74);
  for (const std::int64_t m : {1, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 255, 256, 257, 513})
    for (const bool with_beta : {false, true}) {
      const int s = static_cast<int>(random.between(13, 16));
      SCOPED_TRACE(std::to_string(m) + " rows, s = " + std::to_string(s));
      IntegerSource source(random, s);
      typename TestFixture::Block b{s, m, 2, {}, {}, {}, {}, {}, {}, {1.0, with_beta ? 2.5 : 0.0}};
      for (std::int64_t i = 0; i < m; ++i) {
        b.x.push_back({source.next(), source.next()});
        b.c_in.push_back({random.real(-3, 3), random.real(-3, 3)});
        b.row_alpha.push_back(static_cast<std::int32_t>(random.between(-30, 60)));
        b.row_exponent.push_back(some_exponent);
      }
      b.col_alpha = {10, -7};
      b.col_exponent = {some_exponent, some_exponent};
      ASSERT_NO_FATAL_FAILURE(this->expect(b));
    }
}

/// Differences of nearly equal sums and results that are exactly zero.
TYPED_TEST(ReconstructStage, ExtremesOfTheRange) {
  for (int s = Impl::min_moduli; s <= Impl::max_moduli; ++s) {
    SCOPED_TRACE(s);
    const mpz_class range = reference_range(s);
    typename TestFixture::Block b{s, 40, 3, {}, {}, {}, {}, {}, {}, {1.0, 0.0}};
    for (int i = 0; i < 40; ++i) {
      const mpz_class small = i % 4, large = range - i;
      b.x.push_back(i % 2 == 0 ? std::vector<mpz_class>{large, -large, small}
                               : std::vector<mpz_class>{-small, small, -large});
      b.c_in.push_back({quiet_nan, quiet_nan, quiet_nan});
      b.row_alpha.push_back(20 + i);
      b.row_exponent.push_back(some_exponent);
    }
    b.col_alpha = {0, 1000, -1000};
    b.col_exponent = {some_exponent, some_exponent, some_exponent};
    ASSERT_NO_FATAL_FAILURE(this->expect(b));
  }
}

// ---- alpha = 0 or k = 0
// ------------------------------------------------------------------------------------------------

template <class ExecutionSpace>
class ScaleC : public ::testing::Test {};
TYPED_TEST_SUITE(ScaleC, EnabledSpaces, SpaceNames);

TYPED_TEST(ScaleC, EqualsTheVectorsAndLeavesGapsAlone) {
  int cases = 0;
  for (const GemmVector& v : f64_vectors()) {
    if (v.has_stages) continue;
    SCOPED_TRACE(v.name);
    ++cases;
    for (const Strides& strides : strides_for(v.m, v.n)) {
      PlacedMatrix C(v.m, v.n, strides.row, strides.col);
      for (std::int64_t i = 0; i < v.m; ++i)
        for (std::int64_t j = 0; j < v.n; ++j) C(i, j) = at(v.c_in, i, j);
      const TypeParam exec;
      Impl::scale_c(exec, v.beta, C.ref);
      exec.fence();
      for (std::int64_t i = 0; i < v.m; ++i)
        for (std::int64_t j = 0; j < v.n; ++j)
          EXPECT_TRUE(equal_values(at(v.c, i, j), C(i, j))) << strides.name;
      EXPECT_EQ(C.touched_gaps(), 0) << strides.name;
    }
  }
  EXPECT_EQ(cases, 18);
}

}  // namespace
}  // namespace KokkosOzaki::Testing
