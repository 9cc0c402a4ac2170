// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the choice of the number of moduli costs: a plan that chooses it (componentwise, c = k) and one with the same
// number given. Names: Componentwise/<chosen|given>/<phi>/m/n/k; the counter `moduli` is the number that was chosen.
#include "BenchmarkContext.hpp"

namespace KokkosOzaki::Perf {

namespace {

struct Shape {
  std::int64_t m, n, k;
  std::string name() const { return std::to_string(m) + "/" + std::to_string(n) + "/" + std::to_string(k); }
};

void product(benchmark::State& state, const Shape& shape, double phi, bool chosen) {
  const Matrix A = input(shape.m, shape.k, 123456, phi), B = input(shape.k, shape.n, 123456, phi);
  const Matrix C("output", static_cast<std::size_t>(shape.m), static_cast<std::size_t>(shape.n));
  using Plan = GemmPlan<Space, double>;
  GemmReport report;
  const auto run = [&](const GemmOptions& options, bool timed) {
    Plan plan(Space(), 'N', 'N', shape.m, shape.n, shape.k, options);
    const auto call = [&](const Space& exec) { plan.execute(exec, 1.0, A, B, 0.0, C); };
    call(Space());
    report = plan.report();
    if (timed) measure(state, call);
  };
  run(GemmOptions(), chosen);
  state.counters["moduli"] = report.num_moduli;
  state.counters["exact_entries"] = static_cast<double>(report.exact_entries);
  if (chosen) return;
  if (report.num_moduli == 0) return state.SkipWithError("every entry is computed exactly");
  GemmOptions given;
  given.num_moduli = report.num_moduli;
  run(given, true);
}

#if defined(KOKKOS_ENABLE_CUDA)
const Shape shapes[] = {{1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}};
#else
const Shape shapes[] = {{256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {128, 128, 16384}};
#endif

}  // namespace

void register_benchmarks() {
  for (const Shape& shape : shapes)
    for (const double phi : {0.0, 1.0, 2.0, 4.0})
      for (const bool chosen : {true, false}) {
        std::ostringstream name;
        name << "Componentwise/" << (chosen ? "chosen/" : "given/") << phi << '/' << shape.name();
        standard(benchmark::RegisterBenchmark(
            name.str().c_str(),
            [shape, phi, chosen](benchmark::State& state) { product(state, shape, phi, chosen); }));
      }
}

}  // namespace KokkosOzaki::Perf
