#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_keep_together.sh TRANSPORT COMMAND...
#
# Games over the network by a transport (enet or udp), on the loopback interface: all machines end in the same world, over a
# bad network, with a player that joins later, after a player that vanishes, and with one that takes its place.

set -eu

transport=$1
shift
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)/keep
folder=$(mktemp -d)
pids=
trap 'for pid in $pids; do kill "$pid" 2>/dev/null || :; done; rm -rf "$folder"' EXIT
port=$((20000 + $$ % 20000))

# machine NAME COMMAND...: starts a machine of a game.
machine()
{
    name=$1
    shift
    "$@" --level "$here/small.json" --transport "$transport" --json >"$folder/$name" 2>&1 &
    pids="$pids $!"
}

# begun NAME: waits until a machine has begun.
begun()
{
    tries=0
    until grep -q ' begins$' "$folder/$1"; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || { echo "$1 does not begin"; cat "$folder"/*; exit 1; }
        sleep 0.05
    done
}

# same NAME...: the machines have ended with the same hash.
same()
{
    for name in "$@"; do
        sed -n 's/.*"hash": "\([^"]*\)".*/\1/p' "$folder/$name" >"$folder/hash"
        [ -s "$folder/hash" ] || { echo "$name has no hash"; cat "$folder"/*; exit 1; }
        [ "$name" != "$1" ] || cp "$folder/hash" "$folder/first"
        cmp -s "$folder/hash" "$folder/first" || { echo "$name has another hash"; cat "$folder"/*; exit 1; }
        grep -q '"frames": 300,' "$folder/$name" || { echo "$name ended early"; exit 1; }
    done
    echo "$*: $(cat "$folder/first")"
}

machine host "$@" --host "$port" --frames 300 --seed 1 --threads 1 --delay-ms 4 --loss 5 --timeout-ms 20000
machine guest "$@" --join "127.0.0.1:$port" --seed 2 --threads 2 --delay-ms 4 --loss 5
# shellcheck disable=SC2086
wait $pids || { cat "$folder"/*; exit 1; }
pids=
same host guest
grep -q '"rollbacks": 0,' "$folder/host" && { echo "the delayed network caused no rollback"; exit 1; }

# The third player joins the running game, and the fourth one, which never leaves its seat, is not there.
port=$((port + 1))
machine host "$@" --host "$port" --players 4 --begin 2 --frames 300 --pace 300 --seed 1 --timeout-ms 20000
machine guest "$@" --join "127.0.0.1:$port" --seed 2 --pace 300
begun host
machine late "$@" --join "127.0.0.1:$port" --seed 3 --pace 300
# shellcheck disable=SC2086
wait $pids || { cat "$folder"/*; exit 1; }
pids=
same host guest late
grep -q '"present": 7,' "$folder/host" || { echo "the late player did not take part"; cat "$folder"/*; exit 1; }

# A player vanishes, and the others go on without it.
port=$((port + 1))
machine host "$@" --host "$port" --players 3 --frames 300 --seed 1 --timeout-ms 1000
machine guest "$@" --join "127.0.0.1:$port" --seed 2
wanted=$pids
machine gone "$@" --join "127.0.0.1:$port" --seed 3 --pace 20
begun gone
kill -9 "${pids##* }"
# shellcheck disable=SC2086
wait $wanted || { cat "$folder"/*; exit 1; }
same host guest
grep -q '"present": 7,' "$folder/host" && { echo "the player that vanished was not dropped"; exit 1; }

# Another machine takes the place of a player that has vanished.
port=$((port + 1))
pids=
machine host "$@" --host "$port" --players 3 --frames 1500 --pace 200 --seed 1 --timeout-ms 2000
machine guest "$@" --join "127.0.0.1:$port" --pace 200 --seed 2
wanted=$pids
machine gone "$@" --join "127.0.0.1:$port" --pace 200 --seed 3
begun gone
kill -9 "${pids##* }"
sleep 2
machine late "$@" --join "127.0.0.1:$port" --pace 200 --seed 4
wanted="$wanted ${pids##* }"
# shellcheck disable=SC2086
wait $wanted || { cat "$folder"/*; exit 1; }
for name in host guest late; do
    grep -q '"present": 7,' "$folder/$name" || { echo "the other machine did not take the place"; cat "$folder"/*; exit 1; }
done
[ "$(sed -n 's/.*"hash": "\([^"]*\)".*/\1/p' "$folder/host" "$folder/guest" "$folder/late" | sort -u | wc -l)" -eq 1 ] ||
    { echo "the worlds differ"; cat "$folder"/*; exit 1; }

# Machines that cannot play: no host, a port that is taken, wrong addresses and names.
refused()
{
    status=0
    timeout 30 "$@" --level "$here/small.json" --transport "$transport" >"$folder/wrong" 2>&1 || status=$?
    [ "$status" -eq 1 ] || { echo "$* ends with $status"; cat "$folder/wrong"; exit 1; }
}
refused "$@" --join "127.0.0.1:70000"
grep -q 'no number up to 65535' "$folder/wrong" || { cat "$folder/wrong"; exit 1; }
if [ "$transport" = udp ]; then # ENet tries for half a minute
    refused "$@" --join "127.0.0.1:$((port + 1))"
    grep -q 'no host answers' "$folder/wrong" || { cat "$folder/wrong"; exit 1; }
fi
status=0
"$@" --host "$port" --transport other >"$folder/wrong" 2>&1 || status=$?
[ "$status" -eq 2 ] || { echo "--transport other ends with $status"; cat "$folder/wrong"; exit 1; }

# A game with a key: machines with another one are refused, and strangers that hold connections keep no player out.
port=$((port + 2))
pids=
key=00112233445566778899aabbccddeeff
machine host "$@" --host "$port" --key "$key" --frames 300 --seed 1 --timeout-ms 20000
wanted=$pids
python3 - "$port" "$transport" <<'END' &
import socket, sys, time
kind = socket.SOCK_STREAM if sys.argv[2] == "udp" else socket.SOCK_DGRAM
strangers = []
for i in range(100000):
    stranger = socket.socket(socket.AF_INET, kind)
    try:
        stranger.connect(("127.0.0.1", int(sys.argv[1])))
        stranger.send(bytes((i * j) % 256 for j in range(i % 50)))
    except OSError:
        pass
    strangers = strangers[-100:] + [stranger]
    time.sleep(0.02)
END
pids="$pids $!"
sleep 1
refused "$@" --join "127.0.0.1:$port" --key "f${key#0}"
grep -q 'another --key' "$folder/wrong" || { cat "$folder/wrong"; exit 1; }
refused "$@" --join "127.0.0.1:$port"
machine guest "$@" --join "127.0.0.1:$port" --key "$key" --seed 2
wanted="$wanted ${pids##* }"
# shellcheck disable=SC2086
wait $wanted || { cat "$folder"/*; exit 1; }
same host guest
status=0
"$@" --host "$port" --key 123 >"$folder/wrong" 2>&1 || status=$?
[ "$status" -eq 2 ] || { echo "--key 123 ends with $status"; cat "$folder/wrong"; exit 1; }
