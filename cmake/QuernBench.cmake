# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

set(QUERN_BENCH_COMMIT_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/QuernCommit.cmake)

# quern_bench_describe(target): so that results of a benchmark say what was measured. Gives the target
# "quern_bench_build.h", which defines QUERN_BENCH_COMMIT, the commit of the folder that the call stands in, looked up
# at each build; and defines QUERN_BENCH_FLAGS, the flags that its C files are compiled with. Both are texts, to be set
# in the suite as commit and flags. Called when the target has its compile options.
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
  list(FILTER options EXCLUDE REGEX "^-W|\\$<") # warnings change nothing
  string(JOIN " " flags ${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}} ${options})
  target_compile_definitions(${target} PRIVATE "QUERN_BENCH_FLAGS=\"${flags}\"")
endfunction()
