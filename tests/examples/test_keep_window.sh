#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_keep_window.sh HEADLESS COMMAND...
#
# The game in a window, on a screen that shows nothing: it draws its menu, and goes on with a game that HEADLESS saved.

set -eu

headless=$1
shift
export SDL_VIDEODRIVER=dummy SDL_AUDIODRIVER=dummy
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)/keep
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

small()
{
    "$@" --level "$here/small.json" --threads 1 --frames 5 --screenshot "$folder/picture.bmp"
}

small "$@" --input "$here/small.txt" --menu | grep -q '^[0-9]* entities, [0-9]* sprites in ' ||
    { echo "no picture of the menu"; exit 1; }
"$headless" --level "$here/small.json" --input "$here/small.txt" --threads 1 --frames 200 \
    --save "$folder/game.keep" >"$folder/said"
small "$@" --save "$folder/game.keep" --load >"$folder/said"
count=$(sed -n 's/ entities.*//p' "$folder/said")
[ "$count" -gt 200 ] || { echo "$count entities after loading"; exit 1; }

head -c 9000 "$folder/game.keep" >"$folder/short.keep"
status=0
small "$@" --save "$folder/short.keep" --load >/dev/null 2>"$folder/said" || status=$?
if [ "$status" -ne 1 ] || ! grep -q 'short.keep: quern_world_load: the archive is truncated' "$folder/said"; then
    echo "status $status:"
    cat "$folder/said"
    exit 1
fi
