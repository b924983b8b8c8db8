#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_ranks.sh ALONE [RANKS EPIDEMIC]
#
# The flock has one hash for every number of ranks and threads, with a division that changes or stays, and after a restart,
# also on another number of ranks. ALONE has all ranks in one process. RANKS has them in processes of MPI; then a rank
# that dies or hangs is noticed by the others, which stop in the same frame, and a restart goes on with the same hash.
# EPIDEMIC is the epidemic over MPI.

set -eu

alone=$1
program=${2:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
flock='--agents 300 --frames 40'
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # for tests in containers
# shellcheck disable=SC2086 # $flock is several words
wanted=$("$alone" $flock | sed -n 's/^hash by id: //p')
[ -n "$wanted" ] || { echo "the flock has no hash"; exit 1; }

# mpi OPTIONS PROGRAM...: mpirun. That of Open MPI 4.1 sometimes waits for itself for ever after its ranks have ended (two threads
# of PMIx_server_finalize): then it is killed, and its status is taken as 0.
mpi()
{
    mpirun --oversubscribe "$@" &
    mpirun=$!
    (
        idle=0
        while [ -r /proc/self/stat ] && kill -0 "$$" && kill -0 "$mpirun"; do
            sleep 1
            idle=$((idle + 1))
            # a process that has ended, which mpirun has not noticed, is in state Z
            if cat /proc/[0-9]*/stat | grep -q ") [^Z] $mpirun "; then idle=0; fi
            [ "$idle" -ge 30 ] || continue
            touch "$folder/killed"
            kill -KILL "$mpirun"
        done
    ) >/dev/null 2>&1 &
    watcher=$!
    ended=0
    wait "$mpirun" || ended=$?
    kill "$watcher" 2>/dev/null || :
    if [ -e "$folder/killed" ]; then
        rm "$folder/killed"
        echo "mpirun had no ranks and did not end: it was killed" >&2
        ended=0
    fi
    return "$ended"
}

# same NAME COMMAND...: the command ends with the wanted hash.
same()
{
    name=$1
    shift
    "$@" >"$folder/out" || { echo "$name failed"; cat "$folder/out"; exit 1; }
    got=$(sed -n 's/^hash by id: //p' "$folder/out")
    [ "$got" = "$wanted" ] || { echo "$name: $got, not $wanted"; exit 1; }
}

# Ranks in one process, which needs no MPI.
if [ -z "$program" ]; then
    for ranks in 1 2 3 4 8; do
        for threads in 1 2; do
            # shellcheck disable=SC2086
            same "$ranks ranks, $threads threads" "$alone" $flock --ranks "$ranks" --threads "$threads" --balance 3
        done
    done
    # shellcheck disable=SC2086
    same "simulated network" "$alone" $flock --ranks 3 --latency-us 50
    same "fixed division" "$alone" $flock --ranks 4 --balance 0
    grep -q ' 0 crossed' "$folder/out" && { echo "no agent crossed a border"; exit 1; }
    "$alone" --agents 300 --frames 27 --ranks 4 --archives "$folder" --archive-every 10 >/dev/null
    for ranks in 1 3 4 7; do
        # shellcheck disable=SC2086
        same "restart on $ranks ranks" "$alone" $flock --ranks "$ranks" --restart "$folder"
        grep -q ' 20 frames' "$folder/out" || { echo "the restart did not begin in frame 20"; exit 1; }
    done
    # shellcheck disable=SC2086
    same "traces" "$alone" $flock --ranks 3 --trace "$folder" --progress 15 2>"$folder/messages"
    grep -q 'frame 30: .* frames per second, imbalance .* bytes per rank' "$folder/messages" ||
        { echo "no progress is printed"; cat "$folder/messages"; exit 1; }
    scripts=$(CDPATH='' cd -- "$(dirname -- "$0")/../../scripts" && pwd -P)
    python3 -B "$scripts/merge_traces.py" "$folder/all.json" "$folder"/rank-?.json
    for rank in 0 1 2; do
        grep -q "\"name\": \"exchange\".*\"pid\": $rank" "$folder/all.json" ||
            { echo "the merged trace has no exchange of rank $rank"; exit 1; }
    done
    exit 0
fi

# shellcheck disable=SC2086
same "without mpirun" "$program" $flock
for ranks in 1 2 3 4 8; do
    for threads in 1 2; do
        # shellcheck disable=SC2086
        same "$ranks ranks, $threads threads" mpi -n "$ranks" "$program" $flock \
            --threads "$threads" --timeout 60
    done
done

# Wrong arguments are reported once.
mpi -n 3 "$program" --agents none >"$folder/out" 2>&1 || :
grep -q '^hash by id' "$folder/out" && { echo "wrong options succeed"; exit 1; }
[ "$(grep -c "agents takes a whole number" "$folder/out")" = 1 ] ||
    { echo "wrong options are not reported once"; cat "$folder/out"; exit 1; }

"$alone" --archive-every 5 >"$folder/out" 2>&1 && { echo "checkpoints without a folder succeed"; exit 1; }
grep -q "add --archives FOLDER" "$folder/out" || { cat "$folder/out"; exit 1; }
"$alone" --ranks 256 >"$folder/out" 2>&1 && { echo "256 ranks in one process succeed"; exit 1; }
grep -q "at most 255 ranks" "$folder/out" || { cat "$folder/out"; exit 1; }
"$alone" --latency-us 5 --threads 2 >"$folder/out" 2>&1 && { echo "a simulation on threads succeeds"; exit 1; }
grep -q "one process with one thread" "$folder/out" || { cat "$folder/out"; exit 1; }

# A rank dies in frame 25, or hangs. With recovery, mpirun lets the others end by themselves, and returns 0.
for accident in die hang; do
    rm -f "$folder"/*.quern
    # shellcheck disable=SC2086
    mpi --enable-recovery -n 4 "$program" $flock --archives "$folder" --archive-every 10 \
        "--$accident" 2@25 --timeout 3 >"$folder/out" 2>"$folder/messages" || :
    for rank in 0 1 3; do
        grep -q "rank $rank stops in frame 25: rank 2 did not answer.*checkpoint of frame 20" "$folder/messages" ||
            { echo "rank $rank does not say that rank 2 is lost"; cat "$folder/messages"; exit 1; }
    done
    [ ! -s "$folder/out" ] || { echo "the run has a result although a rank is lost"; exit 1; }
    for ranks in 4 3; do
        # shellcheck disable=SC2086
        same "restart" mpi -n "$ranks" "$program" $flock --restart "$folder" --timeout 60
        grep -q ' 20 frames' "$folder/out" || { echo "the restart did not begin in frame 20"; cat "$folder/out"; exit 1; }
    done
done

# A file that is cut off is refused by name, and all ranks end.
head -c 2000 "$folder/rank-1-b.quern" >"$folder/rest" && mv "$folder/rest" "$folder/rank-1-b.quern"
# shellcheck disable=SC2086
mpi -n 4 "$program" $flock --restart "$folder" --timeout 60 >"$folder/out" 2>&1 || :
grep -q '^hash by id' "$folder/out" && { echo "a truncated checkpoint is loaded"; exit 1; }
grep -q "rank-1-b.quern' of the checkpoint of frame 20 is truncated" "$folder/out" ||
    { echo "the truncated file is not named"; cat "$folder/out"; exit 1; }

# An epidemic, with trees that move and messages to all ranks.
wanted=0x3014a0d628233392
for ranks in 1 3; do
    same "epidemic on $ranks ranks" mpi -n "$ranks" "$3" --households 500 --frames 60 --threads 2 --timeout 60
done
