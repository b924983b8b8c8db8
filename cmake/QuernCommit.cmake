# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DSOURCE=folder -DOUTPUT=header -P QuernCommit.cmake
#
# Writes a header with the commit of the source folder, followed by a plus sign if files differ from the commit. Without
# git the commit is "unknown". A header with the same text is not written again, so nothing is recompiled.

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
