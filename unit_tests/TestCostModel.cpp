// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "ScalarOperands.hpp"
#include "impl/KokkosOzaki_Dispatch.hpp"

// What Method::automatic decides by. Models are put in a file of the test, so that decisions are known.

namespace KokkosOzaki::Testing {
namespace {

using Impl::CostModel;
using Impl::ProductSize;

/// A file for the costs, named by the environment for the life of the object.
class CostFile {
 public:
  CostFile() : m_folder(std::filesystem::temp_directory_path() / ("kokkosozaki_costs_" + unique())) {
    set(m_folder / "below" / "costs.txt");
  }
  ~CostFile() {
    unsetenv("KOKKOSOZAKI_COST_FILE");
    std::filesystem::remove_all(m_folder);
  }
  CostFile(const CostFile&) = delete;
  CostFile& operator=(const CostFile&) = delete;

  void set(const std::filesystem::path& name) {
    m_name = name;
    setenv("KOKKOSOZAKI_COST_FILE", name.c_str(), 1);
  }
  const std::filesystem::path& name() const { return m_name; }
  const std::filesystem::path& folder() const { return m_folder; }

  std::string text() const {
    std::ifstream file(m_name);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& text) const {
    std::filesystem::create_directories(m_name.parent_path());
    std::ofstream(m_name) << text;
  }

  /// A number for each call, so that keys and folders are new to the process.
  static std::string unique() {
    static int count = 0;
    return std::to_string(getpid()) + "_" + std::to_string(++count);
  }

 private:
  std::filesystem::path m_folder, m_name;
};

CostModel some_model() {
  return {1e-5, 2e-14, 3e-13, 4e-5, 5e-16, 6e-13, 7e-13, 8e-11};
}

TEST(CostModelFile, AModelIsMeasuredOnceAndLeftForTheNextProcess) {
  CostFile file;
  const std::string key = "device " + CostFile::unique();
  int measured = 0;
  const auto measure = [&] {
    ++measured;
    return some_model();
  };
  EXPECT_FALSE(Impl::cost_model_is_known(key));
  EXPECT_EQ(some_model().values(), Impl::cost_model(key, measure).values());
  EXPECT_EQ(some_model().values(), Impl::cost_model(key, measure).values());
  EXPECT_EQ(1, measured);
  EXPECT_TRUE(Impl::cost_model_is_known(key));
  const std::string text = file.text();
  EXPECT_NE(std::string::npos, text.find(key + " = 1e-05 2e-14 3e-13 4e-05 5e-16 6e-13 7e-13 8e-11\n"))
      << text;
  EXPECT_EQ('#', text[0]) << "the file says what it is";
  // no file of a broken write is left
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(file.name().parent_path()))
    ++files;
  EXPECT_EQ(1u, files);
}

TEST(CostModelFile, AModelIsReadFromTheFile) {
  const CostFile file;
  const std::string key = "device " + CostFile::unique();
  file.write("# a remark\nanother device = 1 2 3\n" + key + " = 1 2 3 4 5 6 7 8\n");
  const CostModel model = Impl::cost_model(key, []() -> CostModel {
    ADD_FAILURE() << "measured";
    return {};
  });
  EXPECT_EQ((std::array<double, 8>{1, 2, 3, 4, 5, 6, 7, 8}), model.values());
}

TEST(CostModelFile, DamagedLinesAreMeasuredAgainAndOtherLinesKept) {
  for (const char* damage :
       {"", "1 2 3", "1 2 3 4 5 6 7 -8", "1 2 3 4 5 6 7 nan", "1 2 3 4 5 6 7 8 9", "x"}) {
    const CostFile file;
    const std::string key = "device " + CostFile::unique();
    file.write("other = 8 7 6 5 4 3 2 1\n" + key + " = " + damage + "\nno line\n");
    EXPECT_EQ(some_model().values(), Impl::cost_model(key, some_model).values()) << damage;
    const std::string text = file.text();
    EXPECT_EQ(0u, text.find("other = 8 7 6 5 4 3 2 1\nno line\n" + key + " = 1e-05 ")) << text;
  }
}

TEST(CostModelFile, AFileThatCannotBeWrittenIsNoError) {
  CostFile file;
  file.write("not a folder");
  file.set(file.name() / "costs.txt");
  const std::string key = "device " + CostFile::unique();
  EXPECT_EQ(some_model().values(), Impl::cost_model(key, some_model).values());
  EXPECT_TRUE(Impl::cost_model_is_known(key));
}

TEST(CostModelFile, ThreadsThatAskAtTheSameTimeMeasureOnce) {
  const CostFile file;
  const std::string key = "device " + CostFile::unique();
  std::atomic<int> measured{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      const CostModel model = Impl::cost_model(key, [&] {
        ++measured;
        return some_model();
      });
      EXPECT_EQ(some_model().values(), model.values());
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(1, measured);
}

TEST(CostModel, GrowsWithEverySizeAndModulus) {
  const CostModel model = some_model();
  const ProductSize size{100, 200, 300};
  EXPECT_LT(model.emulated_seconds(size, 14), model.emulated_seconds(size, 15));
  for (const ProductSize& larger : {ProductSize{200, 200, 300}, ProductSize{100, 300, 300},
                                    ProductSize{100, 200, 400}, ProductSize{100, 200, 300, 2}}) {
    EXPECT_LT(model.emulated_seconds(size, 14), model.emulated_seconds(larger, 14));
    EXPECT_LT(model.native_seconds(size), model.native_seconds(larger));
    EXPECT_LT(model.selection_seconds(size), model.selection_seconds(larger));
  }
  EXPECT_EQ(100.0 * 200 * 300, size.multiplications());
  EXPECT_EQ(112.0 * 208 * 320, size.padded_multiplications());
  EXPECT_EQ(300.0 * 300, size.inputs());
}

// ---- decisions --------------------------------------------------------------------------------------

template <class Case>
class AutomaticMethodTest : public ::testing::Test {};
TYPED_TEST_SUITE(AutomaticMethodTest, ContractCases, ContractNames);

/// An emulated product that costs nothing, and a native one that does; or the other way round.
std::string line_of(const std::string& key, bool native_is_cheap) {
  return key + (native_is_cheap ? " = 0 0 0 1 0 0 0 1\n" : " = 1 0 0 0 0 0 0 1\n");
}

/// Engines of the space that are there on every machine; each has a model of its own.
template <class Space>
std::vector<const char*> two_engines() {
  if (is_host_space<Space>) return {"portable", nullptr};
  return {"cublas", "portable"};
}

TYPED_TEST(AutomaticMethodTest, FollowsTheModel) {
  using Space = typename TypeParam::Space;
  using Scalar = typename TypeParam::Scalar;
  using Plan = GemmPlan<Space, Scalar>;
  const Space exec{};
  const CostFile file;
  const std::int64_t m = 20, n = 10, k = 30;
  const auto numbers = [](std::int64_t i, std::int64_t j) {
    return Scalar(static_cast<typename ScalarTraits<Scalar>::Real>((i * 7 + j * 3) % 11 - 5));
  };
  const ScalarOperand<Scalar> A(m, k, {}, numbers), B(k, n, {}, numbers),
      strided(m, k, {false, 0, 0, 2}, numbers), C(m, n, {}, numbers), expected(m, n, {}, numbers);
  run_gemm<Space, Scalar>('N', 'N', Scalar(1), A, B, Scalar(0), expected);
  const auto same = [&] {
    exec.fence();
    return C.equals([&](std::int64_t i, std::int64_t j) { return expected(i, j); });
  };
  const bool has_vendor = Impl::NativeGemm<Space>::has_vendor();
  const auto engines = two_engines<Space>();
  for (const bool native_is_cheap : {true, false}) {
    GemmOptions options;
    options.backend = engines[native_is_cheap ? 0 : 1];
    const std::string engine = Plan(ExternalWorkspace{}, exec, 'N', 'N', m, n, k, options).backend_name();
    file.write(line_of(Impl::cost_key<Space, Scalar>(engine.c_str()), native_is_cheap));
    options.method = Method::automatic;
    {
      // what an emulated product refuses is refused, whichever method is the faster one
      const ScalarOperand<Scalar> row(1, 4096, {}, numbers), column(4096, 1, {}, numbers),
          one(1, 1, {}, numbers);
      GemmOptions few = options;
      few.num_moduli = 2;
      EXPECT_THROW((run_gemm<Space, Scalar>('N', 'N', Scalar(1), row, column, Scalar(0), one, few)),
                   std::invalid_argument);
      EXPECT_TRUE(one.equals(numbers));
    }
    for (const int num_moduli : {0, 12}) {
      options.num_moduli = num_moduli;
      Plan plan(exec, 'N', 'N', m, n, k, options);
      const bool native = native_is_cheap && has_vendor;
      EXPECT_EQ(native ? Method::native : Method::emulated, plan.report().method) << "what it will do";
      plan.execute(exec, Scalar(1), A.view(), B.view(), Scalar(0), C.view());
      EXPECT_TRUE(same());
      const GemmReport report = plan.report();
      EXPECT_EQ(native ? Method::native : Method::emulated, report.method);
      EXPECT_EQ(native            ? "automatic"
                : num_moduli != 0 ? "num_moduli"
                                  : "componentwise",
                std::string(report.reason));
      // operands that no vendor's library takes
      plan.execute(exec, Scalar(1), strided.view(), B.view(), Scalar(0), C.view());
      EXPECT_TRUE(same());
      EXPECT_EQ(Method::emulated, plan.report().method);
      EXPECT_EQ(engine, plan.report().backend);
      run_gemm<Space, Scalar>('N', 'N', Scalar(1), A, B, Scalar(0), C, options);
      EXPECT_TRUE(same());
    }
  }
}

TYPED_TEST(AutomaticMethodTest, TurnsNativeWhereTheDataAskForMuch) {
  using Space = typename TypeParam::Space;
  using Scalar = typename TypeParam::Scalar;
  using Real = typename ScalarTraits<Scalar>::Real;
  using Plan = GemmPlan<Space, Scalar>;
  const Space exec{};
  const CostFile file;
  const std::int64_t n = 16, k = 64;
  // nothing can be promised for the entry (0, 0)
  const auto unequal = [](std::int64_t across, std::int64_t l, int e) {
    return across != 0 ? Scalar(1) : l == 0 ? Scalar(std::ldexp(Real(1), e)) : Scalar(Real(l == 1));
  };
  const ScalarOperand<Scalar> A(n, k, {}, [&](auto i, auto l) { return unequal(i, l, 60); }),
      B(k, n, {}, [&](auto l, auto j) { return unequal(j, l, -70); }),
      ones(n, k, {}, [](auto, auto) { return Scalar(1); }), C(n, n, {}, [](auto, auto) { return Scalar(0); });
  GemmOptions options;
  options.backend = is_host_space<Space> ? "host-portable" : "wgmma";
  if (!Plan::can_run(n, n, k, options)) options.backend = "portable";
  const std::string engine = Plan(ExternalWorkspace{}, exec, 'N', 'N', n, n, k, options).backend_name();
  // an emulated product is cheap, an entry that is computed exactly is not
  file.write(Impl::cost_key<Space, Scalar>(engine.c_str()) + " = 1e-3 0 0 0 0 0 0 1\n");
  options.method = Method::automatic;
  Plan plan(exec, 'N', 'N', n, n, k, options);
  EXPECT_EQ(Method::emulated, plan.report().method);
  plan.execute(exec, Scalar(1), A.view(), B.view(), Scalar(0), C.view());
  exec.fence();
  const bool has_vendor = Impl::NativeGemm<Space>::has_vendor();
  EXPECT_EQ(has_vendor ? Method::native : Method::emulated, plan.report().method);
  EXPECT_STREQ(has_vendor ? "automatic" : "componentwise", plan.report().reason);
  EXPECT_EQ(std::ldexp(Real(1), -10) + 1, ScalarTraits<Scalar>::real(C(0, 0)));
  plan.execute(exec, Scalar(1), ones.view(), B.view(), Scalar(0), C.view());
  exec.fence();
  EXPECT_EQ(Method::emulated, plan.report().method);
}

TYPED_TEST(AutomaticMethodTest, MeasuresWhatIsNotKnown) {
  using Space = typename TypeParam::Space;
  using Scalar = typename TypeParam::Scalar;
  const CostModel model = Impl::measure_costs<Space, Scalar>(nullptr);
  for (const double value : model.values()) {
    EXPECT_TRUE(std::isfinite(value));
    EXPECT_GE(value, 0.0);
  }
  EXPECT_GT(model.native_call, 0.0);
  EXPECT_GT(model.native_multiplication, 0.0);
  EXPECT_GT(model.emulated_call, 0.0);
  EXPECT_GT(model.exact_multiplication, 0.0);
}

}  // namespace
}  // namespace KokkosOzaki::Testing
