# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

set(QUERN_BENCH_COMMIT_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/QuernCommit.cmake)

# quern_bench_describe(TARGET): lets the results of a benchmark program say what was measured. The program sets two
# strings as `commit` and `flags` of its suite:
#
#   QUERN_BENCH_COMMIT  the commit of the folder that calls this function, read at each build; defined in the
#                       generated header "quern_bench_build.h"
#   QUERN_BENCH_FLAGS   the flags with which the C files of the target are compiled; defined for the target
#
# Call it after the last target_compile_options of the target.
function(quern_bench_describe target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${target}_build)
  add_custom_target(
    ${target}_commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_CURRENT_SOURCE_DIR} -DOUTPUT=${folder}/quern_bench_build.h -P
            ${QUERN_BENCH_COMMIT_SCRIPT}
    BYPRODUCTS ${folder}/quern_bench_build.h
    VERBATIM)
  add_dependencies(${target} ${target}_commit)
  target_include_directories(${target} PRIVATE ${folder})
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  get_target_property(options ${target} COMPILE_OPTIONS)
  if(NOT options)
    set(options "")
  endif()
  list(FILTER options EXCLUDE REGEX "^-W|\\$<") # warning flags do not change the generated code
  string(JOIN " " flags ${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}} ${options})
  target_compile_definitions(${target} PRIVATE "QUERN_BENCH_FLAGS=\"${flags}\"")
endfunction()
