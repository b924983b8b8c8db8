#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_32bit.sh ROOT COMPILER SWARM SOURCE ...: compiles the library, the kit's grid and the demo with 32-bit
# pointers, and compares the hash that the demo ends with to that of SWARM, the demo with 64-bit pointers. Exits
# with 77, for "skipped", when the compiler cannot link with -m32.
set -eu

root=$1 compiler=$2 swarm=$3
shift 3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
flags='-m32 -msse2 -mfpmath=sse -O1 -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -Wno-psabi'

# shellcheck disable=SC2086 # the flags are words
if ! printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' |
    "$compiler" $flags -x c - -o "$folder/probe" 2>/dev/null || ! "$folder/probe" >/dev/null; then
    echo "skipped: $compiler cannot build for 32 bits with -m32 (Debian's package gcc-multilib)"
    exit 77
fi

cd "$root"
mkdir -p "$folder/include/quern/kit"
cp kit/grid.h "$folder/include/quern/kit"
printf '%s\n' "$@" kit/grid*.c examples/swarm/*.c |
    xargs -P "$(getconf _NPROCESSORS_ONLN)" -I '{}' sh -c "
        $compiler $flags -pthread -I. -Iinclude -I$folder/include -c {} -o $folder/\$(echo {} | tr / _).o"
"$compiler" -m32 -pthread "$folder"/*.o -lm -o "$folder/swarm"

# hash PROGRAM: what the demo's world comes to
hash_of()
{
    "$1" --plain --no-baseline --entities 3000 --frames 60 --threads 2 --json | sed -n 's/^{"hash": "\([^"]*\)".*/\1/p'
}

wide=$(hash_of "$swarm")
narrow=$(hash_of "$folder/swarm")
if [ -z "$wide" ] || [ "$wide" != "$narrow" ]; then
    echo "the demo ends with hash '$narrow' with 32-bit pointers, and with '$wide' with 64-bit pointers" >&2
    exit 1
fi
echo "the demo ends with hash $narrow"
