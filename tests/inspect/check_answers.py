#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Checks every answer of the inspector of the demo against docs/inspector.schema.json, and tries the client.

usage: check_answers.py SWARM ROOT [LARGE COMPILER LIBRARY INCLUDE ...]

LARGE is the program of tests/inspect/large, for answers that the demo does not have. The others build the program of a test
case that was recorded of it.
"""

import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
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
    yield post("record_case", frames=2)
    time.sleep(0.5)
    for path in ("case", "statistics", "world", "hash", "types", "resources", "archetypes", "prefabs", "systems", "schedule", "trace",
                 "forecast", "history", "events", "access"):
        yield get(path)
    waits = [edge["after"] for edges in client.ask(url, "GET", "schedule")["edges"] for edge in edges][-1]
    name, edges = get("edges", system=waits)
    assert edges["edges"], f"no system runs before {waits}"
    yield name, edges
    client.ask(url, "GET", "commands")
    time.sleep(0.2)
    answer = client.ask(url, "GET", "commands", limit=1000)
    assert answer["frame"] is not None
    yield "command_list", answer
    yield get("roots", limit=5)
    yield get("entities", query="Hunter", limit=5, values=1)
    yield get("entities", name="a")
    name, page = get("entities", query="Prey", limit=5, values=1)
    yield get("entities", limit=5)
    yield name, page
    entity = page["entities"][0]["entity"]
    yield post("probe", "probe", entity=entity, path="Position.x")
    yield post("break", "probe", entity=entity, change="")
    yield post("resume")
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
    check_script(url, path)
    seen = set()
    for name, answer in requests(url, client):
        seen.add(name)
        for fault in faults(definitions[name], answer, definitions, name):
            raise AssertionError(fault)
    missing = set(definitions) - seen - {"field", "type", "entry", "edge", "system", "profile", "commands", "error", "sources",
                                         "one_probe", "panel"}
    assert not missing, f"no answer was checked for {missing}"
    print(f"{len(seen)} kinds of answers")


def shell(url, path):
    """Returns a function that runs the script and checks its exit code, and one that also reads its JSON."""
    def run(*arguments, code=0, address=url):
        done = subprocess.run([sys.executable, path, address, *map(str, arguments)], capture_output=True, text=True,
                              check=False)
        assert done.returncode == code, f"{arguments}: {done.returncode}, not {code}: {done.stdout}{done.stderr}"
        assert code == 0 or done.stderr, f"{arguments} fails without a message"
        assert "Traceback" not in done.stderr, f"{arguments}: {done.stderr}"
        return done.stdout

    def read(*arguments):
        return json.loads(run(*arguments))
    return run, read


def check_script(url, path):
    """What a person does from a shell, right and wrong."""
    run, read = shell(url, path)
    entity = run("list", "Prey").split()[0]
    run("set", entity, "Age.seconds", "2.5")
    assert read("get", entity)["values"]["components"]["Age"]["seconds"] >= 2.5
    lines = run("watch", entity, "Age.seconds", "Position.x", "--count", "3", "--rate", "50").splitlines()
    assert lines[0] == "frame,Age.seconds,Position.x" and len(lines) == 4, lines
    lines = run("watch", entity, "Age.seconds", "--count", "2", "--json").splitlines()
    assert [set(json.loads(line)) for line in lines] == [{"frame", "Age.seconds"}] * 2
    assert read("commands", "--limit", "5")["frame"] is not None
    run("commands", "--system", "none", code=1)
    assert "flock" in read("find", "floc")["systems"]
    assert read("system", "flock")["declares"]["name"] == "flock"
    assert read("table", "Prey", "--columns", "Age.seconds", "--limit", "2")["rows"][0]["values"][0]
    assert run("table", "Prey", "--columns", "Age.seconds", "--csv").startswith("entity,name,Age.seconds")
    read("pause")
    before = read("world")["frame"]
    assert read("step", "3")["frame"] == before + 3 == read("world")["frame"]
    assert read("compare", before, before + 3)["entries"]
    read("restore", before + 1)
    assert read("world")["frame"] == before + 1
    made = read("create")["entity"]
    read("add", made, "Hunter")
    read("name", made, "scout")
    read("remove", made, "Hunter")
    read("disable", made)
    assert not read("get", made)["enabled"]
    read("enable", made)
    read("destroy", made)
    assert read("undo")["undone"] > 5
    read("switch", "flock", "off")
    read("switch", "flock", "on")
    probe = read("break", "--entity", entity, "--change")["probe"]
    read("resume")
    assert read("wait", "--timeout", "20")["hits"][0]["probe"] == probe
    read("unprobe", probe)
    read("resume")
    with tempfile.TemporaryDirectory() as folder:
        assert read("save", f"{folder}/world.archive")["bytes"] == os.path.getsize(f"{folder}/world.archive")
        assert len(read("case", f"{folder}/case", "--frames", "3")["files"]) == 3
        assert sorted(os.path.splitext(name)[1] for name in os.listdir(f"{folder}/case")) == [".archive", ".c", ".replay"]
        read("trace", f"{folder}/trace.json")
        with open(f"{folder}/trace.json", encoding="utf-8") as file:
            json.load(file)
        run("save", f"{folder}/none/world.archive", code=2)
        recorded = read("ask", "GET", "case")["frame"]
        run("case", f"{folder}/trace.json/none", code=2)
        assert read("ask", "GET", "case")["frame"] == recorded, "frames were recorded for a folder that cannot be made"
        run("merge", entity, f"{folder}/none.json", code=2)
    forecast = read("forecast", "--threads", "4")
    assert forecast["forecasts"]
    assert read("forecast", "--threads", "4")["frame"] > forecast["frame"], "the second forecast is of an old frame"
    for command in ("world", "hash", "types", "resources", "archetypes", "prefabs", "systems", "schedule", "statistics", "history",
                    "events", "probes"):
        read(command)
    read("pause")
    entity = run("list", "Prey").split()[0]
    read("matches", entity)
    read("ask", "GET", "entities", "query=Prey", "limit=1")
    # Wrong on purpose.
    run("get", "77777:9", code=1)
    run("set", entity, "Age.secs", "1", code=1)
    run("watch", entity, "Age.secs", code=1)
    run("ask", "GET", "entities", "qery=Prey", code=1)
    run("ask", "GET", "entities", "Prey", code=2)
    run("system", "none", code=1)
    run("restore", "999999999", code=1)
    run("break", "Age.seconds > 1", code=2)
    run("break", "--change", "--query", "Prey", code=2)
    run("none", code=2)
    run("watch", entity, "Age.seconds", "--rate", "0", code=2)
    run("forecast", "--threads", "200", code=1)
    run("trace", "-", "--frames", "61", code=1)
    run("step", "none", code=2)
    read("resume")
    run("wait", "--timeout", "0.2", code=4)
    run("world", code=2, address="localhost")
    run("world", code=3, address="http://127.0.0.1:1/token/")
    run("world", code=1, address=url.rstrip("/")[:-1] + "/")
    run("world", code=2, address="http://127.0.0.1:80x0/token/")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([sys.executable, path, url, "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert done.returncode == 2 and re.fullmatch("quern_inspect: .*No space.*\n", done.stderr), done
    check_strangers(run, path)


def check_strangers(run, path):
    """The script asks servers that are no inspectors."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/token/"

        def answer(content):
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(content)
        for content in (b"220 mail\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{",
                        b"HTTP/1.1 409 No\r\nContent-Length: 9\r\n\r\n{", b"HTTP/1.1 200 OK\r\n\r\n[]",
                        b"HTTP/1.1 200 OK\r\n\r\n{}"):
            thread = threading.Thread(target=answer, args=(content,), daemon=True)
            thread.start()
            run("list", code=3, address=address)
            thread.join()
        # A child ignores the signal if this process does, as in the background of a shell.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with subprocess.Popen([sys.executable, path, address, "wait"]) as waiting:
            connection, _ = server.accept()
            with connection:
                waiting.send_signal(signal.SIGINT)
                assert waiting.wait(timeout=30) == 130, waiting.returncode


def check_large(url, root):
    client, path, definitions = load(root)
    run, read = shell(url, path)
    made = read("create", "--copy", "0:1")["entity"]
    read("relate", made, "parent", "0:1")
    assert [each["entity"] for each in read("children", "0:1")] == [made]
    read("unrelate", made, "parent")
    assert read("children", "0:1") == []
    assert read("panel", "Modules")["value"]
    read("switch-set", "rail", "off")
    read("set-resource", "Weather.wind", "3")
    run("relate", made, "parent", made, code=1)
    world = client.ask(url, "GET", "world")
    for title in world["inspector"]["panels"]:
        for fault in faults(definitions["panel"], client.ask(url, "GET", "panel", title=title), definitions, "panel"):
            raise AssertionError(fault)
    for name, arguments in (("access", {}), ("table", {"query": "Energy", "sort": "Energy.value", "limit": 1000})):
        for fault in faults(definitions[name], client.ask(url, "GET", name, **arguments), definitions, name):
            raise AssertionError(fault)
    if not TOOLS:
        return
    # A recorded test case, built with what set_up of the program has, runs and agrees.
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, os.path.join(root, "scripts", "quern_inspect.py"), url, "case", folder, "--frames", "5"],
                       check=True, stdout=subprocess.DEVNULL)
        source = [name for name in os.listdir(folder) if name.endswith(".c")][0]
        compiler, library, *includes = TOOLS
        subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-DLARGE_WITHOUT_MAIN", *(f"-I{each}" for each in includes), source,
                        os.path.join(root, "tests", "inspect", "large", "large_program.c"), library, "-o", "case", "-pthread",
                        "-lm"], check=True, cwd=folder)
        done = subprocess.run(["./case"], cwd=folder, capture_output=True, text=True, check=True)
        assert done.stdout == "5 frames ran and agreed\n", done


TOOLS = sys.argv[4:]


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
