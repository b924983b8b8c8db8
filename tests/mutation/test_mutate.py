#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that mutate.py finds each kind of mutant in code, and none in comments, strings and declarations, and that a
program with all mutants of a file runs the one that it is told to."""

import os
import shlex
import subprocess
import tempfile
import unittest

from mutate import file_mutants, with_switches

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
            with open(source, "w", encoding="utf-8") as file:
                file.write(text)
            subprocess.run(shlex.split(os.environ.get("CC", "cc")) + [source, "-o", program], check=True)
            printed = []
            for number in range(5):
                done = subprocess.run([program], env={"QUERN_MUTANT": str(number)}, capture_output=True, text=True)
                printed.append(int(done.stdout))
        self.assertEqual(printed, [6, -1, 3, 10, 6])


if __name__ == "__main__":
    unittest.main()
