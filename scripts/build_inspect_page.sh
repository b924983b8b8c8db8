#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# Makes inspect/page.html from inspect/page with the versions of package-lock.json. Needs node and npm; the normal build
# needs neither.
set -eu
cd "$(dirname -- "$0")/../inspect/page"
npm ci --silent --no-audit --no-fund
node build.mjs
