# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DSOURCE=folder -DOUTPUT=header -P QuernCommit.cmake
#
# Writes a header with the commit that the source folder is at, and a plus sign when files differ from it;
# "unknown" without git. A header that would not change is left alone, so nothing is compiled anew for it.

set(commit unknown)
find_program(git git)
if(git)
  execute_process(
    COMMAND ${git} -C ${SOURCE} describe --always --abbrev=12 --dirty=+ --exclude=*
    OUTPUT_VARIABLE described
    OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE result
    ERROR_QUIET)
  if(result EQUAL 0)
    set(commit ${described})
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define QUERN_BENCH_COMMIT \"${commit}\"\n")
