# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# The labels of a test program are listed in a separate line below the licence, such as
# "/* Test labels: threaded, stress */":
#
#     threaded    The test starts threads, so it is also built for the thread sanitizer.
#     optimised   ./run test runs the test in release-test; it runs tests without the label in debug. The label marks
#                 programs that users start (examples, benchmarks), tests that build or install the library, and
#                 comparisons with models that need twice as long in debug.
#     stress      The test runs for the seconds of QUERN_STRESS_SECONDS in the environment, which ./run test sets to 0.5.
#                 Without it, as in ./run test all, a test has a default of up to 20 s.
#
# In every build, ./run test all and ./run test PRESET run all tests with any labels. Builds with sanitizers have no tests that
# run none of their code, such as those of sources and documents (see house.cmake).
set(quern_known_labels threaded optimised stress)

# The longest tests start first, so that at the end no processor waits for one of them. ctest takes as many tests at a
# time as there are processors, also such with threads: two of them at a time need three fifths of the time of one after
# the other, since most of their time is spent in the model with which they compare.
set(quern_long_tests
    cpp_mistakes_c++ cpp_mistakes_clang++ types_are_refused library_32bit library_portable headers_strict one_file
    test_netplay_simulation test_netplay_joins test_every bench bench_report inspect_large_page inspect_page ranks
    stress_inspect stress_jobs live_cpp test_bulk_random test_frame_failure test_determinism test_restart
    test_related_failure test_grid_random test_allocation_failure test_random_relations test_history_frames
    test_event_flow test_graph_nested test_levels test_reaction_memory grid swarm test_sync keep models)

# A program may report success although a sanitizer reported an error in a process that it started. So tests also fail by
# the messages of sanitizers.
function(quern_guard_test name)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${quern_test_environment}" TIMEOUT 600)
  if(QUERN_SANITIZE)
    set_tests_properties(
      ${name} PROPERTIES FAIL_REGULAR_EXPRESSION "(ERROR|WARNING): [A-Za-z]+Sanitizer:|runtime error:")
  endif()
endfunction()

# The targets that tests with the label 'optimised' need. ./run test builds only these in release-test.
add_custom_target(quern_optimised_tests)

# quern_label_optimised(NAME TARGET ...): labels a test 'optimised'. Its command needs the targets.
function(quern_label_optimised name)
  set_property(TEST ${name} APPEND PROPERTY LABELS optimised)
  add_dependencies(quern_optimised_tests ${ARGN})
endfunction()

# quern_read_labels(SOURCE RESULT): sets RESULT to the list of the labels of a test program.
function(quern_read_labels source result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(STRINGS ${source} line LIMIT_COUNT 1 REGEX "^/\\* Test labels: .* \\*/$")
  string(REGEX REPLACE "^/\\* Test labels: (.*) \\*/$" "\\1" labels "${line}")
  string(REPLACE ", " ";" labels "${labels}")
  foreach(label IN LISTS labels)
    if(NOT label IN_LIST quern_known_labels)
      message(FATAL_ERROR "${source}: unknown test label '${label}'; the labels are ${quern_known_labels}")
    endif()
  endforeach()
  set(${result} "${labels}" PARENT_SCOPE)
endfunction()

# There are hundreds of test programs, and the linker mold links one in two fifths of the time of GNU ld.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=mold QUERN_HAS_MOLD)

# Most processor time of a build goes into the test programs themselves, which run only a few instructions outside of the
# library and of the models (quern_test_support). With sanitizers, -O0 compiles them in two fifths of the time of -O1, and
# in release builds -O1 in three fifths of that of -O3.
set(quern_test_optimisation "")
if(CMAKE_C_COMPILER_ID MATCHES "GNU|Clang")
  set(quern_test_optimisation $<IF:$<BOOL:${QUERN_SANITIZE}>,-O0,$<$<NOT:$<CONFIG:Debug>>:-O1>>)
endif()

# quern_add_test(NAME SOURCE): adds a test program and a test of ctest, both with that name.
function(quern_add_test name source)
  quern_read_labels(${source} labels)
  if(QUERN_SANITIZE STREQUAL "thread" AND NOT "threaded" IN_LIST labels)
    return()
  endif()
  string(REGEX MATCH "^[^/]*" folder ${source})
  add_executable(${name} ${source})
  quern_configure_target(${name})
  quern_fix_floats(${name})
  target_compile_options(${name} PRIVATE ${quern_test_optimisation})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE quern_test_support ${quern_test_libraries_${folder}} quern_static m)
  if(QUERN_HAS_MOLD)
    target_link_options(${name} PRIVATE -fuse-ld=mold)
  endif()
  add_test(NAME ${name} COMMAND ${quern_test_launcher} $<TARGET_FILE:${name}> --jobs 1)
  set_tests_properties(${name} PROPERTIES LABELS "${labels}")
  quern_guard_test(${name})
  if("optimised" IN_LIST labels)
    add_dependencies(quern_optimised_tests ${name})
  endif()
endfunction()

# Builds with checks share each loop and each run of a graph, so that sanitizers see more threads. What decides that in
# other builds would then run under no sanitizer. So in the thread sanitizer's build the tests of the job system that run
# loops and graphs exist twice: NAME_deciding has these two sources without checks, which the linker prefers to those of
# the library.
set(quern_deciding_sources sched/jobs/loop.c sched/jobs/sharing.c)
set(quern_deciding_tests
    "^sched/jobs/test_(cancel|external_threads|graph.*|host_threads|jobs|submit_loop|together)\\.c$")

# quern_add_deciding_test(NAME SOURCE): adds the second test program of a test of the job system, if there is one.
function(quern_add_deciding_test name source)
  if(NOT QUERN_SANITIZE STREQUAL "thread" OR NOT TARGET ${name} OR NOT source MATCHES "${quern_deciding_tests}")
    return()
  endif()
  if(NOT TARGET quern_deciding)
    list(TRANSFORM quern_deciding_sources PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE sources)
    add_library(quern_deciding OBJECT ${sources})
    quern_configure_target(quern_deciding)
    target_compile_options(quern_deciding PRIVATE -UQUERN_CHECKS)
    target_include_directories(quern_deciding PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  endif()
  quern_add_test(${name}_deciding ${source})
  target_sources(${name}_deciding PRIVATE $<TARGET_OBJECTS:quern_deciding>)
endfunction()

# quern_add_program_test(NAME TARGET COMMAND ...): adds a test of ctest that runs the command, if the target exists.
# The programs run whole frames on several threads, so they are also tested under the thread sanitizer.
function(quern_add_program_test name target)
  if(TARGET ${target})
    add_test(NAME ${name} COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS threaded)
    quern_label_optimised(${name} ${target})
    quern_guard_test(${name})
  endif()
endfunction()

# quern_expect(NAME REGEX ...): the output of the program test must match the regular expressions, in this order. Does
# nothing if the test does not exist.
function(quern_expect name)
  if(TEST ${name})
    string(JOIN ".*" expected ${ARGN})
    set_tests_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "${expected}")
  endif()
endfunction()
