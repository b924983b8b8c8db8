#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that each section of a page with measured figures names the machine and the command or workload, or links the
section that does. A section also has what its parent sections say before their first subsection."""

import glob
import os
import re
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
FIGURE = re.compile(
    r"(?<![\w.])\.?\d[\d,.]* ?(?:ns|us|ms)\b|(?<![\w.])\d[\d,]* (?:million )?instructions\b|\b\d[\d.]* times (?:as|the time)"
)
# Counts of instructions do not depend on the machine.
MACHINE = re.compile(r"EPYC|Xeon|[Cc]allgrind|whose model was not noted")
COMMAND = re.compile(r"`(?:\./run|quern_bench|swarm) |    \./run |    [$] swarm |[Cc]allgrind|[Ww]orkloads? `|`jobs_\w+`")
LINK = re.compile(
    r"\]\((?:[./]*(?:docs/)?(?:benchmarks/)?(?:results|peers|grid|method|costs|performance|profiling|start)\.md|#(?:figures|"
    r"random-access|how-it-was-measured)\b)"
)

# Figures that are settings, and sections that say why no command repeats them.
SETTINGS = {("docs/inspector.md", "Rules"), ("docs/jobs.md", "Guarantees"), ("docs/netplay.md", "Netplay")}
NOT_KEPT = re.compile(r"no command repeats")


def sections(text):
    """Yields the title of each section, its own text, and the text of the sections around it."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    above = []
    for piece in re.split(r"^(?=#+ )", text, flags=re.M):
        level = len(re.match(r"#*", piece).group())
        above = [outer for outer in above if outer[0] < level]
        title, _, body = piece.partition("\n") if level else ("", "", piece)
        yield title.strip("# "), body, "\n".join(outer[1] for outer in above)
        above.append((level, body))


def missing_in(own, around):
    """Returns what a section lacks: 'machine', 'command'. Blocks of output do not count as figures."""
    prose = "\n".join(line for line in own.split("\n") if not line.startswith("    "))
    context = own + "\n" + around
    if not FIGURE.search(prose) or LINK.search(context):
        return []
    found = {"machine": MACHINE.search(context), "command": COMMAND.search(context) or NOT_KEPT.search(context)}
    return [what for what, match in found.items() if not match]


class Figures(unittest.TestCase):
    def test_figures_name_machine_and_command(self):
        wrong, settings, count = [], set(), 0
        for page in [os.path.join(ROOT, "README.md"), *glob.glob(os.path.join(ROOT, "docs/**/*.md"), recursive=True)]:
            name = os.path.relpath(page, ROOT)
            with open(page, encoding="utf-8") as file:
                for title, own, around in sections(file.read()):
                    count += bool(FIGURE.search(own))
                    missing = missing_in(own, around)
                    if missing and (name, title) in SETTINGS:
                        settings.add((name, title))
                    elif missing:
                        wrong.append(f"{name}, section '{title}': lacks {' and '.join(missing)}")
        self.assertGreater(count, 35)
        self.assertEqual(wrong, [])
        self.assertEqual(settings, SETTINGS)

    def test_what_a_section_lacks(self):
        self.assertEqual(missing_in("A call takes 12 ns.", ""), ["machine", "command"])
        self.assertEqual(missing_in("It needs 300 instructions.", ""), ["machine", "command"])
        self.assertEqual(missing_in("On an AMD EPYC a call takes 12 ns.", ""), ["command"])
        self.assertEqual(missing_in("12 ns by `./run bench --workload get`", "Two processors of a Xeon."), [])
        self.assertEqual(missing_in("It needs 300 instructions, counted by callgrind.", ""), [])
        self.assertEqual(missing_in("A call takes 12 ns: see [results](benchmarks/results.md#figures).", ""), [])
        self.assertEqual(missing_in("Nothing is measured here.", ""), [])


if __name__ == "__main__":
    unittest.main()
