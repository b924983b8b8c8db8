#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_msvc_sources.sh ROOT KIT_INCLUDE: clang accepts the library in one file, and the kit, as C11 for Windows with
# Microsoft's ABI. It does not say that it is GNU's or clang's, so core/platform/compiler.h chooses what it has for MSVC.
# Stubs replace the headers of Microsoft's SDK. Exits with 77 ("skipped") without clang.
set -eu

root=$1 kit_include=$2
command -v clang >/dev/null || { echo "skipped: there is no clang"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -B "$root/scripts/amalgamate.py" "$folder"
clang --target=x86_64-pc-windows-msvc -U__clang__ -fsyntax-only -ffreestanding -std=c11 -Wall -Wextra -Wpedantic -Werror \
    -Wno-unused-function -Wno-language-extension-token -isystem "$root/tests/platform/msvc_stub" -I"$folder" -I"$root" \
    -I"$root/include" -I"$kit_include" "$folder/quern.c" "$root"/kit/*.c
