// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// The schedule: its phases or its sets as lists that fold, one system in detail, and pictures of passes.

import { useEffect, useRef, useState } from 'preact/hooks'
import { html, useStore, update, state, get, post, show, showLoading, ms, count, many, colour, hasWords, tell, budgetsOf, setBudget, Input, Figures, Filter, Fold, Link, openSystem, openSet, openType, readAccess } from './common.js'

// ----------------------------------------------------------------------------------------- pictures

const COLUMN = 340
const shorten = (text, most) => {
  const characters = [...text]
  return characters.length > most ? `${characters.slice(0, most - 1).join('')}…` : text
}
const because = edge => edge.causes.map(cause => `${cause.cause.replace('_', '/')}${cause.name ? ` ${cause.name}` : ''}`).join(', ')

function Graph({ passes, edges: all, chosen }) {
  const depth = {}
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
  // The chosen system may be far to the right.
  const frame = useRef()
  useEffect(() => { const at = home[chosen] !== undefined && place[home[chosen]]; if (at) frame.current.scrollLeft = Math.max(0, at.x - COLUMN) }, [chosen, passes.length])
  return html`<div class="scroll" ref=${frame} tabindex="0" role="region" aria-label="passes and why they wait"><svg class="graph" width=${width} height=${height} role="img" aria-label=${`${passes.length} passes`}>
    <defs><marker id="head" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6" markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6z" /></marker></defs>
    ${edges}
    ${passes.map(pass => { const p = place[pass.pass]; return html`<g transform=${`translate(${p.x} ${p.y})`}>
      <rect width="190" height=${p.h} rx="5"><title>${`${pass.kind}, ${count(pass.entities)} rows in ${pass.chunks} chunks${pass.alone ? `, alone: ${pass.alone.reason.replace('_', ' ')} ${pass.alone.name || ''}` : ''}`}</title></rect>
      <text x="8" y="14" class="muted">pass ${pass.pass}${pass.systems.length > 1 ? `, ${pass.systems.length} share it` : ''}</text>
      ${pass.systems.map((system, i) => html`<text x="8" y=${31 + 17 * i} class=${system.name === chosen ? 'on' : ''} onClick=${() => openSystem(system.name)}>${shorten(system.name, 27)}</text>`)}</g>` })}
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

// ------------------------------------------------------------------------------------------- lists

const PASSES_DRAWN = 24 // more passes make no picture that can be read
const UNFOLDED = 40 // phases and sets with more systems in all are folded at first

const turnOf = system => system.every > 1 ? `${system.turn + 1} of ${system.every}` : system.interval_seconds > 0 ? `${system.interval_seconds} s` : ''

// The sync points of a phase with their reasons, and its passes, in order.
const rowsOf = (phase, keep) => phase.segments.flatMap(segment => segment.passes
  ? segment.passes.flatMap(pass => pass.systems.filter(each => keep(each.name)).map((each, i) => ({ name: each.name, pass, first: i === 0 })))
  : [{ sync: segment }])

function SystemRow({ row, facts, stats, order, chosen }) {
  const system = facts[row.name] || { sets: [] }, figures = stats[row.name]
  return html`<tr class=${`pick ${chosen === row.name ? 'chosen' : ''} ${figures && !figures.enabled ? 'off' : ''}`} onClick=${() => openSystem(row.name)}>
    <td class="n muted" title=${row.pass ? `pass ${row.pass.pass}: ${many(row.pass.systems.length, 'system', 'systems')}${row.pass.alone ? `, alone: ${row.pass.alone.reason.replace('_', ' ')}` : ''}` : ''}>${row.pass ? row.first ? row.pass.pass : '·' : ''}</td>
    <td><i class="dot" style=${{ background: colour(order[row.name] || 0) }}></i><button class="plain name" data-test="system">${row.name}</button></td>
    <td class="muted" title=${system.every > 1 ? `runs in frame ${system.turn + 1} of every ${system.every}` : ''}>${turnOf(system)}</td>
    <td>${system.sets.map(set => html`<${Link} to=${() => openSet(set)}>${set}</${Link}> `)}</td>
    <td class="n">${figures ? ms(figures.time_ns) : ''}</td></tr>`
}

const SystemTable = ({ rows, ...rest }) => html`<div class="scroll tall"><table class="systems"><thead><tr><th class="n">pass</th><th>system</th><th>turn</th><th>sets</th><th class="n">ms</th></tr></thead>
  <tbody>${rows.map(row => row.sync ? html`<tr><td></td><td colspan="4"><p class="sync">sync point${row.sync.system ? `: ${row.sync.system} sees the commands of ${row.sync.after_commands_of}` : ''}</p></td></tr>`
    : html`<${SystemRow} key=${row.name} row=${row} ...${rest} />`)}</tbody></table></div>`

// The picture of a segment. A large one shows the passes around the chosen system.
function Picture({ segment, edges, chosen }) {
  let passes = segment.passes
  if (passes.length > PASSES_DRAWN) {
    const own = passes.find(pass => pass.systems.some(each => each.name === chosen))
    if (!own) return html`<p class="muted">${count(passes.length)} passes: choose a system to see the passes around it.</p>`
    passes = passes.filter(pass => pass === own || own.waits_for.includes(pass.pass) || pass.waits_for.includes(own.pass)).slice(0, PASSES_DRAWN)
  }
  return html`<${Graph} passes=${passes} edges=${edges} chosen=${chosen} />`
}

// ------------------------------------------------------------------------------------------ a system

const Names = ({ list, to }) => list.map((name, i) => html`${i > 0 ? ', ' : ''}<${Link} to=${() => to(name)}>${name}</${Link}>`)
const termText = term => [term.match === 'none' ? 'without' : term.match === 'optional' ? 'optional' : term.match === 'any' ? 'any of' : '',
  term.access === 'none' ? (term.match === 'none' ? '' : 'with') : term.access, term.old ? 'old' : '', term.changed ? 'if changed' : '',
  term.enabled === 'no' ? 'if disabled' : term.enabled === 'either' ? 'enabled or not' : '', term.by_target ? 'of one target' : ''].filter(Boolean).join(' ')
const termPath = term => term.path === 'row' ? '' : term.path === 'target' ? `of the target in ${term.relation}` : `of the nearest ancestor in ${term.relation}`

const fieldOf = of => of.comparison ? 'a comparison' : of.field || 'a field without a name'
const orderText = of => `by ${fieldOf(of)}${of.descending ? ', descending' : ''}: ${many(of.rows, 'row', 'rows')}, sorted ${many(of.sorts, 'time', 'times')} (all rows ${many(of.sorts_of_all, 'time', 'times')}), last ${many(of.sorted_rows, 'row', 'rows')}`
const indexText = of => `by ${fieldOf(of)}${of.unique ? ', unique' : ''}: ${many(of.values, 'value', 'values')} in ${many(of.entities, 'row', 'rows')}`

function Edges({ list, name, test }) {
  return html`<div class="scroll"><table data-test=${test}><tbody>${list.map(edge => html`<tr><td><${Link} to=${() => openSystem(edge[name])}>${edge[name]}</${Link}></td><td class="wrap">${because(edge)}</td>
    <td class="muted wrap">${{ pass: 'one pass, chunk by chunk', graph: 'an edge of the graph', implied: 'follows from others' }[edge.kept_by]}${edge.by_registration_alone ? '; only by registration' : ''}</td></tr>`)}</tbody></table></div>`
}

function SystemPanel({ name, facts, stats, direct, where }) {
  const [all, setAll] = useState(null)
  useEffect(() => { setAll(null) }, [name])
  const system = facts[name], figures = stats[name]
  if (!system) return html`<section class="detail"><h2>System</h2><p class="muted">Choose a system on the left, or press / to find one.</p></section>`
  const to = direct.filter(edge => edge.after === name), from = direct.filter(edge => edge.before === name)
  const traits = ['serial', 'main_thread', 'exclusive', 'condition', 'begin', 'end'].filter(key => system[key]).map(key => key.replace('_', ' '))
  const component = each => openType(`components ${each}`), line = (key, value) => value && html`<tr><th scope="row">${key}</th><td class="wrap">${value}</td></tr>`
  const terms = each => each.terms.map(term => html`<div>${termText(term)} <${Link} to=${() => component(term.component)}>${term.component}</${Link}> <span class="muted">${termPath(term)}</span></div>`)
  const order = of => html`<div><${Link} to=${() => component(of.component)}>${of.component}</${Link}> <span class="muted">${orderText(of)}</span></div>`
  return html`<section class="detail"><h2 data-test="system-name">${name}</h2>
    <p class="row"><label><input type="checkbox" checked=${figures ? figures.enabled : system.enabled} aria-label=${`run ${name}`} onChange=${event => post('system', { name, on: event.target.checked ? 1 : 0 }).then(readAccess)} /> runs</label>
      <label>budget <${Input} type="number" min="0" step="0.1" value=${budgetsOf()[name] ?? ''} placeholder="none" aria-label=${`budget of ${name} in ms`} data-test="system-budget" onChange=${event => setBudget(name, event.target.value)} /> ms</label>
      ${figures && html`<span class=${budgetsOf()[name] !== undefined && figures.time_ns > 1e6 * budgetsOf()[name] ? 'bad' : 'muted'}>${ms(figures.time_ns)} ms, ${many(figures.view_count, 'view', 'views')}, ${many(figures.entity_count, 'row', 'rows')}, ${many(figures.command_count, 'command', 'commands')}</span>`}</p>
    <table class="fields plain"><tbody>
      ${line('phase', where[name] && `${where[name].phase}, pass ${where[name].pass}`)}
      ${line('sets', system.sets.length > 0 && html`<${Names} list=${system.sets} to=${openSet} />`)}
      ${line('turn', system.every > 1 ? `frame ${system.turn + 1} of every ${system.every}` : system.interval_seconds > 0 && `every ${system.interval_seconds} s`)}
      ${line('traits', traits.join(', '))}
      ${line('reacts to', system.reacts_to && system.reacts_to.join(', '))}
      ${line('levels of', system.levels)}
      ${line('matches', system.terms.length > 0 && `${many(system.archetypes, 'archetype', 'archetypes')}, ${many(system.chunks, 'chunk', 'chunks')}`)}
      ${line('terms', system.terms.length > 0 && terms(system))}
      ${line('order', system.order_by && order(system.order_by))}
      ${system.queries.map((query, i) => line(`query ${query.name || i}`, [terms(query), query.order_by && order(query.order_by)]))}
      ${system.indexes.map((index, i) => line(`index ${index.name || i}`, html`<${Link} to=${() => component(index.component)}>${index.component}</${Link}> <span class="muted">${indexText(index)}</span>`))}
      ${line('looks up', system.lookups.length > 0 && html`<${Names} list=${system.lookups} to=${component} />`)}
      ${line('writes anywhere', system.write_lookups.length > 0 && html`<${Names} list=${system.write_lookups} to=${component} />`)}
      ${line('resources', system.resources.length > 0 && system.resources.map(use => html`<div>${use.access.replace('_', ' ')} <${Link} to=${() => openType(`resources ${use.resource}`)}>${use.resource}</${Link}></div>`))}
      ${line('emits', system.emits.length > 0 && html`<${Names} list=${system.emits} to=${each => openType(`events ${each}`)} />`)}
      ${line('reads events', (system.reads_events.length > 0 || system.items) && html`<${Names} list=${system.reads_events.concat(system.items || [])} to=${each => openType(`events ${each}`)} />`)}
    </tbody></table>
    <h3>Waits for ${count((all || to).length)} <span class="muted">${all ? 'all edges' : 'direct edges'}</span>
      <button class="plain link" data-test="waits" onClick=${() => all ? setAll(null) : show(get('edges', { system: name }).then(next => setAll(next.edges)))}>${all ? 'direct ones' : 'all'}</button></h3>
    <${Edges} list=${all || to} name="before" test="edges" />
    <h3>Makes ${count(from.length)} wait</h3><${Edges} list=${from} name="after" test="followers" /></section>`
}

// -------------------------------------------------------------------------------------------- view

export function ScheduleView() {
  const { message, access, system, set } = useStore()
  const [answer, setAnswer] = useState(null)
  const [text, setText] = useState('')
  const [by, setBy] = useState('phases')
  const [folds, setFolds] = useState({})
  const [drawn, setDrawn] = useState({})
  useEffect(() => { showLoading(Promise.all([get('schedule').then(setAnswer), readAccess()])) }, [message.restore_count])
  // A system that is chosen elsewhere is shown in the list, too.
  useEffect(() => { const row = document.querySelector('tr.chosen'); if (row) row.scrollIntoView({ block: 'nearest' }) }, [system, !answer || !access])
  if (!answer || !access) return html`<section class="wide"><p class="muted">Reading the schedule.</p></section>`
  const { schedule } = answer, direct = answer.edges.flat(), facts = {}, stats = {}, where = {}, order = {}
  const phases = schedule.phases.concat(schedule.reactions ? [{ name: `reactions, at most ${schedule.reactions.max_rounds} rounds`, segments: schedule.reactions.segments }] : [])
  access.systems.forEach((each, i) => { facts[each.name] = each; order[each.name] = i })
  ;(message.systems || []).forEach(each => { stats[each.name] = each })
  phases.forEach(phase => phase.segments.forEach(segment => (segment.passes || []).forEach(pass => pass.systems.forEach(each => { where[each.name] = { phase: phase.name, pass: pass.pass } }))))
  const keep = name => (!text || hasWords(`${name} ${facts[name] ? facts[name].sets.join(' ') : ''}`, text)) && (!set || (facts[name] && facts[name].sets.includes(set)))
  const isFiltered = Boolean(text || set)
  const groups = by === 'phases' ? phases.map(phase => ({ name: phase.name, phase, rows: rowsOf(phase, keep), note: phase.fixed_step ? `, steps of ${phase.fixed_step.seconds} s` : '' }))
    : access.sets.map(each => ({ name: each.name, set: each, rows: access.systems.filter(one => one.sets.includes(each.name) && keep(one.name)).map(one => ({ name: one.name })) }))
      .concat({ name: 'no set', rows: access.systems.filter(one => one.sets.length === 0 && keep(one.name)).map(one => ({ name: one.name })) })
  const foldOf = group => `${by} ${isFiltered} ${group.name}`
  const isOpen = group => folds[foldOf(group)] ?? (isFiltered || access.systems.length <= UNFOLDED || group.rows.some(row => row.name === system))
  const fold = (list, value) => setFolds({ ...folds, ...Object.fromEntries(list.map(group => [foldOf(group), value])) })
  const isDrawn = phase => drawn[phase.name] ?? access.systems.length <= PASSES_DRAWN
  const shown = groups.filter(group => group.rows.some(row => row.name))
  return html`<section class="list"><h2>Systems</h2>
    <p class="row"><${Filter} value=${text} onInput=${setText} what="systems and sets" test="filter-systems" />
      <span class="tabs small" role="tablist">${['phases', 'sets'].map(each => html`<button role="tab" aria-selected=${by === each} onClick=${() => setBy(each)} data-test=${`group-${each}`}>${each}</button>`)}</span>
      <button class="plain link" onClick=${() => fold(shown, true)} data-test="unfold">unfold all</button><button class="plain link" onClick=${() => fold(shown, false)} data-test="fold">fold all</button>
      ${set && html`<span class="chip">set ${set} <button class="plain" aria-label="all sets" onClick=${() => update({ set: '' })}>✕</button></span>`}</p>
    ${shown.length === 0 && html`<p class="muted">No system matches.</p>`}
    ${shown.map(group => {
      const own = group.rows.filter(row => row.name), time = own.reduce((sum, row) => sum + (stats[row.name] ? stats[row.name].time_ns : 0), 0)
      const syncs = group.rows.length - own.length
      return html`<${Fold} key=${`${by} ${group.name}`} title=${group.name} isOpen=${isOpen(group)} onToggle=${() => fold([group], !isOpen(group))} test="group"
        note=${`${many(own.length, 'system', 'systems')}${syncs ? `, ${many(syncs, 'sync point', 'sync points')}` : ''}${group.note || ''}, ${ms(time)} ms`}>
        <p class="row">${group.phase && html`<button class="plain link" onClick=${() => setDrawn({ ...drawn, [group.name]: !isDrawn(group.phase) })} data-test="draw">${isDrawn(group.phase) ? 'as a list' : 'as a picture'}</button>`}
          ${group.set && html`<label><input type="checkbox" checked=${group.set.enabled} onChange=${event => post('system_set', { name: group.name, on: event.target.checked ? 1 : 0 }).then(readAccess)} /> runs</label>`}</p>
        ${group.phase && isDrawn(group.phase) ? group.phase.segments.map(segment => segment.passes ? html`<${Picture} segment=${segment} edges=${direct} chosen=${system} />` : html`<p class="sync">sync point${segment.system ? `: ${segment.system} sees the commands of ${segment.after_commands_of}` : ''}</p>`)
          : html`<${SystemTable} rows=${group.rows.filter(row => row.name || !isFiltered)} facts=${facts} stats=${stats} order=${order} chosen=${system} />`}</${Fold}>`
    })}</section>
    <${SystemPanel} name=${system} facts=${facts} stats=${stats} direct=${direct} where=${where} /><${Forecast} />`
}
