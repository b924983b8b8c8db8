#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_swarm.sh COMMAND...
#
# The demo ends in the same world on any number of threads, refuses nonsense, and keeps to its options.

set -eu

hash_with_threads()
{
    threads=$1
    shift
    "$@" --plain --json --no-baseline --entities 3000 --frames 40 --threads "$threads" |
        tail -n 1 | sed -n 's/.*"hash": *"\([^"]*\)".*/\1/p'
}

expected=$(hash_with_threads 1 "$@")
[ -n "$expected" ] || { echo "the last line has no hash"; exit 1; }
for threads in 2 3 8; do
    hash=$(hash_with_threads "$threads" "$@")
    echo "$threads threads: $hash"
    [ "$hash" = "$expected" ] || { echo "1 thread gave $expected"; exit 1; }
done

status=0
"$@" --threads many 2>/dev/null || status=$?
[ "$status" -eq 2 ] || { echo "a bad option gives exit status $status, not 2"; exit 1; }

status=0
said=$("$@" --frams 20 2>&1) || status=$?
case $status:$said in
2:*"did you mean 'frames'?") ;;
*) echo "an unknown option gives exit status $status, and: $said"; exit 1 ;;
esac

explained()
{
    how=$1
    shift
    "$@" --entities 3000 --threads 2 "$how"
}

explained --explain "$@" | grep -q "^phase 'think'" || { echo "--explain shows no phase 'think'"; exit 1; }
explained --explain=json "$@" | grep -q '"name": "flock"' || { echo "--explain=json shows no 'flock'"; exit 1; }
status=0
"$@" --explain=rhyme 2>/dev/null || status=$?
[ "$status" -eq 2 ] || { echo "a bad format gives exit status $status, not 2"; exit 1; }

file=$(mktemp)
trap 'rm -f "$file"' EXIT
"$@" --plain --no-baseline --entities 3000 --frames 20 --threads 2 --profile --trace "$file" |
    grep -q "^flock " || { echo "--profile shows no system 'flock'"; exit 1; }
for what in '"frame","name":"frame"' '"pass","name":"build grid"' '"sync","name":"apply"' '"name":"worker 1"'; do
    grep -q "$what" "$file" || { echo "--trace has no $what"; exit 1; }
done

# A line for each number of threads, in order and once; an error beside those that the demo runs on.
forecast()
{
    list=$1
    shift
    "$@" --plain --entities 3000 --frames 7 --threads 2 --forecast "$list"
}

forecast 9,4,9,256 "$@" >"$file"
counts=$(sed -n 's/^ *\([0-9][0-9]*\) .* \([0-9.][0-9.]*\) *\([-+][0-9.]*\) % .*$/\1+/p
                 s/^ *\([0-9][0-9]*\)  *[0-9.][0-9.]*  *-  *-  .*$/\1/p' "$file" | tr '\n' ' ')
[ "$counts" = "1+ 2+ 4 9 256 " ] || { echo "--forecast has lines for: $counts"; cat "$file"; exit 1; }
grep -q '^forecast from 7 of the first 7 frames' "$file" || { echo "--forecast records too few frames"; exit 1; }
for list in 0 257 4,x 4, ,4 4,,8 ''; do
    status=0
    forecast "$list" "$@" >/dev/null 2>"$file" || status=$?
    [ "$status" -eq 2 ] || { echo "--forecast '$list' gives exit status $status, not 2"; exit 1; }
    grep -q -e '--forecast takes a whole number from 1 to 256' "$file" || { cat "$file"; exit 1; }
done
status=0
forecast "$(seq -s , 1 33)" "$@" >/dev/null 2>"$file" || status=$?
[ "$status" -eq 2 ] || { echo "--forecast with 33 numbers gives exit status $status, not 2"; exit 1; }
grep -q "at most 32 numbers" "$file" || { cat "$file"; exit 1; }
"$@" --plain --json --entities 3000 --frames 3 --threads 2 --no-baseline --forecast 4 | tail -n 1 |
    grep -q '^{.*}$' || { echo "--json is not the last line after --forecast"; exit 1; }

# Either a table of events, or a line that says why there is none; and the run goes on.
"$@" --plain --no-baseline --entities 3000 --frames 20 --threads 2 --counters > "$file" 2>&1
grep -q "^system, events" "$file" || grep -q "hardware counters are not available: " "$file" ||
    { echo "--counters shows neither events nor a reason"; exit 1; }
grep -q "world hash: 0x" "$file" || { echo "--counters ends the run"; exit 1; }

# A recording runs again on another number of threads, and only in the world that it is of.
"$@" --plain --no-baseline --entities 3000 --frames 70 --threads 2 --record "$file" --rewind >"$file.said"
trap 'rm -f "$file" "$file.said"' EXIT
grep -q '^rewind: 70 frames were restored and ran again, and agree$' "$file.said" ||
    { cat "$file.said"; exit 1; }
hash=$(sed -n 's/.*world hash: *//p' "$file.said")
for threads in 1 3; do
    "$@" --entities 3000 --threads "$threads" --replay "$file" >"$file.said" || { cat "$file.said"; exit 1; }
    grep -q "^replay: 70 frames agree, world hash: $hash\$" "$file.said" || { cat "$file.said"; exit 1; }
done
status=0
"$@" --entities 3000 --seed 2 --replay "$file" >"$file.said" || status=$?
[ "$status" -eq 1 ] || { echo "a replay that parts gives exit status $status, not 1"; exit 1; }
grep -q "^before the first frame: values of component 'Position' differ" "$file.said" ||
    { cat "$file.said"; exit 1; }
head -c 20000 "$file" >"$file.said"
status=0
"$@" --entities 3000 --replay "$file.said" >"$file" || status=$?
[ "$status" -eq 1 ] || { echo "a replay that is cut off gives exit status $status, not 1"; exit 1; }
grep -q '^replay: [1-9][0-9]* frames agree; QUERN_ERROR_BAD_ARCHIVE: .*the recording is cut off' "$file" ||
    { cat "$file"; exit 1; }
status=0
"$@" --replay /nowhere/at/all >/dev/null 2>&1 || status=$?
[ "$status" -eq 1 ] || { echo "no replay gives exit status $status, not 1"; exit 1; }

# A picture has the world at the end of the run, and drawing changes nothing in it. Without SDL the option is refused.
status=0
drawn=$("$@" --entities 3000 --frames 40 --threads 2 --picture "$file" 2>"$file.err") || status=$?
if grep -q "built without it" "$file.err"; then
    [ "$status" -eq 2 ] || { echo "--picture without SDL gives exit status $status, not 2"; exit 1; }
else
    [ "$status" -eq 0 ] || { cat "$file.err"; exit 1; }
    echo "$drawn" | grep -q "$expected after 40 frames" || { echo "--picture gives '$drawn', not $expected"; exit 1; }
    [ "$(head -c 2 "$file")" = BM ] || { echo "--picture wrote no bitmap"; exit 1; }
fi
rm -f "$file.err"

# On a terminal the map has the colours that the terminal has.
on_terminal()
{
    script -qec "env $1 TERM=xterm $command --entities 3000 --frames 40 --threads 2 --no-baseline" /dev/null </dev/null
}

if command -v script >/dev/null; then
    command="$*"
    escape=$(printf '\033')
    on_terminal "NO_COLOR= COLORTERM=truecolor" >"$file"
    grep -q "${escape}\[38;2;" "$file" || { echo "no colours of 24 bits"; exit 1; }
    grep -q "hunter" "$file" || { echo "the map has no legend"; exit 1; }
    on_terminal "NO_COLOR= COLORTERM=" >"$file"
    grep -q "${escape}\[38;5;" "$file" || { echo "no colours of a table"; exit 1; }
    on_terminal "NO_COLOR=1 COLORTERM=truecolor" >"$file"
    if grep -q "${escape}\[38;" "$file"; then echo "colours in spite of NO_COLOR"; exit 1; fi
    grep -q "ms per frame" "$file" || { echo "no line of frame times"; exit 1; }
fi
