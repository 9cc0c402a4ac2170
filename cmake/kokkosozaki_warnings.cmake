# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

option(KokkosOzaki_ENABLE_WARNINGS_AS_ERRORS "Treat warnings in KokkosOzaki's own sources as errors" OFF)

function(kokkosozaki_enable_warnings target)
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang")
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
    if(KokkosOzaki_ENABLE_WARNINGS_AS_ERRORS)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
  endif()
endfunction()
