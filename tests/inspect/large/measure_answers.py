#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Measures what the page of a large program asks for: how long answers take, and how long they keep the program.

usage: measure_answers.py LARGE ROOT [ENTITIES [TIMES [budget]]]

Prints, for each request, its bytes, and the least and the median of the milliseconds until it is answered, while the program
runs and while it is paused; and how long the longest update was that belonged to it. The least is what a machine without
other work would show; repeat the measurement if the two differ much. With "budget", the program gives the inspector its budget
alone.
"""

import importlib.util
import os
import statistics
import subprocess
import sys
import time

REQUESTS = [("world", {}), ("types", {}), ("access", {}), ("schedule", {}), ("systems", {}), ("statistics", {}), ("history", {}),
            ("commands", {}), ("archetypes", {"limit": 1000}), ("roots", {"limit": 50}), ("entity", {"entity": "0:1"}),
            ("entity", {"entity": "DEEP"}), ("sources", {"entity": "DEEP"}), ("matches", {"entity": "0:1"}),
            ("entities", {"name": "house 9", "anywhere": 1, "limit": 20}), ("entities", {"query": "Energy", "offset": 90000, "limit": 50}),
            ("table", {"query": "Energy", "columns": "Energy.value,Position.x", "limit": 80}),
            ("table", {"query": "Energy", "columns": "Energy.value,Position.x", "limit": 80, "sort": "Energy.value"}),
            ("table", {"query": "Energy", "columns": "Energy.value", "where": "Energy.value < 1", "limit": 80})]


def measure(client, url, times, deep):
    for name, given in REQUESTS:
        arguments = {key: deep if value == "DEEP" else value for key, value in given.items()}
        spent, before = [], client.get(url, "world")["inspector"]["spent_ns"]
        for _ in range(times):
            begin = time.perf_counter()
            size = len(client.ask_bytes(url, "GET", name, **arguments))
            spent.append(1000 * (time.perf_counter() - begin))
        used = (client.get(url, "world")["inspector"]["spent_ns"] - before) / times / 1e6
        text = " ".join(f"{key}={value}" for key, value in given.items())
        print(f"{name:11} {text:75.75} {size:8} B  least {min(spent):7.1f} ms  median {statistics.median(spent):7.1f} ms  "
              f"work {used:6.2f} ms", flush=True)


def main():
    specification = importlib.util.spec_from_file_location("quern_inspect", os.path.join(sys.argv[2], "scripts", "quern_inspect.py"))
    client = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(client)
    entities, times = sys.argv[3] if len(sys.argv) > 3 else "100000", int(sys.argv[4]) if len(sys.argv) > 4 else 20
    program = subprocess.Popen([sys.argv[1], entities, *sys.argv[5:6]], stdout=subprocess.PIPE, text=True)
    try:
        url = program.stdout.readline().split()[1]
        time.sleep(1)
        deep = client.get(url, "entities", name="branch999", limit=1)["entities"][0]["entity"]
        print("running")
        measure(client, url, times, deep)
        client.post(url, "pause")
        print("paused")
        measure(client, url, times, deep)
        client.post(url, "resume")
        print({key: value for key, value in client.get(url, "world")["inspector"].items() if key.endswith("_ns")})
    finally:
        program.terminate()
        program.wait()


if __name__ == "__main__":
    main()
