#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: schedule_dot.py [FILE]

Draws a schedule: reads the JSON of quern_schedule_describe from FILE, or from standard input, and writes a
graph for Graphviz.

    ./run demo --explain=json | scripts/schedule_dot.py | dot -Tsvg >schedule.svg
"""

import contextlib
import io
import json
import sys

EDGE_STYLES = {
    "pass": "style=dashed",
    "graph": "style=solid",
    "implied": "style=dotted, constraint=false",
}

# The names of nodes are stored in the parsed JSON: system["node"] is the box of a system, segment["node"] the node
# after which the next segment begins, such as a sync point.


def escaped(text):
    """Returns the text for use in a quoted label, with all characters escaped that Graphviz would interpret."""
    special = {'"': '\\"', "\\": "\\\\", "&": "&amp;"}
    return "".join(
        f"\\\\x{ord(c):02X}" if c < " " or c == "\x7f" else special.get(c, c) for c in text
    )


def systems_of(segments):
    return [system for segment in segments for one in segment.get("passes", []) for system in one["systems"]]


def name_nodes(segments):
    for index, system in enumerate(systems_of(segments)):
        system["node"] = f"s{index}"
    for index, segment in enumerate(segments):
        exclusive = segment["kind"] == "exclusive"
        segment["node"] = segment["passes"][0]["systems"][0]["node"] if exclusive else f"g{index}"


# ---------------------------------------------------------------------------------------------- boxes


def draw_pass(one):
    number, chunks = one["pass"], one["chunks"]
    label = f"pass {number}"
    if one["kind"] == "events":
        label += "\\nevents, parallel"
    elif one["kind"] != "once":
        plural = "" if chunks == 1 else "s"
        label += f"\\n{chunks} chunk{plural}, {'serial' if one['kind'] == 'serial' else 'parallel'}"
    print(f'    subgraph cluster_pass_{number} {{\n      label="{label}";')
    for system in one["systems"]:
        style = "" if system["enabled"] else ", style=dashed"
        print(f'      {system["node"]} [label="{escaped(system["name"])}"{style}];')
    print("    }")


def draw_phase(index, phase):
    label = f"phase '{escaped(phase['name'])}'"
    if phase["fixed_step"] is not None:
        label += f"\\nin steps of {phase['fixed_step']['seconds']} s"
    print(f'  subgraph cluster_phase_{index} {{\n    label="{label}";')
    for segment in phase["segments"]:
        for one in segment.get("passes", []):
            draw_pass(one)
        if segment["kind"] == "sync":
            print(f'    {segment["node"]} [label="sync", shape=ellipse];')
    print("  }")


# ---------------------------------------------------------------------------------------------- edges


def writes(system, component):
    return any(t["component"] == component and t["access"] == "write" for t in system["terms"])


def looks_up(system, component):
    return component in system["lookups"] or component in system["write_lookups"]


def has_query(system, component, accesses):
    terms = [t for query in system.get("queries", []) for t in query["terms"]]
    return any(t["component"] == component and t["path"] == "row" and t["access"] in accesses for t in terms)


def cause_text(cause, earlier, later):
    kind, name = cause["cause"], escaped(cause["name"] or "")
    if kind == "exclusive":
        return kind
    if kind == "before_after":
        return "before/after"
    if kind != "lookup":
        return f"{kind} '{name}'"
    for writer, reader in ((earlier, later), (later, earlier)):
        if writes(writer, cause["name"]) and looks_up(reader, cause["name"]):
            return f"lookup of '{name}' written by '{escaped(writer['name'])}'"
        if writes(writer, cause["name"]) and has_query(reader, cause["name"], ("read", "write")):
            return f"query of '{name}' written by '{escaped(writer['name'])}'"
    for writer in (earlier, later):
        if cause["name"] in writer["write_lookups"]:
            return f"write lookup of '{name}' by '{escaped(writer['name'])}'"
    for writer in (earlier, later):
        if has_query(writer, cause["name"], ("write",)):
            return f"query that writes '{name}' by '{escaped(writer['name'])}'"
    writer = earlier if writes(earlier, cause["name"]) else later
    return f"up-term on '{name}' written by '{escaped(writer['name'])}'"


def draw_edge(edge, systems):
    earlier, later = systems[edge["before"]], systems[edge["after"]]
    label = "\\n".join(cause_text(cause, earlier, later) for cause in edge["causes"])
    style = EDGE_STYLES[edge["kept_by"]]
    if edge["by_registration_alone"]:
        style += ", color=orangered"
    print(f'  {earlier["node"]} -> {later["node"]} [label="{label}", {style}];')


def draw_gray(before, after):
    print(f"  {before} -> {after} [color=gray];")


def draw_run(segment, before, after):
    """Draws the edges of a segment that begins after the node `before` and ends before the node `after`."""
    systems = {system["name"]: system for system in systems_of([segment])}
    for edge in segment["edges"]:
        draw_edge(edge, systems)
    awaited = {number for one in segment["passes"] for number in one["waits_for"]}
    for one in segment["passes"]:
        if not one["waits_for"]:
            draw_gray(before, one["systems"][0]["node"])
        if one["pass"] not in awaited:
            draw_gray(one["systems"][-1]["node"], after)


# ------------------------------------------------------------------------------------------------ all


def draw(schedule):
    if schedule["version"] != 1:
        raise ValueError(f"version of the format is {schedule['version']}, but this script reads version 1")
    segments = [segment for phase in schedule["phases"] for segment in phase["segments"]]
    name_nodes(segments)
    print('digraph schedule {\n  node [shape=box];\n  frame [label="frame", shape=ellipse];')
    for index, phase in enumerate(schedule["phases"]):
        draw_phase(index, phase)
    last = "frame"
    for index, segment in enumerate(segments):
        if segment["kind"] == "run":  # the next segment is a sync point; this draws the edges to it as well
            draw_run(segment, last, segments[index + 1]["node"])
        else:
            if index == 0 or segments[index - 1]["kind"] != "run":
                draw_gray(last, segment["node"])
            last = segment["node"]
    print("}")


def main():
    arguments = sys.argv[1:]
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__.strip())
        return 0 if len(arguments) == 1 else 2
    path = arguments[0] if arguments else "-"
    try:
        with open(0 if path == "-" else path, encoding="utf-8") as file:
            schedule = json.load(file, parse_float=str)  # seconds as they were written
        graph = io.StringIO()
        with contextlib.redirect_stdout(graph):
            draw(schedule)
        sys.stdout.reconfigure(encoding="utf-8")
        print(graph.getvalue(), end="", flush=True)
    except OSError as error:
        print(f"schedule_dot.py: {error}", file=sys.stderr)
        return 1
    except (ValueError, TypeError, LookupError) as error:
        print(
            f"schedule_dot.py: {'standard input' if path == '-' else path} is not the JSON of "
            f"quern_schedule_describe: {type(error).__name__}: {error}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
