#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""bench_tables.py costs|results FILE: prints the results of a run of quern_bench, as JSON, as a table in Markdown.

Make the file with `quern_bench --json FILE`.

costs: a table of operations on one thread, by the median. A result whose samples spread by more than the limit of the
run is left out and named below the table. A ratio is left out if the hand-written control spreads by more than that
limit.

results: all workloads on 1 and 2 threads, by the least sample, with the aims of AIMS."""

import json
import sys

# What one unit of a workload's subject does. Subjects without an entry are controls, or compare with other subjects.
OPERATIONS = {
    ("iter", "quern"): "position += velocity by a loop over a query, per entity",
    ("iter", "system"): "position += velocity by a system, per entity",
    ("iter_wide", "quern"): "the same by a system that touches 24 of 72 bytes, per entity",
    ("frame7", "quern"): "a frame of seven systems, per entity",
    ("frame20", "quern"): "a frame of twenty systems, per entity",
    ("frame_empty1", "quern"): "a frame of 100 systems with one entity each",
    ("create", "quern"): "create an entity with two values, in a new world",
    ("create_bulk", "quern"): "create many entities in one call, per entity",
    ("destroy_order", "quern"): "destroy an entity",
    ("destroy_shuffled", "quern"): "destroy an entity, in a random order",
    ("destroy_many_shuffled", "quern"): "destroy a list of entities in a random order, per entity",
    ("add_remove", "quern"): "add and remove a component",
    ("iter_arch10000", "quern"): "iterate over 10,000 archetypes in a system, per entity",
    ("iter_arch10000", "query"): "iterate over 10,000 archetypes by a query outside of systems, per entity",
    ("walk_half", "quern"): "iterate with half of the rows disabled, by the bits of rows, per entity",
    ("walk_half", "ranges"): "iterate with half of the rows disabled, by ranges of enabled rows, per entity",
    ("get", "quern"): "read a component by handle, in a random order",
    ("get_many", "quern"): "read a component of many entities in one call, per entity",
    ("ref", "quern"): "read a component by a ref, in a random order",
    ("toggle", "quern"): "disable or enable a component, in a random order",
    ("toggle", "many"): "disable or enable a component of many entities in one call, per entity",
    ("walk_enabled", "quern"): "iterate with one in ten rows disabled, per entity",
    ("spawn", "quern"): "a frame that replaces 1,000 of 100,000 entities by commands",
    ("accumulate", "quern"): "add to a value of another entity by command",
    ("event_emit", "quern"): "emit an event in a system",
    ("event_read", "quern"): "read an event in a system",
    ("changed_rows", "quern"): "find the rows that have changed, one in a hundred, per entity",
    ("written_rows", "quern"): "write a column that a filter by row watches, per entity",
    ("written_rows", "chunk"): "write a column that a filter by chunk watches, per entity",
    ("record_pair", "quern"): "add and remove a component by two commands, each applied",
    ("deferred_view", "quern"): "add and remove a component of all rows of a view by two commands, per entity",
    ("deferred_view_half", "quern"): "add and remove a component of half of the rows of a view, per entity",
    ("destroy_view", "quern"): "destroy a tenth of the rows of a view by one command, per destroyed entity",
    ("relate_leaf", "quern"): "give a leaf a parent on another level",
    ("relate_leaf_many", "quern"): "give many leaves a parent on another level in one call, per leaf",
    ("relate_leaf_command", "quern"): "give a leaf a parent on another level by command",
    ("relate_any", "quern"): "give any node of a tree another parent",
    ("relate_any", "many"): "give many nodes of a tree another parent in one call, per node",
    ("relate_same_level", "quern"): "give a leaf another parent on the same level",
    ("tree_create", "quern"): "create a node of a tree",
    ("tree_destroy", "quern"): "destroy a node of a tree",
    ("edges_add", "quern"): "add an edge of a relation with several targets",
    ("edges_add", "many"): "add many edges in one call, per edge",
    ("edges_add", "command"): "add an edge by command",
    ("edges_remove", "quern"): "remove an edge",
    ("edges_iterate", "quern"): "visit an edge",
    ("edges_mem", "quern"): "memory of an edge",
    ("prefab_spawn", "quern"): "spawn trees of four entities from a prefab in one call, per tree",
    ("prefab_spawn", "single"): "spawn a tree of four entities from a prefab",
    ("prefab_spawn", "command"): "spawn a tree of four entities from a prefab by command",
    ("transform", "quern"): "transform a node, of all nodes",
    ("transform_sparse", "quern"): "transform a node below a root that has moved, marked",
    ("transform_sparse", "set"): "transform a node below a root that was moved by `quern_entity_set`",
    ("react_add_one", "quern"): "add a component that a reaction watches",
    ("react_set_one", "quern"): "set a component that a reaction watches",
    ("react_remove_one", "quern"): "remove a component that a reaction watches",
    ("emit_one", "quern"): "emit an event outside of frames",
    ("archive_save", "quern"): "save an entity of 100 bytes to an archive",
    ("archive_load", "quern"): "load an entity of 100 bytes from an archive",
    ("history_save", "quern"): "save a frame of a history with a tenth of the chunks written, per entity",
    ("history_restore", "quern"): "restore such a frame, per entity",
    ("session_1000", "quern"): "move an entity to another world, 1,000 in a message",
    ("session_1", "quern"): "move an entity to another world, one in a message",
    ("rollback8", "frames"): "eight frames of seven systems, per entity",
    ("rollback8", "one saved"): "eight frames of seven systems, one restored and one saved, per entity",
    ("rollback8", "all saved"): "eight frames of seven systems, one restored and all saved, per entity",
    ("json_write", "quern"): "write an entity with nine values as JSON",
    ("json_read", "quern"): "read an entity with nine values from JSON",
    ("text_get", "quern"): "read a field as text, by its path",
    ("text_set", "quern"): "set a field from text, by its path",
    ("compile_1000", "quern"): "compile a schedule of 1,000 systems",
    ("compile_4000", "quern"): "compile a schedule of 4,000 systems",
}

# Aims as ratios of the least samples: (workload, subject, entities; 0: any, threads).
AIMS = {
    ("iter", "quern", 100000, 1): 1.05,
    ("iter", "quern", 1000000, 1): 1.03,
    ("iter", "quern", 5000000, 1): 1.0,
    ("iter_wide", "quern", 262144, 1): 1.05,
    ("iter_frag26", "quern", 0, 1): 0.9,
    ("frame7", "quern", 10000, 1): 1.1,
    ("frame7", "quern", 100000, 1): 1.0,
    ("frame7", "quern", 1000000, 1): 0.7,
    ("frame7", "unfused", 0, 1): 1.1,
    ("frame20", "quern", 0, 1): 0.45,
    ("frame20", "unfused", 0, 1): 0.9,
    ("systems_apart", "quern", 0, 1): 1.05,
    ("systems_apart", "unfused", 0, 1): 1.1,
    ("add_remove", "quern", 0, 1): 1.6,
    ("add_remove2", "quern", 0, 1): 1.6,
    ("add_two", "quern", 0, 1): 1.8,
    ("get_many", "quern", 0, 1): 0.5,
    ("ref", "quern", 0, 1): 0.48,
    ("spawn", "quern", 100000, 1): 1.3,
    ("spawn", "quern", 100000, 2): 1.0,
    ("changed_rows", "quern", 0, 1): 1.25,
    ("destroy_view", "quern", 0, 1): 1.0,
    ("prefab_spawn", "quern", 0, 1): 2.0,
    ("transform_sparse", "quern", 0, 1): 2.0,
    ("relate_leaf", "quern", 0, 1): 3.5,
    ("relate_leaf_many", "quern", 0, 1): 1.8,
    ("relate_leaf_command", "quern", 0, 1): 2.4,
    ("relate_any", "quern", 0, 1): 4.0,
}


def figure_of(result):
    """Returns the measure ('ns', 'bytes') and the median per unit."""
    for name, value in result.items():
        if name.endswith("_per_op"):
            return name[: -len("_per_op")], value
    sys.exit(f"bench_tables.py: a result of '{result['workload']}' has no figure per operation")


def spread_of(result):
    return result["mad"] / figure_of(result)[1]


def written(value):
    """Three digits, with commas between thousands."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def read(path):
    """Returns the record of the machine, the results, and the largest spread that counts as steady."""
    machine, results, limit = None, [], 0.1
    try:
        with open(path, encoding="utf-8") as file:
            records = [json.loads(line) for line in file]
    except (OSError, ValueError) as error:
        sys.exit(f"bench_tables.py: cannot read {path}: {error}")
    for record in records:
        if record["type"] == "machine":
            machine = record
        elif record["type"] == "result":
            results.append(record)
        elif record["type"] == "trust":
            limit = record["spread_limit"]
    if machine is None or not results:
        sys.exit(f"bench_tables.py: {path} has no machine or no results; make it with quern_bench --json")
    return machine, results, limit


def ratio_of(result, control, limit):
    if control is None or figure_of(result)[0] != "ns":
        return "-"
    if spread_of(control) > limit:
        return "control unsteady"
    return f"{result['ratio']:.2f}" + (" (not clear)" if result["is_unclear"] else "")


def costs_of(machine, results, limit):
    """Returns the lines of the table in the order of OPERATIONS, what is left out, and the machine."""
    lines = ["| operation | workload | entities | cost | ratio |", "|---|---|---|---|---|"]
    left_out = []
    order = list(OPERATIONS)
    known = [r for r in results if r["threads"] == 1 and (r["workload"], r["subject"]) in OPERATIONS]
    by_case = {case_of(r): r for r in results}
    for result in sorted(known, key=lambda r: order.index((r["workload"], r["subject"]))):
        workload, subject, entities = result["workload"], result["subject"], result["entities"]
        measure, value = figure_of(result)
        case = f"`{workload}`" + ("" if subject == "quern" else f" ({subject})")
        cost = f"{written(value)} {measure}"
        if spread_of(result) > limit:
            left_out.append(f"- {case}, {entities:,} entities: {cost}, spread {100 * spread_of(result):.0f} %")
            continue
        lines.append(f"| {OPERATIONS[workload, subject]} | {case} | {entities:,} | {cost} | "
                     f"{ratio_of(result, control_of(by_case, result), limit)} |")
    lines += ["", f"Left out, since their samples spread by more than {100 * limit:.0f} % of the median:", ""]
    lines += left_out or ["- none"]
    return lines + ["", *machine_lines(machine, "1 thread")]


def results_of(machine, results, _limit):
    """Returns the lines of the table in the order of the run, the aims that are missed, and the machine."""
    lines = ["| workload | entities | subject | 1 thread | /raw | aim | 2 threads | /raw | aim |",
             "|---|---|---|---|---|---|---|---|---|"]
    by_case = {case_of(r): r for r in results}
    cases = dict.fromkeys((r["workload"], r["entities"], r["subject"]) for r in results)
    missed = []
    for workload, entities, subject in cases:
        cells = [f"`{workload}`", f"{entities:,}" if entities > 0 else "", subject]
        for threads in (1, 2):
            result = by_case.get((workload, subject, entities, threads))
            if result is None:
                cells += ["", "", ""]
                continue
            measure, _ = figure_of(result)
            control = control_of(by_case, result)
            ratio = result["min"] / control["min"] if control is not None and control["min"] > 0 else None
            aim = AIMS.get((workload, subject, entities, threads), AIMS.get((workload, subject, 0, threads)))
            is_missed = aim is not None and ratio is not None and ratio > aim + 0.005
            if is_missed:
                missed.append(f"`{workload}`" + ("" if subject == "quern" else f" ({subject})"))
            cells += [written(result["min"]) + ("" if measure == "ns" else f" {measure}"),
                      "" if ratio is None else f"{ratio:.2f}",
                      "" if aim is None else f"**{aim:.2f}**" if is_missed else f"{aim:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines + ["", f"{len(missed)} aims are missed (bold).", "", *machine_lines(machine, "1 and 2 threads")]


def case_of(result):
    return result["workload"], result["subject"], result["entities"], result["threads"]


def control_of(by_case, result):
    return by_case.get((result["workload"], result.get("control"), result["entities"], result["threads"]))


def machine_lines(machine, threads):
    return [f"Measured on {machine['processor']}, {machine['system'].split('-')[0]}, {threads}, on "
            f"{machine['date'][:10]};",
            f"Quern {machine['quern']}, commit {machine['commit']}, {machine['compiler']} with `{machine['flags']}`."]


TABLES = {"costs": costs_of, "results": results_of}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in TABLES:
        sys.exit(__doc__)
    print("\n".join(TABLES[sys.argv[1]](*read(sys.argv[2]))))


if __name__ == "__main__":
    main()
