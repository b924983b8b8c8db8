#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: rooms.py | dot -Tsvg >docs/images/rooms.svg

Writes a graph of the rooms of the library for Graphviz, from tests/layering/rooms.txt. An arrow leads from a room to
a room that it may use. Arrows that follow from other arrows are left out. tests/docs/test_pictures.py checks that the
committed picture shows these rooms and arrows.
"""

import os
import sys

ROOMS = os.path.join(os.path.dirname(__file__), "../../tests/layering/rooms.txt")
COLOURS = {"core": "#dce9f5", "sched": "#fbe5cf", "kit": "#e2efd9", "inspect": "#f3dfee"}


def read_rooms(text):
    """The rooms, each with the rooms that it may use."""
    lines = (line.split("#")[0].split() for line in text.splitlines())
    return {words[0]: words[1:] for words in lines if words}


def used_through(rooms, room):
    """All rooms that a room can reach through others."""
    found, waiting = set(), list(rooms[room])
    while waiting:
        used = waiting.pop()
        if used not in found:
            found.add(used)
            waiting += rooms[used]
    return found


def shown_arrows(rooms):
    """Arrows that do not follow from others, as pairs of rooms."""
    return {
        (room, used)
        for room in rooms
        for used in rooms[room]
        if not any(used in used_through(rooms, other) for other in rooms[room] if other != used)
    }


def dot(rooms):
    lines = [
        "digraph rooms {",
        '  graph [rankdir=TB, nodesep=0.25, ranksep=0.3, bgcolor="white"];',
        '  node [shape=box, style="filled,rounded", fontname="Helvetica,Arial,sans-serif", fontsize=13, '
        'color="#555555", margin="0.14,0.06"];',
        '  edge [color="#555555", arrowsize=0.7];',
    ]
    for room in rooms:
        label = "kit (public headers only)" if room == "kit" else room
        lines.append(f'  "{room}" [label="{label}", fillcolor="{COLOURS[room.split("/")[0]]}"];')
    lines += [f'  "{room}" -> "{used}";' for room, used in sorted(shown_arrows(rooms))]
    return "\n".join(lines + ["}", ""])


if __name__ == "__main__":
    with open(ROOMS, encoding="utf-8") as file:
        sys.stdout.write(dot(read_rooms(file.read())))
