#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_same.sh PATTERN PROGRAM [ARGUMENTS]: runs a program with each of several numbers of threads as its last argument. It
# must print the same each time, with a line that matches the pattern.

set -eu

pattern=$1
shift
expected=$("$@" 1)
printf '%s\n' "$expected" | grep -qE "$pattern" || {
    echo "no line matches '$pattern': $expected"
    exit 1
}
for threads in 2 3 8; do
    found=$("$@" "$threads")
    [ "$found" = "$expected" ] || {
        echo "1 thread: $expected"
        echo "$threads threads: $found"
        exit 1
    }
done
