# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DPAGE=page.html -DSTYLE=... -DCODE=... -DCHARTS=... -DOUTPUT=page_data.c -P QuernPage.cmake
#
# Assembles the HTML page of the benchmark's report and writes it as two C arrays: the text before the results, and the
# text after them.

foreach(part STYLE CODE CHARTS PAGE)
  file(READ "${${part}}" ${part}_text)
endforeach()

# The source map that the comment names is not part of the page. Without the comment, browsers do not request it.
string(REGEX REPLACE "\n//# sourceMappingURL=[^\n]*" "" CHARTS_text "${CHARTS_text}")
foreach(pair "style STYLE" "charts CHARTS" "page CODE")
  separate_arguments(pair)
  list(GET pair 0 mark)
  list(GET pair 1 part)
  string(FIND "${PAGE_text}" "@${mark}@" position)
  if(position EQUAL -1)
    message(FATAL_ERROR "${PAGE} has no mark @${mark}@ for the ${part} text; add it")
  endif()
  string(SUBSTRING "${PAGE_text}" 0 ${position} before)
  string(LENGTH "@${mark}@" length)
  math(EXPR position "${position} + ${length}")
  string(SUBSTRING "${PAGE_text}" ${position} -1 after)
  string(CONCAT PAGE_text "${before}" "${${part}_text}" "${after}")
endforeach()

string(FIND "${PAGE_text}" "@data@" position)
if(position EQUAL -1)
  message(FATAL_ERROR "${PAGE} has no mark @data@ for the results; add it")
endif()
string(SUBSTRING "${PAGE_text}" 0 ${position} head)
math(EXPR position "${position} + 6")
string(SUBSTRING "${PAGE_text}" ${position} -1 tail)

# The text is written to a file and read back, because CMake converts bytes to digits only when it reads a file.
set(source "#include \"bench/harness/json.h\"\n")
foreach(part head tail)
  file(WRITE "${OUTPUT}.${part}" "${${part}}")
  file(READ "${OUTPUT}.${part}" digits HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${digits}")
  string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
  string(APPEND source "\nconst unsigned char quern__bench_page_${part}[] = {\n${bytes}};\n"
                       "const unsigned long quern__bench_page_${part}_bytes = sizeof quern__bench_page_${part};\n")
  file(REMOVE "${OUTPUT}.${part}")
endforeach()
file(WRITE "${OUTPUT}" "${source}")
