#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: text_by_room.py BUILD [MAP]

Prints how many bytes of code, constants and unwind tables each room has in the library of a build folder, largest
first. With MAP, which the linker wrote for a static program (-Wl,-Map=MAP), also what the program has of each room.
"""

import collections
import glob
import os
import re
import subprocess
import sys

KINDS = (("code", r"\.text|\.plt"), ("constants", r"\.rodata|\.data\.rel\.ro"), ("unwind", r"\.eh_frame"))


def kind_of(section):
    for kind, pattern in KINDS:
        if re.match(pattern, section):
            return kind
    return None


def rooms_of_objects(build):
    """Sizes by room, and the room of each object file's name."""
    sizes, homes = collections.defaultdict(collections.Counter), {}
    root = os.path.join(build, "CMakeFiles/quern_objects.dir")
    for path in sorted(glob.glob(root + "/*/*/*.o") + glob.glob(root + "/cmake/without/*.o")):
        room = os.path.relpath(os.path.dirname(path), root)
        homes[os.path.basename(path)] = room
        text = subprocess.run(["size", "-A", path], check=True, capture_output=True, text=True).stdout
        for section, size in re.findall(r"^(\.\S+)\s+(\d+)", text, re.M):
            if kind_of(section):
                sizes[room][kind_of(section)] += int(size)
    return sizes, homes


def rooms_of_map(path, homes):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    text = text[text.index("Linker script and memory map"):]
    sizes = collections.defaultdict(collections.Counter)
    for section, address, size, home in re.findall(
            r"^ (\.\S+)\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) \S*?\(?([^/()\s]+)\)?$", text, re.M):
        if int(address, 16) != 0 and kind_of(section) and home in homes:
            sizes[homes[home]][kind_of(section)] += int(size, 16)
    return sizes


def print_table(title, sizes):
    print("%-18s %8s %8s %9s %8s" % ((title, "total") + tuple(kind for kind, _ in KINDS)))
    for room, parts in sorted(sizes.items(), key=lambda item: -sum(item[1].values())):
        print_row(room, parts)
    print_row("all", sum(sizes.values(), collections.Counter()))


def print_row(name, parts):
    print("%-18s %8d %8d %9d %8d" % ((name, sum(parts.values())) + tuple(parts[kind] for kind, _ in KINDS)))


def main(arguments):
    if len(arguments) not in (1, 2):
        sys.exit(__doc__)
    sizes, homes = rooms_of_objects(arguments[0])
    if not sizes:
        sys.exit("text_by_room.py: %s has no objects of the library; build the target quern_objects there" % arguments[0])
    print_table("library", sizes)
    if len(arguments) == 2:
        print()
        print_table("program", rooms_of_map(arguments[1], homes))


if __name__ == "__main__":
    main(sys.argv[1:])
