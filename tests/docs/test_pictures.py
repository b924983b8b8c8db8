#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that the pictures in docs/images agree with the texts from which they are generated."""

import html
import os
import re
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
IMAGES = os.path.join(ROOT, "docs/images")
sys.path.insert(0, IMAGES)

import concepts  # noqa: E402
import frame  # noqa: E402
import ranks  # noqa: E402
import rooms  # noqa: E402


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def shown(svg):
    """Returns the rooms and arrows of a picture by Graphviz, read from its titles."""
    titles = [html.unescape(title) for title in re.findall(r'class="(?:node|edge)">\n<title>(.*?)</title>', svg)]
    arrows = {tuple(title.split("->")) for title in titles if "->" in title}
    return {title for title in titles if "->" not in title}, arrows


class Pictures(unittest.TestCase):
    def test_rooms_and_arrows_are_those_of_rooms_txt(self):
        declared = rooms.read_rooms(read(rooms.ROOMS))
        self.assertGreater(len(declared), 20)
        names, arrows = shown(read(IMAGES, "rooms.svg"))
        self.assertEqual(names, set(declared))
        self.assertEqual(arrows, rooms.shown_arrows(declared))

    def test_arrow_that_follows_from_others_is_left_out(self):
        declared = rooms.read_rooms("a # the lowest\nb a\nc a b\n")
        self.assertEqual(declared, {"a": [], "b": ["a"], "c": ["a", "b"]})
        self.assertEqual(rooms.shown_arrows(declared), {("b", "a"), ("c", "b")})

    def test_frame_is_drawn_from_its_tables(self):
        self.assertEqual(read(IMAGES, "frame.svg"), frame.draw())

    def test_ranks_are_drawn_from_the_table_of_their_page(self):
        self.assertEqual(read(IMAGES, "ranks.svg"), ranks.draw(read(ROOT, "docs/machines.md")))

    def test_concepts_are_drawn_by_their_script(self):
        self.assertEqual(len(concepts.PICTURES), 6)
        for name, draw in concepts.PICTURES.items():
            self.assertEqual(read(IMAGES, f"{name}.svg"), draw())


if __name__ == "__main__":
    unittest.main()
