#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_msvc_headers.sh ROOT HEADER ...: clang, as a compiler for Windows with Microsoft's ABI, accepts each header as C11
# without extensions: no attribute, builtin or type of GNU, no enumerator that does not fit an int. Stubs replace the
# headers of Microsoft's SDK. Exits with 77 ("skipped") without clang.
set -eu

root=$1
shift
command -v clang >/dev/null || { echo "skipped: there is no clang"; exit 77; }
for header in "$@"; do
    printf '#include <%s>\n' "${header#include/}" |
        clang --target=x86_64-pc-windows-msvc -fsyntax-only -ffreestanding -std=c11 -Wall -Wextra -Wpedantic -Werror \
            -isystem "$root/tests/platform/msvc_stub" -I"$root/include" -I"$root" -x c -
done
