#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_atomics.sh reports operations without a comment and no others.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
source=$(mktemp)
trap 'rm -f "$source"' EXIT

# expect VERDICT WORDS: the expected output of the script for the source on standard input
expect()
{
    cat >"$source"
    verdict=good
    said=$("$here/check_atomics.sh" "$source") || verdict=bad
    if [ "$verdict" != "$1" ] || ! printf '%s\n' "$said" | grep -qF "$2"; then
        echo "expected $1 and '$2', got $verdict and '$said'" >&2
        exit 1
    fi
}

expect bad ':1: get: no comment says what' <<'C'
static int get(const _Atomic int *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}
C
expect good '' <<'C'
/* Acquire: pairs
 * with the release in set. */
static int get(const _Atomic int *from)
{
    return atomic_load_explicit(from, memory_order_acquire);
}
C
expect bad ':7: get: no comment says why' <<'C'
/* Relaxed: this is another function's. */
static int first(void)
{
    return 0;
}

static int get(const _Atomic int *from)
{
    atomic_init(from, 0); /* pairs with nothing */
    return atomic_load_explicit(from, memory_order_relaxed);
}

/* Relaxed. */
static int last(void)
{
    return 0;
}
C
expect good '' <<'C'
static int get(const _Atomic int *from)
{
    int a = atomic_load_explicit(from, memory_order_relaxed); /* relaxed: a hint */
    return a + atomic_load_explicit(from,
                                    memory_order_relaxed);
}
C
expect bad 'get: no comment says why' <<'C'
/* Pairs with set. */
static int get(const _Atomic int *from)
{
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(from, memory_order_relaxed);
}
C
expect bad 'get: no comment says why' <<'C'
static int get(int *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}
C
expect bad 'get: no comment says what' <<'C'
/* Relaxed. */
static int get(int *from)
{
    return __atomic_fetch_or(from, 1, __ATOMIC_RELEASE);
}
C
expect bad 'get: an atomic operation names no order' <<'C'
/* Relaxed. Pairs with set. */
static int get(const _Atomic int *from)
{
    return atomic_load(from);
}
C
expect good '' <<'C'
/* What this file is about. All its reads are relaxed: a picture of about now. */

static int get(const _Atomic int *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}
C
