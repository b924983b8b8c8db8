// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// The page of the inspector. It asks the end points of docs/inspector.md, relative to its own address, and opens one
// WebSocket. Everything else is in this file.

import { h, render } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import htm from 'htm'
import uPlot from 'uplot'

const html = htm.bind(h)
const SAMPLES = 300
const PAGE = 50

// ---------------------------------------------------------------------------------------------- state

const state = {
  tab: location.hash.slice(1) || 'frame', message: {}, samples: [], world: null, types: null, chosen: null, error: '',
  connected: false, events: [], eventTypes: [], watched: [], budgetMs: Number(localStorage.budgetMs) || 16.7,
}
const listeners = new Set()
const update = changes => { Object.assign(state, changes); listeners.forEach(listener => listener({})) }
const useStore = () => {
  const [, set] = useState()
  useEffect(() => { listeners.add(set); return () => listeners.delete(set) }, [])
  return state
}

const query = object => Object.entries(object).filter(([, value]) => value !== undefined && value !== null)
  .map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&')

async function ask(method, path, argumentsOf = {}) {
  const answer = await fetch(`api/${path}?${query(argumentsOf)}`, { method })
  const json = await answer.json()
  if (!answer.ok) throw new Error(json.error)
  return json
}
const get = (path, argumentsOf) => ask('GET', path, argumentsOf)

// An error is shown until the next thing that a person does succeeds, another view is opened, or for ten seconds.
const ERROR_SECONDS = 10
let errorTimer
function tell(error) {
  clearTimeout(errorTimer)
  update({ error })
  if (error) errorTimer = setTimeout(() => update({ error: '' }), 1000 * ERROR_SECONDS)
}
const post = async (path, argumentsOf) => {
  try {
    const json = await ask('POST', path, argumentsOf)
    tell(json.warning || '')
    return json
  } catch (error) {
    tell(error.message)
    return null
  }
}
const show = promise => promise.then(() => tell(''), error => tell(error.message))
const showLoading = promise => promise.catch(error => tell(error.message))

let socket
function subscribe() {
  if (!socket || socket.readyState !== 1) return
  const parts = { frame: 'systems,profile', systems: 'systems,profile', commands: 'systems,commands', events: 'events' }[state.tab]
  socket.send(query({ rate: 10, parts, entities: state.watched.slice(0, 100).join(',') || undefined }))
}

function receive(message) {
  const samples = state.samples.concat(message.samples).slice(-SAMPLES)
  const changes = { message: { ...state.message, ...message }, samples }
  if (message.events) {
    changes.events = state.events.concat(message.events).slice(-200)
    changes.eventTypes = message.types
  }
  update(changes)
}

function connect() {
  socket = new WebSocket(new URL('watch', location.href).href.replace(/^http/, 'ws'))
  socket.onopen = () => { update({ connected: true }); subscribe() }
  socket.onmessage = event => receive(JSON.parse(event.data))
  socket.onclose = () => { update({ connected: false }); setTimeout(connect, 1000) }
}

const ms = ns => (ns / 1e6).toFixed(ns < 1e6 ? 3 : 2)
const bytes = n => n < 1e4 ? `${n} B` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`
const many = (n, one, more) => `${count(n)} ${n === 1 ? one : more}`
const count = n => Number(n).toLocaleString('en')
// Colours of systems: steps of the golden angle, so that neighbours differ.
const colour = i => `hsl(${(i * 137.5 + 200) % 360} 55% 50%)`

function open(entity) {
  update({ chosen: entity })
  if (state.tab !== 'entities') go('entities')
}
const go = tab => { location.hash = tab; update({ tab }); tell(''); subscribe() }

// An input that keeps what a person types or drags until it is done, although the page is drawn ten times a second.
function Input({ value, onInput, onChange, ...rest }) {
  const place = useRef(), busy = useRef(false)
  useEffect(() => { if (!busy.current && place.current.value !== String(value ?? '')) place.current.value = value ?? '' })
  return html`<input ref=${place} ...${rest} onInput=${event => { busy.current = true; if (onInput) onInput(event) }}
    onChange=${event => { busy.current = false; if (onChange) onChange(event) }} onBlur=${() => { busy.current = false }} />`
}

// ------------------------------------------------------------------------------------------ time line

function TimeLine() {
  const { message } = useStore()
  const [marks, setMarks] = useState([])
  useEffect(() => { get('history').then(history => setMarks(history.marks), () => {}) }, [message.mark_count])
  const { oldest, newest, frame = 0, paused } = message
  const has = newest !== undefined && newest > oldest
  const restore = async at => { await post('restore', { frame: at }); if (state.chosen) update({ chosen: state.chosen }) }
  const last = Math.max(newest ?? 0, frame), later = paused && has ? Math.max(0, newest - frame) : 0
  const place = at => `${100 * (at - oldest) / Math.max(1, last - oldest)}%`
  return html`<div class="timeline" role="group" aria-label="Time line">
    <button onClick=${() => post(paused ? 'resume' : 'pause')} title="Space" data-test="pause">${paused ? 'Go on from here' : 'Pause'}</button>
    <button onClick=${() => post('step')} title="." aria-label="Step one frame" data-test="step">Step</button>
    <button disabled=${!has || frame <= oldest} onClick=${() => restore(Math.max(oldest, Math.min(frame, newest + 1) - 1))} title="," aria-label="Back one frame" data-test="back">Back</button>
    ${has ? html`<div class="slider">
      <${Input} type="range" min=${oldest} max=${last} value=${frame} aria-label="Kept frames" data-test="scrub"
        onChange=${event => restore(event.target.value)} />
      <div class="marks">${marks.filter(mark => mark.frame >= oldest && mark.frame <= last).map(mark =>
        html`<i style=${{ left: place(mark.frame) }} title=${`frame ${mark.frame}: ${mark.text}`}></i>`)}</div>
    </div><span class="muted">${count(oldest)} to ${count(last)}</span>
    ${later > 0 && html`<span class="bad" data-test="later">a step drops ${many(later, 'later frame', 'later frames')}</span>`}` : html`<span class="muted">no kept frames</span>`}
  </div>`
}

// ------------------------------------------------------------------------------------------- frame

// If a frame is far above the budget, the scale is linear only up to the budget, and logarithmic above, so that the line of
// the budget stays apart from zero.
function Chart({ samples, budgetMs }) {
  const place = useRef(), plot = useRef()
  const isFar = Math.max(...samples.map(sample => sample[1] / 1e6), 0) > 10 * budgetMs
  useEffect(() => {
    const style = getComputedStyle(document.body), ink = style.getPropertyValue('--muted'), grid = style.getPropertyValue('--line')
    const points = { show: false }
    const decades = (u, i, low, high) => {
      const splits = [0, budgetMs]
      for (let value = 10 ** Math.ceil(Math.log10(budgetMs * 2)); value <= high; value *= 10) splits.push(Number(value.toPrecision(3)))
      return splits
    }
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid }, font: '11px system-ui' }
    plot.current = new uPlot({
      width: place.current.clientWidth, height: 200, cursor: { y: false }, legend: { live: true },
      scales: { x: { time: false }, y: { ...(isFar ? { distr: 4, asinh: budgetMs } : {}), range: (u, low, high) => [0, Math.max(high * 1.1, 0.1)] } },
      axes: [axis, { ...axis, values: (u, values) => values.map(value => `${value} ms`), size: 70, ...(isFar ? { filter: (u, splits) => splits, splits: decades } : {}) }],
      series: [{ label: 'frame' }, { label: 'frame ms', stroke: style.getPropertyValue('--accent'), width: 2, points },
        { label: 'sync ms', stroke: style.getPropertyValue('--warm'), width: 1.5, points },
        { label: 'budget', stroke: style.getPropertyValue('--bad'), width: 1, dash: [5, 5], points }],
    }, [[], [], [], []], place.current)
    const size = () => plot.current.setSize({ width: place.current.clientWidth, height: 200 })
    addEventListener('resize', size)
    return () => { removeEventListener('resize', size); plot.current.destroy() }
  }, [isFar, isFar && budgetMs])
  useEffect(() => {
    const ordered = samples.filter((sample, i) => i === 0 || sample[0] > samples[i - 1][0])
    plot.current.setData([ordered.map(s => s[0]), ordered.map(s => s[1] / 1e6), ordered.map(s => s[2] / 1e6), ordered.map(() => budgetMs)])
  }, [samples, budgetMs, isFar])
  return html`<div ref=${place} role="img" data-scale=${isFar ? 'logarithmic' : 'linear'} aria-label="Duration of the last frames in milliseconds"></div>
    ${isFar && html`<p class="muted">Logarithmic above the budget.</p>`}`
}

function Figures({ list }) {
  return html`<dl class="figures">${list.map(([key, value]) => html`<div><dt>${key}</dt><dd>${value}</dd></div>`)}</dl>`
}

function Workers({ profile }) {
  if (!profile) return html`<p class="muted">No profile yet.</p>`
  const parts = [['busy', 'busy_ns'], ['sync', 'sync_ns'], ['stealing', 'stealing_ns'], ['idle', 'idle_ns']]
  return html`<div>${profile.workers.map((worker, i) => {
    const all = parts.reduce((sum, [, key]) => sum + worker[key], 0) || 1
    return html`<div class="worker"><span>worker ${i}</span><div class="stack" role="img"
      aria-label=${parts.map(([name, key]) => `${name} ${ms(worker[key])} ms`).join(', ')}>${parts.map(([name, key]) =>
        html`<i class=${name} style=${{ width: `${100 * worker[key] / all}%` }} title=${`${name} ${ms(worker[key])} ms`}></i>`)}</div></div>`
  })}<p class="legend">${parts.map(([name]) => html`<span><i class=${name}></i>${name}</span>`)}</p></div>`
}

function Flames() {
  const [trace, setTrace] = useState(null)
  const [busy, setBusy] = useState(false)
  const record = async () => {
    setBusy(true)
    if (await post('record', { frames: 2 })) {
      if (state.message.paused) await post('step', { count: 3 })
      for (let i = 0; i < 40; i++) {
        await new Promise(done => setTimeout(done, 100))
        try { setTrace(await get('trace')); break } catch (error) { if (i === 39) tell(error.message) }
      }
    }
    setBusy(false)
  }
  const events = (trace ? trace.traceEvents : []).filter(event => event.ph === 'X' && event.dur > 0)
  const begin = Math.min(...events.map(e => e.ts)), end = Math.max(...events.map(e => e.ts + e.dur))
  const tracks = [...new Set(events.map(e => e.tid))].sort((a, b) => a - b)
  const names = [...new Set(events.map(e => e.name))]
  let top = 0
  const rows = tracks.map(track => {
    const own = events.filter(e => e.tid === track).sort((a, b) => a.ts - b.ts || b.dur - a.dur), ends = []
    const bars = own.map(e => {
      while (ends.length && ends[ends.length - 1] <= e.ts + 1e-6) ends.pop()
      ends.push(e.ts + e.dur)
      return { ...e, depth: ends.length - 1 }
    })
    const depth = 1 + Math.max(0, ...bars.map(bar => bar.depth)), y = top
    top += depth * 15 + 20
    return { track, bars, y }
  })
  return html`<div><p><button onClick=${record} disabled=${busy} data-test="record">${busy ? 'Recording' : 'Record two frames'}</button>
    <span class="muted"> ${events.length ? `${count(events.length)} pieces of work in ${((end - begin) / 1000).toFixed(2)} ms` : 'What each worker did, and when.'}</span></p>
    ${events.length > 0 && html`<svg class="flames" viewBox=${`0 0 1000 ${top}`} preserveAspectRatio="none" style=${{ height: `${top}px` }} role="img" aria-label="Work of each worker over time">
      ${rows.map(row => row.bars.map(bar => html`<rect x=${1000 * (bar.ts - begin) / (end - begin)} y=${row.y + 16 + bar.depth * 15} height="14"
        width=${Math.max(0.4, 1000 * bar.dur / (end - begin))} fill=${colour(names.indexOf(bar.name))}><title>${`${bar.name}: ${(bar.dur / 1000).toFixed(3)} ms`}</title></rect>`))}
    </svg><p class="legend">${rows.length} workers; ${names.slice(0, 18).map((name, i) => html`<span><i style=${{ background: colour(i) }}></i>${name}</span>`)}</p>`}</div>`
}

function Systems({ systems = [], commands }) {
  const [by, setBy] = useState('order')
  const most = Math.max(1, ...systems.map(system => system.time_ns))
  const list = systems.map((system, i) => ({ ...system, order: i }))
  if (by !== 'order') list.sort((a, b) => by === 'name' ? a.name.localeCompare(b.name) : b[by] - a[by])
  const head = (key, text, number) => html`<th class=${number ? 'n' : ''} aria-sort=${by === key ? 'descending' : 'none'}><button class="plain" onClick=${() => setBy(key)}>${text}</button></th>`
  return html`<div class="scroll"><table><thead><tr>${head('order', '#')}${head('name', 'system')}${head('time_ns', 'ms', true)}<th aria-label="share"></th>
    ${head('view_count', 'views', true)}${head('entity_count', 'rows', true)}${head('command_count', 'commands', true)}<th>on</th></tr></thead>
    <tbody>${list.map(system => html`<tr class=${system.enabled ? '' : 'off'}><td class="muted">${system.order + 1}</td><td><i class="dot" style=${{ background: colour(system.order) }}></i>${system.name}</td><td class="n">${ms(system.time_ns)}</td>
      <td><i class="bar" style=${{ width: `${Math.round(110 * system.time_ns / most)}px` }}></i></td><td class="n">${count(system.view_count)}</td>
      <td class="n">${count(system.entity_count)}</td><td class="n">${count(system.command_count)}</td>
      <td><input type="checkbox" checked=${system.enabled} aria-label=${`run ${system.name}`} onChange=${event => post('system', { name: system.name, on: event.target.checked ? 1 : 0 })} /></td></tr>`)}</tbody></table></div>`
}

function FrameView() {
  const { message, samples, budgetMs, world } = useStore()
  const last = samples[samples.length - 1] || [0, 0, 0, 0, 0, 0, 0, 0], profile = message.profile
  useEffect(() => { post('profiling', { on: 1 }) }, [])
  return html`<section class="wide"><h2>Frame time</h2><${Figures} list=${[['frame', `${ms(last[1])} ms`], ['sync points', `${ms(last[2])} ms`],
    ...(profile ? [['gather', ms(profile.gather_ns)], ['merge', ms(profile.merge_ns)], ['resolve', ms(profile.resolve_ns)], ['apply', ms(profile.apply_ns)],
      ['critical path', `${ms(profile.critical_path_ns)} ms`], ['threads', profile.thread_count], ['efficiency', `${Math.round(100 * profile.efficiency)} %`]] : []),
    ['commands', count(last[3])], ['created', count(last[5])], ['destroyed', count(last[6])], ['events', count(last[7])]]} />
    <label class="muted">budget <${Input} type="number" min="0.1" step="0.1" value=${budgetMs} onChange=${event => { localStorage.budgetMs = event.target.value; update({ budgetMs: Number(event.target.value) }) }} /> ms</label>
    <${Chart} samples=${samples} budgetMs=${budgetMs} /></section>
    <section class="wide"><h2>Systems</h2><${Systems} systems=${message.systems} /></section>
    <section><h2>Workers</h2><${Workers} profile=${profile} /></section>
    <section><h2>Flame chart</h2>${world && !world.inspector.has_trace ? html`<p class="muted">The program has no trace.</p>` : html`<${Flames} />`}</section>`
}

// ---------------------------------------------------------------------------------------- schedule

const COLUMN = 340
const shorten = (text, most) => {
  const characters = [...text]
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : text
}
const because = edge => edge.causes.map(cause => `${cause.cause.replace('_', '/')}${cause.name ? ` ${cause.name}` : ''}`).join(', ')

function Graph({ segment, edges: all }) {
  const passes = segment.passes, depth = {}
  passes.forEach(pass => { depth[pass.pass] = 1 + Math.max(-1, ...pass.waits_for.map(number => depth[number] ?? -1)) })
  const place = {}, used = []
  let height = 0
  passes.forEach(pass => {
    const column = depth[pass.pass], rows = pass.systems.length
    place[pass.pass] = { x: column * COLUMN, y: used[column] || 0, h: rows * 17 + 22 }
    used[column] = (used[column] || 0) + rows * 17 + 34
    height = Math.max(height, used[column])
  })
  const home = {}
  passes.forEach(pass => pass.systems.forEach(system => { home[system.name] = pass.pass }))
  const between = {}
  all.forEach(edge => {
    const key = `${home[edge.before]} ${home[edge.after]}`
    if (home[edge.before] !== undefined && home[edge.after] !== undefined) (between[key] = between[key] || []).push(edge)
  })
  const reasons = (from, to) => between[`${from} ${to}`] || []
  const width = Math.max(...passes.map(pass => place[pass.pass].x)) + 200, labels = []
  // Labels stand next to the end of their edge. One that would cover another moves down.
  const labelAt = (x, y) => {
    while (labels.some(other => Math.abs(other.x - x) < COLUMN - 192 && Math.abs(other.y - y) < 13)) y += 13
    labels.push({ x, y })
    height = Math.max(height, y + 6)
    return y
  }
  const edges = passes.flatMap(pass => pass.waits_for.filter(number => place[number]).map(number => {
    const a = place[number], b = place[pass.pass], list = reasons(number, pass.pass)
    const text = list.map(edge => `${edge.before} before ${edge.after}: ${because(edge)}`).join('\n') || 'implied by other edges'
    const x1 = a.x + 190, y1 = a.y + a.h / 2, x2 = b.x, y2 = b.y + b.h / 2
    const label = list.length ? shorten(because(list[0]), 24) + (list.length > 1 ? ` +${list.length - 1}` : '') : 'implied'
    return html`<g class="edge"><title>${text}</title><path d=${`M${x1} ${y1} C${x1 + 40} ${y1} ${x2 - 150} ${y2} ${x2 - 4} ${y2}`} marker-end="url(#head)" />
      <text x=${x2 - 8} y=${labelAt(x2 - 8, y2 - 4)} text-anchor="end">${label}</text></g>`
  }))
  return html`<div class="scroll" tabindex="0" role="region" aria-label="passes and why they wait"><svg class="graph" width=${width} height=${height} role="img" aria-label=${`${passes.length} passes`}>
    <defs><marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" /></marker></defs>
    ${edges}
    ${passes.map(pass => { const p = place[pass.pass]; return html`<g transform=${`translate(${p.x} ${p.y})`}>
      <rect width="190" height=${p.h} rx="5"><title>${`${pass.kind}, ${count(pass.entities)} rows in ${pass.chunks} chunks${pass.alone ? `, alone: ${pass.alone.reason.replace('_', ' ')} ${pass.alone.name || ''}` : ''}`}</title></rect>
      <text x="8" y="14" class="muted">pass ${pass.pass}${pass.systems.length > 1 ? `, ${pass.systems.length} share it` : ''}</text>
      ${pass.systems.map((system, i) => html`<text x="8" y=${31 + 17 * i}>${shorten(system.name, 27)}</text>`)}</g>` })}
  </svg></div>`
}

function Forecast() {
  const [answer, setAnswer] = useState(null)
  const [threads, setThreads] = useState(8)
  const capture = async () => {
    if (!await post('capture')) return
    if (state.message.paused) await post('step')
    for (let i = 0; i < 30; i++) {
      await new Promise(done => setTimeout(done, 100))
      try { setAnswer(await get('forecast', { threads: 64 })); break } catch (error) { if (i === 29) tell(error.message) }
    }
  }
  const list = answer ? answer.forecasts : [], one = list.reduce((best, f) => Math.abs(f.threads - threads) < Math.abs(best.threads - threads) ? f : best, list[0])
  const most = Math.max(1, ...list.map(f => f.frame_ns))
  return html`<section class="wide"><h2>Forecast</h2><p><button onClick=${capture} data-test="capture">Capture a frame</button> <span class="muted">It runs on one thread, with the same result.</span></p>
    ${one && html`<label>threads <${Input} type="range" min="1" max="64" value=${threads} aria-label="threads" onInput=${event => setThreads(Number(event.target.value))} /></label> <b>${one.threads}</b>
      <${Figures} list=${[['frame', `${ms(one.frame_ns)} ms`], ['speed-up', one.speedup.toFixed(2)], ['critical path', `${ms(one.critical_path_ns)} ms`], ['limit', one.bottleneck + (one.system ? `: ${one.system}` : '')]]} />
      <div class="columns" role="img" aria-label="Duration by number of threads">${list.map(f => html`<i class=${f === one ? 'on' : ''} style=${{ height: `${Math.max(2, 90 * f.frame_ns / most)}px` }} title=${`${f.threads} threads: ${ms(f.frame_ns)} ms, ${f.bottleneck}`}></i>`)}</div>`}</section>`
}

const EDGES_SHOWN = 100

function ScheduleView() {
  const [answer, setAnswer] = useState(null)
  const [system, setSystem] = useState('')
  const [own, setOwn] = useState(null) // all edges to the chosen system
  useEffect(() => { showLoading(get('schedule').then(setAnswer)) }, [])
  useEffect(() => { setOwn(null); if (system) showLoading(get('edges', { system }).then(next => setOwn(next.edges))) }, [system])
  if (!answer) return html`<section class="wide"><p class="muted">Reading the schedule.</p></section>`
  const { schedule } = answer, direct = answer.edges.flat(), phaseOf = {}
  schedule.phases.forEach(phase => phase.segments.forEach(segment => (segment.passes || []).forEach(pass => pass.systems.forEach(each => { phaseOf[each.name] = phase.name }))))
  const edges = system ? own || [] : direct.slice(0, EDGES_SHOWN)
  return html`<${Forecast} />${schedule.phases.map(phase => html`<section class="wide"><h2>Phase ${phase.name}</h2>${phase.segments.map(segment => segment.passes
      ? html`<${Graph} segment=${segment} edges=${direct} />` : html`<p class="sync">sync point</p>`)}</section>`)}
    <section class="wide"><h2>Why systems wait</h2><p><label>for <select value=${system} aria-label="system that waits" data-test="waits" onChange=${event => setSystem(event.target.value)}><option value="">all systems</option>
      ${Object.keys(phaseOf).map(name => html`<option>${name}</option>`)}</select></label>
      <span class="muted"> ${system ? 'All edges, also those that follow from others.' : `Direct edges${direct.length > edges.length ? `, the first ${edges.length} of ${count(direct.length)}` : ''}.`}</span></p><div class="scroll"><table><thead><tr><th>phase</th><th>first</th><th>then</th><th>because of</th><th>kept by</th></tr></thead>
      <tbody>${edges.map(edge => html`<tr><td class="muted">${phaseOf[edge.after]}</td><td>${edge.before}</td><td>${edge.after}</td><td>${because(edge)}</td>
        <td class="muted">${{ pass: 'one pass, chunk by chunk', graph: 'an edge of the graph', implied: 'other edges' }[edge.kept_by]}${edge.by_registration_alone ? '; only the order of registration decides' : ''}</td></tr>`)}</tbody></table></div></section>`
}

// ---------------------------------------------------------------------------------------- entities

const label = entry => entry.name || `#${entry.entity}`

function Node({ entry, level }) {
  const { chosen } = useStore()
  const [children, setChildren] = useState(null)
  const more = async () => {
    const last = children && children.list[children.list.length - 1]
    const page = await get('sources', { entity: entry.entity, limit: PAGE, after: last && last.entity })
    setChildren({ count: page.count, list: (children ? children.list : []).concat(page.entities) })
  }
  const toggle = () => children ? setChildren(null) : show(more())
  const keys = event => {
    if (event.key === 'ArrowRight' && entry.child_count && !children) toggle()
    if (event.key === 'ArrowLeft' && children) toggle()
    if (event.key === 'Enter' || event.key === ' ') { open(entry.entity); event.preventDefault() }
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const all = [...document.querySelectorAll('[role=treeitem]')], i = all.indexOf(event.currentTarget)
      const next = all[i + (event.key === 'ArrowDown' ? 1 : -1)]
      if (next) next.focus()
      event.preventDefault()
    }
    event.stopPropagation()
  }
  return html`<div role="treeitem" tabindex="0" aria-level=${level} aria-expanded=${entry.child_count ? !!children : undefined} aria-selected=${chosen === entry.entity}
      class=${`node ${chosen === entry.entity ? 'chosen' : ''} ${entry.enabled ? '' : 'off'}`} style=${{ paddingLeft: `${level * 14 - 8}px` }} onKeyDown=${keys} onClick=${() => open(entry.entity)} data-test="node">
      <button class="plain twist" tabindex="-1" aria-hidden="true" onClick=${event => { event.stopPropagation(); if (entry.child_count) toggle() }}>${entry.child_count ? (children ? '▾' : '▸') : ''}</button>
      ${label(entry)}${entry.child_count > 0 && html`<span class="muted"> ${count(entry.child_count)}</span>`}</div>
    ${children && children.list.map(child => html`<${Node} key=${child.entity} entry=${child} level=${level + 1} />`)}
    ${children && children.list.length < children.count && html`<button class="plain" style=${{ marginLeft: `${level * 14 + 20}px` }} onClick=${() => show(more())}>${count(children.count - children.list.length)} more</button>`}`
}

function Tree() {
  const { types, message } = useStore()
  const [mode, setMode] = useState('tree')
  const [text, setText] = useState('')
  const [page, setPage] = useState(null)
  const [offset, setOffset] = useState(0)
  const [cursors, setCursors] = useState([0]) // where the pages begin, if the list is not counted
  const load = async () => {
    const names = { tree: () => get('roots', { offset, cursor: cursors[offset / PAGE] ?? 0, limit: PAGE }), name: () => get('entities', { name: text, limit: 500 }),
      query: () => get('entities', { query: text, offset, limit: PAGE }),
      component: () => get('entities', { query: `with "${text.replace(/["\\]/g, '\\$&')}"`, offset, limit: PAGE }) }
    if (mode !== 'tree' && mode !== 'name' && !text) { setPage(null); return }
    const next = await names[mode]()
    setPage(next)
    if (next.next_cursor) setCursors(cursors.slice(0, offset / PAGE + 1).concat(next.next_cursor))
    state.watched = next.entities.slice(0, PAGE).map(entry => entry.entity)
  }
  useEffect(() => { const timer = setTimeout(() => show(load()), mode === 'tree' ? 0 : 200); return () => clearTimeout(timer) }, [mode, text, offset, message.restore_count])
  useEffect(() => { if (types && mode === 'component' && !text && types.components[0]) setText(types.components[0].name) }, [mode, types])
  const choose = next => { if (next === mode) return; setMode(next); setOffset(0); setText(''); setPage(null) }
  return html`<section class="tree"><h2>Entities</h2><div class="tabs small" role="tablist">${['tree', 'name', 'component', 'query'].map(each =>
      html`<button role="tab" aria-selected=${mode === each} onClick=${() => choose(each)} data-test=${`by-${each}`}>${each}</button>`)}</div>
    ${(mode === 'name' || mode === 'query') && html`<${Input} class="search" value=${text} aria-label=${`search by ${mode}`} data-test="search" placeholder=${mode === 'name' ? 'name or /path' : 'Position, !Hunter, ?Energy, A | B'}
      onInput=${event => { setText(event.target.value); setOffset(0) }} />`}
    ${mode === 'component' && types && html`<select class="search" value=${text} aria-label="component" onChange=${event => { setText(event.target.value); setOffset(0) }}>${types.components.filter(t => !t.hidden).map(t => html`<option>${t.name}</option>`)}</select>`}
    ${page && html`<p class="muted">${page.count !== undefined && page.count !== null ? `${count(page.count)} entities` : ''}
      <button class="plain" disabled=${offset === 0} onClick=${() => setOffset(Math.max(0, offset - PAGE))} aria-label="previous page">‹</button> ${count(offset + (page.entities.length ? 1 : 0))} to ${count(offset + page.entities.length)}
      <button class="plain" disabled=${page.count !== undefined ? offset + PAGE >= page.count : page.next_cursor === null} onClick=${() => setOffset(offset + PAGE)} aria-label="next page" data-test="next">›</button></p>
      <div role="tree" aria-label="entities">${page.entities.map(entry => html`<${Node} key=${entry.entity} entry=${entry} level=${1} />`)}</div>`}</section>`
}

const valueAt = (value, path) => path.split('.').reduce((at, part) => at === undefined || at === null ? undefined : at[part], value)

function Editor({ component, field, value, changed, onSet }) {
  const path = `${component}.${field.name}`, name = `${path}${field.unit ? ` in ${field.unit}` : ''}`
  const common = { 'aria-label': name, disabled: field.read_only, class: changed ? 'changed' : '', 'data-path': path }
  const set = text => onSet(path, text)
  const range = field.minimum !== undefined ? `${field.minimum} to ${field.maximum}` : ''
  let editor
  if (field.count > 1 && field.type !== 'text') editor = html`<${Input} ...${common} value=${`[${(value || []).join(', ')}]`} onChange=${e => set(e.target.value)} />`
  else if (field.type === 'bool') editor = html`<input ...${common} type="checkbox" checked=${value} onChange=${e => set(e.target.checked ? 'true' : 'false')} />`
  else if (field.values) editor = html`<select ...${common} value=${value} onChange=${e => set(e.target.value)}>${field.values.includes(value) ? '' : html`<option>${value}</option>`}${field.values.map(v => html`<option>${v}</option>`)}</select>`
  else if (field.type === 'entity') editor = html`<span class="pair"><${Input} ...${common} value=${value ?? 'none'} onChange=${e => set(e.target.value)} />${value && html`<button class="plain link" onClick=${() => open(value)} aria-label=${`go to ${value}`}>→</button>`}</span>`
  else if (field.type === 'text') editor = html`<${Input} ...${common} value=${value} onChange=${e => set(e.target.value)} />`
  else editor = html`<span class="pair"><${Input} ...${common} inputmode="decimal" value=${value} onChange=${e => set(e.target.value)} />
    ${range && html`<${Input} type="range" min=${field.minimum} max=${field.maximum} step="any" value=${value} aria-label=${`${name}, ${range}`} onChange=${e => set(e.target.value)} />`}</span>`
  return html`<tr><th scope="row">${field.name}</th><td>${editor}</td><td class="muted">${field.unit || ''} ${range}</td></tr>`
}

// The entities that have this one as their target, in pages.
function Sources({ entity, relation }) {
  const [list, setList] = useState([])
  const more = async () => {
    const last = list[list.length - 1]
    const page = await get('sources', { entity, relation: relation.relation, limit: 20, after: last && last.entity })
    setList(list.concat(page.entities))
  }
  return html`<p class="links"><span class="muted">${count(relation.source_count)} ${relation.source_count === 1 ? 'source' : 'sources'}:</span>
    ${list.map(each => html`<button class="plain link" onClick=${() => open(each.entity)}>${label(each)}</button> `)}
    ${list.length < relation.source_count && html`<button onClick=${() => show(more())}>${list.length ? 'More' : 'Show'}</button>`}</p>`
}

function EntityPanel() {
  const { chosen, types, message } = useStore()
  const [entity, setEntity] = useState(null)
  const [old, setOld] = useState(null)
  const [gone, setGone] = useState('')
  const load = async () => {
    let next
    try {
      next = await get('entity', { entity: chosen })
    } catch (error) {
      setGone(error.message)
      return
    }
    setGone('')
    setOld(entity && entity.entity === next.entity && entity.frame !== next.frame ? entity : old)
    setEntity(next)
  }
  useEffect(() => { if (chosen) load(); else setEntity(null) }, [chosen, message.frame, message.restore_count])
  if (!chosen) return html`<section><h2>Entity</h2><p class="muted">Choose an entity on the left.</p></section>`
  if (!entity || !types || (gone && entity.entity !== chosen)) return html`<section><h2>Entity</h2><p class="muted">${gone || 'Reading.'}</p></section>`
  const set = async (path, value) => { if (await post('set', { entity: entity.entity, path, value })) await load() }
  const change = async (path, argumentsOf) => { if (await post(path, { entity: entity.entity, ...argumentsOf })) await load() }
  const values = entity.values ? entity.values.components : {}, before = old && old.values ? old.values.components : null
  const absent = types.components.filter(t => !t.managed && !t.hidden && !(t.name in values))
  return html`<section class=${`entity ${gone ? 'off' : ''}`}><h2 title=${entity.path_error || ''}>${entity.path || entity.name || `#${entity.entity}`}</h2>
    ${gone && html`<p class="bad">The entity does not exist any more: these are its values of frame ${count(entity.frame)}.</p>`}
    <p class="row"><span class="muted">${entity.entity}, use ${entity.use_count}</span>
      <label><input type="checkbox" checked=${entity.enabled} onChange=${e => change('enable', { on: e.target.checked ? 1 : 0 })} /> enabled</label>
      <button onClick=${() => change('destroy').then(() => update({ chosen: null }))}>Destroy</button></p>
    <label class="muted">name <${Input} value=${entity.name || ''} aria-label="name" data-test="name" onChange=${e => change('name', { name: e.target.value })} /></label>
    ${Object.entries(values).map(([name, value]) => {
      const type = types.components.find(t => t.name === name) || { fields: [], flags: [] }
      const state = entity.components.find(c => c.name === name)
      return html`<div class="component"><h3>${name} <span class="muted">${type.size_bytes ? bytes(type.size_bytes) : 'tag'}</span>
        ${type.flags.includes('can_disable') && html`<label><input type="checkbox" checked=${state && state.enabled} onChange=${e => change('enable', { component: name, on: e.target.checked ? 1 : 0 })} /> enabled</label>`}
        <button class="plain" onClick=${() => change('remove', { component: name })} aria-label=${`remove ${name}`}>✕</button></h3>
        ${type.fields.length ? html`<table class="fields"><tbody>${type.fields.filter(f => !f.hidden).map(field => html`<${Editor} component=${name} field=${field} value=${valueAt(value, field.name)}
          changed=${before && name in before && JSON.stringify(valueAt(before[name], field.name)) !== JSON.stringify(valueAt(value, field.name))} onSet=${set} />`)}</tbody></table>`
          : typeof value === 'string' && html`<code class="muted">${value}</code>`}</div>`
    })}
    ${entity.values_error && html`<p class="bad">${entity.values_error}</p>`}
    ${entity.relations.map(relation => html`<div class="component"><h3>${relation.relation}</h3>${relation.targets.map(target =>
      html`<p>of <button class="plain link" onClick=${() => open(target.entity)}>${target.path || target.entity}</button></p>`)}
      ${relation.source_count > 0 && html`<${Sources} key=${`${entity.entity} ${relation.relation}`} entity=${entity.entity} relation=${relation} />`}</div>`)}
    <p><select aria-label="add a component" onChange=${e => { if (e.target.value) change('add', { component: e.target.value }); e.target.value = '' }}><option value="">Add a component</option>${absent.map(t => html`<option>${t.name}</option>`)}</select></p></section>`
}

const EntitiesView = () => html`<${Tree} /><${EntityPanel} />`

// ------------------------------------------------------------------------------- archetypes, memory

function useAnswer(path, argumentsOf, again) {
  const [answer, setAnswer] = useState(null)
  useEffect(() => {
    let isLive = true
    const load = () => get(path, argumentsOf).then(next => isLive && setAnswer(next), error => tell(error.message))
    load()
    const timer = setInterval(() => { if (!document.hidden) load() }, again || 2000)
    return () => { isLive = false; clearInterval(timer) }
  }, [path, JSON.stringify(argumentsOf)])
  return answer
}

const CHUNKS_SHOWN = 400
const chunkFill = (archetype, i) => i < archetype.chunk_count - 1 ? 1 : i < archetype.chunk_count
  ? (archetype.entity_count - (archetype.chunk_count - 1) * archetype.row_capacity) / archetype.row_capacity : 0

function ArchetypesView() {
  const [offset, setOffset] = useState(0)
  const answer = useAnswer('archetypes', { offset, limit: 100 })
  const world = useAnswer('world', {})
  const resources = useAnswer('resources', {})
  const prefabs = useAnswer('prefabs', {})
  if (!answer || !world) return html`<section class="wide"><p class="muted">Reading.</p></section>`
  const list = answer.archetypes.filter(a => a.held_count > 0 || a.entity_count > 0).sort((a, b) => b.entity_count - a.entity_count)
  const most = Math.max(1, ...list.map(a => a.held_count))
  return html`<section class="wide"><h2>Memory</h2><${Figures} list=${[['entities', count(world.entity_count)], ['archetypes', count(world.archetype_count)], ['chunks', count(world.chunk_count)], ['spare chunks', count(world.chunk_free_count)],
      ['used', bytes(world.used_bytes)], ['held', bytes(world.held_bytes)], ['links', bytes(world.link_bytes)], ['events', bytes(world.event_bytes)],
      ...(world.history ? [['kept frames', count(world.history.frame_count)], ['history', bytes(world.history.used_bytes)]] : []), ['prefabs', count(world.prefab_count)], ['names', count(world.name_count)]]} /></section>
    <section class="wide"><h2>Archetypes</h2>${list.map(a => html`<div class="archetype"><div><b>${a.components.join(' · ') || 'no components'}</b>
      <span class="muted"> ${many(a.entity_count, 'entity', 'entities')}, ${count(a.chunk_count)} of ${many(a.held_count, 'chunk', 'chunks')}, ${a.row_bytes} B per row, ${a.row_capacity} rows per chunk, ${Math.round(100 * a.occupancy)} % full, ${bytes(a.held_count * a.row_bytes * a.row_capacity)}</span></div>
      <div class="chunks" role="img" aria-label=${`${a.held_count} chunks, ${Math.round(100 * a.occupancy)} % full`}>${Array.from({ length: Math.min(CHUNKS_SHOWN, a.held_count) }, (_, i) =>
        html`<i style=${{ '--fill': `${Math.round(100 * chunkFill(a, i))}%` }}></i>`)}${a.held_count > CHUNKS_SHOWN && html`<span class="muted">and ${count(a.held_count - CHUNKS_SHOWN)} more</span>`}</div></div>`)}
      ${answer.count > 100 && html`<p><button disabled=${offset === 0} onClick=${() => setOffset(offset - 100)}>Previous</button> <button disabled=${offset + 100 >= answer.count} onClick=${() => setOffset(offset + 100)}>Next</button></p>`}</section>
    ${prefabs && prefabs.count > 0 && html`<section class="wide"><h2>Prefabs</h2><div class="scroll"><table><thead><tr><th class="n">number</th><th class="n">members</th><th>instances are</th></tr></thead>
      <tbody>${prefabs.prefabs.map(p => html`<tr><td class="n">${p.index}</td><td class="n">${count(p.member_count)}</td><td>${p.enabled ? 'enabled' : 'disabled'}</td></tr>`)}</tbody></table></div></section>`}
    <section class="wide"><h2>Resources</h2><div class="scroll"><table><tbody>${(resources ? resources.resources : []).map(r => html`<tr><th scope="row">${r.name}</th><td class="n">${bytes(r.size_bytes)}</td><td>${r.value ? html`<code>${JSON.stringify(r.value)}</code>` : html`<span class="muted">not described</span>`}</td></tr>`)}</tbody></table></div></section>`
}

// ------------------------------------------------------------------------------ events, commands, history

function EventsView() {
  const { events, eventTypes } = useStore()
  return html`<section class="wide"><h2>Types</h2>${eventTypes.length === 0 && html`<p class="muted">The world has no events.</p>`}<div class="scroll"><table><tbody>${eventTypes.map(type => html`<tr><th scope="row">${type.name}</th><td>${count(type.waiting_count)} wait, ${bytes(type.waiting_bytes)}</td><td>${many(type.reader_count, 'reader', 'readers')}</td><td>${count(type.lost_count)} lost</td></tr>`)}</tbody></table></div></section>
    <section class="wide"><h2>Published</h2>${events.length === 0 && html`<p class="muted">None since this view was opened.</p>`}<div class="scroll" hidden=${events.length === 0}><table><thead><tr><th class="n">frame</th><th>event</th><th>value</th></tr></thead><tbody>${events.slice(-100).reverse().map(event => html`<tr><td class="n">${event.frame}</td><td>${event.event}</td><td><code>${event.value ? JSON.stringify(event.value) : ''}</code></td></tr>`)}</tbody></table></div></section>`
}

const Drops = ({ list }) => list.length === 0 ? html`<p class="muted">No command was dropped.</p>` : html`<div class="scroll"><table>
  <thead><tr>${list[0].frame !== undefined && html`<th class="n">frame</th>`}<th>system</th><th>reason</th><th class="n">count</th><th>first entity</th></tr></thead>
  <tbody>${list.map(d => html`<tr>${d.frame !== undefined && html`<td class="n">${count(d.frame)}</td>`}<td>${d.system}</td><td>${d.reason}</td><td class="n">${count(d.count)}</td>
    <td>${d.first && html`<button class="plain link" onClick=${() => open(d.first)}>${d.first}</button>`}</td></tr>`)}</tbody></table></div>`

function CommandsView() {
  const { message, samples } = useStore()
  const last = samples[samples.length - 1] || [], commands = message.commands, systems = (message.systems || []).filter(s => s.command_count > 0)
  return html`<section class="wide"><h2>The last frame</h2><${Figures} list=${[['commands', count(last[3] || 0)], ['dropped', count(last[4] || 0)], ['created', count(last[5] || 0)], ['destroyed', count(last[6] || 0)], ['kept for a retry', count(commands ? commands.kept_count : 0)]]} /></section>
    <section><h2>Recorded</h2>${systems.length ? html`<div class="scroll"><table><thead><tr><th>system</th><th class="n">commands</th></tr></thead><tbody>${systems.map(s => html`<tr><td>${s.name}</td><td class="n">${count(s.command_count)}</td></tr>`)}</tbody></table></div>` : html`<p class="muted">No system recorded commands.</p>`}</section>
    <section><h2>Dropped</h2><${Drops} list=${commands ? commands.dropped : []} /></section>
    ${commands && commands.recent.length > 0 && html`<section class="wide"><h2>Dropped before</h2><${Drops} list=${commands.recent} /></section>`}`
}

function HistoryView() {
  const { message } = useStore()
  const [delta, setDelta] = useState(null)
  const [from, setFrom] = useState(null)
  const [to, setTo] = useState(null)
  const last = Math.max(message.newest ?? 0, message.frame ?? 0), a = from ?? Math.max(message.oldest ?? 0, last - 1), b = to ?? last
  const compare = () => show(get('delta', { from: a, to: b, limit: 200 }).then(setDelta))
  const text = value => value === undefined ? '' : JSON.stringify(value)
  const parts = (value, other) => value && typeof value === 'object' ? Object.entries(value).map(([key, each]) => html`<span class=${other && JSON.stringify(other[key]) !== JSON.stringify(each) ? 'hot' : ''}>${key} ${text(each)} </span>`) : text(value)
  return html`<section class="wide"><h2>Compare two frames</h2><p><label>from <${Input} type="number" value=${a} onChange=${e => setFrom(Number(e.target.value))} /></label> <label>to <${Input} type="number" value=${b} onChange=${e => setTo(Number(e.target.value))} /></label>
      <button onClick=${compare} data-test="compare">Compare</button> <span class="muted">${message.oldest === undefined ? 'no kept frames' : `kept: ${count(message.oldest)} to ${count(last)}`}${message.paused ? '' : '; pause first, so that they stay'}</span></p>
    ${delta && html`<${Figures} list=${Object.entries(delta.counts).filter(([, n]) => n > 0).map(([kind, n]) => [kind, count(n)])} />
      <div class="scroll"><table><thead><tr><th>what</th><th>entity</th><th>component</th><th>${delta.from}</th><th>${delta.to}</th></tr></thead><tbody>${delta.entries.map(e => html`<tr><td>${e.kind}</td>
        <td>${e.entity && html`<button class="plain link" onClick=${() => open(e.entity)}>${e.entity}</button>`}</td><td>${e.component || e.resource || ''}</td><td>${parts(e.old, e.new)}</td><td>${parts(e.new, e.old)}</td></tr>`)}</tbody></table></div>`}</section>`
}

// ------------------------------------------------------------------------------------------- page

const tabs = { frame: ['Frame', FrameView], schedule: ['Schedule', ScheduleView], entities: ['Entities', EntitiesView], archetypes: ['Archetypes', ArchetypesView],
  events: ['Events', EventsView], commands: ['Commands', CommandsView], history: ['Compare', HistoryView] }

function App() {
  const { tab, message, connected, error, world } = useStore()
  const View = (tabs[tab] || tabs.frame)[1]
  return html`<header><h1>${world ? world.title : 'Quern'}</h1><span class="muted" aria-live="off" data-test="frame">frame ${count(message.frame ?? 0)}${message.paused ? ', paused' : ''}</span>
      ${!connected && html`<span class="bad">not connected</span>`}<${TimeLine} /></header>
    <nav class="tabs" role="tablist" aria-label="views">${Object.entries(tabs).map(([key, [name]], i) => html`<button role="tab" aria-selected=${tab === key} onClick=${() => go(key)} title=${`key ${i + 1}`} data-test=${`tab-${key}`}>${name}</button>`)}</nav>
    ${error && html`<p class="error" role="alert">${error} <button class="plain" onClick=${() => tell('')} aria-label="close">✕</button></p>`}
    <main class=${tab} role="tabpanel" aria-label=${(tabs[tab] || tabs.frame)[0]}><${View} key=${tab} /></main>`
}

addEventListener('keydown', event => {
  const { tagName, type } = event.target
  const isTyping = /SELECT|TEXTAREA/.test(tagName) || (tagName === 'INPUT' && !/range|checkbox/.test(type))
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return
  const key = Object.keys(tabs)[Number(event.key) - 1]
  if (key) go(key)
  else if (event.key === ' ' && !/BUTTON|INPUT/.test(tagName)) { post(state.message.paused ? 'resume' : 'pause'); event.preventDefault() }
  else if (event.key === '.') post('step')
  else if (event.key === ',' && state.message.frame > state.message.oldest) post('restore', { frame: state.message.frame - 1 })
})

render(html`<${App} />`, document.getElementById('app'))
showLoading(get('world').then(world => { update({ world }); document.title = `${world.title} – inspector` }))
showLoading(get('types').then(types => update({ types })))
connect()
