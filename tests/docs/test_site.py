#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests what ./run docs gives to Doxygen and MkDocs."""

import glob
import os
import re
import sys
import tempfile
import unittest
import unittest.mock

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
sys.path.insert(0, os.path.join(ROOT, "docs/site"))

import reference  # noqa: E402
import site_pages  # noqa: E402

HEADERS = ("include/quern/commands.h", "include/quern/history.h", "include/quern/schedule.h", "kit/grid.h")


class Site(unittest.TestCase):
    def test_functions_have_links_to_users(self):
        for header in HEADERS:
            text = reference.for_site(header)
            functions = [match.group(1) for match in reference.COMMENT.finditer(reference.read(header))]
            self.assertGreater(len(functions), 5)
            self.assertEqual(text.count("@par Used in"), len(functions), header)

    def test_headers_are_groups(self):
        text = reference.for_site("kit/grid.h")
        self.assertEqual(len(re.findall(r"@defgroup kit_grid Kit grid", text)), 1)
        self.assertLess(text.index("@{"), text.index("typedef struct quern_grid_def"))
        self.assertLess(text.index("quern_grid_payload("), text.index("@}"))

    def test_unions_without_a_name_are_their_first_member(self):
        text = reference.for_site("include/quern/list.h")
        self.assertIn("NULL if the list was always empty. */\n    const void *items;\n    uint32_t count;", text)
        self.assertIn("    union {                       \\\n        quern_list list;", text)

    def test_menu_has_every_page(self):
        with open(os.path.join(ROOT, "docs/site/mkdocs.yml"), encoding="utf-8") as file:
            menu = set(re.findall(r": ([\w./-]+[.]md)$", file.read(), re.M))
        pages = {
            os.path.relpath(page, os.path.join(ROOT, "docs"))
            for page in glob.glob(os.path.join(ROOT, "docs/**/*.md"), recursive=True)
        }
        self.assertGreater(len(pages), 40)
        self.assertEqual(pages - menu - {"README.md"}, set())

    def test_index_has_each_text_once(self):
        entries = [("jobs.html", "all"), ("jobs.html#loops", "loops"), ("short.html", "no section")]
        index = {"docs": [{"location": location, "text": text} for location, text in entries]}
        texts = [entry["text"] for entry in site_pages.smaller(index)["docs"]]
        self.assertEqual(texts, ["", "loops", "no section"])

    def test_index_keeps_words_far_down_and_leaves_out_logs(self):
        text = "the beginning " + "of a text " * 200 + "then a rareword at rarewords"
        index = {"docs": [{"location": "page.html", "text": text}, {"location": site_pages.LOGS[0], "text": "a log"}]}
        (entry,) = site_pages.smaller(index)["docs"]
        self.assertTrue(entry["text"].startswith("the beginning"))
        self.assertIn(" rarewords", entry["text"])
        self.assertNotIn("rareword ", entry["text"])
        self.assertLess(len(entry["text"]), len(text))

    def test_reference_has_a_first_page(self):
        page = site_pages.first_page(reference.read("include/quern/quern.h"))
        for header in glob.glob(os.path.join(ROOT, "include/quern/*.h")):
            name = os.path.basename(header)[:-2]
            if name not in ("bench", "quern", "view_parts"):
                self.assertRegex(page, rf"- @ref {name} : \w")
        self.assertIn("- @ref kit_grid : kit", page)
        self.assertNotIn("internal", page)

    def test_pages_and_sources_have_places(self):
        self.assertEqual(site_pages.place_of("README.md"), "index.md")
        self.assertEqual(site_pages.place_of("docs/jobs.md"), "jobs.md")
        self.assertEqual(site_pages.place_of("examples/hello.c"), "source/examples/hello.c.html")
        self.assertEqual(site_pages.place_of("examples/stream"), "source/examples/stream/index.html")
        copy = site_pages.Copy()
        self.assertEqual(copy.link("docs/jobs.md", "../README.md#seven-reasons"), "index.md#seven-reasons")
        self.assertEqual(copy.link("docs/tutorial/input.md", "../../examples/near.c"), "../source/examples/near.c.html")
        self.assertEqual(copy.sources, {"examples/near.c"})

    def test_folder_does_not_replace_pages(self):
        copy = site_pages.Copy()
        copy.files = ["examples/README.md", "examples/near.c"]
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.object(site_pages.write, "__defaults__", (folder,)):
            copy.source("examples")
            with open(os.path.join(folder, "source/examples/index.html"), encoding="utf-8") as file:
                self.assertIn('href="../../examples.html"', file.read())
        self.assertEqual(copy.sources, {"examples/near.c"})


if __name__ == "__main__":
    unittest.main()
