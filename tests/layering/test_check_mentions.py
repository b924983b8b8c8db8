#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that check_mentions.py reports missing names in comments and pages, and accepts those that exist."""

import os
import tempfile
import unittest

import check_mentions

CODE = "void quern__list_add(void);\nenum { QUERN__LIST_IS_FULL };\n"


class Mentions(unittest.TestCase):
    def check(self, comment="", page=""):
        with tempfile.TemporaryDirectory() as root:
            for path, text in (("core/base/list_block.h", f"/* {comment} */\n{CODE}"), ("docs/design.md", page)):
                os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            return check_mentions.check(root)

    def test_names_that_exist(self):
        for text in ("quern__list_add", "quern__list_... calls", "the ends of _add", "LIST_IS_FULL", "list_block", "list_block.h",
                     "core/base/list_block.h", "<system/list.h>"):
            self.assertEqual(self.check(comment=text), [])

    def test_lines_of_code(self):
        self.assertEqual(self.check(comment="Example:\n *\n *     my_own(list);\n *"), [])

    def test_missing_names_in_comments(self):
        for text in ("quern__list_close", "list_close", "quern__row_", "_close", "IS_EMPTY", "list_map.h", "core/list_block.h"):
            (fault,) = self.check(comment="\n * See " + text)
            self.assertIn("core/base/list_block.h:2: '" + text, fault)

    def test_pages(self):
        self.assertEqual(self.check(page="A list (`quern__list_add`, `core/base/list_block.h`) of your `my_type` in `main.c`"), [])
        (fault,) = self.check(page="\n\n`quern__list_close`")
        self.assertIn("docs/design.md:3:", fault)
        (fault,) = self.check(page="See `core/base/list.c`.")
        self.assertIn("core/base/list.c", fault)


if __name__ == "__main__":
    unittest.main()
