// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// The page of the inspector. It asks the end points of docs/inspector.md, relative to its own address, and opens one
// WebSocket. This file has the frame of the page and the views that have no file of their own.

import { render } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { html, useStore, update, state, get, post, tell, show, showLoading, undo, connect, go, open, openType, openSystem, ms, bytes, count, many, colour, hasWords, budgetsOf, Input, Figures, Filter, Link, useAnswer, readAccess } from './common.js'
import { EntitiesView } from './entities.js'
import { Find } from './find.js'
import { Stopped } from './probes.js'
import { ScheduleView } from './schedule.js'
import { TypesView } from './types.js'

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
    ${message.edit_count > 0 && has && html`<button onClick=${undo} title="Ctrl+Z" data-test="undo">Undo</button>`}
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
function Chart({ samples, budgetMs, names }) {
  const place = useRef(), plot = useRef()
  const [isDark, setDark] = useState(matchMedia('(prefers-color-scheme:dark)').matches) // a canvas keeps its colours
  useEffect(() => {
    const media = matchMedia('(prefers-color-scheme:dark)'), listener = event => setDark(event.matches)
    media.addEventListener('change', listener)
    return () => media.removeEventListener('change', listener)
  }, [])
  const isFar = Math.max(...samples.map(sample => sample[1] / 1e6), 0) > 10 * budgetMs
  useEffect(() => {
    const style = getComputedStyle(document.body), ink = style.getPropertyValue('--muted'), grid = style.getPropertyValue('--line')
    const points = { show: false }, shown = (u, value) => value === null || value === undefined ? '' : Number(value.toPrecision(4)) // of the frame under the mouse
    const decades = (u, i, low, high) => {
      const splits = [0, budgetMs]
      for (let value = 10 ** Math.ceil(Math.log10(budgetMs * 2)); value <= high; value *= 10) splits.push(Number(value.toPrecision(3)))
      return splits
    }
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid }, font: '11px system-ui' }
    plot.current = new uPlot({
      width: place.current.clientWidth, height: 200, cursor: { y: false }, legend: { live: true },
      scales: { x: { time: false }, y: { ...(isFar ? { distr: 4, asinh: budgetMs } : {}), range: (u, low, high) => [0, Math.max(high * 1.1, 0.1)] } },
      axes: [{ ...axis, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000] }, { ...axis, values: (u, values) => values.map(value => `${value} ms`), size: 70, ...(isFar ? { filter: (u, splits) => splits, splits: decades } : {}) }],
      series: [{ label: names[0], value: shown }, { label: names[1], value: shown, stroke: style.getPropertyValue('--accent'), width: 2, points },
        { label: names[2], value: shown, stroke: style.getPropertyValue('--warm'), width: 1.5, points },
        { label: 'budget', value: shown, stroke: style.getPropertyValue('--bad'), width: 1, dash: [5, 5], points }],
    }, [[], [], [], []], place.current)
    const size = () => plot.current.setSize({ width: place.current.clientWidth, height: 200 })
    addEventListener('resize', size)
    return () => { removeEventListener('resize', size); plot.current.destroy() }
  }, [isFar, isFar && budgetMs, isDark])
  useEffect(() => {
    const ordered = samples.filter((sample, i) => i === 0 || sample[0] > samples[i - 1][0])
    plot.current.setData([ordered.map(s => s[0]), ordered.map(s => s[1] / 1e6), ordered.map(s => s[2] / 1e6), ordered.map(() => budgetMs)])
  }, [samples, budgetMs, isFar, isDark])
  return html`<div ref=${place} role="img" data-scale=${isFar ? 'logarithmic' : 'linear'} aria-label="Duration of the last frames in milliseconds"></div>
    ${isFar && html`<p class="muted">Logarithmic above the budget.</p>`}`
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

function Systems({ systems = [] }) {
  useStore('budgets')
  const budgets = budgetsOf(), isOver = system => budgets[system.name] !== undefined && system.time_ns > 1e6 * budgets[system.name]
  const [by, setBy] = useState('order')
  const [text, setText] = useState('')
  const most = Math.max(1, ...systems.map(system => system.time_ns))
  const list = systems.map((system, i) => ({ ...system, order: i })).filter(system => !text || hasWords(system.name, text))
  if (by !== 'order') list.sort((a, b) => by === 'name' ? a.name.localeCompare(b.name) : b[by] - a[by])
  const head = (key, text, number) => html`<th class=${number ? 'n' : ''} aria-sort=${by === key ? 'descending' : 'none'}><button class="plain" onClick=${() => setBy(key)}>${text}</button></th>`
  const over = systems.filter(isOver)
  return html`<p class="row">${systems.length > 20 && html`<${Filter} value=${text} onInput=${setText} what="systems" />`}${over.length > 0 && html`<span class="bad" data-test="over">over their budget: ${over.slice(0, 5).map((system, i) => html`${i > 0 ? ', ' : ''}${system.name}`)}${over.length > 5 ? ` and ${over.length - 5} more` : ''}</span>`}</p><div class="scroll tall"><table><thead><tr>${head('order', '#')}${head('name', 'system')}${head('time_ns', 'ms', true)}<th aria-label="share"></th>
    ${head('view_count', 'views', true)}${head('entity_count', 'rows', true)}${head('command_count', 'commands', true)}<th>on</th></tr></thead>
    <tbody>${list.map(system => html`<tr class=${system.enabled ? '' : 'off'}><td class="muted">${system.order + 1}</td><td><i class="dot" style=${{ background: colour(system.order) }}></i><button class="plain name" onClick=${() => openSystem(system.name)}>${system.name}</button></td><td class=${`n ${isOver(system) ? 'bad' : ''}`} title=${budgets[system.name] !== undefined ? `budget ${budgets[system.name]} ms` : ''}>${isOver(system) ? '▲ ' : ''}${ms(system.time_ns)}</td>
      <td><i class="bar" style=${{ width: `${Math.round(110 * system.time_ns / most)}px` }}></i></td><td class="n">${count(system.view_count)}</td>
      <td class="n">${count(system.entity_count)}</td><td class="n">${count(system.command_count)}</td>
      <td><input type="checkbox" checked=${system.enabled} aria-label=${`run ${system.name}`} onChange=${event => post('system', { name: system.name, on: event.target.checked ? 1 : 0 })} /></td></tr>`)}</tbody></table></div>`
}

// The frame at a share of all that are shown, by duration.
const percentile = (sorted, share) => sorted.length ? sorted[Math.min(sorted.length - 1, Math.ceil(share * sorted.length) - 1)] : 0

// The last minutes: the mean and the longest duration of each second.
function Minutes({ budgetMs }) {
  const answer = useAnswer('statistics', {}, 2000)
  if (!answer) return html`<p class="muted">Reading.</p>`
  if (answer.seconds.length < 2) return html`<p class="muted">Seconds are counted while this page, a curve or a condition watches. Wait for two of them.</p>`
  const points = answer.seconds.map(s => [s[0] - answer.seconds[0][0], s[4], s[3]])
  const worst = answer.seconds.reduce((most, s) => s[4] > most[4] ? s : most), frames = answer.seconds.reduce((sum, s) => sum + s[2], 0), sum = k => count(answer.seconds.reduce((all, s) => all + s[k], 0))
  return html`<${Figures} list=${[['seconds', count(answer.seconds.length)], ['frames', count(frames)], ['mean', `${ms(answer.seconds.reduce((all, s) => all + s[3] * s[2], 0) / frames)} ms`], ['longest', `${ms(worst[4])} ms in frame ${count(worst[5])}`],
      ['commands', sum(7)], ['dropped', sum(8)], ['created', sum(9)], ['destroyed', sum(10)], ['events', sum(11)]]} />
    <${Chart} key="minutes" samples=${points} budgetMs=${budgetMs} names=${['second', 'longest ms', 'mean ms']} />`
}

function FrameView() {
  const { message, samples, budgetMs, world } = useStore()
  const [isLong, setLong] = useState(false)
  const times = samples.map(sample => sample[1]).sort((a, b) => a - b), worst = samples.reduce((most, sample) => sample[1] > most[1] ? sample : most, [0, 0])
  const last = samples[samples.length - 1] || [0, 0, 0, 0, 0, 0, 0, 0], profile = message.profile
  useEffect(() => { post('profiling', { on: 1 }) }, [])
  return html`<section class="wide"><h2>Frame time</h2><p class="tabs small" role="tablist">${[['last frames', false], ['minutes', true]].map(([name, value]) => html`<button role="tab" aria-selected=${isLong === value} onClick=${() => setLong(value)} data-test=${value ? 'minutes' : 'frames'}>${name}</button>`)}</p>
    ${isLong ? html`<${Minutes} budgetMs=${budgetMs} />` : html`<${Figures} list=${[['frame', `${ms(last[1])} ms`], ['median', `${ms(percentile(times, 0.5))} ms`], ['95 %', `${ms(percentile(times, 0.95))} ms`], ['99 %', `${ms(percentile(times, 0.99))} ms`],
        ['longest', html`<span title=${`of ${times.length} frames: frame ${worst[0]}`} data-test="longest">${ms(worst[1])} ms</span>`], ['sync points', `${ms(last[2])} ms`], ['commands', count(last[3])], ['created', count(last[5])], ['destroyed', count(last[6])], ['events', count(last[7])]]} />
      ${profile && html`<p class="muted">critical path ${ms(profile.critical_path_ns)} ms, ${many(profile.thread_count, 'thread', 'threads')}, ${Math.round(100 * profile.efficiency)} % busy; sync points: gather ${ms(profile.gather_ns)}, merge ${ms(profile.merge_ns)}, resolve ${ms(profile.resolve_ns)}, apply ${ms(profile.apply_ns)} ms</p>`}`}
    <label class="muted">budget <${Input} type="number" min="0.1" step="0.1" value=${budgetMs} onChange=${event => { localStorage.budgetMs = event.target.value; update({ budgetMs: Number(event.target.value) }) }} /> ms</label>
    ${!isLong && html`<${Chart} key="frames" samples=${samples} budgetMs=${budgetMs} names=${['frame', 'frame ms', 'sync ms']} />`}</section>
    <section class="wide"><h2>Systems</h2><${Systems} systems=${message.systems} /></section>
    <section><h2>Workers</h2><${Workers} profile=${profile} /></section>
    <section><h2>Flame chart</h2>${world && !world.inspector.has_trace ? html`<p class="muted">The program has no trace.</p>` : html`<${Flames} />`}</section>`
}

// ------------------------------------------------------------------------------- archetypes, memory

const CHUNKS_SHOWN = 400, ARCHETYPES_SHOWN = 60
const chunkFill = (archetype, i) => i < archetype.chunk_count - 1 ? 1 : i < archetype.chunk_count
  ? (archetype.entity_count - (archetype.chunk_count - 1) * archetype.row_capacity) / archetype.row_capacity : 0
const heldBytes = a => a.held_count * a.row_bytes * a.row_capacity
const orders = { entities: ['most entities', a => a.entity_count], memory: ['most memory', heldBytes], waste: ['emptiest chunks', a => heldBytes(a) * (1 - (a.occupancy || 0))], components: ['most components', a => a.components.length] }

function useArchetypes() {
  const [list, setList] = useState(null)
  useEffect(() => {
    let isLive = true, timer
    const load = async () => {
      try {
        let all = []
        for (let offset = 0, whole = 1; isLive && offset < whole; offset += 1000) {
          const page = await get('archetypes', { offset, limit: 1000 })
          whole = page.count
          all = all.concat(page.archetypes)
        }
        if (isLive) setList(all.filter(a => a.held_count > 0 || a.entity_count > 0))
      } catch (error) { tell(error.message) }
      if (isLive) timer = setTimeout(load, 3000)
    }
    load()
    return () => { isLive = false; clearTimeout(timer) }
  }, [])
  return list
}

function ArchetypesView() {
  const { archetypes: text } = useStore('archetypes')
  const [by, setBy] = useState('entities')
  const [shown, setShown] = useState(ARCHETYPES_SHOWN)
  const all = useArchetypes()
  const world = useAnswer('world', {})
  const prefabs = useAnswer('prefabs', {})
  if (!all || !world) return html`<section class="wide"><p class="muted">Reading.</p></section>`
  const list = all.filter(a => !text || hasWords(a.components.join(' '), text)).sort((a, b) => orders[by][1](b) - orders[by][1](a)), rows = list.reduce((sum, a) => sum + a.entity_count, 0)
  return html`<section class="wide"><h2>Memory</h2><${Figures} list=${[['entities', count(world.entity_count)], ['archetypes', count(world.archetype_count)], ['chunks', count(world.chunk_count)], ['spare chunks', count(world.chunk_free_count)],
      ['used', bytes(world.used_bytes)], ['held', bytes(world.held_bytes)], ['links', bytes(world.link_bytes)], ['events', bytes(world.event_bytes)],
      ...(world.history ? [['kept frames', count(world.history.frame_count)], ['history', bytes(world.history.used_bytes)]] : []), ['prefabs', count(world.prefab_count)], ['names', count(world.name_count)]]} /></section>
    <section class="wide"><h2>Archetypes</h2><p class="row"><${Filter} value=${text} onInput=${value => { setShown(ARCHETYPES_SHOWN); update({ archetypes: value }) }} what="by components" test="filter-archetypes" />
      <label>first <select value=${by} aria-label="order" data-test="order-archetypes" onChange=${event => setBy(event.target.value)}>${Object.entries(orders).map(([key, [name]]) => html`<option value=${key}>${name}</option>`)}</select></label>
      <span class="muted" data-test="archetype-count">${count(list.length)} of ${count(all.length)}, ${many(rows, 'entity', 'entities')}, ${bytes(list.reduce((sum, a) => sum + heldBytes(a), 0))}</span></p>
      ${list.slice(0, shown).map(a => html`<div class="archetype" key=${a.index}><div class="wrap"><b>${a.components.length ? a.components.map((name, i) => html`${i > 0 ? ' · ' : ''}<button class="plain name" onClick=${() => openType(`components ${name}`)}>${name}</button>`) : 'no components'}</b>
      <span class="muted"> ${many(a.entity_count, 'entity', 'entities')}, ${count(a.chunk_count)} of ${many(a.held_count, 'chunk', 'chunks')}, ${a.row_bytes} B per row, ${a.row_capacity} rows per chunk, ${Math.round(100 * a.occupancy)} % full, ${bytes(heldBytes(a))}</span></div>
      <div class="chunks" role="img" aria-label=${`${a.held_count} chunks, ${Math.round(100 * a.occupancy)} % full`}>${Array.from({ length: Math.min(CHUNKS_SHOWN, a.held_count) }, (_, i) =>
        html`<i style=${{ '--fill': `${Math.round(100 * chunkFill(a, i))}%` }}></i>`)}${a.held_count > CHUNKS_SHOWN && html`<span class="muted">and ${count(a.held_count - CHUNKS_SHOWN)} more</span>`}</div></div>`)}
      ${list.length > shown && html`<p><button onClick=${() => setShown(shown + 2 * ARCHETYPES_SHOWN)} data-test="more-archetypes">${count(list.length - shown)} more</button></p>`}</section>
    ${prefabs && prefabs.count > 0 && html`<section class="wide"><h2>Prefabs</h2><div class="scroll tall"><table><thead><tr><th class="n">number</th><th class="n">members</th><th>instances are</th></tr></thead>
      <tbody>${prefabs.prefabs.map(p => html`<tr><td class="n">${p.index}</td><td class="n">${count(p.member_count)}</td><td>${p.enabled ? 'enabled' : 'disabled'}</td></tr>`)}</tbody></table></div></section>`}`
}

// ------------------------------------------------------------------------------ events, commands, history

function EventsView() {
  const { events, eventTypes } = useStore('events', 'eventTypes')
  return html`<section class="wide"><h2>Types</h2>${eventTypes.length === 0 && html`<p class="muted">The world has no events.</p>`}<div class="scroll"><table><tbody>${eventTypes.map(type => html`<tr><th scope="row">${type.name}</th><td>${count(type.waiting_count)} wait, ${bytes(type.waiting_bytes)}</td><td>${many(type.reader_count, 'reader', 'readers')}</td><td>${count(type.lost_count)} lost</td></tr>`)}</tbody></table></div></section>
    <section class="wide"><h2>Published</h2>${events.length === 0 && html`<p class="muted">None since this view was opened.</p>`}<div class="scroll" hidden=${events.length === 0}><table><thead><tr><th class="n">frame</th><th>event</th><th>value</th></tr></thead><tbody>${events.slice(-100).reverse().map(event => html`<tr><td class="n">${event.frame}</td><td>${event.event}</td><td><code>${event.value ? JSON.stringify(event.value) : ''}</code></td></tr>`)}</tbody></table></div></section>`
}

const Drops = ({ list }) => list.length === 0 ? html`<p class="muted">No command was dropped.</p>` : html`<div class="scroll"><table>
  <thead><tr>${list[0].frame !== undefined && html`<th class="n">frame</th>`}<th>system</th><th>reason</th><th class="n">count</th><th>first entity</th></tr></thead>
  <tbody>${list.map(d => html`<tr>${d.frame !== undefined && html`<td class="n">${count(d.frame)}</td>`}<td>${d.system}</td><td>${d.reason}</td><td class="n">${count(d.count)}</td>
    <td>${d.first && html`<button class="plain link" onClick=${() => open(d.first)}>${d.first}</button>`}</td></tr>`)}</tbody></table></div>`

const COMMANDS_SHOWN = 100
const placeOf = sync => sync.place === 'frame start' ? 'before the first system' : sync.place === 'reactions' ? 'after reactions' : sync.before ? `in ${sync.phase}, before ${sync.before}` : `end of ${sync.phase}`
const callbackOf = command => command.system === null ? '' : command.callback === 0 ? 'begin' : command.is_end ? 'end' : `view ${count(command.callback)}`

// The commands of the last frame, one by one, in the order in which they apply. The program lists them while this asks.
function SingleCommands() {
  const { message, types } = useStore('message', 'types')
  const [sync, setSync] = useState('')
  const [system, setSystem] = useState('')
  const [entity, setEntity] = useState('')
  const [dropped, setDropped] = useState(false)
  const [offset, setOffset] = useState(0)
  const choose = set => value => { set(value); setOffset(0) }
  const systems = (message.systems || []).map(s => s.name)
  const answer = useAnswer('commands', { sync: sync === '' ? null : sync, system: systems.includes(system) ? system : null, entity: /^\d+:\d+$|^\//.test(entity) ? entity : null,
    dropped: dropped ? 1 : null, offset, limit: COMMANDS_SHOWN }, 1000)
  if (!answer) return html`<p class="muted">Reading.</p>`
  if (answer.frame === null) return html`<p class="muted" data-test="no-commands">Commands are listed from the next frame on.${message.paused ? ' Step once.' : ''}</p>`
  const last = Math.min(answer.found_count, offset + answer.commands.length), isLeftOut = answer.left_out_count > 0
  const about = command => [...command.components, ...(command.event ? [command.event] : []), ...(command.prefab !== undefined ? [`prefab ${command.prefab}`] : [])]
  const isType = name => types && types.components.some(type => type.name === name)
  return html`<p class="row"><label>sync point <select value=${sync} onChange=${event => choose(setSync)(event.target.value)} data-test="command-sync"><option value="">all</option>${answer.syncs.map((s, i) => html`<option value=${i}>${i + 1}: ${placeOf(s)}, ${count(s.count + s.left_out_count)}</option>`)}</select></label>
      <label>system <${Input} list="command-systems" value=${system} onInput=${event => choose(setSystem)(event.target.value)} data-test="command-system" /></label><datalist id="command-systems">${systems.map(name => html`<option value=${name} />`)}</datalist>
      <label>entity <${Input} value=${entity} placeholder="12:1 or a path" onInput=${event => choose(setEntity)(event.target.value)} /></label>
      <label><input type="checkbox" checked=${dropped} onChange=${event => choose(setDropped)(event.target.checked)} data-test="command-dropped" /> dropped</label></p>
    <p class="row"><span class="muted" data-test="command-count">frame ${count(answer.frame)}: ${answer.found_count === 0 ? 'none' : `${count(offset + 1)} to ${count(last)} of ${count(answer.found_count)}`}${isLeftOut ? `; ${many(answer.left_out_count, 'command was', 'commands were')} left out, since ${count(answer.count)} are kept` : ''}${message.paused ? '' : '; pause to read'}</span>
      <button disabled=${offset === 0} onClick=${() => setOffset(Math.max(0, offset - COMMANDS_SHOWN))}>Before</button><button disabled=${last >= answer.found_count} onClick=${() => setOffset(offset + COMMANDS_SHOWN)} data-test="more-commands">After</button></p>
    ${answer.commands.length > 0 && html`<div class="scroll tall"><table data-test="single-commands"><thead><tr><th class="n">#</th><th class="n">sync</th><th>system</th><th>callback</th><th>command</th><th>entity</th><th class="texts">of</th><th>other</th><th class="texts">dropped</th></tr></thead>
      <tbody>${answer.commands.map(c => html`<tr class=${c.dropped ? 'off' : ''}><td class="n">${count(c.number + 1)}</td><td class="n" title=${placeOf(answer.syncs[c.sync])}>${c.sync + 1}</td><td>${c.system ? html`<${Link} to=${() => openSystem(c.system)}>${c.system}</${Link}>` : html`<span class="muted">outside</span>`}</td><td>${callbackOf(c)}</td>
        <td>${c.kind}${c.of_view ? ' (view)' : ''}${c.kind === 'emit' && c.count > 1 ? ` × ${count(c.count)}` : ''}</td><td>${c.entity && html`<${Link} to=${() => open(c.entity)}>${c.entity}</${Link}>`}${c.new ? html` <span class="muted">new</span>` : ''}</td>
        <td class="wrap">${about(c).map((name, i) => html`${i > 0 ? ', ' : ''}${isType(name) ? html`<${Link} to=${() => openType(`components ${name}`)}>${name}</${Link}>` : name}`)}</td><td>${c.other && html`<${Link} to=${() => open(c.other)}>${c.other}</${Link}>`}</td>
        <td class="bad wrap">${c.dropped ? `${c.dropped_count < c.count ? `${c.dropped_count} of ${c.count}: ` : ''}${c.dropped}` : ''}</td></tr>`)}</tbody></table></div>`}`
}

function CommandsView() {
  const { message, samples } = useStore()
  const last = samples[samples.length - 1] || [], commands = message.commands, systems = (message.systems || []).filter(s => s.command_count > 0)
  return html`<section class="wide"><h2>The last frame</h2><${Figures} list=${[['commands', count(last[3] || 0)], ['dropped', count(last[4] || 0)], ['created', count(last[5] || 0)], ['destroyed', count(last[6] || 0)], ['kept for a retry', count(commands ? commands.kept_count : 0)]]} /></section>
    <section><h2>Recorded</h2>${systems.length ? html`<div class="scroll"><table><thead><tr><th>system</th><th class="n">commands</th></tr></thead><tbody>${systems.map(s => html`<tr><td>${s.name}</td><td class="n">${count(s.command_count)}</td></tr>`)}</tbody></table></div>` : html`<p class="muted">No system recorded commands.</p>`}</section>
    <section><h2>Dropped</h2><${Drops} list=${commands ? commands.dropped : []} /></section>
    <section class="wide"><h2>One by one</h2><${SingleCommands} /></section>
    ${commands && commands.recent.length > 0 && html`<section class="wide"><h2>Dropped before</h2><${Drops} list=${commands.recent} /></section>`}`
}

const CHANGES_SHOWN = 300

function Changes({ delta }) {
  const [words, setWords] = useState('')
  const text = value => value === undefined ? '' : JSON.stringify(value)
  const parts = (value, other) => value && typeof value === 'object' ? Object.entries(value).map(([key, each]) => html`<span class=${other && JSON.stringify(other[key]) !== JSON.stringify(each) ? 'hot' : ''}>${key} ${text(each)} </span>`) : text(value)
  const found = delta.entries.filter(e => !words || hasWords(`${e.kind} ${e.entity || ''} ${e.component || e.resource || ''}`, words)), all = Object.values(delta.counts).reduce((sum, n) => sum + n, 0)
  return html`<div><${Figures} list=${Object.entries(delta.counts).filter(([, n]) => n > 0).map(([kind, n]) => [kind, count(n)])} />
    <p class="row"><${Filter} value=${words} onInput=${setWords} what="changes" test="filter-changes" /> <span class="muted">${count(found.length)} of ${many(delta.entries.length, 'change', 'changes')}${all > delta.entries.length ? `, the first of ${count(all)}` : ''}${found.length > CHANGES_SHOWN ? `, ${CHANGES_SHOWN} shown` : ''}</span></p>
    <div class="scroll tall"><table><thead><tr><th>what</th><th>entity</th><th>component</th><th>${delta.from}</th><th>${delta.to}</th></tr></thead><tbody>${found.slice(0, CHANGES_SHOWN).map(e => html`<tr><td>${e.kind}</td>
      <td>${e.entity && html`<${Link} to=${() => open(e.entity)}>${e.entity}</${Link}>`}</td><td>${e.component || e.resource || ''}</td><td>${parts(e.old, e.new)}</td><td>${parts(e.new, e.old)}</td></tr>`)}</tbody></table></div></div>`
}

// Saves the frame that the program stands at as an archive, or the next frames as a test case.
function Saving() {
  const { message, world } = useStore('message', 'world')
  const [frames, setFrames] = useState(60)
  const [kept, setKept] = useState(null)
  const [busy, setBusy] = useState(false)
  const frame = message.frame ?? 0
  const record = async () => {
    setBusy(true)
    setKept(null)
    if (await post('record_case', { frames })) {
      if (state.message.paused) await post('step', { count: frames })
      for (;;) {
        await new Promise(done => setTimeout(done, 200))
        const next = await get('case').catch(error => { tell(error.message); return null })
        setKept(next)
        if (!next || !next.recording) break
        if (state.message.paused) await post('step', { count: frames - next.recorded_count }) // a condition has stopped it
      }
    }
    setBusy(false)
  }
  const source = useMemo(() => kept && !kept.recording ? URL.createObjectURL(new Blob([kept.source], { type: 'text/plain' })) : '', [kept])
  const files = kept && !kept.recording && !kept.fault ? [['archive', 'api/case_archive', bytes(kept.archive_bytes)], ['replay', 'api/case_replay', bytes(kept.replay_bytes)],
    ['c', source, 'the program']] : []
  return html`<section class="wide"><h2>Save</h2><p class="row"><a class="button" href="api/archive" download=${`frame_${frame}.archive`} data-test="save-archive">Save frame ${count(frame)} as an archive</a>
      ${world && world.inspector.has_schedule && html`<label>next <${Input} type="number" min="1" max="3600" value=${frames} onChange=${event => setFrames(Number(event.target.value))} /> frames</label>
      <button onClick=${record} disabled=${busy} data-test="record-case">${busy ? `Recording ${kept ? count(kept.recorded_count) : 0} of ${count(frames)}` : 'Record a test case'}</button>`}
      <span class="muted">An archive is loaded by quern_world_load. A test case is an archive, a recording, and a C program that runs it and fails where a frame differs.</span></p>
    ${kept && kept.fault && html`<p class="bad">${kept.fault}</p>`}
    ${files.length > 0 && html`<p class="links" data-test="case">${files.map(([kind, address, note]) => html`<a href=${address} download=${`${kept.name}.${kind}`}>${kept.name}.${kind}</a> <span class="muted">${note}</span> `)}</p>`}</section>`
}

function HistoryView() {
  const { message } = useStore()
  const [delta, setDelta] = useState(null)
  const [from, setFrom] = useState(null)
  const [to, setTo] = useState(null)
  const last = Math.max(message.newest ?? 0, message.frame ?? 0), a = from ?? Math.max(message.oldest ?? 0, last - 1), b = to ?? last
  const compare = () => show(get('delta', { from: a, to: b, limit: 2000 }).then(setDelta))
  const changes = useMemo(() => delta && html`<${Changes} delta=${delta} />`, [delta])
  return html`<section class="wide"><h2>Compare two frames</h2><p class="row"><label>from <${Input} type="number" value=${a} onChange=${e => setFrom(Number(e.target.value))} /></label> <label>to <${Input} type="number" value=${b} onChange=${e => setTo(Number(e.target.value))} /></label>
      <button onClick=${compare} data-test="compare">Compare</button> <span class="muted">${message.oldest === undefined ? 'no kept frames' : `kept: ${count(message.oldest)} to ${count(last)}`}${message.paused ? '' : '; pause first, so that they stay'}</span></p>
    ${changes}</section><${Saving} />`
}

// ----------------------------------------------------------------------------------------- panels

// A value of a panel. A text that is the name of a system leads to it.
function Value({ value }) {
  const { access } = useStore('access')
  if (value === null || value === undefined || value === '') return ''
  if (Array.isArray(value)) return value.map((each, i) => html`${i > 0 ? ', ' : ''}<${Value} value=${each} />`)
  if (typeof value === 'object') return html`<code>${JSON.stringify(value)}</code>`
  if (access && access.systems.some(system => system.name === value)) return html`<${Link} to=${() => openSystem(value)}>${value}</${Link}>`
  return typeof value === 'number' ? count(value) : html`<span class="lines">${String(value)}</span>`
}

function Panel({ title }) {
  const answer = useAnswer('panel', { title }, 1000)
  const value = answer && answer.value
  const isTable = Array.isArray(value) && value.every(each => each && typeof each === 'object')
  const columns = isTable ? [...new Set(value.flatMap(each => Object.keys(each)))] : []
  const cell = (key, each) => html`<td data-key=${key} class=${`wrap ${typeof each === 'number' ? 'n' : ''} ${key === 'error' ? 'bad' : ''}`}><${Value} value=${each} /></td>`
  return html`<section class="wide"><h2>${title}</h2>${!answer ? html`<p class="muted">Reading.</p>` : isTable && value.length === 0 ? html`<p class="muted">Nothing yet.</p>`
    : isTable ? html`<div class="scroll"><table class="panel" data-test="panel"><thead><tr>${columns.map(key => html`<th class=${typeof value[0][key] === 'number' ? 'n' : ''}>${key}</th>`)}</tr></thead><tbody>${value.map(each => html`<tr>${columns.map(key => cell(key, each[key]))}</tr>`)}</tbody></table></div>`
    : value && typeof value === 'object' && !Array.isArray(value) ? html`<table class="fields plain"><tbody>${Object.entries(value).map(([key, each]) => html`<tr><th scope="row">${key}</th>${cell(key, each)}</tr>`)}</tbody></table>`
    : html`<p><${Value} value=${value} /></p>`}</section>`
}

function PanelsView() {
  const { world } = useStore('world')
  useEffect(() => { showLoading(readAccess()) }, [])
  return world && html`${world.inspector.panels.map(title => html`<${Panel} key=${title} title=${title} />`)}`
}

// ------------------------------------------------------------------------------------------- page

const tabs = { frame: ['Frame', FrameView], schedule: ['Schedule', ScheduleView], types: ['Types', TypesView], entities: ['Entities', EntitiesView], archetypes: ['Archetypes', ArchetypesView],
  events: ['Events', EventsView], commands: ['Commands', CommandsView], history: ['Compare', HistoryView], panels: ['Panels', PanelsView] }
// A program without panels has no view of them; a single one is named by its title.
const tabsOf = world => Object.entries(tabs).filter(([key]) => key !== 'panels' || (world && world.inspector.panels.length > 0))
  .map(([key, [name]]) => [key, key === 'panels' && world.inspector.panels.length === 1 ? world.inspector.panels[0] : name])

function FrameNumber() {
  const { message } = useStore()
  return html`<span class="muted" aria-live="off" data-test="frame">frame ${count(message.frame ?? 0)}${message.paused ? ', paused' : ''}</span>`
}

function App() {
  const { tab, connected, error, world, finding } = useStore('tab', 'connected', 'error', 'world', 'finding')
  const View = (tabs[tab] || tabs.frame)[1]
  return html`<header><h1>${world ? world.title : 'Quern'}</h1><${FrameNumber} />
      ${!connected && html`<span class="bad">not connected</span>`}<button onClick=${() => update({ finding: true })} title="/ or Ctrl+K" data-test="open-find">Find</button><${TimeLine} /></header>
    <nav class="tabs" role="tablist" aria-label="views">${tabsOf(world).map(([key, name], i) => html`<button role="tab" aria-selected=${tab === key} onClick=${() => go(key)} title=${`key ${i + 1}`} data-test=${`tab-${key}`}>${name}</button>`)}</nav>
    ${error && html`<p class="error" role="alert">${error} <button class="plain" onClick=${() => tell('')} aria-label="close">✕</button></p>`}
    <${Stopped} />${finding && html`<${Find} />`}
    <main class=${tab} role="tabpanel" aria-label=${(tabs[tab] || tabs.frame)[0]}><${View} key=${tab} /></main>`
}

addEventListener('keydown', event => {
  const { tagName, type } = event.target
  const isTyping = /SELECT|TEXTAREA/.test(tagName) || (tagName === 'INPUT' && !/range|checkbox/.test(type))
  const isFind = (event.key === 'k' && (event.ctrlKey || event.metaKey)) || (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey)
  if (isFind) { update({ finding: true }); event.preventDefault(); return }
  if (isTyping || state.finding) return
  if (event.key === 'z' && (event.ctrlKey || event.metaKey) && (state.message.edit_count > 0 || state.edits.length > 0)) { undo(); event.preventDefault(); return }
  if (event.ctrlKey || event.metaKey || event.altKey) return
  const at = tabsOf(state.world)[Number(event.key) - 1]
  if (at) go(at[0])
  else if (event.key === ' ' && !/BUTTON|INPUT/.test(tagName)) { post(state.message.paused ? 'resume' : 'pause'); event.preventDefault() }
  else if (event.key === '.') post('step')
  else if (event.key === ',' && state.message.frame > state.message.oldest) post('restore', { frame: state.message.frame - 1 })
})

render(html`<${App} />`, document.getElementById('app'))
showLoading(get('world').then(world => { update({ world }); document.title = `${world.title} – inspector` }))
showLoading(get('types').then(types => update({ types })))
connect()
