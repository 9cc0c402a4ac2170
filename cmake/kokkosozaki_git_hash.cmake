# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Run as a script at every build: -DSOURCE_DIR= -DOUTPUT=. Writes the header only when the hash changed.
# "unknown" outside a git checkout, and where the enclosing repository is somebody else's.
set(hash "unknown")
find_program(GIT_EXECUTABLE git)
if(GIT_EXECUTABLE)
  execute_process(COMMAND ${GIT_EXECUTABLE} rev-parse --show-toplevel
    WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE toplevel OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  file(REAL_PATH "${SOURCE_DIR}" source_dir)
  if(toplevel)
    file(REAL_PATH "${toplevel}" toplevel)
  endif()
  if(toplevel STREQUAL source_dir)
    execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12 --match=NoTagIsNamedLikeThis
      WORKING_DIRECTORY "${SOURCE_DIR}" OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
      RESULT_VARIABLE result)
    if(result EQUAL 0 AND described)
      set(hash "${described}")
    endif()
  endif()
endif()

set(content "// Generated at build time by kokkosozaki_git_hash.cmake.\n#define KOKKOSOZAKI_GIT_HASH \"${hash}\"\n")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" previous)
endif()
if(NOT "${previous}" STREQUAL "${content}")
  file(WRITE "${OUTPUT}" "${content}")
endif()
