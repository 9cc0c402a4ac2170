// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"
#include "ScalarOperands.hpp"

// Sizes, strides and places in memory. Entries are integers, so that the exact product is known and every scaled entry
// is exact: the result is the exact product, rounded once.

namespace KokkosOzaki::Testing {
namespace {

template <class Case>
class GemmShapesTest : public ::testing::Test {};
TYPED_TEST_SUITE(GemmShapesTest, ContractCases, ContractNames);

/// Entry (i, j) of an endless matrix of integers of magnitude up to 2^bits, the same for every size.
template <class Scalar>
class Integers {
  using Traits = ScalarTraits<Scalar>;
  using Real = typename Traits::Real;

 public:
  Integers(std::uint64_t seed, int bits) : m_seed(seed), m_bits(bits) {}

  std::int64_t real(std::int64_t i, std::int64_t j) const { return number(i, j, 1); }
  std::int64_t imag(std::int64_t i, std::int64_t j) const { return Traits::is_complex ? number(i, j, 2) : 0; }
  Scalar operator()(std::int64_t i, std::int64_t j) const {
    return Traits::make(static_cast<Real>(real(i, j)), static_cast<Real>(imag(i, j)));
  }

 private:
  // SplitMix64 of the place.
  std::int64_t number(std::int64_t i, std::int64_t j, std::uint64_t part) const {
    std::uint64_t z = m_seed + part * 0x632be59bd9b4e019u +
                      static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u +
                      static_cast<std::uint64_t>(j) * 0xd1342543de82ef95u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const std::int64_t largest = (std::int64_t{1} << m_bits) - 1;
    return static_cast<std::int64_t>(z % static_cast<std::uint64_t>(2 * largest + 1)) - largest;
  }

  std::uint64_t m_seed;
  int m_bits;
};

/// An exact sum of products, below 2^63.
struct ExactEntry {
  std::int64_t re = 0, im = 0;

  template <class Scalar>
  void add(const Integers<Scalar>& a, const Integers<Scalar>& b, std::int64_t i, std::int64_t l,
           std::int64_t j) {
    re += a.real(i, l) * b.real(l, j) - a.imag(i, l) * b.imag(l, j);
    im += a.real(i, l) * b.imag(l, j) + a.imag(i, l) * b.real(l, j);
  }
  /// Rounded once, to nearest even.
  template <class Scalar>
  Scalar rounded() const {
    using Real = typename ScalarTraits<Scalar>::Real;
    return ScalarTraits<Scalar>::make(static_cast<Real>(re), static_cast<Real>(im));
  }
};

template <class Scalar>
constexpr int digits = std::numeric_limits<typename ScalarTraits<Scalar>::Real>::digits;

constexpr Place places[] = {{false, 0, 0, 1}, {true, 1, 3, 1}, {false, 3, 1, 1}, {true, 0, 0, 1},
                            {false, 1, 2, 2}, {true, 2, 1, 3}, {false, 1, 0, 1}, {true, 1, 0, 1}};

/// One product, of any size, against sums made here; returns whether it was right.
template <class Space, class Scalar>
void expect_exact(std::int64_t m, std::int64_t n, std::int64_t k, int bits, const GemmOptions& options,
                  std::size_t turn) {
  const Integers<Scalar> a(1, bits), b(2, bits);
  const char transA = trans_letters[turn % 3], transB = trans_letters[turn / 3 % 3];
  SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " trans " + transA +
               transB + " turn " + std::to_string(turn));
  const auto A = stored_operand<Scalar>(m, k, transA, places[turn % 8], a);
  const auto B = stored_operand<Scalar>(k, n, transB, places[turn / 2 % 8], b);
  const ScalarOperand<Scalar> C(m, n, places[turn / 4 % 8], [](auto, auto) { return Scalar(7); });
  run_gemm<Space, Scalar>(transA, transB, Scalar(1), A, B, Scalar(0), C, options);
  std::vector<ExactEntry> exact(static_cast<std::size_t>(m * n));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t l = 0; l < k; ++l) exact[static_cast<std::size_t>(j * m + i)].add(a, b, i, l, j);
  EXPECT_TRUE(C.equals([&](std::int64_t i, std::int64_t j) {
    return exact[static_cast<std::size_t>(j * m + i)].template rounded<Scalar>();
  }));
  EXPECT_TRUE(C.gaps_are_intact());
}

/// Of the sizes below double and complex<double> have all, the single formats every seventh: the number of a size is
/// what chooses the operations, orders and engines, and 7 has no factor with their numbers in common.
template <class Scalar>
constexpr std::size_t share_of_sizes = digits<Scalar> == 53 ? 1 : 7;

TYPED_TEST(GemmShapesTest, EverySizeIsExactForAllOperationsOrdersAndEngines) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  const std::vector<std::int64_t> sizes = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 63, 65};
  const std::int64_t largest = sizes.back();
  // products of more digits than the scalar has: the result is rounded
  const Integers<Scalar> a(1, digits<Scalar> / 2 + 1), b(2, digits<Scalar> / 2 + 1);
  // the exact products of all sizes are the leading entries of the product for the largest m and n
  std::vector<std::vector<ExactEntry>> exact;
  std::vector<ExactEntry> sum(static_cast<std::size_t>(largest * largest));
  for (std::int64_t k = 0; k <= largest; ++k) {
    exact.push_back(sum);
    for (std::int64_t j = 0; j < largest; ++j)
      for (std::int64_t i = 0; i < largest; ++i)
        sum[static_cast<std::size_t>(j * largest + i)].add(a, b, i, k, j);
  }
  std::vector<const char*> engines = usable_backends<Space>();
  engines.push_back(nullptr);
  std::size_t turn = 0;
  for (const std::int64_t m : sizes)
    for (const std::int64_t n : sizes)
      for (const std::int64_t k : sizes) {
        if (++turn % share_of_sizes<Scalar> != 0) continue;
        // the first space has the default engine and another one, the other spaces have the engines in turn
        const bool both = std::is_same_v<Space, typename SpacesWithThreads::first>;
        for (int pass = both ? 0 : 1; pass < 2; ++pass) {
          const char* engine = pass == 0 ? nullptr : engines[turn % engines.size()];
          GemmOptions options;
          options.backend = engine;
          const char transA = trans_letters[turn % 3], transB = trans_letters[turn / 3 % 3];
          const auto A = stored_operand<Scalar>(m, k, transA, places[turn / 5 % 8], a);
          const auto B = stored_operand<Scalar>(k, n, transB, places[turn / 7 % 8], b);
          const ScalarOperand<Scalar> C(m, n, places[turn / 11 % 8], [](auto, auto) { return Scalar(7); });
          run_gemm<Space, Scalar>(transA, transB, Scalar(1), A, B, Scalar(0), C, options);
          ASSERT_TRUE(C.equals([&](std::int64_t i, std::int64_t j) {
            return exact[static_cast<std::size_t>(k)][static_cast<std::size_t>(j * largest + i)]
                .template rounded<Scalar>();
          })) << m
              << "x" << n << "x" << k << " turn " << turn << " engine "
              << (engine != nullptr ? engine : "default");
          ASSERT_TRUE(C.gaps_are_intact()) << m << "x" << n << "x" << k << " turn " << turn;
        }
      }
}

TYPED_TEST(GemmShapesTest, MoreVectorsThanAGridHasBlocksAreExact) {
  // 65535 blocks of 4 vectors are 262140; 65536 is one more than a grid has in its second extent. The host has no
  // grids: there the first size is enough.
  using Sizes = std::array<std::int64_t, 3>;
  std::vector<Sizes> sizes = {{3, 262147, 5}};
  if (!is_host_space<typename TypeParam::Space>)
    sizes.insert(sizes.end(), {{262147, 2, 3}, {1, 1100003, 1}, {2, 65537, 130}});
  std::size_t turn = 0;
  for (const auto& [m, n, k] : sizes) {
    ++turn;
    expect_exact<typename TypeParam::Space, typename TypeParam::Scalar>(
        m, n, k, digits<typename TypeParam::Scalar> / 2 - 4, with_moduli(0, both_bounds[turn % 2]), turn * 5);
  }
}

TYPED_TEST(GemmShapesTest, LongInnerDimensionsAreExact) {
  using Sizes = std::array<std::int64_t, 3>;
  std::size_t turn = 0;
  // blocks of k of at most 131008 positions, the last of them short and long
  for (const auto& [m, n, k] : {Sizes{5, 3, 1000003}, Sizes{1, 2, (1 << 21) + 130}, Sizes{3, 17, 2 * 131008},
                                Sizes{17, 2, 3 * 131008 + 1}})
    expect_exact<typename TypeParam::Space, typename TypeParam::Scalar>(
        m, n, k, digits<typename TypeParam::Scalar> / 4, {}, turn++ * 7 + 1);
}

TYPED_TEST(GemmShapesTest, WorkspacesOfLongProductsStayBounded) {
  using Scalar = typename TypeParam::Scalar;
  using Plan = GemmPlan<typename TypeParam::Space, Scalar>;
  // complex: residues of the parts and of their sum, and half as many positions in a longest product
  constexpr bool is_complex = ScalarTraits<Scalar>::is_complex;
  const std::int64_t planes = is_complex ? 3 : 1, longest = (std::int64_t{1} << (is_complex ? 31 : 32)) - 1;
  GemmOptions options;
  const std::int64_t m = 100, n = 100, longest_block = 131008;
  // residues of one block of k; for longer ones only the records of the statistics of one vector, where they need more
  options.num_moduli = 14;
  const std::size_t of_a_block = Plan::workspace_bytes(m, n, longest_block, options);
  for (const std::int64_t k : {std::int64_t{131009}, std::int64_t{1000000}, std::int64_t{10000000},
                               std::int64_t{1} << 26, longest}) {
    const std::size_t bytes = Plan::workspace_bytes(m, n, k, options);
    const std::size_t records = static_cast<std::size_t>(k + 127) / 128 * 16;
    EXPECT_LE(bytes, std::max(of_a_block, records) + of_a_block / 8) << "k=" << k;
    if (k >= 1000000) {
      EXPECT_LT(bytes, static_cast<std::size_t>(14 * planes * (m + n) * k) / 5)
          << "k=" << k;  // s copies would be the whole
    }
  }
}

// ---- sizes that 32 bits do not hold -----------------------------------------------------------------

/// Memory of so many entries of which only the touched pages exist.
template <class Space, class Scalar>
class SparseMemory {
 public:
  explicit SparseMemory(std::int64_t entries) : m_bytes(static_cast<std::size_t>(entries) * sizeof(Scalar)) {
    if constexpr (is_host_space<Space>) {
      void* memory =
          mmap(nullptr, m_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (memory != MAP_FAILED) m_data = static_cast<Scalar*>(memory);
    } else {
      m_device = Kokkos::View<Scalar*, typename Space::memory_space>(
          Kokkos::view_alloc(std::string("sparse"), Kokkos::WithoutInitializing),
          static_cast<std::size_t>(entries));
      m_data = m_device.data();
    }
  }
  ~SparseMemory() {
    if constexpr (is_host_space<Space>)
      if (m_data != nullptr) munmap(m_data, m_bytes);
  }
  SparseMemory(const SparseMemory&) = delete;
  SparseMemory& operator=(const SparseMemory&) = delete;

  Scalar* data() const { return m_data; }
  void set(std::int64_t place, const Scalar& value) { copy(value, place, true); }
  Scalar get(std::int64_t place) {
    Scalar value{};
    copy(value, place, false);
    return value;
  }

 private:
  template <class Value>
  void copy(Value& value, std::int64_t place, bool to_memory) {
    using One = Kokkos::View<Scalar, typename Space::memory_space, Kokkos::MemoryUnmanaged>;
    Kokkos::View<Scalar, Kokkos::HostSpace> host("host");
    if (to_memory) {
      host() = value;
      Kokkos::deep_copy(One(m_data + place), host);
    } else {
      Kokkos::deep_copy(host, One(m_data + place));
      const_cast<Scalar&>(value) = host();
    }
  }

  std::size_t m_bytes;
  Kokkos::View<Scalar*, typename Space::memory_space> m_device;
  Scalar* m_data = nullptr;
};

TYPED_TEST(GemmShapesTest, LeadingDimensionsBeyond32BitsOfBytesAndOfEntries) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using View =
      Kokkos::View<Scalar**, Kokkos::LayoutStride, typename Space::memory_space, Kokkos::MemoryUnmanaged>;
  const std::int64_t m = 4, n = 2, k = 3;
  const Integers<Scalar> a(1, 10), b(2, 10);
  struct Strides {
    std::int64_t row, col;
  };
  // On a device all of the memory exists: 17 GB at a time.
  const std::int64_t far_bytes = 300000000, far_entries = (std::int64_t{1} << 31) + 11;
  for (const std::int64_t ld : {far_bytes, far_entries}) {
    if (!is_host_space<Space> && ld == far_entries) continue;
    for (int which = 0; which < 6; ++which) {  // one far operand, columns or rows apart
      SCOPED_TRACE("ld=" + std::to_string(ld) + " operand " + std::to_string(which));
      const auto strides = [&](int operand, std::int64_t rows) {
        if (which / 2 != operand) return Strides{1, rows};
        return which % 2 == 0 ? Strides{1, ld} : Strides{ld, 2};
      };
      const Strides sa = strides(0, m), sb = strides(1, k), sc = strides(2, m);
      SparseMemory<Space, Scalar> A((m - 1) * sa.row + (k - 1) * sa.col + 1),
          B((k - 1) * sb.row + (n - 1) * sb.col + 1), C((m - 1) * sc.row + (n - 1) * sc.col + 1);
      ASSERT_TRUE(A.data() != nullptr && B.data() != nullptr && C.data() != nullptr) << "no addresses";
      for (std::int64_t l = 0; l < k; ++l) {
        for (std::int64_t i = 0; i < m; ++i) A.set(i * sa.row + l * sa.col, a(i, l));
        for (std::int64_t j = 0; j < n; ++j) B.set(l * sb.row + j * sb.col, b(l, j));
      }
      const auto view = [](Scalar* data, std::int64_t rows, std::int64_t cols, const Strides& s) {
        return View(data,
                    Kokkos::LayoutStride(static_cast<std::size_t>(rows), static_cast<std::size_t>(s.row),
                                         static_cast<std::size_t>(cols), static_cast<std::size_t>(s.col)));
      };
      for (const Bound bound : both_bounds) {
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = 0; i < m; ++i) C.set(i * sc.row + j * sc.col, Scalar(5));
        gemm(Space{}, "N", "N", Scalar(1), view(A.data(), m, k, sa), view(B.data(), k, n, sb), Scalar(-1),
             view(C.data(), m, n, sc), with_moduli(14, bound));
        Space{}.fence();
        for (std::int64_t j = 0; j < n; ++j)
          for (std::int64_t i = 0; i < m; ++i) {
            ExactEntry exact;
            for (std::int64_t l = 0; l < k; ++l) exact.add(a, b, i, l, j);
            exact.re -= 5;
            EXPECT_TRUE(same_scalar(exact.rounded<Scalar>(), C.get(i * sc.row + j * sc.col)))
                << i << "," << j;
          }
      }
    }
  }
}

TYPED_TEST(GemmShapesTest, WorkspacesOfMoreBytesThan32BitsCount) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using Plan = GemmPlan<Space, Scalar>;
  const std::int64_t m = 65536, n = 32771;  // m n > 2^31
  GemmOptions options = with_moduli(4);
  options.moduli_per_group = 1;
  // INT32 products of one modulus and INT8 residues of the result for four; 2 m n + m > 2^32 as well. Complex: three
  // products, two parts. TestDevice computes a real product of this size.
  std::int64_t least = ScalarTraits<Scalar>::is_complex ? 3 * 4 + 2 * 4 : 4 + 4;
  // An engine that reduces stores no products of real numbers.
  const bool reduces = std::string(Plan(Space{}, 'N', 'N', 1, 1, 1, options).backend_name()) == "wgmma";
  if (reduces && !ScalarTraits<Scalar>::is_complex) least = 4;
  for (const auto& [rows, cols, k] :
       {std::array<std::int64_t, 3>{m, n, 1}, std::array<std::int64_t, 3>{46341, 46341, 16}}) {
    const std::size_t needed = Plan::workspace_bytes(rows, cols, k, options);
    EXPECT_GE(needed, static_cast<std::size_t>(least * rows * cols));
    EXPECT_LE(needed, static_cast<std::size_t>((least + 1) * rows * cols));
  }
}

TYPED_TEST(GemmShapesTest, EmptyOperandsNeedNoMemory) {
  using Scalar = typename TypeParam::Scalar;
  using Space = typename TypeParam::Space;
  using View = Kokkos::View<Scalar**, Kokkos::LayoutLeft, SharedSpace>;
  using Unmanaged = Kokkos::View<Scalar**, Kokkos::LayoutRight, SharedSpace, Kokkos::MemoryUnmanaged>;
  for (const char transA : trans_letters)
    for (const char transB : trans_letters) {
      const char letters[] = {transA, '\0', transB, '\0'};
      gemm(Space{}, letters, letters + 2, Scalar(1), View(), View(), Scalar(0), View());  // 0 x 0 x 0
      const auto shape = [](char trans, std::size_t rows, std::size_t cols) {
        return is_turned(trans) ? Unmanaged(nullptr, cols, rows) : Unmanaged(nullptr, rows, cols);
      };
      // no rows, no columns, and no positions but a result
      gemm(Space{}, letters, letters + 2, Scalar(1), shape(transA, 0, 5), shape(transB, 5, 3), Scalar(2),
           Unmanaged(nullptr, 0, 3));
      gemm(Space{}, letters, letters + 2, Scalar(1), shape(transA, 4, 5), shape(transB, 5, 0), Scalar(2),
           Unmanaged(nullptr, 4, 0));
      for (const bool scales : {false, true}) {
        const auto before = [&](std::int64_t i, std::int64_t j) {
          return scales ? Scalar(static_cast<float>(i + 2 * j))
                        : Scalar(std::numeric_limits<double>::quiet_NaN());
        };
        for (const Place& place : places) {
          const ScalarOperand<Scalar> C(4, 3, place, before);
          gemm(Space{}, letters, letters + 2, Scalar(1), shape(transA, 4, 0), shape(transB, 0, 3),
               Scalar(scales ? 2 : 0), C.view());
          Space{}.fence();
          EXPECT_TRUE(C.equals([&](std::int64_t i, std::int64_t j) {
            return scales ? Scalar(static_cast<float>(2 * (i + 2 * j))) : Scalar(0);
          }));
          EXPECT_TRUE(C.gaps_are_intact());
        }
      }
    }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
