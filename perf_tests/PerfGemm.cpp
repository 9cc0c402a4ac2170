// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The whole product, emulated and native, and one read of A and B, in one run. Names:
// Gemm/<backend>/<layouts>/<bound>/m/n/k/moduli, Native/<library>/m/n/k and Read/m/n/k.
#include <algorithm>

#include "BenchmarkContext.hpp"

#if defined(KOKKOSOZAKI_PERF_HAVE_KOKKOSKERNELS)
#include <KokkosBlas3_gemm.hpp>
#endif

#if defined(KOKKOS_ENABLE_CUDA)
#include <cublas_v2.h>
#endif

#if defined(KOKKOSOZAKI_PERF_HAVE_BLAS)
extern "C" void dgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k,
                       const double* alpha, const double* a, const int* lda, const double* b, const int* ldb,
                       const double* beta, double* c, const int* ldc);
#endif

namespace KokkosOzaki::Perf {

struct SumOfEntries {
  const double* a;
  const double* b;
  std::int64_t size_a, size_b;

  KOKKOS_FUNCTION void operator()(std::int64_t i, double& sum) const {
    if (i < size_a) sum += a[i];
    if (i < size_b) sum += b[i];
  }
};

namespace {

struct Shape {
  std::int64_t m, n, k;
  std::string name() const { return std::to_string(m) + "/" + std::to_string(n) + "/" + std::to_string(k); }
};

Matrix output(const Shape& shape) {
  return Matrix("output", static_cast<std::size_t>(shape.m), static_cast<std::size_t>(shape.n));
}

void emulated(benchmark::State& state, const Shape& shape, GemmOptions options) {
  const Matrix A = input(shape.m, shape.k), B = input(shape.k, shape.n), C = output(shape);
  const Space exec;
  GemmPlan<Space, double> plan(exec, 'N', 'N', shape.m, shape.n, shape.k, options);
  measure(state, [&](const Space& instance) { plan.execute(instance, 1.0, A, B, 0.0, C); });
  count_flops(state, static_cast<double>(shape.m), static_cast<double>(shape.n),
              static_cast<double>(shape.k));
  const GemmReport report = plan.report();
  state.counters["num_moduli"] = report.num_moduli;
  state.counters["accurate_used"] = report.bound_used == Bound::accurate;
  state.counters["workspace_bytes"] = static_cast<double>(plan.workspace_bytes());
}

/// Row-major C and op(A) read along its rows: the other forms of the residue stage.
void emulated_transposed(benchmark::State& state, const Shape& shape, GemmOptions options) {
  const Matrix A = input(shape.k, shape.m), B = input(shape.k, shape.n), C = output(shape);
  GemmPlan<Space, double> plan(Space(), 'T', 'N', shape.m, shape.n, shape.k, options);
  measure(state, [&](const Space& instance) { plan.execute(instance, 1.0, A, B, 0.0, C); });
  count_flops(state, static_cast<double>(shape.m), static_cast<double>(shape.n),
              static_cast<double>(shape.k));
}

/// To compare products of few rows and columns and a large k with: all that is done to the entries is a sum.
void read_operands(benchmark::State& state, const Shape& shape) {
  const Matrix A = input(shape.m, shape.k), B = input(shape.k, shape.n);
  const SumOfEntries sum_of{A.data(), B.data(), shape.m * shape.k, shape.k * shape.n};
  const std::int64_t range = std::max(sum_of.size_a, sum_of.size_b);
  const Kokkos::View<double, Space> sum("sum");  // no wait for the result
  measure(state, [&](const Space& exec) {
    Kokkos::parallel_reduce(
        "read", Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(exec, 0, range), sum_of, sum);
  });
}

#if defined(KOKKOSOZAKI_PERF_HAVE_BLAS) && !defined(KOKKOS_ENABLE_CUDA)
void native_blas(benchmark::State& state, const Shape& shape) {
  const Matrix A = input(shape.m, shape.k), B = input(shape.k, shape.n), C = output(shape);
  const int m = static_cast<int>(shape.m), n = static_cast<int>(shape.n), k = static_cast<int>(shape.k);
  const double one = 1.0, zero = 0.0;
  measure(state, [&](const Space&) {
    dgemm_("N", "N", &m, &n, &k, &one, A.data(), &m, B.data(), &k, &zero, C.data(), &m);
  });
  count_flops(state, m, n, k);
}
#endif

#if defined(KOKKOSOZAKI_PERF_HAVE_KOKKOSKERNELS) && !defined(KOKKOS_ENABLE_CUDA)
void native_kokkoskernels(benchmark::State& state, const Shape& shape) {
  const Matrix A = input(shape.m, shape.k), B = input(shape.k, shape.n), C = output(shape);
  measure(state, [&](const Space&) { KokkosBlas::gemm("N", "N", 1.0, A, B, 0.0, C); });
  count_flops(state, static_cast<double>(shape.m), static_cast<double>(shape.n),
              static_cast<double>(shape.k));
}
#endif

#if defined(KOKKOS_ENABLE_CUDA)
void native_cublas(benchmark::State& state, const Shape& shape) {
  const Matrix A = input(shape.m, shape.k), B = input(shape.k, shape.n), C = output(shape);
  const int m = static_cast<int>(shape.m), n = static_cast<int>(shape.n), k = static_cast<int>(shape.k);
  const double one = 1.0, zero = 0.0;
  cublasHandle_t handle;
  cublasStatus_t status = cublasCreate(&handle);
  measure(state, [&](const Space& exec) {
    if (status == CUBLAS_STATUS_SUCCESS) status = cublasSetStream(handle, exec.cuda_stream());
    if (status == CUBLAS_STATUS_SUCCESS)
      status = cublasDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, A.data(), m, B.data(), k, &zero,
                           C.data(), m);
  });
  if (status != CUBLAS_STATUS_SUCCESS) state.SkipWithError(cublasGetStatusName(status));
  cublasDestroy(handle);
  count_flops(state, static_cast<double>(shape.m), static_cast<double>(shape.n),
              static_cast<double>(shape.k));
}
#endif

#if defined(KOKKOS_ENABLE_CUDA)
constexpr bool all_bounds = true;
const Shape shapes[] = {{1024, 1024, 1024},    {2048, 2048, 2048},  {4096, 4096, 4096}, {8192, 8192, 8192},
                        {16384, 16384, 16384}, {1024, 1024, 16384}, {8192, 8192, 1024}, {100, 100, 1000000}};
const int moduli_counts[] = {13, 14, 15, 16, 17, 18};
const char* const backends[] = {"wgmma", "cublas"};
#else
constexpr bool all_bounds = false;
const Shape shapes[] = {{256, 256, 256},    {512, 512, 512},  {1024, 1024, 1024},
                        {2048, 2048, 2048}, {1024, 64, 4096}, {32, 32, 100000}};
const int moduli_counts[] = {8, 14, 16};
const char* const backends[] = {"onednn", "host-amx", "host-avx512vnni", "host-avx2"};
#endif

}  // namespace

void register_benchmarks() {
  for (const Shape& shape : shapes) {
    if (shape.k > 100 * std::max(shape.m, shape.n))
      standard(
          benchmark::RegisterBenchmark(("Read/" + shape.name()).c_str(),
                                       [shape](benchmark::State& state) { read_operands(state, shape); }));
#if defined(KOKKOS_ENABLE_CUDA)
    standard(benchmark::RegisterBenchmark(("Native/cuBLAS/" + shape.name()).c_str(),
                                          [shape](benchmark::State& state) { native_cublas(state, shape); }));
#elif defined(KOKKOSOZAKI_PERF_HAVE_BLAS)
    standard(benchmark::RegisterBenchmark(("Native/BLAS/" + shape.name()).c_str(),
                                          [shape](benchmark::State& state) { native_blas(state, shape); }));
#endif
#if defined(KOKKOSOZAKI_PERF_HAVE_KOKKOSKERNELS) && !defined(KOKKOS_ENABLE_CUDA)
    if (shape.m <= 512)  // its own host kernel, far from a tuned BLAS: shown for orientation
      standard(benchmark::RegisterBenchmark(
          ("Native/KokkosKernels/" + shape.name()).c_str(),
          [shape](benchmark::State& state) { native_kokkoskernels(state, shape); }));
#endif
    for (const char* backend : backends) {
      GemmOptions options;
      options.backend = backend;
      if (!GemmPlan<Space, double>::can_run(shape.m, shape.n, shape.k, options)) continue;
      for (const int num_moduli : moduli_counts) {
        options.num_moduli = num_moduli;
        for (const Bound bound : {Bound::fast, Bound::accurate}) {
          if (bound == Bound::accurate && !all_bounds && num_moduli != 14) continue;
          options.bound = bound;
          const std::string name = std::string("Gemm/") + backend + "/LLL/" +
                                   (bound == Bound::fast ? "fast/" : "accurate/") + shape.name() + "/" +
                                   std::to_string(num_moduli);
          standard(benchmark::RegisterBenchmark(
              name.c_str(), [shape, options](benchmark::State& state) { emulated(state, shape, options); }));
        }
      }
      options.bound = Bound::fast;
      options.num_moduli = 14;
      standard(benchmark::RegisterBenchmark(
          (std::string("Gemm/") + backend + "/RLL/fast/" + shape.name() + "/14").c_str(),
          [shape, options](benchmark::State& state) { emulated_transposed(state, shape, options); }));
    }
  }
}

}  // namespace KokkosOzaki::Perf
