#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_keep.sh LEVELS STEPS COMMAND...
#
# A recorded game ends in the same world on any number of threads, and is not one in which nothing happens.
# The level and the recording that are shipped, in the folder LEVELS, can be played for STEPS steps.

set -eu

levels=$1
steps=$2
shift 2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)/keep
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

play()
{
    "$@" --level "$here/small.json" --input "$here/small.txt" --json
}

of_last_line()
{
    tail -n 1 | sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p"
}

play "$@" --threads 1 >"$folder/one"
expected=$(of_last_line hash <"$folder/one")
[ -n "$expected" ] || { echo "the last line has no hash"; exit 1; }
for threads in 2 3 8; do
    hash=$(play "$@" --threads "$threads" | of_last_line hash)
    echo "$threads threads: $hash"
    [ "$hash" = "$expected" ] || { echo "1 thread gave $expected"; exit 1; }
done
play "$@" --threads 2 --rewind | grep -q '^rewound to step [0-9]* and ran again: the same result$' ||
    { echo "time does not run back"; exit 1; }
# A game that was saved in the middle and loaded ends like the one that went on, and keeps its actions in the file.
for threads in 1 2 3 8; do
    play "$@" --threads "$threads" --frames 130 --save "$folder/saved" >/dev/null
    hash=$(play "$@" --threads "$threads" --load "$folder/saved" | of_last_line hash)
    [ "$hash" = "$expected" ] || { echo "loaded, with $threads threads: $hash, not $expected"; exit 1; }
    [ "$threads" = 1 ] && mv "$folder/saved" "$folder/saved_by_one"
    [ "$threads" = 1 ] || cmp "$folder/saved" "$folder/saved_by_one"
done
grep -a -q '^120 build gun 11 5$' "$folder/saved" || { echo "the saved game has no actions"; exit 1; }
# A saved game that went on with the actions of another recording keeps its own actions before them.
sed '/^0 /d; s/^1 wave/2 wave/; s/^140 wave/150 wave/' "$here/small.txt" >"$folder/other.txt"
"$@" --level "$here/small.json" --input "$folder/other.txt" --load "$folder/saved" --frames 200 --save "$folder/again" >/dev/null
sed '/^[0-9]* end$/q' "$folder/again" | tail -n +2 >"$folder/actions"
{
    sed '/^#/d; /^140 /,$d' "$here/small.txt"
    echo 150 wave
    echo 200 end
} | diff - "$folder/actions" || { echo "the game that was saved again has other actions than were played"; exit 1; }
hash=$("$@" --level "$here/small.json" --load "$folder/again" --input "$folder/actions" --json | of_last_line hash)
replayed=$("$@" --level "$here/small.json" --input "$folder/actions" --json | of_last_line hash)
[ "$hash" = "$replayed" ] || { echo "replayed from the saved actions: $replayed, not $hash"; exit 1; }
score=$(of_last_line score <"$folder/one")
[ "$score" -gt 500 ] || { echo "the recorded game has a score of $score"; cat "$folder/one"; exit 1; }

# Whether gold suffices for a tower at its recorded step depends on every step before. The last tower is built at 5940.
[ -f "$levels/ford.txt" ] || { echo "no recorded game is shipped"; exit 1; }
"$@" --threads 1 --frames "$steps" --json | tail -n 1 | grep -q "\"frames\": $steps," ||
    { echo "the recorded game that is shipped does not go $steps steps; record it again"; exit 1; }
