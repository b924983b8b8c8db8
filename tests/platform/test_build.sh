#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_build.sh KIND ROOT COMPILER SWARM SOURCE ...: compiles the library, the kit's grid and the demo for another
# kind of platform, and compares the hash that the demo ends with to that of SWARM, the demo of this build. KIND:
#
#     32bit      32-bit pointers
#     portable   without the parts that need Linux's headers: waits by pthreads, no hardware counters
#     musl       musl's C library, by its compiler driver musl-gcc; dlopen loads the shared library as well
#
# Exits with 77, for "skipped", when the compiler cannot build for the platform.
set -eu

kind=$1 root=$2 compiler=$3 swarm=$4
shift 4
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
flags='-O1 -fPIC -std=c11 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -Wno-psabi'
case $kind in
32bit)
    flags="$flags -m32 -msse2 -mfpmath=sse"
    remedy="$compiler cannot build for 32 bits with -m32 (Debian's package gcc-multilib)"
    ;;
portable)
    flags="$flags -DQUERN__NO_FUTEX -DQUERN__NO_PERF_EVENT"
    remedy="$compiler does not work"
    ;;
musl)
    compiler=musl-gcc
    remedy="there is no musl-gcc (Debian's package musl-tools)"
    ;;
esac

# shellcheck disable=SC2086 # the flags are words
if ! printf '#include <stdio.h>\nint main(void) { return puts("") < 0; }\n' |
    "$compiler" $flags -x c - -o "$folder/probe" 2>/dev/null || ! "$folder/probe" >/dev/null; then
    echo "skipped: $remedy"
    exit 77
fi

cd "$root"
mkdir -p "$folder/include/quern/kit" "$folder/library" "$folder/demo"
cp kit/grid.h "$folder/include/quern/kit"

# compile FOLDER SOURCE ...
compile()
{
    into=$folder/$1
    shift
    printf '%s\n' "$@" | xargs -P "$(getconf _NPROCESSORS_ONLN)" -I '{}' sh -c "
        $compiler $flags -pthread -I. -Iinclude -I$folder/include -c {} -o $into/\$(echo {} | tr / _).o"
}
compile library "$@"
compile demo kit/grid*.c examples/swarm/*.c
# shellcheck disable=SC2086
"$compiler" $flags -pthread "$folder"/library/*.o "$folder"/demo/*.o -lm -o "$folder/swarm"
if [ "$kind" = musl ]; then
    # shellcheck disable=SC2086
    "$compiler" $flags -shared -pthread "$folder"/library/*.o -lm -o "$folder/libquern.so"
    # shellcheck disable=SC2086
    "$compiler" $flags -Iinclude tests/platform/load_shared.c -pthread -ldl -o "$folder/load_shared"
    "$folder/load_shared" "$folder/libquern.so"
fi

hash_of()
{
    "$1" --plain --no-baseline --entities 3000 --frames 60 --threads 2 --json | sed -n 's/^{"hash": "\([^"]*\)".*/\1/p'
}

here=$(hash_of "$swarm")
there=$(hash_of "$folder/swarm")
if [ -z "$here" ] || [ "$here" != "$there" ]; then
    echo "the demo ends with hash '$there' on this platform ($kind), and with '$here' in this build" >&2
    exit 1
fi
echo "the demo ends with hash $there"
