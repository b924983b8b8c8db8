#!/bin/sh
# SPDX-License-Identifier: MIT
# Copyright (c) 2026 The Quern authors
#
# usage: test_report.sh FIXTURE COMMAND...
#
# Lets the benchmark COMMAND write two reports, from the results in FIXTURE and from results that it measures.
# Opens both in a headless browser and checks that every chart is drawn. Exit status 77: there is no browser.

set -eu

fixture=$1
shift

browser=
for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then browser=$name && break; fi
done
[ -n "$browser" ] || { echo "skipped: there is no Chromium to open the report with"; exit 77; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A script, appended to the page, that counts the coloured pixels of each canvas. Subjects are drawn in colours;
# axes and texts are grey. The legend has about a hundred coloured pixels for each subject.
cat >"$work/probe.html" <<'HTML'
<script>
addEventListener('load', () => {
  const lines = [...document.querySelectorAll('canvas')].map(canvas => {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    let coloured = 0;
    for (let i = 0; i < pixels.length; i += 4) {
      const [red, green, blue, opacity] = pixels.subarray(i, i + 4);
      if (opacity > 200 && Math.max(red, green, blue) - Math.min(red, green, blue) > 60) coloured++;
    }
    return `canvas ${canvas.getAttribute('aria-label')}: ${coloured} coloured pixels: ${coloured > 300 ? 'drawn' : 'BLANK'}`;
  });
  const sections = [...document.querySelectorAll('section')].map(section =>
    `section ${section.id}: ${section.querySelectorAll('canvas').length} charts, ` +
    `${section.querySelectorAll('tbody tr').length} rows`);
  const marked = `marked WRONG: ${document.querySelectorAll('td .wrong').length}, ` +
    `listed: ${document.querySelectorAll('#wrong li').length}`;
  const ratios = document.querySelector('#ratios canvas');
  const ticks = ratios ? Chart.getChart(ratios).scales.x.ticks.map(tick => tick.label).join(' ') : 'none';
  const rows = [...document.querySelectorAll('tbody tr')].map(row =>
    `row ${row.closest('section').id}: ${[...row.cells].map(cell => cell.textContent).join('|')}`);
  const forecasts = [...document.querySelectorAll('#speedups figure p')].map(note => `forecast ${note.textContent}`);
  const outside = performance.getEntriesByType('resource').length;
  const result = document.createElement('pre');
  result.id = 'probe';
  result.textContent = [...lines, ...sections, ...rows, ...forecasts, marked, `ticks ${ticks}`, `charts ${document.documentElement.dataset.charts}`,
    `outside ${outside}`, ''].join('\n');
  document.body.append(result);
});
</script>
HTML

# open_page FILE: opens the page and prints the lines of the probe.
open_page()
{
    cat "$1" "$work/probe.html" >"$work/probed.html"
    HOME=$work timeout 120 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
        --user-data-dir="$work/profile" --virtual-time-budget=5000 --dump-dom "file://$work/probed.html" \
        >"$work/dom.html" 2>"$work/browser.log" || { cat "$work/browser.log"; return 1; }
    sed -n '/<pre id="probe">/,/<\/pre>/p' "$work/dom.html" | sed 's/<pre id="probe">//; s/<\/pre>.*//'
}

# expect PATTERN: fails unless a line of the probe matches the whole pattern.
expect()
{
    grep -qx "$1" "$work/seen" || { echo "not seen: $1"; exit 1; }
}

check_page()
{
    open_page "$1" >"$work/seen"
    cat "$work/seen"
    if grep -q BLANK "$work/seen"; then echo "a chart was not drawn"; exit 1; fi
    expect 'outside 0'
}

echo "from a file"
"$@" --load "$fixture" --compare "$fixture" --report "$work/loaded.html" >"$work/table"
check_page "$work/loaded.html"
expect 'section ratios: 1 charts, 0 rows'
expect 'section speedups: 2 charts, 0 rows'
expect 'section sizes: 1 charts, 0 rows'
expect 'section frames: 1 charts, 2 rows'
expect 'section comparison: 0 charts, 9 rows'
expect 'section figures: 0 charts, 9 rows'
expect 'charts 5'
expect 'ticks 1 1.1 1.2 1.3 1.4 1.5 1.6 1.7'
expect 'row comparison: iter|10,000|1|raw|ns per entity|0.200|0.200|.*|within noise (control)'
expect 'row comparison: iter|10,000|1|quern|ratio|1.375|1.375|.*|within noise'

echo "one that disagrees with its control"
sed '/"subject":"quern","control"/{/"entities":10000,"threads":1,/s/04baf1"/04baf2"/;}' "$fixture" >"$work/wrong.jsonl"
echo '{"type":"result","workload":"slow","subject":"quern","entities":1,"threads":1,"unit":"frame","samples":[1400000]}' \
    >>"$work/wrong.jsonl"
if "$@" --load "$work/wrong.jsonl" --report "$work/wrong.html" >"$work/table"; then
    echo "the wrong result was accepted" && exit 1
fi
grep -q 'WRONG' "$work/table" || { echo "the table does not mark it"; exit 1; }
open_page "$work/wrong.html" >"$work/seen" # the remaining charts may have no coloured pixels
cat "$work/seen"
expect 'marked WRONG: 1, listed: 1'
expect 'section frames: 1 charts, 1 rows'
expect 'row figures: iter|10,000|1|quern|ns per entity|0.275|.*|WRONG|||'
expect 'row figures: slow|1|1|quern|ms per frame|1.400|0.000|1.400|1.400||||'

echo "measured"
"$@" --workload frame7 --entities 500,1k --threads 1,2 --repeat 2 --passes 20 --report "$work/measured.html" >"$work/table"
check_page "$work/measured.html"
expect 'section ratios: 1 charts, 0 rows'
expect 'section speedups: 2 charts, 0 rows'
expect 'section sizes: 1 charts, 0 rows'
expect 'section frames: 4 charts, [1-9][0-9]* rows' # a row for each subject, however many there are
expect 'charts 8'

echo "a sweep"
"$@" --workload frame7 --entities 500 --threads 1 --forecast 1,2,4 --repeat 2 --passes 20 --sweep="$work/sweep.html" \
    >"$work/table"
grep -q '^Forecast of frame7, 500 entities, quern' "$work/table" || { echo "the table has no forecast"; exit 1; }
check_page "$work/sweep.html"
expect 'section speedups: 1 charts, 0 rows'
expect 'forecast quern on 4 threads: [0-9.]* predicted, .*limited.*'
