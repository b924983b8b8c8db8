#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_includes.sh reports the forbidden includes of small trees.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# expect VERDICT WORDS: the expected output of the script for the tree
expect()
{
    verdict=good
    said=$("$here/check_includes.sh" "$tree") || verdict=bad
    if [ "$verdict" != "$1" ] || ! printf '%s\n' "$said" | grep -qF "$2"; then
        echo "expected $1 and '$2', got $verdict and '$said'" >&2
        exit 1
    fi
}

mkdir -p "$tree/core/base" "$tree/core/storage" "$tree/sched/jobs"
expect bad "no includes found"
printf '#include "core/base/a.h"\n#include <quern/base.h>\n' >"$tree/core/storage/b.c"
expect good ""
printf '\n#include "core/storage/b.h"\n' >"$tree/core/base/a.h"
expect bad "core/base/a.h:2: core/base must not include core/storage"
rm "$tree/core/base/a.h"
printf '#include "core/base/a.h"\n' >"$tree/sched/jobs/c.h"
expect good ""
printf '#include "sched/jobs/c.h"\n' >"$tree/sched/d.c"
expect bad "sched/d.c: sched is not in the list of rooms"
rm "$tree/sched/d.c"
mkdir "$tree/kit"
printf '#include "kit/grid.h"\n#include <quern/quern.h>\n' >"$tree/kit/grid.c"
expect good ""
printf '#include "core/base/a.h"\n' >"$tree/kit/grid.c"
expect bad "kit/grid.c:1: kit must not include core/base"
