# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DDOCUMENT=... -DROOT=... -P functions.cmake: fails unless the document has a table with rows
# "| `function` | `file` |", and each function in it is in its file.
cmake_minimum_required(VERSION 3.25)
file(READ "${DOCUMENT}" document)
string(REGEX MATCHALL "[|] `[a-z0-9_]+` [|] `[a-z0-9_/]+[.][ch]` [|]" rows "${document}")
if(NOT rows)
  message(FATAL_ERROR "${DOCUMENT} names no function")
endif()
foreach(row IN LISTS rows)
  string(REGEX MATCH "`([a-z0-9_]+)` [|] `([a-z0-9_/.]+)`" matched "${row}")
  set(function "${CMAKE_MATCH_1}")
  set(path "${CMAKE_MATCH_2}")
  if(NOT EXISTS "${ROOT}/${path}")
    message(FATAL_ERROR "${DOCUMENT}: there is no ${path}")
  endif()
  file(READ "${ROOT}/${path}" source)
  string(FIND "${source}" "${function}(" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${DOCUMENT}: ${path} has no ${function}")
  endif()
endforeach()
