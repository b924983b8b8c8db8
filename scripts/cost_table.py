#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""cost_table.py FILE: prints the results of a run of quern_bench, as JSON, as a table of operations in Markdown.

Make the file with `quern_bench --json FILE`. A result whose samples spread by more than the limit of the run is left
out and named below the table. A ratio is left out if the hand-written control spreads by more than that limit. All
results must be of one thread."""

import json
import sys

# What one unit of a workload's subject does. Subjects without an entry are controls, or compare with other subjects.
OPERATIONS = {
    ("iter_arch10000", "quern"): "iterate over 10,000 archetypes in a system, per entity",
    ("iter_arch10000", "query"): "iterate over 10,000 archetypes by a query outside of systems, per entity",
    ("walk_half", "quern"): "iterate with half of the rows disabled, by the bits of rows, per entity",
    ("walk_half", "ranges"): "iterate with half of the rows disabled, by ranges of enabled rows, per entity",
    ("get", "quern"): "read a component by handle, in a random order",
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
    ("edges_add", "quern"): "add an edge of a relation with several targets",
    ("edges_add", "many"): "add many edges in one call, per edge",
    ("edges_add", "command"): "add an edge by command",
    ("edges_remove", "quern"): "remove an edge",
    ("edges_iterate", "quern"): "visit an edge",
    ("edges_mem", "quern"): "memory of an edge",
    ("prefab_spawn", "quern"): "spawn trees of four entities from a prefab in one call, per tree",
    ("prefab_spawn", "single"): "spawn a tree of four entities from a prefab",
    ("prefab_spawn", "command"): "spawn a tree of four entities from a prefab by command",
    ("transform_sparse", "quern"): "transform a node below a root that has moved, marked",
    ("transform_sparse", "set"): "transform a node below a root that was moved by `quern_entity_set`",
    ("react_add_one", "quern"): "add a component that a reaction watches",
    ("react_set_one", "quern"): "set a component that a reaction watches",
    ("react_remove_one", "quern"): "remove a component that a reaction watches",
    ("emit_one", "quern"): "emit an event outside of frames",
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


def figure_of(result):
    """Returns the measure ('ns', 'bytes') and the median per unit."""
    for name, value in result.items():
        if name.endswith("_per_op"):
            return name[: -len("_per_op")], value
    sys.exit(f"cost_table.py: a result of '{result['workload']}' has no figure per operation")


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
        sys.exit(f"cost_table.py: cannot read {path}: {error}")
    for record in records:
        if record["type"] == "machine":
            machine = record
        elif record["type"] == "result":
            results.append(record)
        elif record["type"] == "trust":
            limit = record["spread_limit"]
    if machine is None or not results:
        sys.exit(f"cost_table.py: {path} has no machine or no results; make it with quern_bench --json")
    return machine, results, limit


def ratio_of(result, control, limit):
    if control is None or figure_of(result)[0] != "ns":
        return "-"
    if spread_of(control) > limit:
        return "control unsteady"
    return f"{result['ratio']:.2f}" + (" (not clear)" if result["is_unclear"] else "")


def check(results):
    unknown = {(r["workload"], r["subject"]) for r in results if "control" in r} - OPERATIONS.keys()
    if unknown:
        sys.exit(f"cost_table.py: say in OPERATIONS what these do: {sorted(unknown)}")
    for result in results:
        if result["threads"] != 1:
            sys.exit(f"cost_table.py: '{result['workload']}' ran on {result['threads']} threads; use --threads 1")


def table_of(machine, results, limit):
    """Returns the lines of the table in the order of OPERATIONS, what is left out, and the machine."""
    lines = ["| operation | workload | entities | cost | ratio |", "|---|---|---|---|---|"]
    left_out = []
    by_case = {(r["workload"], r["subject"], r["entities"]): r for r in results}
    order = list(OPERATIONS)
    known = [r for r in results if (r["workload"], r["subject"]) in OPERATIONS]
    for result in sorted(known, key=lambda r: order.index((r["workload"], r["subject"]))):
        workload, subject, entities = result["workload"], result["subject"], result["entities"]
        measure, value = figure_of(result)
        case = f"`{workload}`" + ("" if subject == "quern" else f" ({subject})")
        cost = f"{written(value)} {measure}"
        if spread_of(result) > limit:
            left_out.append(f"- {case}, {entities:,} entities: {cost}, spread {100 * spread_of(result):.0f} %")
            continue
        ratio = ratio_of(result, by_case.get((workload, result.get("control"), entities)), limit)
        lines.append(f"| {OPERATIONS[workload, subject]} | {case} | {entities:,} | {cost} | {ratio} |")
    lines += ["", f"Left out, since their samples spread by more than {100 * limit:.0f} % of the median:", ""]
    lines += left_out or ["- none"]
    return lines + ["", f"Measured on {machine['processor']}, {machine['system'].split('-')[0]}, 1 thread, on "
                        f"{machine['date'][:10]};",
                    f"Quern {machine['quern']}, commit {machine['commit']}, {machine['compiler']} with "
                    f"`{machine['flags']}`."]


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    machine, results, limit = read(sys.argv[1])
    check(results)
    print("\n".join(table_of(machine, results, limit)))


if __name__ == "__main__":
    main()
