#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: site_pages.py pages | index | check

pages: copies all pages to build/docs_pages for MkDocs, with links for the site; sources that pages link become pages, too.
Copies the public headers to build/docs_headers for Doxygen, with groups, links to pages, and a first page.
index: makes the index of the site's search smaller, from which a browser builds tables before the first search.
check: fails unless each link of the site in build/docs leads to a file and an anchor of it.
"""

import collections
import glob
import html
import html.parser
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import urllib.parse

import reference

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
PAGES, HEADERS, SITE = (os.path.join(ROOT, "build", name) for name in ("docs_pages", "docs_headers", "docs"))
MOVED = {
    "README.md": "index.md",
    "docs/README.md": "documentation.md",
    "examples/README.md": "examples.md",
    "kit/README.md": "kit_sources.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
}
LOGS = ("changelog.html", "benchmarks/results.html", "benchmarks/experiments.html")  # pages that the search leaves out
SHOWN_BYTES, MOST_SECTIONS = 220, 60  # of a text in the search's index
STYLE = (
    "body{font:14px/1.45 sans-serif;margin:1em auto;max-width:70em;padding:0 1em}pre{overflow-x:auto;background:#f5f5f7;"
    "padding:1em}i{color:#5a6b5a}b{color:#3f51b5;font-weight:normal}u{color:#a34f00;text-decoration:none}a{color:#3f51b5}"
)
TOKENS = re.compile(
    r"(?P<i>/\*.*?\*/|//[^\n]*)|(?P<u>&quot;(?:\\.|(?!&quot;).)*&quot;)|(?P<b>\b(?:typedef|struct|enum|static|const|void|"
    r"return|if|else|for|while|switch|case|default|break|continue|int|float|double|char|bool|sizeof|u?int\d+_t)\b|^ *#\w+)",
    re.S | re.M,
)


def place_of(path):
    """Returns the path in the site of a file or folder of the repository."""
    if path in MOVED:
        return MOVED[path]
    if path.startswith("docs/") and path != "docs/Doxyfile":
        return path[5:]
    if os.path.isdir(os.path.join(ROOT, path)):
        return f"source/{path}/index.html" if path != "." else "source/index.html"
    return f"source/{path}.html"


def html_of(place):
    """Returns the file that MkDocs makes of a page, or the place itself if it is no page."""
    return re.sub(r"\.md$", ".html", re.sub(r"README\.md$", "index.md", place))


def write(place, text, folder=PAGES):
    path = os.path.join(folder, place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace") as file:
        return file.read()


class Copy:
    def __init__(self):
        self.files, self.sources = [], set()

    def link(self, page, target):
        path, mark, anchor = target.partition("#")
        if not path or path.startswith(("http", "mailto")):
            return target
        found = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
        place = place_of(found)
        if place.startswith("source/"):
            self.sources.add(found)
        return posixpath.relpath(place, posixpath.dirname(place_of(page)) or ".") + mark + anchor

    def page(self, page):
        lines, is_code = [], False
        for line in read(page).split("\n"):
            is_code ^= line.startswith("```")
            lines.append(line if is_code else re.sub(r"^ {2,3}(?=(?:[-*]|\d+\.) )", "    ", line))
        pieces = re.split(r"(^```.*?^```)", "\n".join(lines), flags=re.S | re.M)
        for number in range(0, len(pieces), 2):
            pieces[number] = re.sub(r"\]\(([^)\s]+)\)", lambda match: f"]({self.link(page, match.group(1))})", pieces[number])
        write(place_of(page), "".join(pieces))

    def source(self, path):
        place = place_of(path)
        up = "../" * place.count("/")
        if os.path.isdir(os.path.join(ROOT, path)):
            inside = [file for file in self.files if path == "." or file.startswith(path + "/")]
            self.sources.update(file for file in inside if place_of(file).startswith("source/"))  # pages are no sources
            rows = [f'<li><a href="{posixpath.relpath(html_of(place_of(file)), posixpath.dirname(place))}">{html.escape(file)}</a>' for file in inside]
            body = "<ul>" + "".join(rows) + "</ul>"
        elif path.endswith((".png", ".bin")):
            body = "<p>A file of bytes.</p>"
        else:
            text = TOKENS.sub(lambda m: f"<{m.lastgroup}>{m.group(0)}</{m.lastgroup}>", html.escape(read(path)))
            body = f"<pre>{text}</pre>"
        head = f'<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{path}</title><style>{STYLE}</style>'
        write(place, f'{head}<p><a href="{up}index.html">Quern</a> / {html.escape(path)}</p>{body}')

    def run(self):
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True)
        self.files = [file for file in listed.stdout.splitlines() if os.path.exists(os.path.join(ROOT, file))]
        shutil.rmtree(PAGES, ignore_errors=True)
        for page in self.files:
            if page in MOVED or (page.startswith("docs/") and page.endswith(".md")):
                self.page(page)
            elif page.startswith("docs/") and page.endswith((".png", ".svg", ".css", ".json", ".jsonl")):
                os.makedirs(os.path.join(PAGES, os.path.dirname(place_of(page))), exist_ok=True)
                shutil.copy(os.path.join(ROOT, page), os.path.join(PAGES, place_of(page)))
            elif page.startswith("examples/") and page.endswith((".c", ".h", ".cpp")):
                self.sources.add(page)
        done = set()
        while self.sources - done:
            for path in sorted(self.sources - done):
                self.source(path)
                done.add(path)


def smaller(index):
    """Makes the index smaller, from which a browser builds tables before the first search: their time grows with the number of
    words. A text becomes its beginning, which results show, and each further word once. Not in it: the pages of LOGS; texts of
    pages whose sections have entries of their own, since MkDocs gives each text to both; and in the rest of a text, words of
    many sections, which tell nothing apart, and words with which another one begins, since a search finds beginnings."""
    index["docs"] = [entry for entry in index["docs"] if not entry["location"].startswith(LOGS)]
    with_sections = {entry["location"].partition("#")[0] for entry in index["docs"] if "#" in entry["location"]}
    rests = []
    for entry in index["docs"]:
        text = "" if entry["location"] in with_sections else entry["text"]
        entry["text"] = text if len(text) <= SHOWN_BYTES else text[:SHOWN_BYTES].rpartition(" ")[0]
        rest = text[len(entry["text"]):].lower()
        rests.append(set(re.findall(r"[a-z_]\w{2,}", rest)) - set(re.findall(r"\w+", entry["text"].lower())))
    sections = collections.Counter(word for rest in rests for word in rest)
    for entry, rest in zip(index["docs"], rests):
        words = sorted(word for word in rest if sections[word] <= MOST_SECTIONS)
        words = [word for word, following in zip(words, [*words[1:], ""]) if not following.startswith(word)]
        entry["text"] = " ".join([entry["text"], *words])
    return index


def first_page(header):
    """Returns the first page of the reference: what the comment of quern.h says, with a link for each header."""
    table = re.search(r"@file\n \* (.*?)\n \*\n(.*?)\n \*\n", header, re.S)
    rows = re.findall(r"^ \*     (\w+)\.h +(.*)$", table.group(2), re.M)
    lines = [f"- @ref {name} : {words}" for name, words in rows]
    kit = [f"- @ref kit_{os.path.splitext(os.path.basename(path))[0]} : kit" for path in sorted(glob.glob("kit/*.h", root_dir=ROOT))
           if not path.endswith("_internal.h")]
    return "/** @mainpage Reference\n\nThe public headers, each a group of declarations:\n\n" + "\n".join(lines + kit) + "\n*/\n"


class Links(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.targets, self.anchors = [], set()

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("href", "src") and value:
                self.targets.append(value)
            elif name in ("id", "name") and value:
                self.anchors.add(value)


def check():
    pages = {}
    for path in glob.glob(os.path.join(SITE, "**/*.html"), recursive=True):
        if path.endswith("/404.html"):  # it has links for the root of a server
            continue
        pages[path] = Links()
        with open(path, encoding="utf-8") as file:
            pages[path].feed(file.read())
    count, missing = 0, set()
    for path, page in pages.items():
        for target in page.targets:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc or target.startswith("javascript"):
                continue
            found = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            if os.path.isdir(found):
                found = os.path.join(found, "index.html")
            count += 1
            is_anchor_known = not parts.fragment or found not in pages or urllib.parse.unquote(parts.fragment) in pages[found].anchors
            if not os.path.exists(found) or not is_anchor_known:
                missing.add(f"{os.path.relpath(path, SITE)}: {target}")
    for line in sorted(missing)[:40]:
        print(line)
    print(f"site: {len(pages)} pages, {count} links, {len(missing)} of them lead nowhere")
    return 1 if missing or not pages else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["pages"]:
        Copy().run()
        shutil.rmtree(HEADERS, ignore_errors=True)
        for header in sorted(glob.glob("include/quern/*.h", root_dir=ROOT) + glob.glob("kit/*.h", root_dir=ROOT)):
            if not header.endswith("_internal.h"):
                write(os.path.basename(header) if header.startswith("include") else f"kit/{os.path.basename(header)}", reference.for_site(header), HEADERS)
        write("first_page.h", first_page(read("include/quern/quern.h")), HEADERS)
    elif sys.argv[1:] == ["index"]:
        path = os.path.join(SITE, "search/search_index.json")
        with open(path, encoding="utf-8") as file:
            index = smaller(json.load(file))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(index, file, ensure_ascii=False, separators=(",", ":"))
    elif sys.argv[1:] == ["check"]:
        sys.exit(check())
    else:
        sys.exit(__doc__)
