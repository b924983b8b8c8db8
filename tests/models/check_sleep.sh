#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_sleep.sh SPIN CC MODEL: the model of sleeping and waking has no error, and has one with each of its
# safeguards left out.
set -eu

spin=$1
cc=$2
model=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# check ERRORS SPIN_OPTION...
check() {
    expected=$1
    shift
    "$spin" -a "$@" "$model" > spin.log
    "$cc" -O2 -w -DSAFETY -o pan pan.c
    ./pan -m1000000 > pan.log
    if ! grep -q "errors: $expected\$" pan.log || grep -q "search depth too small" pan.log; then
        echo "sleep.pml $*: expected $expected errors" >&2
        cat pan.log >&2
        exit 1
    fi
    echo "sleep.pml $*: $(grep 'states, stored' pan.log), errors: $expected"
}

check 0 -DJOBS=2
check 0 -DJOBS=3
check 1 -DNO_SLEEPER_FENCE
check 1 -DNO_PUSHER_FENCE
check 1 -DNO_SECOND_LOOK
