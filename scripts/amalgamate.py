#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: amalgamate.py FOLDER

Writes the whole library as two files, FOLDER/quern.c and FOLDER/quern.h. Compile quern.c as C11 with your program
(cc -std=c11 -pthread game.c quern.c -lm); -DQUERN_CHECKS=1 turns on the checks. The header has all public headers of
include/quern except those of the benchmark and of C++; it is C11, C++17 and C++20.

Types, enumerators and macros of the library have unique names (tests/layering/check_names.sh). Static functions and
variables have not: where two files use a name, or a system's header declares it, the name of the file is appended.
"""

import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
LICENCE = "/* SPDX-License-Identifier: MIT\n * Copyright (c) 2026 The Quern authors */\n"
LEFT_OUT = {"bench.h"}
SYSTEM_NAMES = {"close", "index", "link", "map", "pause", "raise", "read", "remove", "select", "signal", "sync", "time", "write"}
INCLUDE = re.compile(r'^#include (["<])([^">]+)[">].*$', re.M)
TOKEN = re.compile(r'/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*|->|[^\s\w]', re.S)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read().replace(LICENCE, "", 1)


def public_header():
    """All public headers, each once, where it is included first."""
    seen = set()

    def text_of(name):
        if name in seen:
            return ""
        seen.add(name)
        return INCLUDE.sub(lambda include: text_of(include.group(2)) if include.group(2).startswith("quern/")
                           else include.group(), read("include/" + name))

    names = sorted(os.listdir(os.path.join(ROOT, "include/quern")))
    text = "".join(text_of("quern/" + name) for name in names if name.endswith(".h") and name not in LEFT_OUT)
    return LICENCE + "/* Quern in one header, made by scripts/amalgamate.py. */\n#ifndef QUERN_ONE_H\n#define QUERN_ONE_H\n" \
        + re.sub(r"\n{3,}", "\n\n", text) + "\n#endif\n"


def sources():
    """The sources of the library. Those of the platform are last: headers of systems define many names."""
    found = []
    for room in ("core", "sched"):
        for folder, _, files in os.walk(os.path.join(ROOT, room)):
            found += [os.path.relpath(os.path.join(folder, file), ROOT) for file in files if file.endswith(".c")]
    return sorted(found, key=lambda path: (path.startswith("core/platform/"), "windows" in path, path))


def top_level(text):
    """The text without comments, directives and what is in braces."""
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^#(?:[^\n\\]|\\.|\\\n)*", "", text, flags=re.M)
    depth, kept = 0, []
    for piece in re.split(r'("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[{}])', text):
        if piece == "{":
            depth += 1
        elif piece == "}":
            depth -= 1
            if depth == 0:
                kept.append("{}")
        elif depth == 0:
            kept.append(piece)
    return "".join(kept)


def static_names(text):
    """Names of static functions and variables at file scope."""
    top = re.sub(r"(__attribute__|QUERN__\w+)\((?:[^()]|\([^()]*\))*\)", " ", top_level(text))
    top = re.sub(r"\b(static[\w\s]*)\b(?:struct|union|enum)(\s+\w+)?\s*\{\}", r"\1 int", top)
    names = set()
    for match in re.finditer(r"(?:^|[;}\s])(?:static|QUERN__ALWAYS_INLINE|SPECIALIZED)\b([^;{=]*)", top):
        declared = re.sub(r"\[[^]]*\]", "", match.group(1))
        function = re.search(r"(\w+)\s*\(", re.sub(r"\(\s*\*\s*(\w+)\s*\)", r"\1 ", declared))
        last = re.findall(r"\w+", declared)
        if function:
            names.add(function.group(1))
        elif last:
            names.add(last[-1])
    return names - {"inline", "const", "struct"}


def renamed(text, names, suffix):
    """Appends the suffix to the names, except to members: behind a point or an arrow, and in the bodies of structs."""
    out, position, previous, depth, struct_depths, opens_struct = [], 0, "", 0, [], False
    for match in TOKEN.finditer(text):
        token = match.group()
        if token[0] in "/\"'" and len(token) > 1:
            continue
        if token in ("struct", "union"):
            opens_struct = True
        elif token == "{":
            depth += 1
            if opens_struct:
                struct_depths.append(depth)
            opens_struct = False
        elif token == "}":
            if struct_depths and struct_depths[-1] == depth:
                struct_depths.pop()
            depth -= 1
        elif token in (";", ")", "(", "=", "*", ","):
            opens_struct = False
        if token in names and previous not in (".", "->") and not struct_depths:
            out += [text[position:match.end()], suffix]
            position = match.end()
        previous = token
    return "".join(out) + text[position:]


def library():
    paths = sources()
    texts = {path: read(path) for path in paths}
    homes = {}
    for path in paths:
        for name in static_names(texts[path]):
            homes.setdefault(name, []).append(path)
    types = {name for text in texts.values() for name in re.findall(r"\{\}\s*(\w+)\s*;", top_level(text))}
    shared = {name for name, files in homes.items() if len(files) > 1 or name in SYSTEM_NAMES | types}
    seen, parts = set(), []

    def inline(text):
        """Replaces includes by the headers, each once."""
        def header(include):
            if include.group(1) == "<":
                return "" if include.group(2).startswith("quern/") else include.group()
            if include.group(2) in seen:
                return ""
            seen.add(include.group(2))
            return inline(read(include.group(2)))
        return INCLUDE.sub(header, text)

    for path in paths:
        text = texts[path]
        own = {name for name in shared if path in homes[name]}
        head = "".join(inline(include.group() + "\n") for include in INCLUDE.finditer(text) if include.group(1) == '"')
        body = INCLUDE.sub(lambda include: "" if include.group(1) == '"' or include.group(2).startswith("quern/")
                           else include.group(), text)
        body = renamed(body, own, "_in_" + os.path.basename(path)[:-2])
        macros = sorted(set(re.findall(r"^ *# *define +(\w+)", body, re.M)) - {"WIN32_LEAN_AND_MEAN"})
        parts.append("\n/* ---- %s */\n%s%s\n%s" % (path, head, body, "".join("#undef %s\n" % name for name in macros)))
    return LICENCE + "/* Quern in one file, made by scripts/amalgamate.py. */\n" \
        + "#if defined(__cplusplus) || !defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L\n" \
        + "#error \"quern.c is C11: compile it with a C compiler and -std=c11 (MSVC: /std:c11); C++ includes quern.h\"\n#endif\n" \
        + "#if defined(__linux__) && !defined(_GNU_SOURCE)\n#define _GNU_SOURCE\n#endif\n#include \"quern.h\"\n" \
        + re.sub(r"\n{3,}", "\n\n", "".join(parts))


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.exit(__doc__)
    os.makedirs(arguments[0], exist_ok=True)
    for name, text in (("quern.h", public_header()), ("quern.c", library())):
        with open(os.path.join(arguments[0], name), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main(sys.argv[1:])
