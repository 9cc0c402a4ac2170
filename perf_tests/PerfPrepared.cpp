// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ten products with one A: plain calls of a plan, with A prepared before, and with its preparation in the time. Names:
// Prepared/<form>/<backend>/<bound>/m/n/k/moduli.
#include "BenchmarkContext.hpp"

namespace KokkosOzaki::Perf {

namespace {

constexpr int product_count = 10;

struct Shape {
  std::int64_t m, n, k;
  std::string name() const { return std::to_string(m) + "/" + std::to_string(n) + "/" + std::to_string(k); }
};

enum class Form { plain, prepared, with_preparation };
constexpr const char* form_names[] = {"plain", "prepared", "with_preparation"};

void ten_products(benchmark::State& state, const Shape& shape, Form form, const GemmOptions& options) {
  const Matrix A = input(shape.m, shape.k);
  const Matrix B[2] = {input(shape.k, shape.n), input(shape.k, shape.n, 654321)};
  const Matrix C("output", static_cast<std::size_t>(shape.m), static_cast<std::size_t>(shape.n));
  GemmPlan<Space, double> plan(Space(), 'N', 'N', shape.m, shape.n, shape.k, options);
  const auto products = [&](const Space& exec, const auto& a) {
    for (int i = 0; i < product_count; ++i) plan.execute(exec, 1.0, a, B[i % 2], 0.0, C);
  };
  const auto prepared = prepare_a(Space(), "N", A, options);
  measure(state, [&](const Space& exec) {
    if (form == Form::plain) {
      products(exec, A);
    } else if (form == Form::prepared) {
      products(exec, prepared);
    } else {
      const auto a = prepare_a(exec, "N", A, options);
      products(exec, a);
      exec.fence();  // a ends here
    }
  });
  count_flops(state, product_count * static_cast<double>(shape.m), static_cast<double>(shape.n),
              static_cast<double>(shape.k));
  state.counters["prepared_bytes"] = static_cast<double>(prepared.bytes());
}

// Square ones, and thin partners of a large A, where its preparation is most of the work.
#if defined(KOKKOS_ENABLE_CUDA)
const Shape shapes[] = {
    {1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192}, {8192, 256, 8192}};
const char* const backends[] = {"wgmma", "cublas"};
#else
const Shape shapes[] = {
    {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {1024, 64, 1024}, {2048, 16, 2048}};
const char* const backends[] = {"onednn", "host-amx", "host-avx512vnni", "host-avx2"};
#endif

}  // namespace

void register_benchmarks() {
  for (const Shape& shape : shapes)
    for (const char* backend : backends)
      for (const Bound bound : {Bound::fast, Bound::accurate}) {
        GemmOptions options;
        options.backend = backend;
        options.bound = bound;
        options.num_moduli = 14;
        if (!GemmPlan<Space, double>::can_run(shape.m, shape.n, shape.k, options)) continue;
        for (const Form form : {Form::plain, Form::prepared, Form::with_preparation}) {
          const std::string name = std::string("Prepared/") + form_names[static_cast<int>(form)] + "/" +
                                   backend + (bound == Bound::fast ? "/fast/" : "/accurate/") + shape.name() +
                                   "/" + std::to_string(options.num_moduli);
          standard(
              benchmark::RegisterBenchmark(name.c_str(), [shape, form, options](benchmark::State& state) {
                ten_products(state, shape, form, options);
              }));
        }
      }
}

}  // namespace KokkosOzaki::Perf
