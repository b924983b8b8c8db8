#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: ranks.py MACHINES_MD FILE

Draws the prediction for many ranks from its table in docs/machines.md as an SVG file. tests/docs/test_pictures.py checks
that the committed file is the result.
"""

import sys

import concepts

HEAD = "| ranks | ghosts of a rank | frame | exchanges | network | sum | efficiency | simulated |"
PARTS = (("frame", concepts.BLUE), ("exchanges", concepts.ORANGE), ("network", concepts.GREEN))
LEFT, TOP, BASE, STEP, WIDTH = 60, 60, 260, 104, 64


def read_table(page):
    """The rows of the table: ranks, the times of the parts, and the simulated time or None, in milliseconds per frame."""
    lines = page[page.index(HEAD):].split("\n")[2:]
    rows = []
    for row in lines[:next(i for i, row in enumerate(lines) if not row.startswith("|"))]:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        rows.append((int(cells[0]), [float(cell) for cell in cells[2:5]], float(cells[7]) if cells[7] else None))
    return rows


def draw(page):
    rows = read_table(page)
    most = max(max(sum(times), simulated or 0) for _, times, simulated in rows)
    scale = (BASE - TOP) / most
    parts = [concepts.text(20, 24, "prediction: milliseconds per frame, with 10,000 agents on each rank", 13, weight="bold")]
    for number, (ranks, times, simulated) in enumerate(rows):
        x, y = LEFT + STEP * number, BASE
        for time, (_, colour) in zip(times, PARTS):
            y -= time * scale
            parts.append(concepts.box(x, y, WIDTH, time * scale, colour))
        parts.append(concepts.text(x + WIDTH / 2, y - 6, f"{sum(times):.1f}", 11, "middle"))
        parts.append(concepts.text(x + WIDTH / 2, BASE + 18, f"{ranks:,} rank{'s' if ranks > 1 else ''}", 12, "middle"))
        if simulated is not None:
            height = BASE - simulated * scale
            parts.append(f'<circle cx="{x + WIDTH + 12:g}" cy="{height:g}" r="5" fill="#333333"/>')
            parts.append(concepts.text(x + WIDTH + 12, height - 9, f"{simulated:.1f}", 11, "middle"))
    parts.append(concepts.line(LEFT - 10, BASE, LEFT + STEP * len(rows) - 10, BASE, arrow=False))
    x = LEFT
    for name, colour in PARTS:
        parts += [concepts.box(x, BASE + 34, 18, 14, colour), concepts.text(x + 24, BASE + 46, f"{name}, by the model")]
        x += 190
    parts += [f'<circle cx="{x + 8:g}" cy="{BASE + 41:g}" r="5" fill="#333333"/>', concepts.text(x + 20, BASE + 46, "simulated")]
    return concepts.picture(LEFT + STEP * len(rows) + 10, BASE + 64, parts)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as source, open(sys.argv[2], "w", encoding="utf-8") as target:
        target.write(draw(source.read()))
