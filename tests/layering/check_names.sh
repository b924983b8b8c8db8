#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# check_names.sh [TREE]: names of types, enumerators, macros and files are unique in the library. Fails and prints
# both places if two files of include/quern, core, sched, kit and inspect have the same name, or define the same struct, union,
# enum, typedef, enumerator or macro. Static functions may share a name.
#
# No duplicates are: a macro call in an enum, which expands to the enumerators of a table; a typedef and a tag of one
# name for the same type, the same typedef of an incomplete type in several headers, and alternatives of one macro
# in one file (#if and #else).
set -eu

root=${1:-$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd -P)}
cd "$root"

files=$(find include/quern core sched kit inspect -name '*.[ch]' 2>/dev/null | sort) || true
[ -n "$files" ] || { echo "no sources found"; exit 1; }

# shellcheck disable=SC2086 # names of source files have no spaces
exec awk '
# Registers a definition. Reports it if the name has one already, unless both are alternatives of a macro.
function define(kind, name) {
    if (!(name in places)) {
        places[name] = FILENAME ":" FNR
        kinds[name] = kind
        files[name] = FILENAME
    } else if (kind != "macro" || kinds[name] != "macro" || files[name] != FILENAME) {
        printf "%s:%d: %s %s is defined at %s, too (%s)\n", FILENAME, FNR, kind, name, places[name], kinds[name]
        failed = 1
    }
}

# Returns the name that the typedef in `text` (without "typedef" and ";", bodies replaced by "{}") declares.
function typedef_name(text) {
    sub(/^[^{]*[{][}]/, "", text)
    sub(/__attribute__.*/, "", text)
    if (match(text, /^[^(]*[(] *[*] *[A-Za-z_0-9]+/)) text = substr(text, RSTART, RLENGTH)
    sub(/[[].*/, "", text)
    sub(/ *$/, "", text)
    if (text ~ /[)]$/) sub(/ *[(].*/, "", text)
    sub(/.*[^A-Za-z_0-9]/, "", text)
    return text
}

# Registers a finished typedef. "typedef struct NAME {...} NAME" is the definition of one type, which its tag has
# registered, and "typedef struct NAME NAME" names a type that is defined elsewhere.
function end_typedef(    name) {
    name = typedef_name(declaration)
    if (name != tag) define("typedef", name)
    in_typedef = 0
}

function read_token(token) {
    if (token == "{") {
        depth++
        if (opener == "enum") enum_depth = depth
        if (opener != "" && tag_name != "") define(opener, tag_name)
        expects_enumerator = opener == "enum"
        opener = ""
        if (in_typedef && depth == typedef_depth + 1) declaration = declaration "{}"
        return
    }
    if (token == "}") {
        if (depth == enum_depth) enum_depth = -1
        expects_enumerator = 0
        depth--
        return
    }
    if (enum_depth == depth) {
        if (token == "(" || token == ")") parentheses += token == "(" ? 1 : -1
        else if (token == "," && parentheses == 0) expects_enumerator = 1
        else if (expects_enumerator && parentheses == 0 && line !~ /^ *[(]/) {
            define("enumerator", token)
            expects_enumerator = 0
        }
        return
    }
    if (token == "typedef") {
        in_typedef = 1
        typedef_depth = depth
        declaration = tag = ""
        return
    }
    if (in_typedef && depth == typedef_depth) {
        if (token == ";") end_typedef()
        else declaration = declaration " " token
    }
    if (token == "struct" || token == "union" || token == "enum") {
        opener = token
        tag_name = ""
    } else if (opener != "") {
        if (token !~ /^[A-Za-z_]/ || tag_name != "") opener = ""
        else {
            tag_name = token
            if (in_typedef && depth == typedef_depth && tag == "") tag = token
        }
    }
}

BEGIN {
    for (i = 1; i < ARGC; i++) {
        name = ARGV[i]
        sub(/.*\//, "", name)
        if (name in paths) {
            print ARGV[i] ": " paths[name] " has the same file name"
            failed = 1
        } else paths[name] = ARGV[i]
    }
}
FNR == 1 {
    depth = parentheses = in_comment = continues = in_typedef = 0
    enum_depth = -1
    opener = ""
}
{
    line = $0
    gsub(/"([^"\\]|\\.)*"/, "0", line)
    gsub(/\047([^\047\\]|\\.)*\047/, "0", line)
    if (in_comment) {
        if (!match(line, /\*\//)) next
        line = substr(line, RSTART + 2)
        in_comment = 0
    }
    while ((begin = index(line, "/*")) != 0) {
        end = index(substr(line, begin + 2), "*/")
        if (end == 0) {
            in_comment = 1
            line = substr(line, 1, begin - 1)
        } else line = substr(line, 1, begin - 1) " " substr(line, begin + end + 3)
    }
    sub(/\/\/.*/, "", line)
    if (continues || line ~ /^ *#/) {
        if (!continues && match(line, /^ *# *define +[A-Za-z_0-9]+/)) {
            name = substr(line, RSTART, RLENGTH)
            sub(/.* /, "", name)
            define("macro", name)
        }
        continues = line ~ /\\$/
        next
    }
    while (match(line, /[A-Za-z_0-9]+|[^ \tA-Za-z_0-9]/)) {
        token = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        read_token(token)
    }
}
END { exit failed }
' $files
