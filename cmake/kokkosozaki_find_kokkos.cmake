# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Finds Kokkos unless Kokkos::kokkos exists already, and repairs Debian's package. Used by the build and,
# installed, by KokkosOzakiConfig.cmake.
macro(kokkosozaki_find_kokkos)
  if(NOT TARGET Kokkos::kokkos)
    find_package(Kokkos 3.4 CONFIG ${ARGN})
  endif()
  if(TARGET Kokkos::kokkos)
    kokkosozaki_repair_kokkos_include_path()
  endif()
endmacro()

# Debian's libtrilinos-kokkos-dev names an include path that does not exist; its headers are in
# <prefix>/include/trilinos.
function(kokkosozaki_repair_kokkos_include_path)
  get_target_property(imported Kokkos::kokkos IMPORTED)
  get_target_property(aliased Kokkos::kokkos ALIASED_TARGET)
  get_target_property(include_dirs Kokkos::kokkos INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT imported OR aliased OR NOT include_dirs)
    return()
  endif()
  set(repaired "")
  foreach(dir IN LISTS include_dirs)
    if(IS_ABSOLUTE "${dir}" AND NOT EXISTS "${dir}" AND EXISTS "/usr/include/trilinos/Kokkos_Core.hpp")
      list(APPEND repaired /usr/include/trilinos)
    else()
      list(APPEND repaired "${dir}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES repaired)
  if(NOT repaired STREQUAL include_dirs)
    set_target_properties(Kokkos::kokkos PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${repaired}")
  endif()
endfunction()
