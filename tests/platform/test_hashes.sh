#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_hashes.sh ROOT EXAMPLES SUFFIX [LAUNCHER ...]: the demo, the replayed game and examples, which were built in the
# folder EXAMPLES with names that end with SUFFIX, have the results of hashes.txt. The launcher starts programs of other
# platforms. QUERN_HASH_THREADS: numbers of threads, "1 2" by default. QUERN_HASH_ONLY: the only row to check.
# QUERN_HASH_WITHOUT: a row to leave out. Prints each result.
set -eu

root=$1 examples=$2 suffix=$3
shift 3
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
games=$root/tests/examples/keep
failed=0

# start PROGRAM ARGUMENT ...: runs a program, without the carriage returns of Windows
start()
{
    program=$1
    shift
    # shellcheck disable=SC2086 # the launcher is words
    $launcher "$examples/$program$suffix" "$@" </dev/null | tr -d '\r'
}
launcher=$*

# result ROW THREADS: the world's hash, or, for examples that print none, the checksum of the whole output
result()
{
    case $1 in
    swarm)
        start swarm --plain --no-baseline --entities 3000 --frames 60 --threads "$2" --json |
            sed -n 's/^{"hash": "\([^"]*\)".*/\1/p'
        ;;
    keep)
        start keep/keep_headless --level "$games/small.json" --input "$games/small.txt" --json --threads "$2" |
            tail -n 1 | sed -n 's/.*"hash": *"\([^"]*\)".*/\1/p'
        ;;
    rollback) start rollback "$2" | sed -n 's/^all inputs in time: world hash //p' ;;
    netplay)
        start netplay --players 4 --frames 300 --seed 3 --loss 10 --threads "$2" |
            sed -n 's/^player .*world hash: //p' | uniq
        ;;
    ranks)
        start ranks/ranks_alone --agents 300 --frames 40 --ranks 4 --balance 3 --threads "$2" |
            sed -n 's/^hash by id: //p'
        ;;
    maze | towers) start "$1" "$2" | sed -n 's/^hash //p' ;;
    *) start "$1" | cksum | cut -d ' ' -f 1 ;;
    esac
}

check()
{
    found=$(result "$1" "$3")
    echo "$1, threads: $3: $found"
    [ "$found" = "$2" ] || { echo "$1: expected $2"; failed=1; }
}

while read -r row expected; do
    case $row in '#'* | '') continue ;; esac
    [ -z "${QUERN_HASH_ONLY:-}" ] || [ "$QUERN_HASH_ONLY" = "$row" ] || continue
    [ "${QUERN_HASH_WITHOUT:-}" != "$row" ] || { echo "$row: left out"; continue; }
    case $row in
    swarm | keep | rollback | netplay | ranks)
        for threads in ${QUERN_HASH_THREADS:-1 2}; do check "$row" "$expected" "$threads"; done
        ;;
    *) check "$row" "$expected" default ;;
    esac
done <"$here/hashes.txt"
exit $failed
