# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# A test program says its labels in a line of its own below the licence, such as "/* Test labels: threaded, stress */":
#
#     threaded    The test starts threads, so it is built for the thread sanitizer too.
#     optimised   ./run test, which runs every test in one of two builds, runs the test in release-test; tests without
#                 the label run in debug. The label is for the programs that users start (examples, benchmarks), for
#                 what builds or installs the library as users get it, and for comparisons with models that take twice
#                 as long in debug.
#     stress      The test goes on for QUERN_STRESS_SECONDS: shorter in ./run test than in ./run test all.
#
# Every build has all its tests, whatever their labels; ./run test all and ./run test PRESET run all of them.
set(quern_known_labels threaded optimised stress)

# These begin first, so that none is left alone at the end.
set(quern_long_tests bench test_bulk_random test_frame_failure test_determinism test_event_flow test_graph_nested
                     stress_jobs test_levels test_reaction_memory bench_report grid swarm test_sync keep)

# Criterion passes a test whose process finds a leak at its end; so what sanitizers print counts as well.
function(quern_guard_test name)
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "${quern_test_environment}" TIMEOUT 600)
  if(name IN_LIST quern_long_tests)
    set_tests_properties(${name} PROPERTIES COST 10)
  endif()
  if(QUERN_SANITIZE)
    set_tests_properties(
      ${name} PROPERTIES FAIL_REGULAR_EXPRESSION "(ERROR|WARNING): [A-Za-z]+Sanitizer:|runtime error:")
  endif()
endfunction()

# What the tests labelled 'optimised' need; ./run test builds no more of release-test.
add_custom_target(quern_optimised_tests)

# quern_label_optimised(NAME TARGET ...): labels the test, whose command needs the targets.
function(quern_label_optimised name)
  set_property(TEST ${name} APPEND PROPERTY LABELS optimised)
  add_dependencies(quern_optimised_tests ${ARGN})
endfunction()

# Of two processors, tests with threads get both; but one under a sanitizer, where most of a test is the model
# that it compares with, and two tests side by side take three fifths of the time of one after the other.
set(quern_threaded_processors 2)
if(QUERN_SANITIZE)
  set(quern_threaded_processors 1)
endif()

# Sets `result` to the labels that the source names, a list.
function(quern_read_labels source result)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(STRINGS ${source} line LIMIT_COUNT 1 REGEX "^/\\* Test labels: .* \\*/$")
  string(REGEX REPLACE "^/\\* Test labels: (.*) \\*/$" "\\1" labels "${line}")
  string(REPLACE ", " ";" labels "${labels}")
  foreach(label IN LISTS labels)
    if(NOT label IN_LIST quern_known_labels)
      message(FATAL_ERROR "${source}: '${label}' is no label of tests; they are ${quern_known_labels}")
    endif()
  endforeach()
  set(${result} "${labels}" PARENT_SCOPE)
endfunction()

# quern_add_test(NAME SOURCE): a program and an entry of ctest, both called NAME.
function(quern_add_test name source)
  quern_read_labels(${source} labels)
  if(QUERN_SANITIZE STREQUAL "thread" AND NOT "threaded" IN_LIST labels)
    return()
  endif()
  string(REGEX MATCH "^[^/]*" folder ${source})
  add_executable(${name} ${source})
  quern_configure_target(${name})
  quern_fix_floats(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE quern_test_support ${quern_test_libraries_${folder}} quern_static m)
  add_test(NAME ${name} COMMAND ${quern_test_launcher} $<TARGET_FILE:${name}> --jobs 1)
  set_tests_properties(${name} PROPERTIES LABELS "${labels}")
  quern_guard_test(${name})
  if("optimised" IN_LIST labels)
    add_dependencies(quern_optimised_tests ${name})
  endif()
  if("threaded" IN_LIST labels)
    set_tests_properties(${name} PROPERTIES PROCESSORS ${quern_threaded_processors})
  endif()
endfunction()

# quern_add_program_test(NAME TARGET COMMAND ...): an entry of ctest, where the target exists. The programs are whole
# frames on several threads; the sanitizers look at them, too.
function(quern_add_program_test name target)
  if(TARGET ${target})
    add_test(NAME ${name} COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES LABELS threaded PROCESSORS ${quern_threaded_processors})
    quern_label_optimised(${name} ${target})
    quern_guard_test(${name})
  endif()
endfunction()

# quern_expect(NAME TEXT ...): the output of the program test, if there is one, must match the texts, regular
# expressions, in this order.
function(quern_expect name)
  if(TEST ${name})
    string(JOIN ".*" expected ${ARGN})
    set_tests_properties(${name} PROPERTIES PASS_REGULAR_EXPRESSION "${expected}")
  endif()
endfunction()
