#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_keep_files.sh COMMAND...
#
# Levels and recorded games with something wrong in them are refused with a message that says what and where.

set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)/keep
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# refused MESSAGE COMMAND...: the command fails, and says so.
refused()
{
    message=$1
    shift
    status=0
    "$@" --threads 1 >/dev/null 2>"$folder/said" || status=$?
    if [ "$status" -ne 1 ] && [ "$status" -ne 2 ]; then
        echo "exit status $status, for: $message"
        exit 1
    fi
    grep -q -e "$message" "$folder/said" || { echo "not '$message', but:"; cat "$folder/said"; exit 1; }
}

# bad_level EXPRESSION MESSAGE COMMAND...: the small level, changed by sed.
bad_level()
{
    sed "$1" "$here/small.json" >"$folder/level.json"
    message=$2
    shift 2
    refused "$message" "$@" --level "$folder/level.json" --input "$here/small.txt"
}

refused 'none.json: cannot be opened: ' "$@" --level "$folder/none.json"
bad_level '5s/,//' 'level.json: line 6 is no JSON' "$@"
bad_level '$d' 'level.json: line [0-9]* is no JSON' "$@"
bad_level '1s/{/{"hints": ["a", 7],/' 'hints\[1\] must be a string of at most 95 bytes' "$@"
bad_level 's/"title": "[^"]*"/"title": 7/' 'level.title must be a string of 1 to 31 bytes' "$@"
for title in '' ' ' '   ' 'two\\nlines' '\\ttabs' 'an end\\u007f'; do
    bad_level "s/\"title\": \"[^\"]*\"/\"title\": \"$title\"/" \
        'level.title must be a string of 1 to 31 bytes, not of blanks only, without ./. and without control' "$@"
done
bad_level 's/"name": "lane"/"name": "la\\nne"/' 'roads\[0\].name must be a string of 1 to 31 bytes' "$@"
bad_level 's/"width": 24/"width": "wide"/' 'level.width must be a number from 16 to 256' "$@"
bad_level 's/"lives": 12/"lives": 1.5/' 'level.lives must be a whole number' "$@"
bad_level 's/\[12, 8\]/[12, 16.5]/' \
    'roads\[0\].points\[1\] is \[12, 16.5\], which is outside of the field of 24 by 16' "$@"
bad_level 's/\[12, 8\]/[12]/' 'roads\[0\].points\[1\] must be a place, as \[x, y\]' "$@"
bad_level 's/\[\[0, 8\].*\]/[[0, 8]]/' 'roads\[0\].points must be a list of 2 to 32 elements' "$@"
bad_level 's/"tower": "gun"/"tower": "gnu"/' "towers\[0\]: there is no tower 'gnu'" "$@"
bad_level 's/\[5, 5\]/[5, 7]/' 'towers\[0\], at \[5, 7\]: that is too near to a road' "$@"
bad_level 's/"brute"/"brat"/' "waves\[1\].groups\[0\]: there is no enemy 'brat'" "$@"
bad_level 's/"road": "lane", "count": 20/"road": "alley", "count": 20/' \
    "waves\[0\].groups\[2\]: there is no road 'alley'" "$@"
bad_level 's/"every": 0.02/"every": 0/' 'waves\[0\].groups\[0\].every must be a number from 0.001 to 60' "$@"

# bad_input EXPRESSION MESSAGE COMMAND...: the recorded game, changed by sed.
bad_input()
{
    sed "$1" "$here/small.txt" >"$folder/input.txt"
    message=$2
    shift 2
    refused "$message" "$@" --level "$here/small.json" --input "$folder/input.txt"
}

refused 'none.txt: cannot be opened: ' "$@" --input "$folder/none.txt"
refused 'line 0 cannot be reached: the file cannot be read' "$@" --input "$folder"
bad_input '4s/1/x/' 'input.txt: line 4 has no step and word' "$@"
bad_input '4s/1/-1/' 'input.txt: line 4 has no step and word' "$@"
bad_input '4s/wave/wait/' "input.txt: line 4 is none of 'wave', 'build TOWER X Y', 'sell X Y' and 'end'" "$@"
bad_input '2s/mortar/moat/' 'input.txt: line 2 is none of ' "$@"
bad_input '2s/11$//' 'input.txt: line 2 is none of ' "$@"
bad_input '2s/ 11$/ nan/' 'input.txt: line 2 is none of ' "$@"
bad_input '6s/90/1/' 'input.txt: line 6 goes back in time' "$@"
bad_input '$d' "input.txt: line 8 is the last one, but no 'end'" "$@"
bad_input '9s/$/ of it/' 'input.txt: line 9 is none of ' "$@"
bad_input '2s/9 11/9 9/' \
    'step 0: cannot build at 9 9: that is too near to a road; was it recorded in this level' "$@"
bad_input '6s/11 5/13 5/' 'step 90: cannot sell at 13 5: there is no tower to sell' "$@"

# Saved games. What cannot be written leaves the older file as it is.
small="--level $here/small.json --input $here/small.txt --threads 1"
saved=$folder/game.keep
# shellcheck disable=SC2086
"$@" $small --frames 100 --save "$saved" >/dev/null
cp "$saved" "$folder/older"

# bad_save EXPRESSION MESSAGE COMMAND...: the saved game, changed by sed.
bad_save()
{
    LC_ALL=C sed "$1" "$folder/older" >"$folder/bad.keep"
    message=$2
    shift 2
    # shellcheck disable=SC2086
    refused "$message" "$@" $small --load "$folder/bad.keep"
}

# shellcheck disable=SC2086
{
    refused 'none.keep: there is no saved game' "$@" $small --load "$folder/none.keep"
    refused "$folder: is not a saved game of Keep" "$@" $small --load "$folder"
    refused "was saved in the level 'A small one', which is another one than 'The Ford'" "$@" --load "$saved"
    refused 'no/game.keep: cannot be written: No such file or directory; nothing was saved' \
        "$@" $small --frames 10 --save "$folder/no/game.keep"
    refused "$folder: cannot be written: it is a folder" "$@" $small --frames 10 --save "$folder"
    refused 'game.keep: cannot be written: File too large; nothing was saved, and an older' \
        sh -c 'trap "" XFSZ; ulimit -f 1; exec "$@"' sh "$@" $small --frames 10 --save "$saved"
    head -c 20000 "$folder/older" >"$folder/short.keep"
    refused 'short.keep: quern_world_load: the archive is truncated' "$@" $small --load "$folder/short.keep"
    head -c 70 "$folder/older" >"$folder/short.keep"
    refused "short.keep: line [0-9]* is " "$@" $small --load "$folder/short.keep"
}
cmp "$saved" "$folder/older"
[ "$(echo "$saved".part*)" = "$saved.part*" ] || { echo "a part of a file remains"; exit 1; }

# Each title that a level may have can be read from the saved game.
for title in ' A  title ' 'x' '0123456789 0123456789 012345678' 'Гора'; do
    sed "s/\"title\": \"[^\"]*\"/\"title\": \"$title\"/" "$here/small.json" >"$folder/title.json"
    titled="--level $folder/title.json --input $here/small.txt --threads 1"
    # shellcheck disable=SC2086
    {
        "$@" $titled --frames 10 --save "$folder/title.keep" >/dev/null
        "$@" $titled --frames 20 --load "$folder/title.keep" >/dev/null
    }
done

# Only plain files are replaced, and no file beside them.
echo mine >"$folder/mine.txt"
ln -s mine.txt "$folder/link.keep"
mkfifo "$folder/pipe.keep"
for name in link pipe; do
    # shellcheck disable=SC2086
    refused "$name.keep: cannot be written: it is a folder, a link or a device" \
        "$@" $small --frames 10 --save "$folder/$name.keep"
done
[ -L "$folder/link.keep" ] || { echo "a link was replaced"; exit 1; }
[ -p "$folder/pipe.keep" ] || { echo "a pipe was replaced"; exit 1; }
[ "$(cat "$folder/mine.txt")" = mine ] || { echo "the target of a link was replaced"; exit 1; }
for suffix in part part0 part1; do
    echo mine >"$saved.$suffix"
done
# shellcheck disable=SC2086
"$@" $small --frames 100 --save "$saved" >/dev/null
for suffix in part part0 part1; do
    [ "$(cat "$saved.$suffix")" = mine ] || { echo "game.keep.$suffix was replaced"; exit 1; }
done
cmp "$saved" "$folder/older"
bad_save '1s/keep/king/' 'bad.keep: is not a saved game of Keep' "$@"
bad_save '1s/save 1/save 7/' 'it has format 7, and this one reads format 1' "$@"
bad_save '1s/1 .*/1/' 'bad.keep: line 1 does not name the level' "$@"
bad_save '2s/build/bild/' 'bad.keep: line 2 is none of ' "$@"
bad_save 's/^100 end$/101 end/' "cannot go on with a value of 'Keep': the file was not written by this game" "$@"
bad_save 's/enemies/anemone/' 'bad.keep: quern_world_load: ' "$@"

refused '--threads takes a whole number' "$@" --threads many
refused "unexpected argument 'more'" "$@" more
refused "lists the options; did you mean 'threads'?" "$@" --thraeds 2
refused "'keep --help' lists the options$" "$@" --json=3
