# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# The framework of test programs, target quern_test_framework, and the environment in which ctest starts them.

# Criterion cannot start under ThreadSanitizer, and its packages exist only for the host. It starts a new process for each
# test, which with AddressSanitizer needs 100 ms before it runs a line of the test; the stand-in forks, which needs 20 ms.
# Builds with sanitizers and for other platforms therefore use this small stand-in. Builds for ThreadSanitizer have only
# the threaded tests, none of which reads JSON.
if(QUERN_TEST_STANDIN OR QUERN_SANITIZE)
  add_library(quern_test_framework STATIC support/standin/standin.c)
  quern_configure_target(quern_test_framework)
  target_include_directories(quern_test_framework SYSTEM PUBLIC support/standin)
  if(WIN32)
    target_compile_options(quern_test_framework
                           PUBLIC -include ${CMAKE_CURRENT_SOURCE_DIR}/support/windows_heap.h)
    target_link_libraries(quern_test_framework PUBLIC -Wl,-Bstatic -lpthread -Wl,-Bdynamic)
  endif()
else()
  find_path(QUERN_CRITERION_INCLUDE criterion/criterion.h)
  find_library(QUERN_CRITERION_LIBRARY criterion)
  if(NOT QUERN_CRITERION_INCLUDE OR NOT QUERN_CRITERION_LIBRARY)
    message(FATAL_ERROR "The tests need Criterion. Install the package libcriterion-dev (Debian, Ubuntu), "
                        "or configure with -DQUERN_BUILD_TESTS=OFF.")
  endif()
  add_library(quern_test_framework INTERFACE)
  target_include_directories(quern_test_framework SYSTEM INTERFACE ${QUERN_CRITERION_INCLUDE})
  target_link_libraries(quern_test_framework INTERFACE ${QUERN_CRITERION_LIBRARY})
endif()
if(NOT QUERN_SANITIZE STREQUAL "thread")
  find_path(QUERN_CJSON_INCLUDE cjson/cJSON.h)
  find_library(QUERN_CJSON_LIBRARY cjson)
  if(NOT QUERN_CJSON_INCLUDE OR NOT QUERN_CJSON_LIBRARY)
    message(FATAL_ERROR "The tests need cJSON. Install the package libcjson-dev (Debian, Ubuntu), "
                        "or configure with -DQUERN_BUILD_TESTS=OFF.")
  endif()
  target_include_directories(quern_test_framework SYSTEM INTERFACE ${QUERN_CJSON_INCLUDE})
  target_link_libraries(quern_test_framework INTERFACE ${QUERN_CJSON_LIBRARY})
endif()

# Callbacks have the parameters that the library gives them; a test need not use each.
target_compile_options(quern_test_framework INTERFACE -Wno-unused-parameter)

# With this level, Criterion prints a line for each skipped test, which ./run counts.
set(quern_test_environment
    CRITERION_VERBOSITY_LEVEL=1
    ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1:allocator_may_return_null=1
    UBSAN_OPTIONS=print_stacktrace=1
    TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1)

# If the kernel randomises many address bits, the thread sanitizer of older compilers cannot map its shadow memory.
# So tests start without randomisation, if the system permits it.
set(quern_test_launcher ${CMAKE_CROSSCOMPILING_EMULATOR})
if(QUERN_SANITIZE STREQUAL "thread")
  find_program(QUERN_SETARCH setarch)
  mark_as_advanced(QUERN_SETARCH)
  if(QUERN_SETARCH)
    execute_process(COMMAND ${QUERN_SETARCH} -R true RESULT_VARIABLE setarch_result OUTPUT_QUIET ERROR_QUIET)
    if(setarch_result EQUAL 0)
      set(quern_test_launcher ${QUERN_SETARCH} -R)
    endif()
  endif()
endif()
