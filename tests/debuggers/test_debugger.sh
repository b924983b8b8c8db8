#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_debugger.sh gdb|lldb PROGRAM SCRIPTS: the debugger shows the variables of debugged.c by the script of its name in
# the folder SCRIPTS. The file for Visual Studio names members that exist.
set -eu

debugger=$1 program=$2 scripts=$3
command -v "$debugger" >/dev/null || { echo "skipped: there is no $debugger"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Each line: an expression, a bar, and what the debugger must print for it.
if [ "$debugger" = gdb ]; then
    cat >"$folder/cases" <<'CASES'
scene->tower | entity 2:1 "tower" [Place, Mood, Tall, Counts, Raw] = {Place = {x = 3, y = 4}, Mood = {anger = 5, title = "calm\000\000\000"}, Counts = {count = 7, levels = {1, 2}, owner = entity 2:1 "tower" [Place, Mood, Tall, Counts, Raw]}, Raw = 4 bytes: 01 02 03 04}
scene->plain | entity 1:1 [Place] = {Place = {x = 1, y = 2}}
scene->dead | entity 0:1, not alive
scene->null | null entity
scene->provisional | provisional entity 5
scene->foreign | entity 0:1 of world 2
scene->place | component "Place"
scene->none | null resource
*scene->world | world 1 of 2 entities = {[Place] = 1 entities, [Place, Mood, Tall, Counts, Raw] = 1 entities}
*scene->query | query "places": mut Place, !Tall, ?Mood
*view | view of 1 rows = {entities = {entity 1:1 [Place]}, Place = {{x = 1, y = 2}}}
scene->result | QUERN_ERROR_STALE_ENTITY
CASES
else
    cat >"$folder/cases" <<'CASES'
scene->tower | entity 2:1 "tower" [Place, Mood, Tall, Counts, Raw]
scene->plain | entity 1:1 [Place]
scene->dead | entity 0:1, not alive
scene->null | null entity
scene->provisional | provisional entity 5
scene->place | component "Place"
*scene->world | world 1 of 2 entities
*scene->query | query: mut Place, !Tall, ?Mood
*view | view of 1 rows
scene->result | QUERN_ERROR_STALE_ENTITY
CASES
fi
if [ "$debugger" = gdb ]; then
    {
        echo 'set pagination off'
        echo 'set startup-with-shell off'
        echo 'break look_here'
        echo 'run'
        sed 's/ | .*//; s/^/print /' "$folder/cases"
    } >"$folder/commands"
    gdb -nx -batch -iex 'set auto-load no' -x "$scripts/quern_gdb.py" -x "$folder/commands" "$program" \
        </dev/null >"$folder/log" 2>&1 || :
else
    {
        echo "command script import $scripts/quern_lldb.py"
        echo 'breakpoint set -n look_here'
        echo 'run'
        sed 's/ | .*//; s/^/expression -- /' "$folder/cases"
    } >"$folder/commands"
    for packages in "$(lldb -P 2>/dev/null)" /usr/lib/llvm-*/lib/python3*/*-packages; do # Debian's names a wrong folder
        [ ! -e "$packages/lldb/embedded_interpreter.py" ] || export PYTHONPATH="$packages"
    done
    lldb --no-lldbinit --batch -s "$folder/commands" "$program" </dev/null >"$folder/log" 2>&1 || :
fi
reason=$(grep -i -m 1 -e 'operation not permitted' -e 'could not trace' -e 'Python scripting is not supported' \
    -e "No module named 'lldb" -e 'personality set failed' "$folder/log") || :
[ -z "$reason" ] || { echo "skipped: this $debugger runs no programs or no scripts: $reason"; exit 77; }
sed -n 's/[^|]* | //p' "$folder/cases" >"$folder/expected"
# In LLDB, the lines after the first are the components of an entity.
sed -n 's/^\$[0-9]* = //p; s/^(.*) \$[0-9]* = \(.*[^ {}]\)[ {}]*$/\1/p' "$folder/log" >"$folder/printed"
diff "$folder/expected" "$folder/printed" || { cat "$folder/log"; exit 1; }
[ "$debugger" = gdb ] || grep -q 'Place = (x = 3, y = 4)' "$folder/log" || { cat "$folder/log"; exit 1; }
