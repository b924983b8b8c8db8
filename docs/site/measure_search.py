#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
"""usage: measure_search.py [RUNS]

Measures how long the search of the site in build/docs (./run docs) takes to answer: from opening the first page, in a new
profile of Chromium without a window, until the first result of "prefab" is shown. The word is typed as soon as there is a
box for it. Prints the elapsed time, and the processor time of all processes of the browser, which depends less on what
else the machine does."""

import functools
import http.server
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading

SITE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/docs"))
SCRIPT = b"""<script>
let ticks = 0;
const timer = setInterval(() => {
  const box = document.querySelector("[data-md-component=search-query]");
  if (box === null) return;
  box.focus();
  box.value = ticks++ % 100 < 50 ? "prefab" : "prefabs"; // typed anew each half second: a busy browser may miss the first time
  for (const event of [new KeyboardEvent("keyup", {bubbles: true}), new Event("input", {bubbles: true})]) box.dispatchEvent(event);
  if (document.querySelector(".md-search-result__item") === null) return;
  clearInterval(timer);
  fetch("/measured/" + Math.round(performance.now()));
}, 10);
</script>"""


class Handler(http.server.SimpleHTTPRequestHandler):
    found, is_done = 0, threading.Event()

    def do_GET(self):
        is_report = self.path.startswith("/measured/")
        if is_report:
            Handler.found = int(self.path.rpartition("/")[2])
            Handler.is_done.set()
        if not is_report and self.path != "/index.html":
            super().do_GET()
            return
        with open(os.path.join(SITE, "index.html"), "rb") as file:
            body = b"" if is_report else file.read() + SCRIPT
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def processor_seconds(root):
    """Returns the processor time of a process and of those that it started."""
    parents, seconds = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(name)] = int(fields[1])
        seconds[int(name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_inside(process):
        return process == root or (process in parents and is_inside(parents[process]))

    return sum(value for process, value in seconds.items() if is_inside(process))


def measure(port):
    profile = tempfile.mkdtemp()
    Handler.is_done.clear()
    browser = subprocess.Popen(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + profile, "--remote-debugging-port=0",
                                "http://127.0.0.1:%d/index.html" % port], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    is_done = Handler.is_done.wait(120)
    used = processor_seconds(browser.pid)
    browser.terminate()
    browser.wait()
    shutil.rmtree(profile, ignore_errors=True)
    return (Handler.found / 1000, used) if is_done else None


def main():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        runs = [measure(server.server_port) for _ in range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)]
        server.shutdown()
    good = [run for run in runs if run is not None]
    for elapsed, used in good:
        print("%.2f s until the first result, %.2f s of processor time" % (elapsed, used))
    if not good:
        sys.exit("measure_search: no result was shown; is the site in %s?" % SITE)
    print("medians of %d runs, with a load of %.1f: %.2f s, %.2f s" % (len(good), os.getloadavg()[0], *map(statistics.median, zip(*good))))


main()
