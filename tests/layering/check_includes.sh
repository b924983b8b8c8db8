#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_includes.sh [TREE]: which room may know which. A room is a folder of core/ or sched/, or kit/. Fails, and
# names the lines, when a source includes a header of a room that it must not know, or of none.
set -eu

root=${1:-$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)}
cd "$root"

# A room, and the others whose headers it may include: only such as stand above it in this list, so there is no
# circle. The kit has the public headers alone, which all may include.
rooms()
{
    cat <<'TEXT'
core/base
core/storage    core/base
core/commands   core/base core/storage
core/world      core/base core/storage core/commands
core/reflect    core/base core/storage core/world
core/history    core/base core/storage core/commands core/world
core/archive    core/base core/storage core/world
sched/jobs      core/base
sched/schedule  core/base core/storage core/world sched/jobs
sched/observe   core/base sched/jobs sched/schedule
sched/frame     core/base core/storage core/world core/commands sched/jobs sched/schedule
sched/history   core/base core/world core/commands core/history sched/jobs sched/schedule sched/frame
sched/replay    core/base core/storage core/world sched/frame
sched/describe  core/base sched/schedule sched/frame
kit
TEXT
}

# Lines "FILE:LINE:ROOM": what each source includes.
includes()
{
    find core sched kit -name '*.[ch]' 2>/dev/null | sort | while read -r file; do
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
rooms >"$folder/rooms"
includes >"$folder/includes"
check "$folder/rooms" "$folder/includes"
