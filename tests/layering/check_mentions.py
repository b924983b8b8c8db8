#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Checks that functions, types, members and files that comments and pages mention exist.

Usage: check_mentions.py [ROOT]. Prints each mention of a missing name and exits with 1 if there is one.

1. In comments of C and C++ sources: a word with '_' is a word of some source outside of comments, or the name of a file
   or folder without its ending. Part of a name counts: `_set` (an end), `quern__row_` (a beginning), and a constant
   without its prefix, `NO_ENTITY`. Lines of code in comments, which are indented by four blanks or more, are no mentions.
2. In pages (Markdown): a name quern__... or QUERN__... is a word of some source.
3. In both: the name of a source file below a folder of this project (`core/base/text.c`) is a file of it; in comments
   also a name without a folder (`text.c`).
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOPS = ("bench", "cmake", "core", "docs", "examples", "include", "inspect", "kit", "sched", "scripts", "tests")
SKIPPED = {"third_party", "standin", "msvc_stub", "node_modules", "build"}
SOURCES = (".c", ".h", ".hpp", ".cpp")
OTHERS = (".py", ".sh", ".cmake", ".txt", ".in", ".js", ".json")
PARTS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
NAME = re.compile(r"(?<![\w/.-])\w*_\w*(?![\w.]*\.(?:c|h|hpp|cpp|py|sh|cmake|txt|md|html)\b)")
INTERNAL = re.compile(r"\b(?:quern|QUERN)__\w+")
FILE = re.compile(r"(?<![\w/.<-])((?:[\w-]+/)*)([\w-]+\.(?:c|h|hpp))\b")
CODE_LINE = re.compile(r"^[ \t]*(?:\*|//)? {4,}\S.*$", re.M)
# Names of systems and libraries, of files that users make, and placeholders.
FOREIGN = {"MADV_COLLAPSE", "ENABLE_VIRTUAL_TERMINAL_PROCESSING", "io_uring", "MPI_Init", "platform_SYSTEM", "my_bench",
           "quern_bench_build", "__1", "rollback_every", "INIT_ONCE", "CONDITION_VARIABLE", "pthread", "futex",
           "NAME", "NAME_internal", "quern__noun_verb", "MODE_COLUMNSxBYTES_PERCENT", "test_NAME", "stress_NAME", "fuzz_NAME"}


def read_sources(root):
    """Returns the texts by path."""
    texts = {}
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) & set(TOPS) if folder == root else set(folders) - SKIPPED)
        for name in sorted(names):
            if name.endswith(SOURCES + OTHERS + (".md",)):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    texts[os.path.relpath(path, root)] = file.read()
    return texts


class Known:
    def __init__(self, texts):
        self.words, self.files, self.folders = set(), set(), set()
        for path, text in texts.items():
            folder, name = os.path.split(path)
            self.files.add(name)
            self.folders.update(folder.split(os.sep))
            if path.endswith(SOURCES):
                text = PARTS.sub(lambda part: " " if part[0][0] == "/" else part[0], text)
            if not path.endswith(".md"):
                self.words.update(re.findall(r"\w+", text))
        self.paths = set(texts)
        stems = {name.split(".")[0] for name in self.files}
        self.words |= stems | self.folders | {stem[5:] for stem in stems if stem.startswith("test_")}
        self.ends, self.beginnings = set(), set()
        for word in self.words:
            for match in re.finditer("_+", word):
                self.ends |= {word[match.start():], word[match.end():]}
                self.beginnings |= {word[:match.end()], word[:match.start() + 1]}

    def has_name(self, name):
        return (name in self.words or name in FOREIGN or name.strip("_") == "" or name in self.beginnings or
                (name[0] == "_" or name.isupper()) and name in self.ends)

    def has_file(self, folder, name, mentioner):
        if name.split(".")[0] in FOREIGN or folder.split("/")[0] not in TOPS + ("",):
            return True
        return name in self.files and (not folder or folder + name in self.paths or
                                       os.path.join(os.path.dirname(mentioner), folder + name) in self.paths)


def mentions_of(path, text):
    """Yields the offset and the text of each part that mentions names."""
    if path.endswith(".md"):
        yield 0, text
    elif path.endswith(SOURCES):
        for part in PARTS.finditer(text):
            if part[0][0] == "/":
                yield part.start(), CODE_LINE.sub(lambda line: " " * len(line[0]), part[0])


def check(root):
    texts, faults = read_sources(root), []
    known = Known(texts)
    for path, text in texts.items():
        is_page = path.endswith(".md")
        for start, part in mentions_of(path, text):
            missing = [(m.start(), m[0]) for m in (INTERNAL if is_page else NAME).finditer(part) if not known.has_name(m[0])]
            missing += [(m.start(), m[0]) for m in FILE.finditer(part)
                        if (m[1] or not is_page) and not known.has_file(m[1], m[2], path)]
            faults += [f"{path}:{text.count(chr(10), 0, start + at) + 1}: '{name}' does not exist: mention what has replaced it"
                       for at, name in sorted(missing)]
    return faults


def main():
    faults = check(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "../.."))
    print("\n".join(faults) if faults else "check_mentions: all mentioned names exist")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
