# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DDOCUMENT=... -DSOURCE=... -P quote.cmake: fails unless the document quotes the whole source file
# word for word, without its licence lines.
cmake_minimum_required(VERSION 3.25)
get_filename_component(language "${SOURCE}" LAST_EXT)
string(SUBSTRING "${language}" 1 -1 language)
file(READ "${DOCUMENT}" document)
file(READ "${SOURCE}" source)
string(REGEX REPLACE "^/\\* SPDX[^\n]*\n[^\n]*\n" "" source "${source}")
string(FIND "${document}" "```${language}\n${source}```\n" position)
if(position EQUAL -1)
  message(FATAL_ERROR "${DOCUMENT} does not quote ${SOURCE} as it is now")
endif()
