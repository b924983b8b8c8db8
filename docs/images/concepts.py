#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: concepts.py FOLDER

Draws the pictures of docs/concepts.md as SVG files: world, chunk, run, command, levels and history. The functions
below are the pictures. tests/docs/test_pictures.py checks that the committed files are their results.
"""

import html
import os
import sys

BLUE, ORANGE, GREEN, PURPLE, GREY, RED, WHITE = "#bcd6ee", "#f8d3a8", "#c5e3b5", "#e3c9ea", "#e4e4e4", "#f4b6b6", "#ffffff"


def text(x, y, words, size=12, anchor="start", weight="normal"):
    words = html.escape(words, quote=False)
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


def box(x, y, width, height, fill, words="", size=12):
    shape = f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" stroke="#555555"/>'
    return shape + ("\n" + text(x + width / 2, y + height / 2 + 4, words, size, "middle") if words else "")


def line(x1, y1, x2, y2, arrow=True):
    end = ' marker-end="url(#arrow)"' if arrow else ""
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="#333333" stroke-width="1.5"{end}/>'


def picture(width, height, parts):
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica,Arial,sans-serif">\n'
        '<defs><marker id="arrow" markerWidth="9" markerHeight="9" refX="8" refY="4" orient="auto">'
        '<path d="M0,0 L9,4 L0,8 z" fill="#333333"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n'
    )
    return head + "\n".join(parts) + "\n</svg>\n"


def world():
    parts = [text(20, 24, "records: one per handle", 13, weight="bold"), text(330, 24, "archetypes and their chunks", 13, weight="bold")]
    for number, (name, row) in enumerate((("slot 0", "row 0"), ("slot 1", "row 1"), ("slot 2", "row 0"), ("slot 3", "free"), ("slot 4", "row 2"))):
        parts.append(box(20, 38 + 30 * number, 60, 26, GREY, name))
        parts.append(box(80, 38 + 30 * number, 130, 26, WHITE, f"generation, {row}" if row != "free" else "generation, free", 11))
    kinds = (("Position, Velocity", BLUE, 3), ("Position, Velocity, Burning", ORANGE, 1), ("Position, Health", GREEN, 2))
    for number, (name, colour, chunks) in enumerate(kinds):
        y = 38 + 58 * number
        parts.append(text(330, y + 12, name))
        parts += [box(330 + 90 * chunk, y + 18, 84, 28, colour, "16 KiB") for chunk in range(chunks)]
    for slot, y in ((0, 70), (1, 70), (2, 128), (4, 70)):
        parts.append(line(210, 51 + 30 * slot, 326, y))
    parts.append(text(20, 224, "Adding Burning to an entity moves its row from the first archetype to the second. Its handle stays the same."))
    return picture(720, 238, parts)


def chunk():
    parts = [text(20, 24, "one chunk: 16 KiB, aligned to 16 KiB", 13, weight="bold")]
    columns = (("unused", GREY, 64, "64 bytes"), ("Position", BLUE, 180, "x y | x y | x y | …"), ("Velocity", ORANGE, 180, "x y | x y | x y | …"),
               ("Health", GREEN, 90, "p | p | p | …"), ("handles", PURPLE, 150, "e | e | e | …"))
    x = 20
    for name, colour, width, inside in columns:
        parts.append(box(x, 54, width, 44, colour, inside, 11))
        parts.append(text(x + width / 2, 48, name, 12, "middle"))
        x += width
    parts.append(text(20, 124, "A system that moves gets a view: two pointers and a number of rows. It never loads Health into a cache."))
    parts += [box(84, 136, 180, 26, BLUE, "Position *position"), box(264, 136, 180, 26, ORANGE, "const Velocity *velocity"),
              box(444, 136, 90, 26, WHITE, "count")]
    return picture(720, 178, parts)


def run():
    parts = [text(20, 24, "one run of a large archetype: 16 chunks, 256 KiB, aligned to 256 KiB", 13, weight="bold"),
             text(42, 48, "unused", 12, "middle"), box(20, 54, 44, 44, GREY)]
    x = 64
    for name, colour, width, pointer in (("Position", BLUE, 51, "position"), ("Velocity", ORANGE, 51, "velocity"), ("Health", GREEN, 26, ""), ("handles", PURPLE, 32, "entities")):
        parts.append(text(x + 2 * width, 48, name, 12, "middle"))
        parts += [box(x + number * width, 54, width, 44, colour, chunk, 11) for number, chunk in enumerate(("0", "1", "…", "15"))]
        parts += [line(x + 1.5 * width, 98, x + 1.5 * width, 134), text(x + 1.5 * width, 148, pointer, 11, "middle")] if pointer else []
        x += 4 * width
    parts += [text(20, 176, "A view of chunk 1 has pointers into the arrays of the run. A loop over many chunks reads one long stream per component."),
              text(20, 194, "A small archetype has runs of one chunk. When it has 16 chunks, its rows move to runs of 16; when it has 256, to runs of 128.")]
    return picture(720, 208, parts)


def command():
    parts = [text(20, 24, "while systems run", 13, weight="bold"), text(300, 24, "sync point: no system runs", 13, weight="bold")]
    for number, (worker, words) in enumerate((("worker 0", "create A, set B"), ("worker 1", "destroy C"), ("worker 2", "add to B, destroy C"))):
        y = 40 + 44 * number
        parts += [text(20, y + 20, worker), box(90, y, 150, 30, BLUE, words), line(240, y + 15, 296, 100)]
    steps = (("gather", "in the order of\nsystems and rows"), ("merge", "one result\nper entity"), ("resolve", "drop what is\nfor dead ones"), ("apply", "move rows, create,\ndestroy"))
    for number, (name, words) in enumerate(steps):
        x = 300 + 106 * number
        parts.append(box(x, 80, 88, 40, ORANGE, name))
        parts += [text(x + 44, 138 + 15 * row, part, 11, "middle") for row, part in enumerate(words.split("\n"))]
        if number < 3:
            parts.append(line(x + 88, 100, x + 104, 100))
    parts += [box(618, 24, 88, 34, GREEN, "reactions"), line(662, 80, 662, 60), text(20, 190, "Two workers destroy C: the first command counts, the second is dropped, whichever thread was faster.")]
    return picture(730, 204, parts)


def levels():
    parts = [text(20, 24, "a hierarchy", 13, weight="bold"), text(400, 24, "its rows: one archetype per level", 13, weight="bold")]
    nodes = {"car": (170, 60), "wheel 1": (80, 130), "wheel 2": (170, 130), "gun": (260, 130), "barrel": (260, 200)}
    for child, parent in (("wheel 1", "car"), ("wheel 2", "car"), ("gun", "car"), ("barrel", "gun")):
        parts.append(line(nodes[child][0], nodes[child][1] - 16, nodes[parent][0], nodes[parent][1] + 16))
    for name, (x, y) in nodes.items():
        colour = BLUE if y == 60 else ORANGE if y == 130 else GREEN
        parts.append(box(x - 38, y - 16, 76, 32, colour, name))
    rows = ((44, BLUE, ("car", "car", "car")), (114, ORANGE, ("wheel 1", "wheel 2", "gun", "wheel 1")), (184, GREEN, ("barrel", "barrel")))
    for depth, (y, colour, names) in enumerate(rows):
        parts.append(text(330, y + 20, f"depth {depth}"))
        parts += [box(400 + 74 * n, y, 72, 32, colour, name, 11) for n, name in enumerate(names)]
        if depth:
            parts.append(line(436, y - 4, 436, y - 34))
    parts.append(text(20, 248, "A system with .levels goes from depth 0 on. All cars share rows: a link is a value and splits no archetype."))
    return picture(730, 262, parts)


def history():
    parts = [text(20, 24, "pages of the world", 13, weight="bold")]
    written = ((1, 1, 1, 1, 1), (0, 1, 0, 0, 0), (0, 1, 0, 1, 0), (0, 0, 0, 0, 1))
    for frame, pages in enumerate(written):
        y = 40 + 40 * frame
        parts.append(text(20, y + 20, f"frame {frame}"))
        for page, is_new in enumerate(pages):
            x = 100 + 100 * page
            parts.append(box(x, y, 84, 30, ORANGE if is_new else WHITE, f"copy {frame}" if is_new else "shared", 11))
            if not is_new:
                parts.append(line(x + 70, y, x + 70, y - 9))
    parts += [box(620, 40, 18, 14, ORANGE), text(644, 52, "written"), box(620, 64, 18, 14, WHITE), text(644, 76, "as before"),
              text(20, 222, "Saving a frame copies only what was written since the last one. Restoring copies only what differs.")]
    return picture(720, 236, parts)


PICTURES = {"world": world, "chunk": chunk, "run": run, "command": command, "levels": levels, "history": history}

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        with open(os.path.join(sys.argv[1], f"{name}.svg"), "w", encoding="utf-8") as file:
            file.write(draw())
