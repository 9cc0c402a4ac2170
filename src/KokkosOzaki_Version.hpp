// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_VERSION_HPP
#define KOKKOSOZAKI_VERSION_HPP

namespace KokkosOzaki {

/// Version of the library, "major.minor.patch".
const char* version();

/// Git commit that the library was built from, with "-dirty" for a changed tree; "unknown" outside a
/// repository.
const char* git_hash();

/// The optional engines that were built in, separated by spaces.
const char* enabled_backends();

}  // namespace KokkosOzaki

#endif
