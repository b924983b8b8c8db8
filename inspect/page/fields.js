// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// Editors of fields.

import { html, open, Input } from './common.js'

export const valueAt = (value, path) => path.split('.').reduce((at, part) => at === undefined || at === null ? undefined : at[part], value)

export function Editor({ component, field, value, changed, onSet, onWatch }) {
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
  return html`<tr><th scope="row">${field.name}</th><td>${editor}</td><td class="muted">${field.unit || ''} ${range}${onWatch && field.type !== 'text' && field.count === 1 && html` <button class="plain watch" title="watch as a curve" aria-label=${`watch ${path}`} onClick=${() => onWatch(path)} data-test="watch">∿</button>`}</td></tr>`
}
