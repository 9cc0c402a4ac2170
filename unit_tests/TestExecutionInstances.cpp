// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#if defined(KOKKOS_ENABLE_CUDA)
#include <cuda_runtime_api.h>
#endif

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;

/// Allocations of the library that were not given back yet, by address.
class Outstanding {
 public:
  void add(const void* address, const char* label) {
    const std::lock_guard<std::mutex> lock(m_mutex);
    if (std::strncmp(label, "KokkosOzaki::", 13) == 0) m_labels[address] = label;
  }

  void remove(const void* address) {
    const std::lock_guard<std::mutex> lock(m_mutex);
    m_labels.erase(address);
  }

  /// For the end of Kokkos, after the hook of the library: ends the process where something is left.
  void expect_none() {
    for (const auto& [address, label] : m_labels)
      std::fprintf(stderr, "FAILED: %s was not given back by Kokkos::finalize\n", label.c_str());
    if (!m_labels.empty()) std::_Exit(EXIT_FAILURE);
  }

 private:
  std::mutex m_mutex;
  std::map<const void*, std::string> m_labels;
};

Outstanding outstanding;

class WatchAllocations : public ::testing::Environment {
  void SetUp() override {
    // Hooks run in reverse order: this one after that of the library, which the first gemm sets.
    Kokkos::push_finalize_hook([] { outstanding.expect_none(); });
    Kokkos::Tools::Experimental::set_allocate_data_callback(
        [](auto, const char* label, const void* address, std::uint64_t) { outstanding.add(address, label); });
    Kokkos::Tools::Experimental::set_deallocate_data_callback(
        [](auto, const char*, const void* address, std::uint64_t) { outstanding.remove(address); });
  }
};

const auto* const watch_allocations = ::testing::AddGlobalTestEnvironment(new WatchAllocations);

template <class Space>
class ExecutionInstancesTest : public ::testing::Test {};
TYPED_TEST_SUITE(ExecutionInstancesTest, EnabledSpaces, SpaceNames);

/// A product, where it goes, and what it must be.
template <class Space>
struct Job {
  Job(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& o, std::uint64_t seed)
      : options(o),
        a(spread(m, k, 1.0, seed)),
        b(spread(k, n, 1.0, seed + 1)),
        c(Matrix(m, n, poison())),
        expected(product<Space>(a.values(), b.values(), o)) {}

  bool is_right() const { return static_cast<bool>(same_bits(expected, c.values())); }

  GemmOptions options;
  Operand<LayoutLeft> a, b, c;
  Matrix expected;
};

template <class Space>
std::vector<std::unique_ptr<Job<Space>>> some_jobs() {
  std::vector<std::unique_ptr<Job<Space>>> jobs;
  jobs.push_back(std::make_unique<Job<Space>>(40, 30, 300, with_moduli(14), 1));
  jobs.push_back(std::make_unique<Job<Space>>(7, 90, 64, with_moduli(9, Bound::accurate), 2));
  jobs.push_back(std::make_unique<Job<Space>>(33, 17, 1000, with_moduli(18), 3));
  jobs.push_back(std::make_unique<Job<Space>>(100, 3, 129, with_moduli(15, Bound::accurate), 4));
  return jobs;
}

/// Two instances of a space, each with a stream of its own where there are streams.
template <class Space>
class TwoInstances {
 public:
  const Space& operator[](std::size_t i) const { return m_instance[i]; }

 private:
  Space m_instance[2];
};

#if defined(KOKKOS_ENABLE_CUDA)
template <>
class TwoInstances<Kokkos::Cuda> {
 public:
  TwoInstances() {
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&m_stream[i], cudaStreamNonBlocking));
      m_instance.emplace_back(m_stream[i]);
    }
  }
  ~TwoInstances() {
    release_workspaces();
    m_instance.clear();
    for (const cudaStream_t stream : m_stream) cudaStreamDestroy(stream);
  }
  TwoInstances(const TwoInstances&) = delete;
  TwoInstances& operator=(const TwoInstances&) = delete;
  const Kokkos::Cuda& operator[](std::size_t i) const { return m_instance[i]; }

 private:
  cudaStream_t m_stream[2] = {};
  std::vector<Kokkos::Cuda> m_instance;
};
#endif

TYPED_TEST(ExecutionInstancesTest, PlansTakeTurnsOnTwoInstances) {
  const auto jobs = some_jobs<TypeParam>();
  const TwoInstances<TypeParam> instance;
  std::vector<GemmPlan<TypeParam, double>> plans;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job<TypeParam>& job = *jobs[i];
    plans.emplace_back(instance[i % 2], 'N', 'N', job.expected.rows(), job.expected.cols(),
                       job.a.values().cols(), job.options);
  }
  // plans are not tied to the instance that they were made with
  for (std::size_t turn = 0; turn < 4; ++turn) {
    for (std::size_t i = 0; i < jobs.size(); ++i)
      plans[i].execute(instance[(i + turn) % 2], 1.0, jobs[i]->a.view(), jobs[i]->b.view(), 0.0,
                       jobs[i]->c.view());
    // a plan serves one call at a time
    if (!is_host_space<TypeParam>) instance[0].fence(), instance[1].fence();
  }
  instance[0].fence();
  instance[1].fence();
  for (const auto& job : jobs) EXPECT_TRUE(job->is_right());
}

TYPED_TEST(ExecutionInstancesTest, TwoInstancesUseOnePreparedMatrixAtOnce) {
  const auto jobs = some_jobs<TypeParam>();
  const TwoInstances<TypeParam> instance;
  for (const auto& job : jobs) {
    const std::int64_t m = job->expected.rows(), n = job->expected.cols(), k = job->a.values().cols();
    const auto a = prepare_a(instance[0], "N", job->a.view(), job->options);
    const auto b = prepare_b(instance[1], "N", job->b.view(), job->options);
    const Operand<LayoutLeft> c[2] = {Operand<LayoutLeft>(Matrix(m, n, poison())),
                                      Operand<LayoutLeft>(Matrix(m, n, poison()))};
    std::vector<GemmPlan<TypeParam, double>> plans;
    for (std::size_t i = 0; i < 2; ++i) plans.emplace_back(instance[i], 'N', 'N', m, n, k, job->options);
    for (int turn = 0; turn < 4; ++turn)
      for (std::size_t i = 0; i < 2; ++i) plans[i].execute(instance[i], 1.0, a, b, 0.0, c[i].view());
    instance[0].fence();
    instance[1].fence();
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(same_bits(job->expected, c[i].values()));
  }
}

TYPED_TEST(ExecutionInstancesTest, GemmTakesAnyInstance) {
  const auto jobs = some_jobs<TypeParam>();
  const TwoInstances<TypeParam> instance;
  for (std::size_t turn = 0; turn < 4; ++turn) {
    // the same results as in the last turn, from the other instance
    if (!is_host_space<TypeParam>) instance[0].fence(), instance[1].fence();
    for (std::size_t i = 0; i < jobs.size(); ++i)
      gemm(instance[(i + turn) % 2], "N", "N", 1.0, jobs[i]->a.view(), jobs[i]->b.view(), 0.0,
           jobs[i]->c.view(), jobs[i]->options);
    if (turn == 1) {
      instance[0].fence();
      instance[1].fence();
      release_workspaces();
    }
  }
  instance[0].fence();
  instance[1].fence();
  for (const auto& job : jobs) EXPECT_TRUE(job->is_right());
}

TYPED_TEST(ExecutionInstancesTest, SizesTakeTurnsOnTwoInstancesWithoutAFence) {
  // Both workspaces grow, serve smaller products in their larger selves, shrink and grow again.
  const TwoInstances<TypeParam> instance;
  std::vector<std::unique_ptr<Job<TypeParam>>> jobs[2];
  for (std::size_t x = 0; x < 2; ++x) {
    jobs[x].push_back(std::make_unique<Job<TypeParam>>(8, 9, 10, with_moduli(14), 11 + x));
    jobs[x].push_back(
        std::make_unique<Job<TypeParam>>(90, 70, 200, with_moduli(16, Bound::accurate), 21 + x));
    jobs[x].push_back(std::make_unique<Job<TypeParam>>(33, 5, 300, with_moduli(9), 31 + x));
  }
  release_workspaces();
  for (std::size_t turn = 0; turn < 200; ++turn) {
    for (std::size_t call = 0; call < 3; ++call)
      for (std::size_t x = 0; x < 2; ++x) {
        const Job<TypeParam>& job = *jobs[x][(turn + call) % 3];
        gemm(instance[x], "N", "N", 1.0, job.a.view(), job.b.view(), 0.0, job.c.view(), job.options);
      }
    if (turn % 10 != 9) continue;
    instance[0].fence();
    instance[1].fence();
    for (const auto& its_jobs : jobs)
      for (const auto& job : its_jobs) {
        ASSERT_TRUE(job->is_right()) << "turn " << turn;
        job->c.assign(Matrix(job->expected.rows(), job->expected.cols(), poison()));
      }
    if (turn % 20 == 19) release_workspaces();
  }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
