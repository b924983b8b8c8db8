// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// Probes: fields as curves, and conditions at which the program stops.

import { useState } from 'preact/hooks'
import { html, useStore, state, post, open, count, Link, Input } from './common.js'

const WIDTH = 300, HEIGHT = 60
const short = value => value === null || value === undefined ? 'none' : Number(value.toPrecision(5)).toString()

// A curve over the last frames; gaps are frames without a value.
function Curve({ points, name }) {
  const known = points.filter(([, value]) => value !== null)
  if (known.length < 2) return html`<p class="muted">No values yet: frames have to run.</p>`
  const low = Math.min(...known.map(([, value]) => value)), high = Math.max(...known.map(([, value]) => value))
  const first = points[0][0], last = points[points.length - 1][0]
  const x = frame => 2 + (WIDTH - 4) * (frame - first) / Math.max(1, last - first), y = value => HEIGHT - 3 - (HEIGHT - 6) * (high > low ? (value - low) / (high - low) : 0.5)
  let isOpen = false
  const path = points.map(([frame, value]) => {
    if (value === null) { isOpen = false; return '' }
    const to = `${isOpen ? 'L' : 'M'}${x(frame).toFixed(1)} ${y(value).toFixed(1)}`
    isOpen = true
    return to
  }).join('')
  return html`<svg class="curve" viewBox=${`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label=${`${name} over ${points.length} frames, ${short(low)} to ${short(high)}`} data-test="curve"><path d=${path} /></svg>
    <p class="muted between"><span>frames ${count(first)} to ${count(last)}</span><span>${short(low)} to ${short(high)}</span></p>`
}

const titleOf = probe => probe.change ? `change of ${probe.text || 'anything'}` : probe.text
const remove = probe => post('unprobe', { probe: probe.probe })

export function Watched() {
  const { probes, curves } = useStore('probes', 'curves')
  const list = probes.filter(probe => !probe.break)
  if (list.length === 0) return null
  return html`<section><h2>Watched fields</h2>${list.map(probe => {
    const points = curves[probe.probe] || [], last = points[points.length - 1]
    return html`<div class="component" key=${probe.probe}><h3>${probe.text} <span class="muted">of</span> <${Link} to=${() => open(probe.entity)}>${probe.entity}</${Link}> <b>${last ? short(last[1]) : ''}</b>
      <button class="plain" onClick=${() => remove(probe)} aria-label=${`stop watching ${probe.text}`}>✕</button></h3><${Curve} points=${points} name=${probe.text} /></div>` })}</section>`
}

// Conditions, for the entity that is shown or for any entity of a query; and changes of the entity or of one of its fields.
export function Breaks({ entity, paths }) {
  const { probes } = useStore('probes')
  const [where, setWhere] = useState('')
  const [query, setQuery] = useState('')
  const [change, setChange] = useState('')
  const list = probes.filter(probe => probe.break)
  const add = async () => { if (await post('break', query ? { where, query } : { where, entity })) setWhere('') }
  return html`<div class="component"><h3>Stop the program</h3>
    <p class="row"><label>when <${Input} value=${where} placeholder="Energy.value < 0.5" aria-label="condition" data-test="where" onInput=${event => setWhere(event.target.value)} /></label>
      <label>for <${Input} value=${query} placeholder=${entity ? `this entity, or a query` : 'a query'} aria-label="query of the condition" data-test="break-query" onInput=${event => setQuery(event.target.value)} /></label>
      <button disabled=${!where || (!query && !entity)} onClick=${add} data-test="break">Stop there</button></p>
    ${entity && html`<p class="row"><label>or when it changes <select aria-label="what changes" data-test="change-of" value=${change} onChange=${event => setChange(event.target.value)}><option value="">anything of it</option>${(paths || []).map(path => html`<option>${path}</option>`)}</select></label>
      <button onClick=${() => post('break', { entity, change })} data-test="break-change">Stop at a change</button></p>`}
    ${list.map(probe => html`<p class="row" key=${probe.probe}><span>${titleOf(probe)} <span class="muted">${probe.query ? `any of ${probe.query}` : probe.entity}, ${probe.held ? 'true now: stops when it becomes true again' : 'waits'}</span></span>
      <button class="plain" onClick=${() => remove(probe)} aria-label=${`remove ${titleOf(probe)}`}>✕</button></p>`)}</div>`
}

// Says why the program stands still, and goes back to the frame before.
export function Stopped() {
  const { probes, message } = useStore()
  const hit = message.paused && probes.find(probe => probe.hit_frame !== undefined && (probe.hit_frame === message.frame - 1 || probe.hit_frame === message.frame))
  if (!hit) return null
  const isBefore = hit.hit_frame === message.frame, canGo = message.oldest !== undefined && message.oldest <= hit.hit_frame
  return html`<p class="notice" role="status" data-test="stopped"><span>${isBefore ? 'Before' : 'After'} frame ${count(hit.hit_frame)}, in which ${hit.change ? html`${hit.text && html`<b>${hit.text}</b> of `}<${Link} to=${() => open(hit.hit)}>${hit.hit}</${Link}> changed` : html`<b>${hit.text}</b> became true for <${Link} to=${() => open(hit.hit)}>${hit.hit}</${Link}>`}</span>
    ${!isBefore && canGo && html`<button onClick=${() => post('restore', { frame: hit.hit_frame })} data-test="frame-before">Go to the frame before</button>`}
    ${isBefore && html`<button onClick=${() => post('step')}>Run it again</button>`}</p>`
}

export const watch = (entity, path) => {
  if (!state.probes.some(probe => probe.entity === entity && probe.text === path)) return post('probe', { entity, path })
  return null
}
