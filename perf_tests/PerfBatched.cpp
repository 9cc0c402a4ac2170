// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Many small products: one call of gemm_batched, on a rank-3 View and on an array, as many calls of gemm, and the
// vendor's batched product. Names: Batched/<form>/<backend>/<scalar>/<bound>/entries/m/n/k/moduli and
// Native/cuBLAS/entries/m/n/k.
#include <vector>

#include "BenchmarkContext.hpp"

#if defined(KOKKOS_ENABLE_CUDA)
#include <cublas_v2.h>
#endif

namespace KokkosOzaki::Perf {

namespace {

struct Shape {
  std::int64_t entries, m, n, k;
  std::string name() const {
    return std::to_string(entries) + "/" + std::to_string(m) + "/" + std::to_string(n) + "/" +
           std::to_string(k);
  }
};

template <class Scalar>
using Batch = Kokkos::View<Scalar***, Kokkos::LayoutLeft, Space>;

/// Of the numbers that the other benchmarks have, all parts alike.
template <class Scalar>
Batch<Scalar> random_batch(std::int64_t rows, std::int64_t cols, std::int64_t entries) {
  const Matrix numbers = input(rows, cols * entries);
  const Batch<Scalar> batch("batch", static_cast<std::size_t>(rows), static_cast<std::size_t>(cols),
                            static_cast<std::size_t>(entries));
  const auto from = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), numbers);
  const auto to = Kokkos::create_mirror_view(batch);
  for (std::size_t e = 0; e < to.extent(2); ++e)
    for (std::size_t j = 0; j < to.extent(1); ++j)
      for (std::size_t i = 0; i < to.extent(0); ++i) {
        const double x = from(i, e * to.extent(1) + j);
        if constexpr (std::is_floating_point_v<Scalar>)
          to(i, j, e) = static_cast<Scalar>(x);
        else
          to(i, j, e) = Scalar(static_cast<typename Scalar::value_type>(x),
                               static_cast<typename Scalar::value_type>(0.5 - x));
      }
  Kokkos::deep_copy(batch, to);
  return batch;
}

enum class Form { strided, array, single_calls };
constexpr const char* form_names[] = {"strided", "array", "single_calls"};

template <class Scalar>
void emulated(benchmark::State& state, const Shape& shape, Form form, const GemmOptions& options) {
  const auto A = random_batch<Scalar>(shape.m, shape.k, shape.entries);
  const auto B = random_batch<Scalar>(shape.k, shape.n, shape.entries);
  const auto C = random_batch<Scalar>(shape.m, shape.n, shape.entries);
  using View = Kokkos::View<Scalar**, Kokkos::LayoutLeft, Space>;
  std::vector<View> a, b, c;
  for (std::size_t e = 0; e < C.extent(2); ++e) {
    a.push_back(Kokkos::subview(A, Kokkos::ALL, Kokkos::ALL, e));
    b.push_back(Kokkos::subview(B, Kokkos::ALL, Kokkos::ALL, e));
    c.push_back(Kokkos::subview(C, Kokkos::ALL, Kokkos::ALL, e));
  }
  const Scalar one(1), zero(0);
  measure(state, [&](const Space& exec) {
    if (form == Form::strided)
      gemm_batched(exec, "N", "N", one, A, B, zero, C, options);
    else if (form == Form::array)
      gemm_batched(exec, "N", "N", one, a, b, zero, c, options);
    else
      for (std::size_t e = 0; e < c.size(); ++e) gemm(exec, "N", "N", one, a[e], b[e], zero, c[e], options);
  });
  count_flops(state, static_cast<double>(shape.m) * static_cast<double>(shape.entries),
              static_cast<double>(shape.n), static_cast<double>(shape.k));
}

#if defined(KOKKOS_ENABLE_CUDA)
void native_cublas(benchmark::State& state, const Shape& shape) {
  const auto A = random_batch<double>(shape.m, shape.k, shape.entries);
  const auto B = random_batch<double>(shape.k, shape.n, shape.entries);
  const auto C = random_batch<double>(shape.m, shape.n, shape.entries);
  const int m = static_cast<int>(shape.m), n = static_cast<int>(shape.n), k = static_cast<int>(shape.k);
  const double one = 1.0, zero = 0.0;
  cublasHandle_t handle;
  cublasStatus_t status = cublasCreate(&handle);
  measure(state, [&](const Space& exec) {
    if (status == CUBLAS_STATUS_SUCCESS) status = cublasSetStream(handle, exec.cuda_stream());
    if (status == CUBLAS_STATUS_SUCCESS)
      status = cublasDgemmStridedBatched(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, A.data(), m,
                                         shape.m * shape.k, B.data(), k, shape.k * shape.n, &zero, C.data(),
                                         m, shape.m * shape.n, static_cast<int>(shape.entries));
  });
  if (status != CUBLAS_STATUS_SUCCESS) state.SkipWithError(cublasGetStatusName(status));
  cublasDestroy(handle);
  count_flops(state, static_cast<double>(shape.m) * static_cast<double>(shape.entries),
              static_cast<double>(shape.n), static_cast<double>(shape.k));
}
#endif

const Shape shapes[] = {{1000, 64, 64, 64}, {200, 128, 128, 128}, {1000, 16, 16, 16}};

#if defined(KOKKOS_ENABLE_CUDA)
const char* const backends[] = {"wgmma", "cublas"};
#else
const char* const backends[] = {"onednn", "host-amx", "host-avx512vnni", "host-avx2"};
#endif

/// \param num_moduli 0: chosen for each product from the data
template <class Scalar>
void register_scalar(const char* scalar, int num_moduli) {
  GemmOptions options;
  options.num_moduli = num_moduli;
  for (const Shape& shape : shapes)
    for (const char* backend : backends) {
      options.backend = backend;
      if (!GemmPlan<Space, Scalar>::can_run(shape.m, shape.n, shape.k, options)) continue;
      for (const Bound bound : {Bound::fast, Bound::accurate}) {
        options.bound = bound;
        if (num_moduli == 0 && bound == Bound::accurate) continue;  // it has the fast exponents
        for (const Form form : {Form::strided, Form::array, Form::single_calls}) {
          const std::string name = std::string("Batched/") + form_names[static_cast<int>(form)] + "/" +
                                   backend + "/" + scalar + (bound == Bound::fast ? "/fast/" : "/accurate/") +
                                   shape.name() + "/" +
                                   (num_moduli == 0 ? "chosen" : std::to_string(num_moduli));
          standard(
              benchmark::RegisterBenchmark(name.c_str(), [shape, form, options](benchmark::State& state) {
                emulated<Scalar>(state, shape, form, options);
              }));
        }
      }
    }
}

}  // namespace

void register_benchmarks() {
#if defined(KOKKOS_ENABLE_CUDA)
  for (const Shape& shape : shapes)
    standard(benchmark::RegisterBenchmark(("Native/cuBLAS/" + shape.name()).c_str(),
                                          [shape](benchmark::State& state) { native_cublas(state, shape); }));
#endif
  register_scalar<double>("double", 14);
  register_scalar<double>("double", 0);
  register_scalar<float>("float", 7);
  register_scalar<Kokkos::complex<double>>("complex_double", 14);
}

}  // namespace KokkosOzaki::Perf
