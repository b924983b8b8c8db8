#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_symbols.sh BUILD_FOLDER [NM [SOURCE_FOLDER]]: fails and prints them if an object file of the library uses a
# symbol of a room that its own room must not know (rooms.txt). Includes do not show this: a room could declare a
# function that a room above it defines. Public functions count as well; only the kit and the inspector may use what the public headers
# declare. Objects without a source in SOURCE_FOLDER are ignored: a build folder keeps objects of moved sources.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
nm=${2:-nm} sources=${3:-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
grep -v '^#' "$here/rooms.txt" >"$scratch/rooms"
cat "$here"/../../include/quern/*.h "$here"/../../include/quern/*/*.h 2>/dev/null |
    grep -oE '\bquern_[a-z0-9_]+' | sort -u >"$scratch/public"
cd "$1"

# Lines "SOURCE KIND SYMBOL": KIND is a letter of nm; U means that the source uses the symbol.
for objects in CMakeFiles/quern_objects.dir kit/CMakeFiles inspect/CMakeFiles; do
    [ ! -d "$objects" ] || find "$objects" -name '*.c.o'
done | sort | xargs "$nm" -A -P 2>/dev/null | sed -E '
    s#^(kit|inspect)/CMakeFiles/[^/]*/#\1/#
    s#^CMakeFiles/quern_objects.dir/##
    s#^(.*)\.o: ([^ ]+) ([A-Za-z]).*#\1 \3 \2#' >"$scratch/all" || :

awk -v sources="$sources" '
    !($1 in is_there) {
        path = sources "/" $1
        is_there[$1] = sources == "" || (getline line <path) >= 0
        close(path)
    }
    is_there[$1]' "$scratch/all" >"$scratch/symbols"

awk '
    FNR == 1 { file++ }
    file == 1 {
        known[$1] = 1
        for (i = 1; i <= NF; i++) allowed[$1, $i] = 1
        next
    }
    file == 2 {
        declared[$1] = 1
        next
    }
    file == 3 {
        if ($2 ~ /^[TDBRCV]$/) home[$3] = $1
        next
    }
    $2 == "U" && $3 in home {
        count++
        user = room($1)
        owner = room(home[$3])
        if (!(user in known)) report($1 ": " user " is not in the list of rooms")
        else if ((user == "kit" || user == "inspect") && $3 in declared) next
        else if (!((user, owner) in allowed))
            report($1 ": " user " must not use " $3 " of " owner " (" home[$3] ")")
    }
    function room(source) { sub("/[^/]*$", "", source); return source }
    function report(text) { if (!(text in told)) print text; told[text] = 1; bad = 1 }
    END {
        if (count == 0) { print "no symbols found"; bad = 1 }
        exit bad
    }' "$scratch/rooms" "$scratch/public" "$scratch/symbols" "$scratch/symbols"
