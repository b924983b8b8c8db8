#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_check_symbols.sh [CC]: check_symbols.sh reports each use of a symbol that a room must not know, and nothing else.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
cc=${1:-cc}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
objects=$build/CMakeFiles/quern_objects.dir
kit=$build/kit/CMakeFiles/quern_grid.dir

# expect VERDICT WORDS [SOURCE_FOLDER]: the expected output of the script for the build folder
expect()
{
    verdict=good
    said=$("$here/check_symbols.sh" "$build" nm "${3:-}") || verdict=bad
    if [ "$verdict" != "$1" ] || ! printf '%s\n' "$said" | grep -qF -- "$2"; then
        echo "expected $1 and '$2', got $verdict and '$said'" >&2
        exit 1
    fi
}

# compile OBJECT TEXT: an object file of the build folder
compile()
{
    mkdir -p "${1%/*}"
    printf '%s\n' "$2" | "$cc" -x c -c -o "$1" -
}

expect bad "no symbols found"
compile "$objects/core/base/containers.c.o" 'int quern__hash(void) { return 1; }'
compile "$objects/core/storage/chunk.c.o" 'int quern__hash(void); int quern__chunk(void) { return quern__hash(); }'
expect good ""
compile "$objects/core/base/rogue.c.o" 'int quern__chunk(void); int rogue(void) { return quern__chunk(); }'
expect bad "core/base/rogue.c: core/base must not use quern__chunk of core/storage (core/storage/chunk.c)"
compile "$objects/core/base/rogue.c.o" 'extern const int quern__table[]; int rogue(void) { return quern__table[0]; }'
compile "$objects/core/storage/table.c.o" 'const int quern__table[] = {1};'
expect bad "core/base must not use quern__table of core/storage"
mkdir -p "$build/sources/core/base" "$build/sources/core/storage"
touch "$build/sources/core/base/containers.c" "$build/sources/core/storage/chunk.c" "$build/sources/core/storage/table.c"
expect good "" "$build/sources"
touch "$build/sources/core/base/rogue.c"
expect bad "core/base must not use quern__table of core/storage" "$build/sources"
rm "$objects/core/base/rogue.c.o"
compile "$objects/sched/rogue.c.o" 'int quern__hash(void); int rogue(void) { return quern__hash(); }'
expect bad "sched/rogue.c: sched is not in the list of rooms"
rm "$objects/sched/rogue.c.o"
compile "$objects/core/world/public.c.o" 'int quern_world_create(void) { return 1; }'
compile "$kit/grid.c.o" 'int quern_world_create(void); int quern_grid(void) { return quern_world_create(); }'
expect good ""
compile "$kit/grid.c.o" 'int quern__hash(void); int quern_grid(void) { return quern__hash(); }'
expect bad "kit/grid.c: kit must not use quern__hash of core/base"
rm "$kit/grid.c.o"
compile "$objects/core/base/rogue.c.o" 'int quern_world_create(void); int rogue(void) { return quern_world_create(); }'
expect bad "core/base must not use quern_world_create of core/world"
