#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Writes what other languages need to call Quern, from the public headers.

usage: generate_bindings.py LANGUAGE --output FILE [--compiler CC] [--include FOLDER ...] HEADER ...

LANGUAGE is python (declarations for cffi), lua (declarations for LuaJIT's ffi), js or ts (layouts of structs and
signatures of functions for WebAssembly, and their types), exports (the names of all functions, one per line), or layouts
(a source in C that compiles only if the layouts are those of the compiler).

The compiler expands the headers; the text of Quern's own headers remains, without attributes and without the bodies of
inline functions, which kit/bindings/calls.c turns into functions of the library. So a new function, struct or constant
of the headers is in the bindings without further work.
"""

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile

LICENCE = "SPDX-License-Identifier: MIT\n{0} Copyright (c) 2026 The Quern authors"


# ---------------------------------------------------------------------------------------------- reading headers


def preprocess(options, text, *flags):
    """Returns the text after the compiler has expanded it."""
    compiler = [options.compiler] if os.path.exists(options.compiler) else options.compiler.split()
    command = compiler + ["-std=c11", "-E", "-x", "c", *flags, *("-I" + path for path in options.include), "-"]
    done = subprocess.run(command, input=text, stdout=subprocess.PIPE, universal_newlines=True, check=False)
    if done.returncode != 0:
        sys.exit("generate_bindings: the compiler could not read the headers; its messages are above")
    return done.stdout


def own_text(expanded):
    """Returns the lines that come from headers of Quern, without line markers."""
    lines, is_own = [], False
    for line in expanded.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            is_own = re.search(r"(^|/)quern/", marker.group(1)) is not None
        elif is_own and line.strip():
            lines.append(line)
    return "\n".join(lines)


def closing(text, start, pair):
    """Returns the index behind the bracket that closes the one at `start`."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == pair[0]) - (text[i] == pair[1])
        if depth == 0:
            return i + 1
    raise ValueError("unbalanced " + pair)


def without_extensions(text):
    """Removes attributes and _Atomic, which parsers of declarations do not know, and what is between quotes, such as a bracket."""
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
    text = re.sub(r"'(?:\\.|[^'\\\n])+'", "0", text)
    for word, keeps in (("__attribute__", False), ("_Atomic", True)):
        while (at := re.search(r"\b" + word + r"\s*\(", text)) is not None:
            end = closing(text, at.end() - 1, "()")
            text = text[: at.start()] + (text[at.end() : end - 1] if keeps else "") + text[end:]
    return text


def split_declarations(text):
    """Yields the declarations at file level; of an inline function, its prototype."""
    start = at = 0
    while at < len(text):
        if text[at] == "{":
            head = text[start:at]
            at = closing(text, at, "{}")
            if head.lstrip().startswith("static"):
                yield " ".join(re.sub(r"\b(static|inline)\b", "", head).split()) + ";"
                start = at
        elif text[at] == "(":
            at = closing(text, at, "()")
        elif text[at] == ";":
            at += 1
            declaration = " ".join(text[start:at].split())
            start = at
            if declaration != ";":
                yield declaration
        else:
            at += 1


def number_of(expression, known):
    """Returns the value of a constant expression, or None."""
    expression = re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]+\b", r"\1", expression)
    expression = re.sub(r"\b[A-Za-z_]\w*\b", lambda name: str(known.get(name.group(), name.group())), expression)
    if not re.fullmatch(r"[-+*/%<>()&|^~\s0-9a-fA-FxX]+", expression):
        return None
    try:
        return eval(expression.replace("/", "//"), {"__builtins__": {}})  # digits and operators alone
    except (SyntaxError, NameError, TypeError):
        return None


def read_constants(options, includes):
    """Returns the macros QUERN_... that are numbers."""
    names = re.findall(r"^#define (QUERN_[A-Z0-9][A-Z0-9_]*) \S", preprocess(options, includes, "-dM"), re.MULTILINE)
    lines = "".join('"%s" %s "end"\n' % (name, name) for name in sorted(names))
    # Line markers stand also within a line, around macros of the C library.
    flat = re.sub(r"\s*\n(# .*\n)?\s*", " ", preprocess(options, includes + lines))
    found = {}
    for name, value in re.findall(r'"(QUERN_\w+)" ([^"]*) "end"', flat):
        number = number_of(value, {})
        if number is not None:
            found[name] = number
    return found


class Api:
    """The public interface: declarations as text, constants, and for WebAssembly structs and functions."""

    def __init__(self, options):
        self.headers = options.headers
        includes = "".join("#include <%s>\n" % header for header in options.headers)
        self.constants = read_constants(options, includes)
        self.declarations, seen = [], set()
        for declaration in split_declarations(without_extensions(own_text(preprocess(options, includes)))):
            if declaration not in seen:  # a type may be announced by several headers
                seen.add(declaration)
                self.declarations.append(declaration)
        self.enums, self.structs, self.aliases, self.functions = {}, {}, {}, {}
        for declaration in self.declarations:
            try:
                self.read(declaration)
            except (AttributeError, KeyError, TypeError):
                sys.exit("generate_bindings: this kind of declaration is unknown: '%s': write it like those of other headers, or "
                         "extend Api.read" % declaration)

    def read(self, declaration):
        enum = re.match(r"typedef enum \w+ \{(.*)\} (\w+);", declaration)
        struct = re.match(r"(?:typedef )?struct (\w+) \{(.*)\} ?\w*;$", declaration)
        prototype = re.match(r"([\w *]+[ *])(quern_\w+)\((.*)\) ?;$", declaration)
        if enum:
            self.enums[enum.group(2)] = self.read_enumerators(enum.group(1))
        elif struct:
            self.structs[struct.group(1)] = self.read_members(struct.group(2))
        elif declaration.startswith("typedef"):
            alias = re.match(r"typedef ([\w ]+?[ *]+)(\w+)((?:\[.*\])?);$", declaration)
            if alias and alias.group(1).split()[0] != "struct":
                self.aliases[alias.group(2)] = alias.group(1).strip() + ("*" if alias.group(3) else "")
            elif "(" in declaration:
                self.aliases[re.search(r"(\w+)\(", declaration).group(1)] = "function"
        elif prototype:
            parameters = [] if prototype.group(3) == "void" else split_list(prototype.group(3))
            self.functions[prototype.group(2)] = (prototype.group(1).strip(), [split_parameter(p) for p in parameters])

    def read_enumerators(self, text):
        values, following = {}, 0
        for item in filter(None, map(str.strip, text.split(","))):
            name, _, value = item.partition("=")
            following = number_of(value, self.constants) if value else following
            values[name.strip()] = self.constants[name.strip()] = following
            following += 1
        return values

    def read_members(self, text):
        """Returns the members as (name, type, number of elements); a pointer to a function has the type void *. A union of
        scalars is a member with the name of its first one and the type of its widest one."""

        def widest(union):
            inner = self.read_members(union.group(1))
            return "%s %s;" % (max(inner, key=lambda member: self.layout(member[1])[0])[1], inner[0][0])

        members = []
        text = re.sub(r"union \{(.*?)\};", widest, text)
        for item in filter(None, map(str.strip, text.split(";"))):
            pointer = re.search(r"\(\*(\w+)\)\(", item)
            if pointer:
                members.append((pointer.group(1), "void *", 1))
                continue
            first, *others = item.split(",")
            match = re.match(r"(.*?[\s*])(\w+)((?:\[[^]]*\])*)$", first.strip())
            kind = match.group(1).strip()
            members.append((match.group(2), kind, self.count_of(match.group(3))))
            for other in others:
                match = re.match(r"(\**)(\w+)((?:\[[^]]*\])*)$", other.strip())
                members.append((match.group(2), kind.rstrip("* ") + match.group(1), self.count_of(match.group(3))))
        return members

    def count_of(self, dimensions):
        count = 1
        for dimension in re.findall(r"\[([^]]*)\]", dimensions):
            count *= number_of(dimension, self.constants)
        return count

    # -------------------------------------------------------------------------------------------- wasm32

    SCALARS = {
        "_Bool": ("u8", 1), "char": ("u8", 1), "int8_t": ("i8", 1), "uint8_t": ("u8", 1), "int16_t": ("i16", 2),
        "uint16_t": ("u16", 2), "int": ("i32", 4), "unsigned int": ("u32", 4), "unsigned": ("u32", 4), "int32_t": ("i32", 4), "uint32_t": ("u32", 4),
        "size_t": ("u32", 4), "uintptr_t": ("u32", 4), "int64_t": ("i64", 8), "uint64_t": ("u64", 8), "float": ("f32", 4), "double": ("f64", 8),
    }

    def plain(self, kind):
        """Returns a type without const and names of structs, and aliases followed."""
        kind = " ".join(re.sub(r"\b(const|struct|volatile)\b", " ", kind).split())
        if "*" in kind:
            return "pointer"
        if kind in self.enums:
            return "unsigned"
        return self.plain(self.aliases[kind]) if kind in self.aliases and self.aliases[kind] != "function" else kind

    def scalar(self, kind):
        """Returns the scalar that a type is: also a struct with a single scalar, which is passed as one. None: a struct."""
        kind = self.plain(kind)
        if kind == "pointer":
            return "pointer"
        if kind in self.SCALARS:
            return self.SCALARS[kind][0]
        members = self.structs[kind]
        return self.scalar(members[0][1]) if len(members) == 1 and members[0][2] == 1 else None

    def layout(self, kind):
        """Returns size, alignment and the offsets of members of a type for 32-bit pointers."""
        kind = self.plain(kind)
        if kind == "pointer":
            return 4, 4, {}
        if kind in self.SCALARS:
            return self.SCALARS[kind][1], self.SCALARS[kind][1], {}
        size, alignment, offsets = 0, 1, {}
        for name, member, count in self.structs[kind]:
            bytes_each, align, _ = self.layout(member)
            size = -(-size // align) * align
            offsets[name] = (size, self.scalar(member) or self.plain(member), count)
            size += bytes_each * count
            alignment = max(alignment, align)
        return -(-size // alignment) * alignment, alignment, offsets


def split_list(text):
    """Splits a list of parameters at the commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()]


def split_parameter(text):
    """Returns (type, name) of a parameter; the type of a pointer to a function is void *."""
    pointer = re.search(r"\(\*(\w+)\)\(", text)
    if pointer:
        return "void *", pointer.group(1)
    match = re.match(r"(.*[\s*])(\w+)(\[[^]]*\])?$", text)
    return (match.group(1).strip() + ("*" if match.group(3) else ""), match.group(2)) if match else (text, "rest")


# ---------------------------------------------------------------------------------------------- writing


def write_python(api):
    """Returns a module of cffi, which has parsed the declarations already: a program need not do it at each start."""
    try:
        import cffi
    except ImportError:
        sys.exit("generate_bindings: Python's package cffi is missing; install python3-cffi")
    ffi = cffi.FFI()
    ffi.cdef("\n".join(api.declarations))
    ffi.set_source("_api", None)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "_api.py")
        with contextlib.redirect_stdout(None):  # cffi prints what it does
            ffi.emit_python_code(path)
        with open(path, encoding="utf-8") as file:
            text = file.read()
    return "# %s\n%s\nCONSTANTS = %s\n" % (LICENCE.format("#"), text, json.dumps(api.constants, indent=4))


def write_lua(api):
    constants = "\n".join("    %s = %d%s," % (name, value, "" if value < 2**53 else "ULL") for name, value in api.constants.items())
    results = "\n".join("    %s = true," % name for name, (result, _) in api.functions.items() if result == "quern_result")
    return "-- %s\n-- Declarations of Quern's headers for LuaJIT's ffi. Generated by scripts/generate_bindings.py.\n\nreturn {\n  cdef = [[\ntypedef struct quern_file FILE;\n%s\n]],\n  constants = {\n%s\n  },\n  results = {\n%s\n  },\n}\n" % (
        LICENCE.format("--"), "\n".join(api.declarations), constants, results)


def signature(api, name):
    """Returns the parameters and the result of a function of the module, as (name, kind)."""
    result, parameters = api.functions[name]
    wanted = [(word, api.scalar(kind) or "pointer") for kind, word in parameters if kind != "..."]
    if any(kind == "..." for kind, _ in parameters):
        wanted.append(("rest", "pointer"))
    if result == "void":
        return wanted, "void"
    scalar = api.scalar(result)
    return (wanted, scalar) if scalar else ([("out", "pointer"), *wanted], "void")


def public_functions(api):
    """Returns the names of functions without those that the headers use internally."""
    return [name for name in api.functions if not name.startswith("quern__")]


def write_js(api):
    structs = {name: {"size": api.layout(name)[0], "fields": {key: list(value) for key, value in api.layout(name)[2].items()}}
               for name in api.structs}
    return "// %s\n// Layouts of Quern's structs in WebAssembly, and constants. Generated by scripts/generate_bindings.py.\n\nexport const constants = %s;\n\nexport const structs = %s;\n" % (
        LICENCE.format("//"), json.dumps(api.constants, indent=2), json.dumps(structs))


def write_ts(api):
    kinds = {"void": "void", "u64": "bigint", "i64": "bigint", "pointer": "Pointer"}
    lines = ["// " + LICENCE.format("//"), "// Types of Quern's functions in WebAssembly. Generated by scripts/generate_bindings.py.", "",
             "/** An address in the memory of the module. */", "export type Pointer = number;", "",
             "export declare const constants: {"]
    lines += ["  readonly %s: %d;" % item for item in api.constants.items()]
    lines += ["};", "", "export interface Layout {", "  size: number;", "  fields: Record<string, [offset: number, type: string, count: number]>;", "}", "",
              "export declare const structs: Record<%s, Layout>;" % (" | ".join('"%s"' % name for name in api.structs)), "",
              "/** The functions of the headers. An id such as quern_entity is a bigint; other structs are passed by address, and a struct",
              " * that a function returns is written to `out`. */", "export interface Calls {"]
    for name in public_functions(api):
        parameters, result = signature(api, name)
        lines.append("  _%s(%s): %s;" % (name, ", ".join("%s: %s" % (safe(word), kinds.get(kind, "number")) for word, kind in parameters), kinds.get(result, "number")))
    return "\n".join(lines + ["}", ""])


def safe(word):
    return word + "_" if word in ("function", "with", "delete", "in", "new") else word


def write_exports(api):
    return "".join("_%s\n" % name for name in sorted(["malloc", "free", *public_functions(api)]))


def write_layouts(api):
    lines = ["/* " + LICENCE.format(" *") + " */", "/* Generated by scripts/generate_bindings.py. */", "#include <stddef.h>"]
    lines += ["#include <%s>" % header for header in api.headers]
    for name in api.structs:
        size, _, offsets = api.layout(name)
        lines.append('_Static_assert(sizeof(struct %s) == %d, "%s");' % (name, size, name))
        lines += ['_Static_assert(offsetof(struct %s, %s) == %d, "%s.%s");' % (name, member, at, name, member)
                  for member, (at, _, _) in offsets.items()]
    return "\n".join(lines) + "\n"


def main():
    writers = {"python": write_python, "lua": write_lua, "js": write_js, "ts": write_ts, "exports": write_exports,
               "layouts": write_layouts}
    parser = argparse.ArgumentParser()
    parser.add_argument("language", choices=sorted(writers))
    parser.add_argument("headers", nargs="+")
    parser.add_argument("--output", required=True)
    parser.add_argument("--compiler", default="cc")
    parser.add_argument("--include", action="append", default=[])
    options = parser.parse_args()
    text = writers[options.language](Api(options))
    with open(options.output, "w", encoding="utf-8") as output:
        output.write(text)


if __name__ == "__main__":
    main()
