// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <KokkosOzaki.hpp>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "HostViews.hpp"
#include "MatrixGenerators.hpp"

// Every allocation of a call fails once: the call throws and leaves C alone, and the next one is right. The allocations
// are those of this thread through operator new, and through malloc and its relatives where no sanitizer owns them.

namespace {

/// \brief Which allocations of this thread are refused.
struct Refusals {
  bool is_on = false, all_that_follow = false;
  std::int64_t before_first = 0, refused = 0;
  std::size_t fewest_bytes = 0;  // what is smaller is granted

  bool next_is_refused(std::size_t bytes) {
    if (!is_on || bytes < fewest_bytes) return false;
    if (before_first > 0) {
      --before_first;
      return false;
    }
    if (!all_that_follow && refused > 0) return false;
    ++refused;
    return true;
  }
};

thread_local Refusals refusals;

}  // namespace

// Sanitizers own malloc; operator new may be replaced everywhere.
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) noexcept {
  if (!refusals.next_is_refused(bytes)) return __libc_malloc(bytes);
  errno = ENOMEM;
  return nullptr;
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) noexcept {
  void* got = refusals.next_is_refused(bytes) ? nullptr : __libc_memalign(alignment, bytes);
  if (got == nullptr) return ENOMEM;
  *memory = got;
  return 0;
}

void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  if (!refusals.next_is_refused(bytes)) return __libc_memalign(alignment, bytes);
  errno = ENOMEM;
  return nullptr;
}
}

#else

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return refusals.next_is_refused(bytes) ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
}
void* operator new(std::size_t bytes) {
  void* memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// Not inlined: g++ would take free for the wrong partner of new.
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

#endif

namespace KokkosOzaki::Testing {
namespace {

using Kokkos::LayoutLeft;

template <class Space>
class AllocationFailureTest : public ::testing::Test {};
TYPED_TEST_SUITE(AllocationFailureTest, HostSpaces, SpaceNames);

/// \brief The smallest allocation that may be refused. The end of a View must not fail, but with some Kokkos (4.6) it
/// copies the label: such small allocations are granted there.
std::size_t fewest_refused_bytes() {
  Kokkos::View<char*, Kokkos::HostSpace> view("a label that is not stored in a short string", 1);
  refusals = {true, false, 1000, 0, 0};
  view = {};
  refusals.is_on = false;
  return refusals.before_first < 1000 ? 100 : 0;
}

/// A call that may fail, what must hold before it, and the operands it works on.
template <class Space>
class Attempt {
 public:
  Attempt(std::int64_t m, std::int64_t n, std::int64_t k, const GemmOptions& options)
      : m_options(options),
        m_a(spread(m, k, 1.0, 1)),
        m_b(spread(k, n, 1.0, 2)),
        m_before(uniform(m, n, -1, 1, 3)),
        m_c(m_before),
        m_expected(product<Space>(m_a.values(), m_b.values(), options, -1.5, 0.5, m_before)) {}

  const GemmOptions& options() const { return m_options; }

  void gemm() {
    KokkosOzaki::gemm(Space{}, "N", "N", -1.5, m_a.view(), m_b.view(), 0.5, m_c.view(), m_options);
  }
  GemmPlan<Space, double> plan() const {
    return {Space{},  'N', 'N', m_c.view().extent_int(0), m_c.view().extent_int(1), m_a.view().extent_int(1),
            m_options};
  }
  void execute(GemmPlan<Space, double>& plan) {
    plan.execute(Space{}, -1.5, m_a.view(), m_b.view(), 0.5, m_c.view());
  }
  void prepare_and_execute(GemmPlan<Space, double>& plan) {
    const auto a = prepare_a(Space{}, "N", m_a.view(), m_options);
    const auto b = prepare_b(Space{}, "N", m_b.view(), m_options);
    plan.execute(Space{}, -1.5, a, b, 0.5, m_c.view());
  }

  /// call() with one allocation after another refused, until it makes no more; prepare() comes before each.
  void with_every_refusal(const std::function<void()>& prepare, const std::function<void()>& call) {
    for (const bool all_that_follow : {false, true}) {
      std::int64_t failures = 0;
      for (std::int64_t point = 0;; ++point) {
        SCOPED_TRACE("allocation " + std::to_string(point) + (all_that_follow ? " and all that follow" : ""));
        prepare();
        m_c.assign(m_before);
        std::string what;
        bool has_thrown = false;
        refusals = {true, all_that_follow, point, 0, m_fewest_bytes};
        try {
          call();
          refusals.is_on = false;
        } catch (const std::exception& error) {
          refusals.is_on = false;
          has_thrown = true;
          what = error.what();
        }
        Space{}.fence();
        if (has_thrown) {
          ++failures;
          ASSERT_GT(refusals.refused, 0) << what;
          ASSERT_TRUE(same_bits(m_before, m_c.values())) << "C was touched before: " << what;
          ASSERT_NO_THROW(call()) << "after: " << what;
          Space{}.fence();
        }
        ASSERT_TRUE(same_bits(m_expected, m_c.values())) << what;
        if (!has_thrown && refusals.refused == 0) break;
        ASSERT_LT(point, 10000);
      }
      m_failures += failures;
    }
  }

  std::int64_t failures() const { return m_failures; }

 private:
  GemmOptions m_options;
  Operand<LayoutLeft> m_a, m_b;
  Matrix m_before;
  Operand<LayoutLeft> m_c;
  Matrix m_expected;
  std::int64_t m_failures = 0;
  std::size_t m_fewest_bytes = fewest_refused_bytes();
};

/// Our own engines: what a vendor's library does without memory is its own business (BackendError).
std::vector<GemmOptions> some_options() {
  GemmOptions plain, accurate = with_moduli(14, Bound::accurate), blocks, groups = with_moduli(9);
  plain.backend = accurate.backend = groups.backend = "host-portable";
  blocks.backend = "portable";
  blocks.max_workspace_bytes = 120000;  // several blocks of C
  groups.moduli_per_group = 3;
  return {plain, accurate, blocks, groups};
}

TYPED_TEST(AllocationFailureTest, OfAFirstGemm) {
  for (const GemmOptions& options : some_options()) {
    Attempt<TypeParam> attempt(40, 35, 70, options);
    ASSERT_NO_FATAL_FAILURE(
        attempt.with_every_refusal([] { release_workspaces(); }, [&] { attempt.gemm(); }));
    EXPECT_GT(attempt.failures(), 0);
  }
}

TYPED_TEST(AllocationFailureTest, OfAGemmThatGrowsItsWorkspace) {
  for (const GemmOptions& options : some_options()) {
    Attempt<TypeParam> small(5, 6, 7, options), large(40, 35, 70, options);
    const auto shrink = [&] {
      release_workspaces();
      small.gemm();
    };
    ASSERT_NO_FATAL_FAILURE(large.with_every_refusal(shrink, [&] { large.gemm(); }));
  }
}

TYPED_TEST(AllocationFailureTest, OfAGemmThatHasItsWorkspace) {
  for (const GemmOptions& options : some_options()) {
    Attempt<TypeParam> attempt(40, 35, 70, options);
    attempt.gemm();
    ASSERT_NO_FATAL_FAILURE(attempt.with_every_refusal([] {}, [&] { attempt.gemm(); }));
  }
}

TYPED_TEST(AllocationFailureTest, OfAPlan) {
  for (const GemmOptions& options : some_options()) {
    Attempt<TypeParam> attempt(40, 35, 70, options);
    ASSERT_NO_FATAL_FAILURE(attempt.with_every_refusal([] {},
                                                       [&] {
                                                         auto plan = attempt.plan();
                                                         attempt.execute(plan);
                                                       }));
    const std::int64_t failures = attempt.failures();
    EXPECT_GT(failures, 0);
    auto plan = attempt.plan();
    ASSERT_NO_FATAL_FAILURE(attempt.with_every_refusal([] {}, [&] { attempt.execute(plan); }));
    EXPECT_EQ(failures, attempt.failures()) << "the call of a plan allocates nothing";
  }
}

TYPED_TEST(AllocationFailureTest, OfPreparedMatrices) {
  for (const GemmOptions& options : some_options()) {
    Attempt<TypeParam> attempt(40, 35, 70, options);
    auto plan = attempt.plan();
    ASSERT_NO_FATAL_FAILURE(attempt.with_every_refusal([] {}, [&] { attempt.prepare_and_execute(plan); }));
    EXPECT_GT(attempt.failures(), 0);
  }
}

}  // namespace
}  // namespace KokkosOzaki::Testing
