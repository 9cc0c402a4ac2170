// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef KOKKOSOZAKI_BACKENDS_HPP
#define KOKKOSOZAKI_BACKENDS_HPP

#include <memory>
#include <string>
#include <vector>

#include "KokkosOzaki_Int8Gemm.hpp"

namespace KokkosOzaki::Impl {

/// The engines that were built for this space and that this CPU or GPU can run, best first.
template <class ExecutionSpace>
std::vector<std::string> int8_gemm_names();

/// \brief Makes an engine: the best one, or the one with this name.
/// \throws std::invalid_argument  no engine of this name is built and usable here
template <class ExecutionSpace>
std::unique_ptr<Int8Gemm<ExecutionSpace>> make_int8_gemm(const char* name = nullptr);

}  // namespace KokkosOzaki::Impl

#endif
