#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_build.sh KIND ROOT COMPILER SWARM FOLDER CMAKE: builds the library and the demo for another kind of platform
# in FOLDER. The final hash of the demo must equal that of SWARM, the demo of this build. FOLDER is kept, so that the
# next run compiles only changed files. KIND:
#
#     32bit      32-bit pointers
#     portable   with the portable fallbacks instead of what only this system has: waits by conditions, no affinity
#     musl       musl's C library, by its compiler driver musl-gcc; dlopen loads the shared library as well
#
# Exits with 77 ("skipped") if the compiler cannot build for the platform.
set -eu

kind=$1 root=$2 compiler=$3 swarm=$4 folder=$5 cmake=$6
flags=
case $kind in
32bit)
    flags='-m32 -msse2 -mfpmath=sse -Wno-psabi'
    libraries=/usr/i686-linux-gnu/lib
    if command -v i686-linux-gnu-gcc >/dev/null; then
        compiler=i686-linux-gnu-gcc
        flags="-msse2 -mfpmath=sse -Wno-psabi -Wl,--dynamic-linker=$libraries/ld-linux.so.2 -Wl,-rpath,$libraries"
    fi
    remedy="there is no i686-linux-gnu-gcc (Debian's package gcc-i686-linux-gnu), and $compiler does not know -m32"
    ;;
portable)
    flags=-DQUERN__PORTABLE=1
    remedy="$compiler does not work"
    ;;
musl)
    compiler=musl-gcc
    remedy="there is no musl-gcc (Debian's package musl-tools)"
    ;;
esac

probe=$(mktemp)
trap 'rm -f "$probe"' EXIT
# shellcheck disable=SC2086 # the flags are words
if ! printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' |
    "$compiler" $flags -x c - -o "$probe" 2>/dev/null || ! "$probe" >/dev/null; then
    echo "skipped: $remedy"
    exit 77
fi

targets=swarm
[ "$kind" != musl ] || targets='swarm quern_shared'
# shellcheck disable=SC2086 # the targets are words
if ! {
    "$cmake" -S "$root" -B "$folder" -DCMAKE_C_COMPILER="$(command -v "$compiler")" -DCMAKE_C_FLAGS="$flags" \
        -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 \
        -DQUERN_BUILD_TESTS=OFF -DQUERN_BUILD_BENCH=OFF -DQUERN_INSTALL=OFF &&
        "$cmake" --build "$folder" --target $targets --parallel "$(getconf _NPROCESSORS_ONLN)"
} >"$folder.log" 2>&1; then
    cat "$folder.log"
    exit 1
fi
if [ "$kind" = musl ]; then
    "$compiler" -I"$root/include" "$root/tests/platform/load_shared.c" -pthread -ldl -o "$folder/load_shared"
    "$folder/load_shared" "$folder/libquern.so"
fi

hash_of()
{
    "$1" --plain --no-baseline --entities 3000 --frames 60 --threads 2 --json | sed -n 's/^{"hash": "\([^"]*\)".*/\1/p'
}

here=$(hash_of "$swarm")
there=$(hash_of "$folder/examples/swarm")
if [ -z "$here" ] || [ "$here" != "$there" ]; then
    echo "the demo ends with hash '$there' on platform '$kind', but with '$here' in this build" >&2
    exit 1
fi
echo "the demo ends with hash $there"
