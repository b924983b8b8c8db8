#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Checks every answer of the inspector of the demo against docs/inspector.schema.json, and tries the client.

usage: check_answers.py SWARM ROOT [LARGE]

LARGE is the program of tests/inspect/large, for answers that the demo does not have.
"""

import importlib.util
import json
import os
import re
import subprocess
import sys
import time

TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
         "null": type(None)}


def faults(schema, value, definitions, place="answer"):
    """Yields what is wrong with a value. Knows the keywords that the schema uses."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rsplit("/", 1)[1]]
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, TYPES[kind]) and (kind == "boolean") == isinstance(value, bool)
                         for kind in kinds):
        yield f"{place} is {value!r}, not {' or '.join(kinds)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is {value!r}, none of {schema['enum']}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{place} is {value!r}, which does not match {schema['pattern']}"
    if isinstance(value, dict):
        for key in schema.get("required", []):
            if key not in value:
                yield f"{place} lacks {key}"
        for key, item in value.items():
            if key in schema.get("properties", {}):
                yield from faults(schema["properties"][key], item, definitions, f"{place}.{key}")
            elif schema.get("additionalProperties", True) is False:
                yield f"{place} has an unknown member {key}"
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            yield f"{place} has {len(value)} items"
        for i, item in enumerate(value):
            yield from faults(schema.get("items", {}), item, definitions, f"{place}[{i}]")


def requests(url, client):
    """Yields the name in the schema, and an answer, of every end point."""
    def get(point, **arguments):
        return point, client.ask(url, "GET", point, **arguments)

    def post(point, kind="done", **arguments):
        return kind, client.ask(url, "POST", point, **arguments)

    yield post("profiling", on=1)
    yield post("record", frames=1)
    yield post("capture")
    time.sleep(0.5)
    for path in ("world", "hash", "types", "resources", "archetypes", "prefabs", "systems", "schedule", "trace",
                 "forecast", "history", "events", "access"):
        yield get(path)
    waits = [edge["after"] for edges in client.ask(url, "GET", "schedule")["edges"] for edge in edges][-1]
    name, edges = get("edges", system=waits)
    assert edges["edges"], f"no system runs before {waits}"
    yield name, edges
    yield get("roots", limit=5)
    yield get("entities", query="Hunter", limit=5, values=1)
    yield get("entities", name="a")
    name, page = get("entities", query="Prey", limit=5, values=1)
    yield get("entities", limit=5)
    yield name, page
    entity = page["entities"][0]["entity"]
    yield post("probe", "probe", entity=entity, path="Position.x")
    kind, answer = post("break", "probe", query="Prey", where="Age.seconds < -1")
    yield kind, answer
    time.sleep(0.2)
    yield get("probes")
    yield get("watch", parts="systems,profile,commands,events,probes", entities=entity)
    yield post("unprobe", probe=answer["probe"])
    yield get("matches", entity=entity)
    yield get("table", query="Prey", columns="Position.x,Age.seconds,None.x", sort="Age.seconds", descending=1,
              where="Position.x > -1000", limit=30)
    yield post("pause")
    yield get("entity", entity=entity)
    for path, arguments in (("set", {"path": "Age.seconds", "value": "1.5"}), ("name", {"name": "one"}),
                            ("enable", {"on": 0}), ("enable", {"on": 1}), ("add", {"component": "Hunter"}),
                            ("remove", {"component": "Hunter"})):
        yield post(path, entity=entity, **arguments)
    yield post("system", name="flock", on=0)
    yield post("system", name="flock", on=1)
    yield post("undo")
    yield post("step", count=1)
    time.sleep(0.3)
    frames = client.ask(url, "GET", "history")["frames"]
    yield get("delta", **{"from": frames[-2], "to": frames[-1]})
    yield post("restore", frame=frames[-2])
    yield "entity", client.ask(url, "GET", "entity", entity=entity)
    yield post("resume")
    yield post("create", "create", copy=entity)
    created, answer = post("create", "create")
    yield created, answer
    yield post("destroy", entity=answer["entity"])
    try:
        client.ask(url, "GET", "entity", entity="none")
        raise AssertionError("an entity that does not exist was found")
    except client.Failed:
        pass


def load(root):
    """Returns the client, its path, and the definitions of the schema."""
    path = os.path.join(root, "scripts", "quern_inspect.py")
    specification = importlib.util.spec_from_file_location("quern_inspect", path)
    client = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(client)
    with open(os.path.join(root, "docs", "inspector.schema.json"), encoding="utf-8") as file:
        return client, path, json.load(file)["$defs"]


def check(url, root):
    client, path, definitions = load(root)
    seen = set()
    for name, answer in requests(url, client):
        seen.add(name)
        for fault in faults(definitions[name], answer, definitions, name):
            raise AssertionError(fault)
    missing = set(definitions) - seen - {"field", "type", "entry", "edge", "system", "profile", "commands", "error", "sources",
                                         "one_probe", "panel"}
    assert not missing, f"no answer was checked for {missing}"

    def run(*arguments):
        return subprocess.run([sys.executable, path, url, *arguments], check=True, capture_output=True,
                              text=True).stdout
    entity = run("list", "Prey").split()[0]
    run("set", entity, "Age.seconds", "2.5")
    assert json.loads(run("get", entity))["values"]["components"]["Age"]["seconds"] >= 2.5
    lines = run("watch", entity, "Age.seconds", "Position.x", "--count", "3", "--rate", "50").splitlines()
    assert lines[0] == "frame,Age.seconds,Position.x" and len(lines) == 4, lines
    print(f"{len(seen)} kinds of answers")


def check_large(url, root):
    client, _, definitions = load(root)
    world = client.ask(url, "GET", "world")
    for title in world["inspector"]["panels"]:
        for fault in faults(definitions["panel"], client.ask(url, "GET", "panel", title=title), definitions, "panel"):
            raise AssertionError(fault)
    for name, arguments in (("access", {}), ("table", {"query": "Energy", "sort": "Energy.value", "limit": 1000})):
        for fault in faults(definitions[name], client.ask(url, "GET", name, **arguments), definitions, name):
            raise AssertionError(fault)


def run_with(command, root, check_of):
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = program.stdout.readline()
        if not line.startswith("inspector: http"):
            print("skipped: the demo was built without the inspector")
            sys.exit(77)
        check_of(line.split()[1], root)
    finally:
        program.terminate()
        assert program.wait(timeout=30) == 0, f"{command[0]} failed"


def main():
    run_with([sys.argv[1], "--inspect", "--entities", "2000", "--threads", "2"], sys.argv[2], check)
    if len(sys.argv) > 3:
        run_with([sys.argv[3], "20000"], sys.argv[2], check_large)


if __name__ == "__main__":
    main()
