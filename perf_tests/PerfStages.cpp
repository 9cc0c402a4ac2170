// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The time of each stage inside a whole call, from the library's profiling regions. Names:
// Stages/<backend>/<bound>/n/moduli; counters: milliseconds of each stage per call, and the share of all
// stages but the products.
#include "BenchmarkContext.hpp"

namespace KokkosOzaki::Perf {

namespace {

using Clock = std::chrono::steady_clock;

/// Time between push and pop of each region; regions of the library are not nested.
std::map<std::string, double> stage_seconds;
std::string current_region;
Clock::time_point region_start;

void push_region(const char* name) {
  Space().fence();
  current_region = name;
  region_start = Clock::now();
}

void pop_region() {
  Space().fence();
  stage_seconds[current_region] += std::chrono::duration<double>(Clock::now() - region_start).count();
}

void stages(benchmark::State& state, std::int64_t n, const GemmOptions& options) {
  const Matrix A = input(n, n), B = input(n, n);
  const Matrix C("output", static_cast<std::size_t>(n), static_cast<std::size_t>(n));
  GemmPlan<Space, double> plan(Space(), 'N', 'N', n, n, n, options);
  plan.execute(Space(), 1.0, A, B, 0.0, C);
  Space().fence();
  stage_seconds.clear();
  Kokkos::Tools::Experimental::set_push_region_callback(push_region);
  Kokkos::Tools::Experimental::set_pop_region_callback(pop_region);
  constexpr int calls = 5;
  for (auto iteration : state) {
    static_cast<void>(iteration);
    double total = 0;
    for (int i = 0; i < calls; ++i)
      total += seconds(Space(), [&] { plan.execute(Space(), 1.0, A, B, 0.0, C); });
    state.SetIterationTime(total / calls);
  }
  Kokkos::Tools::Experimental::set_push_region_callback(nullptr);
  Kokkos::Tools::Experimental::set_pop_region_callback(nullptr);

  double all = 0, products = 0;
  for (const auto& [region, time] : stage_seconds) {
    const std::string stage = region.substr(region.rfind(':') + 1);
    state.counters[stage + "_ms"] = 1e3 * time / calls;
    all += time;
    if (stage == "multiply") products = time;
  }
  state.counters["share_without_products"] = (all - products) / all;
}

}  // namespace

#if defined(KOKKOS_ENABLE_CUDA)
const std::int64_t sizes[] = {1024, 2048, 8192, 16384};
const int moduli_counts[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
const char* const backends[] = {"cublas"};
#else
const std::int64_t sizes[] = {512, 1024, 2048};
const int moduli_counts[] = {8, 14, 16, 20};
const char* const backends[] = {"onednn", "host-amx", "host-avx512vnni", "host-avx2"};
#endif

void register_benchmarks() {
  for (const char* backend : backends)
    for (const std::int64_t n : sizes)
      for (const int num_moduli : moduli_counts)
        for (const Bound bound : {Bound::fast, Bound::accurate}) {
          GemmOptions options;
          options.backend = backend;
          options.num_moduli = num_moduli;
          options.bound = bound;
          // One group of moduli at a time: reduction and reconstruction are stages of their own then.
          options.moduli_per_group = 1;
          if (!GemmPlan<Space, double>::can_run(n, n, n, options)) continue;
          const std::string name = std::string("Stages/") + backend +
                                   (bound == Bound::fast ? "/fast/" : "/accurate/") + std::to_string(n) +
                                   "/" + std::to_string(num_moduli);
          standard(benchmark::RegisterBenchmark(
              name.c_str(), [n, options](benchmark::State& state) { stages(state, n, options); }));
        }
}

}  // namespace KokkosOzaki::Perf
