# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Defines KokkosOzaki::onednn if oneDNN and OpenMP are found. oneDNN's own CMake package is not used:
# Debian's stops the configuration where the OpenCL headers are missing, which libdnnl-dev does not
# depend on and gemm does not need. dnnl_ROOT and CMAKE_PREFIX_PATH are searched as usual.
macro(kokkosozaki_find_onednn)
  find_path(KokkosOzaki_ONEDNN_INCLUDE_DIR dnnl.h HINTS ${dnnl_ROOT} $ENV{dnnl_ROOT} PATH_SUFFIXES include)
  find_library(KokkosOzaki_ONEDNN_LIBRARY dnnl HINTS ${dnnl_ROOT} $ENV{dnnl_ROOT} PATH_SUFFIXES lib lib64)
  mark_as_advanced(KokkosOzaki_ONEDNN_INCLUDE_DIR KokkosOzaki_ONEDNN_LIBRARY)
  if(KokkosOzaki_ONEDNN_INCLUDE_DIR AND KokkosOzaki_ONEDNN_LIBRARY AND NOT TARGET KokkosOzaki::onednn)
    find_package(OpenMP QUIET COMPONENTS CXX)
    if(OpenMP_CXX_FOUND)
      add_library(KokkosOzaki::onednn UNKNOWN IMPORTED)
      set_target_properties(KokkosOzaki::onednn PROPERTIES
        IMPORTED_LOCATION "${KokkosOzaki_ONEDNN_LIBRARY}"
        INTERFACE_INCLUDE_DIRECTORIES "${KokkosOzaki_ONEDNN_INCLUDE_DIR}"
        INTERFACE_LINK_LIBRARIES OpenMP::OpenMP_CXX)
    endif()
  endif()
endmacro()
