#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that mutate.py finds each kind of mutant in code, and none in comments, strings and declarations."""

import unittest

from mutate import file_mutants

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


if __name__ == "__main__":
    unittest.main()
