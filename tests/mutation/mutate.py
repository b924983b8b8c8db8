#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Mutation testing: changes one line of the sources at a time and reports which changes no test notices.

    tests/mutation/mutate.py core/archive core/events
    tests/mutation/mutate.py --tests 'event' --count 20 --seed 7 core/events/event.c
    tests/mutation/mutate.py --list core/entities/enabled_calls.c

A mutant is a program in which one condition is flipped, one bound is moved or one statement is dropped. All
chosen mutants are built at once, so that one costs a test run and no build: a function with mutants has its
body once for each of them, and the environment variable QUERN_MUTANT selects one. What a header of C++ computes at
compile time cannot be selected, so each of its mutants there is built by itself. Each path is a room with --count
mutants of its own. Its tests run until one fails, the quickest first: those that match --tests, or else those in the
folder of tests/ with the same path; then, if all of them pass, those that match --also. A test that needs many times as
long as without a mutant has failed. A mutant that does not compile is replaced by another one. One that no test notices
is compiled by itself, and does not count if its object code is that of the unchanged file. A line of a table counts the
mutants of each room as soon as they are tried, and the whole table is at the end.

The library is built with -O1, and tests draw as many seeds as under the address sanitizer (tests/support/effort.h).

A surviving mutant either changes no behaviour (then say why) or shows the next test to write. The copy of the
tree and its build are in build/mutants, so that the sources themselves never change.
"""

import argparse
import concurrent.futures
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
# Tests of rooms that are not in a folder of tests/ with the same path.
OTHER_TESTS = {
    "core/base": "^test_(bytes|list|list_bytes|list_calls|list_world|resident)$",
    "core/check": "^test_(bulk_create|arguments|empty_archetypes)$",
    "core/entities": "^test_random_reactions$",
    "core/events": "^test_(event_flow|history_frames|restart)$",
    "core/playback": "^test_(accumulate|clone_commands|command_log|failed_commands|fused|fused_order|related"
    "|spawn_commands|spawn_orders|sync|synced|view_commands|view_commands_kept|waiting|world_commands)$",
    "core/prefabs": "^test_(prefab_frames|prefab_model|spawn_commands|spawn_orders)$",
    "core/query": "^test_(climb|ordered|queried|sorted|system_queries)$",
    "core/reactions": "^test_(hooked|reacting|reactions_meet|reactions_order)$",
    "core/record": "^test_(clone_commands|failed_commands|redefine|redefine_layout|relate_commands|row_commands"
    "|spawn_commands|view_commands|view_commands_kept)$",
    "core/reflect": "^test_list_world$",
    "core/relations": "^test_(climb|levels|names|reaction_calls|related|target)$",
    "core/storage": "^test_(bulk_create|changed|empty_archetypes|entity_enabled|history|list_bytes|list_world"
    "|redefine|row_changes|trimmed)$",
    "core/platform": "^test_(parker|resident|file|cache_sizes|quota|own_threads|yield|lifetime|hardware|forked|register"
    "|fence|unknown_processors)$",
    "core/world": "^test_(arguments|bulk|entity|entity_hooks|list_world|redefine_layout|two_worlds)$",
    "sched/frame": "^test_(accumulate|command_log|event_flow|frame|frame_failure|fused_changes|sets|pace|changed_frames"
    "|changed_schedule|reacting|waiting)$",
    "sched/history": "^test_(captured|changed_schedule|delta|delta_bytes|empty_sinks|history|history_frames|messages"
    "|restart|sets)$",
    "sched/observe": "^test_(watched|captured|frame)$",
    "sched/schedule": "^test_(changed_schedule|frame|fused|fused_order|sets)$",
    "include/quern/entity.hpp": r"^cpp_entities",
    "include/quern/getters.hpp": r"^cpp_objects",
    "include/quern/prefabs.hpp": r"^cpp_objects",
    "include/quern/saves.hpp": r"^cpp_objects",
    "include/quern/quern.hpp": r"^(quern_hpp_cpp|cpp_apps|cpp_must|cpp_words|cpp_mistakes_)",
    "include/quern/rows.hpp": r"^cpp_loops",
    "include/quern/tasks.hpp": r"^cpp_tasks",
    "inspect": "^inspect_answers$",
}
# Targets of those that have another name than their program.
TARGETS = [(r"cpp_(apps|must|mistakes)_", "quern_hpp_cpp17"), (r"cpp_loops_", "cpp_loops17"),
           (r"cpp_entities_", "cpp_entities17"), (r"cpp_grids_", "cpp_kit17"), (r"cpp_replays_", "cpp_objects20"),
           (r"inspect_answers$", "swarm quern_inspect_large")]

# What such lines say holds at compile time.
UNTOUCHED = ("#", "static const", "static_assert(", "_Static_assert(", "\x01")
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
        if not inside or mask.lstrip().startswith(UNTOUCHED):
            continue
        for operator, changed in line_mutants(line, mask):
            if changed.strip() == ";" and not is_whole_statement(mask_lines, index):
                continue
            yield path, index + 1, operator, changed


# Once, since some tests include several sources.
SWITCH = (
    "#ifndef QUERN__MUTANTS\n"
    "#define QUERN__MUTANTS\n"
    "#include <stdlib.h>\n"
    "static int quern__mutant;\n"
    "__attribute__((constructor)) static void quern__choose_mutant(void)\n"
    "{\n"
    '    const char *text = getenv("QUERN_MUTANT");\n'
    "    quern__mutant = text != NULL ? atoi(text) : 0;\n"
    "}\n"
    "#endif\n"
)


def switchable_bodies(text):
    """Yields (first line, last line), counted from 0, of function bodies that can have switches: the braces have lines
    of their own, or the whole function has one line. Constant expressions of C++ cannot read the switch."""
    lines, mask_lines = text.split("\n"), masked(text).split("\n")
    index = 0
    while index < len(lines):
        first = index
        index += 1
        if lines[first].strip() == "{":
            end = lines[first][:-1] + "}"
            last = next((place for place in range(index, len(lines)) if lines[place] == end), first)
            index = last + 1
        elif re.search(r"\) .*\{ .* \}$", mask_lines[first]) and not CONDITION.match(lines[first]):
            last = first
        else:
            continue
        signature = first
        while signature > 0 and not mask_lines[signature - 1].rstrip("\x01").endswith((";", "{", "}", ":")):
            if not mask_lines[signature - 1].strip(" \x01"):
                break
            signature -= 1
        if not any("constexpr" in line.split("{")[0] for line in mask_lines[signature : first + 1]):
            yield first, last


def with_switches(text, numbered):
    """Returns the text of a file with all its mutants, and a list with the number of the mutant, or 0, of each line.

    numbered: (number, mutant) of this file. Mutants outside of switchable bodies are left out."""
    lines = text.split("\n")
    out = [(line, 0) for line in SWITCH.split("\n")[:-1]]
    next_line = 0
    for first, last in switchable_bodies(text):
        inside = [(number, mutant) for number, mutant in numbered if first <= mutant[1] - 1 <= last]
        if not inside:
            continue
        out += [(row, 0) for row in lines[next_line:first]]
        next_line = last + 1
        if first == last:
            brace = re.search(r"\{ [^{]*(?:\{[^{}]*\}[^{}]*)*\}$", masked(lines[first])).start()
            before, body = lines[first][:brace] + "{", [lines[first][brace + 1 : -1]]
            bodies = [[mutant[3][brace + 1 : -1]] for _, mutant in inside]
        else:
            before, body = lines[first], lines[first + 1 : last]
            bodies = [with_line(text, mutant).split("\n")[first + 1 : last] for _, mutant in inside]
        out.append((before, 0))
        for (number, _), changed in zip(inside, bodies):
            out += [(row, number) for row in [f"if (quern__mutant == {number}) {{"] + changed + ["} else"]]
        out += [(row, 0) for row in ["{"] + body + ["}", "}"]]
    out += [(row, 0) for row in lines[next_line:]]
    return "\n".join(row for row, _ in out), [number for _, number in out]


def source_files(path):
    """Returns the C files at or below a path, or several separated by commas, relative to the root of the tree."""
    found = set()
    for part in path.split(","):
        whole = os.path.abspath(part)
        if os.path.isfile(whole):
            found.add(os.path.relpath(whole, ROOT))
        elif not os.path.isdir(whole):
            sys.exit(f"mutate.py: there is neither a file nor a folder '{part}'")
        for folder, _, names in os.walk(whole):
            found.update(os.path.relpath(os.path.join(folder, name), ROOT) for name in names if name.endswith(".c"))
    if not found:
        sys.exit(f"mutate.py: there is no C file in {path}")
    return sorted(found)


def tests_of(path, pattern, root=ROOT):
    """Returns a regular expression for the tests of a room: the pattern, or the programs in its folder of tests/."""
    if pattern:
        return pattern
    if "," in path:
        return "|".join(dict.fromkeys(tests_of(part, pattern, root) for part in path.split(",")))
    name = os.path.relpath(os.path.abspath(path), root)
    folder = os.path.join(root, "tests", os.path.dirname(name) if os.path.isfile(os.path.join(root, name)) else name)
    programs = glob.glob(os.path.join(folder, "**", "test_*.c"), recursive=True)
    patterns = ["^(" + "|".join(sorted(os.path.basename(test)[:-2] for test in programs)) + ")$"] if programs else []
    patterns += [OTHER_TESTS[place] for place in (name, os.path.dirname(name)) if place in OTHER_TESTS]
    if not patterns:
        sys.exit(f"mutate.py: there are no tests in {os.path.relpath(folder, root)}; name those of {name} by --tests")
    return "|".join(patterns)


class Room:
    """A file or folder, its mutants in the order in which they are tried, and its tests."""

    def __init__(self, path, options):
        self.name = ",".join(os.path.relpath(os.path.abspath(part), ROOT) for part in path.split(","))
        self.texts = {file: read(os.path.join(ROOT, file)) for file in source_files(path)}
        self.mutants = [mutant for file, text in self.texts.items() for mutant in file_mutants(file, text)]
        self.numbered = []
        self.tests = "" if options.list else tests_of(path, options.tests)
        self.noticed = self.same = 0
        self.survivors = []

    def tried(self):
        return self.noticed + len(self.survivors)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


class Test:
    """A test of ctest, which is started without ctest where that is possible: this is quicker."""

    def __init__(self, entry, options):
        properties = {property["name"]: property["value"] for property in entry.get("properties", [])}
        self.name = entry["name"]
        self.command = entry.get("command")
        self.folder = properties.get("WORKING_DIRECTORY")
        self.environment = dict(text.split("=", 1) for text in properties.get("ENVIRONMENT", []))
        self.passing = {0, properties.get("SKIP_RETURN_CODE", 0)}
        self.seconds = 0.0  # without a mutant
        if not self.command or any(name.endswith("_REGULAR_EXPRESSION") for name in properties):
            self.command = ["ctest", "--preset", options.preset, "-R", f"^{re.escape(self.name)}$"]
            self.folder = None

    def start(self, tree, number):
        environment = {"QUERN_STRESS_SECONDS": "0.5", **os.environ, **self.environment}
        environment.update(CRITERION_FAIL_FAST="1", QUERN_MUTANT=str(number), QUERN_MUTATION=str(os.getpid()))
        return subprocess.Popen(
            self.command,
            cwd=self.folder or tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )


class Workshop:
    """A copy of the tree with a build of its own, in which mutants are built and tested."""

    def __init__(self, options):
        self.options = options
        self.tests = {}  # measured, by pattern
        self.written = {}  # the text of each file with mutants
        self.tree = os.path.join(ROOT, "build", "mutants")
        self.build = os.path.join(self.tree, "build", options.preset)
        self.place = os.path.join(self.build, "mutant.o")
        self.copy_sources()
        # Warnings must not stop a mutant: a dropped statement often leaves a parameter unused.
        flags = ["-DQUERN_DEVELOPER=OFF", "-DCMAKE_C_FLAGS=-DQUERN_LITTLE_EFFORT", "-DCMAKE_C_FLAGS_RELEASE=-O1"]
        flags += ["-DCMAKE_CXX_FLAGS_RELEASE=-O1"]
        generator = ["-G", "Ninja"] if shutil.which("ninja") else []
        self.run(["cmake", "--preset", options.preset] + generator + flags, "configuring")

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

    def matching_tests(self, pattern):
        listed = self.run(["ctest", "--preset", self.options.preset, "-N", "-R", pattern], "listing tests")
        names = re.findall(r"^\s*Test +#\d+: (\S+)$", listed, re.M)
        if not names:
            sys.exit(f"mutate.py: no test matches '{pattern}'")
        return names

    def compile(self, targets):
        command = ["cmake", "--build", "--preset", self.options.preset, "-j", str(self.options.jobs), "--target"]
        command += targets
        return subprocess.run(command, cwd=self.tree, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def build_programs(self, pattern):
        built = self.compile(self.programs(pattern))
        if built.returncode:
            sys.exit(f"mutate.py: building failed\n{built.stdout[-4000:]}{built.stderr[-4000:]}")

    def programs(self, pattern):
        """Returns the targets that the tests which match need."""
        listed = self.run(["cmake", "--build", "--preset", self.options.preset, "--target", "help"], "listing targets")
        targets = set(re.findall(r"^(?:\.\.\. )?([\w.-]+)", listed, re.M))
        tests = self.matching_tests(pattern)
        needed = {next((names for of, names in TARGETS if re.match(of, test)), test) for test in tests}
        needed = {target for names in needed for target in names.split()}
        return sorted(needed) if needed <= targets else ["all"]

    def measured_tests(self, pattern):
        """Returns the tests that match and pass without a mutant, the quickest first. Names the others on stderr."""
        if pattern not in self.tests:
            command = ["ctest", "--preset", self.options.preset, "--show-only=json-v1", "-R", pattern]
            entries = json.loads(self.run(command, "listing tests"))["tests"]
            tests = [Test(entry, self.options) for entry in entries]
            for test in tests:
                start = time.monotonic()
                if self.failing_test([test]):
                    print(f"mutate.py: {test.name} fails without any mutant and is left out", file=sys.stderr)
                    continue
                test.seconds = time.monotonic() - start
            passed = [test for test in tests if test.seconds]
            self.tests[pattern] = sorted(passed, key=lambda test: test.seconds)
        return self.tests[pattern]

    def failing_test(self, tests, number=0):
        """Runs tests in this order with a mutant and returns the name of one that fails, or None."""
        waiting, running, failed = list(reversed(tests)), [], None
        while (waiting or running) and not failed:
            if waiting and len(running) < self.options.jobs:
                test = waiting.pop()
                limit = min(self.options.timeout, 10 + 10 * test.seconds) if test.seconds else self.options.timeout
                running.append((test, test.start(self.tree, number), time.monotonic() + limit))
                continue
            time.sleep(0.005)
            for entry in list(running):
                test, process, end = entry
                if process.poll() is not None:
                    running.remove(entry)
                    failed = failed or (test.name if process.returncode not in test.passing else None)
                elif time.monotonic() > end:
                    failed = f"{test.name}, out of time"
        for _, process, _ in running:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if failed:
            self.kill_stragglers()
        return failed

    def kill_stragglers(self):
        """Ends test processes that loop forever in a mutant: Criterion gives each a session of its own."""
        for path in glob.glob("/proc/[0-9]*/environ"):
            try:
                with open(path, "rb") as file:
                    if f"QUERN_MUTATION={os.getpid()}".encode() in file.read().split(b"\0"):
                        os.kill(int(path.split("/")[2]), signal.SIGKILL)
            except OSError:
                continue  # the process has ended, or belongs to another user

    def compile_entries(self):
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as file:
            return json.load(file)

    def compile_alone(self, path, text, options):
        """Compiles a file of the library with another text, to self.place. Returns the messages of the compiler if it
        fails, or an empty string."""
        entry = next(entry for entry in self.compile_entries() if entry["file"] == os.path.join(self.tree, path))
        write(entry["file"], text)
        return self.compile_entry(entry, options)

    def compile_entry(self, entry, options):
        words = shlex.split(entry["command"])
        words[words.index("-o") + 1] = self.place
        done = subprocess.run(words + options, cwd=entry["directory"], capture_output=True, text=True)
        return done.stderr if done.returncode else ""

    def object_code(self, path, text):
        """Returns a digest of the object code of a file with another text, without debugging information."""
        if self.compile_alone(path, text, ["-O2", "-g0"]):
            return None
        with open(self.place, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def write_mutants(self, rooms):
        """Writes the files with all mutants that compile, and returns the numbers of the others."""
        texts = {path: text for room in rooms for path, text in room.texts.items()}
        numbered = [pair for room in rooms for pair in room.numbered]
        broken = set()
        for path in texts:
            if path.endswith(".c"):
                self.write_compiling([path], texts, numbered, broken, lambda path=path: self.check_file(path))
        headers = [path for path in texts if not path.endswith(".c")]
        if headers:
            tests = [room.tests for room in rooms if set(headers) & set(room.texts)]
            users = self.users("|".join(dict.fromkeys(tests)))
            self.write_compiling(headers, texts, numbered, broken, lambda: self.check_users(users))
        return broken

    def write_compiling(self, paths, texts, numbered, broken, messages_of):
        """Writes files with their mutants, but without those because of which messages_of() is not empty."""
        while True:
            owners = {}
            for path in paths:
                here = [(n, mutant) for n, mutant in numbered if mutant[0] == path and n not in broken]
                switched, owners[path] = with_switches(texts[path], here)
                self.written[path] = switched if here else texts[path]
                write(os.path.join(self.tree, path), self.written[path])
            messages = messages_of()
            if not messages:
                return
            # An error in another line is one of the body that it was found from.
            for kind in (r" (?:fatal )?error: ", ""):
                lines = [(path, int(line)) for path in paths
                         for line in re.findall(re.escape(path) + r":(\d+):\d+:" + kind, messages)]
                found = {owners[path][line - 1] for path, line in lines} - {0}
                if found:
                    break
            else:
                sys.exit(f"mutate.py: {paths[0]} does not compile\n{messages[-4000:]}")
            broken |= found

    def check_file(self, path):
        return self.compile_alone(path, self.written[path], ["-fsyntax-only"])

    def users(self, pattern):
        """Returns how the programs that tests run are compiled."""
        folders = [f"/{target}.dir/" for target in self.programs(pattern)]
        return [entry for entry in self.compile_entries() if any(folder in entry["command"] for folder in folders)]

    def check_users(self, users):
        """Returns the messages of the compiler about programs that include a header."""
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            return "".join(pool.map(lambda entry: self.compile_entry(entry, ["-fsyntax-only"]), users))

    def is_same_code(self, mutant, text):
        """Whether the object code of a mutant is that of the unchanged file."""
        path = mutant[0]
        with open(os.path.join(self.tree, path), encoding="utf-8") as file:
            kept = file.read()
        same = self.object_code(path, with_line(text, mutant)) == self.object_code(path, text)
        write(os.path.join(self.tree, path), kept)
        return same

    def failing_build(self, room, number, mutant):
        """Like failing_test, for a mutant that is built by itself, in a header."""
        path = os.path.join(self.tree, mutant[0])
        write(path, with_line(room.texts[mutant[0]], mutant))
        built = self.compile(self.programs(room.tests))
        verdict = "does not compile" if built.returncode else self.failing_test(self.measured_tests(room.tests), number)
        write(path, self.written[mutant[0]])
        self.build_programs(room.tests)
        return verdict

    def verdict(self, room, number, mutant):
        """Returns the name of the test that notices a mutant, or why none does."""
        if f"quern__mutant == {number})" not in self.written[mutant[0]]:
            return self.failing_build(room, number, mutant) or "SURVIVED"
        failed = self.failing_test(self.measured_tests(room.tests), number)
        if failed:
            return failed
        if mutant[0].endswith(".c") and self.is_same_code(mutant, room.texts[mutant[0]]):
            return "same object code"
        if self.options.also:
            failed = self.failing_test(self.measured_tests(self.options.also), number)
        return failed or "SURVIVED"


def with_line(text, mutant):
    """Returns the text of a file with one mutant."""
    lines = text.split("\n")
    lines[mutant[1] - 1] = mutant[3]
    return "\n".join(lines)


def report(number, mutant, original, verdict, order):
    path, line_number, operator, changed = mutant
    line = original.split("\n")[line_number - 1]
    print(f"{order}: {path}:{line_number}: {operator}: {verdict}", flush=True)
    if verdict == "SURVIVED":
        print(f"QUERN_MUTANT={number}")
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
    parser.add_argument("sources", nargs="+", help="rooms: C files, their folders, headers of C++; a comma joins paths")
    parser.add_argument("--tests", default="", help="a regular expression of ctest entries to run (those of each room)")
    parser.add_argument("--also", default="", help="ctest entries that run on mutants which these tests do not notice")
    parser.add_argument("--count", type=int, default=10, help="how many mutants of each room to try (10)")
    parser.add_argument("--seed", type=int, default=1, help="chooses the mutants (1)")
    parser.add_argument("--preset", default="release-test", help="the build to test (release-test)")
    parser.add_argument("--timeout", type=int, default=120, help="seconds until a test counts as failed (120)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parallel jobs (all processors)")
    parser.add_argument("--only", help="try all mutants of these lines: FILE:LINE or LINE, separated by commas")
    parser.add_argument("--list", action="store_true", help="print all mutants and stop")
    return parser.parse_args()


def try_mutants(room, workshop, broken, options):
    for number, mutant in room.numbered:
        if room.tried() == options.count and not options.only:
            break
        verdict = "does not compile" if number in broken else workshop.verdict(room, number, mutant)
        if verdict == "SURVIVED":
            room.survivors.append(mutant)
        elif verdict == "same object code":
            room.same += 1
        elif verdict != "does not compile":
            room.noticed += 1
        counts = verdict not in ("does not compile", "same object code")
        report(number, mutant, room.texts[mutant[0]], verdict, room.tried() if counts else "-")


def table_line(room):
    return f"| {room.name} | {room.tried()} | {room.noticed} | {len(room.survivors)} | {room.same} |"


def table(rooms):
    """Returns the lines of a table that counts the mutants of each room."""
    lines = ["| room | mutants | noticed | survived | same object code |", "|---|---|---|---|---|"]
    return lines + [table_line(room) for room in rooms]


def main():
    options = arguments()
    rooms = [Room(path, options) for path in options.sources]
    if options.list:
        for path, number, operator, changed in [mutant for room in rooms for mutant in room.mutants]:
            print(f"{path}:{number}: {operator}: {changed.strip()}")
        return
    count = 0
    for room in rooms:
        order = chosen_mutants(room.mutants, options)
        # Some more than are tried, in place of those that do not compile.
        room.numbered = list(enumerate(order if options.only else order[: options.count * 3 // 2 + 5], count + 1))
        count += len(room.numbered)
    workshop = Workshop(options)
    broken = workshop.write_mutants(rooms)
    start = time.monotonic()
    for room in rooms:
        for pattern in [room.tests] + ([options.also] if options.also else []):
            workshop.build_programs(pattern)
            workshop.measured_tests(pattern)
        try_mutants(room, workshop, broken, options)
        print(f"{table_line(room)} {time.monotonic() - start:.0f} s", flush=True)
    print("\n".join(table(rooms)))
    print(f"{time.monotonic() - start:.0f} s, seed {options.seed}")


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()
