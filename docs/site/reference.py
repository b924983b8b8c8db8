# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Public headers as Doxygen reads them for the site: the declarations of a header form a group with the header's name, and
the comment of each function ends with links to pages and examples that use it.
"""

import functools
import glob
import os
import re

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
INSIDE = ("docs/design.md", "docs/internals.md", "docs/glossary.md", "docs/benchmarks/results.md",
          "docs/benchmarks/experiments.md")
COMMENT = re.compile(r"/\*\*(?!<)(?:(?!\*/).)*\*/\n(?!typedef)(?=[^;{}]*?\b(quern_\w+)\()", re.S)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def title(page):
    return re.search(r"^# (.*)", read(page), re.M).group(1).strip()


@functools.lru_cache(maxsize=None)
def users(pattern, word):
    """Returns {name: [files, those with most mentions first]} for the files that match the pattern."""
    found = {}
    for path in sorted(glob.glob(os.path.join(ROOT, pattern), recursive=True)):
        name = os.path.relpath(path, ROOT)
        if name not in INSIDE:
            for function in re.findall(word, read(name)):
                found.setdefault(function, {}).setdefault(name, 0)
                found[function][name] += 1
    return {function: sorted(files, key=lambda file: (-files[file], file)) for function, files in found.items()}


def links(function):
    """Returns links, in HTML, to at most two pages and two examples that use the function."""
    pages = users("docs/**/*.md", r"\bquern_\w+").get(function, [])
    examples = users("examples/**/*.[ch]", r"\bquern_\w+(?=\()").get(function, [])
    targets = [(f"../{page[5:-3].replace('README', 'index')}.html", title(page)) for page in pages[:2]]
    targets += [(f"../source/{file}.html", os.path.relpath(file, "examples")) for file in examples[:2]]
    return ", ".join(f'<a href="{target}">{name}</a>' for target, name in targets)


def with_links(text):
    def add(match):
        found = links(match.group(1))
        return match.group(0)[:-3].rstrip() + f"\n *\n * @par Used in\n * {found} */\n" if found else match.group(0)

    return COMMENT.sub(add, text)


def with_group(text, name):
    """Puts the declarations of a header into a group, with the first sentence of its @file comment as the brief."""
    brief = re.search(r"@file\s*\n \* (.*?)(?:[.:](?:\s|$)| \*/)", text, re.S)
    words = re.sub(r"\s*\n \* ?", " ", brief.group(1)) if brief else name
    begin = re.search(r"^#define QUERN_\w+_H[P]*\n", text, re.M)
    if not begin:
        return text
    place = re.search(r"\A(?:.*\n)*?(?=/\*\* (?!@file)|typedef )", text)
    cut = place.end() if place else begin.end()
    end = text.rindex("#endif")
    title_words = name.replace("_", " ").capitalize()
    group = f"/** @defgroup {name} {title_words}\n * {words}. */\n/** @addtogroup {name}\n * @{{ */\n"
    return text[:cut] + group + text[cut:end] + "/** @} */\n" + text[end:]


def without_unions(text):
    """Leaves only the first member of each union without a name, with the comment of the union: Doxygen lists the members
    of such unions in its indexes with links to places that it does not write."""
    return re.sub(r"^( +)union \{\n +(.*?;).*\n(?: .*\n)*?\1\};\n", r"\1\2\n", text, flags=re.M)


def for_site(path):
    """Returns the text of the header at a path of the repository."""
    stem = os.path.splitext(os.path.basename(path))[0]
    return with_group(with_links(without_unions(read(path))), f"kit_{stem}" if path.startswith("kit/") else stem)
