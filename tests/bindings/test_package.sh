#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_package.sh LANGUAGE PYTHON BINDINGS FLOCK PROGRAM
#
# The package of a language, made from the folder BINDINGS of a build, is installed into an empty folder without network,
# and runs the flock from there by PROGRAM. Nothing of the build tree is on its path. Without the package manager of the
# language, the package is unpacked to where it would put the files.

set -eu

language=$1
python=$2
bindings=$3
flock=$4
program=$5
scripts=$(CDPATH='' cd -- "$(dirname -- "$0")/../../scripts" && pwd -P)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH LUA_PATH LUA_CPATH NODE_PATH
export PYTHONDONTWRITEBYTECODE=1

pack()
{
    "$python" "$scripts/package_bindings.py" "$language" --from "$bindings" --output "$folder/$1"
}

# pack_on SYSTEM PLATFORM: packs as on another system, and prints the path or the error.
pack_on()
{
    "$python" -c '
import platform, runpy, sys, sysconfig
_, system, name, script, *sys.argv[1:] = sys.argv
platform.system, sysconfig.get_platform = lambda: system, lambda: name
runpy.run_path(script, run_name="__main__")' "$1" "$2" "$scripts/package_bindings.py" "$language" --from "$bindings" --output "$folder/other" 2>&1 || true
}

# expect WORDS TEXT: fails unless the text contains the words.
expect()
{
    case $2 in
    *"$1"*) ;;
    *) echo "wanted '$1', found '$2'"; exit 1 ;;
    esac
}

package=$(pack one)
cmp "$package" "$(pack two)" || { echo "packing twice gives two packages"; exit 1; }
mkdir "$folder/empty"
cp "$flock" "$folder/empty/"
cd "$folder/empty"
case $language in
python)
    expect -py3-none-macosx_14_0_arm64.whl "$(pack_on Darwin macosx-14.0-arm64)"
    expect -py3-none-win_amd64.whl "$(pack_on Windows win-amd64)"
    if "$python" -m pip --version >/dev/null 2>&1; then
        "$python" -m pip install --quiet --no-index --no-deps --no-compile --disable-pip-version-check --target . "$package" >"$folder/log" 2>&1 ||
            { cat "$folder/log"; exit 1; }
    else
        "$python" -m zipfile -e "$package" .
    fi
    "$program" -c 'import os, quern, sys; sys.exit(os.path.dirname(quern.__file__) != os.path.join(os.getcwd(), "quern"))'
    "$program" "${flock##*/}"
    ;;
lua)
    expect "rocks are made on Linux only, and this is Darwin" "$(pack_on Darwin macosx-14.0-arm64)"
    if command -v luarocks >/dev/null 2>&1; then
        luarocks --lua-version 5.1 --tree . install "$package" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
    else
        "$python" -m zipfile -e "$package" rock
        mkdir -p share/lua lib/lua
        mv rock/lua share/lua/5.1
        mv rock/lib lib/lua/5.1
    fi
    LUA_PATH="$PWD/share/lua/5.1/?.lua" LUA_CPATH="$PWD/lib/lua/5.1/?.so" "$program" "${flock##*/}"
    ;;
npm)
    if command -v npm >/dev/null 2>&1; then
        npm install --offline --no-audit --no-fund --cache "$folder/cache" --prefix . "$package" >"$folder/log" 2>&1 ||
            { cat "$folder/log"; exit 1; }
    else
        mkdir -p node_modules
        "$python" -m tarfile -e "$package" node_modules
        mv node_modules/package node_modules/quern
    fi
    "$program" "${flock##*/}"
    ;;
esac
