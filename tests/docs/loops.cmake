# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DROOT=... -DCOMPILER=... -DCOMPILER_ID=... -DBUILD=... -P loops.cmake: fails if a loop in an example or a
# page reads a view's count in its condition, or if the compiler does not vectorise the loop at the top of query.h
# over plain uint32_t. Such a loop might write the count itself, so the compiler would have to read the count again in
# each iteration.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/compile.cmake)

file(GLOB_RECURSE shown "${ROOT}/examples/*.[ch]" "${ROOT}/bench/*.[ch]" "${ROOT}/docs/*.md" "${ROOT}/README.md"
     "${ROOT}/include/quern/*.h")
list(FILTER shown EXCLUDE REGEX "/third_party/")
set(count 0)
foreach(file IN LISTS shown)
  file(READ "${file}" text)
  if(text MATCHES "(view->|view[.])count;[^\n]*\\+\\+")
    message(FATAL_ERROR "${file} reads ${CMAKE_MATCH_1}count in the condition of a loop: copy it before the loop")
  endif()
  math(EXPR count "${count} + 1")
endforeach()
if(count LESS 40)
  message(FATAL_ERROR "only ${count} files were found below ${ROOT}")
endif()

if(COMPILER_ID STREQUAL "GNU")
  set(report -fopt-info-vec-optimized)
elseif(COMPILER_ID STREQUAL "Clang")
  set(report -Rpass=loop-vectorize)
else()
  message("skipped: it is unknown how ${COMPILER_ID} reports vectorised loops")
  return()
endif()

file(READ "${ROOT}/include/quern/query.h" header)
if(NOT header MATCHES "\n( [*] +quern_query_iterator it = [^}]*\n [*] +})")
  message(FATAL_ERROR "query.h shows no loop at its top")
endif()
string(REGEX REPLACE "(^|\n) [*] " "\n" loop "${CMAKE_MATCH_1}")
string(REGEX REPLACE "(for [^\n]*)" "\n#line 1000\n\\1" loop "${loop}")

# The loop as it is, with QUERN_COLUMN, and with the calls for generic code.
function(expect_vectorised name loop)
  string(
    CONCAT code "#include <quern/quern.h>\ntypedef struct Position { uint32_t x; } Position;\n"
           "typedef struct Velocity { uint32_t x; } Velocity;\n"
           "void loop(quern_query *query);\nvoid loop(quern_query *query)\n{${loop}\n}")
  compile(${BUILD}/loops_${name}.c "${code}" result output ${COMPILER} -std=c11 -O3 ${report} -c -o
          ${BUILD}/loops_${name}.o)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "the loop at the top of query.h (${name}) does not compile:\n${output}")
  endif()
  if(NOT output MATCHES "loops_${name}.c:100[0-9]:[^\n]*vectorized")
    message(FATAL_ERROR "${COMPILER_ID} does not vectorise the loop of query.h (${name}):\n${output}")
  endif()
endfunction()

if(NOT loop MATCHES "QUERN_COLUMN.*QUERN_COLUMN")
  message(FATAL_ERROR "the loop at the top of query.h does not use QUERN_COLUMN")
endif()
expect_vectorised(typed "${loop}")
string(REGEX REPLACE "QUERN_COLUMN(\\([^,]*, [0-9]), const [A-Za-z]*" "quern_view_read\\1" loop "${loop}")
string(REGEX REPLACE "QUERN_COLUMN(\\([^,]*, [0-9]), [A-Za-z]*" "quern_view_write\\1" loop "${loop}")
expect_vectorised(generic "${loop}")
