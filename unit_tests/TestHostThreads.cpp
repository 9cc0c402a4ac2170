// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"
#include "ScalarOperands.hpp"
#include "TestMain.hpp"

// Eight host threads at a time, none of which has initialised Kokkos: each with an instance of its own or all with one.
// Built with the thread sanitizer as well, for the host (.ci/run tsan).

namespace KokkosOzaki::Testing {
namespace {

constexpr std::size_t thread_count = 8;

template <class Case>
class HostThreadsTest : public ::testing::Test {};
TYPED_TEST_SUITE(HostThreadsTest, HostThreadsCases, ContractNames);

using namespace Kokkos::Experimental;  // partition_space, where there is one

template <class Space>
auto one_of_a_partition(int) -> std::decay_t<decltype(partition_space(Space{}, 1)[0])> {
  return partition_space(Space{}, 1)[0];
}
template <class Space>
Space one_of_a_partition(...) {
  return Space{};
}

/// An instance that shares nothing with others where the space has such (CUDA, Kokkos 4).
template <class Space>
Space new_instance() {
  if constexpr (std::is_constructible_v<Space, int>)
    return Space(1);  // OpenMP: threads of its own
  else
    return one_of_a_partition<Space>(0);
}
#if defined(KOKKOS_ENABLE_CUDA)
template <>
Kokkos::Cuda new_instance<Kokkos::Cuda>() {
  cudaStream_t stream = nullptr;  // left to the end of the process: the library keeps a workspace for it
  if (cudaStreamCreate(&stream) != cudaSuccess) throw std::runtime_error("cudaStreamCreate failed");
  return {stream};
}
#endif

/// Instances of their own: one each where the space has more than one.
template <class Space>
class HostInstances {
 public:
  explicit HostInstances(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) m_instances.push_back(new_instance<Space>());
  }
  const Space& operator[](std::size_t i) const { return m_instances[i]; }

 private:
  std::vector<Space> m_instances;
};

/// Waits until all threads are there, so that they start together.
class StartingLine {
 public:
  void wait() {
    ++m_arrived;
    while (m_arrived < thread_count) std::this_thread::yield();
  }

 private:
  std::atomic<std::size_t> m_arrived{0};
};

/// Runs body(i) on a thread of its own for each i, all at once; what one throws is a failure.
template <class Body>
void on_threads(const Body& body) {
  StartingLine line;
  std::vector<std::thread> threads;
  std::vector<std::string> complaints(thread_count);
  for (std::size_t i = 0; i < thread_count; ++i)
    threads.emplace_back([&, i] {
      line.wait();
      try {
        body(i);
      } catch (const std::exception& error) {
        complaints[i] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& complaint : complaints) EXPECT_EQ("", complaint);
}

/// A product of a size and with options of its own, and its bits from this thread alone.
template <class Space, class Scalar>
struct Job {
  using Traits = ScalarTraits<Scalar>;
  using Real = typename Traits::Real;

  explicit Job(std::size_t index)
      : m(sizes[index % 4][0]),
        n(sizes[index % 4][1]),
        k(sizes[index % 4][2]),
        options(with_moduli(index % 3 == 0 ? 0 : 9 + static_cast<int>(index), both_bounds[index % 2])),
        A(entries(m, k, index)),
        B(entries(k, n, index + 100)),
        C(entries(m, n, index + 200)) {
    if (index % 4 == 3) options.max_workspace_bytes = part_of_workspace<Space>(m, n, k, options, 3);
    options.backend = index % 5 == 4 ? "portable" : nullptr;
    ScalarOperand<Scalar> serial(m, n, {}, C);
    run_gemm<Space, Scalar>('N', 'N', Scalar(2), A, B, Scalar(-1), serial, options);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < m; ++i) expected.push_back(serial(i, j));
  }

  void run(const Space& exec) const {
    const ScalarOperand<Scalar> result(m, n, {}, C);
    gemm(exec, "N", "N", Scalar(2), A.view(), B.view(), Scalar(-1), result.view(), options);
    check(exec, result);
  }

  void run(const Space& exec, GemmPlan<Space, Scalar>& plan) const {
    const ScalarOperand<Scalar> result(m, n, {}, C);
    plan.execute(exec, Scalar(2), A.view(), B.view(), Scalar(-1), result.view());
    check(exec, result);
  }

  using Prepared = PreparedMatrix<Space, Scalar>;
  Prepared prepared_a(const Space& exec) const { return prepare_a(exec, "N", A.view(), options); }
  Prepared prepared_b(const Space& exec) const { return prepare_b(exec, "N", B.view(), options); }
  void run(const Space& exec, GemmPlan<Space, Scalar>& plan, const Prepared& a, const Prepared& b) const {
    const ScalarOperand<Scalar> result(m, n, {}, C);
    plan.execute(exec, Scalar(2), a, b, Scalar(-1), result.view());
    check(exec, result);
  }

  GemmPlan<Space, Scalar> plan(const Space& exec) const { return {exec, 'N', 'N', m, n, k, options}; }

 private:
  static constexpr std::int64_t sizes[4][3] = {{40, 30, 130}, {7, 90, 64}, {33, 17, 300}, {100, 3, 129}};

  static ScalarOperand<Scalar> entries(std::int64_t rows, std::int64_t cols, std::size_t seed) {
    Random random(seed);
    return ScalarOperand<Scalar>(rows, cols, {}, [&](auto, auto) {
      const auto re = static_cast<Real>(random.unit() - 0.5), im = static_cast<Real>(random.unit() - 0.5);
      return Traits::make(re, im);
    });
  }

  // Not by EXPECT: most calls are right, and the macro is not for threads everywhere.
  void check(const Space& exec, const ScalarOperand<Scalar>& result) const {
    exec.fence();
    if (!result.equals(
            [&](std::int64_t i, std::int64_t j) { return expected[static_cast<std::size_t>(j * m + i)]; }))
      throw std::runtime_error("other bits than the serial run");
  }

  std::int64_t m, n, k;
  GemmOptions options;
  ScalarOperand<Scalar> A, B, C;
  std::vector<Scalar> expected;
};

template <class Case>
std::vector<std::unique_ptr<Job<typename Case::Space, typename Case::Scalar>>> make_jobs() {
  std::vector<std::unique_ptr<Job<typename Case::Space, typename Case::Scalar>>> jobs;
  for (std::size_t i = 0; i < thread_count; ++i)
    jobs.push_back(std::make_unique<Job<typename Case::Space, typename Case::Scalar>>(i));
  return jobs;
}

constexpr int turns = 5;

TYPED_TEST(HostThreadsTest, GemmOfOneInstance) {
  const auto jobs = make_jobs<TypeParam>();
  const typename TypeParam::Space exec{};
  for (const bool cold : {false, true}) {
    if (cold) release_workspaces();
    on_threads([&](std::size_t i) {
      for (int turn = 0; turn < turns; ++turn) jobs[i]->run(exec);
    });
  }
}

TYPED_TEST(HostThreadsTest, GemmOfAnInstanceEach) {
  const auto jobs = make_jobs<TypeParam>();
  const HostInstances<typename TypeParam::Space> instances(thread_count);
  release_workspaces();
  on_threads([&](std::size_t i) {
    for (int turn = 0; turn < turns; ++turn) jobs[i]->run(instances[i]);
  });
  release_workspaces();
}

TYPED_TEST(HostThreadsTest, SizesTakeTurns) {
  // every thread has every job: the workspaces grow under the feet of the others, and other engines come in between
  const auto jobs = make_jobs<TypeParam>();
  const typename TypeParam::Space exec{};
  release_workspaces();
  on_threads([&](std::size_t i) {
    for (std::size_t turn = 0; turn < 2 * thread_count; ++turn) jobs[(i + turn) % thread_count]->run(exec);
  });
}

TYPED_TEST(HostThreadsTest, PlansOfAnInstanceEach) {
  const auto jobs = make_jobs<TypeParam>();
  const HostInstances<typename TypeParam::Space> instances(thread_count);
  on_threads([&](std::size_t i) {
    auto plan = jobs[i]->plan(instances[i]);
    for (int turn = 0; turn < turns; ++turn) jobs[i]->run(instances[i], plan);
    for (int turn = 0; turn < turns; ++turn) jobs[i]->plan(instances[i]);  // made and thrown away
  });
}

TYPED_TEST(HostThreadsTest, PlansOfOneInstance) {
  const auto jobs = make_jobs<TypeParam>();
  const typename TypeParam::Space exec{};
  std::vector<GemmPlan<typename TypeParam::Space, typename TypeParam::Scalar>> plans;
  for (const auto& job : jobs) plans.push_back(job->plan(exec));
  on_threads([&](std::size_t i) {
    for (int turn = 0; turn < turns; ++turn) jobs[i]->run(exec, plans[i]);
  });
}

TYPED_TEST(HostThreadsTest, PreparedMatricesAreShared) {
  const auto jobs = make_jobs<TypeParam>();
  const HostInstances<typename TypeParam::Space> instances(thread_count);
  std::vector<PreparedMatrix<typename TypeParam::Space, typename TypeParam::Scalar>> a, b;
  const typename TypeParam::Space exec{};
  for (const auto& job : jobs) {
    a.push_back(job->prepared_a(exec));
    b.push_back(job->prepared_b(exec));
  }
  on_threads([&](std::size_t i) {
    for (std::size_t turn = 0; turn < thread_count; ++turn) {
      // four threads have one pair of operands at a time, each in a plan of its own
      const std::size_t j = (i / 4 + turn) % thread_count;
      auto plan = jobs[j]->plan(instances[i]);
      jobs[j]->run(instances[i], plan, a[j], b[j]);
      jobs[j]->run(instances[i], plan, jobs[j]->prepared_a(instances[i]), b[j]);
    }
  });
}

TYPED_TEST(HostThreadsTest, ErrorsOfOthersDoNotMatter) {
  const auto jobs = make_jobs<TypeParam>();
  using Scalar = typename TypeParam::Scalar;
  const typename TypeParam::Space exec{};
  on_threads([&](std::size_t i) {
    const ScalarOperand<Scalar> x(3, 4, {}, [](auto, auto) { return Scalar(1); });
    for (int turn = 0; turn < turns; ++turn) {
      if (i % 2 == 0) {
        jobs[i]->run(exec);
        continue;
      }
      GemmOptions options;
      options.max_workspace_bytes = turn % 2 == 0 ? 1 : 0;
      options.backend = turn % 2 == 0 ? nullptr : "none";
      try {
        gemm(exec, "N", "T", Scalar(1), x.view(), x.view(), Scalar(0),
             ScalarOperand<Scalar>(3, 3, {}, [](auto, auto) { return Scalar(0); }).view(), options);
      } catch (const std::exception&) {
        continue;
      }
      throw std::runtime_error("accepted");
    }
  });
}

// The registry of gemm is younger than the handler that finalises Kokkos: it is used after every static object that is
// younger than the handler has been destroyed. See HostThreads.KokkosMayBeFinalizedAtExit in CMakeLists.txt.
const MainOption finalize_at_exit("--finalize-at-exit", [] {
  std::atexit([] { Kokkos::finalize(); });
  product<typename SpacesWithThreads::first>(Matrix(3, 4, 1.0), Matrix(4, 5, 1.0));
  std::exit(EXIT_SUCCESS);
});

}  // namespace
}  // namespace KokkosOzaki::Testing
