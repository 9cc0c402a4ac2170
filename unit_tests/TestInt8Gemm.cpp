// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_Int8Gemm.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>

#include "KokkosOzaki_Backends.hpp"
#include "KokkosOzaki_Error.hpp"
#include "KokkosOzaki_config.hpp"
#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "Vectors.hpp"
#include "host/KokkosOzaki_HostKernels.hpp"
#include "impl/KokkosOzaki_Planes.hpp"
#include "stages/KokkosOzaki_Multiply.hpp"

#if defined(KOKKOSOZAKI_HAVE_WGMMA)
#include "wgmma/KokkosOzaki_WgmmaKernels.hpp"
#endif
#if defined(KOKKOSOZAKI_ENABLE_ONEDNN)
#include "onednn/KokkosOzaki_Int8Gemm_OneDnn.hpp"
#endif

namespace KokkosOzaki::Testing {
namespace {

using Impl::PlaneGeometry;

/// Sizes of one run, how many planes, and what the memory around them looks like.
struct Problem {
  std::int64_t m, n, k;
  int count = 1;
  bool with_gaps = false;  // leading dimensions and plane strides larger than needed
  std::int64_t step = 1;   // every so many rows and columns, and the last ones, are compared
};

std::string to_string(const Problem& p) {
  return "m=" + std::to_string(p.m) + " n=" + std::to_string(p.n) + " k=" + std::to_string(p.k) +
         " planes=" + std::to_string(p.count) + (p.with_gaps ? " gaps" : "");
}

PlaneGeometry geometry_of(const Problem& p) {
  const std::int64_t gap = p.with_gaps ? 1 : 0;
  PlaneGeometry g;
  g.m = p.m, g.n = p.n, g.k = p.k, g.count = p.count;
  g.lda = Impl::round_up(p.k, 64) + 128 * gap;
  g.ldb = Impl::round_up(p.k, 64) + 64 * gap;
  g.ldp = Impl::round_up(p.m, 16) + 16 * gap;
  g.stride_a = g.lda * Impl::round_up(p.m, 16) + 64 * gap;
  g.stride_b = g.ldb * Impl::round_up(p.n, 16) + 192 * gap;
  g.stride_p = g.ldp * Impl::round_up(p.n, 16) + 32 * gap;
  return g;
}

using Int8Buffer = Kokkos::View<std::int8_t*, SharedSpace>;

/// Planes as PlaneGeometry promises them: entry(plane, vector, position), zeros up to the next multiples of
/// 64 positions and `padding` vectors, and other numbers, which no engine may use, behind those.
template <class Entry>
Int8Buffer make_planes(std::int64_t vectors, std::int64_t k, std::int64_t ld, std::int64_t stride, int count,
                       const Entry& entry, std::int64_t padding = 16) {
  constexpr std::int8_t poison = 0x5B;
  const Int8Buffer memory = buffer<std::int8_t>(stride * count, poison);
  for (int p = 0; p < count; ++p)
    for (std::int64_t v = 0; v < Impl::round_up(vectors, padding); ++v)
      for (std::int64_t l = 0; l < Impl::round_up(k, 64); ++l)
        memory(static_cast<std::size_t>(p * stride + v * ld + l)) =
            v < vectors && l < k ? entry(p, v, l) : std::int8_t{0};
  return memory;
}

/// \brief Runs the engine and compares every entry with a loop over 64-bit integers, and what must not be
/// touched. Operands and workspace lie where the library has them: in the memory of the space.
template <class ExecutionSpace, class EntryA, class EntryB>
void expect_exact(const std::string& name, const Problem& problem, bool accumulate, const EntryA& entry_a,
                  const EntryB& entry_b) {
  using Memory = typename ExecutionSpace::memory_space;
  SCOPED_TRACE(name + " on " + ExecutionSpace::name() + ": " + to_string(problem) +
               (accumulate ? " accumulate" : ""));
  const PlaneGeometry g = geometry_of(problem);
  const std::unique_ptr<Impl::Int8Gemm<ExecutionSpace>> engine =
      Impl::make_int8_gemm<ExecutionSpace>(name.c_str());
  ASSERT_STREQ(engine->name(), name.c_str());
  const std::int64_t padding = engine->zero_padding(g);
  ASSERT_EQ(16 % padding, 0);
  const Int8Buffer a = make_planes(g.m, g.k, g.lda, g.stride_a, g.count, entry_a, padding);
  const Int8Buffer b = make_planes(g.n, g.k, g.ldb, g.stride_b, g.count, entry_b, padding);
  const auto before = [](std::int64_t index) {
    return static_cast<std::int32_t>(index * 7919 % 200003) - 100000;
  };
  const auto P = buffer<std::int32_t>(g.stride_p * g.count, 0);
  for (std::int64_t i = 0; i < g.stride_p * g.count; ++i) P(static_cast<std::size_t>(i)) = before(i);

  const ExecutionSpace exec;
  engine->prepare();
  ASSERT_LT(problem.k << 14, std::int64_t{1} << 31) << "the sums of the test must fit INT32";
  const std::size_t workspace_bytes = engine->workspace_bytes(g), guard_bytes = 64;
  const Kokkos::View<char*, Memory> workspace(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("workspace")),
      workspace_bytes + guard_bytes);
  const auto guard =
      Kokkos::subview(workspace, std::make_pair(workspace_bytes, workspace_bytes + guard_bytes));
  const Kokkos::View<char*, Kokkos::HostSpace> guard_on_host("guard", guard_bytes);
  Kokkos::deep_copy(guard_on_host, static_cast<char>(0x6D));
  Kokkos::deep_copy(guard, guard_on_host);
  Kokkos::deep_copy(guard_on_host, static_cast<char>(0));
  const auto device_a = Kokkos::create_mirror_view_and_copy(Memory(), a),
             device_b = Kokkos::create_mirror_view_and_copy(Memory(), b);
  const auto device_P = Kokkos::create_mirror_view_and_copy(Memory(), P);
  Impl::multiply(exec, *engine, g, device_a.data(), device_b.data(), device_P.data(), accumulate,
                 workspace.data());
  exec.fence();
  Kokkos::deep_copy(P, device_P);
  Kokkos::deep_copy(guard_on_host, guard);
  for (std::size_t i = 0; i < guard_bytes; ++i) ASSERT_EQ(guard_on_host(i), 0x6D) << "behind the workspace";

  const auto is_compared = [&](std::int64_t v, std::int64_t vectors) {
    return v % problem.step == 0 || v == vectors - 1;
  };
  for (std::int64_t p = 0; p < g.count; ++p)
    for (std::int64_t j = 0; j < g.n; ++j)
      for (std::int64_t i = 0; i < g.m; ++i) {
        if (!is_compared(i, g.m) || !is_compared(j, g.n)) continue;
        const std::int8_t* x = a.data() + p * g.stride_a + i * g.lda;
        const std::int8_t* y = b.data() + p * g.stride_b + j * g.ldb;
        const std::int64_t index = p * g.stride_p + j * g.ldp + i;
        std::int64_t sum = accumulate ? before(index) : 0;
        for (std::int64_t l = 0; l < g.k; ++l) sum += x[l] * y[l];
        if (P(static_cast<std::size_t>(index)) != sum)
          FAIL() << "plane " << p << ", entry (" << i << ", " << j << "): expected " << sum << ", got "
                 << P(static_cast<std::size_t>(index));
      }
  // Rows and columns up to the next multiple of 16 are the engine's; the rest is not.
  for (std::int64_t index = 0; index < g.stride_p * g.count; ++index) {
    const std::int64_t in_plane = index % g.stride_p, i = in_plane % g.ldp, j = in_plane / g.ldp;
    if (i >= Impl::round_up(g.m, 16) || j >= Impl::round_up(g.n, 16)) {
      ASSERT_EQ(P(static_cast<std::size_t>(index)), before(index)) << "outside at " << index;
    }
  }
}

TEST(Int8GemmGeometry, BlocksOfAllSizesArePaddedAsTheEnginesAreTold) {
  const auto keeps_the_promise = [](const PlaneGeometry& g) {
    const std::int64_t rows = Impl::round_up(g.m, 16), cols = Impl::round_up(g.n, 16),
                       positions = Impl::round_up(g.k, 64);
    return g.lda % 64 == 0 && g.ldb % 64 == 0 && g.lda >= positions && g.ldb >= positions &&
           g.ldp % 16 == 0 && g.ldp >= rows && g.stride_a % 64 == 0 && g.stride_b % 64 == 0 &&
           g.stride_p % 16 == 0 && g.stride_a >= g.lda * rows && g.stride_b >= g.ldb * cols &&
           g.stride_p >= g.ldp * cols;
  };
  for (std::int64_t m = 1; m <= 70; ++m)
    for (std::int64_t n = 1; n <= 70; ++n)
      for (std::int64_t k = 1; k <= 70; ++k) {
        const PlaneGeometry g = Impl::block_geometry(m, n, k, 1);
        ASSERT_TRUE(g.m == m && g.n == n && g.k == k && g.count == 1);
        ASSERT_TRUE(keeps_the_promise(g))
            << m << "x" << n << "x" << k << ": lda " << g.lda << " ldb " << g.ldb << " ldp " << g.ldp
            << " strides " << g.stride_a << " " << g.stride_b << " " << g.stride_p;
      }
}

template <class ExecutionSpace>
class Int8GemmEngines : public ::testing::Test {
 protected:
  std::vector<std::string> names = Impl::int8_gemm_names<ExecutionSpace>();
  Random random{50};

  void expect_random(const Problem& problem) {
    const auto entry = [this](int, std::int64_t, std::int64_t) { return random.int8(); };
    for (const std::string& name : names) {
      ASSERT_LE(problem.k, Impl::make_int8_gemm<ExecutionSpace>(name.c_str())->max_k());
      for (const bool accumulate : {false, true})
        ASSERT_NO_FATAL_FAILURE(expect_exact<ExecutionSpace>(name, problem, accumulate, entry, entry));
    }
  }
};
TYPED_TEST_SUITE(Int8GemmEngines, EnabledSpaces, SpaceNames);

TYPED_TEST(Int8GemmEngines, NamesAreDistinctAndEachMakesItsEngine) {
  const std::set<std::string> distinct(this->names.begin(), this->names.end());
  EXPECT_EQ(distinct.size(), this->names.size());
  EXPECT_EQ(distinct.count("portable"), 1u);
  std::string list;
  for (const std::string& name : this->names) {
    list += " " + name;
    EXPECT_STREQ(Impl::make_int8_gemm<TypeParam>(name.c_str())->name(), name.c_str());
    EXPECT_LE(Impl::make_int8_gemm<TypeParam>(name.c_str())->max_k(), Impl::max_k_block);
  }
  std::printf("engines on %s:%s\n", TypeParam::name(), list.c_str());
  EXPECT_EQ(Impl::make_int8_gemm<TypeParam>()->name(), this->names.front());
}

TYPED_TEST(Int8GemmEngines, UnknownNameIsRefusedWithTheListOfUsableOnes) {
  try {
    Impl::make_int8_gemm<TypeParam>("no such engine");
    FAIL() << "no exception";
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("no such engine"), std::string::npos) << message;
    for (const std::string& name : this->names) EXPECT_NE(message.find(name), std::string::npos) << message;
  }
}

TYPED_TEST(Int8GemmEngines, LadderOfSizes) {
  for (const std::int64_t k : {1, 2, 3, 31, 63, 64, 65, 127, 128, 129, 200})
    for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {1, 7}, {7, 1}, {2, 3}, {15, 17}, {16, 16}, {17, 15}, {33, 31}})
      ASSERT_NO_FATAL_FAILURE(this->expect_random({m, n, k}));
}

TYPED_TEST(Int8GemmEngines, SizesAroundTheTilesOfEveryKernelSet) {
  std::set<std::pair<std::int64_t, std::int64_t>> sizes = {{100, 1}, {1, 100}, {129, 65}};
  for (int i = 0; i < Impl::host_kernel_set_count(); ++i) {
    const Impl::HostKernelSet& set = Impl::host_kernel_set(i);
    sizes.insert({set.tile_rows + 1, set.tile_cols + 1});
    sizes.insert({set.tile_rows - 1, 3});
    sizes.insert({5, set.tile_cols - 1});
    sizes.insert({2 * set.tile_rows + 17, 33});
  }
  for (const auto& [m, n] : sizes) ASSERT_NO_FATAL_FAILURE(this->expect_random({m, n, 190}));
}

TYPED_TEST(Int8GemmEngines, SeveralPlanesAndGapsBetweenThem) {
  for (const bool with_gaps : {false, true})
    for (const int count : {1, 2, 3, 7})
      for (const auto& [m, n, k] :
           std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {13, 18, 70}, {48, 32, 128}, {65, 50, 129}})
        ASSERT_NO_FATAL_FAILURE(this->expect_random({m, n, k, count, with_gaps}));
}

/// Where the positions may be shared out among the processors of a device.
TYPED_TEST(Int8GemmEngines, FewAndLongVectors) {
  for (const Problem& problem :
       {Problem{1, 1, 2047}, Problem{1, 1, 2048}, Problem{1, 1, 70001}, Problem{16, 16, 9000, 14},
        Problem{97, 3, 4097, 3, true}, Problem{3, 97, 4161, 2, true}, Problem{100, 100, 5000, 3, false, 7},
        Problem{128, 128, 3000, 1, false, 9}, Problem{129, 64, 2600, 2, true, 11},
        Problem{8, 200, 4000, 5, false, 5}, Problem{104, 9, 33000, 2, false, 3}}) {
    ASSERT_NO_FATAL_FAILURE(this->expect_random(problem));
#if defined(KOKKOSOZAKI_HAVE_WGMMA)
    if constexpr (Impl::is_cuda_space_v<TypeParam>) {
      const int device = TypeParam().cuda_device();
      if (Impl::wgmma_usable(device)) {
        const PlaneGeometry g = geometry_of(problem);
        EXPECT_FALSE(Impl::wgmma_fits(g)) << to_string(problem);
        EXPECT_EQ(Impl::wgmma_adds_parts(device, g), problem.k >= 2048) << to_string(problem);
      }
    }
#endif
  }
}

TYPED_TEST(Int8GemmEngines, ExtremeEntries) {
  for (const int x : {-128, -127, 127, 1, 0})
    for (const int y : {-128, -127, 127})
      for (const auto& [m, n, k] :
           std::vector<std::array<std::int64_t, 3>>{{1, 1, 1}, {17, 18, 64}, {33, 20, 1000}}) {
        const auto constant_x = [x = x](int, std::int64_t, std::int64_t) {
          return static_cast<std::int8_t>(x);
        };
        const auto constant_y = [y = y](int, std::int64_t, std::int64_t) {
          return static_cast<std::int8_t>(y);
        };
        const auto turning = [x = x](int, std::int64_t v, std::int64_t l) {
          return static_cast<std::int8_t>((v + l) % 2 == 0 ? x : -std::max(x, -127));
        };
        for (const std::string& name : this->names)
          for (const bool accumulate : {false, true}) {
            ASSERT_NO_FATAL_FAILURE(
                expect_exact<TypeParam>(name, {m, n, k}, accumulate, constant_x, constant_y));
            ASSERT_NO_FATAL_FAILURE(
                expect_exact<TypeParam>(name, {m, n, k}, accumulate, turning, constant_y));
          }
      }
}

TYPED_TEST(Int8GemmEngines, LongestSumsStayExact) {
  const std::int64_t k = Impl::max_k_block;
  const auto minimum = [](int, std::int64_t, std::int64_t) { return std::int8_t{-128}; };
  const auto maximum = [](int, std::int64_t, std::int64_t) { return std::int8_t{127}; };
  const auto entry = [this](int, std::int64_t, std::int64_t) { return this->random.int8(); };
  for (const std::string& name : this->names) {
    EXPECT_EQ(Impl::make_int8_gemm<TypeParam>(name.c_str())->max_k(), k);
    for (const Problem& problem :
         {Problem{1, 1, k}, Problem{3, 2, k}, Problem{17, 2, k - 1}, Problem{2, 17, k - 63}}) {
      ASSERT_NO_FATAL_FAILURE(
          expect_exact<TypeParam>(name, problem, false, minimum, minimum));  // 2^14 k < 2^31
      ASSERT_NO_FATAL_FAILURE(expect_exact<TypeParam>(name, problem, true, minimum, minimum));
      ASSERT_NO_FATAL_FAILURE(expect_exact<TypeParam>(name, problem, true, minimum, maximum));
      ASSERT_NO_FATAL_FAILURE(expect_exact<TypeParam>(name, problem, false, entry, entry));
    }
  }
}

TYPED_TEST(Int8GemmEngines, WhatTheDeviceSkipsIsLeftUndone) {
  using Memory = typename TypeParam::memory_space;
  const TypeParam exec;
  for (const Problem& problem : {Problem{300, 270, 200, 2}, Problem{17, 5, 130}, Problem{17, 5, 4000}}) {
    const PlaneGeometry g = geometry_of(problem);
    const auto entry = [this](int, std::int64_t, std::int64_t) { return this->random.int8(); };
    const auto a = Kokkos::create_mirror_view_and_copy(
        Memory(), make_planes(g.m, g.k, g.lda, g.stride_a, g.count, entry));
    const auto b = Kokkos::create_mirror_view_and_copy(
        Memory(), make_planes(g.n, g.k, g.ldb, g.stride_b, g.count, entry));
    for (const std::string& name : this->names) {
      SCOPED_TRACE(name + ": " + to_string(problem));
      const auto engine = Impl::make_int8_gemm<TypeParam>(name.c_str());
      engine->prepare();
      const bool skips = engine->can_skip(g);
      EXPECT_EQ(skips, name == "wgmma" && engine->can_reduce(g));
      const Kokkos::View<char*, Memory> workspace("workspace", engine->workspace_bytes(g));
      const auto flag = buffer<std::int32_t>(1, 0);
      // The entries of the products; what lies around them may become anything.
      const auto products = [&](const std::int32_t* skip) {
        const auto P = buffer<std::int32_t>(g.stride_p * g.count, -77);
        const auto device_P = Kokkos::create_mirror_view_and_copy(Memory(), P);
        Impl::multiply(exec, *engine, g, a.data(), b.data(), device_P.data(), false, workspace.data(),
                       Impl::Labels::certify, skip);
        exec.fence();
        Kokkos::deep_copy(P, device_P);
        std::vector<std::int32_t> entries;
        for (int p = 0; p < g.count; ++p)
          for (std::int64_t j = 0; j < g.n; ++j) {
            const std::int32_t* column = P.data() + p * g.stride_p + j * g.ldp;
            entries.insert(entries.end(), column, column + g.m);
          }
        return entries;
      };
      const auto expected = products(nullptr);
      EXPECT_EQ(products(flag.data()), expected);
      flag(0) = 1;
      if (skips) {
        EXPECT_EQ(products(flag.data()), std::vector<std::int32_t>(expected.size(), -77));
      }
    }
  }
}

TYPED_TEST(Int8GemmEngines, ProductsOfTheVectors) {
  int cases = 0;
  for (const GemmVector& v : f64_vectors()) {
    if (!v.has_residues) continue;
    SCOPED_TRACE(v.name);
    ++cases;
    const auto entry_a = [&v](int p, std::int64_t i, std::int64_t l) {
      return static_cast<std::int8_t>(at(at(v.residue_a, p), i, l));
    };
    const auto entry_b = [&v](int p, std::int64_t j, std::int64_t l) {
      return static_cast<std::int8_t>(at(at(v.residue_b, p), j, l));
    };
    for (const std::string& name : this->names)
      ASSERT_NO_FATAL_FAILURE(
          expect_exact<TypeParam>(name, {v.m, v.n, v.k, v.num_moduli}, false, entry_a, entry_b));
  }
  EXPECT_GT(cases, 150);
}

/// Products and reduction in one go, against sums in 64-bit integers; what must not be touched is not.
template <class ExecutionSpace>
void expect_reduced(const std::string& name, const Problem& problem, int first, bool accumulate,
                    Random& random) {
  using Memory = typename ExecutionSpace::memory_space;
  SCOPED_TRACE(name + ": " + to_string(problem) + " from modulus " + std::to_string(first) +
               (accumulate ? " accumulate" : ""));
  const PlaneGeometry g = geometry_of(problem);
  const auto entry = [&random](int, std::int64_t, std::int64_t) { return random.int8(); };
  const Int8Buffer a = make_planes(g.m, g.k, g.lda, g.stride_a, g.count, entry);
  const Int8Buffer b = make_planes(g.n, g.k, g.ldb, g.stride_b, g.count, entry);
  const int s = std::max(first + g.count, Impl::min_moduli);
  const std::vector<int> w = reference_inverses(s);
  const Impl::ModuliTable& table = table_of(s);
  const auto before = [&](std::int64_t index) {
    const std::int32_t m = table.modulus[first + index / g.stride_p];
    return static_cast<std::int8_t>(index * 7919 % m - m / 2);
  };
  const auto Y = buffer<std::int8_t>(g.stride_p * g.count, 0);
  for (std::int64_t i = 0; i < g.stride_p * g.count; ++i) Y(static_cast<std::size_t>(i)) = before(i);

  const ExecutionSpace exec;
  const auto engine = Impl::make_int8_gemm<ExecutionSpace>(name.c_str());
  const Kokkos::View<Impl::ModuliTable, Memory> device_table("table");
  Kokkos::deep_copy(
      device_table,
      Kokkos::View<const Impl::ModuliTable, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(&table));
  const auto device_a = Kokkos::create_mirror_view_and_copy(Memory(), a),
             device_b = Kokkos::create_mirror_view_and_copy(Memory(), b);
  const auto device_Y = Kokkos::create_mirror_view_and_copy(Memory(), Y);
  const Kokkos::View<char*, Memory> workspace("workspace", engine->workspace_bytes(g));
  Impl::multiply_reduce(exec, *engine, g, device_a.data(), device_b.data(), device_table.data(), first,
                        device_Y.data(), accumulate, workspace.data());
  exec.fence();
  Kokkos::deep_copy(Y, device_Y);

  for (std::int64_t index = 0; index < g.stride_p * g.count; ++index) {
    const std::int64_t p = index / g.stride_p, i = index % g.stride_p % g.ldp, j = index % g.stride_p / g.ldp;
    const int got = Y(static_cast<std::size_t>(index));
    if (i >= Impl::round_up(g.m, 16) || j >= Impl::round_up(g.n, 16)) {
      ASSERT_EQ(got, before(index)) << "outside at " << index;
    } else if (i < g.m && j < g.n) {
      const std::int8_t* x = a.data() + p * g.stride_a + i * g.lda;
      const std::int8_t* y = b.data() + p * g.stride_b + j * g.ldb;
      std::int64_t sum = 0;
      for (std::int64_t l = 0; l < g.k; ++l) sum += x[l] * y[l];
      const auto q = static_cast<int>(first + p);
      ASSERT_EQ(got, Impl::centered(sum * at(w, q) + (accumulate ? before(index) : 0), table.modulus[q]))
          << "plane " << p << ", entry (" << i << ", " << j << ")";
    }
  }
}

TYPED_TEST(Int8GemmEngines, ReductionOnTheWayEqualsTheResiduesOfTheProducts) {
  for (const std::string& name : this->names) {
    const auto engine = Impl::make_int8_gemm<TypeParam>(name.c_str());
    const bool reduces = engine->can_reduce(geometry_of({2000, 2000, 2000, 14}));
    EXPECT_EQ(reduces, name == "wgmma");
    if (!reduces) {
      EXPECT_THROW(engine->run_reduced(TypeParam(), PlaneGeometry{}, nullptr, nullptr, nullptr, 0, nullptr,
                                       false, nullptr),
                   std::logic_error);
      continue;
    }
    for (const bool accumulate : {false, true}) {
      for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{1, 1, 1},
                                                                            {16, 16, 64},
                                                                            {5, 300, 100},
                                                                            {300, 5, 129},
                                                                            {255, 127, 65},
                                                                            {257, 129, 512},
                                                                            {513, 260, 200}})
        for (const bool with_gaps : {false, true})
          ASSERT_NO_FATAL_FAILURE(
              expect_reduced<TypeParam>(name, {m, n, k, 3, with_gaps}, 1, accumulate, this->random));
      ASSERT_NO_FATAL_FAILURE(
          expect_reduced<TypeParam>(name, {20, 18, Impl::max_k_block, 2}, 0, accumulate, this->random));
      ASSERT_NO_FATAL_FAILURE(
          expect_reduced<TypeParam>(name, {100, 90, 70, 20}, 0, accumulate, this->random));
      ASSERT_NO_FATAL_FAILURE(
          expect_reduced<TypeParam>(name, {2305, 2049, 20, 2}, 0, accumulate, this->random));
    }
  }
}

#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)

// ---- CUDA
// ------------------------------------------------------------------------------------------------------------

/// The engines for the matrix units, without the slow portable one.
std::vector<std::string> vendor_engines() {
  std::vector<std::string> names = Impl::int8_gemm_names<Kokkos::Cuda>();
  names.pop_back();
  return names;
}

/// Up to the last k whose sums fit INT32, beyond what the plan asks for; the engines get it as a multiple of 64.
TEST(Int8GemmCuda, SumsAreExactUpToTheLimitOfInt32) {
  const auto minimum = [](int, std::int64_t, std::int64_t) { return std::int8_t{-128}; };
  const auto maximum = [](int, std::int64_t, std::int64_t) { return std::int8_t{127}; };
  Random random(52);
  const auto entry = [&random](int, std::int64_t, std::int64_t) { return random.int8(); };
  for (const std::string& name : vendor_engines())
    for (const std::int64_t k : {16, 17, 48, 63, 64, 65, 1000, 4096, 32767, 65535, 65536, 100000, 131007,
                                 131008, 131009, 131070, 131071})
      for (const Problem& problem :
           {Problem{1, 1, k}, Problem{17, 3, k}, Problem{3, 33, k}, Problem{20, 18, k, 2}}) {
        ASSERT_NO_FATAL_FAILURE(expect_exact<Kokkos::Cuda>(name, problem, false, minimum, minimum));
        ASSERT_NO_FATAL_FAILURE(expect_exact<Kokkos::Cuda>(name, problem, false, maximum, minimum));
        ASSERT_NO_FATAL_FAILURE(expect_exact<Kokkos::Cuda>(name, problem, true, minimum, maximum));
        ASSERT_NO_FATAL_FAILURE(expect_exact<Kokkos::Cuda>(name, problem, false, entry, entry));
      }
}

/// cuBLAS gets the planes in one call, or in one each where they are large; with wgmma a cluster has many tiles.
TEST(Int8GemmCuda, LargeProductsAreExact) {
  Random random(53);
  const auto entry = [&random](int, std::int64_t, std::int64_t) { return random.int8(); };
  for (const std::string& name : vendor_engines())
    for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {2560, 2560}, {2561, 2560}, {200, 32768}, {40000, 170}})
      for (const bool accumulate : {false, true})
        ASSERT_NO_FATAL_FAILURE(
            expect_exact<Kokkos::Cuda>(name, {m, n, 20, 3, true}, accumulate, entry, entry));
}

/// Many tiles, each with long sums: a pipeline over k that starts again for every tile.
TEST(Int8GemmCuda, LargeProductsWithLongSumsAreExact) {
  const auto minimum = [](int, std::int64_t, std::int64_t) { return std::int8_t{-128}; };
  Random random(54);
  const auto entry = [&random](int, std::int64_t, std::int64_t) { return random.int8(); };
  for (const std::string& name : vendor_engines())
    for (const std::int64_t k : {std::int64_t{4096}, std::int64_t{65536}, Impl::max_k_block}) {
      ASSERT_NO_FATAL_FAILURE(
          expect_exact<Kokkos::Cuda>(name, {300, 300, k, 1, false, 37}, false, entry, entry));
      ASSERT_NO_FATAL_FAILURE(
          expect_exact<Kokkos::Cuda>(name, {300, 300, k, 3, true, 37}, true, entry, entry));
      ASSERT_NO_FATAL_FAILURE(
          expect_exact<Kokkos::Cuda>(name, {300, 300, k, 1, false, 37}, true, minimum, minimum));
    }
}

TEST(Int8GemmCuda, AFailingCallOfTheVendorIsReported) {
  const std::vector<std::string> names = Impl::int8_gemm_names<Kokkos::Cuda>();
  if (std::find(names.begin(), names.end(), "cublas") == names.end()) GTEST_SKIP() << "no cuBLAS here";
  const Kokkos::Cuda exec;
  const auto engine = Impl::make_int8_gemm<Kokkos::Cuda>("cublas");
  engine->prepare();
  for (const int count : {1, 2}) {
    PlaneGeometry g = geometry_of({100, 40, 64, count});
    const Kokkos::View<std::int8_t*, Kokkos::CudaSpace> a("a", static_cast<std::size_t>(g.stride_a * count)),
        b("b", static_cast<std::size_t>(g.stride_b * count));
    const Kokkos::View<std::int32_t*, Kokkos::CudaSpace> P("P", static_cast<std::size_t>(g.stride_p * count));
    const Kokkos::View<char*, Kokkos::CudaSpace> workspace("workspace", engine->workspace_bytes(g));
    const std::int64_t right_ldp = g.ldp;
    g.ldp = 16;  // below the rows of the product
    try {
      engine->run(exec, g, a.data(), b.data(), P.data(), false, workspace.data());
      ADD_FAILURE() << "nothing was thrown";
    } catch (const BackendError& error) {
      const std::string message = error.what();
      const std::string call = count == 1 ? "cublasGemmEx" : "cublasGemmStridedBatchedEx";
      EXPECT_NE(message.find("KokkosOzaki: " + call + " failed with status "), std::string::npos) << message;
      EXPECT_NE(message.find("(CUBLAS_STATUS_INVALID_VALUE; m=100, n=40, k=64, planes="), std::string::npos)
          << message;
    }
    // The next call is right.
    g.ldp = right_ldp;
    Kokkos::deep_copy(P, 7);
    engine->run(exec, g, a.data(), b.data(), P.data(), false, workspace.data());
    exec.fence();
    const auto on_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), P);
    EXPECT_EQ(on_host(0), 0) << "the product of zeros";
  }
}

#endif

// ---- the choice of oneDNN
// ------------------------------------------------------------------------------------------

/// What the default engine does with entries that make 16-bit intermediates overflow; also run by the test
/// below in a process of its own.
TEST(Int8GemmChoice, DefaultEngineIsExact) {
  using ExecutionSpace = Kokkos::DefaultHostExecutionSpace;
  const std::string name = Impl::make_int8_gemm<ExecutionSpace>()->name();
  std::string list;
  for (const std::string& usable : Impl::int8_gemm_names<ExecutionSpace>()) list += " " + usable;
  std::printf("engines here:%s;\n", list.c_str());
  Random random(51);
  const auto entry = [&random](int, std::int64_t, std::int64_t) {
    return static_cast<std::int8_t>(random.below(4) == 0 ? -128 : random.below(2) == 0 ? 127 : -127);
  };
  expect_exact<ExecutionSpace>(name, {70, 60, 500}, false, entry, entry);
}

#if defined(KOKKOSOZAKI_ENABLE_ONEDNN)

// dnnl_cpu_isa_t
constexpr unsigned isa_sse41 = 0x1, isa_avx2 = 0x7, isa_avx512 = 0x27, isa_vnni = 0x67, isa_bf16 = 0xE7,
                   isa_amx = 0x3E7;

TEST(Int8GemmChoice, OneDnnNeedsVnniOfTheCpuAndOfOneDnn) {
  for (const unsigned isa : {isa_vnni, isa_bf16, isa_amx}) {
    EXPECT_TRUE(Impl::onednn_is_exact(true, isa)) << isa;
    EXPECT_FALSE(Impl::onednn_is_exact(false, isa)) << isa;
  }
  for (const unsigned isa : {0u, isa_sse41, isa_avx2, isa_avx512})
    for (const bool cpu_has_vnni : {false, true})
      EXPECT_FALSE(Impl::onednn_is_exact(cpu_has_vnni, isa)) << isa;
}

TEST(Int8GemmChoice, OneDnnIsUsableExactlyWhereItIsExact) {
  const std::vector<std::string> names = Impl::int8_gemm_names<Kokkos::DefaultHostExecutionSpace>();
  const bool usable = std::find(names.begin(), names.end(), "onednn") != names.end();
  EXPECT_EQ(usable, Impl::onednn_is_exact());
  if (!usable) {
    EXPECT_THROW(Impl::make_int8_gemm<Kokkos::DefaultHostExecutionSpace>("onednn"), std::invalid_argument);
  }
}

/// oneDNN restricted to AVX2 saturates: it must not be taken, and the engine that is taken must be exact.
TEST(Int8GemmChoice, OneDnnWithoutVnniIsNotTaken) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      "ONEDNN_MAX_CPU_ISA=AVX2 '" + self + "' --gtest_filter=Int8GemmChoice.DefaultEngineIsExact 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string output;
  char text[512];
  while (std::fgets(text, sizeof(text), pipe) != nullptr) output += text;
  const int status = pclose(pipe);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << output;
  const std::size_t begin = output.find("engines here:"), end = output.find(';', begin);
  ASSERT_NE(begin, std::string::npos) << output;
  const std::string engines = output.substr(begin, end - begin);
  EXPECT_EQ(engines.find("onednn"), std::string::npos) << engines;
  EXPECT_NE(engines.find("portable"), std::string::npos) << engines;
  EXPECT_NE(output.find("[  PASSED  ] 1 test."), std::string::npos) << output;
}

#endif

}  // namespace
}  // namespace KokkosOzaki::Testing
