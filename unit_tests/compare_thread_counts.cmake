# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs EXECUTABLE --print-hashes as processes of 1, 2, 3 and 8 threads and requires the same, not empty, output.
foreach(threads IN ITEMS 1 2 3 8)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env OMP_NUM_THREADS=${threads} OMP_PROC_BIND=false OMP_WAIT_POLICY=passive
            ${EXECUTABLE} --print-hashes
    OUTPUT_VARIABLE output ERROR_VARIABLE errors RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${EXECUTABLE} with ${threads} threads ended with ${result}:\n${output}${errors}")
  endif()
  string(STRIP "${output}" output)
  if(output STREQUAL "")
    message(FATAL_ERROR "${EXECUTABLE} --print-hashes printed nothing.")
  endif()
  if(threads EQUAL 1)
    set(expected "${output}")
  elseif(NOT output STREQUAL expected)
    message(FATAL_ERROR "Not the same bits.\n1 thread:\n${expected}\n${threads} threads:\n${output}")
  endif()
endforeach()
message(STATUS "The same with 1, 2, 3 and 8 threads:\n${expected}")
