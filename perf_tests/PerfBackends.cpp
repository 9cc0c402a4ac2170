// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// INT8 products alone, in operations (two per multiply-add) per second: Int8/<engine>/m/n/k, on CUDA also
// of several planes: Int8/<engine>/m/n/k/planes. And the reducers
// of the residue stage on one thread: Residues/<kernels>/moduli, residues per second.
#include <utility>
#include <vector>

#include "BenchmarkContext.hpp"
#include "KokkosOzaki_Backends.hpp"
#include "impl/KokkosOzaki_Moduli.hpp"
#include "impl/KokkosOzaki_Workspace.hpp"
#include "stages/KokkosOzaki_ResidueReducer.hpp"

namespace KokkosOzaki::Perf {

namespace {

struct FillFunctor {
  std::int8_t* data;
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    data[i] = static_cast<std::int8_t>((static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u) >> 56);
  }
};

void int8_products(benchmark::State& state, const std::string& engine_name, std::int64_t m, std::int64_t n,
                   std::int64_t k, int planes = 1) {
  Impl::PlaneGeometry g;
  g.m = m, g.n = n, g.k = k, g.count = planes;
  g.lda = g.ldb = Impl::round_up(k, Impl::k_padding);
  g.ldp = Impl::round_up(m, Impl::vector_padding);
  const std::int64_t rows = g.ldp, cols = Impl::round_up(n, Impl::vector_padding);
  g.stride_a = rows * g.lda, g.stride_b = cols * g.ldb, g.stride_p = g.ldp * cols;
  const auto engine = Impl::make_int8_gemm<Space>(engine_name.c_str());
  engine->prepare();
  using Bytes = Kokkos::View<std::int8_t*, Space::memory_space>;
  const Bytes a("a", static_cast<std::size_t>(planes * g.stride_a)),
      b("b", static_cast<std::size_t>(planes * g.stride_b));
  const Kokkos::View<std::int32_t*, Space::memory_space> p("p",
                                                           static_cast<std::size_t>(planes * g.stride_p));
  const Bytes workspace("workspace", engine->workspace_bytes(g));
  if (k == g.lda) {  // otherwise the padding of k has to stay zero
    for (int plane = 0; plane < planes; ++plane) {
      Kokkos::parallel_for("fill", Impl::Range<Space>(0, m * g.lda),
                           FillFunctor{a.data() + plane * g.stride_a});
      Kokkos::parallel_for("fill", Impl::Range<Space>(0, n * g.ldb),
                           FillFunctor{b.data() + plane * g.stride_b});
    }
  }
  measure(state, [&](const Space& exec) {
    engine->run(exec, g, a.data(), b.data(), p.data(), false, workspace.data());
  });
  state.counters["OP/s"] = benchmark::Counter(
      2.0 * planes * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
      benchmark::Counter::kIsIterationInvariantRate);
}

/// 2^16 entries through one set of leaf functions.
void residue_kernels(benchmark::State& state, const Impl::StageKernels* kernels, int num_moduli) {
  constexpr std::int64_t length = 1 << 16;
  const Impl::ModuliTable& table = Impl::moduli_tables()[num_moduli - Impl::min_moduli];
  std::vector<double> x(length);
  for (std::size_t i = 0; i < length; ++i) x[i] = std::ldexp(std::sin(static_cast<double>(i) + 1), 0);
  std::vector<std::int8_t> out(static_cast<std::size_t>(num_moduli) * length);
  for (auto iteration : state) {
    static_cast<void>(iteration);
    for (std::int64_t first = 0; first < length; first += Impl::chunk_length)
      kernels->residues(x.data() + first, Impl::chunk_length, 54, table, false, out.data() + first, length);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.counters["residues/s"] = benchmark::Counter(static_cast<double>(num_moduli) * length,
                                                    benchmark::Counter::kIsIterationInvariantRate);
}

/// The same entries through the FP64 remainder chain of the literature.
void residue_fp64_chain(benchmark::State& state, int num_moduli) {
  constexpr std::size_t length = 1 << 16;
  std::vector<double> x(length);
  for (std::size_t i = 0; i < length; ++i)
    x[i] = std::rint(std::ldexp(std::sin(static_cast<double>(i) + 1), 54));
  std::vector<std::int8_t> out(static_cast<std::size_t>(num_moduli) * length);
  for (auto iteration : state) {
    static_cast<void>(iteration);
    for (std::size_t p = 0; p < static_cast<std::size_t>(num_moduli); ++p)
      for (std::size_t i = 0; i < length; ++i)
        out[p * length + i] = Impl::residue_fp64_chain(x[i], Impl::moduli[p]);
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  state.counters["residues/s"] = benchmark::Counter(static_cast<double>(num_moduli) * length,
                                                    benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

void register_benchmarks() {
  for (const std::string& engine : Impl::int8_gemm_names<Space>()) {
    const std::int64_t largest = engine == "portable" ? 512 : 2048;
    for (const std::int64_t n : {256, 512, 1024, 2048})
      if (n <= largest)
        standard(benchmark::RegisterBenchmark(
            ("Int8/" + engine + "/" + std::to_string(n) + "/" + std::to_string(n) + "/" + std::to_string(n))
                .c_str(),
            [engine, n](benchmark::State& state) { int8_products(state, engine, n, n, n); }));
    standard(benchmark::RegisterBenchmark(
        ("Int8/" + engine + "/32/32/100032").c_str(),
        [engine](benchmark::State& state) { int8_products(state, engine, 32, 32, 100032); }));
    if (Impl::is_host_space_v<Space> || engine == "portable") continue;
    for (const auto& [m, n] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {100, 100}, {16, 16}, {64, 64}, {128, 128}, {97, 3}})
      for (const std::int64_t k : {std::int64_t{16384}, Impl::max_k_block})
        standard(benchmark::RegisterBenchmark(("Int8/" + engine + "/" + std::to_string(m) + "/" +
                                               std::to_string(n) + "/" + std::to_string(k) + "/14")
                                                  .c_str(),
                                              [engine, m = m, n = n, k](benchmark::State& state) {
                                                int8_products(state, engine, m, n, k, 14);
                                              }));
  }
  if constexpr (!Impl::is_host_space_v<Space>) return;
  for (const int num_moduli : {14, 18})
    for (const Impl::StageKernels* kernels : {Impl::portable_stage_kernels(), Impl::avx512_stage_kernels()})
      if (kernels != nullptr)
        benchmark::RegisterBenchmark(
            (std::string("Residues/") + kernels->name + "/" + std::to_string(num_moduli)).c_str(),
            [kernels, num_moduli](benchmark::State& state) { residue_kernels(state, kernels, num_moduli); });
  benchmark::RegisterBenchmark("Residues/fp64_chain/14",
                               [](benchmark::State& state) { residue_fp64_chain(state, 14); });
}

}  // namespace KokkosOzaki::Perf
