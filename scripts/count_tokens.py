#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""count_tokens.py FILE ... [--function NAME]: number of C or C++ tokens in each file, without comments.

A token is an identifier, a number, a string, a character or an operator, and the name of an included file. With
--function, only the definition of that function counts, from its first token to the closing brace."""

import argparse
import re

TOKEN = re.compile(r"""
    (?P<comment>//[^\n]*|/\*.*?\*/)
  | (?P<include>(?<=include)\s*<[^>\n]*>)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<word>[A-Za-z_]\w*)
  | (?P<number>\.?\d(?:[\w.]|[eEpP][+-])*)
  | (?P<operator>\.\.\.|<<=|>>=|->\*?|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|::|[^\s\w])
""", re.VERBOSE | re.DOTALL)


def tokens_of(text):
    return [match.group().strip() for match in TOKEN.finditer(text) if match.lastgroup != "comment"]


def function_of(tokens, name):
    """Returns the tokens of the definition: from the last ';' or '}' before the name to the matching '}'."""
    for position, token in enumerate(tokens):
        if token != name:
            continue
        first = position
        while first > 0 and tokens[first - 1] not in ";}" and not tokens[first - 1].startswith("<"):
            first -= 1
        depth, end = 0, position
        while end < len(tokens):
            depth += tokens[end] == "{"
            depth -= tokens[end] == "}"
            end += 1
            if tokens[end - 1] == "}" and depth == 0:
                return tokens[first:end]
            if tokens[end - 1] == ";" and depth == 0:
                break
    raise SystemExit(f"count_tokens.py: no definition of {name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--function", metavar="NAME")
    arguments = parser.parse_args()
    for name in arguments.files:
        with open(name, encoding="utf-8") as file:
            tokens = tokens_of(file.read())
        if arguments.function:
            tokens = function_of(tokens, arguments.function)
        print(f"{len(tokens):6} {name}")


if __name__ == "__main__":
    main()
