#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_server.sh COMMAND...
#
# A server that stops, by its commands or by a signal, goes on from its save with the same hash.

set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
printf '%s\n' '@0 join ann' '@50 join bob' '@60 list' '@170 leave bob' '@250 join ann' '@290 list' >commands

fail()
{
    echo "$1"
    cat ./*.out
    exit 1
}

# same_hash FILE FILE: both outputs end with the same hash.
same_hash()
{
    [ "$(tail -n 1 "$1")" = "$(tail -n 1 "$2")" ] || fail "$1 and $2 end differently"
}

# Without an end, and with a restart between: commands of ticks that the save has are left out.
"$@" --ticks 300 --threads 1 <commands >straight.out
"$@" --ticks 110 --threads 2 --save save <commands >first.out
"$@" --ticks 190 --threads 2 --save save <commands >second.out
same_hash straight.out second.out
grep -q '^continues at tick 110$' second.out || fail 'the second run does not continue'
grep -q '^tick 170: bob leaves with [1-9][0-9]* gold$' second.out || fail 'bob has no gold'
grep -q '^ann is here already$' second.out || fail 'ann is not there'

# In real time, ended by a signal.
mkfifo pipe
"$@" --threads 1 --save live <pipe >live.out &
server=$!
exec 3>pipe
echo 'join ann' >&3
until grep -q 'ann joins' live.out; do
    kill -0 "$server" || fail 'the server has ended'
    sleep 0.05
done
kill -INT "$server"
wait "$server" || fail 'the signal ends the server with an error'
exec 3>&-
joined=$(sed -n 's/^tick \([0-9]*\): ann joins$/\1/p' live.out)
tick=$(sed -n 's/^ends at tick \([0-9]*\),.*/\1/p' live.out)
[ -s live ] || fail 'there is no save'
[ ! -e live.new ] || fail 'there is an unfinished save'
"$@" --ticks 20 --threads 1 --save live </dev/null >more.out
echo "@$joined join ann" | "$@" --ticks $((tick + 20)) --threads 1 >again.out
same_hash more.out again.out

# A damaged save is refused, and kept.
head -c 1000 save >damaged
if "$@" --ticks 1 --save damaged </dev/null >damaged.out 2>&1; then fail 'a damaged save is loaded'; fi
grep -q "cannot load 'damaged'" damaged.out || fail 'there is no message'
[ "$(wc -c <damaged)" -eq 1000 ] || fail 'the damaged save is overwritten'
echo "ends as without saves: $(tail -n 1 straight.out)"
