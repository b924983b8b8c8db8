#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: test_printed.py FOLDER

Tests that the example programs in the folder print the lines that examples/README.md shows for them.
"""

import os
import re
import subprocess
import sys

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))

with open(os.path.join(ROOT, "examples/README.md"), encoding="utf-8") as file:
    rows = re.findall(r"^\| \[([a-z_]+)\]\(.*\| `([^`]+)` \|$", file.read(), re.M)
count = 0
for name, text in rows:
    program = os.path.join(sys.argv[1], name)
    if not os.path.exists(program):
        continue
    run = subprocess.run([program], capture_output=True, text=True, check=False)
    count += 1
    if run.returncode != 0 or text not in run.stdout:
        sys.exit(f"{name} returns {run.returncode} and does not print '{text}', but:\n{run.stdout}{run.stderr}")
print(f"{count} of {len(rows)} programs print their lines")
sys.exit(count == 0)
