// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_Version.hpp"

#include "KokkosOzaki_GitHash.hpp"
#include "KokkosOzaki_config.hpp"

namespace KokkosOzaki {

const char* version() {
  return KOKKOSOZAKI_VERSION_STRING;
}

const char* git_hash() {
  return KOKKOSOZAKI_GIT_HASH;
}

const char* enabled_backends() {
  return KOKKOSOZAKI_ENABLED_BACKENDS;
}

}  // namespace KokkosOzaki
