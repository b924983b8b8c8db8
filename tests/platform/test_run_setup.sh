#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_run_setup.sh ROOT: builds by ./run and builds by hand share their folders. The preset 'library' has the libraries
# alone. ./run installs what is missing, waits for the lock of apt, and names packages where there is no apt-get. Runs
# copies of ./run and of the presets in a project of one target, with package managers that are scripts.
# The scripts are in single quotes: they expand their variables themselves.
# shellcheck disable=SC2016
set -eu

root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
project=$folder/project
mkdir "$project"
cp "$root/run" "$root/CMakePresets.json" "$project"
cat >"$project/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(stub LANGUAGES NONE)
file(WRITE ${CMAKE_BINARY_DIR}/program "#!/bin/sh\necho swarm runs\n")
file(CHMOD ${CMAKE_BINARY_DIR}/program PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
add_custom_command(
  OUTPUT built
  COMMAND ${CMAKE_COMMAND} -E make_directory examples
  COMMAND ${CMAKE_COMMAND} -E copy program examples/swarm
  COMMAND ${CMAKE_COMMAND} -E cat program >>${CMAKE_SOURCE_DIR}/builds
  COMMAND ${CMAKE_COMMAND} -E touch built)
add_custom_target(swarm ALL DEPENDS built)
CMAKE

fail()
{
    echo "$*"
    cat "$folder/log"
    exit 1
}

# expect_one_build WHAT: the program of the project was built once since the last call.
expect_one_build()
{
    [ "$(grep -c 'swarm runs' "$project/builds")" -eq 1 ] || fail "$1: the second way of building builds anew"
    rm -r "$project/build" "$project/builds"
}

by_hand()
{
    (cd "$project" && cmake --preset release "$@" && cmake --build --preset release) >"$folder/log" 2>&1
}

# corrects TEXT ARGUMENT ...: ./run refuses the arguments and ends with this text.
corrects()
{
    text=$1
    shift
    ! "$project/run" "$@" >"$folder/log" 2>&1 || fail "./run $* succeeds"
    tail -n 1 "$folder/log" | grep -q "$text$" || fail "./run $* does not end with '$text'"
}
corrects "; did you mean 'demo'?" dem
corrects "; did you mean 'package'?" pakage
corrects "; did you mean 'test'?" tset
corrects 'listed above' nothing
corrects 'listed above' xy
corrects "; did you mean 'release-test'?" test releas-test

"$project/run" demo >"$folder/log" 2>&1 || fail "./run demo fails"
by_hand || fail "a build by hand fails after ./run"
expect_one_build "./run, then by hand"
for generator in 'Unix Makefiles' Ninja; do
    [ "$generator" != Ninja ] || command -v ninja >/dev/null || continue
    by_hand -G "$generator" || fail "a build by hand with $generator fails"
    "$project/run" demo >"$folder/log" 2>&1 || fail "./run demo fails after a build by hand with $generator"
    expect_one_build "by hand with $generator, then ./run"
done

(cd "$root" && cmake --preset library -B "$folder/library") >"$folder/log" 2>&1 || fail "the preset 'library' fails"
cmake --build "$folder/library" --target help >"$folder/log"
grep -q quern_shared "$folder/log" || fail "the preset 'library' has no library"
! grep -E 'quern_bench|swarm|test_' "$folder/log" || fail "the preset 'library' builds more than libraries"

# ---------------------------------------------------------------------------------- package managers

# Only these commands are on the path; make is missing. CMake is a script that finds everything built.
tools=$folder/tools
mkdir "$tools"
for tool in sh awk cat dirname env getconf grep head mkdir sed sort tr uname "${CC:-cc}"; do
    ln -s "$(command -v "$tool")" "$tools/${tool##*/}"
done
# make_tool NAME LINE ...: writes a command of these lines of sh.
make_tool()
{
    name=$1
    shift
    printf '%s\n' '#!/bin/sh' "$@" >"$tools/$name"
    chmod +x "$tools/$name"
}
make_tool cmake 'echo "cmake version 3.25.1"'
make_tool id 'echo 0'
make_tool sleep 'echo "$@" >>"$calls"'
mkdir -p "$project/build/release/examples"
printf '#!/bin/sh\necho swarm runs\n' >"$project/build/release/examples/swarm"
chmod +x "$project/build/release/examples/swarm"
calls=$folder/calls
: >"$calls"
export calls tools

demo()
{
    env CC="$(basename "${CC:-cc}")" PATH="$tools" "$project/run" demo >"$folder/log" 2>&1
}

# refuse MANAGER TEXT: with this package manager alone, ./run ends and says TEXT.
refuse()
{
    [ "$1" = none ] || make_tool "$1" 'echo "$0 $*" >>"$calls"'
    ! demo || fail "$1: ./run demo runs without make"
    grep -qF "$2" "$folder/log" || fail "$1: ./run does not say '$2'"
    rm -f "$tools/$1"
}
# libc6-dev and gcc have one name on macOS, which is printed once.
mv "$tools/$(basename "${CC:-cc}")" "$folder/compiler"
refuse brew 'brew install gcc make'
refuse dnf 'sudo dnf install gcc glibc-devel make'
refuse pacman 'sudo pacman -S gcc glibc make'
refuse apk 'sudo apk add gcc musl-dev make'
mv "$folder/compiler" "$tools/$(basename "${CC:-cc}")"
refuse none 'these packages of Debian hold, in the same version if a name ends with one,
and try again: make'
[ ! -s "$calls" ] || fail "./run called a package manager other than apt-get"

# Both locks are held twice. After the installation there is a make, and then apt-get is not called again.
make_tool apt-get 'echo "apt-get $*" >>"$calls"' \
    'if [ "$(grep -c "apt-get $1" "$calls")" -le 2 ]; then' \
    '    echo "E: Could not get lock /var/lib. It is held by process 7"; exit 100' \
    'fi' \
    '[ "$1" != install ] || { printf "#!/bin/sh\n" >"$tools/make"; chmod +x "$tools/make"; }'
ln -s "$(command -v chmod)" "$tools/chmod"
demo || fail "./run does not wait for the lock of apt"
grep -qx 'swarm runs' "$folder/log" || fail "./run demo did not run the program"
grep -q 'installing with apt-get: make' "$folder/log" || fail "./run does not say what it installs"
[ "$(grep -c 'holds the lock of apt; waiting' "$folder/log")" -eq 2 ] || fail "./run does not say that it waits"
cat >"$folder/expected" <<'CALLS'
apt-get update -qq
5
apt-get update -qq
5
apt-get update -qq
apt-get install -y -qq --no-install-recommends --no-remove make
5
apt-get install -y -qq --no-install-recommends --no-remove make
5
apt-get install -y -qq --no-install-recommends --no-remove make
CALLS
cmp "$folder/expected" "$calls" || { cp "$calls" "$folder/log"; fail "./run calls apt-get in another way"; }
: >"$calls"
demo || fail "./run demo fails although nothing is missing"
[ ! -s "$calls" ] || fail "./run calls apt-get although nothing is missing"

# Other failures of apt-get are no reason to wait. Those of 'update' are said, and those of 'install' end the command.
rm "$tools/make"
make_tool apt-get 'echo "apt-get $1" >>"$calls"' 'echo "E: no network"' 'exit 100'
! demo || fail "./run demo runs although apt-get fails"
grep -q 'continuing with the lists' "$folder/log" || fail "./run does not say that the update failed"
grep -q 'E: no network' "$folder/log" || fail "./run keeps the messages of apt-get to itself"
printf 'apt-get update\napt-get install\n' | cmp - "$calls" || fail "./run calls apt-get again after a failure"

# Without root and sudo, apt-get is not called.
: >"$calls"
make_tool id 'echo 1000'
! demo || fail "./run demo runs without make"
grep -q 'as root: apt-get install make$' "$folder/log" || fail "./run does not say what root must do"
[ ! -s "$calls" ] || fail "./run calls apt-get without being root"
