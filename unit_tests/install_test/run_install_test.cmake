# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Configures, builds and runs a consumer of KokkosOzaki in an empty folder, as KIND says: as_package installs the
# finished build into a fresh prefix first and moves it, as_subdirectory compiles the library within the consumer.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE result COMMAND_ECHO STDOUT)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "The install test ${KIND} failed (${result}) in: ${ARGN}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
file(MAKE_DIRECTORY ${WORK_DIR})
set(arguments -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${CONFIG} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
  -DCMAKE_CXX_FLAGS=${CXX_FLAGS} -DKokkosOzaki_SOURCE_DIR=${KokkosOzaki_SOURCE_DIR} -DCMAKE_CXX_EXTENSIONS=OFF)
if(CXX_COMPILER_LAUNCHER)
  list(APPEND arguments -DCMAKE_CXX_COMPILER_LAUNCHER=${CXX_COMPILER_LAUNCHER})
endif()
if(KIND STREQUAL "as_package")
  # Kokkos is found through the package alone.
  run(${CMAKE_COMMAND} --install ${KokkosOzaki_BINARY_DIR} --config ${CONFIG} --prefix ${WORK_DIR}/installed)
  file(RENAME ${WORK_DIR}/installed ${WORK_DIR}/moved)
  list(APPEND arguments -DKokkosOzaki_ROOT=${WORK_DIR}/moved)
else()
  # What is asked here, whether it compiles, links and runs, needs no optimisation.
  string(TOUPPER ${CONFIG} config)
  list(APPEND arguments -DKokkos_DIR=${Kokkos_DIR} -DCMAKE_CXX_FLAGS_${config}=-O0)
endif()
cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/build ${arguments})
run(${CMAKE_COMMAND} --build ${WORK_DIR}/build --config ${CONFIG} --parallel ${jobs})
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK_DIR}/build -C ${CONFIG} --output-on-failure --no-tests=error)
