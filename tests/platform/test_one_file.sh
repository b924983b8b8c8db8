#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_one_file.sh ROOT COMPILER CXX_COMPILER [FLAG ...]: scripts/amalgamate.py makes two files. They compile as C11
# with the flags (by default -O0) without a warning, the first example runs with them, and C++17 and C++20 accept the
# header without a warning (if CXX_COMPILER is not empty). Compilers of other languages are told what quern.c is.
set -eu

root=$1 compiler=$2 cxx=$3
shift 3
[ $# -gt 0 ] || set -- -O0
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -B "$root/scripts/amalgamate.py" "$folder"
sed 's|<quern/[a-z]*\.h>|"quern.h"|' "$root/examples/hello.c" >"$folder/hello.c"
# With link-time optimisation, gcc inlines calls of the library into the program and cannot see that a call that fails
# does not return QUERN_OK: it says that variables of the program may be used uninitialised.
"$compiler" -std=c11 -Wall -Wextra -Wno-unused-function -Werror "$@" -pthread -c "$folder/quern.c" -o "$folder/quern.o"
"$compiler" -std=c11 -Wall -Wextra -Wno-maybe-uninitialized -Werror "$@" -pthread "$folder/hello.c" "$folder/quern.o" \
    -o "$folder/hello" -lm
"$folder/hello" | grep -q 'is at 1000$' || { echo "hello does not run with quern.c"; exit 1; }
# refuses COMPILER ...: the compiler's first error is that of quern.c.
refuses()
{
    "$@" -fsyntax-only "$folder/quern.c" 2>&1 | grep -m 1 'error' | grep -q 'quern.c is C11: compile' ||
        { echo "quern.c does not say that it is C11: $*"; exit 1; }
}
refuses "$compiler" -std=c99
[ -n "$cxx" ] || exit 0
refuses "$cxx" -std=c++17 -x c++
printf '#include "quern.h"\nint main() { return quern_has_checks() ? 0 : 1; }\n' >"$folder/header.cpp"
for standard in 17 20; do
    "$cxx" -std=c++$standard -Wall -Wextra -Wold-style-cast -Werror -fsyntax-only "$folder/header.cpp"
done
