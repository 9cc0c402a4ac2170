// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_BENCHMARKCONTEXT_HPP
#define KOKKOSOZAKI_BENCHMARKCONTEXT_HPP

#include <benchmark/benchmark.h>

#include <Kokkos_Core.hpp>
#include <KokkosOzaki.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>

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

/// \brief The inputs of the literature: (U - 0.5) exp(phi N), U uniform on [0, 1), N standard normal.
inline Matrix random_matrix(std::int64_t rows, std::int64_t cols, double phi, std::uint64_t seed) {
  Matrix matrix(Kokkos::view_alloc(std::string("input"), Kokkos::WithoutInitializing), static_cast<std::size_t>(rows),
                static_cast<std::size_t>(cols));
  auto host = Kokkos::create_mirror_view(matrix);
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(-0.5, 0.5);
  std::normal_distribution<double> normal;
  for (std::size_t j = 0; j < host.extent(1); ++j)
    for (std::size_t i = 0; i < host.extent(0); ++i) host(i, j) = uniform(generator) * std::exp(phi * normal(generator));
  Kokkos::deep_copy(matrix, host);
  return matrix;
}

/// The inputs, made once for each size.
inline std::map<std::pair<std::int64_t, std::int64_t>, Matrix>& inputs() {
  static std::map<std::pair<std::int64_t, std::int64_t>, Matrix> cache;
  return cache;
}

inline Matrix input(std::int64_t rows, std::int64_t cols) {
  constexpr double phi = 0.5;
  constexpr std::uint64_t seed = 123456;
  Matrix& matrix = inputs()[{rows, cols}];
  if (matrix.data() == nullptr) matrix = random_matrix(rows, cols, phi, seed);
  return matrix;
}

inline void release_inputs() {
  inputs().clear();
  release_workspaces();
}

/// Seconds that `body` takes, with a fence before and after.
template <class Body>
double seconds(const Space& exec, const Body& body) {
  exec.fence();
  const auto start = std::chrono::steady_clock::now();
  body();
  exec.fence();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// \brief Runs `body` for every iteration after warm-ups, with manual time. The repetitions of Google Benchmark give the
/// median.
template <class Body>
void measure(benchmark::State& state, const Body& body) {
  const Space exec;
  for (int warm_up = 0; warm_up < 2; ++warm_up) seconds(exec, [&] { body(exec); });
  for (auto iteration : state) {
    static_cast<void>(iteration);
    state.SetIterationTime(seconds(exec, [&] { body(exec); }));
  }
}

inline benchmark::internal::Benchmark* standard(benchmark::internal::Benchmark* benchmark) {
  return benchmark->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(0.3);
}

inline void count_flops(benchmark::State& state, double m, double n, double k) {
  state.counters["FLOP/s"] = benchmark::Counter(2 * m * n * k, benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace KokkosOzaki::Perf

#endif
