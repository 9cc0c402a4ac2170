// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;
namespace Tools = Kokkos::Tools::Experimental;

/// What Kokkos reported while a Recorder was alive.
struct Events {
  std::vector<std::string> kernels, allocations, deallocations, regions, fences, copies;
  int depth = 0, deepest = 0, outside = 0;  // regions open; kernels outside of all regions
};

Events events;

void record_kernel(const char* name) {
  events.kernels.emplace_back(name);
  if (events.depth == 0) ++events.outside;
}

/// Records through Tools callbacks; puts those that were there back.
class Recorder {
 public:
  Recorder() : m_before(Tools::get_callbacks()) {
    events = {};
    const auto kernel = [](const char* name, std::uint32_t, std::uint64_t* id) {
      *id = 0;
      record_kernel(name);
    };
    Tools::set_begin_parallel_for_callback(kernel);
    Tools::set_begin_parallel_reduce_callback(kernel);
    Tools::set_begin_parallel_scan_callback(kernel);
    Tools::set_allocate_data_callback(
        [](auto, const char* name, const void*, std::uint64_t) { events.allocations.emplace_back(name); });
    Tools::set_deallocate_data_callback(
        [](auto, const char* name, const void*, std::uint64_t) { events.deallocations.emplace_back(name); });
    Tools::set_push_region_callback([](const char* name) {
      events.regions.emplace_back(name);
      events.deepest = std::max(events.deepest, ++events.depth);
    });
    Tools::set_pop_region_callback([] { --events.depth; });
    Tools::set_begin_fence_callback([](const char* name, std::uint32_t, std::uint64_t* id) {
      *id = 0;
      // newer versions of Kokkos fence on behalf of the callbacks themselves
      if (std::strstr(name, "Profile Tool Fence") == nullptr) events.fences.emplace_back(name);
    });
    Tools::set_begin_deep_copy_callback([](auto, const char* name, const void*, auto, const char*,
                                           const void*, std::uint64_t) { events.copies.emplace_back(name); });
  }
  ~Recorder() { Tools::set_callbacks(m_before); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

 private:
  Tools::EventSet m_before;
};

bool is_ours(const std::string& label) {
  return label.rfind("KokkosOzaki::", 0) == 0;
}

/// Kernels that Kokkos starts itself to initialise a View or to copy name the View's label.
bool belongs_to_us(const std::string& kernel) {
  return is_ours(kernel) || kernel.find("[KokkosOzaki::") != std::string::npos;
}

template <class Space>
class KernelLabelsTest : public ::testing::Test {};
TYPED_TEST_SUITE(KernelLabelsTest, EnabledSpaces, SpaceNames);

/// The operands of one product, allocated before anything is recorded.
struct Operands {
  Operands(std::int64_t m, std::int64_t n, std::int64_t k)
      : a(spread(m, k, 1.0, 1)),
        b(spread(k, n, 1.0, 2)),
        c(Matrix(m, n, 0.5)),
        row_major(Matrix(m, n, 0.5)) {}
  Operand<LayoutLeft> a, b, c;
  Operand<LayoutRight> row_major;
};

void expect_labels() {
  EXPECT_FALSE(events.kernels.empty());
  for (const std::string& kernel : events.kernels) EXPECT_TRUE(belongs_to_us(kernel)) << "kernel " << kernel;
  for (const std::string& allocation : events.allocations)
    EXPECT_TRUE(is_ours(allocation)) << "allocation " << allocation;
  for (const std::string& region : events.regions) EXPECT_TRUE(is_ours(region)) << "region " << region;
  EXPECT_EQ(0, events.depth) << "a region was left open";
}

/// The regions in the order of their first appearance.
std::vector<std::string> stages() {
  std::vector<std::string> order;
  for (const std::string& region : events.regions)
    if (std::find(order.begin(), order.end(), region) == order.end()) order.push_back(region);
  return order;
}

/// Entries of batches, one after the other in memory.
using Batch = Kokkos::View<double***, LayoutLeft, SharedSpace, Kokkos::MemoryUnmanaged>;

TYPED_TEST(KernelLabelsTest, ABatchHasAsManyLaunchesAsTwoEntries) {
  const Operand<LayoutLeft> a(spread(16, 64 * 20, 1.0, 1)), b(spread(64, 16 * 20, 1.0, 2)),
      c(Matrix(16, 16 * 20, 0.5));
  for (const Bound bound : both_bounds) {
    std::vector<std::string> launches[2];
    for (const std::size_t entries : {2, 20}) {
      GemmOptions options = with_moduli(8, bound);
      options.max_workspace_bytes = std::size_t{1} << 26;  // one block on every space
      const auto run = [&] {
        gemm_batched(TypeParam{}, "N", "N", 1.0, Batch(a.view().data(), 16, 64, entries),
                     Batch(b.view().data(), 64, 16, entries), 0.0, Batch(c.view().data(), 16, 16, entries),
                     options);
        TypeParam{}.fence();
      };
      run();
      const Recorder recorder;
      run();
      expect_labels();
      EXPECT_TRUE(events.allocations.empty());
      EXPECT_TRUE(events.copies.empty());
      launches[entries == 2 ? 0 : 1] = events.kernels;
    }
    EXPECT_EQ(launches[0], launches[1]);
  }
}

TYPED_TEST(KernelLabelsTest, ABatchThatChoosesItsModuliHasAsManyLaunchesAsTwoEntries) {
  const Operand<LayoutLeft> a(Matrix(16, 64 * 20, 0.75)), b(Matrix(64, 16 * 20, 1.5)),
      c(Matrix(16, 16 * 20, 0.5));
  std::vector<std::string> launches[2];
  for (const std::size_t entries : {2, 20}) {
    const auto run = [&] {
      gemm_batched(TypeParam{}, "N", "N", 1.0, Batch(a.view().data(), 16, 64, entries),
                   Batch(b.view().data(), 64, 16, entries), 0.0, Batch(c.view().data(), 16, 16, entries));
      TypeParam{}.fence();
    };
    run();
    const Recorder recorder;
    run();
    expect_labels();
    EXPECT_TRUE(events.allocations.empty());
    launches[entries == 2 ? 0 : 1] = events.kernels;
  }
  EXPECT_EQ(launches[0], launches[1]);
}

/// Whether the reduction has no stage of its own: the engine reduces, or a device does it together with the
/// reconstruction, over the products of all moduli.
template <class Space>
bool reduces_on_the_way(const std::string& backend, int moduli_per_group) {
  return backend == "wgmma" || (!is_host_space<Space> && moduli_per_group == 0);
}

template <class Space>
std::vector<std::string> all_stages(const std::string& backend, int moduli_per_group) {
  std::vector<std::string> all = {
      "KokkosOzaki::statistics", "KokkosOzaki::scale",       "KokkosOzaki::residues", "KokkosOzaki::multiply",
      "KokkosOzaki::reduce",     "KokkosOzaki::reconstruct", "KokkosOzaki::repair"};
  if (reduces_on_the_way<Space>(backend, moduli_per_group)) all.erase(all.begin() + 4);
  return all;
}

TYPED_TEST(KernelLabelsTest, EveryKernelAndAllocationOfGemmIsLabelled) {
  release_workspaces();
  Operands x(200, 180, 200);
  for (const char* backend : usable_backends<TypeParam>())
    for (const Bound bound : both_bounds)
      for (const int group : {0, 1}) {
        SCOPED_TRACE(std::string(backend) + " " + name_of(bound) + ", group " + std::to_string(group));
        GemmOptions options = with_moduli(14, bound);
        options.backend = backend;
        options.moduli_per_group = group;
        const Recorder recorder;
        gemm(TypeParam{}, "N", "N", 1.0, x.a.view(), x.b.view(), 0.5, x.c.view(), options);
        expect_labels();
        EXPECT_EQ(all_stages<TypeParam>(backend, group), stages());
        EXPECT_FALSE(events.allocations.empty());
        gemm(TypeParam{}, "N", "N", 0.0, x.a.view(), x.b.view(), 0.5, x.c.view(), options);
        expect_labels();
        release_workspaces();
      }
}

TYPED_TEST(KernelLabelsTest, StagesRunInOrderAndOnce) {
  Operands x(200, 180, 200);
  for (const int group : {0, 1}) {
    SCOPED_TRACE("group " + std::to_string(group));
    GemmOptions options = with_moduli(14);
    options.moduli_per_group = group;
    GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', 200, 180, 200, options);
    const Recorder recorder;
    plan.execute(TypeParam{}, 1.0, x.a.view(), x.b.view(), 0.0, x.c.view());
    EXPECT_EQ(all_stages<TypeParam>(plan.backend_name(), group), stages());
    EXPECT_EQ(1, events.deepest) << "a stage that calls another one";
    const auto count = [](const char* region) {
      return std::count(events.regions.begin(), events.regions.end(), std::string("KokkosOzaki::") + region);
    };
    const bool one_group = !is_host_space<TypeParam> && group == 0;
    EXPECT_LE(count("statistics"), 2);
    EXPECT_EQ(1, count("scale"));
    EXPECT_LE(count("residues"), 2) << "each operand is converted once";
    EXPECT_EQ(one_group ? 1 : 14, count("multiply"));
    EXPECT_EQ(reduces_on_the_way<TypeParam>(plan.backend_name(), group) ? 0 : 14, count("reduce"));
    EXPECT_EQ(1, count("reconstruct"));
    EXPECT_EQ(1, count("repair"));
  }
}

/// Kernels and regions of a product of the same numbers in these layouts.
template <class Space, class LayoutA, class LayoutB, class LayoutC>
std::pair<std::vector<std::string>, std::vector<std::string>> launches_of(const GemmOptions& options) {
  const std::int64_t m = 70, n = 90, k = 300;
  const Operand<LayoutA> a(spread(m, k, 1.0, 3));
  const Operand<LayoutB> b(spread(k, n, 1.0, 4));
  const Operand<LayoutC> c(Matrix(m, n, 0.5));
  GemmPlan<Space, double> plan(Space{}, 'N', 'N', m, n, k, options);
  const Recorder recorder;
  plan.execute(Space{}, 1.0, a.view(), b.view(), 0.5, c.view());
  Space{}.fence();
  expect_labels();
  return {events.kernels, events.regions};
}

TYPED_TEST(KernelLabelsTest, EveryLayoutTakesTheSameKernels) {
  for (const char* backend : usable_backends<TypeParam>())
    for (GemmOptions options : {with_moduli(14), with_moduli(14, Bound::accurate), GemmOptions{}}) {
      SCOPED_TRACE(std::string(backend) + " " + name_of(options.bound) + ", " +
                   std::to_string(options.num_moduli) + " moduli");
      options.backend = backend;
      const auto expected = launches_of<TypeParam, LayoutLeft, LayoutLeft, LayoutLeft>(options);
      EXPECT_EQ(expected, (launches_of<TypeParam, LayoutLeft, LayoutLeft, LayoutRight>(options)));
      EXPECT_EQ(expected, (launches_of<TypeParam, LayoutLeft, LayoutRight, LayoutLeft>(options)));
      EXPECT_EQ(expected, (launches_of<TypeParam, LayoutLeft, LayoutRight, LayoutRight>(options)));
      EXPECT_EQ(expected, (launches_of<TypeParam, LayoutRight, LayoutLeft, LayoutLeft>(options)));
      EXPECT_EQ(expected, (launches_of<TypeParam, LayoutRight, LayoutLeft, LayoutRight>(options)));
      EXPECT_EQ(expected, (launches_of<TypeParam, LayoutRight, LayoutRight, LayoutLeft>(options)));
      EXPECT_EQ(expected, (launches_of<TypeParam, LayoutRight, LayoutRight, LayoutRight>(options)));
    }
}

TYPED_TEST(KernelLabelsTest, ASecondGemmOfTheSameSizeAllocatesNothing) {
  Operands x(50, 60, 300), smaller(20, 30, 10);
  const auto run = [](const Operands& y, const GemmOptions& options) {
    gemm(TypeParam{}, "N", "N", 1.0, y.a.view(), y.b.view(), 0.0, y.c.view(), options);
    gemm(TypeParam{}, "N", "N", 1.0, y.a.view(), y.b.view(), 0.0, y.row_major.view(), options);
  };
  release_workspaces();
  {
    const Recorder recorder;
    run(x, with_moduli(14));
    EXPECT_FALSE(events.allocations.empty());
  }
  const Recorder recorder;
  run(x, with_moduli(14));
  run(smaller, with_moduli(14));
  run(x, with_moduli(10));
  run(x, with_moduli(14));
  EXPECT_EQ(std::vector<std::string>{}, events.allocations);
  EXPECT_EQ(std::vector<std::string>{}, events.deallocations) << "the workspace does not shrink";
}

TYPED_TEST(KernelLabelsTest, APlanAllocatesAtOnceAndExecutesWithoutFences) {
  Operands x(50, 60, 300);
  for (const Bound bound : both_bounds)
    for (const std::size_t divisor : {1, 3}) {
      SCOPED_TRACE(std::string(name_of(bound)) + " divisor " + std::to_string(divisor));
      GemmOptions options = with_moduli(16, bound);
      options.max_workspace_bytes = part_of_workspace<TypeParam>(50, 60, 300, options, divisor);
      Recorder constructing;
      GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', 50, 60, 300, options);
      EXPECT_NE(std::find(events.allocations.begin(), events.allocations.end(), "KokkosOzaki::workspace"),
                events.allocations.end());
      for (const std::string& allocation : events.allocations) EXPECT_TRUE(is_ours(allocation)) << allocation;
      for (const std::string& kernel : events.kernels) EXPECT_TRUE(belongs_to_us(kernel)) << kernel;
      events = {};
      plan.execute(TypeParam{}, 1.0, x.a.view(), x.b.view(), 0.0, x.c.view());
      plan.execute(TypeParam{}, -1.0, x.a.view(), x.b.view(), 2.0, x.row_major.view());
      plan.execute(TypeParam{}, 0.0, x.a.view(), x.b.view(), 2.0, x.row_major.view());
      expect_labels();
      EXPECT_EQ(std::vector<std::string>{}, events.allocations);
      EXPECT_EQ(std::vector<std::string>{}, events.deallocations);
      EXPECT_EQ(std::vector<std::string>{}, events.fences);
      EXPECT_EQ(std::vector<std::string>{}, events.copies);
    }
}

TYPED_TEST(KernelLabelsTest, WhatIsPreparedIsNotMadeAgain) {
  Operands x(50, 60, 300);
  for (const Bound bound : both_bounds) {
    SCOPED_TRACE(name_of(bound));
    const GemmOptions options = with_moduli(16, bound);
    GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', 50, 60, 300, options);
    const Recorder recorder;
    const auto a = prepare_a(TypeParam{}, "N", x.a.view(), options);
    const auto b = prepare_b(TypeParam{}, "N", x.b.view(), options);
    expect_labels();
    EXPECT_FALSE(events.allocations.empty());
    const auto has_kernel = [](const char* part) {
      return std::any_of(events.kernels.begin(), events.kernels.end(),
                         [&](const std::string& kernel) { return kernel.find(part) != std::string::npos; });
    };
    EXPECT_TRUE(has_kernel("statistics_chunks"));
    EXPECT_EQ(bound == Bound::fast, has_kernel("KokkosOzaki::residues"));
    EXPECT_EQ(bound == Bound::accurate, has_kernel("quantize"));
    events = {};
    plan.execute(TypeParam{}, 1.0, a, b, 0.0, x.c.view());
    plan.execute(TypeParam{}, 1.0, a, b, 0.0, x.row_major.view());
    expect_labels();
    EXPECT_FALSE(has_kernel("statistics_chunks"));
    EXPECT_FALSE(has_kernel("quantize"));
    EXPECT_EQ(bound == Bound::accurate, has_kernel("KokkosOzaki::residues")) << "they depend on the partner";
    EXPECT_EQ(std::vector<std::string>{}, events.allocations);
    EXPECT_EQ(std::vector<std::string>{}, events.fences);
    EXPECT_EQ(std::vector<std::string>{}, events.copies);
  }
}

TYPED_TEST(KernelLabelsTest, ANumberChosenFromTheDataIsReadBackOnce) {
  std::string backend;
  const auto copies = [&](std::int64_t m, std::int64_t n, std::int64_t k, double phi) {
    SCOPED_TRACE("m = " + std::to_string(m) + ", phi = " + std::to_string(phi));
    const Operand<LayoutLeft> a(spread(m, k, phi, 1)), b(spread(k, n, phi, 2)), c(Matrix(m, n, 0.0));
    GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', m, n, k);
    events = {};
    const Recorder recorder;
    plan.execute(TypeParam{}, 1.0, a.view(), b.view(), 0.0, c.view());
    expect_labels();
    EXPECT_EQ(0, plan.report().exact_entries);
    EXPECT_EQ(std::vector<std::string>{}, events.allocations);
    backend = plan.report().backend;
    return events.copies.size();
  };
  for (const double phi : {0.0, 0.5, 1.0, 1.5, 2.0}) {
    const std::size_t of_small = copies(300, 310, 500, phi);
    if (is_host_space<TypeParam>) {  // reads its own memory
      EXPECT_EQ(of_small, 0u);
      continue;
    }
    EXPECT_GE(of_small, 1u);
    EXPECT_LE(of_small, phi <= 1 ? 1u : 2u);
    if (phi < 1.5) continue;
    // Of a large product the device chooses the lower bound that follows by itself, where its engine can leave out products.
    const std::size_t of_large = copies(4096, 4096, 8192, phi);
    EXPECT_GE(of_large, 1u);
    EXPECT_LE(of_large, backend == "wgmma" ? 1u : 3u);
  }
}

TYPED_TEST(KernelLabelsTest, APlanWithExternalWorkspaceAllocatesNone) {
  const Recorder recorder;
  const GemmPlan<TypeParam, double> plan(ExternalWorkspace{}, TypeParam{}, 'N', 'N', 50, 60, 300);
  EXPECT_EQ(std::find(events.allocations.begin(), events.allocations.end(), "KokkosOzaki::workspace"),
            events.allocations.end());
  static_cast<void>(GemmPlan<TypeParam, double>::workspace_bytes(50, 60, 300));
  static_cast<void>(GemmPlan<TypeParam, double>::can_run(50, 60, 300));
  for (const std::string& allocation : events.allocations) EXPECT_TRUE(is_ours(allocation)) << allocation;
}

TYPED_TEST(KernelLabelsTest, WhatIsAllocatedIsGivenBack) {
  release_workspaces();
  Operands x(50, 60, 300);
  const Recorder recorder;
  {
    GemmPlan<TypeParam, double> plan(TypeParam{}, 'N', 'N', 50, 60, 300);
    GemmPlan<TypeParam, double> moved(std::move(plan));
    moved.execute(TypeParam{}, 1.0, x.a.view(), x.b.view(), 0.0, x.c.view());
    gemm(TypeParam{}, "N", "N", 1.0, x.a.view(), x.b.view(), 0.0, x.c.view());
  }
  release_workspaces();
  std::sort(events.allocations.begin(), events.allocations.end());
  std::sort(events.deallocations.begin(), events.deallocations.end());
  EXPECT_EQ(events.allocations, events.deallocations);
  EXPECT_FALSE(events.allocations.empty());
}

TYPED_TEST(KernelLabelsTest, RefusedCallsDoNothing) {
  Operands x(50, 60, 300), y(7, 8, 9);
  const Recorder recorder;
  EXPECT_THROW(gemm(TypeParam{}, "X", "N", 1.0, x.a.view(), x.b.view(), 0.0, x.c.view()),
               std::invalid_argument);
  EXPECT_THROW(gemm(TypeParam{}, "N", "N", 1.0, x.a.view(), y.b.view(), 0.0, x.c.view()),
               std::invalid_argument);
  EXPECT_THROW(gemm(TypeParam{}, "N", "N", 1.0, x.a.view(), x.b.view(), 0.0, x.c.view(), with_moduli(21)),
               std::invalid_argument);
  EXPECT_EQ(std::vector<std::string>{}, events.kernels);
}

}  // namespace
}  // namespace KokkosOzaki::Testing
