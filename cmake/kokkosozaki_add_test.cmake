# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
include(GoogleTest)

# kokkosozaki_add_test(<name> [LIBRARIES <target>...] [LABEL <label>] [TIMEOUT <seconds>])
#
# Makes the executable <name> from <name>.cpp (main is in kokkosozaki_test_support) and one CTest test for each of its
# cases, with two threads; exit status 77 means "this machine cannot run it".
function(kokkosozaki_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "LABEL;TIMEOUT" "LIBRARIES")
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  add_executable(${name} ${name}.cpp)
  target_link_libraries(${name} PRIVATE ${ARG_LIBRARIES} kokkosozaki_test_support)
  kokkosozaki_enable_warnings(${name})
  if(ARG_LABEL)
    set(label LABELS ${ARG_LABEL})
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${ARG_TIMEOUT} ${label})
  # gtest_discover_tests takes lists apart, so the environment is set when the tests are known. Threads that wait
  # must sleep: tests run side by side.
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}_environment.cmake)
  file(WRITE ${script} "\
if(${name}_TESTS)
  set_tests_properties(\${${name}_TESTS} PROPERTIES
    ENVIRONMENT \"OMP_NUM_THREADS=2;OMP_PROC_BIND=false;OMP_WAIT_POLICY=passive\")
endif()
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()
