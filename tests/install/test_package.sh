#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_package.sh SOURCE BUILD SMALL WORK [PATTERN]
#
# Tests the packages that cpack made in BUILD, the one-file library, and the static library of the build SMALL. Unpacks
# and builds in WORK. PATTERN chooses tests by name. Each test is a line "passed: NAME" or "failed: NAME"; the log of a failed one is printed.

set -eu

source=$1 build=$2 small=$3 work=$4 pattern=${5:-}
CC=${CC:-cc} CXX=${CXX:-c++}
rm -rf "$work"
mkdir -p "$work"

check()
{
    name=$1
    shift
    echo "$name" | grep -q -e "$pattern" || return 0
    # In a condition, the shell would ignore -e.
    set +e
    (set -eu; "$@") >"$work/log" 2>&1
    status=$?
    set -e
    if [ $status -eq 0 ]; then
        echo "passed: $name"
    else
        cat "$work/log"
        echo "failed: $name"
    fi
}

# The runtime package has the shared library alone, and it exports the public functions alone.
deb_contents()
{
    library=$(find "$work/runtime" -name 'libquern.so.*' -type f)
    soname=$(objdump -p "$library" | sed -n 's/^ *SONAME *//p')
    [ -e "$(dirname "$library")/$soname" ]
    case $soname in libquern.so.[0-9]*.[0-9]*) ;; *) echo "SONAME is '$soname'"; false ;; esac
    [ "$(dpkg-deb -f "$build"/libquern[0-9]*.deb Package)" = "libquern${soname#libquern.so.}" ]
    dpkg-deb -f "$build"/libquern[0-9]*.deb Depends | grep -q libc6
    dpkg-deb -f "$build"/libquern-dev*.deb Depends | grep -q "libquern${soname#libquern.so.} (= "
    # GDB loads a script from the folder of the library's real path below its own.
    [ -f "$work/deb/usr/share/gdb/auto-load/usr/${library#"$work/runtime/usr/"}-gdb.py" ]
    find "$work/runtime" ! -type d ! -path '*/doc/*' ! -name 'libquern.so.*' | grep . && return 1
    "$source/tests/platform/test_symbols.sh" "$build/quern.symbols" "$library" nm objdump
}

# by_cmake ROOT: C and C++ programs by find_package, static and shared.
by_cmake()
{
    cmake -S "$source/tests/install" -B "$1/consumer" -DCMAKE_PREFIX_PATH="$1" -DCONSUMER_CXX=ON \
        -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX"
    grep '^quern_DIR:' "$1/consumer/CMakeCache.txt" | grep -qF "$1/"
    cmake --build "$1/consumer"
    for kind in static shared; do
        for program in consumer consumer_cpp consumer_kit; do "$1/consumer/${program}_quern_$kind"; done
    done
    nm "$1/consumer/consumer_quern_shared" | grep -q ' U quern_world_create$'
}

# by_pkg_config ROOT: the same by pkg-config.
by_pkg_config()
{
    PKG_CONFIG_PATH=$(dirname "$(find "$1" -name quern.pc)")
    libraries=$(dirname "$PKG_CONFIG_PATH")
    export PKG_CONFIG_PATH LD_LIBRARY_PATH="$libraries"
    flags=$(pkg-config --cflags --libs quern)
    static=$(pkg-config --static --cflags --libs quern)
    for language in c cpp; do
        compiler=$CC
        [ $language = c ] || compiler="$CXX -std=c++17"
        # The compiler and the flags are words.
        # shellcheck disable=SC2086
        {
            $compiler "$source/tests/install/consumer.$language" $flags -o "$1/by_pkg_config"
            "$1/by_pkg_config"
            $compiler -static "$source/tests/install/consumer.$language" $static -o "$1/by_pkg_config"
            "$1/by_pkg_config"
        }
    done
}

# Link-time optimisation gives no warning, and the library still exports and does the same.
lto()
{
    cmake -S "$source" -B "$work/lto" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON \
        -DQUERN_DEVELOPER=ON -DQUERN_BUILD_TESTS=OFF -DQUERN_BUILD_BENCH=OFF -DCMAKE_C_COMPILER="$CC"
    cmake --build "$work/lto" --target quern_shared quern_hello --parallel "$(nproc)" >"$work/lto.log" 2>&1
    if grep -i warning "$work/lto.log"; then return 1; fi
    "$source/tests/platform/test_symbols.sh" "$work/lto/quern.symbols" "$work/lto/libquern.so" nm objdump
    "$work/lto/examples/hello" | grep 'is at 1000$'
}

old_style_casts()
{
    for header in "$source"/include/quern/*.h "$source"/include/quern/*.hpp; do
        echo "#include <quern/${header##*/}>"
    done >"$work/headers.cpp"
    for standard in 17 20; do
        "$CXX" -std=c++$standard -Wall -Wextra -Wold-style-cast -Werror -I"$source/include" -fsyntax-only \
            "$work/headers.cpp" "$source/tests/headers.cpp"
    done
}

# hello ARCHIVE PROGRAM: links the first example with the archive, and runs it.
hello()
{
    "$CC" -Os -no-pie -ffunction-sections -fno-asynchronous-unwind-tables -I"$source/include" \
        "$source/examples/hello.c" "$1" -pthread -lm -Wl,--gc-sections "-Wl,-Map=$2.map" -o "$2"
    "$2" | grep 'is at 1000$'
}

# The smallest hello is smaller than 150 KB.
small_hello()
{
    hello "$small/libquern.a" "$work/hello"
    bytes=$(size "$work/hello" | awk 'NR == 2 { print $1 }')
    echo "$bytes" >"$work/hello_bytes"
    [ "$bytes" -lt 153600 ]
}

# without ROOM ...: a library without the rooms links, exports what is left, and the first example runs with it. Uses
# the objects of BUILD, and compiles only what replaces the rooms.
without()
{
    folder=$work/without
    rm -rf "$folder"
    cmake -S "$source" -B "$folder" "-DQUERN_WITHOUT=$(echo "$*" | tr ' ' ';')" -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
        -DQUERN_BUILD_TESTS=OFF -DQUERN_BUILD_BENCH=OFF -DQUERN_BUILD_EXAMPLES=OFF -DCMAKE_C_COMPILER="$CC"
    mkdir "$folder/objects"
    sed -n "s|^ *\"file\": \"$source/\(.*\)\".*|\1|p" "$folder/compile_commands.json" |
        grep -E '^(core|sched|cmake/without)/' | while read -r file; do
        object=$folder/objects/$(echo "$file" | tr / _).o
        case $file in
        cmake/without/*)
            "$CC" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -O2 -fPIC -fvisibility=hidden -ffunction-sections \
                -I"$source" -I"$source/include" -c "$source/$file" -o "$object"
            ;;
        *) ln -s "$build/CMakeFiles/quern_objects.dir/$file.o" "$object" ;;
        esac
    done
    "$CC" -shared -Wl,--no-undefined "$folder"/objects/*.o -pthread -lm -o "$folder/libquern.so"
    "$source/tests/platform/test_symbols.sh" "$folder/quern.symbols" "$folder/libquern.so" nm objdump
    ar rc "$folder/libquern.a" "$folder"/objects/*.o
    hello "$folder/libquern.a" "$folder/hello"
    size "$build/libquern.so" "$folder/libquern.so" "$folder/hello"
}

mkdir -p "$work/runtime" "$work/deb" "$work/tar"
dpkg-deb -x "$build"/libquern[0-9]*.deb "$work/runtime"
dpkg-deb -x "$build"/libquern[0-9]*.deb "$work/deb"
dpkg-deb -x "$build"/libquern-dev*.deb "$work/deb"
tar -xzf "$build"/quern-*.tar.gz -C "$work/tar" --strip-components=1

check 'contents of the Debian packages' deb_contents
check 'C and C++ programs with the Debian packages, by CMake' by_cmake "$work/deb/usr"
check 'C and C++ programs with the Debian packages, by pkg-config' by_pkg_config "$work/deb/usr"
check 'C and C++ programs with the tar file, by CMake' by_cmake "$work/tar"
check 'C and C++ programs with the tar file, by pkg-config' by_pkg_config "$work/tar"
check 'the one file' "$source/tests/platform/test_one_file.sh" "$source" "$CC" "$CXX"
check 'the one file with -O2' "$source/tests/platform/test_one_file.sh" "$source" "$CC" "" -O2
check 'the one file with -O3 and link-time optimisation' \
    "$source/tests/platform/test_one_file.sh" "$source" "$CC" "" -O3 -flto=auto
check 'headers without old-style casts' old_style_casts
check 'link-time optimisation' lto
check 'a small program below 150 KB' small_hello
[ ! -e "$work/hello_bytes" ] || echo "a small program has $(cat "$work/hello_bytes") bytes of code and constants"
for room in history archive replay observe prefabs; do
    check "without $room" without $room
done
check 'without history, archive and reactions' without history archive reactions
check 'without history, archive and events' without history archive events
check 'without all these' without history archive replay observe prefabs reactions events
