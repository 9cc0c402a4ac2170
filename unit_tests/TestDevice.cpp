// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What only a device has: streams, graphs, memory of its own that runs out, results of more than 2^31
// entries; and the bits of the host.

#include <KokkosOzaki.hpp>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <Kokkos_Core.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;
using Kokkos::LayoutRight;
using Kokkos::LayoutStride;

using Device = Kokkos::Cuda;
using Host = Kokkos::DefaultHostExecutionSpace;
using DevicePlan = GemmPlan<Device, double>;

/// An operand in the memory of the device.
template <class Layout = LayoutLeft, class Scalar = double>
using DeviceOperand = Operand<Layout, Kokkos::CudaSpace, Scalar>;

/// Throws where CUDA itself fails.
void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess)
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorName(status) + ", " +
                             cudaGetErrorString(status));
}

/// A stream of its own.
class Stream {
 public:
  explicit Stream(unsigned flags) {
    require(cudaStreamCreateWithFlags(&m_stream, flags), "cudaStreamCreateWithFlags");
  }
  ~Stream() { cudaStreamDestroy(m_stream); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  operator cudaStream_t() const { return m_stream; }

 private:
  cudaStream_t m_stream = nullptr;
};

/// Work on the default stream that should be on another one is not ordered with this one: a race.
constexpr unsigned unrelated_to_default = cudaStreamNonBlocking;
/// Such work while this one is captured is an error.
constexpr unsigned related_to_default = cudaStreamDefault;

/// What a call enqueues on a stream, to be enqueued again.
class Graph {
 public:
  /// Captures; a launch on the default stream, an allocation or a synchronisation ends that with an error.
  template <class Body>
  Graph(const Stream& stream, const Body& body) : m_stream(stream) {
    require(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      body();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      throw;
    }
    require(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    require(cudaGraphGetNodes(graph, nullptr, &m_nodes), "cudaGraphGetNodes");
    require(cudaGraphInstantiateWithFlags(&m_graph, graph, 0), "cudaGraphInstantiate");
    cudaGraphDestroy(graph);
  }
  ~Graph() { cudaGraphExecDestroy(m_graph); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void replay() const {
    require(cudaGraphLaunch(m_graph, m_stream), "cudaGraphLaunch");
    require(cudaStreamSynchronize(m_stream), "cudaStreamSynchronize");
  }
  std::size_t nodes() const { return m_nodes; }

 private:
  cudaStream_t m_stream;
  cudaGraphExec_t m_graph = nullptr;
  std::size_t m_nodes = 0;
};

/// alpha A B + beta C on the device, in its own memory.
Matrix device_product(const Matrix& A, const Matrix& B, const GemmOptions& options = {}, double alpha = 1.0,
                      double beta = 0.0, const Matrix& C = {}) {
  const DeviceOperand<> a(A), b(B), c(beta == 0.0 ? Matrix(A.rows(), B.cols(), poison()) : C);
  const Device exec;
  gemm(exec, "N", "N", alpha, a.const_view(), b.const_view(), beta, c.view(), options);
  exec.fence();
  return c.values();
}

std::string describe(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options) {
  return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
         ", s=" + std::to_string(options.num_moduli) + " " + name_of(options.bound) +
         (options.rounding == Rounding::toward_zero ? " toward zero" : "") + ", group " +
         std::to_string(options.moduli_per_group) + ", cap " + std::to_string(options.max_workspace_bytes);
}

// ---- the bits of the host ---------------------------------------------------------------------------

template <class LayoutA, class LayoutB, class LayoutC>
void expect_layouts(const Matrix& A, const Matrix& B, const Matrix& C, const Matrix& expected,
                    const GemmOptions& options, double alpha, double beta) {
  const std::array<Placement, 4> places = {
      {{0, 0, 1, false}, {1, 3, 1, false}, {2, 2, 2, false}, {3, 1, 3, true}}};
  std::size_t turn = 0;
  for (const char transA : {'N', 'T', 'C'})
    for (const char transB : {'N', 'T', 'C'}) {
      SCOPED_TRACE(std::string("trans ") + transA + transB);
      ++turn;
      const DeviceOperand<LayoutA> a(stored(A, transA), places[turn % 4]);
      const DeviceOperand<LayoutB> b(stored(B, transB), places[(turn + turn / 4) % 4]);
      const DeviceOperand<LayoutC> c(C, places[(3 * turn + 1) % 4]);
      const char letters[] = {transA, '\0', transB, '\0'};
      const Device exec;
      gemm(exec, letters, letters + 2, alpha, a.const_view(), b.view(), beta, c.view(), options);
      exec.fence();
      EXPECT_TRUE(same_bits(expected, c.values()));
      EXPECT_TRUE(c.gaps_are_intact());
    }
}

template <class LayoutA, class LayoutB, class... More>
void expect_layouts_of_c(const More&... more) {
  expect_layouts<LayoutA, LayoutB, LayoutLeft>(more...);
  expect_layouts<LayoutA, LayoutB, LayoutRight>(more...);
  expect_layouts<LayoutA, LayoutB, LayoutStride>(more...);
}

template <class LayoutA, class... More>
void expect_layouts_of_b_and_c(const More&... more) {
  expect_layouts_of_c<LayoutA, LayoutLeft>(more...);
  expect_layouts_of_c<LayoutA, LayoutRight>(more...);
  expect_layouts_of_c<LayoutA, LayoutStride>(more...);
}

TEST(DeviceTest, EveryLayoutAndOperationHasTheBitsOfTheHost) {
  for (const auto& [m, n, k] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{17, 19, 23},
                                {35, 33, 131},
                                {1, 1, 300},
                                {129, 2, 65},
                                {1, 200, 1}})
    for (const GemmOptions& options : {with_moduli(14), with_moduli(17, Bound::accurate)}) {
      SCOPED_TRACE(describe(m, n, k, options));
      const Matrix A = spread(m, k, 1.0, 11), B = spread(k, n, 1.0, 12), C = spread(m, n, 1.0, 13);
      const double alpha = options.num_moduli == 14 ? 1.0 : -0.5, beta = options.num_moduli == 14 ? 0.0 : 1.5;
      const Matrix expected = product<Host>(A, B, options, alpha, beta, C);
      expect_layouts_of_b_and_c<LayoutLeft>(A, B, C, expected, options, alpha, beta);
      expect_layouts_of_b_and_c<LayoutRight>(A, B, C, expected, options, alpha, beta);
      expect_layouts_of_b_and_c<LayoutStride>(A, B, C, expected, options, alpha, beta);
    }
}

/// All groups of moduli that take another path, and the engines.
void expect_the_bits_of_the_host(const Matrix& A, const Matrix& B, GemmOptions options, double alpha = 1.0,
                                 double beta = 0.0, const Matrix& C = {}) {
  const Matrix expected = product<Host>(A, B, options, alpha, beta, C);
  for (const int group : {0, 1, 3, options.num_moduli}) {
    options.moduli_per_group = group;
    EXPECT_TRUE(same_values(expected, device_product(A, B, options, alpha, beta, C)))
        << describe(A.rows(), B.cols(), A.cols(), options);
  }
  options.moduli_per_group = 0;
  options.backend = "portable";
  EXPECT_TRUE(same_values(expected, device_product(A, B, options, alpha, beta, C)))
      << describe(A.rows(), B.cols(), A.cols(), options) << " portable";
}

constexpr Rounding both_roundings[] = {Rounding::nearest_even, Rounding::toward_zero};

TEST(DeviceTest, EveryNumberOfModuliHasTheBitsOfTheHost) {
  Random random(21);
  for (int s = 2; s <= 20; ++s)
    for (const Bound bound : both_bounds)
      for (const Rounding rounding : both_roundings)
        for (int trial = 0; trial < 3; ++trial) {
          const std::int64_t m = random.integer(1, 200), n = random.integer(1, 200),
                             k = random.integer(1, 400);
          const Matrix A = spread(m, k, 2.0, random.bits()), B = spread(k, n, 2.0, random.bits());
          if (trial == 1)
            expect_the_bits_of_the_host(A, B, with_moduli(s, bound, rounding), -0.75, 1.25,
                                        uniform(m, n, -1, 1, random.bits()));
          else
            expect_the_bits_of_the_host(A, B, with_moduli(s, bound, rounding));
        }
}

TEST(DeviceTest, LongInnerDimensionsHaveTheBitsOfTheHost) {
  for (const auto& [m, n, k] : {std::tuple<std::int64_t, std::int64_t, std::int64_t>{3, 2, 4097},
                                {40, 30, 20000},
                                {2, 3, 131007},
                                {2, 3, 131008},
                                {1, 1, 131009},
                                {33, 2, 140001},
                                {5, 4, 300000}}) {
    const Matrix A = spread(m, k, 1.0, 31), B = spread(k, n, 1.0, 32);
    for (const int s : {fewest_moduli(k), 14, 20})
      for (const Bound bound : both_bounds) expect_the_bits_of_the_host(A, B, with_moduli(s, bound));
    expect_the_bits_of_the_host(A, B, with_moduli(9, Bound::fast, Rounding::toward_zero));
  }
}

TEST(DeviceTest, StructuredOperandsHaveTheBitsOfTheHost) {
  // Columns of A that are large where rows of B are small: the accurate bound takes its own exponents.
  Matrix A = uniform(83, 150, -1, 1, 41), B = uniform(150, 61, -1, 1, 42);
  for (std::int64_t l = 0; l < 150; ++l) {
    for (std::int64_t i = 0; i < 83; ++i) A(i, l) *= l % 2 == 0 ? 0x1p+10 : 0x1p-10;
    for (std::int64_t j = 0; j < 61; ++j) B(l, j) *= l % 2 == 0 ? 0x1p-10 : 0x1p+10;
  }
  DevicePlan plan(Device{}, 'N', 'N', 83, 61, 150, with_moduli(14, Bound::accurate));
  const DeviceOperand<> a(A), b(B), c(Matrix(83, 61, poison()));
  plan.execute(Device{}, 1.0, a.view(), b.view(), 0.0, c.view());
  EXPECT_EQ(Bound::accurate, plan.report().bound_used);
  for (int s = 5; s <= 20; ++s)
    for (const Rounding rounding : both_roundings)
      expect_the_bits_of_the_host(A, B, with_moduli(s, Bound::accurate, rounding));
}

TEST(DeviceTest, TheWholeRangeOfDoubleHasTheBitsOfTheHost) {
  for (const auto& [low, high] :
       {std::pair<int, int>{-1080, 1022}, {-1074, -1000}, {900, 1022}, {-600, 500}, {-540, -530}}) {
    const Matrix A = any_exponent(45, 170, low, high, 51), B = any_exponent(170, 37, -1080, 500, 52);
    const Matrix C = any_exponent(45, 37, -1074, 1000, 53);
    for (const Bound bound : both_bounds)
      for (const int s : {2, 8, 14, 16, 17, 20}) {
        expect_the_bits_of_the_host(A, B, with_moduli(s, bound));
        expect_the_bits_of_the_host(A, B, with_moduli(s, bound), -2.5, 0.3, C);
      }
  }
  // zero rows and columns
  Matrix A = spread(20, 130, 1.0, 54), B = spread(130, 20, 1.0, 55);
  for (std::int64_t l = 0; l < 130; ++l) A(0, l) = A(19, l) = l % 2 == 0 ? 0.0 : -0.0, B(l, 7) = 0.0;
  for (const Bound bound : both_bounds) expect_the_bits_of_the_host(A, B, with_moduli(14, bound));
  expect_the_bits_of_the_host(Matrix(20, 130, 0.0), B, with_moduli(14, Bound::accurate));
}

TEST(DeviceTest, InfAndNanHaveTheValuesOfTheHost) {
  int pattern = 0;
  for (const double value : {quiet_nan, infinity, -infinity})
    for (const std::int64_t l : {std::int64_t{0}, std::int64_t{127}, std::int64_t{128}, std::int64_t{388}}) {
      Matrix A = spread(70, 389, 1.0, 61), B = spread(389, 45, 1.0, 62);
      const Matrix C = uniform(70, 45, -1, 1, 63);
      if (pattern % 3 != 1) A(0, l) = value, A(65, l) = -value, A(65, (l + 3) % 389) = infinity;
      if (pattern % 3 != 2)
        B(l, 44) = value, B((l + 1) % 389, 7) = -infinity, B((l + 200) % 389, 7) = infinity;
      if (pattern % 2 == 1) A(30, l) = 0x1.8p+1023, B(l, 20) = 0x1.8p+1023;
      const Bound bound = pattern % 2 == 0 ? Bound::fast : Bound::accurate;
      expect_the_bits_of_the_host(A, B, with_moduli(14, bound));
      expect_the_bits_of_the_host(A, B, with_moduli(17, bound), -0.5, 2.0, C);
      ++pattern;
    }
  expect_the_bits_of_the_host(Matrix(5, 6, quiet_nan), Matrix(6, 4, infinity), with_moduli(14));
}

/// The smallest cap that is accepted.
std::size_t smallest_cap(std::int64_t m, std::int64_t n, std::int64_t k, GemmOptions options) {
  options.max_workspace_bytes = 1;
  try {
    DevicePlan::workspace_bytes(m, n, k, options);
  } catch (const WorkspaceError& error) {
    return error.needed_bytes();
  }
  ADD_FAILURE() << "one byte was enough";
  return 1;
}

using Problem = std::tuple<std::int64_t, std::int64_t, std::int64_t, int, Bound>;

void expect_bits_of_the_host_under_caps(const std::vector<Problem>& problems) {
  for (const auto& [m, n, k, s, bound] : problems) {
    const Matrix A = spread(m, k, 1.0, 71), B = spread(k, n, 1.0, 72), C = spread(m, n, 1.0, 73);
    GemmOptions options = with_moduli(s, bound);
    const Matrix expected = product<Host>(A, B, options, -1.5, 0.5, C);
    const std::size_t whole = DevicePlan::workspace_bytes(m, n, k, options),
                      least = smallest_cap(m, n, k, options);
    ASSERT_LT(least, whole);
    for (int i = 0; i <= 12; ++i) {
      options.max_workspace_bytes = least + (whole - least) * static_cast<std::size_t>(i) / 12;
      EXPECT_LE(DevicePlan::workspace_bytes(m, n, k, options), options.max_workspace_bytes);
      EXPECT_TRUE(same_bits(expected, device_product(A, B, options, -1.5, 0.5, C)))
          << describe(m, n, k, options);
    }
  }
}

TEST(DeviceTest, WorkspaceCapsHaveTheBitsOfTheHost) {
  expect_bits_of_the_host_under_caps({{150, 133, 700, 14, Bound::fast},
                                      {150, 133, 700, 16, Bound::accurate},
                                      {40, 500, 300, 9, Bound::accurate},
                                      {500, 3, 90, 20, Bound::fast}});
}

TEST(DeviceTest, LongProductsUnderCapsHaveTheBitsOfTheHost) {
  expect_bits_of_the_host_under_caps({{3, 2, 140000, 14, Bound::fast}});
}

TEST(DeviceTest, LargerProductsHaveTheBitsOfTheHost) {
  for (const Bound bound : both_bounds) {
    const Matrix A = spread(1501, 700, 1.0, 81), B = spread(700, 1103, 1.0, 82);
    const GemmOptions options = with_moduli(14, bound);
    EXPECT_TRUE(same_bits(product<Host>(A, B, options), device_product(A, B, options))) << name_of(bound);
  }
}

// ---- streams and graphs -----------------------------------------------------------------------------

/// Operands that change from turn to turn: ordinary, with Inf and NaN, structured, with zero rows.
std::pair<Matrix, Matrix> operands_of_turn(int turn, std::int64_t m, std::int64_t n, std::int64_t k) {
  const auto seed = static_cast<std::uint64_t>(1000 + turn);
  Matrix A = spread(m, k, 1.0, seed), B = spread(k, n, 1.0, seed + 50);
  if (turn % 4 == 1) A(m / 2, k / 3) = quiet_nan, B(k / 2, n - 1) = -infinity;
  if (turn % 4 == 2)
    for (std::int64_t l = 0; l < k; ++l) {
      for (std::int64_t i = 0; i < m; ++i) A(i, l) *= l % 2 == 0 ? 0x1p+12 : 0x1p-12;
      for (std::int64_t j = 0; j < n; ++j) B(l, j) *= l % 2 == 0 ? 0x1p-12 : 0x1p+12;
    }
  if (turn % 4 == 3)
    for (std::int64_t l = 0; l < k; ++l) A(m - 1, l) = 0.0;
  return {A, B};
}

struct GraphCase {
  std::int64_t m, n, k;
  GemmOptions options;
  std::size_t cap_divisor;  // 0: no cap
};

std::vector<GraphCase> graph_cases() {
  std::vector<GraphCase> cases;
  for (const Bound bound : both_bounds) {
    for (const int group : {0, 1, 3}) {
      GemmOptions options = with_moduli(14, bound);
      options.moduli_per_group = group;
      cases.push_back({70, 53, 300, options, 0});
    }
    cases.push_back({201, 33, 129, with_moduli(18, bound), 0});
    cases.push_back({130, 150, 200, with_moduli(9, bound), 3});
    cases.push_back({3, 5, 140000, with_moduli(8, bound), 0});
  }
  return cases;
}

TEST(DeviceTest, APlanIsReplayedFromAGraphWithOtherData) {
  for (GraphCase item : graph_cases()) {
    if (item.cap_divisor != 0)
      item.options.max_workspace_bytes =
          smallest_cap(item.m, item.n, item.k, item.options) +
          DevicePlan::workspace_bytes(item.m, item.n, item.k, item.options) / item.cap_divisor / 8;
    SCOPED_TRACE(describe(item.m, item.n, item.k, item.options));
    const Stream stream(related_to_default);
    const Device exec(stream);
    DevicePlan plan(exec, 'N', 'N', item.m, item.n, item.k, item.options);
    const auto [A0, B0] = operands_of_turn(0, item.m, item.n, item.k);
    DeviceOperand<> a(A0), b(B0), c(Matrix(item.m, item.n, poison()));
    const auto call = [&] { plan.execute(exec, 1.0, a.view(), b.view(), 0.0, c.view()); };
    call();
    exec.fence();
    const Graph graph(stream, call);
    EXPECT_GE(graph.nodes(), 6u);
    for (int turn = 0; turn < 10; ++turn) {
      const auto [A, B] = operands_of_turn(turn, item.m, item.n, item.k);
      a.assign(A), b.assign(B), c.assign(Matrix(item.m, item.n, poison()));
      graph.replay();
      EXPECT_TRUE(same_values(product<Host>(A, B, item.options), c.values())) << "turn " << turn;
    }
    // outside of the graph the plan still works
    a.assign(A0), b.assign(B0);
    call();
    exec.fence();
    EXPECT_TRUE(same_values(product<Host>(A0, B0, item.options), c.values()));
  }
}

TEST(DeviceTest, GemmEnqueuesOnItsStreamOnlyAndNeverWaits) {
  for (const GraphCase& item : graph_cases()) {
    if (item.cap_divisor != 0) continue;
    SCOPED_TRACE(describe(item.m, item.n, item.k, item.options));
    const Stream stream(related_to_default);
    const Device exec(stream);
    const auto [A0, B0] = operands_of_turn(0, item.m, item.n, item.k);
    DeviceOperand<> a(A0), b(B0);
    DeviceOperand<LayoutRight> c(Matrix(item.m, item.n, poison()));
    const auto call = [&] { gemm(exec, "N", "N", -2.0, a.view(), b.view(), 0.5, c.view(), item.options); };
    call();
    exec.fence();
    const Graph graph(stream, call);
    for (int turn = 0; turn < 3; ++turn) {
      const auto [A, B] = operands_of_turn(turn, item.m, item.n, item.k);
      const Matrix C = uniform(item.m, item.n, -1, 1, 91);
      a.assign(A), b.assign(B), c.assign(C);
      graph.replay();
      EXPECT_TRUE(same_values(product<Host>(A, B, item.options, -2.0, 0.5, C), c.values()))
          << "turn " << turn;
    }
    // nothing to multiply: beta alone
    const Graph beta_only(
        stream, [&] { gemm(exec, "N", "N", 0.0, a.view(), b.view(), 0.5, c.view(), item.options); });
    c.assign(Matrix(item.m, item.n, 3.0));
    beta_only.replay();
    EXPECT_TRUE(same_bits(Matrix(item.m, item.n, 1.5), c.values()));
  }
  release_workspaces();  // of streams that are no more
}

TEST(DeviceTest, NativeProductsAreReplayedFromAGraphWithOtherData) {
  GemmOptions options;
  options.method = Method::native;
  // By cuBLAS, and, where it does not take the operands, by inner products of our own. Integers: exact in any order.
  for (const Placement& place : {Placement{0, 0, 1, false}, Placement{1, 2, 2, false}}) {
    const std::int64_t m = 130, n = 70, k = 300;
    const Stream stream(related_to_default);
    const Device exec(stream);
    DevicePlan plan(exec, 'N', 'N', m, n, k, options);
    DeviceOperand<LayoutStride> a(integers(m, k, 9, 1), place), b(integers(k, n, 9, 2), place),
        c(Matrix(m, n, 1.0), place);
    for (const bool by_plan : {true, false}) {
      const auto call = [&] {
        if (by_plan)
          plan.execute(exec, 2.0, a.view(), b.view(), 0.5, c.view());
        else
          gemm(exec, "N", "N", 2.0, a.view(), b.view(), 0.5, c.view(), options);
      };
      call();
      exec.fence();
      const Graph graph(stream, call);
      EXPECT_GE(graph.nodes(), 1u);
      for (std::uint64_t turn = 0; turn < 3; ++turn) {
        const Matrix A = integers(m, k, 9, 10 + turn), B = integers(k, n, 9, 20 + turn), C(m, n, 4.0);
        a.assign(A), b.assign(B), c.assign(C);
        graph.replay();
        EXPECT_TRUE(same_values(product<Host>(A, B, with_moduli(14), 2.0, 0.5, C), c.values()))
            << "turn " << turn;
      }
    }
    EXPECT_EQ(Method::native, plan.report().method);
  }
  release_workspaces();  // of streams that are no more
}

/// The message of the Error that the capture of `body` ends in; the capture itself must go on.
template <class Body>
std::string refusal(const Stream& stream, const Body& body) {
  std::string message = "nothing was thrown";
  const Graph graph(stream, [&] {
    try {
      body();
    } catch (const Error& error) {
      message = error.what();
    }
  });
  EXPECT_EQ(0u, graph.nodes());
  return message;
}

TEST(DeviceTest, WhatWouldAllocateIsRefusedWhileTheStreamIsCaptured) {
  const std::string reason = "memory would have to be allocated, and the stream is being captured";
  for (const unsigned flags : {unrelated_to_default, related_to_default}) {
    release_workspaces();
    const Stream stream(flags);
    const Device exec(stream);
    const Matrix A = spread(70, 300, 1.0, 97), B = spread(300, 53, 1.0, 98), C(70, 53, 3.0);
    const DeviceOperand<> a(A), b(B), c(C);
    const Matrix small_A = spread(5, 30, 1.0, 97), small_B = spread(30, 4, 1.0, 98);
    const DeviceOperand<> small_a(small_A), small_b(small_B);
    DeviceOperand<> small_c(Matrix(5, 4, poison()));
    GemmOptions options;
    options.accuracy = Accuracy::normwise();
    const auto call = [&] { gemm(exec, "N", "N", 1.0, a.view(), b.view(), 0.5, c.view(), options); };
    const auto small_call = [&] {
      gemm(exec, "N", "N", 1.0, small_a.view(), small_b.view(), 0.0, small_c.view(), options);
    };
    const auto choosing_call = [&] { gemm(exec, "N", "N", 1.0, a.view(), b.view(), 0.5, c.view()); };
    // sizes are plain arithmetic
    EXPECT_EQ("nothing was thrown", refusal(stream, [] {
                EXPECT_TRUE(DevicePlan::can_run(70, 53, 300));
                EXPECT_LT(0u, DevicePlan::workspace_bytes(70, 53, 300));
              }));
    EXPECT_NE(std::string::npos,
              refusal(stream, choosing_call)
                  .find("KokkosOzaki::gemm: the number of moduli is chosen from the data"));
    // the first call on this stream
    EXPECT_NE(std::string::npos, refusal(stream, call).find("KokkosOzaki::gemm: " + reason));
    EXPECT_NE(std::string::npos, refusal(stream, [&] {
                                   const DevicePlan plan(exec, 'N', 'N', 70, 53, 300);
                                 }).find("KokkosOzaki::GemmPlan: " + reason));
    EXPECT_NE(std::string::npos, refusal(stream, [&] {
                                   const DevicePlan plan(ExternalWorkspace{}, exec, 'N', 'N', 70, 53, 300);
                                 }).find(reason));
    EXPECT_NE(std::string::npos, refusal(stream, [&] {
                                   prepare_a(exec, "N", a.view());
                                 }).find("KokkosOzaki::prepare_a: " + reason));
    // a call that is larger than the workspace, and then in the same capture one that is not
    small_call();
    exec.fence();
    std::string message = "nothing was thrown";
    small_c.assign(Matrix(5, 4, poison()));
    const Graph graph(stream, [&] {
      try {
        call();
      } catch (const Error& error) {
        message = error.what();
      }
      small_call();
    });
    EXPECT_NE(std::string::npos, message.find("KokkosOzaki::gemm: " + reason)) << message;
    graph.replay();
    EXPECT_TRUE(same_bits(product<Host>(small_A, small_B, options), small_c.values()));
    EXPECT_TRUE(same_bits(C, c.values()));
    call();
    exec.fence();
    EXPECT_TRUE(same_bits(product<Host>(A, B, options, 1.0, 0.5, C), c.values()));
    DevicePlan plan(exec, 'N', 'N', 70, 53, 300);
    plan.execute(exec, 1.0, a.view(), b.view(), 0.0, c.view());
    exec.fence();
    EXPECT_NE(std::string::npos,
              refusal(stream, [&] {
                plan.execute(exec, 1.0, a.view(), b.view(), 0.0, c.view());
              }).find("KokkosOzaki::GemmPlan::execute: the number of moduli is chosen from the data"));
    release_workspaces();  // the next stream may have the same address
  }
}

/// A product with everything that it needs, and a result for each turn.
struct Job {
  Job(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& its_options, int turns)
      : options(its_options) {
    for (int data = 0; data < 3; ++data) {
      const auto [A, B] = operands_of_turn(data, m, n, k);
      a.push_back(std::make_unique<DeviceOperand<>>(A));
      b.push_back(std::make_unique<DeviceOperand<>>(B));
      expected.push_back(product<Host>(A, B, options));
    }
    for (int turn = 0; turn < turns; ++turn)
      c.push_back(std::make_unique<DeviceOperand<>>(Matrix(m, n, poison())));
  }

  void expect_results(const char* what) const {
    for (std::size_t turn = 0; turn < c.size(); ++turn)
      EXPECT_TRUE(same_values(expected[turn % 3], c[turn]->values())) << what << ", turn " << turn;
  }

  GemmOptions options;
  std::vector<std::unique_ptr<DeviceOperand<>>> a, b, c;
  std::vector<Matrix> expected;
};

constexpr int turns_on_streams = 30;

std::vector<Job> two_jobs() {
  std::vector<Job> jobs;
  jobs.emplace_back(220, 130, 700, with_moduli(14, Bound::accurate), turns_on_streams);
  jobs.emplace_back(90, 310, 500, with_moduli(17), turns_on_streams);
  return jobs;
}

TEST(DeviceTest, TwoPlansRunOnTwoStreamsAtOnce) {
  const std::vector<Job> jobs = two_jobs();
  const Stream stream[] = {Stream(unrelated_to_default), Stream(unrelated_to_default)};
  const Device exec[] = {Device(stream[0]), Device(stream[1])};
  std::vector<DevicePlan> plans;
  for (std::size_t i = 0; i < 2; ++i)
    plans.emplace_back(exec[i], 'N', 'N', jobs[i].expected[0].rows(), jobs[i].expected[0].cols(),
                       static_cast<std::int64_t>(jobs[i].a[0]->view().extent(1)), jobs[i].options);
  for (std::size_t turn = 0; turn < turns_on_streams; ++turn)
    for (std::size_t i = 0; i < 2; ++i)
      plans[i].execute(exec[i], 1.0, jobs[i].a[turn % 3]->view(), jobs[i].b[turn % 3]->view(), 0.0,
                       jobs[i].c[turn]->view());
  exec[0].fence();
  exec[1].fence();
  jobs[0].expect_results("first stream");
  jobs[1].expect_results("second stream");
}

TEST(DeviceTest, GemmOnTwoStreamsAtOnceHasAWorkspaceForEach) {
  const std::vector<Job> jobs = two_jobs();
  const Stream stream[] = {Stream(unrelated_to_default), Stream(unrelated_to_default)};
  {
    const Device exec[] = {Device(stream[0]), Device(stream[1])};
    for (std::size_t turn = 0; turn < turns_on_streams; ++turn)
      for (std::size_t i = 0; i < 2; ++i)
        gemm(exec[i], "N", "N", 1.0, jobs[i].a[turn % 3]->view(), jobs[i].b[turn % 3]->view(), 0.0,
             jobs[i].c[turn]->view(), jobs[i].options);
    exec[0].fence();
    exec[1].fence();
  }
  jobs[0].expect_results("first stream");
  jobs[1].expect_results("second stream");
  release_workspaces();
}

TEST(DeviceTest, CallsOnOneStreamFollowEachOther) {
  // The result of one product is an operand of the next, and a workspace serves all of them; no waiting.
  const Stream stream(unrelated_to_default);
  const Device exec(stream);
  const Matrix A = uniform(64, 64, -1, 1, 95), start = uniform(64, 64, -1, 1, 96);
  DevicePlan plan(exec, 'N', 'N', 64, 64, 64, with_moduli(15));
  const DeviceOperand<> a(A), x(start), y(Matrix(64, 64, poison()));
  Matrix expected = start;
  for (int turn = 0; turn < 20; ++turn) {
    plan.execute(exec, 0.25, a.view(), turn % 2 == 0 ? x.view() : y.view(), 0.0,
                 turn % 2 == 0 ? y.view() : x.view());
    expected = product<Host>(A, expected, with_moduli(15), 0.25);
  }
  exec.fence();
  EXPECT_TRUE(same_bits(expected, x.values()));
}

/// Counts the entries whose bits are others.
struct CountOtherBits {
  Kokkos::View<const std::uint64_t*, Device, Kokkos::MemoryUnmanaged> expected, got;
  Kokkos::View<int, Device> wrong;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    if (expected(index) != got(index)) Kokkos::atomic_add(&wrong(), 1);
  }
};

TEST(DeviceTest, SizesTakeTurnsOnTwoStreamsWithoutWaiting) {
  constexpr int rounds = 40, rounds_of_a_workspace = 8;
  const std::int64_t sizes[] = {64, 2048, 64};
  const GemmOptions options = with_moduli(14);
  const auto bits_of_view = [](const DeviceOperand<>& x) {
    return Kokkos::View<const std::uint64_t*, Device, Kokkos::MemoryUnmanaged>(
        reinterpret_cast<const std::uint64_t*>(x.view().data()), x.view().size());
  };
  const Stream stream[] = {Stream(unrelated_to_default), Stream(unrelated_to_default)};
  {
    const Device exec[] = {Device(stream[0]), Device(stream[1])};
    std::vector<std::unique_ptr<DeviceOperand<>>> a, b, expected, c;  // c: of each stream
    for (std::size_t which = 0; which < 3; ++which) {
      const std::int64_t size = sizes[which];
      a.push_back(std::make_unique<DeviceOperand<>>(uniform(size, size, -1, 1, 121 + 2 * which)));
      b.push_back(std::make_unique<DeviceOperand<>>(uniform(size, size, -1, 1, 122 + 2 * which)));
      const Matrix nothing(size, size, poison());
      expected.push_back(std::make_unique<DeviceOperand<>>(nothing));
      for (int i = 0; i < 2; ++i) c.push_back(std::make_unique<DeviceOperand<>>(nothing));
      gemm(exec[0], "N", "N", 1.0, a[which]->view(), b[which]->view(), 0.0, expected[which]->view(), options);
      exec[0].fence();
    }
    EXPECT_TRUE(same_bits(product<Host>(a[0]->values(), b[0]->values(), options), expected[0]->values()));
    const Kokkos::View<int, Device> wrong("wrong");
    Kokkos::fence();
    std::size_t call = 0;  // each takes the other stream, so that every size comes to both
    for (int round = 0; round < rounds; ++round) {
      if (round % rounds_of_a_workspace == 0) {
        exec[0].fence();
        exec[1].fence();
        release_workspaces();
      }
      for (std::size_t which = 0; which < 3; ++which, ++call) {
        const std::size_t i = call % 2;
        const DeviceOperand<>& result = *c[2 * which + i];
        Kokkos::deep_copy(exec[i], result.view(), poison());
        gemm(exec[i], "N", "N", 1.0, a[which]->view(), b[which]->view(), 0.0, result.view(), options);
        Kokkos::parallel_for("count",
                             Kokkos::RangePolicy<Device, Kokkos::IndexType<std::int64_t>>(
                                 exec[i], 0, sizes[which] * sizes[which]),
                             CountOtherBits{bits_of_view(*expected[which]), bits_of_view(result), wrong});
      }
    }
    exec[0].fence();
    exec[1].fence();
    int wrong_entries = -1;
    Kokkos::deep_copy(wrong_entries, wrong);
    EXPECT_EQ(0, wrong_entries);
    for (std::size_t j = 0; j < c.size(); ++j)
      EXPECT_TRUE(same_bits(expected[j / 2]->values(), c[j]->values())) << sizes[j / 2];
  }
  release_workspaces();
}

// ---- memory that runs out ---------------------------------------------------------------------------

TEST(DeviceTest, AWorkspaceBeyondTheDeviceIsRefused) {
  std::size_t free_bytes = 0, total_bytes = 0;
  require(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  // 14 moduli and 64 positions: 896 bytes for each row
  const auto m = static_cast<std::int64_t>(total_bytes / 500);
  try {
    const DevicePlan plan(Device{}, 'N', 'N', m, 64, 64, with_moduli(14));
    ADD_FAILURE() << "nothing was thrown for " << plan.workspace_bytes() << " bytes";
  } catch (const WorkspaceError& error) {
    EXPECT_GT(error.needed_bytes(), total_bytes);
    EXPECT_EQ(DevicePlan::workspace_bytes(m, 64, 64, with_moduli(14)), error.needed_bytes());
    const std::string message = error.what(), before = "KokkosOzaki: a workspace of " +
                                                       std::to_string(error.needed_bytes()) +
                                                       " bytes could not be allocated";
    EXPECT_EQ(before, message.substr(0, before.size()));
  }
  const Matrix A = spread(40, 70, 1.0, 101), B = spread(70, 30, 1.0, 102);
  EXPECT_TRUE(same_bits(product<Host>(A, B), device_product(A, B)));
}

TEST(DeviceTest, AFullDeviceIsReportedAndTheNextCallIsRight) {
  const std::int64_t size = 3000;
  release_workspaces();
  {
    const Kokkos::View<double**, LayoutLeft, Device> a("a", size, size), b("b", size, size),
        c("c", size, size);
    Kokkos::deep_copy(a, 0.5);
    Kokkos::deep_copy(b, 2.0);
    Kokkos::deep_copy(c, 3.0);
    // the engine has what it needs itself
    device_product(Matrix(3, 3, 1.0), Matrix(3, 3, 1.0), with_moduli(14));
    Kokkos::fence();
    const std::size_t needed = DevicePlan::workspace_bytes(size, size, size, with_moduli(14));
    void* room = nullptr;  // for what is small
    require(cudaMalloc(&room, std::size_t{1} << 26), "cudaMalloc");
    std::vector<void*> occupied;
    for (std::size_t bytes = std::size_t{1} << 36; bytes >= std::size_t{1} << 25;) {
      void* pointer = nullptr;
      if (cudaMalloc(&pointer, bytes) == cudaSuccess)
        occupied.push_back(pointer);
      else
        bytes /= 2;
    }
    cudaFree(room);
    cudaGetLastError();
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        gemm(Device{}, "N", "N", 1.0, a, b, 0.5, c, with_moduli(14));
        ADD_FAILURE() << "nothing was thrown";
      } catch (const WorkspaceError& error) {
        EXPECT_EQ(needed, error.needed_bytes());
      }
      try {
        const DevicePlan plan(Device{}, 'N', 'N', size, size, size, with_moduli(14));
        ADD_FAILURE() << "nothing was thrown";
      } catch (const WorkspaceError& error) {
        EXPECT_EQ(needed, error.needed_bytes());
      }
    }
    // a small product finds room in what there is
    EXPECT_TRUE(
        same_bits(Matrix(3, 3, 3.0), device_product(Matrix(3, 3, 1.0), Matrix(3, 3, 1.0), with_moduli(14))));
    for (void* pointer : occupied) cudaFree(pointer);

    const auto on_host = Kokkos::create_mirror_view(c);
    Kokkos::deep_copy(on_host, c);
    for (std::size_t j = 0; j < on_host.extent(1); ++j)
      for (std::size_t i = 0; i < on_host.extent(0); ++i) ASSERT_EQ(3.0, on_host(i, j)) << i << "," << j;
    gemm(Device{}, "N", "N", 1.0, a, b, 0.5, c, with_moduli(14));
    Device{}.fence();
    Kokkos::deep_copy(on_host, c);
    for (std::size_t j = 0; j < on_host.extent(1); ++j)
      for (std::size_t i = 0; i < on_host.extent(0); ++i)
        ASSERT_EQ(static_cast<double>(size) + 1.5, on_host(i, j)) << i << "," << j;
  }
  release_workspaces();
}

// ---- results of more than 2^31 entries --------------------------------------------------------------

/// Entries that are not the exact product of integers.
template <class Scalar>
struct CountWrong {
  Kokkos::View<const Scalar**, LayoutLeft, Device> a, b;
  const Scalar* c;
  std::int64_t rows, k;

  KOKKOS_FUNCTION void operator()(std::int64_t index, std::int64_t& wrong) const {
    const std::int64_t i = index % rows, j = index / rows;
    Scalar sum = 0;
    for (std::int64_t l = 0; l < k; ++l) sum += a(i, l) * b(l, j);
    wrong += c[index] != sum;
  }
};

template <class Scalar>
MatrixOf<Scalar> integers_of(std::int64_t rows, std::int64_t cols, std::int64_t largest, std::uint64_t seed) {
  const Matrix re = integers(rows, cols, largest, seed);
  if constexpr (std::is_same_v<Scalar, double>) {
    return re;
  } else {
    const Matrix im = integers(rows, cols, largest, seed + 10);
    MatrixOf<Scalar> x(rows, cols);
    for (std::int64_t j = 0; j < cols; ++j)
      for (std::int64_t i = 0; i < rows; ++i) x(i, j) = Scalar(re(i, j), im(i, j));
    return x;
  }
}

/// All entries of an m x n product of small integers.
template <class Scalar = double>
void expect_exact(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options,
                  std::int64_t largest) {
  SCOPED_TRACE(describe(m, n, k, options));
  using Entries = Kokkos::View<const Scalar**, LayoutLeft, Device>;
  const DeviceOperand<LayoutLeft, Scalar> a(integers_of<Scalar>(m, k, largest, 111)),
      b(integers_of<Scalar>(k, n, largest, 112));
  {
    const Kokkos::View<Scalar**, LayoutLeft, Device> c(
        Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("c")), m, n);
    Kokkos::deep_copy(c, poison_of<Scalar>());
    gemm(Device{}, "N", "N", Scalar(1), a.view(), b.view(), Scalar(0), c, options);
    std::int64_t wrong = -1;
    Kokkos::parallel_reduce(
        "count", Kokkos::RangePolicy<Device, Kokkos::IndexType<std::int64_t>>(0, m * n),
        CountWrong<Scalar>{Entries(a.view().data(), m, k), Entries(b.view().data(), k, n), c.data(), m, k},
        wrong);
    EXPECT_EQ(0, wrong) << "of " << m * n << " entries";
  }
  release_workspaces();
}

TEST(DeviceTest, LargeProductsAreCutIntoBlocksOfC) {
  // 14 products of 4 bytes for each of these entries are more than 2^32 bytes.
  expect_exact(9001, 9003, 3, with_moduli(14), 1000);
  expect_exact(9003, 9001, 70, with_moduli(14, Bound::accurate), 1000);
}

TEST(DeviceTest, ResultsOfMoreThan2To31EntriesAreExact) {
  std::size_t free_bytes = 0, total_bytes = 0;
  require(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  if (total_bytes < std::size_t{60} * 1000 * 1000 * 1000)
    GTEST_SKIP() << "the device has " << total_bytes << " bytes, 60 GB are needed";
  const std::int64_t m = 46341, n = 46342;
  ASSERT_GT(m * n, std::int64_t{1} << 31);
  expect_exact(m, n, 1, with_moduli(14), 1000);
  // one pass over all of C: 2^31 products of one modulus in one plane
  GemmOptions whole = with_moduli(3, Bound::fast);
  whole.moduli_per_group = 1;
  expect_exact(m, n, 1, whole, 20);
  whole = with_moduli(5, Bound::accurate);
  whole.moduli_per_group = 1;
  expect_exact(m, n, 1, whole, 20);
  // a row-major result, of the transposed product
  const DeviceOperand<> a(integers(m, 1, 1000, 111)), b(integers(1, n, 1000, 112));
  const Kokkos::View<double**, LayoutRight, Device> c(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, std::string("c")), n, m);
  gemm(Device{}, "T", "T", 1.0, b.view(), a.view(), 0.0, c, with_moduli(14));
  std::int64_t wrong = -1;
  Kokkos::parallel_reduce(
      "count", Kokkos::RangePolicy<Device, Kokkos::IndexType<std::int64_t>>(0, m * n),
      CountWrong<double>{Kokkos::View<const double**, LayoutLeft, Device>(a.view().data(), m, 1),
                         Kokkos::View<const double**, LayoutLeft, Device>(b.view().data(), 1, n), c.data(), m,
                         1},
      wrong);
  EXPECT_EQ(0, wrong);
  release_workspaces();
}

TEST(DeviceTest, ComplexResultsOfMoreThan2To32RealNumbersAreExact) {
  std::size_t free_bytes = 0, total_bytes = 0;
  require(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  if (total_bytes < std::size_t{100} * 1000 * 1000 * 1000)
    GTEST_SKIP() << "the device has " << total_bytes << " bytes, 100 GB are needed";
  using Complex = Kokkos::complex<double>;
  const std::int64_t m = 46341, n = 46341, k = 16;
  ASSERT_GT(2 * m * n + m, std::int64_t{1} << 32);
  expect_exact<Complex>(m, n, k, with_moduli(6), 1000);
  // one pass over all of C: 43 GB of workspace beside 34 GB of results
  GemmOptions whole = with_moduli(4);
  whole.moduli_per_group = 1;
  expect_exact<Complex>(m, n, k, whole, 20);
}

}  // namespace
}  // namespace KokkosOzaki::Testing
