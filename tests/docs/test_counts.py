#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that pages show the numbers of tokens that the scripts count, and what counts as ceremony."""

import glob
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
MOST_CEREMONY = 30  # percent of the tokens of the game's callbacks

CALLBACKS = """
/* Ceremony: head 13, braces 2, column 13 but for its type and name (3), count 8, loop 14. Not: 8. */
static void old(quern_context *context, const quern_view *view)
{
    Place *places = QUERN_COLUMN(view, 0, Place);
    const uint32_t count = view->count;
    for (uint32_t i = 0; i < count; i++) places[i].x++;
}

/* Ceremony: head 10 but for type and name (2), braces 2, loop 4. Not: 8. */
QUERN_SYSTEM(new, (Place, places))
{
    QUERN_ROWS(i) places[i].x++;
}

/* Ceremony: head 8, braces 2, commands 9, check 3. Not: 7. */
static void end(quern_context *context)
{
    quern_commands *commands = quern_context_commands(context);
    check(quern_commands_destroy(commands, hero));
}

static void helper(int number)
{
    number++;
}
"""


def output_of(script, *arguments):
    command = [sys.executable, "-B", os.path.join(ROOT, "scripts", script), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def page(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def ceremony_of(*files):
    """Returns (name, ceremony, tokens, share, strict share) of each callback, and of all of them."""
    rows = [line.split(maxsplit=6) for line in output_of("count_ceremony.py", *files).splitlines()[1:]]
    return [(row[6], int(row[0]), int(row[1]), int(row[2]), int(row[4])) for row in rows]


class Counts(unittest.TestCase):
    def test_tokens_of_hello_are_those_of_the_pages(self):
        counted = output_of("count_tokens.py", "examples/hello.cpp", "examples/hello.c")
        cpp, c = [line.split()[0] for line in counted.splitlines()]
        self.assertIn(f"the program above has {cpp};", page("docs/cpp.md"))
        self.assertIn(f"(shorthand.md#costs) has {c}.", page("docs/cpp.md"))
        self.assertIn(f"| the program in the README ([in C++](cpp.md): {cpp}) | 407 | {c} |", page("docs/shorthand.md"))

    def test_tokens_of_the_market_are_those_of_the_page(self):
        counted = output_of("count_tokens.py", "examples/cpp/market.cpp", "examples/market.c")
        cpp, c = [int(line.split()[0]) for line in counted.splitlines()]
        text = " ".join(page("docs/cpp.md").split())
        self.assertIn(f"has {cpp} tokens, and [the same in C](../examples/market.c), with the same hash, {c}.", text)
        self.assertLess(cpp, 0.6 * c)

    def test_ceremony_of_the_game_is_that_of_the_page(self):
        *callbacks, (name, _, tokens, share, strict) = ceremony_of(*sorted(glob.glob(ROOT + "/examples/keep/game/*.c")))
        text = page("docs/shorthand.md")
        self.assertEqual(name, f"{len(callbacks)} callbacks")
        self.assertIn(f"all {len(callbacks)} of the systems of [the game](game.md), with {tokens} tokens", text)
        self.assertIn(f"| {share} % | {strict} % |", text)
        self.assertLessEqual(share, MOST_CEREMONY)

    def test_what_counts_as_ceremony(self):
        with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
            file.write(CALLBACKS)
            file.flush()
            found = {name: (ceremony, tokens) for name, ceremony, tokens, _, _ in ceremony_of(file.name)}
        self.assertEqual(found["old"], (47, 58))
        self.assertEqual(found["new"], (14, 24))
        self.assertEqual(found["end"], (22, 29))
        self.assertEqual(len(found), 4)


if __name__ == "__main__":
    unittest.main()
