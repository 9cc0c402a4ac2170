// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where the time of a call goes: green, the preparation of the inputs (statistics, scale, bound product,
// residues); yellow, the INT8 products; blue, the residues of the outputs; red, the reconstruction. From the
// library's profiling regions inside whole calls (with an engine that reduces, blue is part of yellow); and
// the residue stage in two steps with stored integers in place of one ("split"), on the same operands. Names:
// Stages/<backend>/<bound>/n/moduli. --csv=FILE writes a row for each n, bound, number of moduli and form as
// soon as it is there, and at the end FILE-fits.csv.
#include <cstdio>
#include <fstream>
#include <iostream>

#include "BenchmarkContext.hpp"
#include "KokkosOzaki_Backends.hpp"
#include "stages/KokkosOzaki_InputPreparation.hpp"

namespace KokkosOzaki::Perf {

namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// ---- time of the stages -----------------------------------------------------------------------------

#if defined(KOKKOS_ENABLE_CUDA)
/// Points of a stream, whose times are known when the work is done.
class Timeline {
 public:
  ~Timeline() {
    for (cudaEvent_t event : m_events) cudaEventDestroy(event);
  }
  std::size_t mark(const Space& exec) {
    if (m_used == m_events.size()) cudaEventCreate(&m_events.emplace_back());
    cudaEventRecord(m_events[m_used], exec.cuda_stream());
    return m_used++;
  }
  double seconds(std::size_t from, std::size_t to) const {
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, m_events[from], m_events[to]);
    return 1e-3 * static_cast<double>(milliseconds);
  }
  void clear() { m_used = 0; }

 private:
  std::vector<cudaEvent_t> m_events;
  std::size_t m_used = 0;
};
#else
/// Points of time between fences.
class Timeline {
  using Clock = std::chrono::steady_clock;

 public:
  std::size_t mark(const Space& exec) {
    exec.fence();
    m_times.push_back(Clock::now());
    return m_times.size() - 1;
  }
  double seconds(std::size_t from, std::size_t to) const {
    return std::chrono::duration<double>(m_times[to] - m_times[from]).count();
  }
  void clear() { m_times.clear(); }

 private:
  std::vector<Clock::time_point> m_times;
};
#endif

/// Seconds of each stage in each of several calls, from the library's regions. Regions are not nested.
class StageRecorder {
 public:
  StageRecorder() {
    active() = this;
    namespace Tools = Kokkos::Tools::Experimental;
    Tools::set_push_region_callback([](const char* name) { active()->push(name); });
    Tools::set_pop_region_callback([] { active()->pop(); });
    Tools::set_begin_parallel_for_callback(
        [](const char* name, std::uint32_t, std::uint64_t*) { active()->begin_kernel(name); });
  }
  ~StageRecorder() {
    namespace Tools = Kokkos::Tools::Experimental;
    Tools::set_push_region_callback(nullptr);
    Tools::set_pop_region_callback(nullptr);
    Tools::set_begin_parallel_for_callback(nullptr);
  }
  StageRecorder(const StageRecorder&) = delete;
  StageRecorder& operator=(const StageRecorder&) = delete;

  void clear() {
    m_exec.fence();
    m_regions.clear();
    m_timeline.clear();
    m_calls = 0;
  }
  void end_call() { ++m_calls; }

  /// The median over the calls; they must be done.
  double median_ms(const std::string& stage) const {
    std::vector<double> of_call(m_calls, 0.0);
    for (const Region& region : m_regions)
      if (region.stage == stage) of_call[region.call] += m_timeline.seconds(region.from, region.to);
    return 1e3 * median(of_call);
  }

 private:
  struct Region {
    std::string stage;
    std::size_t call, from, to;
  };

  static StageRecorder*& active() {
    static StageRecorder* recorder = nullptr;
    return recorder;
  }

  void push(const char* name) {
    m_name = name;
    m_name = m_name.substr(m_name.rfind(':') + 1);
    m_kernel.clear();
    m_from = m_timeline.mark(m_exec);
  }
  void pop() {
    const std::size_t to = m_timeline.mark(m_exec);
    m_regions.push_back({stage(), m_calls, m_from, to});
  }
  void begin_kernel(const char* name) {
    if (m_kernel.empty()) m_kernel = name;
  }

  /// The regions of the bound product are called scale too; their first kernel tells them apart.
  std::string stage() const {
    if (m_name != "scale") return m_name;
    for (const char* part : {"quantize", "bound_maxima"})
      if (m_kernel.find(part) != std::string::npos) return part;
    return m_kernel.find("::scale") != std::string::npos ? "scale" : "bound_product";
  }

  Space m_exec;
  Timeline m_timeline;
  std::string m_name, m_kernel;
  std::size_t m_from = 0, m_calls = 0;
  std::vector<Region> m_regions;
};

// ---- what is written --------------------------------------------------------------------------------

/// Milliseconds, medians.
struct Row {
  std::string backend;
  std::string bound;
  std::int64_t n = 0;
  int num_moduli = 0;
  std::string form;  // residues in one step, or in two
  int runs = 0;
  double statistics = 0, scale = 0, quantize = 0, bound_product = 0, bound_maxima = 0, integers = 0,
         residues = 0;
  double residues_alone = 0;  // repeated by itself; both steps of the split form
  double products = 0, reduction = 0, reconstruction = 0, repair = 0;
  double call = 0;  // unwatched
  bool accurate_used = false;

  double green() const {
    return statistics + scale + quantize + bound_product + bound_maxima + integers + residues;
  }
};

std::vector<Row> rows;
std::string csv_path;
std::ofstream csv;

void write(const Row& row) {
  rows.push_back(row);
  if (!csv.is_open()) return;
  csv << row.backend << ',' << row.n << ',' << row.bound << ',' << row.num_moduli << ',' << row.form << ','
      << row.runs << ',' << row.statistics << ',' << row.scale << ',' << row.quantize << ','
      << row.bound_product << ',' << row.bound_maxima << ',' << row.integers << ',' << row.residues << ','
      << row.green() << ',' << row.products << ',' << row.reduction << ',' << row.reconstruction << ','
      << row.repair << ',' << row.call << ',' << row.green() / row.products << ',' << row.residues_alone
      << ',' << row.accurate_used << ',' << git_hash() << std::endl;
}

struct Line {
  double intercept, slope;
};

/// The least squares y ~ intercept + slope x.
Line fit(const std::vector<double>& x, const std::vector<double>& y) {
  const auto count = static_cast<double>(x.size());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) mean_x += x[i] / count, mean_y += y[i] / count;
  for (std::size_t i = 0; i < x.size(); ++i)
    xx += (x[i] - mean_x) * (x[i] - mean_x), xy += (x[i] - mean_x) * (y[i] - mean_y);
  const double slope = xy / xx;
  return {mean_y - slope * mean_x, slope};
}

/// \brief Per backend, bound and form: green = c0 + c1 s and yellow = c2 s at each n, in ms; and green / yellow
/// = (a + b / s) / n, at each n and over all ("0"), with the largest relative deviation of that model.
void write_fits() {
  std::map<std::tuple<std::string, std::string, std::string, std::int64_t>, std::vector<Row>> groups;
  for (const Row& row : rows) {
    groups[{row.backend, row.bound, row.form, row.n}].push_back(row);
    groups[{row.backend, row.bound, row.form, 0}].push_back(row);
  }
  std::ostringstream text;
  text << "backend,bound,form,n,green_c0_ms,green_c1_ms,yellow_c2_ms,a,b,model_deviation\n";
  for (const auto& [key, group] : groups) {
    if (group.size() < 3) continue;
    const auto& [backend, bound, form, n] = key;
    std::vector<double> s, green, inverse_s, scaled_ratio;
    double yellow_s = 0, ss = 0;
    for (const Row& row : group) {
      s.push_back(row.num_moduli);
      green.push_back(row.green());
      inverse_s.push_back(1.0 / row.num_moduli);
      scaled_ratio.push_back(row.green() / row.products * static_cast<double>(row.n));
      yellow_s += row.products * s.back(), ss += s.back() * s.back();
    }
    const Line model = fit(inverse_s, scaled_ratio);
    double deviation = 0;
    for (std::size_t i = 0; i < s.size(); ++i)
      deviation = std::max(deviation,
                           std::fabs((model.intercept + model.slope * inverse_s[i]) / scaled_ratio[i] - 1));
    text << backend << ',' << bound << ',' << form << ',' << n << ',';
    if (n != 0) {
      const Line line = fit(s, green);
      text << line.intercept << ',' << line.slope << ',' << yellow_s / ss;
    } else {
      text << ",,";
    }
    text << ',' << model.intercept << ',' << model.slope << ',' << deviation << '\n';
  }
  std::cout << text.str();
  if (csv_path.empty()) return;
  const std::size_t dot = csv_path.rfind(".csv");
  std::ofstream(csv_path.substr(0, dot) + "-fits.csv") << text.str();
}

// ---- the measurement --------------------------------------------------------------------------------

/// Runs for a median in a time that a sweep can afford.
int runs_of(double seconds_per_run) {
  constexpr double most_seconds = 0.6;
  constexpr int most_runs = 15, fewest_runs = 5;
  return std::max(fewest_runs, std::min(most_runs, static_cast<int>(most_seconds / seconds_per_run)));
}

template <class Body>
double median_ms(int runs, const Body& body) {
  const Space exec;
  std::vector<double> times;
  body(exec);
  for (int i = 0; i < runs; ++i) times.push_back(seconds(exec, [&] { body(exec); }));
  return 1e3 * median(times);
}

void stages(benchmark::State& state, std::int64_t n, const GemmOptions& options) {
  // Two matrices: one would be in a cache for its second use.
  const Matrix A = input(n, n), B = input(n, n, 654321);
  Row row;
  row.backend = options.backend;
  row.bound = options.bound == Bound::fast ? "fast" : "accurate";
  row.n = n;
  row.num_moduli = options.num_moduli;
  row.form = "fused";
  for (auto iteration : state) {
    static_cast<void>(iteration);
    {
      const Matrix C("output", static_cast<std::size_t>(n), static_cast<std::size_t>(n));
      GemmPlan<Space, double> plan(Space(), 'N', 'N', n, n, n, options);
      const auto call = [&](const Space& exec) { plan.execute(exec, 1.0, A, B, 0.0, C); };
      row.call = median_ms(3, call);
      row.runs = runs_of(1e-3 * row.call);
      StageRecorder recorder;
      call(Space());
      recorder.clear();
      for (int i = 0; i < row.runs; ++i) {
        call(Space());
        recorder.end_call();
      }
      Space().fence();
      row.statistics = recorder.median_ms("statistics");
      row.scale = recorder.median_ms("scale");
      row.quantize = recorder.median_ms("quantize");
      row.bound_product = recorder.median_ms("bound_product");
      row.bound_maxima = recorder.median_ms("bound_maxima");
      row.residues = recorder.median_ms("residues");
      row.products = recorder.median_ms("multiply");
      row.reduction = recorder.median_ms("reduce");
      row.reconstruction = recorder.median_ms("reconstruct");
      row.repair = recorder.median_ms("repair");
      row.accurate_used = plan.report().bound_used == Bound::accurate;
    }
    Row split = row;
    split.form = "split";
    {
      const auto engine = Impl::make_int8_gemm<Space>(options.backend);
      engine->prepare();
      Impl::InputPreparation<Space> preparation(Impl::best_stage_kernels(), *engine, {A.data(), n, n, 1, n},
                                                {B.data(), n, n, n, 1}, options.num_moduli, options.bound,
                                                false);
      preparation.exponents(Space());
      row.residues_alone = median_ms(row.runs, [&](const Space& exec) { preparation.fused_residues(exec); });
      split.integers = median_ms(row.runs, [&](const Space& exec) { preparation.split_integers(exec); });
      split.residues = median_ms(row.runs, [&](const Space& exec) { preparation.split_residues(exec); });
    }
    split.residues_alone = split.integers + split.residues;
    state.SetIterationTime(1e-3 * row.call);
    write(row);
    write(split);
    state.counters["statistics_ms"] = row.statistics;
    state.counters["scale_ms"] = row.scale;
    if (options.bound == Bound::accurate)
      state.counters["bound_ms"] = row.quantize + row.bound_product + row.bound_maxima;
    state.counters["residues_ms"] = row.residues;
    state.counters["green_ms"] = row.green();
    state.counters["yellow_ms"] = row.products;
    state.counters["blue_ms"] = row.reduction;
    state.counters["red_ms"] = row.reconstruction;
    state.counters["repair_ms"] = row.repair;
    state.counters["fused_residues_ms"] = row.residues_alone;
    state.counters["split_integers_ms"] = split.integers;
    state.counters["split_residues_ms"] = split.residues;
    state.counters["runs"] = row.runs;
  }
}

#if defined(KOKKOS_ENABLE_CUDA)
const std::int64_t sizes[] = {1024, 2048, 8192, 16384};
const int moduli_counts[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
const char* const backends[] = {"cublas", "wgmma"};
#else
const std::int64_t sizes[] = {512, 1024, 2048};
const int moduli_counts[] = {8, 14, 16, 20};
const char* const backends[] = {"onednn", "host-amx", "host-avx512vnni", "host-avx2"};
#endif

}  // namespace

void register_benchmarks() {
  for (const char* backend : backends)
    for (const std::int64_t n : sizes)
      for (const int num_moduli : moduli_counts)
        for (const Bound bound : {Bound::fast, Bound::accurate}) {
          GemmOptions options;
          options.backend = backend;
          options.num_moduli = num_moduli;
          options.bound = bound;
          // One group of moduli at a time, so that reduction and reconstruction are stages of their own. An
          // engine that reduces is shown as it is used, and for the usual numbers of moduli.
          const bool reduces = std::string(backend) == "wgmma";
          options.moduli_per_group = reduces ? 0 : 1;
          if (reduces && (num_moduli < 13 || num_moduli > 18)) continue;
          if (!GemmPlan<Space, double>::can_run(n, n, n, options)) continue;
          const std::string name = std::string("Stages/") + backend +
                                   (bound == Bound::fast ? "/fast/" : "/accurate/") + std::to_string(n) +
                                   "/" + std::to_string(num_moduli);
          standard(benchmark::RegisterBenchmark(
              name.c_str(), [n, options](benchmark::State& state) { stages(state, n, options); }));
        }
}

/// Takes --csv=FILE from the arguments.
void open_csv(int& argc, char** argv) {
  const std::string option = "--csv=";
  int kept = 1;
  for (int i = 1; i < argc; ++i)
    if (std::string(argv[i]).compare(0, option.size(), option) == 0)
      csv_path = argv[i] + option.size();
    else
      argv[kept++] = argv[i];
  argc = kept;
  if (csv_path.empty()) return;
  csv.open(csv_path);
  if (!csv.is_open()) {
    std::fprintf(stderr, "PerfStages: %s cannot be written.\n", csv_path.c_str());
    std::exit(1);
  }
  csv << "backend,n,bound,moduli,form,runs,statistics_ms,scale_ms,quantize_ms,bound_product_ms,bound_maxima_"
         "ms,"
         "integers_ms,residues_ms,green_ms,yellow_ms,blue_ms,red_ms,repair_ms,call_ms,green_over_yellow,"
         "residues_alone_ms,accurate_used,commit"
      << std::endl;
}

}  // namespace KokkosOzaki::Perf

int main(int argc, char** argv) {
  namespace Perf = KokkosOzaki::Perf;
  // Kokkos would fence at every kernel and region that is watched.
  Kokkos::Tools::Experimental::EventSet events = Kokkos::Tools::Experimental::get_callbacks();
  events.request_tool_settings = [](const std::uint32_t, Kokkos_Tools_ToolSettings* settings) {
    settings->requires_global_fencing = false;
  };
  Kokkos::Tools::Experimental::set_callbacks(events);
  Kokkos::ScopeGuard kokkos(argc, argv);
  Perf::open_csv(argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Perf::add_context();
  Perf::register_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  Perf::write_fits();
  Perf::release_inputs();
  return 0;
}
