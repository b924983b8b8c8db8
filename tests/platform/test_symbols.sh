#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_symbols.sh LIST LIBRARY NM OBJDUMP [SONAME]: the shared library exports the functions of the list, and nothing
# else. Its SONAME is the given one. A DLL does not call gcc's emulation of thread-local variables.
set -eu

list=$1 library=$2 nm=$3 objdump=$4 soname=${5:-}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
case $library in
*.dll) "$objdump" -p "$library" | sed -n '/Ordinal\/Name Pointer. Table/,/^$/s/^.*\[ *[0-9]*\] *\([A-Za-z_][A-Za-z0-9_]*\)$/\1/p' ;;
*) "$nm" -D --defined-only "$library" | awk '$3 != "_init" && $3 != "_fini" { print $3 }' ;; # musl exports these
esac | LC_ALL=C sort >"$folder/exported"
[ -s "$folder/exported" ] || { echo "$library exports nothing"; exit 1; }
LC_ALL=C sort "$list" | diff - "$folder/exported" >"$folder/difference" ||
    { echo "declared with QUERN_API (<), and exported (>):"; cat "$folder/difference"; exit 1; }
case $library in
*.dll) ! "$nm" "$library" | grep __emutls || { echo "$library has emulated thread-local variables"; exit 1; } ;;
esac
[ -n "$soname" ] || exit 0
found=$("$objdump" -p "$library" | sed -n 's/^ *SONAME *//p')
[ "$found" = "$soname" ] || { echo "$library has SONAME '$found', not '$soname'"; exit 1; }
