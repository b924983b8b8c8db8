#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_atomics.sh [FILE ...]: fails unless a comment says of every atomic operation of the library what it pairs with,
# or why relaxed order is enough. The comment is in the same function or directly above it. Several operations of a
# function may share a comment:
#
#     acquire, release, seq_cst and handshakes    "pairs with"
#     relaxed                                     "relaxed", there or in the comment at the head of the file
#
# An operation without an explicit order is an error as well. atomic_init needs no comment: no other thread knows the
# object yet. Without FILE arguments, checks core/, sched/, include/ and inspect/.

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)
if [ $# -eq 0 ]; then
    # shellcheck disable=SC2046 # names of source files have no spaces
    set -- $(cd "$root" && find core sched include inspect -name '*.[ch]' | sort)
    cd "$root" || exit 1
fi

exec awk '
function end_of_call(text, from,    depth, at, letter) {
    depth = 0
    for (at = from; at <= length(text); at++) {
        letter = substr(text, at, 1)
        if (letter == "(") depth++
        if (letter == ")" && --depth == 0) return at
    }
    return length(text)
}

function complain(what) {
    printf "%s:%d: %s: %s\n", FILENAME, first_line, name, what
    failed = 1
}

# Moves the comments of `text` to `comments`.
function split_comments(    begin, end) {
    comments = ""
    while ((begin = index(text, "/*")) != 0) {
        end = index(substr(text, begin), "*/")
        if (end == 0) break
        comments = comments " " substr(text, begin, end + 1)
        text = substr(text, 1, begin - 1) substr(text, begin + end + 1)
    }
}

function check_function(    call, end, has_strong, has_relaxed) {
    split_comments()
    gsub(/[ *]+/, " ", comments)
    has_strong = has_relaxed = 0
    while (match(text, /atomic_(load|store|exchange|compare_exchange_weak|compare_exchange_strong|fetch_[a-z]+|thread_fence|flag_[a-z_]+)(_n)?(_explicit)?\(/)) {
        end = end_of_call(text, RSTART)
        call = substr(text, RSTART, end - RSTART + 1)
        text = substr(text, end + 1)
        if (call ~ /memory_order_(acquire|release|acq_rel|seq_cst)|__ATOMIC_(ACQ|RELEASE|SEQ)|QUERN__HANDSHAKE_/) has_strong = 1
        else if (call ~ /memory_order_relaxed|__ATOMIC_RELAXED/) has_relaxed = 1
        else complain("an atomic operation names no order")
    }
    if (has_strong && comments !~ /[Pp]airs? with/)
        complain("no comment says what its atomic operations pair with (\"pairs with\")")
    if (has_relaxed && comments !~ /[Rr]elaxed/ && head !~ /[Rr]elaxed/)
        complain("no comment says why its relaxed operations may be so (\"relaxed\")")
}

FNR == 1 { text = head = ""; inside = seen_function = 0 }
inside && /^}/ { check_function(); inside = 0; text = ""; next }
/^{/ { inside = 1; seen_function = 1; next }
inside { text = text " " $0; next }
/^$/ { if (!seen_function) head = head text; text = ""; next }
/^[a-zA-Z]/ && /\(/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name); first_line = FNR }
{ text = text " " $0 }
END { exit failed }
' "$@"
