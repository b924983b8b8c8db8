// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// Types: components, resources, events and relations, with what systems do to them.

import { useEffect, useState } from 'preact/hooks'
import { html, useStore, update, get, post, bytes, count, quoted, hasWords, Filter, Fold, Link, openSystem, openType, openQuery, openArchetypes, readAccess, showLoading, useAnswer } from './common.js'
import { Editor, valueAt } from './fields.js'

const KINDS = ['components', 'resources', 'events', 'relations']

// Returns the systems that use a type, by what they do.
function usersOf(access, kind, name) {
  const users = {}, add = (what, system) => { const list = users[what] = users[what] || []; if (!list.includes(system.name)) list.push(system.name) }
  ;(access ? access.systems : []).forEach(system => {
    if (kind === 'components' || kind === 'relations') {
      const terms = system.terms.concat(...system.queries.map(query => query.terms))
      terms.filter(term => term.component === name).forEach(term => add(term.match === 'none' ? 'leave it out' : term.access === 'none' ? 'ask for it' : term.access === 'read' ? 'read it' : 'write it', system))
      terms.filter(term => term.relation === name).forEach(() => add('look upward along it', system))
      if (system.lookups.includes(name)) add('look it up', system)
      if (system.write_lookups.includes(name)) add('write it anywhere', system)
      if (system.levels === name) add('run by its levels', system)
    } else if (kind === 'resources') {
      system.resources.filter(use => use.resource === name).forEach(use => add(use.access === 'read' ? 'read it' : 'write it', system))
    } else {
      if (system.emits.includes(name)) add('emit it', system)
      if (system.reads_events.includes(name) || system.items === name) add('read it', system)
    }
  })
  return Object.entries(users).sort(([a], [b]) => a < b ? 1 : -1)
}

function Matching({ name }) {
  const answer = useAnswer('entities', { query: `with ${quoted(name)}`, limit: 0 })
  return html`<p class="row"><span>${answer ? count(answer.count) : '…'} entities have it</span>
    <button onClick=${() => openQuery(quoted(name))} data-test="show-entities">Show as a table</button><button onClick=${() => openArchetypes(name)}>Archetypes</button></p>`
}

function Resource({ name, type }) {
  const answer = useAnswer('resources', {}, 1000)
  const one = answer && answer.resources.find(each => each.name === name)
  if (!one) return null
  const set = (path, value) => post('set_resource', { path, value })
  return one.value ? html`<table class="fields"><tbody>${type.fields.filter(field => !field.hidden).map(field => html`<${Editor} component=${name} field=${field} value=${valueAt(one.value, field.name)} onSet=${set} />`)}</tbody></table>`
    : html`<p class="muted">Its fields are not described.</p>`
}

function TypePanel({ kind, type, access }) {
  if (!type) return html`<section class="detail"><h2>Type</h2><p class="muted">Choose a type on the left, or press / to find one.</p></section>`
  const users = usersOf(access, kind, type.name), isRelation = kind === 'relations'
  const traits = isRelation ? [type.levels && 'levels', type.ordered && 'ordered', type.many && 'many targets', `if the target is destroyed: ${type.on_target_destroyed}`].filter(Boolean)
    : [type.size_bytes ? bytes(type.size_bytes) : kind === 'events' ? 'counted' : 'tag', ...type.flags.map(flag => flag.replace('_', ' ')), type.hooks && 'hooks', type.managed && 'kept by the world'].filter(Boolean)
  return html`<section class="detail"><h2 data-test="type-name">${type.name}</h2><p class="muted">${traits.join(', ')}</p>
    ${(kind === 'components' || isRelation) && html`<${Matching} name=${type.name} />`}
    ${kind === 'resources' && html`<${Resource} name=${type.name} type=${type} />`}
    ${!isRelation && kind !== 'resources' && type.fields.length > 0 && html`<div class="scroll"><table><thead><tr><th>field</th><th>type</th><th>unit, range, values</th></tr></thead><tbody>${type.fields.map(field => html`<tr><td>${field.name}</td><td>${field.type}${field.count > 1 ? ` × ${field.count}` : ''}</td>
      <td class="muted wrap">${[field.unit, field.minimum !== undefined && `${field.minimum} to ${field.maximum}`, field.values && field.values.join(', '), field.read_only && 'read-only', field.hidden && 'hidden'].filter(Boolean).join('; ')}</td></tr>`)}</tbody></table></div>`}
    ${!isRelation && type.required.length > 0 && html`<p>requires ${type.required.map(name => html`<${Link} to=${() => openType(`components ${name}`)}>${name}</${Link}> `)}</p>`}
    ${users.length === 0 && access && html`<p class="muted">No system uses it.</p>`}
    ${users.map(([what, list]) => html`<h3>${count(list.length)} ${list.length === 1 ? 'system' : 'systems'} ${what}</h3><p class="links" data-test="users">${list.map(name => html`<${Link} to=${() => openSystem(name)}>${name}</${Link}> `)}</p>`)}</section>`
}

export function TypesView() {
  const { types, access, type: chosen } = useStore('types', 'access', 'type')
  const [text, setText] = useState('')
  const [folds, setFolds] = useState({})
  useEffect(() => { showLoading(readAccess()); showLoading(get('types').then(next => update({ types: next }))) }, [])
  if (!types) return html`<section class="wide"><p class="muted">Reading.</p></section>`
  const at = chosen.indexOf(' '), kind = chosen.slice(0, at), name = chosen.slice(at + 1)
  return html`<section class="list"><h2>Types</h2><p class="row"><${Filter} value=${text} onInput=${setText} what="types" test="filter-types" /></p>
    ${KINDS.map(each => {
      const list = types[each].filter(type => !type.hidden && (!text || hasWords(type.name, text)))
      return list.length > 0 && html`<${Fold} title=${each} note=${count(list.length)} isOpen=${!folds[each]} onToggle=${() => setFolds({ ...folds, [each]: !folds[each] })}>
        <div class="tall">${list.map(type => html`<div class=${`node ${chosen === `${each} ${type.name}` ? 'chosen' : ''}`} onClick=${() => openType(`${each} ${type.name}`)}><button class="plain name" data-test="type">${type.name}</button></div>`)}</div></${Fold}>`
    })}</section>
    <${TypePanel} key=${chosen} kind=${kind} type=${KINDS.includes(kind) && types[kind].find(type => type.name === name)} access=${access} />`
}
