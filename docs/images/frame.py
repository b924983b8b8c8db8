#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: frame.py >docs/images/frame.svg

Draws a frame of three workers as SVG: passes and their jobs, sync points and a round of reactions. The tables below are
the picture; times are in arbitrary units. tests/docs/test_pictures.py checks that the committed picture is their result.
"""

import html
import sys

COLOURS = {"1": "#bcd6ee", "2": "#f8d3a8", "3": "#c5e3b5", "4": "#e3c9ea", "sync": "#d9d9d9", "x": "#f4b6b6"}

# Bands above the workers: begin, end, text.
SEGMENTS = [
    (0, 13, "run: a graph of passes"),
    (13, 21, "sync point"),
    (21, 26, "round of reactions"),
    (26, 30, "sync point"),
    (30, 35, "exclusive"),
    (35, 39, "sync point"),
]
PHASES = [(0, 30, "phase 'simulation'"), (30, 39, "phase 'display'")]

# What each worker does: begin, end, colour, text.
WORKERS = [
    [
        (0, 3, "1", "chunk 1"),
        (3, 6, "1", "chunk 4"),
        (6, 9.5, "3", "chunk 1"),
        (9.5, 13, "3", "chunk 5"),
        (13, 15, "sync", "gather"),
        (15, 17, "sync", "merge"),
        (17, 19, "sync", "resolve"),
        (19, 21, "sync", "apply"),
        (21, 24, "4", "rows"),
        (26, 30, "sync", "…"),
        (30, 35, "x", "draw"),
        (35, 39, "sync", "…"),
    ],
    [
        (0, 3, "1", "chunk 2"),
        (3, 6, "1", "chunk 5"),
        (6, 9, "3", "chunk 2"),
        (9, 12, "3", "chunk 4"),
        (15, 17, "sync", "merge"),
        (19, 21, "sync", "apply"),
        (21, 26, "4", "rows"),
    ],
    [
        (0, 3.5, "1", "chunk 3"),
        (3.5, 9, "2", "all chunks"),
        (9, 12.5, "3", "chunk 3"),
        (15, 17, "sync", "merge"),
        (19, 21, "sync", "apply"),
    ],
]
LEGEND = [
    ("1", "pass 1: systems 'fly', 'move' and 'heal', fused: each job calls all three on its chunk"),
    ("2", "pass 2: system 'count' writes a resource, so it is one job; it conflicts with no system of pass 1"),
    ("3", "pass 3: system 'aim' looks up what 'move' writes, so it waits for all of pass 1"),
    ("4", "reactions to what the sync point changed"),
    ("x", "an exclusive system, alone with the world"),
    ("sync", "sync point: commands are applied, and events are published"),
]

LEFT, UNIT, ROW = 86, 23, 34


def box(x, y, width, height, fill, text, size=11):
    label = html.escape(text, quote=False)
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" stroke="#555555"/>\n'
        f'<text x="{x + width / 2:g}" y="{y + height / 2 + 4:g}" font-size="{size}" text-anchor="middle">{label}</text>'
    )


def draw():
    width = LEFT + PHASES[-1][1] * UNIT + 12
    top = 66
    bottom = top + len(WORKERS) * ROW
    height = bottom + 34 + 20 * len(LEGEND)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica,Arial,sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    for y, bands, fill in ((8, PHASES, "#ffffff"), (34, SEGMENTS, "#f3f3f3")):
        lines += [box(LEFT + a * UNIT, y, (b - a) * UNIT, 22, fill, text) for a, b, text in bands]
    for number, jobs in enumerate(WORKERS):
        y = top + number * ROW
        lines.append(f'<text x="8" y="{y + 19}">worker {number}</text>')
        lines += [box(LEFT + a * UNIT, y, (b - a) * UNIT, 28, COLOURS[c], text, 10) for a, b, c, text in jobs]
    lines.append(f'<text x="{LEFT}" y="{bottom + 14}">time →</text>')
    for number, (colour, text) in enumerate(LEGEND):
        y = bottom + 28 + 20 * number
        lines.append(f'<rect x="{LEFT}" y="{y}" width="14" height="14" fill="{COLOURS[colour]}" stroke="#555555"/>')
        lines.append(f'<text x="{LEFT + 22}" y="{y + 12}">{html.escape(text, quote=False)}</text>')
    return "\n".join(lines + ["</svg>", ""])


if __name__ == "__main__":
    sys.stdout.write(draw())
