#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_one_file.sh ROOT COMPILER CXX_COMPILER: scripts/amalgamate.py makes two files. They compile as C11 without a
# warning, the first example runs with them, and C++17 and C++20 accept the header (if CXX_COMPILER is not empty).
set -eu

root=$1 compiler=$2 cxx=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -B "$root/scripts/amalgamate.py" "$folder"
sed 's|<quern/[a-z]*\.h>|"quern.h"|' "$root/examples/hello.c" >"$folder/hello.c"
"$compiler" -std=c11 -Wall -Wextra -Wno-unused-function -Werror -O0 -pthread "$folder/hello.c" "$folder/quern.c" -o "$folder/hello" -lm
"$folder/hello" | grep -q 'is at 1000$' || { echo "hello does not run with quern.c"; exit 1; }
[ -n "$cxx" ] || exit 0
printf '#include "quern.h"\nint main() { return quern_has_checks() ? 0 : 1; }\n' >"$folder/header.cpp"
for standard in 17 20; do
    "$cxx" -std=c++$standard -Wall -Wextra -Werror -fsyntax-only "$folder/header.cpp"
done
