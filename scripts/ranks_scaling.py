#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""ranks_scaling.py PROGRAM [AGENTS [FRAMES [LATENCY_US MB_PER_S [MOST_RANKS]]]]: runs the flock of examples/ranks on 1 to 4
ranks of this machine, and prints tables: strong scaling (AGENTS in all), weak scaling (AGENTS per rank), and a prediction
for more ranks.

Of each run it shows the measured time per frame, the processor time of the frame on the slowest rank, and the
processor time that a rank spends in the library for exchanges. These times do not depend on other programs on the
machine as much as the first. A model is fitted to them:

    frame    = f * (own agents + ghosts)
    exchange = a * own agents + g * ghosts + p * packets

The prediction is for ranks with a processor of their own in a square: 8 neighbours, ghosts in a strip around the box,
two packets for each neighbour and four for the sums of all ranks; plus the latency of two exchanges and of a tree of
sums, twice its depth, and bytes by the bandwidth: those of the command line, or else as measured between two ranks of
this machine. Beside it are simulated runs of up to MOST_RANKS ranks (64, at most 240) in one process, PROGRAM_alone, whose
clocks move by the processor time of each rank, and by the same network. Times are in milliseconds per frame."""

import json
import math
import os
import subprocess
import sys

MARGIN, AGENTS_PER_CELL, SIMULATED_FRAMES = 19 / 16, 4, 16


def run(program, ranks, *options):
    command = ["mpirun", "--oversubscribe", "-n", str(ranks), program, "--json", *map(str, options)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output.strip().splitlines()[-1])


def simulate(program, ranks, agents, ping):
    """Seconds per frame of a simulated run, or None with one rank, which has no network."""
    if ranks == 1:
        return None
    command = [program + "_alone", "--json", "--ranks", str(ranks), "--agents", str(agents * ranks), "--timeout", "86400",
               "--frames", str(SIMULATED_FRAMES), "--latency-us", str(max(1, round(1e6 * ping["latency_seconds"]))),
               "--megabytes", str(max(1, round(1e-6 * ping["bytes_per_second"])))]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(output)["simulated_seconds_per_frame"]


def table(title, program, agents_of, frames):
    print(f"\n{title}\n\n| ranks | agents | measured | frame on the slowest rank | exchanges of a rank | ghosts of a rank | "
          "bytes sent by a rank | hash |\n|---|---|---|---|---|---|---|---|")
    rows = []
    for ranks in (1, 2, 3, 4):
        agents = agents_of(ranks)
        row = run(program, ranks, "--agents", agents, "--frames", frames, "--timeout", 600)
        rows.append(row)
        print(f"| {ranks} | {agents} | {1e3 * row['seconds_per_frame']:.2f} | {1e3 * row['step_seconds_per_frame']:.2f} | "
              f"{1e3 * row['own_seconds_per_frame']:.2f} | {row['ghosts_per_frame'] / ranks:.0f} | "
              f"{row['bytes_per_frame'] / ranks:.0f} | {row['hash']} |")
    return rows


def solve(matrix, vector):
    """Solves linear equations by elimination; a column without a pivot gets 0."""
    size = len(vector)
    rows = [list(row) + [value] for row, value in zip(matrix, vector)]
    for i in range(size):
        best = max(range(i, size), key=lambda row: abs(rows[row][i]))
        rows[i], rows[best] = rows[best], rows[i]
        if abs(rows[i][i]) < 1e-12:
            rows[i] = [float(k == i) for k in range(size)] + [0.0]
        for k in range(size):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def fit(samples):
    """Least squares: samples are (factors, value). Negative factors are dropped, the worst first."""
    used = list(range(len(samples[0][0])))
    while used:
        matrix = [[sum(x[i] * x[k] for x, _ in samples) for k in used] for i in used]
        found = solve(matrix, [sum(x[i] * y for x, y in samples) for i in used])
        worst = min(range(len(used)), key=lambda i: found[i])
        if found[worst] >= 0:
            return [found[used.index(i)] if i in used else 0.0 for i in range(len(samples[0][0]))]
        del used[worst]
    return [0.0] * len(samples[0][0])


def predict(program, rows, ping, agents, most_ranks):
    per_rank = [(row["entities_at_end"] / row["ranks"], row["ghosts_per_frame"] / row["ranks"],
                 row["packets_per_frame"] / row["ranks"]) for row in rows]
    (step,) = fit([((own + ghosts,), row["step_seconds_per_frame"]) for (own, ghosts, _), row in zip(per_rank, rows)])
    own_cost, ghost_cost, packet_cost = fit([(x, row["own_seconds_per_frame"]) for x, row in zip(per_rank, rows)])
    sent = [row for row in rows if row["ghosts_per_frame"] > 0]
    ghost_bytes = sum(row["bytes_per_frame"] for row in sent) / sum(row["ghosts_per_frame"] for row in sent)
    print(f"\nmodel: a frame costs {1e9 * step:.0f} ns for each agent and ghost; exchanges {1e9 * own_cost:.0f} ns for each agent, "
          f"{1e9 * ghost_cost:.0f} ns for each ghost, {1e6 * packet_cost:.1f} us for each packet; {ghost_bytes:.0f} bytes for each ghost")
    print("\nPrediction, not measured: weak scaling with a processor for each rank\n\n| ranks | ghosts of a rank | frame | exchanges | "
          "network | sum | efficiency | simulated |\n|---|---|---|---|---|---|---|---|")
    alone = None
    for ranks in (1, 4, 16, 64, 240, 1024):
        side = math.sqrt(agents / AGENTS_PER_CELL)
        ghosts = AGENTS_PER_CELL * ((side + 2 * MARGIN) ** 2 - side ** 2) if ranks > 1 else 0
        packets = 20 if ranks > 1 else 0
        frame = step * (agents + ghosts)
        exchange = own_cost * agents + ghost_cost * ghosts + packet_cost * packets
        depth = math.ceil(math.log2(ranks)) if ranks > 1 else 0
        network = (2 * (ranks > 1) + 2 * depth) * ping["latency_seconds"] + ghosts * ghost_bytes / ping["bytes_per_second"]
        alone = alone or frame + exchange
        total = frame + exchange + network
        simulated = simulate(program, ranks, agents, ping) if ranks <= most_ranks else None
        print(f"| {ranks} | {ghosts:.0f} | {1e3 * frame:.2f} | {1e3 * exchange:.2f} | {1e3 * network:.3f} | {1e3 * total:.2f} | "
              f"{100 * alone / total:.0f} % | {f'{1e3 * simulated:.2f}' if simulated else ''} |", flush=True)


def main():
    program = sys.argv[1]
    agents = int(sys.argv[2]) if len(sys.argv) > 2 else 20000
    frames = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    ping = run(program, 2, "--ping")
    print(f"{len(os.sched_getaffinity(0))} processors, latency {1e6 * ping['latency_seconds']:.2f} us, "
          f"bandwidth {ping['bytes_per_second'] / 1e6:.0f} MB/s")
    strong = table("Strong scaling", program, lambda ranks: agents, frames)
    weak = table("Weak scaling", program, lambda ranks: agents * ranks, frames)
    if len(sys.argv) > 5:
        ping = {"latency_seconds": 1e-6 * float(sys.argv[4]), "bytes_per_second": 1e6 * float(sys.argv[5])}
    predict(program, strong + weak, ping, agents, int(sys.argv[6]) if len(sys.argv) > 6 else 64)


main()
