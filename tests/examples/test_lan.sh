#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_lan.sh COMMAND...
#
# Three players and a spectator as processes on the loopback interface, of which all but the first know that one only:
# all end in the same world.

set -eu

folder=$(mktemp -d)
pids=
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || :; done; rm -rf "$folder"' EXIT
port=$((20000 + $$ % 20000))

"$@" --players 3 --port "$port" --frames 200 >"$folder/0" 2>&1 &
pids="$pids $!"
for player in 1 2; do
    "$@" --players 3 --player $player --host 127.0.0.1 --host-port "$port" --frames 200 >"$folder/$player" 2>&1 &
    pids="$pids $!"
done
"$@" --players 3 --watch --host 127.0.0.1 --host-port "$port" --frames 200 >"$folder/3" 2>&1 &
pids="$pids $!"
for pid in $pids; do
    wait "$pid" || { echo "a machine has failed"; cat "$folder"/*; exit 1; }
done
pids=
hashes=$(sed -n 's/.*world hash: //p' "$folder"/? | sort | uniq -c | sed 's/^ *//')
case $hashes in
"4 0x"*) echo "3 players and a spectator: $hashes" ;;
*) echo "the worlds differ"; cat "$folder"/*; exit 1 ;;
esac
grep -q 'spectator 0 has joined' "$folder/3" || { echo "the spectator does not show that it watches"; cat "$folder/3"; exit 1; }

# Wrong uses.
for wrong in "--host 127.0.0.1" "--player 1" "--players 9" "--port 70000" "--watch" "--frames x" "more"; do
    status=0
    # shellcheck disable=SC2086
    "$@" $wrong >"$folder/wrong" 2>&1 || status=$?
    [ "$status" -eq 2 ] || { echo "lan $wrong ends with $status"; cat "$folder/wrong"; exit 1; }
done
