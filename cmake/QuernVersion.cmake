# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# The version stands in one place, the public header.
function(quern_read_version out_version header)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS "${header}" line REGEX "^#define QUERN_VERSION_${part} ")
    string(REGEX MATCH "[0-9]+" number "${line}")
    list(APPEND numbers ${number})
  endforeach()
  list(JOIN numbers "." version)
  set(${out_version} ${version} PARENT_SCOPE)
endfunction()
