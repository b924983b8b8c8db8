#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Measures how the sources are cut: files, functions, and what a call walks through. Prints tables in Markdown.

    measure_sources.py                              the working tree
    measure_sources.py --at v0.1 --at HEAD          two revisions side by side
    measure_sources.py --paths BUILD --counts BUILD two builds, under valgrind's callgrind

How it counts. The sources are the .c, .h and .hpp files below core/, sched/, include/, kit/ and inspect/; a room is a
folder of core/ or sched/, or one of the other three.

- A code line is neither blank nor only comment.
- A function begins with `{` and ends with `}` in the first column, as clang-format leaves them. Its length is the
  number of lines between the two.
- A reference is the name outside the function's own body, in the same file, in neither a comment nor a prototype. A
  function has one caller if it is static, in a .c file, and has one reference, which is a call. One reference that is
  no call (the function is in a table, or a callback) is counted apart: its lines cannot stand where it is used. Shares
  are of all functions in .c files.
- A shared function has a name quern__* and a prototype in a header outside include/. Its users are the files that name
  it, without those that declare or define it. `static inline` functions quern__* in headers are counted apart.
- A path is what callgrind sees in one run of a case, after runs that made archetypes and caches: distinct functions of
  the library, and the distinct files that they come from. Use a build without inlining and without QUERN_CHECKS:

    cmake -B build/paths -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG="-g -O0" -DQUERN_CHECKS=OFF
    cmake --build build/paths --target quern_static

- An instruction count is the difference of two runs of a case with different repetitions, for one repetition; the
  least at three heap addresses, since caches with addresses as keys have collisions at some (270 instructions for two
  sync points). Use a release build. The cases are in measure_sources.c.
"""

import argparse
import collections
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TOPS = ("core", "sched", "include", "kit", "inspect")
AIMS = {
    "core + sched: files": "160",
    "all: files": "220",
    "all: code lines": "65,000",
    "core + sched: median code lines of a file": "250",
    "static functions with one caller": "20 %",
    "shared functions with one user": "35 %",
    "deferred_add": "90 in 15",
    "frame": "100 in 15",
}
PATHS = {"deferred_add": "an add by command, and the sync point that plays it", "frame": "a frame of ten systems"}
COUNTS = (("set", "set"), ("get", "get"), ("add_remove", "add and remove"), ("create_destroy", "create and destroy"),
          ("relate", "relate to the same target"), ("frame", "frame of ten systems"),
          ("sync_1", "two sync points, 1 command each"), ("sync_10", "two sync points, 10 commands each"),
          ("sync_300", "two sync points, 300 commands each"))
FEATURES = (("push_pop", "push a number to a list of an entity, and pop it"),
            ("set_same", "set a value that is the same (`quern_entity_set_if_different`)"),
            ("clone", "clone an entity with two values, and destroy the copy"),
            ("clone_tree", "clone a tree of four entities, and destroy the copy"),
            ("clone_100", "100 times clone an entity by command, and destroy the copy by another"),
            ("clone_tree_100", "100 times clone a tree of four by command, and destroy the copy by another"),
            ("get_edge", "get the value of an edge"), ("set_edge", "set the value of an edge"),
            ("get_edge4", "get the value of one of four edges"), ("set_edge4", "set the value of one of four edges"),
            ("hooked", "add and remove a component with entity hooks"),
            ("shared", "get a shared value (`quern_entity_get_shared`)"),
            ("own_stats", "a frame over 10,000 instances with statistics of their own"),
            ("one_kind", "the same with shared statistics, of one kind"),
            ("four_kinds", "the same with four kinds in turn"),
            ("nearest", "find the third ancestor (`quern_entity_nearest`)"),
            ("idle", "a frame of one system that does nothing"),
            ("if_changed", "the same with `if_changed`, nothing changed"),
            ("states", "the same in one of three states"),
            ("background", "a frame with background work, and no request"),
            ("requests", "a frame with 100 pending requests"))
PADS = (0, 4096, 300000)
IGNORED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
SHARED = re.compile(r"\bquern__\w+")
PROTOTYPE = re.compile(r"^(?!static|typedef)\w[\w \t*]*?\(?\b(\w+)\)?\s*\([^;{]*\)[^;{]*;", re.M)
STATIC_PROTOTYPE = re.compile(r"^static [\w \t*]*?\b\w+\([^;{]*\)[^;{]*;", re.M)

Function = collections.namedtuple("Function", "file name is_static first last length")


def fail(message):
    sys.exit(f"measure_sources.py: {message}")


def output_of(command, **options):
    try:
        return subprocess.run(command, check=True, capture_output=True, **options).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        detail = getattr(error, "stderr", None) or b""
        fail(f"'{' '.join(command)}' failed: {error}\n{detail if isinstance(detail, str) else detail.decode()}")


# ------------------------------------------------------------------------------------------- sources


def without_comments(text):
    """The text with empty strings, and without comments, on the same lines."""
    return IGNORED.sub(lambda m: '""' if m[0][0] in "\"'" else " " + "\n" * m[0].count("\n"), text)


def read_sources(root):
    """The texts of the files below TOPS, without comments, by path."""
    texts = {}
    for top in TOPS:
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders.sort()
            for name in sorted(names):
                if name.endswith((".c", ".h", ".hpp")):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8") as file:
                        texts[os.path.relpath(path, root)] = without_comments(file.read())
    if not texts:
        fail(f"{root} has no sources")
    return texts


def name_in(head):
    """The name before the last outer parentheses of a function's head, or None."""
    depth = 0
    for i in range(len(head) - 1, -1, -1):
        depth += (head[i] == ")") - (head[i] == "(")
        if head[i] == "(" and depth == 0:
            match = re.search(r"(\w+)\)?\s*$", head[:i])
            return match and match[1]
    return None


def functions_of(path, text):
    lines, functions = text.split("\n"), []
    for brace, line in enumerate(lines):
        if line.rstrip() != "{":
            continue
        first = brace
        while first > 0 and lines[first - 1].strip() and not re.search(r"^[#}]|;\s*$", lines[first - 1]):
            first -= 1
        head = " ".join(lines[first:brace])
        last = next(i for i in range(brace, len(lines)) if lines[i].startswith("}"))
        name = name_in(head)
        if name is not None:
            functions.append(Function(path, name, "static" in head.split(), first, last, last - brace - 1))
    return functions


def references_in(text, functions):
    """By name of a static function of the file: one bool per reference, whether it is a call."""
    own = {f.name: f for f in functions if f.is_static}
    references = collections.defaultdict(list)
    text = STATIC_PROTOTYPE.sub(lambda m: "\n" * m[0].count("\n"), text)
    for i, line in enumerate(text.split("\n")):
        for match in re.finditer(r"\b\w+\b(\()?", line):
            function = own.get(match[0].rstrip("("))
            if function is not None and not function.first <= i <= function.last:
                references[function.name].append(match[1] is not None)
    return references


def room_of(path):
    parts = path.split(os.sep)
    return "/".join(parts[:2]) if parts[0] in ("core", "sched") else parts[0]


def code_lines(text):
    return sum(1 for line in text.split("\n") if line.strip())


def user_counts(names, homes, texts):
    """How many files outside of `homes` name each of the functions."""
    words = {path: set(SHARED.findall(text)) for path, text in texts.items()}
    return [sum(1 for path in texts if name in words[path] and path not in homes[name]) for name in names]


def share(part, whole):
    return f"{part:,} of {whole:,}, {100 * part / max(whole, 1):.1f} %"


def measure_sources(root):
    """Rows by label; each label is the same for all revisions."""
    texts, rows = read_sources(root), {}
    lines = {path: code_lines(text) for path, text in texts.items()}
    core = [path for path in texts if path.startswith(("core", "sched"))]
    rooms = collections.defaultdict(list)
    for path in texts:
        rooms[room_of(path)].append(path)
    for room, paths in list(rooms.items()) + [("core + sched", core), ("all", list(texts))]:
        rows[f"{room}: files"] = f"{len(paths):,}"
        rows[f"{room}: code lines"] = f"{sum(lines[path] for path in paths):,}"
        rows[f"{room}: median code lines of a file"] = f"{statistics.median(lines[path] for path in paths):g}"

    by_file = {path: functions_of(path, text) for path, text in texts.items()}
    in_c = [f for path, functions in by_file.items() if path.endswith(".c") for f in functions]
    lengths = sorted(f.length for f in in_c)
    rows["functions in .c files"] = f"{len(in_c):,}"
    rows["median / p90 / longest function"] = (
        f"{statistics.median(lengths):g} / {lengths[len(lengths) * 9 // 10]} / {lengths[-1]}")
    called = tabled = 0
    for path, functions in by_file.items():
        if path.endswith(".c"):
            single = [calls[0] for calls in references_in(texts[path], functions).values() if len(calls) == 1]
            called, tabled = called + sum(single), tabled + len(single) - sum(single)
    rows["static functions with one caller"] = share(called, len(in_c))
    rows["static functions with one use, which is no call"] = share(tabled, len(in_c))

    homes, declared, inline = collections.defaultdict(set), set(), set()
    for path, functions in by_file.items():
        is_internal = path.endswith(".h") and not path.startswith("include")
        for f in functions:
            homes[f.name].add(path)
            if is_internal and f.name.startswith("quern__"):
                inline.add(f.name)
        for name in PROTOTYPE.findall(texts[path]) if is_internal else ():
            if name.startswith("quern__"):
                homes[name].add(path)
                declared.add(name)
    for names, label in ((declared - inline, "shared functions"), (inline, "inline functions of headers")):
        counts = user_counts(sorted(names), homes, texts)
        rows[f"{label} with one user"] = share(counts.count(1), len(counts))
    return rows


def measure_revision(revision):
    with tempfile.TemporaryDirectory() as folder:
        archive = os.path.join(folder, "sources.tar")
        output_of(["git", "-C", ROOT, "archive", "-o", archive, revision, "--", *TOPS])
        output_of(["tar", "-xf", archive, "-C", folder])
        return measure_sources(folder)


# -------------------------------------------------------------------------------------------- builds


def compile_cases(build, folder):
    """Compiles measure_sources.c against the static library of a build; returns the program and the source folder."""
    try:
        with open(os.path.join(build, "CMakeCache.txt"), encoding="utf-8") as file:
            root = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", file.read(), re.M)[1]
    except OSError as error:
        fail(f"{build} is no build folder: {error}")
    program = os.path.join(folder, "measure_sources")
    output_of([os.environ.get("CC", "cc"), "-std=gnu11", "-O2", "-g", "-I", os.path.join(root, "include"),
               "-I", os.path.join(build, "kit", "include"), os.path.join(HERE, "measure_sources.c"),
               os.path.join(build, "kit", "libquern_background.a"), os.path.join(build, "kit", "libquern_states.a"),
               os.path.join(build, "libquern.a"), "-pthread", "-lm", "-o", program], text=True)
    return program, root


def callgrind(program, case, count, folder, pad=0):
    out = os.path.join(folder, "callgrind.out")
    output_of(["valgrind", "--tool=callgrind", "--toggle-collect=measured", "--compress-strings=no",
               "--callgrind-out-file=" + out, program, case, str(count), str(pad)], text=True)
    with open(out, encoding="utf-8") as file:
        return file.read()


def measure_paths(build):
    """By case: how many functions and files one run of it walks through."""
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        program, root = compile_cases(build, folder)
        for case in PATHS:
            functions, file_of = set(), None
            for key, value in re.findall(r"^(fl|fi|fe|fn)=(.*)$", callgrind(program, case, 1, folder), re.M):
                if key != "fn":
                    file_of = os.path.relpath(os.path.normpath(value), root)
                if file_of.startswith(("core/", "sched/")):
                    functions.add((file_of, value if key == "fn" else None))
            files = {path for path, _ in functions}
            rows[case] = (f"{sum(1 for _, name in functions if name)} in {len(files)} files, "
                          f"{len({room_of(path) for path in files})} rooms")
    return rows


def measure_counts(build, cases):
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        program, _ = compile_cases(build, folder)
        for case, _ in cases:
            costs = []
            for pad in PADS:
                few, many = (int(re.search(r"^totals: (\d+)", callgrind(program, case, count, folder, pad), re.M)[1])
                             for count in (10, 60))
                costs.append(round((many - few) / 50))
            rows[case] = f"{min(costs):,}"
    return rows


# -------------------------------------------------------------------------------------------- tables


def print_table(title, names, columns, labels, aims=None):
    heads = [title] + names + (["aim"] if aims else [])
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for row, label in labels.items():
        cells = [label] + [column.get(row, "-") for column in columns] + ([aims.get(row, "")] if aims else [])
        print("| " + " | ".join(cells) + " |")
    print()


def print_sources(names, columns):
    rows = list(dict.fromkeys(row for column in columns for row in column))
    rooms = [row[:-len(": files")] for row in rows if row.endswith(": files")]
    by_room = [{room: " / ".join(column.get(f"{room}: {what}", "-") for what in
                                 ("files", "code lines", "median code lines of a file")) for room in rooms}
               for column in columns]
    print_table("room: files / code lines / median", names, by_room, {room: room for room in rooms})
    totals = {row: row for row in rows if row.startswith(("core + sched:", "all:")) or ":" not in row}
    print_table("all sources", names, columns, totals, AIMS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at", action="append", default=[], metavar="REV", help="a git revision, instead of the tree")
    parser.add_argument("--paths", action="append", default=[], metavar="BUILD", help="count functions on two paths")
    parser.add_argument("--counts", action="append", default=[], metavar="BUILD", help="count instructions of calls")
    parser.add_argument("--features", action="append", default=[], metavar="BUILD",
                        help="count instructions of further features")
    parser.add_argument("--json", metavar="FILE", help="also write all figures to a file")
    arguments = parser.parse_args()
    sources = {at: measure_revision(at) for at in arguments.at}
    if not (sources or arguments.paths or arguments.counts or arguments.features):
        sources = {"working tree": measure_sources(ROOT)}
    paths = {build: measure_paths(os.path.abspath(build)) for build in arguments.paths}
    counts = {build: measure_counts(os.path.abspath(build), COUNTS) for build in arguments.counts}
    features = {build: measure_counts(os.path.abspath(build), FEATURES) for build in arguments.features}
    if sources:
        print_sources(list(sources), list(sources.values()))
    if paths:
        print_table("functions on the path of", list(paths), list(paths.values()), PATHS, AIMS)
    if counts:
        print_table("instructions", list(counts), list(counts.values()), dict(COUNTS))
    if features:
        print_table("instructions", list(features), list(features.values()), dict(FEATURES))
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"sources": sources, "paths": paths, "counts": counts, "features": features}, file, indent=1)


if __name__ == "__main__":
    main()
