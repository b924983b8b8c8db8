#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# test_run.sh ROOT: ./run counts passed, failed and skipped cases in a log of ctest, and finds version 14 of clang-
# format among others. The hosted jobs call .ci/run, and each has a time limit. No test of Criterion's ends early as if
# it had passed: it calls cr_skip_test.
set -eu

root=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
log=$folder/log
cat >"$log" <<'LOG'
1/5 Testing: cases
[SKIP] yield::a: needs two processors
[PASS] yield::b: (0.00s)
[====] Synthesis: Tested: 4 | Passing: 3 | Failing: 1 | Crashing: 0
Test Failed.
2/5 Testing: every_case_is_skipped
[SKIP] yield::a: needs two processors
[SKIP] yield::b: needs two processors
[====] Synthesis: Tested: 0 | Passing: 0 | Failing: 0 | Crashing: 0
Test Passed.
3/5 Testing: skipped_script
skipped: there is no node
Test Passed.
4/5 Testing: script
Test Passed.
5/5 Testing: leak_after_its_cases
[====] Synthesis: Tested: 2 | Passing: 2 | Failing: 0 | Crashing: 0
Test Failed.
LOG
eval "$(sed -n '/^count_cases()/,/^}/p' "$root/run")"
counts=$(count_cases "$log")
[ "$counts" = '6 2 4' ] || { echo "count_cases prints '$counts', not '6 2 4'"; exit 1; }

eval "$(sed -n '/^have()/,/^}/p; /^clang_tool()/,/^}/p' "$root/run")"
# expect_tool COMMAND: what clang_tool finds if only the tools in the folder are on the path.
expect_tool()
{
    found=$(PATH=$folder:/usr/bin:/bin; clang_tool quern-format)
    [ "$found" = "$1" ] || { echo "clang_tool finds '$found', not '$1'"; exit 1; }
}
printf '#!/bin/sh\necho "Debian clang-format version 19.1.14"\n' >"$folder/quern-format"
chmod +x "$folder/quern-format"
expect_tool ''
cp "$folder/quern-format" "$folder/quern-format-14"
expect_tool quern-format-14
rm "$folder/quern-format-14"
printf '#!/bin/sh\necho "Debian clang-format version 14.0.6"\n' >"$folder/quern-format"
expect_tool quern-format

early=$(find "$root/tests" -name '*.c' -exec awk '
    /^(ParameterizedTest|Test)\(/ { is_in_test = 1 }
    /^}/ { is_in_test = 0 }
    is_in_test && (/^    if \(.*\) return;/ || /^        return;/) { print FILENAME ":" FNR ": " $0 }' '{}' +)
[ -z "$early" ] || { printf 'tests end early; call cr_skip_test there:\n%s\n' "$early"; exit 1; }

jobs=$root/.github/workflows/ci.yml
grep -q 'run: .ci/run$' "$jobs" || { echo "no hosted job runs .ci/run"; exit 1; }
[ "$(grep -c 'runs-on:' "$jobs")" -eq "$(grep -c 'timeout-minutes:' "$jobs")" ] ||
    { echo "a hosted job has no timeout-minutes"; exit 1; }
