#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_static_data.sh LIBRARY: fails if a static object of the library is larger than 64 KiB.
set -eu

large=$(nm -S --defined-only "$1" 2>/dev/null | awk '
    $3 ~ /^[bBdDrR]$/ && length($2) > 4 && $2 !~ /^0*[0-9a-f][0-9a-f][0-9a-f][0-9a-f]$/ { print $4, "0x" $2 }')
[ -z "$large" ] || { echo "static objects of more than 64 KiB: $large"; exit 1; }
