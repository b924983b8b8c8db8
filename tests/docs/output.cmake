# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DDOCUMENT=... -DPROGRAM=... -P output.cmake: fails unless the document quotes the whole output of
# the program word for word.
execute_process(COMMAND "${PROGRAM}" OUTPUT_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} failed: ${result}")
endif()
file(READ "${DOCUMENT}" document)
string(FIND "${document}" "```text\n${output}```\n" position)
if(position EQUAL -1)
  message(FATAL_ERROR "${DOCUMENT} does not quote the output of ${PROGRAM}, which is now:\n${output}")
endif()
