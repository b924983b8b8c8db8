// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// Entities: the tree and lists of them, and one entity with its values, its relations and the systems that match it.

import { useEffect, useRef, useState } from 'preact/hooks'
import { html, useStore, update, state, get, post, show, bytes, count, many, label, quoted, hasWords, open, pick, openSystem, openType, PAGE, Input, Link, Fold, Filter, useAnswer } from './common.js'
import { Editor, valueAt } from './fields.js'
import { Table } from './table.js'
import { Breaks, Watched, watch } from './probes.js'

const DEPTH_SHOWN = 12 // deeper levels are not indented further

function Node({ entry, level }) {
  const { chosen } = useStore('chosen')
  const [children, setChildren] = useState(null)
  const more = async () => {
    const last = children && children.list[children.list.length - 1]
    const page = await get('sources', { entity: entry.entity, limit: PAGE, after: last && last.entity })
    setChildren(now => now === children ? { count: page.count, list: (now ? now.list : []).concat(page.entities) } : now)
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
      class=${`node ${chosen === entry.entity ? 'chosen' : ''} ${entry.enabled ? '' : 'off'}`} style=${{ paddingLeft: `${Math.min(level, DEPTH_SHOWN) * 14 - 8}px` }} onKeyDown=${keys} onClick=${() => open(entry.entity)} data-test="node">
      <button class="plain twist" tabindex="-1" aria-hidden="true" onClick=${event => { event.stopPropagation(); if (entry.child_count) toggle() }}>${entry.child_count ? (children ? '▾' : '▸') : ''}</button>
      ${level > DEPTH_SHOWN && html`<span class="muted">${level} deep </span>`}${label(entry)}${entry.child_count > 0 && html`<span class="muted"> ${count(entry.child_count)}</span>`}</div>
    ${children && children.list.map(child => html`<${Node} key=${child.entity} entry=${child} level=${level + 1} />`)}
    ${children && children.list.length < children.count && html`<button class="plain" style=${{ marginLeft: `${Math.min(level, DEPTH_SHOWN) * 14 + 20}px` }} onClick=${() => show(more())}>${count(children.count - children.list.length)} more</button>`}`
}

function Tree() {
  const { types, mode, restores } = useStore('types', 'mode', 'restores')
  const prefabs = useAnswer('prefabs', {}, 5000)
  const [text, setText] = useState('')
  const [page, setPage] = useState(null)
  const [offset, setOffset] = useState(0)
  const [cursors, setCursors] = useState([0]) // where the pages begin, if the list is not counted
  const asked = useRef(0) // the number of the last request: an answer to an earlier one that comes later is not shown
  const load = async () => {
    const number = ++asked.current
    const names = { tree: () => get('roots', { offset, cursor: cursors[offset / PAGE] ?? 0, limit: PAGE }), name: () => get('entities', { name: text, limit: 500 }),
      query: () => get('entities', { query: text, offset, limit: PAGE }),
      component: () => get('entities', { query: `with ${quoted(text)}`, offset, limit: PAGE }) }
    if (mode === 'table' || (mode !== 'tree' && mode !== 'name' && !text)) { setPage(null); return }
    const next = await names[mode]()
    if (number !== asked.current) return
    setPage(next)
    if (next.next_cursor) setCursors(cursors.slice(0, offset / PAGE + 1).concat(next.next_cursor))
  }
  useEffect(() => { const timer = setTimeout(() => show(load()), mode === 'tree' ? 0 : 200); return () => clearTimeout(timer) }, [mode, text, offset, restores])
  useEffect(() => { if (types && mode === 'component' && !text && types.components[0]) setText(types.components[0].name) }, [mode, types])
  const choose = next => { if (next === mode) return; update({ mode: next, query: next === 'table' && mode === 'query' && text ? text : state.query }); setOffset(0); setText(''); setPage(null) }
  const create = async argumentsOf => { const made = await post('create', argumentsOf); if (made) { open(made.entity); if (mode !== 'table') await load() } }
  return html`<section class="tree"><h2>Entities</h2><div class="row between"><div class="tabs small" role="tablist">${['tree', 'name', 'component', 'query', 'table'].map(each =>
      html`<button role="tab" aria-selected=${mode === each} onClick=${() => choose(each)} data-test=${`by-${each}`}>${each}</button>`)}</div>
      <select aria-label="create an entity" data-test="create" onChange=${event => { const value = event.target.value; event.target.value = ''; if (value) create(value === 'empty' ? {} : { prefab: value }) }}><option value="">Create</option><option value="empty">an empty entity</option>
        ${(prefabs ? prefabs.prefabs : []).map(prefab => html`<option value=${prefab.index}>from prefab ${prefab.index}, ${many(prefab.member_count, 'member', 'members')}</option>`)}</select></div>
    ${mode === 'table' && html`<${Table} />`}
    ${(mode === 'name' || mode === 'query') && html`<${Input} class="search" value=${text} aria-label=${`search by ${mode}`} data-test="search" placeholder=${mode === 'name' ? 'name or /path' : 'Position, !Hunter, ?Energy, A | B'}
      onInput=${event => { setText(event.target.value); setOffset(0) }} />`}
    ${mode === 'component' && types && html`<select class="search" value=${text} aria-label="component" onChange=${event => { setText(event.target.value); setOffset(0) }}>${types.components.filter(t => !t.hidden).map(t => html`<option>${t.name}</option>`)}</select>`}
    ${page && html`<p class="muted">${page.count !== undefined && page.count !== null ? `${count(page.count)} entities` : ''}
      <button class="plain" disabled=${offset === 0} onClick=${() => setOffset(Math.max(0, offset - PAGE))} aria-label="previous page">‹</button> ${count(offset + (page.entities.length ? 1 : 0))} to ${count(offset + page.entities.length)}
      <button class="plain" disabled=${page.count !== undefined ? offset + PAGE >= page.count : page.next_cursor === null} onClick=${() => setOffset(offset + PAGE)} aria-label="next page" data-test="next">›</button></p>
      <div role="tree" aria-label="entities">${page.entities.map(entry => html`<${Node} key=${entry.entity} entry=${entry} level=${1} />`)}</div>`}</section>`
}

// The entities that have this one as their target, in pages.
function Sources({ entity, relation }) {
  const [list, setList] = useState([])
  const more = async () => {
    const last = list[list.length - 1]
    const page = await get('sources', { entity, relation: relation.relation, limit: 20, after: last && last.entity })
    setList(now => now === list ? now.concat(page.entities) : now)
  }
  return html`<p class="links"><span class="muted">${count(relation.source_count)} ${relation.source_count === 1 ? 'source' : 'sources'}:</span>
    ${list.map(each => html`<button class="plain link" onClick=${() => open(each.entity)}>${label(each)}</button> `)}
    ${list.length < relation.source_count && html`<button onClick=${() => show(more())}>${list.length ? 'More' : 'Show'}</button>`}</p>`
}

// A long path shows its end.
function Path({ entity }) {
  const names = (entity.path || '').split('/').slice(1)
  if (names.length < 2) return null
  return html`<p class="muted wrap" title=${entity.path.length < 2000 ? entity.path : ''}>${names.length > 6 ? `${names.length} deep: …/${names.slice(-4).join('/')}` : entity.path}</p>`
}

// Which systems the entity matches, and which terms fail where it does not; those that nearly match come first.
function Matches({ entity }) {
  const { world } = useStore('world')
  const [isOpen, setOpen] = useState(false)
  const [text, setText] = useState('')
  const [answer, setAnswer] = useState(null)
  useEffect(() => { if (isOpen) show(get('matches', { entity }).then(setAnswer)); else setAnswer(null) }, [isOpen, entity])
  if (world && !world.inspector.has_schedule) return null
  const list = answer ? answer.systems.filter(each => !text || hasWords(each.system, text)) : []
  const yes = list.filter(each => each.matches), no = list.filter(each => !each.matches).sort((a, b) => a.failed.length - b.failed.length)
  return html`<div class="component"><${Fold} title="Systems" note=${answer ? `${count(yes.length)} match, ${count(no.length)} do not` : 'that match, and why others do not'} isOpen=${isOpen} onToggle=${() => setOpen(!isOpen)} test="matches">
    ${answer && html`<p class="row"><${Filter} value=${text} onInput=${setText} what="systems" test="filter-matches" /></p>
      <p class="links" data-test="matching">${yes.map(each => html`<${Link} to=${() => openSystem(each.system)}>${each.system}</${Link}> `)}${yes.length === 0 && html`<span class="muted">No system matches.</span>`}</p>
      <div class="scroll tall"><table data-test="failing"><tbody>${no.map(each => html`<tr><td><${Link} to=${() => openSystem(each.system)}>${each.system}</${Link}></td><td class="wrap">${each.failed.map((one, i) => html`${i > 0 ? '; ' : ''}${one.reason} <${Link} to=${() => openType(`components ${one.component}`)}>${one.component}</${Link}>`)}</td></tr>`)}</tbody></table></div>`}</${Fold}></div>`
}

// Adds a target in a relation.
function Relate({ types, onRelate }) {
  const [relation, setRelation] = useState('')
  const [target, setTarget] = useState('')
  if (types.relations.length === 0) return null
  const name = relation || types.relations[0].name
  return html`<p class="row"><span class="pair"><select aria-label="relation" value=${name} onChange=${event => setRelation(event.target.value)}>${types.relations.map(each => html`<option>${each.name}</option>`)}</select>
    <${Input} value=${target} placeholder="12:1 or /path" aria-label="target" data-test="target" onInput=${event => setTarget(event.target.value)} /><button class="plain link" onClick=${() => pick(setTarget)}>choose</button></span>
    <button disabled=${!target} onClick=${() => onRelate(name, target).then(done => { if (done) setTarget('') })} data-test="relate">Relate</button></p>`
}

function AddComponent({ absent, onAdd }) {
  const [name, setName] = useState('')
  const add = value => { setName(''); onAdd(value) }
  return html`<p class="row"><${Input} list="absent" value=${name} placeholder="add a component" aria-label="add a component" data-test="add" onInput=${event => { const { value } = event.target; if (absent.some(type => type.name === value)) { event.target.value = ''; add(value) } else setName(value) }} />
    <datalist id="absent">${absent.map(type => html`<option value=${type.name}></option>`)}</datalist></p>`
}

function EntityPanel() {
  const { chosen, types, message } = useStore()
  const [entity, setEntity] = useState(null)
  const [old, setOld] = useState(null)
  const [gone, setGone] = useState('')
  const wanted = useRef(chosen), shown = useRef(null), isBusy = useRef(false), isAsked = useRef(false)
  wanted.current = chosen
  // One request at a time, however often something changes.
  const load = async () => {
    isAsked.current = true
    if (isBusy.current) return
    isBusy.current = true
    while (isAsked.current && wanted.current) {
      const asked = wanted.current
      isAsked.current = false
      try {
        const next = await get('entity', { entity: asked }), last = shown.current
        if (asked !== wanted.current) { isAsked.current = true; continue }
        setGone('')
        if (!last || last.entity !== next.entity) setOld(null)
        else if (last.frame !== next.frame) setOld(last)
        shown.current = next
        setEntity(next)
      } catch (error) {
        setGone(error.message)
      }
    }
    isBusy.current = false
  }
  useEffect(() => { if (chosen) load(); else setEntity(null) }, [chosen, message.frame, message.restore_count, message.edit_count])
  if (!chosen) return html`<div class="side"><section><h2>Entity</h2><p class="muted">Choose an entity on the left, or press / to find one.</p><${Breaks} /></section><${Watched} /></div>`
  if (!entity || !types || (gone && entity.entity !== chosen)) return html`<div class="side"><section><h2>Entity</h2><p class="muted">${gone || 'Reading.'}</p></section></div>`
  const set = async (path, value) => { if (await post('set', { entity: entity.entity, path, value })) await load() }
  const change = async (path, argumentsOf) => { const done = await post(path, { entity: entity.entity, ...argumentsOf }); if (done) await load(); return done }
  const values = entity.values ? entity.values.components : {}, before = old && old.values ? old.values.components : null
  const absent = types.components.filter(t => !t.managed && !t.hidden && !(t.name in values))
  const relate = (relation, target, from) => change('relate', { relation, target, from })
  const copy = async () => { const made = await post('create', { copy: entity.entity }); if (made) open(made.entity) }
  // By the time of the answer, a person may have chosen another entity, which stays.
  const destroy = async () => { if (await post('destroy', { entity: entity.entity }) && state.chosen === entity.entity) update({ chosen: null }) }
  return html`<div class="side"><section class=${`entity ${gone ? 'off' : ''}`}><h2 title=${entity.path_error || ''}>${entity.name || `#${entity.entity}`}</h2><${Path} entity=${entity} />
    ${gone && html`<p class="bad">The entity does not exist any more: these are its values of frame ${count(entity.frame)}.</p>`}
    <p class="row"><span class="muted">${entity.entity}, use ${entity.use_count}</span>
      <label><input type="checkbox" checked=${entity.enabled} onChange=${e => change('enable', { on: e.target.checked ? 1 : 0 })} /> enabled</label>
      <button onClick=${copy} data-test="copy">Copy</button>
      <button data-test="destroy" onClick=${destroy}>Destroy</button></p>
    <label class="muted">name <${Input} value=${entity.name || ''} aria-label="name" data-test="name" onChange=${e => change('name', { name: e.target.value })} /></label>
    ${Object.entries(values).map(([name, value]) => {
      const type = types.components.find(t => t.name === name) || { fields: [], flags: [] }
      const state = entity.components.find(c => c.name === name)
      return html`<div class="component"><h3><${Link} to=${() => openType(`components ${name}`)}>${name}</${Link}> <span class="muted">${type.size_bytes ? bytes(type.size_bytes) : 'tag'}</span>
        ${type.flags.includes('can_disable') && html`<label><input type="checkbox" checked=${state && state.enabled} onChange=${e => change('enable', { component: name, on: e.target.checked ? 1 : 0 })} /> enabled</label>`}
        <button class="plain" onClick=${() => change('remove', { component: name })} aria-label=${`remove ${name}`}>✕</button></h3>
        ${type.fields.length ? html`<table class="fields"><tbody>${type.fields.filter(f => !f.hidden).map(field => html`<${Editor} component=${name} field=${field} value=${valueAt(value, field.name)}
          changed=${before && name in before && JSON.stringify(valueAt(before[name], field.name)) !== JSON.stringify(valueAt(value, field.name))} onSet=${set} onWatch=${path => watch(entity.entity, path)} />`)}</tbody></table>`
          : typeof value === 'string' && html`<code class="muted">${value}</code>`}</div>`
    })}
    ${entity.values_error && html`<p class="bad">${entity.values_error}</p>`}
    ${entity.relations.map(relation => html`<div class="component"><h3>${relation.relation}</h3>${relation.targets.map(target =>
      html`<p>of <button class="plain link" onClick=${() => open(target.entity)}>${target.path && target.path.length < 80 ? target.path : target.entity}</button> <button class="plain" aria-label=${`unrelate from ${target.entity}`} onClick=${() => relate(relation.relation, '', target.entity)}>✕</button></p>`)}
      ${relation.source_count > 0 && html`<${Sources} key=${`${entity.entity} ${relation.relation}`} entity=${entity.entity} relation=${relation} />`}</div>`)}
    <div class="component"><${AddComponent} absent=${absent} onAdd=${component => change('add', { component })} /><${Relate} types=${types} onRelate=${relate} /></div>
    <${Matches} key=${entity.entity} entity=${entity.entity} /><${Breaks} entity=${entity.entity} paths=${Object.keys(values).flatMap(name => (types.components.find(type => type.name === name) || { fields: [] }).fields.filter(field => !field.hidden).map(field => `${name}.${field.name}`))} /></section><${Watched} /></div>`
}

export const EntitiesView = () => html`<${Tree} /><${EntityPanel} />`
