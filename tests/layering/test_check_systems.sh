#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_systems.sh reports what only core/platform may do, in small trees.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# expect VERDICT WORDS: the expected output of the script for the tree
expect()
{
    verdict=good
    said=$("$here/check_systems.sh" "$tree") || verdict=bad
    if [ "$verdict" != "$1" ] || ! printf '%s\n' "$said" | grep -qF "$2"; then
        echo "expected $1 and '$2', got $verdict and '$said'" >&2
        exit 1
    fi
}

# refuses LINE WORDS: a file with the line is reported
refuses()
{
    printf '\n%s\n' "$1" >"$tree/sched/jobs/a.c"
    expect bad "sched/jobs/a.c:2: $2"
    rm "$tree/sched/jobs/a.c"
}

mkdir -p "$tree/core/platform" "$tree/core/base" "$tree/sched/jobs"
expect bad "no sources found"
printf '#if defined(_WIN32)\n#include <windows.h>\n#endif\n' >"$tree/core/platform/a.c"
printf '/* Linux: __linux__,\n * pthread_create */\n#include <stdio.h>\nint pages; /* _WIN32 */\n' >"$tree/core/base/a.c"
expect good ""
refuses '#if defined(_WIN32)' 'asks for the system'
refuses '#if QUERN__ON_LINUX' 'asks for the system'
refuses '#ifdef __linux__ /* why */' 'asks for the system'
refuses '#include <pthread.h>' 'includes a header of a system'
refuses '#include <sys/mman.h>' 'includes a header of a system'
refuses '#if defined(__GNUC__)' 'asks for the compiler'
refuses '    pthread_mutex_lock(&mutex);' 'calls POSIX threads'
refuses 'static __attribute__((noinline)) int f(void);' 'uses an extension of a compiler'
refuses 'static _Thread_local int a;' 'uses an extension of a compiler'
refuses '    return __builtin_ctz(bits);' 'uses an extension of a compiler'
refuses '    __asm__ volatile("yield");' 'uses an extension of a compiler'

# The kit asks for the compiler, but not for the system.
mkdir "$tree/kit"
printf '#if defined(__GNUC__)\n#define ALONE __attribute__((noinline))\n#endif\n' >"$tree/kit/a.c"
expect good ""
printf '#if defined(_WIN32)\n#endif\n' >"$tree/kit/a.c"
expect bad "kit/a.c:1: asks for the system"
