# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors

# cmake -DINPUT=FILE -DOUTPUT=FILE.c -DNAME=ARRAY -DHEADER=HEADER -P QuernEmbed.cmake
#
# Writes a file as a C array NAME, with its size in NAME_bytes.

file(READ "${INPUT}" digits HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${digits}")
string(REGEX REPLACE "((0x..,){24})" "\\1\n" bytes "${bytes}")
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"\n\nconst unsigned char ${NAME}[] = {\n${bytes}};\n"
                       "const size_t ${NAME}_bytes = sizeof ${NAME};\n")
