#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""ranks_scaling.py PROGRAM [AGENTS [FRAMES]]: runs the flock of examples/ranks on 1 to 4 ranks of this machine, and
prints two tables: strong scaling (AGENTS in all) and weak scaling (AGENTS per rank). Each row has the measured time
per frame and a forecast: the processor time of one rank, shared by the ranks, plus three exchanges of messages by
the latency and bandwidth that the program measures between two ranks. "slowest rank" is the processor time that the
slowest rank needs to run its own part, which other programs on the machine hardly change. Times are in milliseconds
per frame."""

import json
import os
import subprocess
import sys


def run(program, ranks, *options):
    command = ["mpirun", "--oversubscribe", "-n", str(ranks), program, "--json", *map(str, options)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])


def forecast(alone, result, ping, processors):
    """Seconds per frame of `result`, from the run on one rank and the ping."""
    ranks = result["ranks"]
    at_once = min(ranks, processors)
    compute = alone["step_seconds_per_frame"] * result["agents_at_end"] / alone["agents_at_end"] / at_once
    if ranks == 1:
        return compute
    sent = result["bytes"] / result["frames"] / at_once
    return compute + 3 * ping["latency_seconds"] + sent / ping["bytes_per_second"]


def table(title, program, agents_of, frames, ping, processors):
    print(title)
    print("ranks   agents  ms/frame  forecast  slowest rank  bytes/frame  hash by id")
    alone = None
    for ranks in (1, 2, 3, 4):
        result = run(program, ranks, "--agents", agents_of(ranks), "--frames", frames)
        alone = alone or result
        print(f"{ranks:5} {result['agents']:8} {1e3 * result['seconds_per_frame']:9.3f} "
              f"{1e3 * forecast(alone, result, ping, processors):9.3f} "
              f"{1e3 * result['step_seconds_per_frame']:13.3f} {result['bytes'] / frames:12.0f}  {result['hash']}")


def main():
    program = sys.argv[1]
    agents = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    frames = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    processors = len(os.sched_getaffinity(0))
    ping = run(program, 2, "--ping")
    print(f"{processors} processors, latency {1e6 * ping['latency_seconds']:.2f} us, "
          f"bandwidth {ping['bytes_per_second'] / 1e6:.0f} MB/s")
    table("strong scaling", program, lambda ranks: agents, frames, ping, processors)
    table("weak scaling", program, lambda ranks: agents * ranks, frames, ping, processors)


main()
