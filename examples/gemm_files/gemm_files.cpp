// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Multiplies two matrix files with INT8 products and reports time and verified error, for one number of
// moduli or for all of them: how many moduli do matrices like these need?

#include <KokkosOzaki.hpp>

#include <Kokkos_Core.hpp>

#include <CLI/CLI.hpp>

#include "ExactReference.hpp"
#include "MatrixFiles.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#ifdef GEMM_FILES_HAVE_BLAS
extern "C" void dgemm_(const char* transA, const char* transB, const int* m, const int* n, const int* k,
                       const double* alpha, const double* A, const int* lda, const double* B, const int* ldb,
                       const double* beta, double* C, const int* ldc);
#endif

namespace {

using GemmFiles::DenseMatrix;
using GemmFiles::ErrorSummary;
using GemmFiles::ExactSample;
using KokkosOzaki::Bound;
using KokkosOzaki::GemmOptions;

using ExecutionSpace = Kokkos::DefaultExecutionSpace;
using HostMatrix =
    Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
using DeviceMatrix = Kokkos::View<double**, Kokkos::LayoutLeft, ExecutionSpace::memory_space>;

constexpr int min_moduli = 2, max_moduli = 20;

struct Arguments {
  std::string a_path, b_path, c_path;
  std::string trans_a = "N", trans_b = "N";
  int num_moduli = 0;
  std::string bound = "fast";
  bool sweep = false;
};

const char* name_of(Bound bound) {
  return bound == Bound::fast ? "fast" : "accurate";
}

HostMatrix view_of(DenseMatrix& matrix) {
  return HostMatrix(matrix.values.data(), static_cast<std::size_t>(matrix.rows),
                    static_cast<std::size_t>(matrix.cols));
}

DenseMatrix make_product(std::int64_t m, std::int64_t n) {
  const std::size_t max_values = GemmFiles::physical_memory_bytes() / sizeof(double);
  if (m > 0 && static_cast<std::size_t>(n) > max_values / static_cast<std::size_t>(m))
    throw std::runtime_error("The product is " + std::to_string(m) + " x " + std::to_string(n) +
                             ", which does not fit into the memory of this machine.");
  DenseMatrix C;
  C.rows = m;
  C.cols = n;
  C.values.resize(static_cast<std::size_t>(m) * static_cast<std::size_t>(n));
  return C;
}

// Time spent in each profiling region of the library, without the regions inside it; by Kokkos Tools
// callbacks that are in place between start and stop.
class StageTimes {
 public:
  struct Stage {
    std::string name;
    double seconds;
  };

  static void start() {
    s_stages.clear();
    s_open.clear();
    s_old_callbacks = Kokkos::Tools::Experimental::get_callbacks();
    Kokkos::Tools::Experimental::set_push_region_callback(&StageTimes::push);
    Kokkos::Tools::Experimental::set_pop_region_callback(&StageTimes::pop);
    s_timer.reset();
  }

  static std::vector<Stage> stop() {
    Kokkos::Tools::Experimental::set_callbacks(s_old_callbacks);
    return s_stages;
  }

 private:
  // Work that was enqueued belongs to the region that is open.
  static void account() {
    Kokkos::fence();
    const double seconds = s_timer.seconds();
    s_timer.reset();
    const std::string prefix = "KokkosOzaki::";
    if (s_open.empty() || s_open.back().compare(0, prefix.size(), prefix) != 0) return;
    const std::string name = s_open.back().substr(prefix.size());
    auto stage =
        std::find_if(s_stages.begin(), s_stages.end(), [&](const Stage& s) { return s.name == name; });
    if (stage == s_stages.end()) stage = s_stages.insert(stage, {name, 0.0});
    stage->seconds += seconds;
  }

  static void push(const char* name) {
    account();
    s_open.emplace_back(name);
  }

  static void pop() {
    account();
    if (!s_open.empty()) s_open.pop_back();
  }

  static inline std::vector<Stage> s_stages;
  static inline std::vector<std::string> s_open;
  static inline Kokkos::Timer s_timer;
  static inline Kokkos::Tools::Experimental::EventSet s_old_callbacks;
};

struct Problem {
  DenseMatrix A, B;
  char transA = 'N', transB = 'N';
  std::int64_t m = 0, n = 0, k = 0;
};

// Where the library computes.
struct DeviceMatrices {
  DeviceMatrix A, B, C;
};

DeviceMatrix device_copy(DenseMatrix& matrix, const std::string& label) {
  const HostMatrix host = view_of(matrix);
  DeviceMatrix device(Kokkos::view_alloc(Kokkos::WithoutInitializing, label), host.extent(0), host.extent(1));
  Kokkos::deep_copy(device, host);
  return device;
}

Problem load(const Arguments& arguments) {
  Problem problem;
  problem.A = GemmFiles::read_matrix(arguments.a_path);
  problem.B = GemmFiles::read_matrix(arguments.b_path);
  problem.transA = arguments.trans_a[0];
  problem.transB = arguments.trans_b[0];
  const bool a_transposed = problem.transA != 'N', b_transposed = problem.transB != 'N';
  problem.m = a_transposed ? problem.A.cols : problem.A.rows;
  problem.k = a_transposed ? problem.A.rows : problem.A.cols;
  problem.n = b_transposed ? problem.B.rows : problem.B.cols;
  const std::int64_t l = b_transposed ? problem.B.cols : problem.B.rows;
  if (l != problem.k)
    throw std::runtime_error("op(B) has " + std::to_string(l) + " rows, op(A) has " +
                             std::to_string(problem.k) + " columns (" + arguments.a_path + " " +
                             std::to_string(problem.A.rows) + " x " + std::to_string(problem.A.cols) + " " +
                             problem.transA + ", " + arguments.b_path + " " + std::to_string(problem.B.rows) +
                             " x " + std::to_string(problem.B.cols) + " " + problem.transB + ").");
  return problem;
}

struct Emulated {
  DenseMatrix C;
  KokkosOzaki::GemmReport report;
  std::size_t workspace_bytes = 0;
  double seconds = 0.0;
  std::vector<StageTimes::Stage> stages;
};

// The first call warms caches and threads, the second is timed.
Emulated multiply(const Problem& problem, const DeviceMatrices& device, const GemmOptions& options) {
  const ExecutionSpace exec;
  KokkosOzaki::GemmPlan<ExecutionSpace, double> plan(exec, problem.transA, problem.transB, problem.m,
                                                     problem.n, problem.k, options);
  plan.execute(exec, 1.0, device.A, device.B, 0.0, device.C);
  exec.fence();
  Emulated result;
  StageTimes::start();
  const Kokkos::Timer timer;
  plan.execute(exec, 1.0, device.A, device.B, 0.0, device.C);
  exec.fence();
  result.seconds = timer.seconds();
  result.stages = StageTimes::stop();
  result.report = plan.report();
  result.workspace_bytes = plan.workspace_bytes();
  result.C = make_product(problem.m, problem.n);
  Kokkos::deep_copy(view_of(result.C), device.C);
  return result;
}

struct Native {
  DenseMatrix C;
  double seconds = 0.0;
};

#ifdef GEMM_FILES_HAVE_BLAS
constexpr const char* native_name = "BLAS dgemm";

void native_gemm(Problem& problem, DenseMatrix& C) {
  if (std::max({problem.m, problem.n, problem.k}) > INT_MAX)
    throw std::runtime_error("The matrices are too large for the BLAS that native FP64 is measured with.");
  const int m = static_cast<int>(problem.m), n = static_cast<int>(problem.n), k = static_cast<int>(problem.k);
  const int lda = static_cast<int>(std::max<std::int64_t>(1, problem.A.rows));
  const int ldb = static_cast<int>(std::max<std::int64_t>(1, problem.B.rows));
  const int ldc = std::max(1, m);
  const double alpha = 1.0, beta = 0.0;
  dgemm_(&problem.transA, &problem.transB, &m, &n, &k, &alpha, problem.A.values.data(), &lda,
         problem.B.values.data(), &ldb, &beta, C.values.data(), &ldc);
}
#else
constexpr const char* native_name = "one dot product per entry, a Kokkos kernel on the host";

void native_gemm(Problem& problem, DenseMatrix& C) {
  using Space = Kokkos::DefaultHostExecutionSpace;
  const HostMatrix A = view_of(problem.A), B = view_of(problem.B), product = view_of(C);
  const bool a_is_op = problem.transA == 'N', b_is_op = problem.transB == 'N';
  const std::int64_t m = problem.m, k = problem.k;
  Kokkos::parallel_for("gemm_files::native",
                       Kokkos::RangePolicy<Space, Kokkos::IndexType<std::int64_t>>(0, m * problem.n),
                       [=](const std::int64_t entry) {
                         const std::int64_t i = entry % m, j = entry / m;
                         double sum = 0.0;
                         for (std::int64_t l = 0; l < k; ++l)
                           sum += (a_is_op ? A(i, l) : A(l, i)) * (b_is_op ? B(l, j) : B(j, l));
                         product(i, j) = sum;
                       });
  Space().fence();
}
#endif

Native multiply_natively(Problem& problem) {
  Native result;
  result.C = make_product(problem.m, problem.n);
  native_gemm(problem, result.C);
  const Kokkos::Timer timer;
  native_gemm(problem, result.C);
  result.seconds = timer.seconds();
  return result;
}

void print_matrix(const char* name, const std::string& path, const DenseMatrix& matrix, char trans) {
  std::printf("%-12s%s: %lld x %lld, %s%s\n", name, path.c_str(), static_cast<long long>(matrix.rows),
              static_cast<long long>(matrix.cols), matrix.kind.c_str(), trans == 'N' ? "" : ", transposed");
}

void print_times(const Emulated& emulated) {
  double in_stages = 0.0;
  const auto line = [&](const std::string& name, double seconds) {
    std::printf("%-12s%-14s%12.3f ms%7.1f %%\n", "", name.c_str(), 1e3 * seconds,
                emulated.seconds > 0.0 ? 100.0 * seconds / emulated.seconds : 0.0);
  };
  std::printf("time        of the second call, stage by stage\n");
  for (const StageTimes::Stage& stage : emulated.stages) {
    line(stage.name, stage.seconds);
    in_stages += stage.seconds;
  }
  line("between", std::max(0.0, emulated.seconds - in_stages));
  line("total", emulated.seconds);
}

void print_sample(const Problem& problem, const ExactSample& sample) {
  const std::string size = std::to_string(sample.size());
  std::printf("error       |C - exact| / (|A||B|) in units of u = 2^-53, %s\n",
              sample.size() == 0     ? "of no entry"
              : sample.is_complete() ? ("of all " + size + " entries").c_str()
                                     : ("of a sample of " + size + " entries").c_str());
  if (sample.nonfinite_rows() != 0 || sample.nonfinite_cols() != 0)
    std::printf(
        "%-12s%lld of %lld rows of op(A) and %lld of %lld columns of op(B) hold Inf or NaN: left out\n", "",
        static_cast<long long>(sample.nonfinite_rows()), static_cast<long long>(problem.m),
        static_cast<long long>(sample.nonfinite_cols()), static_cast<long long>(problem.n));
}

void print_errors(const char* name, const ErrorSummary& errors, const std::string& remark) {
  std::printf("%-12s%-14s%12.3g%12.3g   %s\n", "", name, errors.max, errors.median, remark.c_str());
}

// What a plan without a given number of moduli did.
std::string choice_of(const KokkosOzaki::GemmReport& report) {
  if (report.num_moduli == 0) return "every entry exactly: more moduli than there are would be needed";
  std::string text = std::to_string(report.num_moduli) + " moduli";
  if (report.exact_entries != 0) text += ", " + std::to_string(report.exact_entries) + " entries exactly";
  return text;
}

// One column of the sweep: one bound, every number of moduli.
struct SweepColumn {
  explicit SweepColumn(Bound bound_of_column) : bound(bound_of_column) {}

  Bound bound;
  std::optional<int> as_native;  // smallest number of moduli whose largest error is at most native's
  std::optional<int> rounded;    // and that of the final rounding

  std::string cell(const Problem& problem, const DeviceMatrices& device, const ExactSample& sample,
                   int num_moduli, double native_max, double rounded_max) {
    GemmOptions options;
    options.num_moduli = num_moduli;
    options.bound = bound;
    if (!KokkosOzaki::GemmPlan<ExecutionSpace, double>::can_run(problem.m, problem.n, problem.k, options))
      return "too few moduli for this k";
    const Emulated emulated = multiply(problem, device, options);
    const ErrorSummary errors = sample.errors_of(emulated.C);
    if (!as_native && errors.max <= native_max) as_native = num_moduli;
    // within 1 %: what is left above the final rounding no longer matters
    if (!rounded && errors.max <= 1.01 * rounded_max) rounded = num_moduli;
    std::array<char, 96> text{};
    std::snprintf(
        text.data(), text.size(), "%10.3g %10.3g %9.3f%s", errors.max, errors.median, 1e3 * emulated.seconds,
        bound == Bound::accurate && emulated.report.bound_used == Bound::fast ? " fast exponents" : "");
    return text.data();
  }

  static std::string say(const std::optional<int>& num_moduli) {
    return num_moduli ? std::to_string(*num_moduli) : "more than " + std::to_string(max_moduli);
  }
};

void print_sweep(const Problem& problem, const DeviceMatrices& device, const ExactSample& sample,
                 const ErrorSummary& native, double native_seconds) {
  if (sample.size() == 0) {
    std::printf("\nsweep       no entry to measure\n");
    return;
  }
  const ErrorSummary rounded = sample.errors_of_rounded_product();
  SweepColumn fast(Bound::fast), accurate(Bound::accurate);
  std::printf(
      "\nsweep       errors as above, times in ms; 'fast exponents': the accurate bound found none finer\n");
  std::printf("%8s | %-32s| %-32s\n", "", "fast bound", "accurate bound");
  std::printf("%8s | %10s %10s %9s | %10s %10s %9s\n", "moduli", "max", "median", "time", "max", "median",
              "time");
  for (int s = min_moduli; s <= max_moduli; ++s) {
    const std::string left = fast.cell(problem, device, sample, s, native.max, rounded.max);
    const std::string right = accurate.cell(problem, device, sample, s, native.max, rounded.max);
    std::printf("%8d | %-32s| %s\n", s, left.c_str(), right.c_str());
    std::fflush(stdout);
  }
  const Emulated chosen = multiply(problem, device, {});
  const ErrorSummary chosen_errors = sample.errors_of(chosen.C);
  std::printf("%8s | %10.3g %10.3g %9.3f | %s\n", "chosen", chosen_errors.max, chosen_errors.median,
              1e3 * chosen.seconds, choice_of(chosen.report).c_str());
  std::printf("%8s | %10.3g %10.3g %9.3f |\n", "native", native.max, native.median, 1e3 * native_seconds);
  std::printf("%8s | %10.3g %10.3g %9s |\n", "rounded", rounded.max, rounded.median, "");
  std::printf(
      "\nIn the largest error, matching native FP64 takes %s moduli with the fast bound and %s with the "
      "accurate bound; "
      "reaching the final rounding takes %s and %s.\n",
      SweepColumn::say(fast.as_native).c_str(), SweepColumn::say(accurate.as_native).c_str(),
      SweepColumn::say(fast.rounded).c_str(), SweepColumn::say(accurate.rounded).c_str());
}

void run(const Arguments& arguments, Problem& problem) {
  print_matrix("A", arguments.a_path, problem.A, problem.transA);
  print_matrix("B", arguments.b_path, problem.B, problem.transB);
  std::printf("product     %lld x %lld, k = %lld\n", static_cast<long long>(problem.m),
              static_cast<long long>(problem.n), static_cast<long long>(problem.k));

  Native native = multiply_natively(problem);
  const DeviceMatrices device{device_copy(problem.A, "gemm_files::A"),
                              device_copy(problem.B, "gemm_files::B"),
                              DeviceMatrix("gemm_files::C", static_cast<std::size_t>(problem.m),
                                           static_cast<std::size_t>(problem.n))};
  GemmOptions options;
  options.num_moduli = arguments.num_moduli;
  options.bound = arguments.bound == "fast" ? Bound::fast : Bound::accurate;
  if (options.bound == Bound::accurate) options.accuracy = KokkosOzaki::Accuracy::normwise();
  const Emulated emulated = multiply(problem, device, options);
  if (emulated.report.componentwise_bound != 0) {
    std::printf(
        "method      %s, chosen from the data; proven: error at most %g u |A||B| before the last rounding\n",
        choice_of(emulated.report).c_str(), emulated.report.componentwise_bound);
  } else {
    const bool fell_back = emulated.report.bound_used != options.bound;
    std::printf("method      %d moduli%s, %s bound%s\n", emulated.report.num_moduli,
                options.num_moduli == 0 ? " (chosen from k)" : "", name_of(options.bound),
                fell_back ? " (which chose the fast exponents)" : "");
  }
  std::printf("engine      %s\n", emulated.report.backend);
  std::printf("workspace   %zu bytes\n", emulated.workspace_bytes);
  print_times(emulated);
  std::fflush(stdout);

  const ExactSample sample(problem.A, problem.transA, problem.B, problem.transB);
  const ErrorSummary native_errors = sample.errors_of(native.C);
  print_sample(problem, sample);
  std::array<char, 96> native_remark{};
  std::snprintf(native_remark.data(), native_remark.size(), "%s, %.3f ms", native_name, 1e3 * native.seconds);
  std::printf("%-12s%-14s%12s%12s\n", "", "", "max", "median");
  print_errors("emulated", sample.errors_of(emulated.C), "");
  print_errors("native FP64", native_errors, native_remark.data());
  print_errors("rounded", sample.errors_of_rounded_product(), "the exact product, each entry rounded once");
  native.C = {};

  if (!arguments.c_path.empty()) {
    GemmFiles::write_matrix(arguments.c_path, emulated.C);
    std::printf("written     %s\n", arguments.c_path.c_str());
  }
  if (arguments.sweep) print_sweep(problem, device, sample, native_errors, native.seconds);
}

// Nothing when the program is to go on, otherwise the exit code.
std::optional<int> parse(std::vector<char*>& words, Arguments& arguments) {
  CLI::App app(
      "Multiplies two matrix files (Matrix Market or .npy) in FP64 by INT8 products; reports time and "
      "verified error.",
      "gemm_files");
  app.add_option("A", arguments.a_path, "left operand: Matrix Market or NumPy .npy file")->required();
  app.add_option("B", arguments.b_path, "right operand: Matrix Market or NumPy .npy file")->required();
  app.add_option("-o", arguments.c_path, "write the product: .mtx (array) or .npy");
  app.add_option("--trans-a", arguments.trans_a, "N or T: multiply with A or its transpose")
      ->check(CLI::IsMember({"N", "T"}));
  app.add_option("--trans-b", arguments.trans_b, "N or T: multiply with B or its transpose")
      ->check(CLI::IsMember({"N", "T"}));
  app.add_option("--moduli", arguments.num_moduli,
                 "number of moduli, 2 to 20; without it, chosen from the data (accurate bound: from k)")
      ->check(CLI::Range(min_moduli, max_moduli));
  app.add_option("--bound", arguments.bound, "how scaling exponents are found: fast or accurate")
      ->check(CLI::IsMember({"fast", "accurate"}));
  app.add_flag("--sweep", arguments.sweep, "also a table for 2 to 20 moduli and both bounds");
  app.footer("Options that begin with --kokkos- go to Kokkos.");
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return std::string("gemm_files: ") + error.what() + "\n";
  });
  try {
    app.parse(static_cast<int>(words.size()), words.data());
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 1;
  }
  return std::nullopt;
}

}  // namespace

int main(int argc, char* argv[]) {
  try {
    std::vector<char*> ours, kokkos;
    for (int t = 0; t < argc; ++t) {
      const bool is_kokkos = std::strncmp(argv[t], "--kokkos-", 9) == 0;
      if (!is_kokkos) ours.push_back(argv[t]);
      if (is_kokkos || t == 0) kokkos.push_back(argv[t]);
    }
    Arguments arguments;
    if (const auto exit_code = parse(ours, arguments)) return *exit_code;
    // Wrong names and files fail at once, before Kokkos starts.
    if (!arguments.c_path.empty()) (void)GemmFiles::output_format(arguments.c_path);
    Problem problem = load(arguments);
    int kokkos_count = static_cast<int>(kokkos.size());
    kokkos.push_back(nullptr);
    Kokkos::ScopeGuard guard(kokkos_count, kokkos.data());
    run(arguments, problem);
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "gemm_files: The matrices do not fit into memory.\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gemm_files: %s\n", error.what());
    return 1;
  }
  return 0;
}
