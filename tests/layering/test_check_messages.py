#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that check_messages.py reports a text for each rule that it breaks, and accepts good texts."""

import os
import re
import tempfile
import unittest

import check_messages

GOOD = "%s: the list is full: remove an element"


def source(text, public="quern_list_add", caller="    return add(list);"):
    """Returns a C file in which a public function calls a static function that fails with the text."""
    return """static quern_result add(quern_list *list)
{
    return quern__fail(QUERN_ERROR_LIMIT, %s,
                       list->name);
}

quern_result %s(quern_list *list)
{
%s
}
""" % (text, public, caller)


class Messages(unittest.TestCase):
    def check(self, code, allowed=()):
        with tempfile.TemporaryDirectory() as root:
            os.makedirs(os.path.join(root, "core/base"))
            with open(os.path.join(root, "core/base/list.c"), "w", encoding="utf-8") as file:
                file.write(code)
            return check_messages.check(root, [re.compile(each) for each in allowed])

    def check_text(self, text, **options):
        return self.check(source('"%s"' % text, **options))[0]

    def test_good_texts(self):
        for text in (GOOD, "quern_list_add: the list is full; remove an element", "QUERN_ADD: no list: make one"):
            self.assertEqual(self.check_text(text), [])

    def test_text_without_its_call(self):
        (fault,) = self.check_text("list '%s' is full: remove an element")
        self.assertIn("core/base/list.c:3:", fault)
        self.assertIn("does not name its call: quern_list_add -> add", fault)

    def test_call_that_a_caller_adds(self):
        text = "list '%s' is full: remove an element"
        self.assertEqual(self.check_text(text, caller='    return quern__in_call(add(list), "quern_list_add");'), [])
        self.assertEqual(self.check_text(text, public="quern__list_add"), [])

    def test_report_that_no_call_caused(self):
        code = source('"%s"' % GOOD) + """
void quern_frame(void)
{
    quern__report_violation(QUERN_ERROR_LIMIT, "SUBJECT '%s' was changed: do not keep pointers", name);
}
"""
        self.assertEqual(self.check(code.replace("SUBJECT", "component"))[0], [])
        self.assertEqual(len(self.check(code.replace("SUBJECT", "a thing"))[0]), 1)

    def test_forbidden_words(self):
        for word in ("who", "Whoever", "nobody", "somebody", "besides", "likewise", "lives", "is told", "parted"):
            (fault,) = self.check_text("%%s: the list %s is full: remove an element" % word)
            self.assertIn("contains '%s'" % word, fault)
        self.assertEqual(self.check_text("%s: the whole list lived: remove departed elements"), [])

    def test_period_at_the_end(self):
        (fault,) = self.check_text("%s: the list is full: remove an element.")
        self.assertIn("ends with a period", fault)

    def test_text_without_cause_and_remedy(self):
        for text in ("%s: the list is full", "quern_list_add: the list '%s' is full"):
            (fault,) = self.check_text(text)
            self.assertIn("has no cause or remedy", fault)

    def test_allowed_texts(self):
        code = source('"%s: no memory for a list"')
        self.assertEqual(self.check(code, ["%s: no memory"]), ([], 1))
        self.assertEqual(self.check(code, ["%s: no memory", "%s: none"])[0], ["messages.txt: no text matches '%s: none'"])

    def test_text_in_several_literals(self):
        for parts in ('"%s: the list is" "\\n full: remove"', '"%s: " LIST_IS_FULL', '"%s: %" PRIu64 " is full: remove"'):
            code = '#define LIST_IS_FULL \\\n    "the list is full: remove"\n\n' + source(parts)
            self.assertEqual(self.check(code), ([], 1))
        self.assertEqual(len(self.check(source('"%s: the list" " is full"'))[0]), 1)

    def test_texts_in_comments_do_not_count(self):
        self.assertEqual(self.check('/* quern__fail(QUERN_ERROR_LIMIT, "nobody.") */\n'), ([], 0))

    def test_each_allowed_text_has_a_reason(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("# comment\n\n%s: no memory\t \n")
            file.flush()
            self.assertRaises(AssertionError, check_messages.read_allowed, file.name)


if __name__ == "__main__":
    unittest.main()
