#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_build.sh KIND ROOT COMPILER SWARM FOLDER: compiles the library, as the one file that scripts/amalgamate.py makes,
# and the demo for another kind of platform in FOLDER. One file costs a seventh of the time of the library's sources one
# by one. The final hash of the demo must equal that of SWARM, the demo of this build. KIND:
#
#     32bit      32-bit pointers
#     portable   with the portable fallbacks instead of what only this system has: waits by conditions, no affinity
#     musl       musl's C library, by its compiler driver musl-gcc; dlopen loads the shared library as well
#
# Exits with 77 ("skipped") if the compiler cannot build for the platform.
set -eu

kind=$1 root=$2 compiler=$3 swarm=$4 folder=$5
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

rm -rf "$folder"
mkdir -p "$folder/include/quern"
ln -s "$root/kit" "$folder/include/quern/kit"
python3 -B "$root/scripts/amalgamate.py" "$folder"

# compile ARGUMENT ...: the options of quern_configure_target and quern_fix_floats.
compile()
{
    # shellcheck disable=SC2086 # the flags are words
    "$compiler" $flags -std=c11 -O1 -D_GNU_SOURCE -ffp-contract=off -fno-math-errno -pthread "$@"
}

compile -fPIC -fvisibility=hidden -c "$folder/quern.c" -o "$folder/quern.o"
compile -I"$root" -I"$root/include" -I"$folder/include" "$root"/examples/swarm/*.c "$root"/kit/grid*.c "$folder/quern.o" \
    -lm -o "$folder/swarm"
if [ "$kind" = musl ]; then
    compile -shared "$folder/quern.o" -lm -o "$folder/libquern.so"
    compile -I"$root/include" "$root/tests/platform/load_shared.c" -ldl -o "$folder/load_shared"
    "$folder/load_shared" "$folder/libquern.so"
fi

hash_of()
{
    "$1" --plain --no-baseline --entities 3000 --frames 60 --threads 2 --json | sed -n 's/^{"hash": "\([^"]*\)".*/\1/p'
}

here=$(hash_of "$swarm")
there=$(hash_of "$folder/swarm")
if [ -z "$here" ] || [ "$here" != "$there" ]; then
    echo "the demo ends with hash '$there' on platform '$kind', but with '$here' in this build" >&2
    exit 1
fi
echo "the demo ends with hash $there"
