#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Asks a program with an inspector (docs/inspector.md) what the page of the inspector can ask, from a shell.

usage: quern_inspect.py URL COMMAND [ARGUMENT ...]

URL is the address that the program prints; '-' stands for the environment variable QUERN_INSPECT_URL. Answers are JSON on
standard output, warnings and errors are on standard error. Exit codes: 0 done; 1 the program refused the request; 2 wrong
usage, or a file that cannot be read or written; 3 the program does not answer; 4 what was waited for did not happen; 130
interrupted.
"""

import argparse
import csv
import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

REFUSED, USAGE, SILENT, LATE, INTERRUPTED = 1, 2, 3, 4, 130
ANSWER_SECONDS = 30
# The address is on this machine: a proxy of the environment must not be asked.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Failed(Exception):
    """An error to show, with the exit code of the script, and the status of HTTP if the program refused the request."""

    def __init__(self, message, code=REFUSED, status=None):
        super().__init__(message)
        self.code = code
        self.status = status


class Answer(dict):
    """An object in an answer."""

    def __missing__(self, key):
        raise Failed(f"the answer is not that of an inspector: it lacks '{key}'", SILENT)


def send(request):
    """Returns the answer of the program, also a refusal."""
    try:
        return OPENER.open(request, timeout=ANSWER_SECONDS)
    except urllib.error.HTTPError as refusal:
        return refusal


def ask_bytes(url, method, point, body=None, **arguments):
    """Sends a request and returns the bytes of the answer."""
    given = {name: value for name, value in arguments.items() if value is not None}
    address = f"{url.rstrip('/')}/api/{point}?{urllib.parse.urlencode(given)}"
    data = (body or b"") if method == "POST" else None
    try:
        with send(urllib.request.Request(address, method=method, data=data)) as answer:
            content, status = answer.read(), answer.code
    except (ValueError, http.client.InvalidURL) as error:
        raise Failed(f"{address} is no address: {error}", USAGE) from error
    except OSError as error:
        raise Failed(f"{url} does not answer: {getattr(error, 'reason', error)}; does the program run, and is this "
                     "the address that it printed?", SILENT) from error
    except http.client.HTTPException as error:
        raise Failed(f"{url} is no inspector, or it ended within an answer: {error!r}", SILENT) from error
    if 200 <= status < 300:
        return content
    try:
        message = json.loads(content)["error"]
    except (ValueError, KeyError, TypeError):
        message = f"{url} is no inspector: it answered with status {status}"
    raise Failed(message, status=status)


def ask(url, method, point, body=None, **arguments):
    """Sends a request and returns the answer."""
    text = ask_bytes(url, method, point, body, **arguments)
    try:
        answer = json.loads(text, object_hook=Answer)
    except ValueError as error:
        raise Failed(f"{url} is no inspector: its answer is no JSON", SILENT) from error
    if not isinstance(answer, Answer):
        raise Failed(f"{url} is no inspector: its answer is no object", SILENT)
    return answer


def get(url, point, **arguments):
    return ask(url, "GET", point, **arguments)


def post(url, point, body=None, **arguments):
    answer = ask(url, "POST", point, body, **arguments)
    if "warning" in answer:
        print(f"quern_inspect: warning: {answer['warning']}", file=sys.stderr)
    return answer


def wait_for(what, seconds, holds):
    """Calls holds until it returns something, and returns that."""
    end = time.monotonic() + seconds
    while True:
        found = holds()
        if found:
            return found
        if time.monotonic() > end:
            raise Failed(f"{what} within {seconds:g} seconds", LATE)
        time.sleep(0.05)


def wait_for_answer(what, seconds, request):
    """Repeats a request while the program does not have what it asks for yet."""
    def answered():
        try:
            return request()
        except Failed as failure:
            if failure.status not in (404, 409):
                raise
            return None
    return wait_for(what, seconds, answered)


def show(answer):
    json.dump(answer, sys.stdout, indent=2, ensure_ascii=False)
    print()


# ------------------------------------------------------------------------------------------- reading


def list_entities(url, query=None, values=None):
    """Yields all entities, or those that match a query, in pages."""
    at = 0
    while at is not None:
        if query is None:
            page = get(url, "entities", cursor=at, limit=500, values=values)
            at = page["next_cursor"]
        else:
            page = get(url, "entities", query=query, offset=at, limit=500, values=values)
            at = at + 500 if at + 500 < page["count"] else None
        yield from page["entities"]


def list_archetypes(url):
    at, count = 0, 1
    while at < count:
        page = get(url, "archetypes", offset=at, limit=1000)
        count = page["count"]
        yield from page["archetypes"]
        at += 1000


def do_list(url, given):
    found = list_entities(url, given.query, 1 if given.values else None)
    if given.json or given.values:
        show(list(found))
        return
    for entity in found:
        print(entity["entity"], entity.get("name") or "")


def do_find(url, given):
    """Finds what the search of the page finds."""
    words = given.text.lower().split()

    def named(things, key="name"):
        return [thing for thing in things if all(word in thing[key].lower() for word in words)]
    types = get(url, "types")
    answer = {kind: [each["name"] for each in named(types[kind])]
              for kind in ("components", "resources", "events", "relations")}
    if get(url, "world")["inspector"]["has_schedule"]:
        access = get(url, "access")
        answer["systems"] = [each["name"] for each in named(access["systems"])]
        answer["sets"] = [each["name"] for each in named(access["sets"])]
    texts = [{**each, "name": " ".join(each["components"])} for each in list_archetypes(url)]
    answer["archetypes"] = [each["index"] for each in named(texts) if each["entity_count"] > 0]
    anywhere = 0 if given.text.startswith("/") else 1
    answer["entities"] = get(url, "entities", name=given.text, anywhere=anywhere, limit=100)["entities"]
    show(answer)


def do_children(url, given):
    after, entities = None, []
    while True:
        page = get(url, "sources", entity=given.entity, relation=given.relation, limit=1000, after=after)
        entities += page["entities"]
        if not page["entities"] or len(entities) >= page["count"]:
            break
        after = page["entities"][-1]["entity"]
    show(entities)


def do_table(url, given):
    arguments = {key: getattr(given, key) for key in ("query", "columns", "where", "sort", "offset", "limit")}
    answer = get(url, "table", descending=1 if given.descending else None, **arguments)
    if not given.csv:
        show(answer)
        return
    table = csv.writer(sys.stdout)
    table.writerow(["entity", "name"] + (given.columns.split(",") if given.columns else []))
    for row in answer["rows"]:
        table.writerow([row["entity"], row["name"] or ""] + ["" if value is None else value for value in row["values"]])


def do_system(url, given):
    declared = [each for each in get(url, "access")["systems"] if each["name"] == given.name]
    if not declared:
        raise Failed(f"the schedule has no system '{given.name}': 'find' finds systems by a part of the name")
    figures = [each for each in get(url, "systems")["systems"] if each["name"] == given.name]
    show({"declares": declared[0], "last_frame": figures[0] if figures else None,
          "waits_for": get(url, "edges", system=given.name)["edges"]})


def do_commands(url, given):
    """Waits for a frame, since the program lists commands only after it was asked."""
    arguments = {key: getattr(given, key) for key in ("sync", "system", "entity", "offset", "limit")}
    show(wait_for("the program did not run a frame", given.timeout, lambda: (
        lambda answer: answer if answer["frame"] is not None else None)(
            get(url, "commands", dropped=1 if given.dropped else None, **arguments))))


def fields_of(url):
    return {f"{each['name']}.{field['name']}" for each in get(url, "types")["components"] for field in each["fields"]}


def field(entity, path, fields):
    """Returns the value of a path such as Position.x in the answer of 'entity'."""
    component, name = next((each[:len(each) - len(part) - 1], part) for each in fields if each == path
                           for part in [each.split(".", 1)[1]])
    value = (entity["values"] or {"components": {}})["components"].get(component)
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def do_watch(url, given):
    if not given.rate >= 0.001:
        raise Failed(f"--rate is {given.rate:g}: it must be at least 0.001 times per second", USAGE)
    fields = fields_of(url)
    for path in given.paths:
        if path not in fields:
            raise Failed(f"no component has a described field '{path}'")
    table = csv.writer(sys.stdout)
    if not given.json:
        table.writerow(["frame"] + given.paths)
    left = given.count
    while left != 0:
        answer = get(url, "entity", entity=given.entity)
        values = [field(answer, path, fields) for path in given.paths]
        if given.json:
            print(json.dumps({"frame": answer["frame"], **dict(zip(given.paths, values))}))
        else:
            table.writerow([answer["frame"]] + ["" if value is None else value for value in values])
        sys.stdout.flush()
        left -= 1
        if left != 0:
            time.sleep(1 / given.rate)


# -------------------------------------------------------------------------------------------- frames


def do_step(url, given):
    """Steps, and waits until the frames have run."""
    if not get(url, "world")["paused"]:
        post(url, "pause")
    wanted = get(url, "world")["frame"] + given.count
    answer = post(url, "step", count=given.count)

    def has_run():
        world = get(url, "world")
        return world if world["frame"] >= wanted and world["paused"] else None
    answer["frame"] = wait_for(f"the program did not run {given.count} frames", given.timeout, has_run)["frame"]
    show(answer)


def do_break(url, given):
    if given.change is not None and (given.where or given.query):
        raise Failed("--change needs --entity alone, without conditions", USAGE)
    if given.change is None and not given.where:
        raise Failed("a condition, such as 'Energy.value < 0.5', or --change is missing", USAGE)
    if bool(given.entity) == bool(given.query):
        raise Failed("either --entity or --query must be set", USAGE)
    show(post(url, "break", where=given.where, entity=given.entity, query=given.query, change=given.change))


def do_wait(url, given):
    """Waits until the program is paused, and shows the probes that have stopped it."""
    world = wait_for("the program did not stop", given.timeout,
                     lambda: (lambda now: now if now["paused"] else None)(get(url, "world")))
    probes = [{key: value for key, value in probe.items() if key != "values"} for probe in get(url, "probes")["probes"]]
    show({"frame": world["frame"], "hits": [probe for probe in probes if probe.get("hit_frame") == world["frame"] - 1]})


def do_forecast(url, given):
    post(url, "capture")
    show(wait_for_answer("the program did not run a frame by quern_inspector_run", given.timeout,
                         lambda: get(url, "forecast", threads=given.threads)))


def do_trace(url, given):
    post(url, "record", frames=given.frames)
    write(given.file, wait_for_answer(f"the program did not run {given.frames} frames", given.timeout,
                                      lambda: ask_bytes(url, "GET", "trace")))


# --------------------------------------------------------------------------------------------- files


def store(path, content):
    """Writes a file, and returns what the answer says of it."""
    with open(path, "wb") as file:
        file.write(content)
    return {"file": path, "bytes": len(content)}


def write(path, content):
    if path == "-":
        sys.stdout.buffer.write(content)
    else:
        show(store(path, content))


def do_save(url, given):
    write(given.file, ask_bytes(url, "GET", "archive", leave_out=given.leave_out))


def do_case(url, given):
    """Records a test case, waits for its frames, and writes its three files."""
    os.makedirs(given.folder, exist_ok=True)  # before frames are recorded in vain
    post(url, "record_case", frames=given.frames)

    def recorded():
        case = get(url, "case")
        if not case["recording"]:
            return case
        if get(url, "world")["paused"]:  # also by a condition meanwhile
            post(url, "step", count=case["frame_count"] - case["recorded_count"])
        return None
    case = wait_for(f"the program did not run {given.frames} frames by quern_inspector_run", given.timeout, recorded)
    if case["fault"]:
        raise Failed(f"the test case is not whole: {case['fault']}")
    name = os.path.join(given.folder, case["name"])
    show({"files": [store(f"{name}.archive", ask_bytes(url, "GET", "case_archive")),
                    store(f"{name}.replay", ask_bytes(url, "GET", "case_replay")),
                    store(f"{name}.c", case["source"].encode())]})


def do_merge(url, given):
    if given.file == "-":
        content = sys.stdin.buffer.read()
    else:
        with open(given.file, "rb") as file:
            content = file.read()
    show(post(url, "merge", body=content, entity=given.entity))


def do_ask(url, given):
    arguments = dict(each.split("=", 1) for each in given.arguments if "=" in each)
    if len(arguments) != len(given.arguments):
        raise Failed("an argument must be written as name=value, and each name once", USAGE)
    content = ask_bytes(url, given.method, given.point, **arguments)
    try:
        show(json.loads(content))
    except ValueError:
        sys.stdout.buffer.write(content)


# ------------------------------------------------------------------------------------------ commands


def parser_of():
    parser = argparse.ArgumentParser(prog="quern_inspect.py", usage="quern_inspect.py URL COMMAND [ARGUMENT ...]",
                                     description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", metavar="URL")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name, text, do, *names, **options):
        one = commands.add_parser(name, help=text, description=text, usage=None)
        one.set_defaults(do=do)
        for each in names:
            one.add_argument(each)
        for each, default in options.items():
            kind = type(default) if default is not None else str
            flag = "--" + each.replace("_", "-")
            if kind is bool:
                one.add_argument(flag, action="store_true")
            else:
                one.add_argument(flag, type=kind, default=default)
        return one

    def getting(name, text, *names, point=None):
        command(name, text, lambda url, given: show(get(url, point or name, **{key: getattr(given, key) for key in names})),
                *names)

    def posting(name, text, *names, point=None, **fixed):
        command(name, text, lambda url, given: show(post(url, point or name, **fixed,
                                                         **{key: getattr(given, key) for key in names})), *names)

    getting("world", "figures of the world, the history and the inspector")
    getting("hash", "hash of the world")
    getting("types", "components, resources, events and relations with their fields")
    getting("resources", "values of the resources")
    command("archetypes", "all archetypes", lambda url, given: show(list(list_archetypes(url))))
    getting("prefabs", "captured prefabs")
    command("list", "entities, all or those of a query", do_list, values=False, json=False).add_argument("query", nargs="?")
    command("find", "systems, types, archetypes and entities by parts of their names", do_find, "text")
    getting("get", "one entity with its values", "entity", point="entity")
    command("children", "entities with this one as their target", do_children, "entity", relation="parent")
    command("table", "the matches of a query with chosen fields", do_table, "query", columns=None, where=None, sort=None,
            descending=False, offset=0, limit=1000, csv=False)
    getting("matches", "which systems match an entity, and why others do not", "entity")
    getting("systems", "figures of the last frame by system")
    command("system", "what a system declares, and why it waits", do_system, "name")
    command("commands", "the single commands of a frame, and what was dropped", do_commands, sync=None, system=None, entity=None,
            dropped=False, offset=0, limit=100, timeout=10.0)
    getting("schedule", "passes, and the edges between systems")
    getting("statistics", "the last seconds, summed up")
    getting("history", "kept frames, and what requests did")
    getting("events", "event types, and the newest events")
    getting("panel", "a panel of the program", "title")
    command("forecast", "the next frame on more threads", do_forecast, threads=32, timeout=10.0)
    command("trace", "records frames as a trace", do_trace, "file", frames=3, timeout=10.0)

    posting("set", "sets a field, such as Position.x", "entity", "path", "value")
    posting("set-resource", "sets a field of a resource", "path", "value", point="set_resource")
    posting("add", "adds a component", "entity", "component")
    posting("remove", "removes a component", "entity", "component")
    command("merge", "sets values from a file with JSON, or '-'", do_merge, "entity", "file")
    posting("name", "names an entity", "entity", "name")
    for name, on in (("enable", 1), ("disable", 0)):
        command(name, f"{name}s an entity, or one component of it",
                lambda url, given, on=on: show(post(url, "enable", entity=given.entity, component=given.component, on=on)),
                "entity").add_argument("component", nargs="?")
    posting("relate", "gives an entity a target in a relation", "entity", "relation", "target")
    command("unrelate", "takes a target away, or all",
            lambda url, given: show(post(url, "relate", entity=given.entity, relation=given.relation, target="",
                                         **{"from": given.target})), "entity", "relation").add_argument("target", nargs="?")
    command("create", "creates an entity: empty, from a prefab, or as a copy",
            lambda url, given: show(post(url, "create", prefab=given.prefab, copy=given.copy)), prefab=None, copy=None)
    posting("destroy", "destroys an entity", "entity")
    posting("undo", "goes back to the state before the edits")
    for name, point in (("switch", "system"), ("switch-set", "system_set")):
        one = command(name, f"switches a {point.replace('_', ' of a ')} on or off",
                      lambda url, given, point=point: show(post(url, point, name=given.name, on=int(given.state == "on"))),
                      "name")
        one.add_argument("state", choices=["on", "off"])

    posting("pause", "pauses the program")
    posting("resume", "lets the program go on")
    command("step", "runs frames, and waits for them", do_step, timeout=10.0).add_argument("count", nargs="?", type=int, default=1)
    posting("restore", "goes back to a kept frame", "frame")
    one = command("compare", "what differs between two kept frames",
                  lambda url, given: show(get(url, "delta", **{"from": given.first}, to=given.last, limit=given.limit,
                                              entity=given.entity)), "first", limit=1000, entity=None)
    one.add_argument("last", nargs="?")
    one = command("break", "stops the program when conditions become true, or an entity changes", do_break, entity=None,
                  query=None)
    one.add_argument("where", nargs="?")
    one.add_argument("--change", nargs="?", const="", metavar="PATH", help="when the entity, or one field, changes")
    command("wait", "waits until the program stands still", do_wait, timeout=60.0)
    posting("probe", "keeps the values of a field", "entity", "path")
    getting("probes", "kept values and conditions")
    posting("unprobe", "removes a probe or a condition", "probe")
    one = command("watch", "prints fields as CSV until interrupted", do_watch, count=-1, rate=10.0, json=False)
    one.add_argument("entity")
    one.add_argument("paths", nargs="+")
    command("save", "saves the world as an archive", do_save, "file", leave_out=None)
    command("case", "records frames as a test case: an archive, a recording and a C program", do_case, "folder", frames=60,
            timeout=60.0)
    one = command("ask", "sends a request to any end point", do_ask)
    one.add_argument("method", choices=["GET", "POST"])
    one.add_argument("point")
    one.add_argument("arguments", nargs="*", metavar="name=value")
    return parser


def main(arguments):
    given = parser_of().parse_args(arguments)
    url = os.environ.get("QUERN_INSPECT_URL", "") if given.url == "-" else given.url
    if not url.startswith("http://"):
        raise Failed(f"'{url}' is no address: it begins with http://, as the program prints it", USAGE)
    given.do(url, given)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
        sys.stdout.flush()
    except Failed as failure:
        print(f"quern_inspect: {failure}", file=sys.stderr)
        sys.exit(failure.code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except OSError as problem:
        # What is left for standard output cannot be written; nor does the interpreter, when it ends, complain of that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(problem, BrokenPipeError):  # the reader had enough, such as head
            print(f"quern_inspect: {problem.filename or 'the output'}: {problem.strerror}", file=sys.stderr)
            sys.exit(USAGE)
