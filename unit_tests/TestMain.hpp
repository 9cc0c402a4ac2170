// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_TESTMAIN_HPP
#define KOKKOSOZAKI_TESTMAIN_HPP

#include <cstdint>

namespace KokkosOzaki::Testing {

/// Seed of all random data: KOKKOSOZAKI_TEST_SEED from the environment, or a fixed number.
std::uint64_t test_seed();

/// \brief An option of the executable that runs `action` between Kokkos::initialize and finalize, instead of
/// the tests and without other output. Define one at namespace scope.
struct MainOption {
  MainOption(const char* option, void (*action)());

  const char* const option;
  void (*const action)();
  const MainOption* const next;
};

/// The first MainOption among the arguments, or null.
const MainOption* find_main_option(int argc, char** argv);

}  // namespace KokkosOzaki::Testing

#endif
