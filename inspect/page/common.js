// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// What all views share: the state of the page, requests, the WebSocket, numbers as text, and small components.

import { h } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import htm from 'htm'

export const html = htm.bind(h)
const SAMPLES = 300
export const PAGE = 50

// ---------------------------------------------------------------------------------------------- state

export const state = {
  tab: location.hash.slice(1) || 'frame', message: {}, samples: [], world: null, types: null, access: null, chosen: null, error: '',
  connected: false, events: [], eventTypes: [], budgetMs: Number(localStorage.budgetMs) || 16.7,
  finding: false, system: '', set: '', type: '', archetypes: '', mode: 'tree', query: '', probes: [], curves: {}, edits: [], restores: 0, budgets: 0,
}
const listeners = new Set()
export const update = changes => { Object.assign(state, changes); listeners.forEach(listener => listener({})) }
// Draws the component again when one of these members of the state changes; without keys, at each message.
export const useStore = (...keys) => {
  const [, set] = useState()
  const drawn = keys.map(key => state[key])
  useEffect(() => {
    let last = drawn
    const listener = () => {
      if (keys.length > 0 && keys.every((key, i) => state[key] === last[i])) return
      last = keys.map(key => state[key])
      set({})
    }
    listeners.add(listener)
    if (keys.length > 0) listener() // what has changed since it was drawn
    return () => listeners.delete(listener)
  }, [])
  return state
}

const encode = object => Object.entries(object).filter(([, value]) => value !== undefined && value !== null)
  .map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join('&')

async function ask(method, path, argumentsOf = {}) {
  const answer = await fetch(`api/${path}?${encode(argumentsOf)}`, { method })
  const json = await answer.json()
  if (!answer.ok) throw new Error(json.error)
  return json
}
export const get = (path, argumentsOf) => ask('GET', path, argumentsOf)

// An error is shown until the next thing that a person does succeeds, another view is opened, or for ten seconds.
const ERROR_SECONDS = 10
let errorTimer
export function tell(error) {
  clearTimeout(errorTimer)
  update({ error })
  if (error) errorTimer = setTimeout(() => update({ error: '' }), 1000 * ERROR_SECONDS)
}
// Edits of one frame are kept, so that the last one alone can be taken back: see undo.
const editing = ['set', 'set_resource', 'add', 'remove', 'enable', 'name', 'relate', 'create', 'destroy', 'system', 'system_set']
// Budgets of systems in milliseconds, kept by the browser for each program.
const budgetKey = () => `budgets of ${state.world ? state.world.title : ''}`
export const budgetsOf = () => JSON.parse(localStorage[budgetKey()] || '{}')
export function setBudget(system, text) {
  const budgets = budgetsOf(), value = Number(text)
  if (value > 0) budgets[system] = value; else delete budgets[system]
  localStorage[budgetKey()] = JSON.stringify(budgets)
  update({ budgets: state.budgets + 1 })
}
export const post = async (path, argumentsOf) => {
  try {
    const json = await ask('POST', path, argumentsOf)
    if (editing.includes(path)) {
      const { frame } = state.message
      update({ edits: state.edits.filter(edit => edit.frame === frame).concat({ frame, path, argumentsOf }) })
    }
    tell(json.warning || '')
    return json
  } catch (error) {
    tell(error.message)
    return null
  }
}
export const show = promise => promise.then(() => tell(''), error => tell(error.message))
export const showLoading = promise => promise.catch(error => tell(error.message))

// The program goes back to the state before the edits of this frame. If this page made all of them, it makes all but the
// last one again: handles of created entities are the same then.
export async function undo() {
  const own = state.edits.filter(edit => edit.frame === state.message.frame), answer = await post('undo')
  if (!answer) return
  const again = own.length === answer.undone && !answer.warning ? own.slice(0, -1) : []
  update({ edits: [] })
  for (const edit of again) if (!await post(edit.path, edit.argumentsOf)) break
}

// Hundreds of rows are not drawn anew ten times a second.
const MANY_SYSTEMS = 60
const hasManySystems = () => (state.message.systems || []).length > MANY_SYSTEMS && /frame|schedule/.test(state.tab)

let socket
export function subscribe() {
  if (!socket || socket.readyState !== 1) return
  const parts = { frame: 'systems,profile', schedule: 'systems', systems: 'systems,profile', commands: 'systems,commands', events: 'events' }[state.tab]
  socket.send(encode({ rate: hasManySystems() ? 3 : 10, parts: [parts, 'probes'].filter(Boolean).join(',') }))
}

// A message has the values of probes beside its samples.
function receiveProbes(message) {
  const curves = {}
  message.probes.forEach(probe => {
    const old = state.curves[probe.probe] || []
    curves[probe.probe] = old.concat(probe.values.map((value, i) => [message.samples[i][0], value])).slice(-SAMPLES)
  })
  return { probes: message.probes, curves }
}

function receive(message) {
  const samples = state.samples.concat(message.samples).slice(-SAMPLES)
  const changes = { message: { ...state.message, ...message }, samples, restores: message.restore_count }
  const had = hasManySystems()
  if (message.probes) Object.assign(changes, receiveProbes(message))
  if (message.events) {
    changes.events = state.events.concat(message.events).slice(-200)
    changes.eventTypes = message.types
  }
  update(changes)
  if (had !== hasManySystems()) subscribe()
}

export function connect() {
  socket = new WebSocket(new URL('watch', location.href).href.replace(/^http/, 'ws'))
  socket.onopen = () => { update({ connected: true, curves: {} }); subscribe() }
  socket.onmessage = event => receive(JSON.parse(event.data))
  socket.onclose = () => { update({ connected: false }); setTimeout(connect, 1000) }
}

// ---------------------------------------------------------------------------------------------- text

export const ms = ns => (ns / 1e6).toFixed(ns < 1e6 ? 3 : 2)
export const bytes = n => n < 1e4 ? `${n} B` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`
export const count = n => Number(n).toLocaleString('en')
export const many = (n, one, more) => `${count(n)} ${n === 1 ? one : more}`
// Colours of systems: steps of the golden angle, so that neighbours differ.
export const colour = i => `hsl(${(i * 137.5 + 200) % 360} 55% 50%)`
export const label = entry => entry.name || `#${entry.entity}`
// A name of a component as a term of a query.
export const quoted = name => `"${name.replace(/["\\]/g, '\\$&')}"`
// Whether a text has all words, in any order and case.
export const hasWords = (text, words) => words.toLowerCase().split(/\s+/).every(word => text.toLowerCase().includes(word))

// ---------------------------------------------------------------------------------------------- ways

export const go = tab => { location.hash = tab; update({ tab }); tell(''); subscribe() }
// In one column, what was chosen is below the list, so the page goes there.
const goWith = (tab, changes) => {
  update(changes)
  if (state.tab !== tab) go(tab)
  if (matchMedia('(max-width:760px)').matches) setTimeout(() => { const place = document.querySelector('section.detail, .side'); if (place) place.scrollIntoView() }, 100)
}
// Asks a person for an entity by the search.
export const pick = onPick => update({ finding: { pick: onPick } })
export const open = entity => goWith('entities', { chosen: entity })
export const openSystem = system => goWith('schedule', { system })
export const openSet = set => goWith('schedule', { set })
export const openType = type => goWith('types', { type })
export const openArchetypes = archetypes => goWith('archetypes', { archetypes })
export const openQuery = query => goWith('entities', { mode: 'table', query })

// What systems declare, read once, and again if their number changes.
export async function readAccess() {
  if (state.world && !state.world.inspector.has_schedule) return
  const access = await get('access')
  update({ access })
}

// ---------------------------------------------------------------------------------------- components

// An input that keeps what a person types or drags until it is done, although the page is drawn ten times a second.
export function Input({ value, onInput, onChange, ...rest }) {
  const place = useRef(), busy = useRef(false)
  useEffect(() => { if (!busy.current && place.current.value !== String(value ?? '')) place.current.value = value ?? '' })
  return html`<input ref=${place} ...${rest} onInput=${event => { busy.current = true; if (onInput) onInput(event) }}
    onChange=${event => { busy.current = false; if (onChange) onChange(event) }} onBlur=${() => { busy.current = false }} />`
}

export function Figures({ list }) {
  return html`<dl class="figures">${list.map(([key, value]) => html`<div><dt>${key}</dt><dd>${value}</dd></div>`)}</dl>`
}

export const Link = ({ to, children }) => html`<button class="plain link" onClick=${event => { event.stopPropagation(); to() }}>${children}</button>`

export const Filter = ({ value, onInput, what, test }) => html`<${Input} type="search" class="filter" value=${value} placeholder=${`filter ${what}`} aria-label=${`filter ${what}`}
  data-test=${test} onInput=${event => onInput(event.target.value)} />`

// A heading that shows and hides what is below it.
export function Fold({ title, note, isOpen, onToggle, test, children }) {
  return html`<div class="fold"><button class="plain foldhead" aria-expanded=${isOpen} onClick=${onToggle} data-test=${test}><span class="twist">${isOpen ? '▾' : '▸'}</span><b>${title}</b>
    <span class="muted">${note}</span></button>${isOpen && children}</div>`
}

export function useAnswer(path, argumentsOf, again) {
  const [answer, setAnswer] = useState(null)
  useEffect(() => {
    let isLive = true, timer
    const load = async () => {
      try {
        const next = await get(path, argumentsOf)
        if (isLive) setAnswer(next)
      } catch (error) {
        if (isLive) tell(error.message)
      }
    }
    const loop = async () => {
      if (!document.hidden) await load()
      if (isLive) timer = setTimeout(loop, again || 2000)
    }
    load().then(() => { if (isLive) timer = setTimeout(loop, again || 2000) })
    return () => { isLive = false; clearTimeout(timer) }
  }, [path, JSON.stringify(argumentsOf)])
  return answer
}
