#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_strict_headers.sh ROOT HEADER ...: all headers in one source, <quern/kit/NAME.h> included, cause no warning with
# the strictest usual options of each compiler that is installed. gcc does not look for old-style casts in extern "C";
# clang does.
set -eu

root=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/quern"
ln -s "$root/kit" "$folder/quern/kit"
for header in "$@"; do printf '#include <quern/%s>\n' "$header"; done >"$folder/headers.cpp"
grep -v 'hpp>' "$folder/headers.cpp" >"$folder/headers.c"

# accepts COMPILER SOURCE OPTION ...
accepts()
{
    compiler=$1 source=$2
    shift 2
    "$compiler" "$@" -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror -fsyntax-only -I"$root/include" \
        -I"$folder" "$source" || { echo "$compiler $* warns of a header"; exit 1; }
}

for compiler in gcc clang gcc-11 gcc-12 gcc-13 gcc-14 clang-14 clang-16 clang-19; do
    ! command -v "$compiler" >/dev/null || accepts "$compiler" "$folder/headers.c" -std=c11
done
count=0
for compiler in g++ clang++ g++-11 g++-12 g++-13 g++-14 clang++-14 clang++-16 clang++-19; do
    command -v "$compiler" >/dev/null || continue
    count=$((count + 1))
    for standard in 17 20; do
        accepts "$compiler" "$folder/headers.cpp" -std=c++$standard -Wold-style-cast -Wnon-virtual-dtor
    done
done
[ "$count" -gt 0 ] || { echo "skipped: there is no C++ compiler"; exit 77; }
