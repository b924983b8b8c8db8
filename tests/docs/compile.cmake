# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# compile(FILE CODE RESULT OUTPUT COMMAND...): writes the code to a file, and compiles it by the command with the public
# headers. RESULT and OUTPUT are variables of the caller: the exit status, and the messages of the compiler.
function(compile file code out_result out_output)
  file(WRITE "${file}" "${code}\n")
  execute_process(
    COMMAND ${ARGN} -I${ROOT}/include ${file}
    RESULT_VARIABLE result
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  set(${out_result} ${result} PARENT_SCOPE)
  set(${out_output} "${output}" PARENT_SCOPE)
endfunction()
