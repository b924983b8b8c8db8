#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_changes.sh reports each way to change structure without change.h, and nothing else.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# expect VERDICT WORDS: the expected output of the script for the tree
expect()
{
    verdict=good
    said=$("$here/check_changes.sh" "$tree") || verdict=bad
    if [ "$verdict" != "$1" ] || ! printf '%s\n' "$said" | grep -qF -- "$2"; then
        echo "expected $1 and '$2', got $verdict and '$said'" >&2
        exit 1
    fi
}

# only_in HOME LINE: the line is allowed in the sources of HOME and in no others
only_in()
{
    printf '%s\n' "$2" >"$tree/$1.c"
    expect good ""
    rm "$tree/$1.c"
    printf '\n%s\n' "$2" >"$tree/core/world/rogue.c"
    expect bad "core/world/rogue.c:2:$2"
    rm "$tree/core/world/rogue.c"
}

mkdir -p "$tree/core/storage" "$tree/core/world" "$tree/sched"
expect bad "core/storage/change.h does not exist"
printf 'slot->row_count++;\nquern__entities_free(entities, index, record);\n' >"$tree/core/storage/change.h"
expect good ""

only_in core/storage/entity 'handle = quern__entities_allocate(&storage->entities);'
only_in core/storage/entity 'quern__entities_free_or_retire(&storage->entities, index);'
only_in core/storage/entity 'record->location = 0;'
only_in core/storage/entity 'records[i].archetype_number = 4;'
only_in core/storage/chunk 'quern__versions_note_rows(&archetype->versions, 0);'
only_in core/storage/chunk 'quern__versions_note(&archetype->versions, 0, 1);'
only_in core/storage/chunk 'quern__row_versions_arrive(versions, first, count, now);'
only_in core/storage/row_bits 'quern__row_bits_move(target, to, source, from, count);'
only_in core/storage/archetype 'quern__copy_row(plan, target, source);'
only_in core/storage/change 'slot->row_count -= 3;'
only_in core/storage/change 'archetype->slots[i].row_count = 0;'
only_in core/storage/change 'return --slot->row_count;'
only_in core/storage/change 'archetype->chunk_count++;'
only_in core/storage/change 'quern__archetype_entities(archetype, chunk)[row] = entity;'
only_in core/storage/change 'storage->structure_version++;'

# Reading is allowed, and so are members of the same names in other structures.
cat >"$tree/core/world/reader.c" <<'TEXT'
if (slot->row_count == 0 && record->location == 0) return;
total += slot->row_count;
item = (quern__item){.entity = entity, .location = record->location};
stats.chunk_count += archetype->chunk_count;
version = storage->structure_version;
TEXT
expect good ""
