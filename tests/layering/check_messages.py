#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Checks the error texts and log texts in the sources of the library: call or system, subject, cause, remedy.

Usage: check_messages.py [ROOT]. Prints each text that breaks a rule and exits with 1 if there is one.

1. A text names its call: it begins with "%s: ", "quern_" or "QUERN_". Other texts need a function that adds the call
   (quern__in_call, for example) on the way to each public function.
2. A text has none of the words of FORBIDDEN and does not end with a period.
3. A text separates its parts by ':' or ';' after the call. messages.txt lists the texts that need no second part.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REPORTERS = r"\b(?:quern__fail|quern__refuse|quern__report_violation|quern__log|quern_error_set)\("
ADDERS = re.compile(r"\b(?:quern__in_call|quern__message_add_call|quern__scope_refuse|quern__refuse|quern__commands_fail|"
                    r"run_call|refuse_handle|quern__context_refuse_handle|in_module)\b")
FORBIDDEN = re.compile(r"\b(?:who|whoever|whom|whose|nobody|somebody|anybody|everybody|besides|likewise|lives|is told|"
                       r"parted)\b", re.IGNORECASE)
CALL = re.compile(r"(?:%s|quern_\w+|QUERN_\w+)(?:: |$)")
LITERAL = r'"((?:[^"\\]|\\.)*)"'
WHITE = r"[ \n]*"
RETURNS_CALLBACKS = {"quern_hardware_source_default", "quern_live_create"}  # the functions that use its callbacks add the call
REPEATED = {"check_handles"}  # if it fails on a fast path, the call is repeated on the slow path, which adds its name
SUBJECT = re.compile(r"(?:a frame|(?:component|system|world) (?:%u|'))")  # of a report that no call caused


def blank(pattern, text):
    """Replaces each match by white space of the same length, so that offsets and lines stay valid."""
    return re.sub(pattern, lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.S | re.M)


def closing(text, start):
    """Returns the offset behind the parenthesis or brace that closes the one before `start`."""
    depth = 1
    for match in re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[(){}]').finditer(text, start):
        depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(match.group(), 0)
        if depth == 0:
            return match.end()
    return len(text)


class Function:
    def __init__(self, path, name, start, body, is_static):
        self.path, self.name, self.start, self.body, self.is_static = path, name, start, body, is_static
        self.adds_call = ADDERS.search(body) is not None


def functions_of(path, text):
    """Yields the functions of a C file in this project's layout: braces of bodies stand in the first column."""
    for match in re.finditer(r"^\{", text, re.M):
        head_start = max(text.rfind("\n\n", 0, match.start()), text.rfind("\n}", 0, match.start()), 0)
        head = blank(r"^#.*$", text[head_start:match.start()])
        name = re.search(r"\((\w+)\)\(", head) or re.search(
            r"\b(\w+)" + WHITE + r"\(", re.sub(r"QUERN__\w+\([^)]*\)", "", head))
        if name:
            end = closing(text, match.end())
            yield Function(path, name.group(1), match.start(), text[match.end():end], "static " in head)


def texts_of(text, macros):
    """Yields the offset and the format of each error text and log text. `macros`: literals by the names of macros."""
    for match in re.finditer(REPORTERS, text):
        arguments = text[match.end():closing(text, match.end())]
        found = re.search(r"%s(?:%s(?:%s|\b[A-Z]\w+))*" % (LITERAL, WHITE, LITERAL), arguments)
        if found:
            parts = re.findall(LITERAL + r"|(\b[A-Z]\w+)", found.group())
            yield match.start(), "".join(macros.get(macro, "u") if macro else part for part, macro in parts)


def sources(root):
    for room in ("core", "sched", "kit", "inspect"):
        for folder, _, files in sorted(os.walk(os.path.join(root, room))):
            for file in sorted(files):
                if file.endswith((".c", ".h")):
                    path = os.path.join(folder, file)
                    with open(path, encoding="utf-8") as opened:
                        yield os.path.relpath(path, root), blank(r"/\*.*?\*/", opened.read())


def unnamed_way(function, callers):
    """Returns the names of the functions that lead from a public function to this one without adding a call.
    `callers`: the functions by the words in their bodies."""
    waiting, seen = [(function, ())], set()
    while waiting:
        here, way = waiting.pop()
        if id(here) in seen or here.adds_call or here.name in RETURNS_CALLBACKS | REPEATED:
            continue
        seen.add(id(here))
        way = (here.name,) + way
        if re.match(r"quern_[^_]", here.name):
            return way
        for caller in callers.get(here.name, ()):
            if not here.is_static or here.path.endswith(".h") or caller.path == here.path:
                waiting.append((caller, way))
    return None


def rest_of(text):
    """Returns a text without its call."""
    call = CALL.match(text)
    return text[call.end():] if call else text


def fault_of(text, allowed):
    """Returns what is wrong with the words of a text, or None."""
    word = FORBIDDEN.search(text)
    if word:
        return "contains '%s'" % word.group()
    if text.endswith("."):
        return "ends with a period"
    if not re.search("[:;]", rest_of(text)) and not any(each.match(text) for each in allowed):
        return "has no cause or remedy: add one behind ':' or ';', or list it in messages.txt"
    return None


def read_allowed(path):
    """Reads lines of a regular expression and, after a tab, the reason why its texts need no second part."""
    allowed = []
    with open(path, encoding="utf-8") as file:
        for line in file.read().splitlines():
            if line and not line.startswith("#"):
                pattern, reason = line.split("\t")
                assert reason.strip(), "%s: no reason is given for '%s'" % (path, pattern)
                allowed.append(re.compile(pattern))
    return allowed


def check(root, allowed):
    """Returns the faults as lines, and the number of texts."""
    files = list(sources(root))
    functions = [function for path, text in files for function in functions_of(path, text)]
    callers = {}
    for function in functions:
        for word in set(re.findall(r"\b[a-z_]\w*", function.body)):
            callers.setdefault(word, []).append(function)
    macros = {name: value for _, text in files
              for name, value in re.findall(r"#define (\w+)[ \\\n]+" + LITERAL, text)}
    faults, count, used = [], 0, set()
    for path, text in files:
        for start, words in texts_of(text, macros):
            count += 1
            line = "%s:%u: '%s'" % (path, text.count("\n", 0, start) + 1, words)
            used.update(each.pattern for each in allowed if each.match(words))
            if words == "%s":
                continue
            fault = fault_of(words, allowed)
            if fault:
                faults.append("%s %s" % (line, fault))
            if not CALL.match(words):
                owner = [each for each in functions
                         if each.path == path and each.start < start < each.start + len(each.body) + 2]
                is_report = re.match("quern__(?:log|report)", text[start:]) and SUBJECT.match(words)
                way = unnamed_way(owner[0], callers) if owner and not is_report else None
                if way:
                    faults.append("%s does not name its call: %s" % (line, " -> ".join(way)))
    unused = ["messages.txt: no text matches '%s'" % each.pattern for each in allowed if each.pattern not in used]
    return faults + unused, count


def main():
    faults, count = check(sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "../.."),
                          read_allowed(os.path.join(HERE, "messages.txt")))
    for fault in faults:
        print(fault)
    if count == 0:
        print("no texts found")
    return 1 if faults or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
