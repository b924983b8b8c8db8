#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Mutation testing: changes one line of the sources at a time and reports which changes no test notices.

    tests/mutation/mutate.py --tests 'archive' core/archive
    tests/mutation/mutate.py --tests 'event' --count 20 --seed 7 core/events/event.c
    tests/mutation/mutate.py --list core/entities/enabled_calls.c

A mutant is a program in which one condition is flipped, one bound is moved or one statement is dropped. All
chosen mutants are built at once, so that one costs a test run and no build: a function with mutants has its
body once for each of them, and the environment variable QUERN_MUTANT selects one. The tests that match
--tests run until one fails. A mutant that does not compile is replaced by another one. One that no test
notices is compiled by itself, and does not count if its object code is that of the unchanged file.

A surviving mutant either changes no behaviour (then say why) or shows the next test to write. The copy of the
tree and its build are in build/mutants, so that the sources themselves never change.
"""

import argparse
import difflib
import glob
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COPY_EXCLUDES = ("build", ".git")

COMPARISONS = {"==": "!=", "!=": "==", "<": "<=", "<=": "<", ">": ">=", ">=": ">"}
BINARY_OPERATOR = re.compile(r" (==|!=|<=|>=|<|>|&&|\|\|) ")
ADDED_ONE = re.compile(r" [+-] 1\b")
CONDITION = re.compile(r"^\s*(?:\} else )?(?:if|while) \(")
RETURN_BOOL = re.compile(r"^(\s*return )(true|false);$")
STEP = re.compile(r"(\+\+|--);$")
COMPOUND = re.compile(r" (\+|-|\||&)= ")
# A whole statement on one line: a call or an assignment to something that already exists.
CALL = re.compile(r"^\s+(?:\(void\))?[a-z_][\w>.\-\[\]]*\(.*\);$")
ASSIGNMENT = re.compile(r"^\s+[*a-z_][\w>.*\-\[\]\(\)]* (?:[-+|&^*/]|<<|>>)?= .*;$")
JUMP = re.compile(r"^(\s+)(continue|break);$")
NO_CALL = re.compile(r"^\s+(?:return|assert|static_assert|_Static_assert|QUERN__ASSERT)\b")


def masked(text):
    """Returns the text with comments, strings and characters blanked out, at the same length."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda match: re.sub(r"[^\n]", "\x01", match.group()), text)


def closing_parenthesis(mask, start):
    """Returns the index of the parenthesis that closes the one before start, or None if it is on another line."""
    depth = 1
    for place in range(start, len(mask)):
        depth += {"(": 1, ")": -1}.get(mask[place], 0)
        if depth == 0:
            return place
    return None


def line_mutants(line, mask):
    """Returns every (operator, changed line) of one line; mask is the line without comments and strings."""
    for match in BINARY_OPERATOR.finditer(mask):
        operator = match.group(1)
        other = COMPARISONS.get(operator) or ("||" if operator == "&&" else "&&")
        yield f"{operator} to {other}", line[: match.start(1)] + other + line[match.end(1) :]
    for match in ADDED_ONE.finditer(mask):
        yield "drop the one", line[: match.start()] + line[match.end() :]
    match = CONDITION.match(mask)
    end = closing_parenthesis(mask, match.end()) if match else None
    if end:
        yield "negate the condition", f"{line[:match.end()]}!({line[match.end():end]}){line[end:]}"
        if mask.endswith(";"):
            yield "drop the statement", line[: end + 1] + " {}"
    match = RETURN_BOOL.match(mask)
    if match:
        yield "flip the result", match.group(1) + ("false" if match.group(2) == "true" else "true") + ";"
    match = STEP.search(mask)
    if match and "for (" not in mask:
        yield "step the other way", line[: match.start(1)] + ("--" if match.group(1) == "++" else "++") + ";"
    match = COMPOUND.search(mask)
    if match:
        yield "forget the old value", line[: match.start(1)] + line[match.end(1) :]
    match = JUMP.match(mask)
    if match:
        yield f"drop the {match.group(2)}", match.group(1) + ";"
    if (CALL.match(mask) or ASSIGNMENT.match(mask)) and not NO_CALL.match(mask):
        yield "drop the statement", re.match(r"\s*", line).group() + ";"


def is_whole_statement(mask_lines, index):
    """Whether the line begins a statement: the line before it ends a statement or opens a block."""
    for before in reversed(mask_lines[:index]):
        text = before.replace("\x01", "").strip()
        if text:
            return text.endswith((";", "{", "}", ":")) or text.startswith(("if (", "else", "for (", "while ("))
    return False


def file_mutants(path, text):
    """Returns every mutant of one file: (path, line number from 1, operator, changed text of the line)."""
    lines = text.split("\n")
    mask_lines = masked(text).split("\n")
    depth = 0
    for index, (line, mask) in enumerate(zip(lines, mask_lines)):
        inside = depth > 0
        depth += mask.count("{") - mask.count("}")
        if not inside or mask.lstrip().startswith(("#", "static const", "\x01")):
            continue
        for operator, changed in line_mutants(line, mask):
            if changed.strip() == ";" and not is_whole_statement(mask_lines, index):
                continue
            yield path, index + 1, operator, changed


SWITCH = (
    "#include <stdlib.h>\n"
    "static int quern__mutant;\n"
    "__attribute__((constructor)) static void quern__choose_mutant(void)\n"
    "{\n"
    '    const char *text = getenv("QUERN_MUTANT");\n'
    "    quern__mutant = text != NULL ? atoi(text) : 0;\n"
    "}\n"
)


def with_switches(text, numbered):
    """Returns the text of a file with all its mutants, and a list with the number of the mutant, or 0, of each line.

    numbered: (number, mutant) of this file. A function body begins and ends with a brace in the first column."""
    lines = text.split("\n")
    out = [(line, 0) for line in SWITCH.split("\n")[:-1]]
    start = 0
    while start < len(lines):
        end = lines.index("}", start) if lines[start] == "{" else start
        inside = [(number, mutant) for number, mutant in numbered if start < mutant[1] - 1 < end]
        if inside:
            out.append(("{", 0))
            for number, (_, line, _, changed) in inside:
                body = lines[start + 1 : line - 1] + [changed] + lines[line:end]
                out += [(f"if (quern__mutant == {number}) {{", number)]
                out += [(row, number) for row in body] + [("} else", number)]
            out += [(row, 0) for row in ["{"] + lines[start + 1 : end] + ["}", "}"]]
        else:
            out += [(row, 0) for row in lines[start : end + 1]]
        start = end + 1
    return "\n".join(row for row, _ in out), [number for _, number in out]


def source_files(paths):
    """Returns the C files at or below the paths, relative to the root of the tree."""
    found = set()
    for path in paths:
        whole = os.path.abspath(path)
        if os.path.isfile(whole):
            found.add(os.path.relpath(whole, ROOT))
        elif not os.path.isdir(whole):
            sys.exit(f"mutate.py: there is neither a file nor a folder '{path}'")
        for folder, _, names in os.walk(whole):
            found.update(os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(".c"))
    if not found:
        sys.exit(f"mutate.py: there is no C file in {' '.join(paths)}")
    return sorted(found)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Workshop:
    """A copy of the tree with a build of its own, in which mutants are built and tested."""

    def __init__(self, options):
        self.options = options
        self.tree = os.path.join(ROOT, "build", "mutants")
        self.build = os.path.join(self.tree, "build", options.preset)
        self.copy_sources()
        # Warnings must not stop a mutant: a dropped statement often leaves a parameter unused.
        self.run(["cmake", "--preset", options.preset, "-DQUERN_DEVELOPER=OFF"], "configuring")
        self.tests = self.matching_tests()

    def copy_sources(self):
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
        )
        kept = set(listed.stdout.split("\n")) - {""}
        for name in kept:
            source, target = os.path.join(ROOT, name), os.path.join(self.tree, name)
            if not os.path.isfile(source):
                continue
            if not os.path.isfile(target) or open(source, "rb").read() != open(target, "rb").read():
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.copy(source, target)
        for folder, folders, names in os.walk(self.tree):
            folders[:] = [name for name in folders if name not in COPY_EXCLUDES]
            for name in names:
                path = os.path.join(folder, name)
                if os.path.relpath(path, self.tree) not in kept:
                    os.remove(path)

    def run(self, command, what):
        done = subprocess.run(command, cwd=self.tree, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"mutate.py: {what} failed\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
        return done.stdout

    def matching_tests(self):
        listed = self.run(["ctest", "--preset", self.options.preset, "-N", "-R", self.options.tests], "listing tests")
        names = re.findall(r"^\s*Test +#\d+: (\S+)$", listed, re.M)
        if not names:
            sys.exit(f"mutate.py: no test matches '{self.options.tests}'")
        return names

    def compile(self, target):
        command = ["cmake", "--build", "--preset", self.options.preset, "-j", str(self.options.jobs), "--target"]
        command += target if isinstance(target, list) else [target]
        return subprocess.run(command, cwd=self.tree, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def programs(self):
        """Returns the test programs among the tests; scripts have no target of their own."""
        listed = self.run(["cmake", "--build", "--preset", self.options.preset, "--target", "help"], "listing targets")
        targets = set(re.findall(r"^(?:\.\.\. )?([\w.-]+)", listed, re.M))
        return [name for name in self.tests if name in targets] or ["all"]

    def failing_test(self, number=0):
        """Runs the tests with a mutant and returns the name of the first one that fails, or None."""
        command = ["ctest", "--preset", self.options.preset, "-R", self.options.tests, "--stop-on-failure"]
        command += ["--timeout", str(self.options.timeout), "-j", str(self.options.jobs)]
        environment = {**os.environ, "QUERN_MUTANT": str(number)}
        done = subprocess.run(
            command, cwd=self.tree, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        self.kill_stragglers()
        failed = re.search(r"Test +#\d+: (\S+) \.+ *\*\*\*", done.stdout)
        return None if done.returncode == 0 else (failed.group(1) if failed else "ctest")

    def kill_stragglers(self):
        """Ends test processes that loop forever in a mutant: a timeout ends only their parent process."""
        for link in glob.glob("/proc/[0-9]*/exe"):
            try:
                if os.readlink(link).startswith(self.build + os.sep):
                    os.kill(int(link.split("/")[2]), signal.SIGKILL)
            except OSError:
                continue  # the process has ended, or belongs to another user

    def compile_alone(self, path, text):
        """Compiles a file of the library with another text. Returns a digest of its object code, without debugging
        information, and the messages of the compiler."""
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as file:
            entry = next(entry for entry in json.load(file) if entry["file"] == os.path.join(self.tree, path))
        write(entry["file"], text)
        words = shlex.split(entry["command"])
        place = os.path.join(self.build, "mutant.o")
        words[words.index("-o") + 1] = place
        done = subprocess.run(words + ["-g0"], cwd=entry["directory"], capture_output=True, text=True)
        if done.returncode:
            return None, done.stderr
        with open(place, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest(), done.stderr

    def write_mutants(self, texts, numbered):
        """Writes the files with all mutants that compile, and returns the numbers of the others."""
        broken = set()
        for path, text in texts.items():
            while True:
                here = [(n, mutant) for n, mutant in numbered if mutant[0] == path and n not in broken]
                switched, owners = with_switches(text, here)
                digest, messages = self.compile_alone(path, switched if here else text)
                if digest:
                    break
                lines = re.findall(re.escape(path) + r":(\d+):\d+: (?:fatal )?error: ", messages)
                found = {owners[int(line) - 1] for line in lines} - {0}
                if not found:
                    sys.exit(f"mutate.py: {path} does not compile\n{messages[-4000:]}")
                broken |= found
        return broken

    def is_same_code(self, path, number, text, changed):
        """Whether the object code of a mutant is that of the unchanged file."""
        lines = text.split("\n")
        lines[number - 1] = changed
        return self.compile_alone(path, "\n".join(lines))[0] == self.compile_alone(path, text)[0]


def report(mutant, original, verdict, order):
    path, number, operator, changed = mutant
    line = original.split("\n")[number - 1]
    print(f"{order}: {path}:{number}: {operator}: {verdict}", flush=True)
    if verdict == "SURVIVED":
        print("\n".join(row for row in difflib.ndiff([line], [changed]) if row[0] in "+-"), flush=True)


def chosen_mutants(mutants, options):
    """Returns the mutants in the order in which they are tried: the same for the same seed and sources."""
    if options.only:
        wanted = set(options.only.split(","))
        return [mutant for mutant in mutants if f"{mutant[0]}:{mutant[1]}" in wanted or str(mutant[1]) in wanted]
    mutants = list(mutants)
    random.Random(options.seed).shuffle(mutants)
    seen, order = set(), []
    # One mutant per line first, so that a long condition does not use up several of the tries.
    for mutant in mutants:
        if (mutant[0], mutant[1]) not in seen:
            seen.add((mutant[0], mutant[1]))
            order.append(mutant)
    return order


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", help="C files, or folders of C files")
    parser.add_argument("--tests", default="", help="a regular expression of ctest entries to run (all)")
    parser.add_argument("--count", type=int, default=10, help="how many mutants to try (10)")
    parser.add_argument("--seed", type=int, default=1, help="chooses the mutants (1)")
    parser.add_argument("--preset", default="release-test", help="the build to test (release-test)")
    parser.add_argument("--timeout", type=int, default=120, help="seconds until a test counts as failed (120)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parallel jobs (all processors)")
    parser.add_argument("--only", help="try all mutants of these lines: FILE:LINE or LINE, separated by commas")
    parser.add_argument("--list", action="store_true", help="print all mutants and stop")
    return parser.parse_args()


def main():
    options = arguments()
    texts = {path: read(os.path.join(ROOT, path)) for path in source_files(options.sources)}
    mutants = [mutant for path, text in texts.items() for mutant in file_mutants(path, text)]
    if options.list:
        for path, number, operator, changed in mutants:
            print(f"{path}:{number}: {operator}: {changed.strip()}")
        return
    order = chosen_mutants(mutants, options)
    # Some more than are tried, in place of those that do not compile.
    numbered = list(enumerate(order if options.only else order[: 2 * options.count + 10], 1))
    workshop = Workshop(options)
    broken = workshop.write_mutants(texts, numbered)
    built = workshop.compile(workshop.programs())
    if built.returncode:
        sys.exit(f"mutate.py: building failed\n{built.stdout[-4000:]}{built.stderr[-4000:]}")
    failed = workshop.failing_test()
    if failed:
        sys.exit(f"mutate.py: {failed} fails without any mutant")
    tried = noticed = 0
    start = time.monotonic()
    for number, mutant in numbered:
        if tried == options.count and not options.only:
            break
        original = texts[mutant[0]]
        if number in broken:
            verdict = "does not compile"
        else:
            verdict = workshop.failing_test(number) or "SURVIVED"
        if verdict == "SURVIVED" and workshop.is_same_code(mutant[0], mutant[1], original, mutant[3]):
            verdict = "same object code"
        counts = verdict not in ("does not compile", "same object code")
        tried += counts
        noticed += counts and verdict != "SURVIVED"
        report(mutant, original, verdict, tried if counts else "-")
    print(f"{noticed} of {tried} mutants were noticed, {time.monotonic() - start:.0f} s, seed {options.seed}")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()
