/* SPDX-License-Identifier: MIT
 * Copyright (c) 2026 The Quern authors */
'use strict';

(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const palette = ['#8b949e', '#2f6feb', '#d9822b', '#2da44e', '#8250df', '#bf3989'];
  const style = getComputedStyle(document.documentElement);
  const textColour = style.getPropertyValue('--text').trim();
  const lineColour = style.getPropertyValue('--line').trim();

  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
  Chart.defaults.color = textColour;
  Chart.defaults.borderColor = lineColour;
  Chart.defaults.font.family = 'system-ui, sans-serif';
  Chart.defaults.plugins.legend.labels.boxHeight = 1;
  Chart.defaults.plugins.legend.labels.boxWidth = 28;

  /* ------------------------------------------------------------------------------------------ tools */

  const subjects = [...new Set(data.results.map(result => result.subject))];
  const colourOf = subject => palette[subjects.indexOf(subject) % palette.length];
  /* A checksum that differs from the control's makes figures meaningless: only the table of all figures has them. */
  const wrong = data.results.filter(result => result.agrees === false);
  const sound = data.results.filter(result => result.agrees !== false);
  const figureOf = result => result.ns_per_op ?? result.bytes_per_op;

  /* Formats a number with four significant digits. */
  function format(number) {
    if (number === undefined || number === null || !isFinite(number)) return '';
    const size = Math.abs(number);
    const decimals = size < 10 ? 3 : size < 100 ? 2 : size < 1000 ? 1 : 0;
    return number.toLocaleString('en', {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
  }

  const formatRatio = ratio => ratio < 10 ? ratio.toFixed(2) : ratio < 100 ? ratio.toFixed(1) : ratio.toFixed(0);

  /* Marks a result if its samples show no difference between the subject and its control. */
  const markOf = result => result.is_unclear ? '?' : '';

  const whole = number => number.toLocaleString('en');

  /* Returns the unit in which a time has a short number. */
  function timeUnit(ns) {
    if (ns < 1e3) return {name: 'ns', size: 1};
    if (ns < 1e6) return {name: 'µs', size: 1e3};
    return ns < 1e9 ? {name: 'ms', size: 1e6} : {name: 's', size: 1e9};
  }

  /* Returns the unit of a figure. Memory is always in bytes. */
  const unitOf = (figure, isTime) => isTime ? timeUnit(figure) : {name: 'bytes', size: 1};

  function formatTime(ns) {
    const unit = timeUnit(ns);
    return `${format(ns / unit.size)} ${unit.name}`;
  }

  /* Formats a number for the ticks of an axis: three digits, with k and M for thousands and millions. */
  function formatShort(number) {
    if (number >= 1e6) return `${Number((number / 1e6).toPrecision(3))} M`;
    if (number >= 1e3) return `${Number((number / 1e3).toPrecision(3))} k`;
    return `${Number(number.toPrecision(3))}`;
  }

  function formatShortTime(ns) {
    const unit = timeUnit(ns);
    return `${Number((ns / unit.size).toPrecision(3))} ${unit.name}`;
  }

  /* Returns whether the first digit of the value is one of the digits. Logarithmic axes label such values only. */
  const beginsWith = (value, digits) => digits.includes(Number(value.toExponential().split('e')[0]));

  function formatBytes(bytes) {
    const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
    let unit = 0;
    for (; bytes >= 1024 && unit + 1 < units.length; unit++) bytes /= 1024;
    return `${Number(bytes.toPrecision(4))} ${units[unit]}`;
  }

  function element(tag, attributes = {}, ...children) {
    const made = document.createElement(tag);
    Object.assign(made, attributes);
    made.append(...children);
    return made;
  }

  function groupBy(items, keyOf) {
    const groups = new Map();
    for (const item of items) {
      const key = keyOf(item);
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(item);
    }
    return groups;
  }

  const distinct = (items, valueOf) => [...new Set(items.map(valueOf))].sort((a, b) => a - b);

  function quantile(sorted, part) {
    const position = part * (sorted.length - 1);
    const below = Math.floor(position);
    const above = Math.min(below + 1, sorted.length - 1);
    return sorted[below] + (position - below) * (sorted[above] - sorted[below]);
  }

  function plural(count, noun) {
    return `${whole(count)} ${noun}${count === 1 ? '' : 's'}`;
  }

  const sizeOf = result =>
    `${result.workload}, ${result.entities === 1 ? '1 entity' : `${whole(result.entities)} entities`}`;
  const caseOf = result => `${sizeOf(result)}, ${plural(result.threads, 'thread')}`;

  /* Returns a table. columns: pairs [title, isText]; rows: arrays of texts or nodes. */
  function table(columns, rows) {
    const head = element('tr', {}, ...columns.map(
      ([title, isText]) => element('th', {className: isText ? 'text' : ''}, title)));
    const lines = rows.map(row => element('tr', {}, ...row.map(
      (cell, i) => element('td', {className: columns[i][1] ? 'text' : ''}, cell))));
    return element('div', {className: 'scroll'}, element('table', {},
      element('thead', {}, head), element('tbody', {}, ...lines)));
  }

  let chartCount = 0;

  /* Adds a figure to the grid of a section and draws the chart into it. Returns the figure. */
  function addChart(section, title, config, heightPixels) {
    let grid = section.querySelector('.grid');
    if (!grid) section.append(grid = element('div', {className: 'grid'}));
    const canvas = element('canvas', {});
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', title);
    const frame = element('div', {className: 'chart'}, canvas);
    if (heightPixels) frame.style.height = `${heightPixels}px`;
    const figure = element('figure', {}, element('h3', {}, title), frame);
    grid.append(figure);
    new Chart(canvas, config);
    chartCount++;
    return figure;
  }

  function addNote(section, text) {
    section.append(element('p', {}, text));
  }

  const axis = (text, more = {}) => ({title: {display: true, text}, ...more});

  /* ---------------------------------------------------------------------------------------- machine */

  function describeMachine() {
    const machine = data.machine;
    const caches = machine.caches.map(cache =>
      `${cache.name} cache ${formatBytes(cache.bytes)}${cache.source ? ` (${cache.source})` : ''}`);
    const rows = [
      ['Processor', `${machine.processor}, ${machine.processors} usable`],
      ['Memory', [...caches, `memory ${formatBytes(machine.memory_bytes)}`].join(', ')],
      ['System', machine.system],
      ['Compiler', machine.compiler],
      ['Flags', machine.flags],
      ['Quern', `${machine.quern}, commit ${machine.commit}${machine.checks ? ', with QUERN_CHECKS' : ''}`],
      ['Measured', machine.date],
    ];
    document.getElementById('title').textContent = `${data.program}: benchmark report`;
    document.title = `${data.program}: benchmark report`;
    const list = document.getElementById('machine');
    for (const [term, text] of rows) list.append(element('dt', {}, term), element('dd', {}, text));
  }

  /* ----------------------------------------------------------------------------------------- ratios */

  /* Draws a line at the ratio 1, where subject and control are equal. */
  const lineAtOne = {
    id: 'lineAtOne',
    afterDatasetsDraw(chart) {
      const {ctx, chartArea, scales} = chart;
      const x = scales.x.getPixelForValue(1);
      ctx.save();
      ctx.strokeStyle = textColour;
      ctx.beginPath();
      ctx.moveTo(x, chartArea.top);
      ctx.lineTo(x, chartArea.bottom);
      ctx.stroke();
      ctx.restore();
    },
  };

  /* Draws a line over each bar, from one end of its interval to the other. */
  const errorBars = {
    id: 'errorBars',
    afterDatasetsDraw(chart) {
      const {ctx, chartArea, scales} = chart;
      const place = ratio => Math.min(Math.max(scales.x.getPixelForValue(ratio), chartArea.left), chartArea.right);
      ctx.save();
      ctx.strokeStyle = textColour;
      ctx.beginPath();
      chart.data.datasets.forEach((dataset, i) => chart.getDatasetMeta(i).data.forEach((bar, k) => {
        const result = dataset.results[k];
        if (!result?.ratio_high || !chart.isDatasetVisible(i)) return;
        const [left, right] = [place(result.ratio_low), place(result.ratio_high)];
        ctx.moveTo(left, bar.y);
        ctx.lineTo(right, bar.y);
        for (const x of [left, right]) {
          ctx.moveTo(x, bar.y - 4);
          ctx.lineTo(x, bar.y + 4);
        }
      }));
      ctx.stroke();
      ctx.restore();
    },
  };

  /* Writes the ratio of each bar beyond the ends of the bar and of its interval. */
  const barNumbers = {
    id: 'barNumbers',
    afterDatasetsDraw(chart) {
      const {ctx} = chart;
      ctx.save();
      ctx.fillStyle = textColour;
      ctx.textBaseline = 'middle';
      chart.data.datasets.forEach((dataset, i) => chart.getDatasetMeta(i).data.forEach((bar, k) => {
        const ratio = dataset.data[k];
        if (ratio === null || !chart.isDatasetVisible(i)) return;
        const result = dataset.results[k];
        const end = (ratio < 1 ? result.ratio_low : result.ratio_high) ?? ratio;
        const {min, max} = chart.scales.x;
        const x = chart.scales.x.getPixelForValue(Math.min(Math.max(end, min), max));
        /* If the interval is cut off at the axis limit, there is no room outside of the bar: write inside it. */
        const isCut = end < min || end > max;
        ctx.textAlign = (ratio < 1) !== isCut ? 'right' : 'left';
        ctx.fillText(formatRatio(ratio) + markOf(result), x + (ctx.textAlign === 'right' ? -4 : 4), bar.y - (isCut ? 6 : 0));
      }));
      ctx.restore();
    },
  };

  /* Returns the ticks of a ratio axis: as many round numbers between min and max as there is room for. */
  function ratioTicks(min, max) {
    const decades = digits => {
      const ticks = [];
      for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power++)
        for (const digit of digits) ticks.push(Number((digit * 10 ** power).toPrecision(3)));
      return ticks.filter(tick => tick >= min && tick <= max);
    };
    const choices = [[1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]].map(decades);
    if (choices[0].length > 5) return choices.find(ticks => ticks.length <= 14) ?? choices[choices.length - 1];
    const step = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5].find(size => (max - min) / size <= 12) ?? 1;
    const ticks = [];
    for (let i = Math.ceil(min / step); i * step <= max; i++) ticks.push(Number((i * step).toPrecision(6)));
    return ticks;
  }

  function drawRatios() {
    const section = document.getElementById('ratios');
    const judged = sound.filter(result => result.ratio > 0);
    if (judged.length === 0) return addNote(section, 'No subject has a control.');
    const labels = [...new Set(judged.map(caseOf))];
    const names = subjects.filter(subject => judged.some(result => result.subject === subject));
    const datasets = names.map(subject => {
      const byCase = new Map(judged.filter(result => result.subject === subject)
        .map(result => [caseOf(result), result]));
      const results = labels.map(label => byCase.get(label));
      return {
        label: subject,
        results,
        data: results.map(result => result?.ratio ?? null),
        backgroundColor: ({dataIndex}) => colourOf(subject) + (results[dataIndex]?.is_unclear ? '40' : ''),
        borderColor: colourOf(subject),
        borderWidth: 2,
        borderSkipped: false,
        base: 1,
        skipNull: true,
      };
    });
    /* The axis leaves room for the numbers next to the longest bars, and always includes 1. */
    const all = judged.map(result => result.ratio);
    const ends = judged.flatMap(result => [result.ratio_low ?? result.ratio, result.ratio_high ?? result.ratio]);
    /* Wide intervals are cut off, so that one extreme sample does not make all bars small. */
    const least = Math.max(Math.min(...all, ...ends, 1), Math.min(...all, 1) / 2);
    const most = Math.min(Math.max(...all, ...ends, 1), Math.max(...all, 1) * 2);
    const room = Math.max((most / least) ** 0.1, 1.02);
    const [min, max] = [least / room, most * room];
    const scales = {
      x: axis('ratio to the control', {
        type: 'logarithmic',
        min,
        max,
        afterBuildTicks: scale => { scale.ticks = ratioTicks(min, max).map(value => ({value})); },
        ticks: {callback: formatShort, autoSkip: false, maxRotation: 0},
      }),
    };
    const plugins = {
      legend: {labels: {boxHeight: 8}},
      tooltip: {callbacks: {label: item => `${item.dataset.label}: ${format(item.raw)}${markOf(item.dataset.results[item.dataIndex])}, ` +
        `interval ${intervalOf(item.dataset.results[item.dataIndex])}`}},
    };
    const figure = addChart(section, 'Subject / control', {
      type: 'bar',
      data: {labels, datasets},
      options: {indexAxis: 'y', scales, plugins},
      plugins: [lineAtOne, errorBars, barNumbers],
    }, 90 + labels.length * 16 * (1 + names.length));
    figure.style.gridColumn = '1 / -1';
  }

  /* --------------------------------------------------------------------------------------- speed-up */

  function speedupDataset(subject, results) {
    const sorted = results.filter(result => result.subject === subject).sort((a, b) => a.threads - b.threads);
    const first = sorted[0];
    return {
      label: subject,
      data: sorted.map(result => ({x: result.threads, y: figureOf(first) / figureOf(result)})),
      borderColor: colourOf(subject),
      backgroundColor: colourOf(subject),
    };
  }

  /* The forecast of a subject, made from frames on one number of threads, as dashes in its colour. */
  function forecastDataset(forecast) {
    return {
      label: `${forecast.subject}, forecast`,
      data: forecast.points.map(point => ({x: point.threads, y: point.speedup})),
      borderColor: colourOf(forecast.subject),
      backgroundColor: 'transparent',
      borderDash: [2, 3],
    };
  }

  /* Says what limits a forecast on its greatest number of threads. */
  function describeLimit(forecast) {
    const last = forecast.points[forecast.points.length - 1];
    const limit = last.limit ? `limited by ${last.limit}${last.system ? `: ${last.system}` : ''}` : 'not limited';
    return `${forecast.subject} on ${plural(last.threads, 'thread')}: ${formatRatio(last.speedup)} predicted, ${limit}`;
  }

  /* Axes on which each doubling has the same length, so that few threads are seen beside many. */
  function doublingScales(least, most) {
    const doubling = min => ({
      type: 'logarithmic',
      min,
      afterBuildTicks: scale => {
        scale.ticks = [];
        for (let value = min; value <= scale.max; value *= 2) scale.ticks.push({value});
      },
      ticks: {callback: formatShort, autoSkip: false, maxRotation: 0},
    });
    return {x: axis('threads', {...doubling(least), max: most}), y: axis('speed-up', doubling(0.5))};
  }

  function drawSpeedups() {
    const section = document.getElementById('speedups');
    const groups = groupBy(sound.filter(result => result.ns_per_op !== undefined), sizeOf);
    for (const [title, results] of groups) {
      const threads = distinct(results, result => result.threads);
      const forecasts = data.forecasts.filter(forecast => sizeOf(forecast) === title && forecast.points.length > 0);
      if (threads.length < 2 && forecasts.length === 0) continue;
      const most = Math.max(...threads, ...forecasts.flatMap(forecast => forecast.points.map(point => point.threads)));
      const datasets = subjects
        .filter(subject => results.some(result => result.subject === subject && result.threads === threads[0]))
        .map(subject => speedupDataset(subject, results));
      datasets.push(...forecasts.map(forecastDataset));
      datasets.push({
        label: 'ideal',
        data: [threads[0], most].map(count => ({x: count, y: count / threads[0]})),
        borderColor: textColour,
        borderDash: [6, 4],
        pointRadius: 0,
      });
      const figure = addChart(section, title, {
        type: 'line',
        data: {datasets},
        options: {
          scales: forecasts.length > 0 ? doublingScales(threads[0], most) : {
            x: axis('threads', {type: 'linear', ticks: {precision: 0, callback: value => Number.isInteger(value) ? value : ''}, min: threads[0]}),
            y: axis('speed-up', {beginAtZero: true}),
          },
        },
      });
      for (const forecast of forecasts) addNote(figure, describeLimit(forecast));
    }
    if (!section.querySelector('.grid')) addNote(section, 'To see speed-ups, measure several thread counts: --threads 1,2,max.');
  }

  /* ------------------------------------------------------------------------------------------ sizes */

  /* Returns for each cache the number of entities that fill it. */
  function cacheMarks(bytesPerEntity) {
    if (!bytesPerEntity) return [];
    return data.machine.caches.map(
      cache => ({label: `${cache.name} cache`, bytes: cache.bytes, entities: cache.bytes / bytesPerEntity}));
  }

  const cacheLines = marks => ({
    id: 'cacheLines',
    afterDatasetsDraw(chart) {
      const {ctx, chartArea, scales} = chart;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = textColour;
      ctx.setLineDash([3, 3]);
      for (const mark of marks) {
        if (mark.entities < scales.x.min || mark.entities > scales.x.max) continue;
        const x = scales.x.getPixelForValue(mark.entities);
        ctx.beginPath();
        ctx.moveTo(x, chartArea.top);
        ctx.lineTo(x, chartArea.bottom);
        ctx.stroke();
        const isNarrow = x + 4 + ctx.measureText(mark.label).width > chartArea.right;
        ctx.textAlign = isNarrow ? 'right' : 'left';
        ctx.fillText(mark.label, x + (isNarrow ? -4 : 4), chartArea.top + 10);
      }
      ctx.restore();
    },
  });

  function sizeDatasets(results, unit) {
    const threads = distinct(results, result => result.threads);
    return [...groupBy(results, result => `${result.subject}|${result.threads}`).values()].map(group => ({
      label: threads.length > 1 ? `${group[0].subject}, ${plural(group[0].threads, 'thread')}` : group[0].subject,
      data: group.map(result => ({x: result.entities, y: figureOf(result) / unit.size})).sort((a, b) => a.x - b.x),
      borderColor: colourOf(group[0].subject),
      backgroundColor: colourOf(group[0].subject),
      borderDash: group[0].threads === threads[0] ? [] : [2, 3],
    }));
  }

  function drawSizes() {
    const section = document.getElementById('sizes');
    for (const [title, results] of groupBy(sound, result => result.workload)) {
      if (distinct(results, result => result.entities).length < 2) continue;
      const marks = cacheMarks(results[0].bytes_per_entity);
      const unit = unitOf(Math.max(...results.map(figureOf)), results[0].ns_per_op !== undefined);
      const figure = addChart(section, title, {
        type: 'line',
        data: {datasets: sizeDatasets(results, unit)},
        options: {
          scales: {
            x: axis('entities', {
              type: 'logarithmic',
              ticks: {callback: value => beginsWith(value, [1]) ? formatShort(value) : '', autoSkip: false, maxRotation: 0},
            }),
            /* The names of the caches need room at the top. */
            y: axis(`${unit.name} per ${results[0].unit}`, {beginAtZero: true, grace: marks.length ? '12%' : 0}),
          },
        },
        plugins: [cacheLines(marks)],
      });
      const fits = marks.map(mark =>
        `${mark.label} (${formatBytes(mark.bytes)}) holds ${whole(Math.floor(mark.entities))} entities`);
      if (fits.length) figure.append(element('figcaption', {}, `${fits.join('; ')}.`));
    }
    if (!section.querySelector('.grid')) addNote(section, 'To see costs by size, measure several sizes: --entities 1k,10k,100k,1M.');
  }

  /* ----------------------------------------------------------------------------------------- frames */

  /* The number of bins grows with the number of frames, so that few bins are empty. */
  const binCountFor = frameCount => Math.min(40, Math.max(8, Math.round(2 * Math.sqrt(frameCount))));

  function histogram(times, least, width, binCount) {
    const bins = new Array(binCount).fill(0);
    for (const time of times) bins[Math.min(binCount - 1, Math.max(0, Math.floor((time - least) / width)))]++;
    return bins.map((count, i) => ({x: least + (i + 0.5) * width, y: 100 * count / times.length}));
  }

  function frameTable(results) {
    const parts = [['50 %', 0.5], ['90 %', 0.9], ['95 %', 0.95], ['99 %', 0.99], ['longest', 1]];
    const rows = results.map(result => {
      const sorted = [...result.frames_ns].sort((a, b) => a - b);
      return [result.subject, whole(sorted.length), ...parts.map(([, part]) => formatTime(quantile(sorted, part)))];
    });
    return table([['subject', true], ['frames'], ...parts.map(([title]) => [title])], rows);
  }

  function drawFrames() {
    const section = document.getElementById('frames');
    const timed = sound.filter(result => result.frames_ns);
    for (const [title, results] of groupBy(timed, caseOf)) {
      const sorted = results.map(result => [...result.frames_ns].sort((a, b) => a - b));
      const least = Math.min(...sorted.map(times => times[0]));
      const most = Math.max(...sorted.map(times => quantile(times, 0.98)));
      const binCount = binCountFor(results[0].frames_ns.length);
      const width = Math.max((most - least) / (binCount - 1), 1);
      const datasets = results.map(result => ({
        label: result.subject,
        data: histogram(result.frames_ns, least, width, binCount),
        borderColor: colourOf(result.subject),
        backgroundColor: `${colourOf(result.subject)}55`,
        stepped: 'middle',
        fill: 'origin',
        pointRadius: 0,
      }));
      const figure = addChart(section, title, {
        type: 'line',
        data: {datasets},
        options: {
          scales: {
            x: axis('time of a frame', {type: 'linear', ticks: {callback: formatShortTime, maxTicksLimit: 8, maxRotation: 0}}),
            y: axis('% of frames', {beginAtZero: true}),
          },
        },
      });
      figure.append(frameTable(results));
    }
    if (timed.length === 0) addNote(section, 'To see frame times, measure workloads with frames as passes, and use --frames.');
  }

  /* ----------------------------------------------------------------------------------------- tables */

  function showComparison() {
    const section = document.getElementById('comparison');
    const comparison = data.comparison;
    if (!comparison) return section.remove();
    addNote(section, `Earlier results: ${comparison.path}, measured ${comparison.date} at commit ${comparison.commit}. ` +
      'Change is now / before, of the ratio to the control (for a control, of its time): Hodges-Lehmann estimate and ' +
      `its ${100 * (1 - comparison.alpha)} % interval. p is that of the two-sided Mann-Whitney U test; a verdict needs ` +
      `p < ${comparison.alpha} and an interval that is more than ${100 * comparison.noise} % away from 1.`);
    if (comparison.drift !== undefined)
      addNote(section, `The machine has changed: the times of the controls, now / before, are ${formatRatio(comparison.drift)} ` +
        `(${formatRatio(comparison.drift_least)} to ${formatRatio(comparison.drift_greatest)}).`);
    section.append(table([['workload', true], ['entities'], ['threads'], ['subject', true], ['figure', true], ['before'],
      ['now'], ['change'], ['interval'], ['p'], ['verdict', true]], comparison.rows.map(comparisonRow)));
  }

  /* The verdict of a control is not coloured, because it shows a change of the machine, not of the program. */
  function verdictCell(row) {
    const text = `${row.reason ? `${row.verdict}: ${row.reason}` : row.verdict}${row.is_control ? ' (control)' : ''}`;
    return element('span', {className: row.is_control ? '' : row.verdict}, text);
  }

  function comparisonRow(row) {
    const isRatio = row.figure === 'ratio';
    const unit = isRatio ? {size: 1} : unitOf(row.now ?? 0, row.figure === 'ns');
    return [
      row.workload, whole(row.entities), whole(row.threads), row.subject,
      isRatio ? 'ratio' : `${unit.name} per ${row.unit}`,
      row.before === undefined ? '' : format(row.before / unit.size),
      row.now === undefined ? '' : format(row.now / unit.size),
      format(row.change), row.high ? `${format(row.low)} to ${format(row.high)}` : '',
      row.p === undefined ? '' : row.p.toPrecision(2), verdictCell(row),
    ];
  }

  const counterTitles = {
    cycles: 'cycles',
    instructions: 'instructions',
    l1_misses: 'L1 misses',
    l2_misses: 'L2 misses',
    llc_misses: 'LLC misses',
    tlb_misses: 'TLB misses',
  };

  function intervalOf(result) {
    if (result.ratio === undefined) return '';
    return result.ratio_high ? `${formatRatio(result.ratio_low)} to ${formatRatio(result.ratio_high)}` : 'too few samples';
  }

  function ratioCell(result) {
    if (result.agrees === false) return element('span', {className: 'wrong'}, 'WRONG');
    return result.ratio ? result.ratio.toFixed(2) + markOf(result) : '';
  }

  function showFigures() {
    const keys = Object.keys(counterTitles).filter(key => data.results.some(result => result.counters?.[key] !== undefined));
    const columns = [['workload', true], ['entities'], ['threads'], ['subject', true], ['figure', true], ['median'],
      ['MAD'], ['least'], ['greatest'], ['ratio'], ['interval'], ...keys.map(key => [counterTitles[key]])];
    const rows = data.results.map(result => {
      const unit = unitOf(figureOf(result), result.ns_per_op !== undefined);
      const figures = [figureOf(result), result.mad, result.min, result.max];
      return [
        result.workload, whole(result.entities), whole(result.threads), result.subject,
        `${unit.name} per ${result.unit}`, ...figures.map(figure => format(figure / unit.size)), ratioCell(result), intervalOf(result),
        ...keys.map(key => format(result.counters?.[key])),
      ];
    });
    document.getElementById('figures').append(table(columns, rows));
  }

  function showWrong() {
    if (wrong.length === 0) return;
    const list = wrong.map(result => element('li', {}, `${result.subject} in ${caseOf(result)}`));
    document.getElementById('machine').after(element('div', {className: 'warning', id: 'wrong'},
      'The checksums of these subjects differ from those of their controls. Their figures mean nothing, and no chart shows them:',
      element('ul', {}, ...list)));
  }

  function showTrust() {
    if (!data.trust?.warning) return;
    document.getElementById('machine').after(
      element('div', {className: 'warning', id: 'unsteady'}, `Warning: ${data.trust.warning}.`));
  }

  describeMachine();
  showWrong();
  showTrust();
  drawRatios();
  drawSpeedups();
  drawSizes();
  drawFrames();
  showComparison();
  showFigures();
  document.documentElement.dataset.charts = chartCount;
})();
