#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_install.sh CMAKE COMPILER SOURCE BUILD
#
# Installs the build into a prefix of its own, builds a small program against what was installed in every
# way that is offered, and runs it.

set -eu

cmake=$1 compiler=$2 source=$3 build=$4

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

"$cmake" --install "$build" --prefix "$prefix" >"$work/install.log"

# Moved after installing: nothing in it may remember where it was put first.
mv "$prefix" "$work/moved"
prefix=$work/moved
libdir=$(dirname "$(find "$prefix" -name 'libquern.a')")

echo "CMake package"
"$cmake" -S "$source/tests/install" -B "$work/build" -DCMAKE_C_COMPILER="$compiler" -DCMAKE_PREFIX_PATH="$prefix"
"$cmake" --build "$work/build"
for program in consumer_quern consumer_quern_static consumer_quern_shared consumer_kit consumer_kit_quern_static \
    consumer_kit_quern_shared; do
    "$work/build/$program"
done
"$work/build/consumer_live" "$work/build/consumer_module.so"
# One Quern in each program: where the shared one is named, nothing comes from the static one.
nm "$work/build/consumer_kit" | grep -q ' T quern_world_create$'
nm "$work/build/consumer_kit_quern_shared" | grep -q ' U quern_world_create$'

echo "CMake package, shared by BUILD_SHARED_LIBS"
"$cmake" -S "$source/tests/install" -B "$work/build" -DBUILD_SHARED_LIBS=ON
"$cmake" --build "$work/build" --target consumer_kit consumer_quern
"$work/build/consumer_kit"
nm "$work/build/consumer_kit" | grep -q ' U quern_world_create$'
nm "$work/build/consumer_quern" | grep -q ' U quern_world_create$'
if [ -x "$work/build/consumer_bench" ]; then
    "$work/build/consumer_bench" --repeat 5 --json="$work/before.jsonl"
    "$work/build/consumer_bench" --load "$work/before.jsonl" --compare "$work/before.jsonl" --report "$work/page.html"
    [ -s "$work/page.html" ]
    grep -q '"flags":"[^"]*-fno-math-errno"' "$work/before.jsonl"
    grep -q "#define QUERN_BENCH_COMMIT" "$work/build/consumer_bench_build/quern_bench_build.h"
fi

# The inspector, on systems that have it.
if [ -f "$libdir/libquern_inspect.a" ]; then
    "$work/build/consumer_inspect"
    [ -x "$prefix/share/quern/quern_inspect.py" ]
fi

[ -x "$prefix/share/quern/schedule_dot.py" ]
[ -f "$prefix/share/quern/quern_gdb.py" ]

command -v pkg-config >/dev/null || { echo "pkg-config is not here: its file is not tested"; exit 0; }
export PKG_CONFIG_PATH="$libdir/pkgconfig"

echo "pkg-config, shared"
# Flags are separate words on purpose.
# shellcheck disable=SC2046
"$compiler" "$source/tests/install/consumer.c" $(pkg-config --cflags --libs quern) -o "$work/shared"
LD_LIBRARY_PATH=$libdir "$work/shared"

echo "pkg-config, static"
# shellcheck disable=SC2046
"$compiler" -static "$source/tests/install/consumer.c" $(pkg-config --static --cflags --libs quern) \
    -o "$work/static"
"$work/static"

echo "pkg-config, kit"
# shellcheck disable=SC2046
"$compiler" "$source/tests/install/consumer_kit.c" $(pkg-config --cflags --libs quern_transform) -o "$work/kit"
LD_LIBRARY_PATH=$libdir "$work/kit"

if [ -f "$libdir/libquern_inspect.a" ]; then
    echo "pkg-config, inspector"
    # shellcheck disable=SC2046
    "$compiler" "$source/tests/install/consumer_inspect.c" $(pkg-config --cflags --libs quern_inspect) -o "$work/inspect"
    LD_LIBRARY_PATH=$libdir "$work/inspect"
fi

# The benchmark harness, where it was built.
[ -f "$libdir/libquern_bench.a" ] || exit 0

echo "pkg-config, harness, shared"
# shellcheck disable=SC2046
"$compiler" "$source/tests/install/consumer_bench.c" $(pkg-config --cflags --libs quern_bench) -o "$work/bench"
LD_LIBRARY_PATH=$libdir "$work/bench" --repeat 2 --csv="$work/shared.csv" --json="$work/shared.jsonl"
grep -q counting "$work/shared.csv"
grep -q '"flags":"unknown".*"commit":"unknown"' "$work/shared.jsonl"

if pkg-config --libs quern_bench | grep -q -e -lcjson &&
    ! echo 'int main(void) { return 0; }' |
        "$compiler" -static -x c - -lcjson -o "$work/static_cjson" 2>/dev/null; then
    echo "there is no static cJSON: linking the harness statically is not tested"
    exit 0
fi
echo "pkg-config, harness, static"
# shellcheck disable=SC2046
"$compiler" -static "$source/tests/install/consumer_bench.c" \
    $(pkg-config --static --cflags --libs quern_bench) -o "$work/bench_static"
"$work/bench_static" --repeat 2 --csv="$work/static.csv"
grep -q counting "$work/static.csv"
