// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "impl/KokkosOzaki_Dispatch.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <tuple>

#include "stages/KokkosOzaki_ExactProducts.hpp"
#include "stages/cuda/KokkosOzaki_Capture_Cuda.hpp"

namespace KokkosOzaki::Impl {

namespace {

template <class Scalar>
constexpr const char* scalar_name() {
  if constexpr (is_complex_v<Scalar>)
    return std::is_same_v<RealOf<Scalar>, float> ? "complex<float>" : "complex<double>";
  else
    return std::is_same_v<Scalar, float> ? "float" : "double";
}

template <class ExecutionSpace>
std::string device_name() {
#if defined(KOKKOS_ENABLE_CUDA)
  if constexpr (is_cuda_space_v<ExecutionSpace>) return ExecutionSpace().cuda_device_prop().name;
#endif
  return cpu_name();
}

/// Numbers of a few digits, so that the exact products have something to do.
template <class Scalar>
struct FillFunctor {
  Scalar* data;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const auto x = static_cast<RealOf<Scalar>>(i % 1021 - 510) / 37;
    if constexpr (is_complex_v<Scalar>)
      data[i] = Scalar(x, 1 - x);
    else
      data[i] = x;
  }
};

/// Seconds of a call that enqueues on `exec`: the best of a few times several calls.
template <class ExecutionSpace, class Body>
double seconds_of(const ExecutionSpace& exec, const Body& body) {
  using Clock = std::chrono::steady_clock;
  constexpr int times = 2, calls = is_host_space_v<ExecutionSpace> ? 1 : 5;
  double best = std::numeric_limits<double>::infinity();
  body();
  for (int i = 0; i < times; ++i) {
    exec.fence();
    const auto start = Clock::now();
    for (int call = 0; call < calls; ++call) body();
    exec.fence();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count() / calls);
  }
  return best;
}

}  // namespace

template <class ExecutionSpace, class Scalar>
CostModel measure_costs(const char* backend) {
  // The products that the terms of the model are read from: next to nothing; all about multiplications, outputs, inputs.
  constexpr std::int64_t large = is_host_space_v<ExecutionSpace> ? 256 : 2048;
  const ProductSize none{16, 16, 16}, square{large, large, large}, flat{large, large, 16},
      deep{64, 64, large * large / 64}, exact{64, 64, 64};
  const ExecutionSpace exec;
  Context<ExecutionSpace> context(backend);
  context.native.prepare();
  using Memory = typename ExecutionSpace::memory_space;
  const auto view = [](const char* label) {
    return Kokkos::View<Scalar*, Memory>(Kokkos::view_alloc(std::string(label), Kokkos::WithoutInitializing),
                                         static_cast<std::size_t>(large * large));
  };
  const auto A = view("KokkosOzaki::costs_a"), B = view("KokkosOzaki::costs_b"),
             C = view("KokkosOzaki::costs_c");
  Kokkos::parallel_for(Labels::native, Range<ExecutionSpace>(exec, 0, large * large),
                       FillFunctor<Scalar>{A.data()});
  Kokkos::parallel_for(Labels::native, Range<ExecutionSpace>(exec, 0, large * large),
                       FillFunctor<Scalar>{B.data()});

  GemmOptions options;
  options.accuracy = Accuracy::normwise();
  int num_moduli = 0;
  const auto matrices = [&](const ProductSize& size) {
    return std::make_tuple(MatrixRef<const Scalar>{A.data(), size.m, size.k, 1, size.m},
                           MatrixRef<const Scalar>{B.data(), size.k, size.n, 1, size.k},
                           MatrixRef<Scalar>{C.data(), size.m, size.n, 1, size.m});
  };
  const auto native = [&](const ProductSize& size) {
    const auto [a, b, c] = matrices(size);
    return seconds_of(
        exec, [&, &a = a, &b = b, &c = c] { context.native.run(exec, Scalar(1), a, b, Scalar(0), c); });
  };
  const auto emulated = [&](const ProductSize& size) {
    const auto [a, b, c] = matrices(size);
    PlanImpl<ExecutionSpace, Scalar> plan("gemm", size.m, size.n, size.k, options, *context.engine);
    context.reserve(plan.workspace_bytes());
    num_moduli = plan.num_moduli();
    return seconds_of(exec, [&, &a = a, &b = b, &c = c] {
      plan.execute(exec, context, Scalar(1), rows_of(a), rows_of(b.transposed()), Scalar(0), c,
                   context.workspace.data());
    });
  };
  const auto rate = [](double seconds, double amount) { return std::max(0.0, seconds) / amount; };

  CostModel model;
  model.native_call = native(none);
  model.native_multiplication = rate(native(square) - model.native_call, square.multiplications());
  model.native_entry = rate(native(flat) - model.native_call, flat.inputs() + flat.outputs());
  model.emulated_call = emulated(none);
  // From small to large, as each has some of the others in it.
  model.output = rate(emulated(flat) - model.emulated_call, num_moduli * flat.outputs());
  model.input = rate(emulated(deep) - model.emulated_call, num_moduli * deep.inputs());
  const double of_square = emulated(square);
  model.int8_multiplication = rate(of_square - model.emulated_seconds(square, num_moduli),
                                   num_moduli * square.padded_multiplications());
  const auto [a, b, c] = matrices(exact);
  const Kokkos::View<std::int32_t*, Memory> exponents("KokkosOzaki::costs_exponents",
                                                      static_cast<std::size_t>(exact.m));
  model.exact_multiplication =
      rate(seconds_of(exec,
                      [&, &a = a, &b = b, &c = c] {
                        exact_product(exec, rows_of(a), rows_of(b.transposed()), exponents.data(),
                                      exponents.data(), EpilogueOf<Scalar>{Scalar(1), Scalar(0)}, c);
                      }),
           exact.multiplications());
  return model;
}

template <class ExecutionSpace, class Scalar>
std::string cost_key(const char* backend_name) {
  static const std::string device = device_name<ExecutionSpace>();
  std::string key = device + "; " + ExecutionSpace::name();
  if (is_host_space_v<ExecutionSpace>) key += " " + std::to_string(ExecutionSpace().concurrency());
  return key + "; " + scalar_name<Scalar>() + "; " + NativeGemm<ExecutionSpace>::name(true) + "; " +
         backend_name;
}

template <class ExecutionSpace, class Scalar>
bool native_is_faster(const char* function, const ExecutionSpace& exec,
                      const Context<ExecutionSpace>& context, const ProductSize& size,
                      const GemmOptions& options, const Selection* selection) {
  constexpr ScalarShape scalar = ScalarShape::of<Scalar>();
  if (!NativeGemm<ExecutionSpace>::has_vendor() || !native_keeps(scalar, size.k, options)) return false;
  if (!moduli_complaint(scalar, size.k, options).empty()) return false;  // the emulated product says so
  const char* const engine = context.engine->name();
  const std::string key = cost_key<ExecutionSpace, Scalar>(engine);
  if (!cost_model_is_known(key)) check_not_captured(function, exec);
  const CostModel model = cost_model(key, [&] { return measure_costs<ExecutionSpace, Scalar>(engine); });

  double emulated = 0;
  if (selection != nullptr) {
    const std::int64_t exact_entries = selection->all_exact ? size.m * size.n : selection->exact_entries;
    emulated = static_cast<double>(exact_entries) * static_cast<double>(size.k) * model.exact_multiplication;
    if (!selection->all_exact) emulated += model.emulated_seconds(size, selection->num_moduli);
  } else {
    // For data of any accuracy: the number that the norms ask for, which ordinary data need as well.
    int num_moduli = options.num_moduli;
    if (num_moduli == 0)
      num_moduli =
          select_normwise(parts_of_v<Scalar> * size.k,
                          options.accuracy.is_componentwise() ? Accuracy::normwise() : options.accuracy,
                          options.rounding, precision_v<Scalar>);
    if (num_moduli == 0) num_moduli = max_moduli;  // of a componentwise accuracy
    emulated = model.emulated_seconds(size, num_moduli);
    if (chooses_from_data(options)) emulated += model.selection_seconds(size);
  }
  return model.native_seconds(size) < emulated;
}

#define KOKKOSOZAKI_INSTANTIATE_SCALAR(SPACE, SCALAR)                                             \
  template CostModel measure_costs<SPACE, SCALAR>(const char*);                                   \
  template std::string cost_key<SPACE, SCALAR>(const char*);                                      \
  template bool native_is_faster<SPACE, SCALAR>(const char*, const SPACE&, const Context<SPACE>&, \
                                                const ProductSize&, const GemmOptions&, const Selection*);
#define KOKKOSOZAKI_INSTANTIATE(SPACE) KOKKOSOZAKI_FOR_EACH_SCALAR(KOKKOSOZAKI_INSTANTIATE_SCALAR, SPACE)
KOKKOSOZAKI_FOR_EACH_SPACE(KOKKOSOZAKI_INSTANTIATE)

}  // namespace KokkosOzaki::Impl
