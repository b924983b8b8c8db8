#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that everything named by the pages exists: links, anchors, files, and names that begin with quern."""

import glob
import os
import re
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
FOLDERS = ("core", "sched", "kit", "inspect", "include", "tests", "examples", "bench", "scripts", "cmake")
PAGES = [
    os.path.relpath(page, ROOT)
    for pattern in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "kit/README.md", "examples/README.md", "docs/**/*.md")
    for page in glob.glob(os.path.join(ROOT, pattern), recursive=True)
]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


def without_code(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


def anchors(page):
    """Returns the anchors of a page's headings, as GitHub generates them."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", without_code(read(page)), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def source_words():
    """Returns all words of sources, headers and build files that begin with quern."""
    words = set()
    names = [os.path.join(ROOT, name) for name in ("CMakeLists.txt", "CMakePresets.json", "run")]
    for folder in FOLDERS:
        names += glob.glob(os.path.join(ROOT, folder, "**/*"), recursive=True)
    for name in names:
        if os.path.isfile(name) and not name.endswith((".md", ".png", ".json", ".bin")):
            words.update(re.findall(r"\b(?:quern|QUERN)_\w+", read(name)))
    return words


class Pages(unittest.TestCase):
    def check(self, missing):
        self.assertGreater(len(PAGES), 25)
        self.assertEqual(missing, [])

    def test_links_lead_to_files_and_headings(self):
        missing = []
        for page in PAGES:
            for link in re.findall(r"\]\(([^)\s]+)\)", without_code(read(page))):
                path, _, anchor = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
                if link.startswith("http"):
                    continue
                if not os.path.exists(os.path.join(ROOT, target)):
                    missing.append(f"{page}: {link}")
                elif anchor and target.endswith(".md") and anchor not in anchors(target):
                    missing.append(f"{page}: {link}")
        self.check(missing)

    def test_named_files_exist(self):
        pattern = r"(?<![\w/.-])(?:" + "|".join(FOLDERS) + r")/[\w/]+\.(?:c|h|py|sh|txt|js)\b"
        missing = [
            f"{page}: {path}"
            for page in PAGES
            for path in re.findall(pattern, without_code(read(page)))
            if "NAME" not in path and not os.path.exists(os.path.join(ROOT, path))
        ]
        self.check(missing)

    def test_named_functions_and_macros_exist(self):
        known = source_words()
        missing = [
            f"{page}: {word}"
            for page in PAGES
            for word in sorted(set(re.findall(r"\b(?:quern|QUERN)_\w*\w\b", without_code(read(page)))))
            if word not in known and not word.endswith("noun_verb")
        ]
        self.check(missing)

    def test_examples_are_listed(self):
        text = read("examples/README.md")
        missing = [
            name
            for pattern in ("examples/*.c", "examples/how/*.c", "examples/tutorial/*.c")
            for path in glob.glob(os.path.join(ROOT, pattern))
            for name in [os.path.relpath(path, os.path.join(ROOT, "examples"))]
            if f"]({name})" not in text and name != "tutorial/game.c"
        ]
        self.check(missing)


if __name__ == "__main__":
    unittest.main()
