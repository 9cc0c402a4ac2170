// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every 32-bit product, for every modulus: minutes on all cores. KOKKOSOZAKI_SWEEP_STRIDE=64 takes one block
// of 4096 products in 64.

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "StageReference.hpp"
#include "StageTestSupport.hpp"
#include "stages/KokkosOzaki_Reduce.hpp"
#include "stages/KokkosOzaki_ResidueReducer.hpp"

namespace KokkosOzaki::Testing {
namespace {

constexpr std::int64_t block_length = 4096;
constexpr std::int64_t block_count = (std::int64_t{1} << 32) / block_length;

std::int64_t sweep_stride() {
  const char* text = std::getenv("KOKKOSOZAKI_SWEEP_STRIDE");
  return text != nullptr && std::atoll(text) > 0 ? std::atoll(text) : 1;
}

/// The value whose residue is expected. For odd moduli a product is read as four signed bytes, whose largest
/// number is 0x7F7F7F7F: what is above means P - 2^32, and no sum of products up to max_k_block gets there.
KOKKOS_FUNCTION std::int64_t meaning(std::int64_t P, int p) {
  return p != 0 && P > 0x7F7F7F7F ? P - (std::int64_t{1} << 32) : P;
}

/// Block by block, `reduce(P, length, y)` against the periodic sequence of centered(w P).
template <class Reduce>
struct SweepFunctor {
  Reduce reduce;
  const std::int8_t* period;  // centered(w i) for i = 0 .. m + block_length
  std::int32_t m;
  int p;
  std::int64_t stride;

  void operator()(std::int64_t index, std::int64_t& wrong) const {
    const std::int64_t first = index * stride * block_length - (std::int64_t{1} << 31);
    std::int32_t P[block_length];
    std::int8_t y[block_length];
    for (std::int64_t i = 0; i < block_length; ++i) P[i] = static_cast<std::int32_t>(first + i);
    reduce(P, block_length, y);
    // The meaning changes inside one block only, at 0x7F7F7F80.
    for (std::int64_t begin = 0, end; begin < block_length; begin = end) {
      const std::int64_t value = meaning(first + begin, p);
      end = block_length;
      if (value - (first + begin) != meaning(first + end - 1, p) - (first + end - 1))
        end = 0x7F7F7F80 - first;
      const std::int64_t phase = ((value % m) + m) % m;
      if (std::memcmp(y + begin, period + phase, static_cast<std::size_t>(end - begin)) == 0) continue;
      for (std::int64_t i = begin; i < end; ++i) wrong += y[i] != period[phase + i - begin];
    }
  }
};

template <class Reduce>
void sweep(int s, int p, const std::string& what, const Reduce& reduce) {
  const std::int32_t m = Impl::moduli[p];
  const int w = reference_inverse(s, p);
  std::vector<std::int8_t> period;
  for (std::int64_t i = 0; i <= m + block_length; ++i)
    period.push_back(static_cast<std::int8_t>(Impl::centered(i * w, m)));
  using ExecutionSpace = Kokkos::DefaultHostExecutionSpace;
  const std::int64_t stride = sweep_stride();
  std::int64_t wrong = 0;
  Kokkos::parallel_reduce("sweep", Impl::Range<ExecutionSpace>(0, (block_count + stride - 1) / stride),
                          SweepFunctor<Reduce>{reduce, period.data(), m, p, stride}, wrong);
  EXPECT_EQ(wrong, 0) << what << ", s = " << s << ", modulus " << m;
}

struct ScalarReduce {
  const Impl::ModuliTable* table;
  int p;
  void operator()(const std::int32_t* P, std::int64_t length, std::int8_t* y) const {
    for (std::int64_t i = 0; i < length; ++i) y[i] = Impl::output_residue(P[i], 0, *table, p);
  }
};

struct KernelReduce {
  const Impl::StageKernels* kernels;
  const Impl::ModuliTable* table;
  int p;
  void operator()(const std::int32_t* P, std::int64_t length, std::int8_t* y) const {
    kernels->reduce(P, length, *table, p, false, y);
  }
};

#if defined(KOKKOS_ENABLE_CUDA)

/// products[i] := first + i
struct ConsecutiveFunctor {
  std::int64_t first;
  std::int32_t* products;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    products[i] = static_cast<std::int32_t>(first + i);
  }
};

/// Counts the residues that differ from the periodic sequence.
struct CompareFunctor {
  std::int64_t first;
  const std::int8_t* residues;
  const std::int8_t* period;  // centered(w i) for i = 0 .. m - 1
  std::int64_t m;
  int p;

  KOKKOS_FUNCTION void operator()(std::int64_t i, std::int64_t& wrong) const {
    const std::int64_t phase = meaning(first + i, p) % m;
    wrong += residues[i] != period[phase < 0 ? phase + m : phase];
  }
};

/// The kernel of the stage, on the device.
void sweep_on_device(int s, int p) {
  using View = Kokkos::View<std::int8_t*, Kokkos::CudaSpace>;
  constexpr std::int64_t length = std::int64_t{1} << 26, rows = std::int64_t{1} << 16;
  const std::int32_t m = Impl::moduli[p];
  const int w = reference_inverse(s, p);
  std::vector<std::int8_t> period;
  for (std::int64_t i = 0; i < m; ++i) period.push_back(static_cast<std::int8_t>(Impl::centered(i * w, m)));
  const Kokkos::View<std::int32_t*, Kokkos::CudaSpace> products(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("products")), length);
  const View residues(Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("residues")), length);
  const Kokkos::Cuda exec;
  std::int64_t wrong = 0;
  for (std::int64_t first = -(std::int64_t{1} << 31); first < std::int64_t{1} << 31; first += length) {
    Kokkos::parallel_for("products", Impl::Range<Kokkos::Cuda>(exec, 0, length),
                         ConsecutiveFunctor{first, products.data()});
    // one plane, which is that of modulus p
    Impl::reduce(exec, Impl::portable_stage_kernels(),
                 {p, 1, rows, length / rows, rows, products.data(), length, residues.data(), 0}, &table_of(s),
                 false);
    std::int64_t wrong_here = 0;
    Kokkos::parallel_reduce("compare", Impl::Range<Kokkos::Cuda>(exec, 0, length),
                            CompareFunctor{first, residues.data(), period.data(), m, p}, wrong_here);
    wrong += wrong_here;
  }
  EXPECT_EQ(wrong, 0) << "on the device, s = " << s << ", modulus " << m;
}

#endif

void report_extent() {
  if (sweep_stride() != 1)
    std::printf("PARTIAL: one block in %lld (KOKKOSOZAKI_SWEEP_STRIDE)\n",
                static_cast<long long>(sweep_stride()));
}

class OutputReductionSweep : public ::testing::TestWithParam<int> {};

TEST_P(OutputReductionSweep, ScalarFormIsExactForAllProducts) {
  report_extent();
  const int s = GetParam();
  for (int p = 0; p < s; ++p) sweep(s, p, "output_residue", ScalarReduce{&table_of(s), p});
}

TEST_P(OutputReductionSweep, BestLeafFunctionIsExactForAllProducts) {
  report_extent();
  const int s = GetParam();
  const Impl::StageKernels* kernels = Impl::best_stage_kernels();
  std::printf("leaf functions: %s\n", kernels->name);
  for (int p = 0; p < s; ++p) sweep(s, p, kernels->name, KernelReduce{kernels, &table_of(s), p});
}

#if defined(KOKKOS_ENABLE_CUDA)
TEST_P(OutputReductionSweep, KernelForCudaIsExactForAllProducts) {
  const int s = GetParam();
  for (int p = 0; p < s; ++p) sweep_on_device(s, p);
}
#endif

INSTANTIATE_TEST_SUITE_P(Moduli, OutputReductionSweep, ::testing::Values(14, 20));

}  // namespace
}  // namespace KokkosOzaki::Testing
