#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""Tests that docs/costs.md and docs/benchmarks/results.md have the tables that scripts/bench_tables.py makes of the stored
run, and that the script leaves out what the run does not show."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
SCRIPT = os.path.join(ROOT, "scripts/bench_tables.py")

MACHINE = {"type": "machine", "processor": "Model 1", "system": "Linux 6.1-x", "compiler": "gcc 12", "flags": "-O3",
           "quern": "0.1.0", "commit": "abc", "date": "2026-11-27T19:58:42Z"}


def result(subject, cost, mad, **more):
    return {"type": "result", "workload": "get", "subject": subject, "entities": 1000, "threads": 1, "ns_per_op": cost,
            "mad": mad, **more}


def quern(mad=0.1, **more):
    return result("quern", 20.0, mad, **{"control": "raw", "ratio": 2.0, "is_unclear": False, **more})


def table(*results, kind="costs"):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        file.writelines(json.dumps(record) + "\n" for record in (MACHINE, *results))
    try:
        return subprocess.run([sys.executable, SCRIPT, kind, file.name], capture_output=True, text=True, check=False)
    finally:
        os.unlink(file.name)


class Costs(unittest.TestCase):
    def test_pages_have_tables_of_stored_run(self):
        for kind, page in (("costs", "docs/costs.md"), ("results", "docs/benchmarks/results.md")):
            run = subprocess.run([sys.executable, SCRIPT, kind, os.path.join(ROOT, "docs/benchmarks/results.jsonl")],
                                 capture_output=True, text=True, check=True)
            with open(os.path.join(ROOT, page), encoding="utf-8") as file:
                self.assertIn(run.stdout, file.read(), page)

    def test_results_have_least_samples_and_aims(self):
        raw, found = result("raw", 10.0, 0.1, min=8.0), quern(min=16.4)
        text = table({**raw, "workload": "ref"}, {**found, "workload": "ref"}, kind="results").stdout
        self.assertIn("| `ref` | 1,000 | quern | 16.4 | 2.05 | **0.48** |  |  |  |", text)
        self.assertIn("1 aims are missed", text)
        text = table({**raw, "workload": "ref"}, {**found, "workload": "ref", "min": 3.0}, kind="results").stdout
        self.assertIn("| 3.00 | 0.38 | 0.48 |", text)

    def test_steady_result_is_a_row(self):
        text = table(result("raw", 10.0, 0.1), quern()).stdout
        self.assertIn("| `get` | 1,000 | 20.0 ns | 2.00 |", text)
        self.assertIn("- none", text)
        self.assertIn("Measured on Model 1, Linux 6.1, 1 thread, on 2026-11-27;", text)

    def test_unsteady_result_is_left_out(self):
        text = table(result("raw", 10.0, 0.1), quern(mad=3.0)).stdout
        self.assertNotIn("| `get` |", text)
        self.assertIn("- `get`, 1,000 entities: 20.0 ns, spread 15 %", text)

    def test_unsteady_control_has_no_ratio(self):
        self.assertIn("| 20.0 ns | control unsteady |", table(result("raw", 10.0, 3.0), quern()).stdout)
        self.assertIn("| 2.00 (not clear) |", table(result("raw", 10.0, 0.1), quern(is_unclear=True)).stdout)

    def test_other_files_are_refused(self):
        run = table()
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("no results", run.stderr)
        run = subprocess.run([sys.executable, SCRIPT, "costs", "missing.jsonl"], capture_output=True, text=True,
                             check=False)
        self.assertIn("cannot read missing.jsonl", run.stderr)
        self.assertNotIn("Traceback", run.stderr)


if __name__ == "__main__":
    unittest.main()
