// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// The entities of a query as a table: chosen fields as columns, sorted, filtered, edited in place. The program sorts and
// filters; the page asks for the rows that are seen, again and again.

import { useEffect, useRef, useState } from 'preact/hooks'
import { html, useStore, update, get, post, tell, count, many, label, state, Input, Link, open } from './common.js'

const ROW = 26, ROWS_ASKED = 80, AGAIN_MS = 500, SELECTED_MAX = 1000, COLUMNS_AT_FIRST = 6, AT_ONCE = 8

const fieldsOf = types => types ? types.components.filter(type => !type.hidden && !type.managed).flatMap(type => type.fields.filter(field => !field.hidden && field.count === 1 || field.type === 'text')
  .map(field => ({ path: `${type.name}.${field.name}`, component: type.name, field }))) : []

// The columns of a query at first: the fields of components that it names.
function columnsFor(fields, query) {
  const named = fields.filter(each => new RegExp(`(^|[^!\\w])${each.component.replace(/[^\w]/g, '\\$&')}(?![\\w])`).test(query))
  return named.slice(0, COLUMNS_AT_FIRST).map(each => each.path)
}

function Cell({ entity, path, field, value }) {
  if (value === null || value === undefined) return html`<td class="muted">–</td>`
  const set = text => post('set', { entity, path, value: text })
  const common = { 'aria-label': `${path} of ${entity}`, class: 'cell', disabled: field && field.read_only, 'data-cell': path }
  if (field && field.type === 'bool') return html`<td><input ...${common} type="checkbox" checked=${value === 'true'} onChange=${event => set(event.target.checked ? 'true' : 'false')} /></td>`
  if (field && field.values) return html`<td><select ...${common} value=${value} onChange=${event => set(event.target.value)}>${field.values.includes(value) ? '' : html`<option>${value}</option>`}${field.values.map(each => html`<option>${each}</option>`)}</select></td>`
  const isNumber = field && field.type !== 'text' && field.type !== 'entity'
  return html`<td class=${isNumber ? 'n' : ''}><${Input} ...${common} class=${isNumber ? 'cell n' : 'cell'} value=${value} onChange=${event => set(event.target.value)} /></td>`
}

// What can be done with all chosen entities.
function Actions({ chosen, onDone, types }) {
  const list = [...chosen], all = types ? types.components.filter(type => !type.managed && !type.hidden) : []
  const each = async (path, argumentsOf) => {
    for (let i = 0; i < list.length; i += AT_ONCE) {
      const done = await Promise.all(list.slice(i, i + AT_ONCE).map(entity => post(path, { entity, ...argumentsOf })))
      if (done.some(answer => answer === null)) break
    }
    onDone(path === 'destroy')
  }
  const [path, setPath] = useState('')
  const [value, setValue] = useState('')
  return html`<p class="row actions" data-test="actions"><b>${many(list.length, 'entity', 'entities')}</b>
    <select aria-label="add to all" onChange=${event => { if (event.target.value) each('add', { component: event.target.value }); event.target.value = '' }}><option value="">Add</option>${all.map(type => html`<option>${type.name}</option>`)}</select>
    <select aria-label="remove from all" onChange=${event => { if (event.target.value) each('remove', { component: event.target.value }); event.target.value = '' }}><option value="">Remove</option>${all.map(type => html`<option>${type.name}</option>`)}</select>
    <span class="pair"><select aria-label="field to set" value=${path} onChange=${event => setPath(event.target.value)}><option value="">Set a field</option>${fieldsOf(types).map(one => html`<option>${one.path}</option>`)}</select>
      ${path && html`<${Input} value=${value} aria-label=${`value of ${path}`} onInput=${event => setValue(event.target.value)} /><button onClick=${() => each('set', { path, value })}>Set</button>`}</span>
    <button onClick=${() => each('enable', { on: 1 })}>Enable</button><button onClick=${() => each('enable', { on: 0 })}>Disable</button>
    <button onClick=${() => each('destroy')}>Destroy</button><button class="plain link" onClick=${() => onDone(true)}>choose none</button></p>`
}

export function Table() {
  const { types, query, chosen: shown } = useStore('types', 'query', 'chosen')
  const [where, setWhere] = useState('')
  const [columns, setColumns] = useState(null)
  const [sort, setSort] = useState({ path: '', descending: 0 })
  const [answer, setAnswer] = useState(null)
  const [fault, setFault] = useState('')
  const [chosen, setChosen] = useState(new Set())
  const place = useRef(), wanted = useRef({}), last = useRef(null)
  const fields = fieldsOf(types), paths = columns || columnsFor(fields, query)
  const first = () => Math.max(0, Math.floor((place.current ? place.current.scrollTop : 0) / ROW) - 20)
  wanted.current = { query, where: where || undefined, columns: paths.join(','), sort: sort.path || undefined, descending: sort.descending }
  const key = JSON.stringify(wanted.current)
  // One request at a time: the next one asks for what is wanted by then.
  useEffect(() => {
    let isLive = true, timer
    const load = async () => {
      const { query: text, ...rest } = wanted.current
      if (text && !document.hidden) {
        try {
          const next = await get('table', { query: text, ...rest, offset: first(), limit: ROWS_ASKED })
          if (isLive) { setAnswer({ ...next, columns: rest.columns.split(',') }); setFault('') }
        } catch (error) {
          if (isLive) setFault(error.message)
        }
      }
      if (isLive) timer = setTimeout(load, place.current && answerIsFar() ? 0 : AGAIN_MS)
    }
    const answerIsFar = () => latest.current && place.current && (first() + 20 < latest.current.offset || first() + 60 > latest.current.offset + ROWS_ASKED) && first() + 20 < latest.current.count
    timer = setTimeout(load, 150)
    return () => { isLive = false; clearTimeout(timer) }
  }, [key])
  const latest = useRef(null)
  latest.current = answer
  const [, scrolled] = useState(0)
  const onScroll = () => scrolled(place.current.scrollTop)
  const order = path => setSort(sort.path !== path ? { path, descending: 0 } : sort.descending ? { path: '', descending: 0 } : { path, descending: 1 })
  const rows = answer ? answer.rows : [], above = answer ? answer.offset : 0, all = answer ? answer.count : 0
  const choose = (event, i) => {
    const next = new Set(chosen), isOn = event.target.checked, from = event.shiftKey && last.current !== null ? Math.min(last.current, i) : i, to = event.shiftKey && last.current !== null ? Math.max(last.current, i) : i
    for (let k = from; k <= to; k++) if (rows[k]) { if (isOn) next.add(rows[k].entity); else next.delete(rows[k].entity) }
    last.current = i
    setChosen(next)
  }
  const chooseAll = async () => {
    if (chosen.size > 0) { setChosen(new Set()); return }
    try {
      const page = await get('table', { query, where: where || undefined, sort: sort.path || undefined, descending: sort.descending, limit: SELECTED_MAX })
      setChosen(new Set(page.rows.map(row => row.entity)))
    } catch (error) { tell(error.message) }
  }
  const fieldAt = path => (fields.find(each => each.path === path) || {}).field
  return html`<${Input} class="search" value=${query} aria-label="query" data-test="table-query" placeholder="Position, !Hunter, ?Energy, A | B" onInput=${event => { setColumns(null); setChosen(new Set()); update({ query: event.target.value }) }} />
    <p class="row"><${Input} class="filter grow" value=${where} placeholder="only where, such as Energy.value < 0.5, Position.x >= 3" aria-label="conditions" data-test="table-where" onInput=${event => setWhere(event.target.value)} />
      <details class="menu"><summary data-test="columns">columns</summary><div class="menulist">${fields.map(each => html`<label><input type="checkbox" checked=${paths.includes(each.path)} onChange=${event => setColumns(event.target.checked ? paths.concat(each.path) : paths.filter(path => path !== each.path))} /> ${each.path}</label>`)}</div></details></p>
    ${fault && html`<p class="bad" data-test="table-fault">${fault}</p>`}
    ${!query && html`<p class="muted">Write a query: names of components, separated by commas.</p>`}
    ${query && answer && html`<p class="muted" data-test="table-count">${many(all, 'entity', 'entities')}${answer.found_count !== all ? ` of ${count(answer.found_count)}` : ''}, frame ${count(answer.frame)}</p>
    ${chosen.size > 0 && html`<${Actions} chosen=${chosen} types=${types} onDone=${clears => { if (clears) setChosen(new Set()) }} />`}
    <div class="grid" ref=${place} onScroll=${onScroll} tabindex="0" role="region" aria-label="entities as a table"><table aria-rowcount=${all}><thead><tr>
      <th><input type="checkbox" aria-label="choose all" checked=${chosen.size > 0} onClick=${event => { event.preventDefault(); chooseAll() }} data-test="choose-all" /></th><th>entity</th>
      ${paths.map(path => html`<th class=${(fieldAt(path) || {}).type === 'text' ? '' : 'n'} aria-sort=${sort.path !== path ? 'none' : sort.descending ? 'descending' : 'ascending'} title=${path}><button class="plain" onClick=${() => order(path)} data-test="sort">${path}${sort.path === path ? sort.descending ? ' ▾' : ' ▴' : ''}</button></th>`)}</tr></thead>
      <tbody>${above > 0 && html`<tr style=${{ height: `${above * ROW}px` }}></tr>`}
      ${rows.map((row, i) => html`<tr key=${row.entity} class=${`${shown === row.entity ? 'chosen' : ''} ${row.enabled ? '' : 'off'}`} aria-rowindex=${above + i + 1}><td><input type="checkbox" checked=${chosen.has(row.entity)} aria-label=${`choose ${label(row)}`} onClick=${event => choose(event, i)} data-test="choose" /></td>
        <td><${Link} to=${() => open(row.entity)}>${label(row)}</${Link}></td>${paths.map(path => { const k = answer.columns.indexOf(path); return html`<${Cell} key=${path} entity=${row.entity} path=${path} field=${fieldAt(path)} value=${k < 0 ? null : row.values[k]} />` })}</tr>`)}
      ${above + rows.length < all && html`<tr style=${{ height: `${(all - above - rows.length) * ROW}px` }}></tr>`}</tbody></table></div>`}`
}
