// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_BENCHMARKCONTEXT_HPP
#define KOKKOSOZAKI_BENCHMARKCONTEXT_HPP

#include <benchmark/benchmark.h>

#include <Kokkos_Core.hpp>
#include <KokkosOzaki.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace KokkosOzaki::Perf {

using Space = Kokkos::DefaultExecutionSpace;
using Matrix = Kokkos::View<double**, Kokkos::LayoutLeft, Space::memory_space>;

/// Registers the benchmarks of this executable; defined in each Perf*.cpp.
void register_benchmarks();

/// What a number needs to be repeated: commit, Kokkos, engines, threads; goes into the JSON output.
inline void add_context() {
  std::ostringstream kokkos;
  Kokkos::print_configuration(kokkos);
  benchmark::AddCustomContext("kokkosozaki_version", version());
  benchmark::AddCustomContext("kokkosozaki_git_hash", git_hash());
  benchmark::AddCustomContext("kokkosozaki_backends", enabled_backends());
  benchmark::AddCustomContext("kokkos_version", std::to_string(KOKKOS_VERSION));
  benchmark::AddCustomContext("execution_space", Space::name());
  benchmark::AddCustomContext("concurrency", std::to_string(Space().concurrency()));
  benchmark::AddCustomContext("kokkos_configuration", kokkos.str());
}

/// \brief The inputs of the literature: (U - 0.5) exp(phi N), U uniform on [0, 1), N standard normal; a
/// generator for each column, so that columns can be made in parallel.
inline Matrix random_matrix(std::int64_t rows, std::int64_t cols, double phi, std::uint64_t seed) {
  Matrix matrix(Kokkos::view_alloc(std::string("input"), Kokkos::WithoutInitializing),
                static_cast<std::size_t>(rows), static_cast<std::size_t>(cols));
  auto host = Kokkos::create_mirror_view(matrix);
  Kokkos::parallel_for("generate", Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace>(0, host.extent(1)),
                       [=](std::size_t j) {
                         std::seed_seq sequence{seed, std::uint64_t{j}};
                         std::mt19937_64 generator(sequence);
                         std::uniform_real_distribution<double> uniform(-0.5, 0.5);
                         std::normal_distribution<double> normal;
                         for (std::size_t i = 0; i < host.extent(0); ++i)
                           host(i, j) = uniform(generator) * std::exp(phi * normal(generator));
                       });
  Kokkos::deep_copy(matrix, host);
  return matrix;
}

/// The inputs, made once for each size, seed and phi.
using InputKey = std::tuple<std::int64_t, std::int64_t, std::uint64_t, double>;
inline std::map<InputKey, Matrix>& inputs() {
  static std::map<InputKey, Matrix> cache;
  return cache;
}

inline Matrix input(std::int64_t rows, std::int64_t cols, std::uint64_t seed = 123456, double phi = 0.5) {
  Matrix& matrix = inputs()[{rows, cols, seed, phi}];
  if (matrix.data() == nullptr) matrix = random_matrix(rows, cols, phi, seed);
  return matrix;
}

inline void release_inputs() {
  inputs().clear();
  release_workspaces();
}

#if defined(KOKKOS_ENABLE_CUDA)
/// Device time by events around the work.
class Stopwatch {
 public:
  Stopwatch() { cudaEventCreate(&m_start), cudaEventCreate(&m_stop); }
  ~Stopwatch() { cudaEventDestroy(m_start), cudaEventDestroy(m_stop); }
  void start(const Space& exec) { cudaEventRecord(m_start, exec.cuda_stream()); }
  double stop(const Space& exec) {
    cudaEventRecord(m_stop, exec.cuda_stream());
    cudaEventSynchronize(m_stop);
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, m_start, m_stop);
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t m_start, m_stop;
};
#else
/// Wall-clock time between two fences.
class Stopwatch {
 public:
  void start(const Space& exec) {
    exec.fence();
    m_start = std::chrono::steady_clock::now();
  }
  double stop(const Space& exec) {
    exec.fence();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - m_start).count();
  }

 private:
  std::chrono::steady_clock::time_point m_start;
};
#endif

/// Seconds that `body` takes.
template <class Body>
double seconds(const Space& exec, const Body& body) {
  Stopwatch watch;
  watch.start(exec);
  body();
  return watch.stop(exec);
}

/// \brief Three warm-ups, then the median of 30 runs (fewer where a run is long, at least 5) as the time of
/// the one iteration; fastest and slowest as counters.
template <class Body>
void measure(benchmark::State& state, const Body& body) {
  constexpr int warm_ups = 3, most_runs = 30, fewest_runs = 5;
  constexpr double most_seconds = 2.0;
  const Space exec;
  double last = 0;
  for (int i = 0; i < warm_ups; ++i) last = seconds(exec, [&] { body(exec); });
  const int runs = last * most_runs <= most_seconds
                       ? most_runs
                       : std::max(fewest_runs, std::min(most_runs, static_cast<int>(most_seconds / last)));
  for (auto iteration : state) {
    static_cast<void>(iteration);
    std::vector<double> times(static_cast<std::size_t>(runs));
    for (double& time : times) time = seconds(exec, [&] { body(exec); });
    std::sort(times.begin(), times.end());
    state.SetIterationTime(times[times.size() / 2]);
    state.counters["fastest_ms"] = 1e3 * times.front();
    state.counters["slowest_ms"] = 1e3 * times.back();
    state.counters["runs"] = runs;
  }
}

inline benchmark::internal::Benchmark* standard(benchmark::internal::Benchmark* benchmark) {
  return benchmark->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(1);
}

inline void count_flops(benchmark::State& state, double m, double n, double k) {
  state.counters["FLOP/s"] = benchmark::Counter(2 * m * n * k, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace KokkosOzaki::Perf

#endif
