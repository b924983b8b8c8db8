#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_web_page.sh PAGE: opens the page of examples/web in a headless browser. After 60 frames the hash of its world is
# the demo's in hashes.txt, and the canvas shows agents. Exit status 77: there is no browser.
set -eu

page=$1
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
browser=
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then browser=$name && break; fi
done
[ -n "$browser" ] || { echo "skipped: there is no Chromium to open the page with"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The browser's virtual time, in milliseconds, does not wait for the compilation of the program. If the page was still
# loading at its end, it is opened again for longer.
for budget in 5000 50000 500000; do
    HOME=$work timeout 300 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --user-data-dir="$work/profile" --window-size=1000,800 --virtual-time-budget=$budget --dump-dom \
        "file://$page?agents=3000&skip=60" >"$work/dom.html" 2>"$work/browser.log" || { cat "$work/browser.log"; exit 1; }
    grep -q '<code id="hash">not yet' "$work/dom.html" || break
done
grep -o '<output id="status"[^/]*/output>\|<code id="hash">[^<]*' "$work/dom.html" || { cat "$work/dom.html"; exit 1; }

# expect TEXT WHAT
expect()
{
    grep -q "$1" "$work/dom.html" || { echo "$2"; exit 1; }
}
expected=$(sed -n 's/^swarm //p' "$here/hashes.txt")
expect "<code id=\"hash\">$expected</code>" "the world of the page does not have hash $expected after 60 frames"
expect ' prey, [1-9][0-9]* hunters, ' "the page does not count the agents"
expect 'data-lit="[1-9][0-9][0-9][0-9]' "the canvas shows less than 1000 bright pixels"
