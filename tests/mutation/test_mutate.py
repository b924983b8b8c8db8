#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that mutate.py finds each kind of mutant in code, and none in comments, strings and declarations, and that a
program with all mutants of a file runs the one that it is told to, and that rooms find their tests."""

import os
import shlex
import subprocess
import tempfile
import types
import unittest

from mutate import Test, Workshop, file_mutants, table, tests_of, with_line, with_switches

SOURCE = """\
static const int limit = 4 - 1;

static bool is_first(const struct list *list, int value)
{
    /* a < b && c == d */
    int count = list->count;
    if (count == 0) return false;
    while (list->next != NULL &&
           value > 1) {
        list_advance(list);
        count++;
    }
    list->seen |= 1u << value;
    log_text("x == y", count - 1,
             value);
    if (value) {
        list->last = value;
        continue;
    }
    return count;
}
"""


def mutants_of(number):
    return {(operator, text.strip()) for _, line, operator, text in file_mutants("a.c", SOURCE) if line == number}


class Mutants(unittest.TestCase):
    def test_outside_of_functions_nothing_changes(self):
        self.assertEqual(mutants_of(1), set())
        self.assertEqual(mutants_of(3), set())

    def test_comments_and_declarations_stay(self):
        self.assertEqual(mutants_of(5), set())
        self.assertEqual(mutants_of(6), set())

    def test_condition_on_one_line(self):
        expected = {
            ("== to !=", "if (count != 0) return false;"),
            ("negate the condition", "if (!(count == 0)) return false;"),
            ("drop the statement", "if (count == 0) {}"),
        }
        self.assertEqual(mutants_of(7), expected)

    def test_condition_over_two_lines(self):
        expected = {
            ("!= to ==", "while (list->next == NULL &&"),
        }
        self.assertEqual(mutants_of(8), expected)
        self.assertEqual(mutants_of(9), {("> to >=", "value >= 1) {")})

    def test_statements(self):
        self.assertEqual(mutants_of(10), {("drop the statement", ";")})
        self.assertEqual(mutants_of(11), {("step the other way", "count--;")})
        expected = {("drop the statement", ";"), ("forget the old value", "list->seen = 1u << value;")}
        self.assertEqual(mutants_of(13), expected)
        self.assertEqual(mutants_of(17), {("drop the statement", ";")})
        self.assertEqual(mutants_of(18), {("drop the continue", ";")})

    def test_strings_stay_and_half_statements_are_not_dropped(self):
        self.assertEqual(mutants_of(14), {("drop the one", 'log_text("x == y", count,')})
        self.assertEqual(mutants_of(15), set())

    def test_braced_condition(self):
        self.assertEqual(mutants_of(16), {("negate the condition", "if (!(value)) {")})


PROGRAM = """\
#include <stdio.h>

static int clamp(int value)
{
    if (value < 0) return 0;
    value = value + 1;
    return value;
}

int main(void)
{
    int sum = 0;
    for (int i = -2; i < 3; i++)
        sum += clamp(i);
    printf("%d\\n", sum);
    return 0;
}
"""


class Switches(unittest.TestCase):
    def test_each_number_runs_one_mutant(self):
        wanted = [
            ("a.c", 5, "negate the condition", "    if (!(value < 0)) return 0;"),
            ("a.c", 6, "drop the statement", "    ;"),
            ("a.c", 13, "< to <=", "    for (int i = -2; i <= 3; i++)"),
        ]
        known = list(file_mutants("a.c", PROGRAM))
        for mutant in wanted:
            self.assertIn(mutant, known)
        text, owners = with_switches(PROGRAM, list(enumerate(wanted, 1)))
        rows = text.split("\n")
        self.assertEqual([owners[rows.index(mutant[3])] for mutant in wanted], [1, 2, 3])
        self.assertEqual(owners[rows.index("    if (value < 0) return 0;", rows.index("} else"))], 2)
        with tempfile.TemporaryDirectory() as folder:
            source, program = os.path.join(folder, "a.c"), os.path.join(folder, "a")
            # A test may include several sources with mutants.
            other = os.path.join(folder, "b.c")
            for path, content in ((source, text), (other, with_switches("int one = 1;\n", [])[0])):
                with open(path, "w", encoding="utf-8") as file:
                    file.write(content)
            compiler = shlex.split(os.environ.get("CC", "cc"))
            subprocess.run(compiler + ["-include", other, source, "-o", program], check=True)
            printed = []
            for number in range(5):
                done = subprocess.run([program], env={"QUERN_MUTANT": str(number)}, capture_output=True, text=True)
                printed.append(int(done.stdout))
        self.assertEqual(printed, [6, -1, 3, 10, 6])

    def test_methods_have_switches_but_constant_expressions_have_none(self):
        header = """\
class counter {
  public:
    int sum(int value) const { return value + 1; }
    void add()
    {
        count_++;
    }

    constexpr bool is_one(int value) const { return value == 1; }
    int count_ = 0;
};
"""
        switched = {}
        for mutant in file_mutants("a.hpp", header):
            rows = with_switches(header, [(7, mutant)])[0].split("\n")
            begin = rows.index("if (quern__mutant == 7) {") if "if (quern__mutant == 7) {" in rows else len(rows)
            switched[mutant[1]] = rows[begin:]
        self.assertEqual(sorted(switched), [3, 6, 9])
        self.assertEqual(switched[3][1:6], [" return value; ", "} else", "{", " return value + 1; ", "}"])
        self.assertEqual(switched[6][1:6], ["        count_--;", "} else", "{", "        count_++;", "}"])
        self.assertEqual(switched[9], [])

    def test_one_mutant_changes_one_line(self):
        mutant = ("a.c", 6, "drop the statement", "    ;")
        self.assertEqual(with_line(PROGRAM, mutant), PROGRAM.replace("    value = value + 1;", "    ;"))


class Rooms(unittest.TestCase):
    def pattern_of(self, name, pattern=""):
        with tempfile.TemporaryDirectory() as root:
            for path in ("core/trees", "inspect", "tests/core/trees/deep"):
                os.makedirs(os.path.join(root, path))
            tests = ("tests/core/trees/test_tree.c", "tests/core/trees/scene.c")
            for path in ("core/trees/tree.c", "inspect/frame.c") + tests:
                open(os.path.join(root, path), "w", encoding="utf-8").close()
            open(os.path.join(root, "tests/core/trees/deep/test_deep.c"), "w", encoding="utf-8").close()
            return tests_of(",".join(os.path.join(root, part) for part in name.split(",")), pattern, root)

    def test_a_room_has_the_tests_of_its_folder(self):
        self.assertEqual(self.pattern_of("core/trees"), "^(test_deep|test_tree)$")
        self.assertEqual(self.pattern_of("core/trees/tree.c"), "^(test_deep|test_tree)$")

    def test_other_tests_are_listed_or_chosen(self):
        self.assertEqual(self.pattern_of("inspect"), "^inspect_answers$")
        self.assertEqual(self.pattern_of("inspect/frame.c"), "^inspect_answers$")
        self.assertEqual(self.pattern_of("core/trees", "event"), "event")
        self.assertEqual(self.pattern_of("inspect,inspect/frame.c"), "^inspect_answers$")

    def test_a_room_without_tests_is_refused(self):
        with self.assertRaises(SystemExit) as refused:
            self.pattern_of("core/plants")
        self.assertIn("there are no tests in tests/core/plants", str(refused.exception))

    def test_the_table_counts_what_counts(self):
        room = types.SimpleNamespace(name="core/trees", tried=lambda: 9, noticed=8, survivors=["one"], same=2)
        self.assertEqual(table([room])[2:], ["| core/trees | 9 | 8 | 1 | 2 |"])


class Runs(unittest.TestCase):
    """Programs of a shell stand for tests: each runs a script, which knows the number of the mutant."""

    def failing_test(self, number, **scripts):
        options = types.SimpleNamespace(preset="none", jobs=2, timeout=1)
        workshop = Workshop.__new__(Workshop)
        workshop.options, workshop.tree = options, tempfile.gettempdir()
        skips = [{"name": "SKIP_RETURN_CODE", "value": 77}]
        entries = [{"name": name, "command": ["sh", "-c", text], "properties": skips} for name, text in scripts.items()]
        return workshop.failing_test([Test(entry, options) for entry in entries], number)

    def test_the_test_that_fails_is_named(self):
        self.assertEqual(self.failing_test(3, passes="true", notices="test $QUERN_MUTANT != 3"), "notices")
        self.assertIsNone(self.failing_test(0, passes="true", notices="test $QUERN_MUTANT != 3", skipped="exit 77"))

    def test_no_test_starts_after_one_has_failed(self):
        with tempfile.TemporaryDirectory() as folder:
            late = f"touch {folder}/late"
            self.assertEqual(self.failing_test(1, first="false", waits="sleep 5", late=late), "first")
            self.assertEqual(os.listdir(folder), [])

    def test_a_test_that_does_not_end_has_failed(self):
        self.assertEqual(self.failing_test(1, loops="while true; do sleep 0.1; done"), "loops, out of time")


if __name__ == "__main__":
    unittest.main()
