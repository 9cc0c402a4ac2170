// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_HPP
#define KOKKOSOZAKI_HPP

#include "KokkosOzaki_Error.hpp"
#include "KokkosOzaki_Gemm.hpp"
#include "KokkosOzaki_GemmBatched.hpp"
#include "KokkosOzaki_GemmOptions.hpp"
#include "KokkosOzaki_GemmPlan.hpp"
#include "KokkosOzaki_PreparedMatrix.hpp"
#include "KokkosOzaki_Version.hpp"

#endif
