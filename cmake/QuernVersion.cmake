# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# quern_read_version(RESULT HEADER): sets RESULT to the version, which only the public header defines.
function(quern_read_version out_version header)
  foreach(part MAJOR MINOR PATCH)
    file(STRINGS "${header}" line REGEX "^#define QUERN_VERSION_${part} ")
    string(REGEX MATCH "[0-9]+" number "${line}")
    list(APPEND numbers ${number})
  endforeach()
  list(JOIN numbers "." version)
  set(${out_version} ${version} PARENT_SCOPE)
endfunction()
