#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_changes.sh [TREE]: only core/storage/change.[ch] may change the structure of a world. Fails and prints the
# lines if another source of core or sched allocates or frees slots, copies rows, sets change versions, or writes row
# counts, records or handles directly instead of by the functions of change.h.
set -eu

root=${1:-$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)}
cd "$root"

# Operations that only change.[ch] may use: the file that defines the operation, then an extended regular expression.
# A member must follow a name, a bracket or a parenthesis, so that initialisers of other structures do not match.
rules()
{
    cat <<'TEXT'
core/storage/entity   quern__entities_(allocate|free_or_retire|free)\(
core/storage/chunk    quern__versions_note(_rows)?\(
core/storage/chunk    quern__row_versions_(arrive|move)\(
core/storage/row_bits quern__(row_bits_(clear|move)|bit_column_put|bit_column_put_row)\(
core/storage/archetype quern__copy_row\(
core/storage/change   [])a-z0-9_](->|\.)row_count *([-+]?=[^=]|\+\+|--)
core/storage/change   (\+\+|--)[][()a-z0-9_.>-]*(->|\.)(row_count|chunk_count)
core/storage/change   archetype->chunk_count *([-+]?=[^=]|\+\+|--)
core/storage/entity   [])a-z0-9_](->|\.)(location|archetype_number) *=[^=]
core/storage/change   quern__archetype_entities\(.*\] *=[^=]
core/storage/change   structure_version *([-+]=|\+\+|--)
TEXT
}

bad=0
[ -f core/storage/change.h ] || { echo "core/storage/change.h does not exist"; bad=1; }
while read -r home pattern; do
    found=$(find core sched -name '*.[ch]' ! -path 'core/storage/change.[ch]' ! -path "$home.[ch]" \
        -exec grep -nE -- "$pattern" /dev/null {} + | sort) || true
    [ -z "$found" ] && continue
    printf '%s\n' "$found" | sed 's/$/   <- only core\/storage\/change.[ch] does this: use its verbs/'
    bad=1
done <<TEXT
$(rules)
TEXT
exit $bad
