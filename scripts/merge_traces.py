#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""merge_traces.py OUT RANK.json ...: merges traces of ranks (--trace of programs with <quern/kit/ranks_main.h>) into one
time line, with a process for each file, in the order of the arguments. All traces start when the ranks have met, so
their times agree up to the latency of a packet. chrome://tracing and https://ui.perfetto.dev show the result."""

import json
import os
import sys


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    merged = []
    for rank, path in enumerate(sys.argv[2:]):
        with open(path, encoding="utf-8") as file:
            trace = json.load(file)
        events = trace["traceEvents"] if isinstance(trace, dict) else trace
        name = os.path.splitext(os.path.basename(path))[0]
        merged.append({"name": "process_name", "ph": "M", "pid": rank, "args": {"name": name}})
        merged += [{**event, "pid": rank} for event in events if event.get("name") != "process_name"]
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"traceEvents": merged}, file)
        file.write("\n")


main()
