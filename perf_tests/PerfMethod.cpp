// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whether Method::automatic takes the faster method: the same product emulated, native and automatic, one after the other.
// Names: Method/<emulated|native|automatic>/<14|chosen>/m/n/k, with 14 moduli or a number chosen from the data; the
// counter `native` says what ran.
#include "BenchmarkContext.hpp"

namespace KokkosOzaki::Perf {

namespace {

struct Shape {
  std::int64_t m, n, k;
  std::string name() const { return std::to_string(m) + "/" + std::to_string(n) + "/" + std::to_string(k); }
};

void product(benchmark::State& state, const Shape& shape, const GemmOptions& options) {
  const Matrix A = input(shape.m, shape.k), B = input(shape.k, shape.n);
  const Matrix C("output", static_cast<std::size_t>(shape.m), static_cast<std::size_t>(shape.n));
  GemmPlan<Space, double> plan(Space(), 'N', 'N', shape.m, shape.n, shape.k, options);
  measure(state, [&](const Space& exec) { plan.execute(exec, 1.0, A, B, 0.0, C); });
  count_flops(state, static_cast<double>(shape.m), static_cast<double>(shape.n),
              static_cast<double>(shape.k));
  state.counters["native"] = plan.report().method == Method::native;
}

#if defined(KOKKOS_ENABLE_CUDA)
const std::int64_t squares[] = {256, 384, 512, 768, 1024, 1536, 2048, 2560, 3072, 3584, 4096, 6144, 8192};
const Shape thin[] = {{1024, 1024, 16384}, {8192, 8192, 1024}, {8192, 8192, 128},
                      {8192, 64, 8192},    {16, 16, 65536},    {100, 100, 1000000}};
#else
const std::int64_t squares[] = {64, 128, 256, 512, 1024};
const Shape thin[] = {{1024, 64, 4096}, {1024, 1024, 32}, {32, 32, 100000}};
#endif

}  // namespace

void register_benchmarks() {
  std::vector<Shape> shapes(std::begin(thin), std::end(thin));
  for (const std::int64_t n : squares) shapes.push_back({n, n, n});
  for (const Shape& shape : shapes)
    for (const int num_moduli : {14, 0})
      for (const auto& [name, method] : {std::pair<const char*, Method>{"emulated/", Method::emulated},
                                         {"native/", Method::native},
                                         {"automatic/", Method::automatic}}) {
        GemmOptions options;
        options.num_moduli = num_moduli;
        options.method = method;
        standard(benchmark::RegisterBenchmark(
            (std::string("Method/") + name + (num_moduli == 0 ? "chosen/" : "14/") + shape.name()).c_str(),
            [shape, options](benchmark::State& state) { product(state, shape, options); }));
      }
}

}  // namespace KokkosOzaki::Perf
