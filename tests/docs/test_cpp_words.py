#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that each public function of C has a word in the headers of C++, or a line in docs/cpp.md with the reason."""

import glob
import os
import re
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
FUNCTION = re.compile(r"(?:QUERN_API|static inline)\b[^;{]*?\b(quern_[a-z0-9]\w*)\s*\(")
SECTION = "## Functions of C without a word"
ROW = re.compile(r"^\| ((?:`quern_\w+`(?:, )?)+) \| (.+) \|$", re.M)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def code(text):
    """Returns code without comments."""
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))


def functions_of(header):
    """Returns the functions that a header declares or defines; those of its macros do not count."""
    without_macros = re.sub(r"(?m)^[ \t]*#(?:.*\\\n)*.*$", "", code(header))
    return list(dict.fromkeys(FUNCTION.findall(without_macros)))


def words_of(header):
    return set(re.findall(r"\bquern_[a-z0-9]\w*", code(header)))


def listed(page):
    """Returns the pairs of function and reason in the section of a page."""
    return [(name, row[2]) for row in ROW.finditer(page.partition(SECTION)[2])
            for name in re.findall(r"`([^`]+)`", row[1])]


def mistakes(functions, words, lines):
    """Returns what is wrong with a list of functions, the words, and the lines for functions without one."""
    names = [name for name, _ in lines]
    found = [f"{name} has no word in C++, and no line in docs/cpp.md" for name in functions
             if name not in words and name not in names]
    found += [f"{name} in docs/cpp.md is no function" for name in names if name not in functions]
    found += [f"{name} has a word, and a line in docs/cpp.md" for name in names if name in words]
    found += [f"{name} has two lines in docs/cpp.md" for name in set(names) if names.count(name) > 1]
    return found + [f"{name} has no reason in docs/cpp.md" for name, reason in lines if len(reason.split()) < 2]


class TestScript(unittest.TestCase):
    def test_functions_are_found(self):
        header = """
            #define QUERN_X(y) \\
                static inline quern_in_macro(y)
            /* QUERN_API void quern_in_comment(void); */
            QUERN_API quern_result quern_a_b(quern_world *world,
                                             int x);
            static inline bool quern_c(quern_d d) { return quern_e(d); }
            QUERN_API void quern__internal(void);"""
        self.assertEqual(functions_of(header), ["quern_a_b", "quern_c"])
        self.assertEqual(words_of("/* quern_a */ f(quern_b, quern__c); // quern_d"), {"quern_b"})
        self.assertEqual(listed(f"| `quern_x` | y z |\n{SECTION}\n| `quern_a`, `quern_b` | use c |\n| x | y |"),
                         [("quern_a", "use c"), ("quern_b", "use c")])

    def test_mistakes_are_found(self):
        functions = ["quern_a", "quern_b", "quern_c"]
        self.assertEqual(mistakes(functions, {"quern_a", "quern_b"}, [("quern_c", "use d")]), [])
        self.assertEqual(mistakes(functions, {"quern_a"}, [("quern_c", "use d")]),
                         ["quern_b has no word in C++, and no line in docs/cpp.md"])
        lines = [("quern_a", "use d"), ("quern_d", "use d"), ("quern_c", "-"), ("quern_c", "use d")]
        found = mistakes(functions, {"quern_a", "quern_b"}, lines)
        self.assertEqual([line.split()[:3] for line in found],
                         [["quern_d", "in", "docs/cpp.md"], ["quern_a", "has", "a"], ["quern_c", "has", "two"],
                          ["quern_c", "has", "no"]])


class TestWords(unittest.TestCase):
    def test_each_function_has_a_word_or_a_reason(self):
        functions = [function for path in sorted(glob.glob(os.path.join(ROOT, "include/quern/*.h")))
                     for function in functions_of(read(path))]
        self.assertGreater(len(functions), 350)
        words = set().union(*(words_of(read(path)) for path in glob.glob(os.path.join(ROOT, "include/quern/*.hpp"))))
        found = mistakes(functions, words, listed(read("docs/cpp.md")))
        self.assertEqual(found, [], "\n".join(found))

    def test_the_kit_has_words_for_all_but_arithmetic(self):
        for name, pure in (("background", set()), ("grid", {"quern_grid_cell_along"}), ("states", set()),
                           ("transform", None)):
            words = words_of(read(f"kit/{name}.hpp"))
            missing = [function for function in functions_of(read(f"kit/{name}.h")) if function not in words]
            if pure is None:  # functions of places need no world, and are called as they are
                missing = [function for function in missing if not re.match(r"quern_(local|world)[23]_", function)]
            self.assertEqual(set(missing), pure or set(), name)


if __name__ == "__main__":
    unittest.main()
