#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""count_ceremony.py FILE ... : share of ceremony in the callbacks of systems in C files, in tokens.

A callback is a function with the parameters (quern_context *, const quern_view *) or (quern_context *), or one that
QUERN_SYSTEM defines. Tokens are those of count_tokens.py. Ceremony is what a callback writes for the library and not
for the game:

1. the head, and the braces of the body,
2. declarations of what is only fetched: columns, resources, events, user data, commands, emitters, handles of types,
   the time step, the number of rows, and iterators,
3. casts to void of parameters that are not used,
4. heads of loops over rows, ranges of rows, and events,
5. calls that fetch one of these within another expression, and the parentheses of a check of a result.

Everything else is the game's own, also calls of the library that do something: emit, destroy, set, look up. Types and
names of data (columns, events, resources, user data) are the game's own, too: each function has to name what it works
on. The column "strict" counts them as ceremony."""

import argparse
import re

from count_tokens import tokens_of

FETCHES = {
    "QUERN_COLUMN", "QUERN_COLUMN_ROWS", "QUERN_UP", "QUERN_EVENTS", "QUERN_RESOURCE", "quern_context_user_data",
    "quern_context_resource", "quern_context_resource_write", "quern_context_commands", "quern_context_emitter",
    "quern_context_world", "quern_context_delta_seconds", "quern_context_events", "quern_context_partial",
    "quern_context_partial_count", "quern_context_partial_at", "quern_context_grid"}
DATA = {"QUERN_COLUMN", "QUERN_COLUMN_ROWS", "QUERN_UP", "QUERN_EVENTS", "QUERN_RESOURCE", "quern_context_user_data",
        "quern_context_resource", "quern_context_resource_write", "quern_context_partial", "quern_context_partial_at"}
LOOPS = {"quern_view_next_range", "quern_event_next"}
CHECKS = {"check", "QUERN_MUST"}
ITERATORS = {"quern_row_range", "quern_event_iterator"}
ROWS = re.compile(r"; \w+ < (?:count|view -> count|(?:\w+ \. first \+ )?\w+ \. (?:block \. )?count) ;")
HEAD = re.compile(r"^static void (\w+) \( quern_context \* \w+ (?:, const quern_view \* \w+ )?\) $")


def closing(tokens, start, pair="()"):
    """Returns the position after the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(tokens)):
        depth += (tokens[i] == pair[0]) - (tokens[i] == pair[1])
        if depth == 0:
            return i + 1
    raise SystemExit(f"count_ceremony.py: '{tokens[start]}' is not closed")


def callbacks_of(tokens):
    """Yields the name, the head and the body, without its braces, of each callback."""
    for brace, token in enumerate(tokens):
        if token != "{" or brace == 0 or tokens[brace - 1] != ")":
            continue
        first, depth = brace - 1, 0
        while True:
            depth += (tokens[first] == ")") - (tokens[first] == "(")
            if depth == 0:
                break
            first -= 1
        if tokens[first - 1] == "QUERN_SYSTEM":
            yield tokens[first + 1], tokens[first - 1:brace], tokens[brace + 1:closing(tokens, brace, "{}") - 1]
            continue
        match = HEAD.match(" ".join(tokens[max(first - 3, 0):brace]) + " ")
        if match:
            yield match[1], tokens[first - 3:brace], tokens[brace + 1:closing(tokens, brace, "{}") - 1]


def fetched(tokens):
    """Returns the number of tokens of fetches and checks within an expression."""
    count = i = 0
    while i < len(tokens):
        if tokens[i] in FETCHES and i + 1 < len(tokens) and tokens[i + 1] == "(":
            end = closing(tokens, i + 1)
            count += end - i
            i = end
            continue
        if tokens[i] in CHECKS:
            count += 3
        i += 1
    return count


def is_fetch(statement):
    """Whether a declaration only fetches a value: by a call, or from a member of the user data or the view."""
    text = " ".join(statement)
    if statement[0] in ITERATORS or text.startswith("( void )"):
        return True
    if statement[0] in FETCHES and closing(statement, 1) == len(statement):
        return True
    if "=" not in statement:
        return False
    value = statement[statement.index("=") + 1:]
    if re.fullmatch(r"(& )?\w+ -> (types|count|entities)( \. \w+)?", " ".join(value)):
        return True
    while value and value[0] in ("*", "("):  # a cast
        value = value[1 if value[0] == "*" else closing(value, 0):]
    return len(value) > 1 and value[0] in FETCHES and closing(value, 1) == len(value)


def is_row_loop(head):
    """Whether the head of a loop visits rows, ranges or events: its condition is one of LOOPS, or it counts rows."""
    return bool(LOOPS & set(head) or ROWS.search(" ".join(head)))


def columns_of(head):
    """Returns the number of tokens of types and names of the columns of a QUERN_SYSTEM."""
    count = i = 0
    if head[0] != "QUERN_SYSTEM":
        return 0
    while i < len(head):
        if head[i] == "(" and head[i - 1] == ",":
            end = closing(head, i)
            count += sum(token != "," for token in head[i + 1:end - 1])
            i = end
        else:
            i += 1
    return count


def ceremony_of(body):
    """Returns the number of tokens of ceremony in a body, and how many of them are types and names of data."""
    count = names = i = 0
    while i < len(body):
        if body[i] in ("for", "while"):
            end = closing(body, i + 1)
            head = body[i:end]
            count += len(head) if is_row_loop(head) else fetched(head)
            i = end
        elif body[i] in ("QUERN_ROWS", "QUERN_EACH_ROW", "QUERN_EACH_EVENT"):
            end = closing(body, i + 1)
            count += end - i
            names += 2 * (body[i] == "QUERN_EACH_EVENT")
            i = end
        elif body[i] in "{};" or body[i] in ("else", "do"):
            i += 1
        elif body[i] in ("if", "switch"):
            end = closing(body, i + 1)
            count += fetched(body[i:end])
            i = end
        else:
            end = i
            while end < len(body) and body[end] != ";":
                end = closing(body, end, body[end] + {"(": ")", "{": "}", "[": "]"}[body[end]]) \
                    if body[end] in "({[" else end + 1
            statement = body[i:end]
            count += len(statement) + 1 if is_fetch(statement) else fetched(statement)
            if is_fetch(statement) and DATA & set(statement) and "=" in statement:
                names += statement.index("=")
            i = end + 1
    return count, names


def line(ceremony, strict, all_tokens, what):
    return f"{ceremony:8} {all_tokens:6} {100 * ceremony / all_tokens:4.0f} % {100 * strict / all_tokens:4.0f} % {what}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    sums = [0, 0, 0, 0]
    print("ceremony tokens  share strict callback")
    for name in arguments.files:
        with open(name, encoding="utf-8") as file:
            tokens = tokens_of(file.read())
        for callback, head, body in callbacks_of(tokens):
            strict, names = ceremony_of(body)
            strict, all_tokens = len(head) + 2 + strict, len(head) + 2 + len(body)
            ceremony = strict - names - columns_of(head)
            print(line(ceremony, strict, all_tokens, callback))
            sums = [sums[0] + ceremony, sums[1] + strict, sums[2] + all_tokens, sums[3] + 1]
    if sums[3] > 0:
        print(line(*sums[:3], f"{sums[3]} callbacks"))


if __name__ == "__main__":
    main()
