# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# quern_list_symbols(RESULT HEADER ...): sets RESULT to the sorted names of the functions that the headers declare with
# QUERN_API. The shared library exports them and nothing else.
function(quern_list_symbols result)
  foreach(header IN LISTS ARGN)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${header})
    file(READ ${header} text)
    string(REGEX MATCHALL "QUERN_API [^;({]*[ *]quern_[a-z0-9_]+\\(" declarations "${text}")
    foreach(declaration IN LISTS declarations)
      string(REGEX REPLACE ".*[ *](quern_[a-z0-9_]+)\\($" "\\1" name "${declaration}")
      list(APPEND names ${name})
    endforeach()
  endforeach()
  list(SORT names)
  set(${result} ${names} PARENT_SCOPE)
endfunction()
