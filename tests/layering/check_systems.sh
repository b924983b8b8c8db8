#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_systems.sh [TREE]: only core/platform asks for the operating system, calls it, or uses extensions of compilers.
# Fails and prints the lines of other files of core/, sched/ and kit/ that name a macro of a system or compiler, include
# a header that not every system has, call POSIX threads, or use an attribute, a builtin or inline assembly. The kit,
# which does not include core/, may ask for the compiler, and has files for systems: kit/live_posix.c, kit/live_windows.c,
# kit/netplay_socket.c, kit/ranks_posix.c, kit/ranks_windows.c, and kit/ranks_mpi.h, which is compiled with the program.
set -eu

root=${1:-$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)}
cd "$root"

files=$(find core sched kit -name '*.[ch]' 2>/dev/null | grep -Ev '^(core/platform/|kit/((live|ranks)_(posix|windows)|netplay_socket)[.]c|kit/ranks_mpi[.]h)' | sort) || true
[ -n "$files" ] || { echo "no sources found"; exit 1; }

# Comments may name all of that.
# shellcheck disable=SC2086 # names of source files have no spaces
exec awk '
FNR == 1 { in_comment = 0 }
{
    line = $0
    if (in_comment) {
        if (!match(line, /\*\//)) next
        line = substr(line, RSTART + 2)
        in_comment = 0
    }
    while ((begin = index(line, "/*")) != 0) {
        end = index(substr(line, begin + 2), "*/")
        if (end == 0) { in_comment = 1; line = substr(line, 1, begin - 1) }
        else line = substr(line, 1, begin - 1) " " substr(line, begin + end + 3)
    }
    what = ""
    if (line ~ /^ *# *include *<(pthread|sched|unistd|windows|io|process|malloc|threads|time|dlfcn|fcntl|sys\/.*|linux\/.*)[.]h>/)
        what = "includes a header of a system"
    else if (line ~ /(^|[^A-Za-z0-9_])(_WIN32|__linux__|__APPLE__|__EMSCRIPTEN__|__unix__|__GLIBC__|QUERN__ON_[A-Z]+)([^A-Za-z0-9_]|$)/)
        what = "asks for the system"
    else if (line ~ /(^|[^A-Za-z0-9_])(__GNUC__|__clang__|_MSC_VER|__MINGW32__|__x86_64__|__aarch64__|__SANITIZE_[A-Z]+__|__has_feature)([^A-Za-z0-9_]|$)/)
        what = "asks for the compiler"
    else if (line ~ /__attribute__|__builtin_|__asm__|__typeof__|__declspec|_Thread_local|(^|[^A-Za-z0-9_])asm *[(]/)
        what = "uses an extension of a compiler"
    else if (line ~ /(^|[^A-Za-z0-9_])pthread_/) what = "calls POSIX threads"
    if (FILENAME ~ /^kit\// && what ~ /compiler/) what = "" # the kit cannot include core/platform
    if (what != "") {
        printf "%s:%d: %s; core/platform has a call or a macro for it, or should get one\n", FILENAME, FNR, what
        failed = 1
    }
}
END { exit failed }
' $files
