#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_strict_headers.sh ROOT HEADER ...: all headers in one source, <quern/kit/NAME.h> included, cause no warning with
# the strictest usual options of each compiler and C++ library that is installed. gcc does not look for old-style casts in extern "C";
# clang does.
set -eu

root=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/quern"
ln -s "$root/kit" "$folder/quern/kit"
ln -s "$root/inspect/inspect.h" "$folder/quern/inspect.h"
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
    for standard in 17 20 23; do
        # Compilers that are older than a standard know it by a name of their own.
        options=-std=c++$standard
        "$compiler" "$options" -x c++ -fsyntax-only /dev/null 2>/dev/null || options=-std=c++2b
        for library in '' -stdlib=libc++; do
            # shellcheck disable=SC2086 # no option is none
            [ -z "$library" ] ||
                "$compiler" "$options" $library -x c++ -fsyntax-only -include string /dev/null 2>/dev/null || continue
            # shellcheck disable=SC2086
            accepts "$compiler" "$folder/headers.cpp" "$options" $library -Wold-style-cast -Wnon-virtual-dtor
        done
    done
    accepts "$compiler" "$folder/headers.cpp" -std=c++17 -Wold-style-cast -fno-exceptions -fno-rtti
    accepts "$compiler" "$folder/headers.cpp" -std=c++20 -Wold-style-cast -DQUERN_CPP_EXCEPTIONS
done
[ "$count" -gt 0 ] || { echo "skipped: there is no C++ compiler"; exit 77; }
