# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# Tests of the public headers, of rules for the sources, of built libraries, and of the models of the job system.

# ------------------------------------------------------------------------------------------- headers

# Every public header compiles on its own as C11 and, if there is a C++ compiler, as C++17.
include(CheckLanguage)
check_language(CXX)
if(CMAKE_CXX_COMPILER)
  enable_language(CXX)
  set(header_suffixes c cpp)
else()
  set(header_suffixes c)
endif()
set(quern_kit_headers
    include/quern/kit/angle.h include/quern/kit/background.h include/quern/kit/background.hpp include/quern/kit/grid.h include/quern/kit/grid.hpp include/quern/kit/json.h
    include/quern/kit/live.h include/quern/kit/live.hpp include/quern/kit/netplay.h include/quern/kit/random.h
    include/quern/kit/ranks.h include/quern/kit/ranks.hpp include/quern/kit/ranks_main.h
    include/quern/kit/states.h include/quern/kit/states.hpp include/quern/kit/transform.h include/quern/kit/transform.hpp)
if(TARGET quern_inspect)
  list(APPEND quern_kit_headers include/quern/inspect.h)
endif()
foreach(header IN LISTS quern_public_headers quern_kit_headers ITEMS include/quern/bench.h)
  string(REPLACE "include/" "" header ${header})
  foreach(suffix IN LISTS header_suffixes)
    if(suffix STREQUAL "c" AND header MATCHES "[.]hpp$")
      continue()
    endif()
    set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${header}.${suffix})
    file(CONFIGURE OUTPUT ${source} CONTENT "#include <${header}>\n#include <${header}>\n")
    list(APPEND header_sources ${source})
  endforeach()
endforeach()
set(quern_c_headers ${quern_public_headers} kit/angle.h kit/background.h kit/grid.h kit/json.h kit/live.h
                    kit/random.h kit/states.h kit/transform.h)
list(FILTER quern_c_headers EXCLUDE REGEX "[.]hpp$")
add_library(quern_headers OBJECT ${header_sources})
quern_configure_target(quern_headers)
set_target_properties(quern_headers PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
# QUERN_DEVELOPER turns the warnings into errors.
set(quern_cxx_warnings -Wall -Wextra -Wold-style-cast)
target_compile_options(quern_headers PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${quern_cxx_warnings}>")
target_include_directories(quern_headers PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/kit/include
                                                 ${PROJECT_BINARY_DIR}/inspect/include)

if(CMAKE_CXX_COMPILER)
  foreach(standard 17 20)
    add_executable(headers_cpp${standard} headers.cpp)
    quern_configure_target(headers_cpp${standard})
    set_target_properties(headers_cpp${standard} PROPERTIES CXX_STANDARD ${standard} CXX_EXTENSIONS OFF)
    target_compile_options(headers_cpp${standard} PRIVATE ${quern_cxx_warnings})
    target_link_libraries(headers_cpp${standard} PRIVATE quern_static)
    add_test(NAME headers_cpp${standard} COMMAND headers_cpp${standard})
  endforeach()
  add_executable(hello_cpp ${PROJECT_SOURCE_DIR}/examples/hello.cpp)
  quern_configure_target(hello_cpp)
  set_target_properties(hello_cpp PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
  target_link_libraries(hello_cpp PRIVATE quern_static)
  add_test(NAME hello_cpp COMMAND hello_cpp)
  set_tests_properties(hello_cpp PROPERTIES PASS_REGULAR_EXPRESSION "^after one second the last of 1000 is at 1000\n$")

  # The C++ interface: without exceptions and RTTI in C++17, with exceptions in C++20.
  foreach(standard 17 20)
    add_executable(quern_hpp_cpp${standard} quern_hpp.cpp)
    quern_configure_target(quern_hpp_cpp${standard})
    set_target_properties(quern_hpp_cpp${standard} PROPERTIES CXX_STANDARD ${standard} CXX_EXTENSIONS OFF)
    target_link_libraries(quern_hpp_cpp${standard} PRIVATE quern_static)
    add_test(NAME quern_hpp_cpp${standard} COMMAND quern_hpp_cpp${standard})
    set_tests_properties(quern_hpp_cpp${standard} PROPERTIES PASS_REGULAR_EXPRESSION "^[0-9]+ checks passed\n$")
  endforeach()
  add_test(NAME cpp_apps_end_with_the_message COMMAND quern_hpp_cpp17 fail)
  set_tests_properties(cpp_apps_end_with_the_message PROPERTIES PASS_REGULAR_EXPRESSION
                                                                "'move' is in phase 1.*; called by quern::app\nended\n$")
  add_test(NAME cpp_must_ends_with_the_message COMMAND quern_hpp_cpp17 must)
  set_tests_properties(cpp_must_ends_with_the_message PROPERTIES PASS_REGULAR_EXPRESSION
                                                                 "'world' is NULL; called by quern::must\nended\n$")
  # The other words of the interface, and the blocks of its page.
  foreach(standard 17 20)
    add_executable(cpp_words${standard} cpp/words.cpp)
    quern_configure_target(cpp_words${standard})
    set_target_properties(cpp_words${standard} PROPERTIES CXX_STANDARD ${standard} CXX_EXTENSIONS OFF)
    target_compile_options(cpp_words${standard} PRIVATE ${quern_cxx_warnings})
    target_link_libraries(cpp_words${standard} PRIVATE quern_static)
    add_test(NAME cpp_words${standard} COMMAND cpp_words${standard})
    set_tests_properties(cpp_words${standard} PROPERTIES PASS_REGULAR_EXPRESSION "^all words work\n$")
  endforeach()
  target_compile_options(cpp_words17 PRIVATE -fno-exceptions -fno-rtti)
  target_compile_definitions(cpp_words20 PRIVATE QUERN_CPP_EXCEPTIONS)
  # The headers that quern.hpp includes.
  foreach(name entities hooks kit lists loops objects random tasks)
    foreach(standard 17 20)
      set(test cpp_${name}${standard})
      add_executable(${test} cpp/${name}.cpp)
      quern_configure_target(${test})
      set_target_properties(${test} PROPERTIES CXX_STANDARD ${standard} CXX_EXTENSIONS OFF)
      target_compile_options(${test} PRIVATE ${quern_cxx_warnings} -Wpedantic -Wconversion -Wshadow)
      target_link_libraries(${test} PRIVATE quern_static)
      add_test(NAME ${test} COMMAND ${test})
      set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION "all ${name} work\n$")
    endforeach()
    target_compile_options(cpp_${name}17 PRIVATE -fno-exceptions -fno-rtti)
    target_compile_definitions(cpp_${name}20 PRIVATE QUERN_CPP_EXCEPTIONS)
  endforeach()
  foreach(standard 17 20)
    target_link_libraries(cpp_kit${standard} PRIVATE quern_background quern_grid quern_random quern_ranks quern_states quern_transform)
  endforeach()
  add_test(NAME cpp_grids_end_with_the_message COMMAND cpp_kit17 fail)
  set_tests_properties(cpp_grids_end_with_the_message
                       PROPERTIES PASS_REGULAR_EXPRESSION "asked to read resource 'flock' without declaring it.*ended\n$")
  # A compiler that may not assume what it assumes shows it only in optimised code.
  target_compile_options(cpp_loops17 PRIVATE -O3 -funroll-loops)
  add_test(NAME cpp_loops_end_with_the_message COMMAND cpp_loops17 fail)
  set_tests_properties(cpp_loops_end_with_the_message
                       PROPERTIES PASS_REGULAR_EXPRESSION
                                  "changed its structure.*; called by a loop over a quern::query\nended\n$")
  add_test(NAME cpp_replays_end_on_exceptions COMMAND cpp_objects20 throw)
  set_tests_properties(cpp_replays_end_on_exceptions PROPERTIES PASS_REGULAR_EXPRESSION "ended\n$")
  set(mistakes get set dead next moved liked none)
  set(messages "does not have component 'Number'.*called by quern::entity_ref::get" "not alive any more.*called by quern::app"
               "is not alive.*called by quern::entity_ref::get" "by which the loop goes on.*called by a loop over targets or sources"
               "by which the loop goes on.*called by a loop over targets or sources"
               "by which the loop goes on.*called by a loop over targets or sources"
               "called by quern::app")
  foreach(mistake message IN ZIP_LISTS mistakes messages)
    set(test cpp_entities_end_with_the_message_${mistake})
    add_test(NAME ${test} COMMAND cpp_entities17 ${mistake})
    set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION "${message}\nended\n$")
  endforeach()
  # The programs of the page by subject.
  foreach(subject queries entities resources events commands relations prefabs reactions history jobs grids)
    set(target cpp_subject_${subject})
    add_executable(${target} ${PROJECT_SOURCE_DIR}/examples/cpp/${subject}.cpp)
    quern_configure_target(${target})
    set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
    target_link_libraries(${target} PRIVATE quern_grid quern_static)
    set(page ${PROJECT_SOURCE_DIR}/docs/cpp/subjects.md)
    add_test(NAME ${target}_is_quoted
             COMMAND ${CMAKE_COMMAND} -DDOCUMENT=${page} -DSOURCE=${PROJECT_SOURCE_DIR}/examples/cpp/${subject}.cpp -P
                     ${CMAKE_CURRENT_SOURCE_DIR}/docs/quote.cmake)
    add_test(NAME ${target}_prints COMMAND ${CMAKE_COMMAND} -DDOCUMENT=${page} -DPROGRAM=$<TARGET_FILE:${target}> -P
                                           ${CMAKE_CURRENT_SOURCE_DIR}/docs/output.cmake)
    quern_guard_test(${target}_prints)
  endforeach()
  # The tutorial in C++ quotes its programs, which print what the chapters show.
  add_test(NAME tutorial_cpp_quotes_programs
           COMMAND ${CMAKE_COMMAND} -DDOCUMENT=${PROJECT_SOURCE_DIR}/docs/tutorial/cpp.md -DLANGUAGE=cpp
                   -DSOURCE=${PROJECT_SOURCE_DIR}/examples/tutorial/cpp -P ${CMAKE_CURRENT_SOURCE_DIR}/docs/quote_parts.cmake)
  foreach(chapter components commands prefabs events input threads profile rewind)
    set(target tutorial_cpp_${chapter})
    add_executable(${target} ${PROJECT_SOURCE_DIR}/examples/tutorial/cpp/${chapter}.cpp)
    quern_configure_target(${target})
    quern_fix_floats(${target})
    set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
    target_link_libraries(${target} PRIVATE quern_grid quern_random quern_static)
    if(chapter STREQUAL "profile")
      add_test(NAME ${target} COMMAND ${target})
      set_tests_properties(${target} PROPERTIES PASS_REGULAR_EXPRESSION "\nfollow +[0-9].*ship: Health.points = 9\n$")
    else()
      add_test(NAME ${target}_prints
               COMMAND ${CMAKE_COMMAND} -DDOCUMENT=${PROJECT_SOURCE_DIR}/docs/tutorial/${chapter}.md
                       -DPROGRAM=$<TARGET_FILE:${target}> -P ${CMAKE_CURRENT_SOURCE_DIR}/docs/output.cmake)
      quern_guard_test(${target}_prints)
    endif()
  endforeach()
  # A whole game. Its hash is the same for all compilers and numbers of threads.
  add_executable(tutorial_cpp_drift ${PROJECT_SOURCE_DIR}/examples/tutorial/cpp/drift.cpp)
  quern_configure_target(tutorial_cpp_drift)
  quern_fix_floats(tutorial_cpp_drift)
  set_target_properties(tutorial_cpp_drift PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
  target_compile_options(tutorial_cpp_drift PRIVATE ${quern_cxx_warnings} -Wpedantic -Wconversion -Wshadow)
  target_link_libraries(tutorial_cpp_drift PRIVATE quern_grid quern_random quern_static)
  add_test(NAME tutorial_cpp_drift COMMAND tutorial_cpp_drift --watch 300)
  set_tests_properties(
    tutorial_cpp_drift PROPERTIES PASS_REGULAR_EXPRESSION
                                  "score 19, 11 rocks left\n1, 2 and 3 threads: hash 42ffe971fc37a5b3\n$")
  # The idioms of docs/coming-from-entt.md and docs/coming-from-flecs.md.
  add_executable(cpp_idioms ${PROJECT_SOURCE_DIR}/examples/cpp/idioms.cpp)
  quern_configure_target(cpp_idioms)
  set_target_properties(cpp_idioms PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
  target_link_libraries(cpp_idioms PRIVATE quern_static)
  add_test(NAME cpp_idioms COMMAND cpp_idioms)
  set_tests_properties(cpp_idioms PROPERTIES PASS_REGULAR_EXPRESSION "1 likes the horse; a copy has 1 child\n$")
  quern_guard_test(cpp_idioms)
  # A larger program without a call of C. Its hash is that of examples/market.c, for all compilers.
  add_executable(cpp_market ${PROJECT_SOURCE_DIR}/examples/cpp/market.cpp)
  quern_configure_target(cpp_market)
  set_target_properties(cpp_market PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF)
  target_compile_options(cpp_market PRIVATE ${quern_cxx_warnings} -Wpedantic -Wconversion -Wshadow)
  target_link_libraries(cpp_market PRIVATE quern_static)
  add_test(NAME cpp_market COMMAND cpp_market 30)
  set_tests_properties(cpp_market PROPERTIES PASS_REGULAR_EXPRESSION "with and without a save: hash e392fa27931686b2\n$")
  # Types in two source files: of one program, and of a program and a shared library with hidden symbols.
  add_executable(cpp_files cpp/modules_main.cpp cpp/modules_other.cpp)
  add_library(cpp_module SHARED cpp/modules_other.cpp)
  add_executable(cpp_modules cpp/modules_main.cpp)
  foreach(target cpp_files cpp_module cpp_modules)
    quern_configure_target(${target})
    set_target_properties(${target} PROPERTIES CXX_STANDARD 17 CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
                                               VISIBILITY_INLINES_HIDDEN ON)
    target_compile_options(${target} PRIVATE ${quern_cxx_warnings})
    target_link_libraries(${target} PRIVATE quern_shared)
  endforeach()
  target_link_libraries(cpp_modules PRIVATE cpp_module)
  add_test(NAME cpp_types_in_files COMMAND cpp_files)
  add_test(NAME cpp_types_in_modules COMMAND cpp_modules shared)
  target_compile_options(quern_hpp_cpp17 PRIVATE -fno-exceptions -fno-rtti)
  target_compile_definitions(quern_hpp_cpp20 PRIVATE QUERN_CPP_EXCEPTIONS)
endif()

# ------------------------------------------------------------------------------------------- sources

# The tests below check sources, documents, or builds of their own. They run no code of a build with sanitizers.
if(QUERN_SANITIZE)
  return()
endif()

add_test(NAME headers_msvc COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_msvc_headers.sh ${PROJECT_SOURCE_DIR}
                                   ${quern_c_headers})
set_tests_properties(headers_msvc PROPERTIES SKIP_RETURN_CODE 77)
list(TRANSFORM quern_public_headers REPLACE "^include/quern/" "" OUTPUT_VARIABLE quern_strict_headers)
add_test(NAME headers_strict
         COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_strict_headers.sh ${PROJECT_SOURCE_DIR} ${quern_strict_headers}
                 inspect.h kit/angle.h kit/background.h kit/background.hpp kit/grid.h kit/grid.hpp kit/json.h kit/live.h kit/live.hpp kit/netplay.h
                 kit/random.h kit/states.h kit/states.hpp kit/transform.h kit/transform.hpp)
set_tests_properties(headers_strict PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)

if(CMAKE_CXX_COMPILER)
  # Names of types: with each compiler and standard library at hand.
  set(compilers ${CMAKE_CXX_COMPILER})
  foreach(name g++ clang++ clang++-14 clang++-19 x86_64-w64-mingw32-g++ i686-linux-gnu-g++)
    find_program(QUERN_COMPILER_${name} ${name})
    mark_as_advanced(QUERN_COMPILER_${name})
    if(QUERN_COMPILER_${name})
      list(APPEND compilers ${QUERN_COMPILER_${name}})
    endif()
  endforeach()
  set(known "")
  foreach(compiler IN LISTS compilers)
    get_filename_component(name ${compiler} NAME)
    get_filename_component(file ${compiler} REALPATH)
    if(file IN_LIST known)
      continue()
    endif()
    list(APPEND known ${file})
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/mistakes/${name})
    add_test(NAME cpp_mistakes_${name}
             COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DCXX_COMPILER=${compiler}
                     -DBUILD=${CMAKE_CURRENT_BINARY_DIR}/mistakes/${name} -P
                     ${CMAKE_CURRENT_SOURCE_DIR}/docs/mistakes.cmake)
    foreach(library libstdc++ libc++)
      set(options -std=c++17 -fsyntax-only -Wall -Wextra -Wconversion -Wshadow -Wold-style-cast -Werror)
      if(library STREQUAL "libc++")
        execute_process(
          COMMAND ${compiler} -stdlib=libc++ -x c++ -fsyntax-only -include string /dev/null
          RESULT_VARIABLE result
          OUTPUT_QUIET ERROR_QUIET)
        if(NOT result EQUAL 0)
          continue()
        endif()
        list(APPEND options -stdlib=libc++)
      endif()
      add_test(NAME cpp_type_names_${name}_${library}
               COMMAND ${compiler} ${options} -I${PROJECT_SOURCE_DIR}/include
                       ${CMAKE_CURRENT_SOURCE_DIR}/cpp/type_names.cpp)
    endforeach()
  endforeach()
endif()

add_test(NAME types_are_refused
         COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DC_COMPILER=${CMAKE_C_COMPILER}
                 -DCXX_COMPILER=${CMAKE_CXX_COMPILER} -DBUILD=${CMAKE_CURRENT_BINARY_DIR} -P
                 ${CMAKE_CURRENT_SOURCE_DIR}/docs/refused.cmake)

add_test(NAME loops_are_vectorised
         COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR} -DCOMPILER=${CMAKE_C_COMPILER}
                 -DCOMPILER_ID=${CMAKE_C_COMPILER_ID} -DBUILD=${CMAKE_CURRENT_BINARY_DIR} -P
                 ${CMAKE_CURRENT_SOURCE_DIR}/docs/loops.cmake)

# Rules for the sources: the rooms that a room may include, the functions that may change structure, comments at atomic
# operations, and unique names. Each script that checks a rule has a test of its own.
foreach(name check_includes test_check_includes check_changes test_check_changes check_atomics test_check_atomics
             check_names test_check_names check_systems test_check_systems)
  add_test(NAME layering_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/layering/${name}.sh)
endforeach()
add_test(NAME layering_check_symbols COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/layering/check_symbols.sh
                                             ${PROJECT_BINARY_DIR} ${CMAKE_NM} ${PROJECT_SOURCE_DIR})
add_test(NAME layering_test_check_symbols COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/layering/test_check_symbols.sh
                                                  ${CMAKE_C_COMPILER})

# Names in pages exist, pictures agree with their sources, numbers of tokens are those that the scripts count, examples
# print what their table shows, error texts follow the rules, and the mutation script finds each kind of mutant.
find_program(QUERN_PYTHON python3)
mark_as_advanced(QUERN_PYTHON)
if(QUERN_PYTHON)
  foreach(name test_bench_tables test_counts test_cpp_words test_figures test_generate_bindings test_pages test_pictures test_site)
    add_test(NAME ${name} COMMAND ${QUERN_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/docs/${name}.py)
  endforeach()
  if(TARGET swarm)
    add_test(NAME examples_print_lines COMMAND ${QUERN_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/docs/test_printed.py
                                               $<TARGET_FILE_DIR:swarm>)
    quern_guard_test(examples_print_lines)
  endif()
  foreach(name check_messages test_check_messages check_mentions test_check_mentions)
    add_test(NAME layering_${name} COMMAND ${QUERN_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/layering/${name}.py)
  endforeach()
  add_test(NAME one_file COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_one_file.sh ${PROJECT_SOURCE_DIR}
                                 ${CMAKE_C_COMPILER} "${CMAKE_CXX_COMPILER}")
  set_tests_properties(one_file PROPERTIES TIMEOUT 600)
  quern_label_optimised(one_file quern_static)
  add_test(NAME sources_msvc COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_msvc_sources.sh ${PROJECT_SOURCE_DIR}
                                     ${PROJECT_BINARY_DIR}/kit/include)
  set_tests_properties(sources_msvc PROPERTIES SKIP_RETURN_CODE 77)
  add_test(NAME test_mutate COMMAND ${QUERN_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/mutation/test_mutate.py)
endif()

add_test(NAME run_counts_tests COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_run.sh ${PROJECT_SOURCE_DIR})
add_test(NAME run_sets_up COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_run_setup.sh ${PROJECT_SOURCE_DIR})

# -------------------------------------------------------------------------------------------- builds

# Large static objects would cost memory in every program that links the library.
find_program(QUERN_NM nm)
mark_as_advanced(QUERN_NM)
if(QUERN_NM)
  add_test(NAME static_data COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_static_data.sh $<TARGET_FILE:quern_static>)
  quern_label_optimised(static_data quern_static)
endif()

# Builds the library and the demo for other platforms, if the compiler supports them. (Preset i686 runs all tests with
# 32-bit pointers.) Each test compiles the whole library, so only the build without checks has them.
if(TARGET swarm AND CMAKE_SIZEOF_VOID_P EQUAL 8 AND NOT QUERN_CHECKS)
  foreach(kind 32bit portable musl)
    add_test(NAME library_${kind}
             COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/platform/test_build.sh ${kind} ${PROJECT_SOURCE_DIR}
                     ${CMAKE_C_COMPILER} $<TARGET_FILE:swarm> ${CMAKE_CURRENT_BINARY_DIR}/library_${kind})
    set_tests_properties(library_${kind} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800)
    quern_label_optimised(library_${kind} swarm)
  endforeach()
  add_executable(load_shared platform/load_shared.c)
  quern_configure_target(load_shared)
  target_include_directories(load_shared PRIVATE ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(load_shared PRIVATE ${CMAKE_DL_LIBS})
  add_test(NAME load_shared COMMAND load_shared $<TARGET_FILE:quern_shared>)
  quern_label_optimised(load_shared load_shared quern_shared)
endif()

# What debuggers show of a program. Only a build for debugging has the information that their scripts read.
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_executable(debugged debuggers/debugged.c)
  quern_configure_target(debugged)
  target_link_libraries(debugged PRIVATE quern_static)
  foreach(debugger gdb lldb)
    add_test(NAME scripts_of_${debugger} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/debuggers/test_debugger.sh ${debugger}
                                                 $<TARGET_FILE:debugged> ${PROJECT_SOURCE_DIR}/scripts)
    set_tests_properties(scripts_of_${debugger} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
  endforeach()
endif()

if(QUERN_INSTALL)
  add_test(NAME install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install/test_install.sh ${CMAKE_COMMAND}
                                ${CMAKE_C_COMPILER} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  quern_label_optimised(install quern_static quern_shared quern_grid quern_json quern_transform)
  if(TARGET quern_bench_harness)
    add_dependencies(quern_optimised_tests quern_bench_harness)
  endif()
endif()

# -------------------------------------------------------------------------------------------- models

# The models are checked by a model checker, which is optional. All builds without sanitizers compile the models, so that a
# change of the sources that they include cannot break them unnoticed.
file(GLOB quern_model_sources CONFIGURE_DEPENDS models/*.c)
add_library(quern_models OBJECT ${quern_model_sources})
quern_configure_target(quern_models)
# Optimised, the models would cause warnings about calls that no model makes. A model uses only some of the functions
# that it includes.
target_compile_options(quern_models PRIVATE -O0 -Wno-unused-function)
target_include_directories(quern_models PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
find_program(QUERN_GENMC genmc)
mark_as_advanced(QUERN_GENMC)
if(QUERN_GENMC)
  add_test(NAME models COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/models/run_models.sh quick)
  set_tests_properties(models PROPERTIES TIMEOUT 1800)
endif()
