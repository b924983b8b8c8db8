// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// One search over everything: systems, sets, components, resources, events, relations, archetypes and entities.

import { useEffect, useRef, useState } from 'preact/hooks'
import { html, useStore, update, get, state, hasWords, label, many, open, openSystem, openSet, openType, openArchetypes, readAccess } from './common.js'

const KIND_SHOWN = 8

// All archetypes, as texts to search in. Read anew each time the search opens.
async function readArchetypes() {
  const list = []
  for (let offset = 0, all = 1; offset < all; offset += 1000) {
    const page = await get('archetypes', { offset, limit: 1000 })
    all = page.count
    list.push(...page.archetypes)
  }
  return list.filter(one => one.entity_count > 0)
}

// Results that begin with the text come first, then shorter ones.
const ranked = (list, text) => list.filter(one => hasWords(one.name, text))
  .map(one => ({ ...one, rank: one.name.toLowerCase().startsWith(text.toLowerCase()) ? 0 : 1 }))
  .sort((a, b) => a.rank - b.rank || a.name.length - b.name.length || (a.name < b.name ? -1 : 1))

function groupsOf(text, entities, archetypes) {
  const { types, access } = state
  const group = (kind, list) => { const found = ranked(list, text); return { kind, count: found.length, list: found.slice(0, KIND_SHOWN) } }
  const ofType = (kind, key) => group(kind, ((types && types[key]) || []).filter(type => !type.hidden)
    .map(type => ({ name: type.name, go: () => openType(`${key} ${type.name}`) })))
  return [
    { kind: 'entities', count: entities.length, list: entities.slice(0, KIND_SHOWN).map(entry => ({ name: entry.path || label(entry), note: entry.entity, entity: entry.entity, go: () => open(entry.entity) })) },
    group('systems', ((access && access.systems) || []).map(system => ({ name: system.name, note: system.sets.length ? `in ${system.sets.join(', ')}` : '', go: () => openSystem(system.name) }))),
    group('sets of systems', ((access && access.sets) || []).map(set => ({ name: set.name, go: () => openSet(set.name) }))),
    ofType('components', 'components'), ofType('resources', 'resources'), ofType('events', 'events'), ofType('relations', 'relations'),
    group('archetypes', archetypes.map(one => ({ name: one.components.join(' '), note: many(one.entity_count, 'entity', 'entities'), go: () => openArchetypes(one.components.join(' ')) }))),
  ].filter(each => each.list.length > 0)
}

// Entities by handle, by path, or with the text in their names.
async function findEntities(text) {
  if (/^#?\d+:\d+$/.test(text) || text.startsWith('/'))
    try { return [await get('entity', { entity: text.replace('#', '') })] } catch { if (!text.startsWith('/')) return [] }
  const page = await get('entities', { name: text, anywhere: text.startsWith('/') ? 0 : 1, limit: 20 })
  return page.entities
}

export function Find() {
  const { types, access, finding } = useStore('types', 'access', 'finding')
  const isPick = Boolean(finding.pick)
  const [text, setText] = useState('')
  const [entities, setEntities] = useState([])
  const [archetypes, setArchetypes] = useState([])
  const [at, setAt] = useState(0)
  const place = useRef()
  useEffect(() => {
    place.current.focus()
    readAccess().catch(() => {})
    readArchetypes().then(setArchetypes, () => {})
  }, [])
  useEffect(() => {
    let isLive = true
    setAt(0)
    if (!text) { setEntities([]); return undefined }
    const timer = setTimeout(() => findEntities(text).then(list => isLive && setEntities(list), () => isLive && setEntities([])), 150)
    return () => { isLive = false; clearTimeout(timer) }
  }, [text])
  const groups = text ? groupsOf(text, entities, archetypes).filter(group => !isPick || group.kind === 'entities') : [], flat = groups.flatMap(group => group.list)
  const close = () => update({ finding: false })
  const choose = one => { close(); if (isPick) finding.pick(one.entity); else one.go() }
  const chosen = Math.min(at, flat.length - 1)
  useEffect(() => { const row = document.getElementById(`found${chosen}`); if (row) row.scrollIntoView({ block: 'nearest' }) }, [chosen])
  const keys = event => {
    if (event.key === 'Escape') close()
    else if (event.key === 'ArrowDown') setAt(Math.min(chosen + 1, flat.length - 1))
    else if (event.key === 'ArrowUp') setAt(Math.max(chosen - 1, 0))
    else if (event.key === 'Enter' && flat[chosen]) choose(flat[chosen])
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  let number = 0
  return html`<div class="veil" onClick=${close}><div class="find" role="dialog" aria-label=${isPick ? 'choose an entity' : 'find anything'} onClick=${event => event.stopPropagation()} onKeyDown=${keys}>
    <input ref=${place} class="search" value=${text} onInput=${event => setText(event.target.value)} placeholder=${isPick ? 'name, 12:1, or /path of an entity' : 'system, component, entity, 12:1, /path …'} role="combobox"
      aria-label="find" aria-expanded=${flat.length > 0} aria-controls="found" aria-activedescendant=${flat.length ? `found${chosen}` : undefined} data-test="find" />
    <div id="found" role="listbox" aria-label="what was found">${groups.map(group => html`<div role="group" aria-label=${group.kind}><p class="kind">${group.kind}${group.count > group.list.length ? `, the first ${group.list.length} of ${group.count}` : ''}</p>
      ${group.list.map(one => { const i = number++; return html`<div id=${`found${i}`} role="option" aria-selected=${i === chosen} class=${`node ${i === chosen ? 'chosen' : ''}`} onClick=${() => choose(one)} data-test="found">
        ${one.name}${one.note && html` <span class="muted">${one.note}</span>`}</div>` })}</div>`)}
    ${text && flat.length === 0 && html`<p class="muted">Nothing has this in its name.</p>`}
    ${!text && html`<p class="muted">${types && access ? `${many(access.systems.length, 'system', 'systems')}, ${many(types.components.length, 'component', 'components')}, ${many(archetypes.length, 'archetype', 'archetypes')} in use. ` : ''}Arrows choose, Enter opens, Escape closes.</p>`}</div></div></div>`
}
