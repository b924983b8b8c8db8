#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""A recorded game that is shown in the inspector ends in the same world, also after it was paused, taken back and
continued from the page.

usage: test_keep_inspect.py KEEP_HEADLESS ROOT
"""

import importlib.util
import json
import os
import subprocess
import sys
import time

STEPS = 300
PACE = "150"  # steps per second


def play(program, *arguments):
    output = subprocess.run([program, "--frames", str(STEPS), "--threads", "2", "--json", *arguments],
                            check=True, capture_output=True, text=True).stdout
    return json.loads(output.splitlines()[-1])["hash"]


def load_client(root):
    path = os.path.join(root, "scripts", "quern_inspect.py")
    specification = importlib.util.spec_from_file_location("quern_inspect", path)
    client = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(client)
    return client


def scrub(client, url):
    """Pauses the game, goes back and forth, and lets it go on from an earlier step."""
    def ask(method, path, **arguments):
        return client.ask(url, method, path, **arguments)

    while ask("GET", "world")["frame"] < 80:
        time.sleep(0.02)
    ask("POST", "pause")
    before = ask("GET", "hash")
    for frame in (before["frame"] - 40, before["frame"] - 70, before["frame"]):
        ask("POST", "restore", frame=frame)
    assert ask("GET", "hash") == before, "going back and forth changed the world"
    names = {kind["name"] for kind in ask("GET", "types")["components"] if kind["fields"]}
    assert {"Health", "Enemy", "Turret"} <= names, f"only {names} are described"
    assert ask("GET", "entities", query="Tower", limit=5, values=1)["count"] > 0, "the game has no towers"
    ask("POST", "restore", frame=before["frame"] - 60)
    ask("POST", "step", count=5)
    time.sleep(0.2)
    ask("POST", "resume")


def main():
    program, root = sys.argv[1:3]
    refused = subprocess.run([program, "--inspect", "--rewind"], capture_output=True, text=True)
    assert refused.returncode == 2 and "--rewind" in refused.stderr, refused.stderr
    shown = subprocess.Popen([program, "--inspect", "--pace", PACE, "--frames", str(STEPS), "--threads", "2", "--json"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = shown.stdout.readline()
    if not line.startswith("inspector: http"):
        print("skipped: the game was built without the inspector")
        sys.exit(77)
    scrub(load_client(root), line.split()[1])
    output = shown.communicate(timeout=60)[0]
    assert shown.returncode == 0, output
    found, expected = json.loads(output.splitlines()[-1])["hash"], play(program)
    assert found == expected, f"the inspected game ends with {found}, the plain one with {expected}"
    assert play(program, "--inspect", "--pace", "0") == expected, "an inspector without a page changed the game"
    print(f"one hash: {found}")


if __name__ == "__main__":
    main()
