#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that scripts/generate_bindings.py reads headers with brackets in quotes, and folders and compilers with spaces in their
names, and that it names what it cannot read."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "generate_bindings.py")
COMPILER = shutil.which("cc")


class Headers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="with spaces ")
        os.mkdir(os.path.join(self.folder.name, "quern"))

    def tearDown(self):
        self.folder.cleanup()

    def exports(self, header, compiler=COMPILER):
        """Returns what the script does, and the exported names."""
        with open(os.path.join(self.folder.name, "quern", "own.h"), "w", encoding="utf-8") as file:
            file.write(header)
        output = os.path.join(self.folder.name, "exports")
        done = subprocess.run([sys.executable, "-B", SCRIPT, "exports", "--compiler", compiler, "--include=" + self.folder.name, "--output",
                               output, "quern/own.h"], stderr=subprocess.PIPE, universal_newlines=True, check=False)
        if done.returncode != 0:
            return done.stderr
        with open(output, encoding="utf-8") as file:
            return file.read()

    def test_brackets_in_quotes(self):
        found = self.exports("""static inline char quern_brace(void) { return '{'; }
                                static inline const char *quern_text(void) { return "}\\"{;"; }
                                int quern_last(int number);
                                """)
        for name in ("quern_brace", "quern_text", "quern_last"):
            self.assertIn(name, found)

    def test_a_compiler_with_spaces_in_its_name(self):
        compiler = os.path.join(self.folder.name, "cc")
        os.symlink(COMPILER, compiler)
        self.assertIn("quern_one", self.exports("int quern_one(void);\n", compiler))

    def test_an_unknown_declaration(self):
        found = self.exports("typedef struct quern_odd { int list[sizeof(int)]; } quern_odd;\n")
        self.assertIn("this kind of declaration is unknown: 'typedef struct quern_odd {", found)
        self.assertNotIn("Traceback", found)


if __name__ == "__main__":
    unittest.main()
