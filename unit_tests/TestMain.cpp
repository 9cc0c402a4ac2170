// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "TestMain.hpp"

#include <Kokkos_Core.hpp>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "SharedMemory.hpp"

#if defined(KOKKOS_ENABLE_CUDA)
#include <cuda_runtime_api.h>
#endif

namespace KokkosOzaki::Testing {

std::uint64_t test_seed() {
  const char* text = std::getenv("KOKKOSOZAKI_TEST_SEED");
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 0) : 20260101;
}

namespace {

const MainOption*& first_main_option() {
  static const MainOption* first = nullptr;
  return first;
}

// A Kokkos with a device aborts in initialize where there is none.
bool device_is_missing() {
#if defined(KOKKOS_ENABLE_CUDA)
  int count = 0;
  return cudaGetDeviceCount(&count) != cudaSuccess || count == 0;
#else
  return false;
#endif
}

bool is_set(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr && std::strcmp(text, "1") == 0;
}

}  // namespace

MainOption::MainOption(const char* its_option, void (*its_action)())
    : option(its_option), action(its_action), next(first_main_option()) {
  first_main_option() = this;
}

const MainOption* find_main_option(int argc, char** argv) {
  for (const MainOption* option = first_main_option(); option != nullptr; option = option->next)
    for (int i = 1; i < argc; ++i)
      if (std::strcmp(argv[i], option->option) == 0) return option;
  return nullptr;
}

}  // namespace KokkosOzaki::Testing

int main(int argc, char* argv[]) {
  using namespace KokkosOzaki::Testing;
  ::testing::InitGoogleTest(&argc, argv);
  if (::testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();

  if (device_is_missing()) {
    const bool required = is_set("KOKKOSOZAKI_REQUIRE_DEVICE");
    std::fprintf(stderr, "%s: this build needs a device, and there is none.\n",
                 required ? "FAILED" : "SKIPPED");
    constexpr int skipped = 77;
    return required ? EXIT_FAILURE : skipped;
  }

  Kokkos::initialize(argc, argv);
#if defined(KOKKOS_ENABLE_CUDA)
  share_heap_with_device();
#endif
  int status = EXIT_SUCCESS;
  if (const MainOption* option = find_main_option(argc, argv)) {
    option->action();
  } else {
    std::printf("seed %llu (KOKKOSOZAKI_TEST_SEED); %s with %d threads\n",
                static_cast<unsigned long long>(test_seed()), Kokkos::DefaultHostExecutionSpace::name(),
                static_cast<int>(Kokkos::DefaultHostExecutionSpace().concurrency()));
    std::fflush(stdout);
    status = RUN_ALL_TESTS();
  }
  Kokkos::finalize();
  return status;
}
