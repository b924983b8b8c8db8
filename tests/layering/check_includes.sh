#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_includes.sh [TREE]: fails and prints the lines if a source includes a header of a room that its own room
# must not know (rooms.txt), or a header of no room.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
root=${1:-$here/../..}
cd "$root"

# Lines "FILE:LINE:ROOM": what each source includes.
includes()
{
    find core sched kit inspect -name '*.[ch]' 2>/dev/null | sort | while read -r file; do
        sed -n 's|^#include "\(.*\)".*|\1|p;t;s|.*||p' "$file" | awk -v file="$file" '
            $0 != "" { sub("/[^/]*$", "", $0); print file ":" NR ":" $0 }'
    done
}

check()
{
    awk '
        FNR == NR {
            room = $1
            known[room] = 1
            allowed[room, room] = 1
            for (i = 2; i <= NF; i++) {
                if (!($i in known)) { print "the list of rooms has a circle: " room " may include " $i; bad = 1 }
                allowed[room, $i] = 1
            }
            next
        }
        {
            split($0, part, ":")
            room = part[1]
            sub("/[^/]*$", "", room)
            count++
            if (!(room in known)) { print part[1] ": " room " is not in the list of rooms"; bad = 1 }
            else if (!((room, part[3]) in allowed)) { print part[1] ":" part[2] ": " room " must not include " part[3]; bad = 1 }
        }
        END {
            if (count == 0) { print "no includes found"; bad = 1 }
            exit bad
        }' "$1" "$2"
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
grep -v "^#" "$here/rooms.txt" >"$folder/rooms"
includes >"$folder/includes"
check "$folder/rooms" "$folder/includes"
