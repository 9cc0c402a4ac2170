// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Ways to make residues of the same stored integers, with the same loads and stores:
// Reducers/<reducer>/vectors/positions/moduli. On a GPU their kernels are StoredResiduesKernel<ReducerByteDot>,
// <ReducerHighLow> and <ReducerFp64Chain>; README.md has the command that profiles them.
#include "BenchmarkContext.hpp"
#include "impl/KokkosOzaki_Moduli.hpp"
#include "impl/KokkosOzaki_Workspace.hpp"
#include "stages/KokkosOzaki_SplitResidues.hpp"

namespace KokkosOzaki::Perf {

namespace {

/// 50-bit integers, or the same as doubles.
struct FillIntegers {
  std::uint64_t* low;
  bool as_double;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    std::uint64_t z = (static_cast<std::uint64_t>(i) + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    const auto value = static_cast<std::int64_t>((z ^ (z >> 27)) >> 14) - (std::int64_t{1} << 49);
    low[i] = as_double ? Impl::bits_of(static_cast<double>(value)) : static_cast<std::uint64_t>(value);
  }
};

template <Impl::Reducer R>
void reduce_stored(benchmark::State& state, std::int64_t vectors, std::int64_t positions, int num_moduli) {
  const std::int64_t ld = Impl::round_up(positions, Impl::k_padding),
                     padded = Impl::round_up(vectors, Impl::vector_padding);
  const auto entries = static_cast<std::size_t>(ld * padded), s = static_cast<std::size_t>(num_moduli);
  const auto uninitialised = [](const char* name) {
    return Kokkos::view_alloc(std::string(name), Kokkos::WithoutInitializing);
  };
  using Memory = Space::memory_space;
  const Kokkos::View<std::uint64_t*, Memory> integers(uninitialised("integers"), entries);
  const Kokkos::View<std::int8_t*, Memory> planes(uninitialised("planes"), s * entries);
  const Kokkos::View<Impl::ModuliTable*, Memory> table(uninitialised("table"), 1);
  Kokkos::deep_copy(table, Kokkos::View<const Impl::ModuliTable*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
                               Impl::moduli_tables() + (num_moduli - Impl::min_moduli), 1));
  Kokkos::parallel_for("fill", Impl::Range<Space>(0, ld * padded),
                       FillIntegers{integers.data(), R == Impl::Reducer::fp64_chain});
  Impl::SplitOperand operand;
  operand.integers = {integers.data(), nullptr, ld, padded};
  operand.planes = {planes.data(), ld * padded, ld, padded};
  measure(state, [&](const Space& exec) {
    Impl::stored_residues<R>(exec, Impl::best_stage_kernels(), operand, {}, table.data(), num_moduli);
  });
  const double residues = static_cast<double>(entries * s);
  state.counters["residues/s"] = benchmark::Counter(residues, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["bytes/s"] = benchmark::Counter(residues + 8 * static_cast<double>(entries),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

template <Impl::Reducer R>
void add(const char* reducer) {
  const std::int64_t size = Impl::is_cuda_space_v<Space> ? 8192 : 1024;
  constexpr int num_moduli = 14;
  standard(benchmark::RegisterBenchmark(
      (std::string("Reducers/") + reducer + "/" + std::to_string(size) + "/" + std::to_string(size) + "/" +
       std::to_string(num_moduli))
          .c_str(),
      [size](benchmark::State& state) { reduce_stored<R>(state, size, size, num_moduli); }));
}

}  // namespace

void register_benchmarks() {
  add<Impl::Reducer::byte_dot>("byte_dot");
  add<Impl::Reducer::high_low>("high_low");
  add<Impl::Reducer::fp64_chain>("fp64_chain");
}

}  // namespace KokkosOzaki::Perf
