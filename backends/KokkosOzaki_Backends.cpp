// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "KokkosOzaki_Backends.hpp"

#include <stdexcept>

#include "KokkosOzaki_config.hpp"
#include "host/KokkosOzaki_Int8Gemm_Host.hpp"
#include "portable/KokkosOzaki_Int8Gemm_Portable.hpp"

#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
#include "cublas/KokkosOzaki_Int8Gemm_Cublas.hpp"
#endif
#if defined(KOKKOSOZAKI_HAVE_WGMMA)
#include "wgmma/KokkosOzaki_Int8Gemm_Wgmma.hpp"
#endif
#if defined(KOKKOSOZAKI_ENABLE_ONEDNN)
#include "onednn/KokkosOzaki_Int8Gemm_OneDnn.hpp"
#endif

namespace KokkosOzaki::Impl {

namespace {

#if defined(KOKKOSOZAKI_ENABLE_ONEDNN)
const bool use_onednn = onednn_is_exact();
#else
constexpr bool use_onednn = false;
#endif

}  // namespace

template <class ExecutionSpace>
std::vector<std::string> int8_gemm_names() {
  std::vector<std::string> names;
  if constexpr (is_host_space_v<ExecutionSpace>) {
    for (int i = 0; i < host_kernel_set_count(); ++i) names.push_back(host_kernel_set(i).name);
    // Measured (docs/performance.md): slower than our AMX kernels, faster than the other sets.
    if (use_onednn) names.insert(names.begin() + (names.front() == "host-amx" ? 1 : 0), "onednn");
  }
#if defined(KOKKOSOZAKI_HAVE_WGMMA)
  // Measured (docs/performance.md): faster than cuBLAS from n = 512 to 16384, and reduces on the way.
  if constexpr (is_cuda_space_v<ExecutionSpace>)
    if (wgmma_usable(ExecutionSpace().cuda_device())) names.push_back("wgmma");
#endif
#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
  if constexpr (is_cuda_space_v<ExecutionSpace>) names.push_back("cublas");
#endif
  names.push_back("portable");
  return names;
}

template <class ExecutionSpace>
std::unique_ptr<Int8Gemm<ExecutionSpace>> make_int8_gemm(const char* name) {
  const std::vector<std::string> names = int8_gemm_names<ExecutionSpace>();
  const std::string wanted = name != nullptr ? name : names.front();
  if (wanted == "portable") return std::make_unique<PortableInt8Gemm<ExecutionSpace>>();
#if defined(KOKKOSOZAKI_HAVE_WGMMA)
  if constexpr (is_cuda_space_v<ExecutionSpace>)
    if (wanted == "wgmma" && names.front() == wanted) return std::make_unique<WgmmaInt8Gemm>();
#endif
#if defined(KOKKOSOZAKI_ENABLE_CUBLAS)
  if constexpr (is_cuda_space_v<ExecutionSpace>)
    if (wanted == "cublas") return std::make_unique<CublasInt8Gemm>();
#endif
  if constexpr (is_host_space_v<ExecutionSpace>) {
#if defined(KOKKOSOZAKI_ENABLE_ONEDNN)
    if (wanted == "onednn" && use_onednn) return std::make_unique<OneDnnInt8Gemm<ExecutionSpace>>();
#endif
    if (find_host_kernel_set(wanted.c_str()) != nullptr)
      return std::make_unique<HostInt8Gemm<ExecutionSpace>>(wanted.c_str());
  }
  std::string list;
  for (const std::string& usable : names) list += (list.empty() ? "" : ", ") + usable;
  throw std::invalid_argument("KokkosOzaki: backend must be one of " + list + " here, got " + wanted + ".");
}

#define KOKKOSOZAKI_INSTANTIATE(SPACE)                        \
  template std::vector<std::string> int8_gemm_names<SPACE>(); \
  template std::unique_ptr<Int8Gemm<SPACE>> make_int8_gemm<SPACE>(const char*);
KOKKOSOZAKI_FOR_EACH_SPACE(KOKKOSOZAKI_INSTANTIATE)

}  // namespace KokkosOzaki::Impl
