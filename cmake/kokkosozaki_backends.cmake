# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Adds the INT8 engines and the instruction-set specific kernels to the target kokkosozaki and sets the
# variables KOKKOSOZAKI_ENABLE_<ENGINE> and KOKKOSOZAKI_HAVE_<KERNELS> for KokkosOzaki_config.hpp.
# A new engine: its option, its sources, its macro here; then its line in KokkosOzaki_Backends.cpp.
include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)

# Adds `source` with instruction-set flags of its own, if the compiler knows all of them, and sets
# KOKKOSOZAKI_HAVE_<name>. Nothing else is compiled with these flags.
function(kokkosozaki_add_isa_source name source)
  string(REPLACE ";" " " flags "${ARGN}")
  set(CMAKE_REQUIRED_QUIET ON)
  check_cxx_compiler_flag("${flags}" KokkosOzaki_COMPILER_HAS_${name})
  if(KokkosOzaki_COMPILER_HAS_${name})
    target_sources(kokkosozaki PRIVATE ${source})
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS ${ARGN})
  endif()
  set(KOKKOSOZAKI_HAVE_${name} ${KokkosOzaki_COMPILER_HAS_${name}} PARENT_SCOPE)
endfunction()

# ---- host: byte-dot kernels for CPUs, chosen at run time --------------------------------------------
target_sources(kokkosozaki PRIVATE
  backends/host/KokkosOzaki_HostKernels.cpp
  backends/host/KokkosOzaki_HostKernels_Portable.cpp)

check_cxx_source_compiles("
#ifndef __x86_64__
#error
#endif
int main() {}" KokkosOzaki_TARGET_IS_X86_64)
if(KokkosOzaki_TARGET_IS_X86_64)
  kokkosozaki_add_isa_source(AVX2 backends/host/KokkosOzaki_HostKernels_Avx2.cpp -mavx2 -mfma)
  kokkosozaki_add_isa_source(AVXVNNI backends/host/KokkosOzaki_HostKernels_AvxVnni.cpp -mavxvnni -mavx2)
  kokkosozaki_add_isa_source(AVX512VNNI backends/host/KokkosOzaki_HostKernels_Avx512Vnni.cpp
    -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni)
  kokkosozaki_add_isa_source(AMX backends/host/KokkosOzaki_HostKernels_Amx.cpp
    -mamx-tile -mamx-int8 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vbmi)
  kokkosozaki_add_isa_source(STAGE_AVX512 src/stages/host/KokkosOzaki_StageKernels_Avx512.cpp
    -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512vbmi -mfma -mavx2)
endif()

# ---- oneDNN: optional -------------------------------------------------------------------------------
set(KokkosOzaki_ENABLE_ONEDNN AUTO CACHE STRING "INT8 products by oneDNN: ON, OFF, or AUTO (where it is found)")
set_property(CACHE KokkosOzaki_ENABLE_ONEDNN PROPERTY STRINGS AUTO ON OFF)
set(KOKKOSOZAKI_ENABLE_ONEDNN OFF)
if(KokkosOzaki_ENABLE_ONEDNN)
  kokkosozaki_find_onednn()
  if(TARGET KokkosOzaki::onednn)
    set(KOKKOSOZAKI_ENABLE_ONEDNN ON)
    target_sources(kokkosozaki PRIVATE backends/onednn/KokkosOzaki_Int8Gemm_OneDnn.cpp)
    target_link_libraries(kokkosozaki PRIVATE KokkosOzaki::onednn)
  elseif(NOT KokkosOzaki_ENABLE_ONEDNN STREQUAL "AUTO")
    message(FATAL_ERROR "KokkosOzaki_ENABLE_ONEDNN is ON, but oneDNN (dnnl.h, libdnnl) or OpenMP was not found. "
                        "Install libdnnl-dev, set dnnl_ROOT, or turn the option off.")
  endif()
endif()

# ---- BLAS: optional, for native products on the host ------------------------------------------------
set(KokkosOzaki_ENABLE_BLAS AUTO CACHE STRING
  "Native products on host spaces by a BLAS: ON, OFF, or AUTO (where it is found)")
set_property(CACHE KokkosOzaki_ENABLE_BLAS PROPERTY STRINGS AUTO ON OFF)
set(KOKKOSOZAKI_ENABLE_BLAS OFF)
target_sources(kokkosozaki PRIVATE backends/native/KokkosOzaki_NativeGemm_Host.cpp)
if(KokkosOzaki_ENABLE_BLAS)
  find_package(BLAS QUIET)
  if(TARGET BLAS::BLAS)
    set(KOKKOSOZAKI_ENABLE_BLAS ON)
    target_link_libraries(kokkosozaki PRIVATE BLAS::BLAS)
  elseif(NOT KokkosOzaki_ENABLE_BLAS STREQUAL "AUTO")
    message(FATAL_ERROR "KokkosOzaki_ENABLE_BLAS is ON, but no BLAS was found. Install one (libopenblas-dev), set "
                        "BLA_VENDOR or CMAKE_PREFIX_PATH, or turn the option off.")
  endif()
endif()

# ---- cuBLAS: follows Kokkos -------------------------------------------------------------------------
if(Kokkos_ENABLE_CUDA)
  option(KokkosOzaki_ENABLE_CUBLAS "INT8 products and native products by cuBLAS" ON)
  target_sources(kokkosozaki PRIVATE backends/native/KokkosOzaki_NativeGemm_Cublas.cpp)
  set(KOKKOSOZAKI_ENABLE_CUBLAS ${KokkosOzaki_ENABLE_CUBLAS})
  if(KOKKOSOZAKI_ENABLE_CUBLAS)
    find_package(CUDAToolkit REQUIRED)
    target_sources(kokkosozaki PRIVATE backends/cublas/KokkosOzaki_Int8Gemm_Cublas.cpp)
    target_link_libraries(kokkosozaki PRIVATE CUDA::cublas)
  endif()
endif()

# ---- wgmma: own kernels for compute capability 9.0; an architecture of their own, so without Kokkos' flags -
set(KOKKOSOZAKI_HAVE_WGMMA OFF)
if(Kokkos_ENABLE_CUDA)
  set(wgmma_flags -gencode=arch=compute_90a,code=sm_90a)
  set(CMAKE_REQUIRED_QUIET ON)
  set(CMAKE_REQUIRED_FLAGS ${wgmma_flags})
  check_cxx_source_compiles("
#include <cuda.h>
__global__ void kernel() {
  asm volatile(\"setmaxnreg.dec.sync.aligned.u32 40;\");
}
int main() {}" KokkosOzaki_COMPILER_HAS_SM90A)
  unset(CMAKE_REQUIRED_FLAGS)
  if(KokkosOzaki_COMPILER_HAS_SM90A)
    set(KOKKOSOZAKI_HAVE_WGMMA ON)
    add_library(kokkosozaki_wgmma OBJECT backends/wgmma/KokkosOzaki_WgmmaKernels.cpp)
    target_compile_features(kokkosozaki_wgmma PRIVATE cxx_std_17)
    target_compile_options(kokkosozaki_wgmma PRIVATE ${wgmma_flags})
    set_target_properties(kokkosozaki_wgmma PROPERTIES POSITION_INDEPENDENT_CODE ON)
    kokkosozaki_enable_warnings(kokkosozaki_wgmma)
    target_sources(kokkosozaki PRIVATE $<TARGET_OBJECTS:kokkosozaki_wgmma>)
  endif()
endif()

# ---- what version() and enabled_backends() say ------------------------------------------------------
set(KOKKOSOZAKI_ENABLED_BACKENDS "portable host")
if(KOKKOSOZAKI_ENABLE_ONEDNN)
  string(APPEND KOKKOSOZAKI_ENABLED_BACKENDS " onednn")
endif()
if(KOKKOSOZAKI_ENABLE_CUBLAS)
  string(APPEND KOKKOSOZAKI_ENABLED_BACKENDS " cublas")
endif()
if(KOKKOSOZAKI_HAVE_WGMMA)
  string(APPEND KOKKOSOZAKI_ENABLED_BACKENDS " wgmma")
endif()
