// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// Editors of fields: one for each type, and for what the unit of a field says: "rgb" and "rgba" are colours, "flags" are
// the bits of the named values. docs/reflection.md lists these units.

import { html, open, pick, Input } from './common.js'

export const valueAt = (value, path) => path.split('.').reduce((at, part) => at === undefined || at === null ? undefined : at[part], value)

const VECTOR = 4 // longer arrays are one text
const ELEMENTS_SHOWN = 50
const two = number => Math.round(number).toString(16).padStart(2, '0')
export const isColour = field => field.unit === 'rgb' || field.unit === 'rgba'
const isFlags = field => field.unit === 'flags' && field.values
const isFloat = field => field.type === 'f32' || field.type === 'f64'

// A colour is three or four channels, of 0 to 1 or 0 to 255, or one number 0xRRGGBB or 0xRRGGBBAA.
function hexOf(field, value) {
  if (Array.isArray(value)) return `#${value.slice(0, 3).map(channel => two(Math.max(0, Math.min(255, isFloat(field) ? 255 * channel : channel)))).join('')}`
  return `#${two(value >>> (field.unit === 'rgba' ? 24 : 16) & 255)}${two(value >>> (field.unit === 'rgba' ? 16 : 8) & 255)}${two(value >>> (field.unit === 'rgba' ? 8 : 0) & 255)}`
}
function colourText(field, value, hex) {
  const channels = [1, 3, 5].map(at => parseInt(hex.slice(at, at + 2), 16))
  if (Array.isArray(value)) return `[${channels.map(channel => isFloat(field) ? Number((channel / 255).toFixed(4)) : channel).concat(value.slice(3)).join(', ')}]`
  const rgb = channels[0] * 65536 + channels[1] * 256 + channels[2]
  return String(field.unit === 'rgba' ? rgb * 256 + (value & 255) : rgb)
}

function Flags({ field, value, common, set }) {
  const at = field.values.indexOf(value), bits = at >= 0 ? field.numbers[at] : Number(value) || 0
  return html`<span class="flags">${field.values.map((name, i) => field.numbers[i] === 0 ? null : html`<label><input ...${common} type="checkbox" aria-label=${`${common['aria-label']}: ${name}`} checked=${(bits & field.numbers[i]) === field.numbers[i]}
    onChange=${event => set(String(event.target.checked ? bits | field.numbers[i] : bits & ~field.numbers[i]))} /> ${name}</label>`)}</span>`
}

// A list of structs: a row for each element. Other lists are one text.
function Elements({ path, value, common, onSet }) {
  const list = value || []
  if (list.length === 0) return html`<span class="muted">empty</span>`
  const keys = Object.keys(list[0])
  return html`<div class="scroll"><table class="elements"><thead><tr><th class="n">#</th>${keys.map(key => html`<th>${key}</th>`)}</tr></thead><tbody>${list.slice(0, ELEMENTS_SHOWN).map((element, i) => html`<tr><td class="n muted">${i}</td>${keys.map(key =>
    html`<td><${Input} ...${common} aria-label=${`${path}[${i}].${key}`} data-path=${`${path}[${i}].${key}`} value=${Array.isArray(element[key]) ? `[${element[key].join(', ')}]` : element[key] ?? 'none'} onChange=${event => onSet(`${path}[${i}].${key}`, event.target.value)} /></td>`)}</tr>`)}</tbody></table>
    ${list.length > ELEMENTS_SHOWN && html`<p class="muted">and ${list.length - ELEMENTS_SHOWN} more</p>`}</div>`
}

export function Editor({ component, field, value, changed, onSet, onWatch }) {
  const path = `${component}.${field.name}`, name = `${path}${field.unit ? ` in ${field.unit}` : ''}`
  const common = { 'aria-label': name, disabled: field.read_only, class: changed ? 'changed' : '', 'data-path': path }
  const set = text => onSet(path, text)
  const range = field.minimum !== undefined ? `${field.minimum} to ${field.maximum}` : ''
  const isArray = field.count > 1 && field.type !== 'text'
  const text = Array.isArray(value) ? `[${value.map(each => each ?? 'none').join(', ')}]` : value
  const whole = html`<${Input} ...${common} value=${text} onChange=${event => set(event.target.value)} />`
  let editor
  if (isColour(field) && value !== undefined) editor = html`<span class="pair"><input ...${common} type="color" aria-label=${`${name}, as a colour`} value=${hexOf(field, value)} onChange=${event => set(colourText(field, value, event.target.value))} /><${Input} ...${common} value=${text} onChange=${event => set(event.target.value)} /></span>`
  else if (field.type === 'list' && Array.isArray(value) && value.some(each => each && typeof each === 'object')) editor = html`<${Elements} path=${path} value=${value} common=${common} onSet=${onSet} />`
  else if (field.type === 'list') editor = whole
  else if (isArray && field.count <= VECTOR && field.type !== 'entity') editor = html`<span class="vector">${Array.from({ length: field.count }, (_, i) => html`<${Input} ...${common} inputmode="decimal" aria-label=${`${name}, ${i}`} data-path=${`${path}[${i}]`} value=${(value || [])[i]} onChange=${event => onSet(`${path}[${i}]`, event.target.value)} />`)}</span>`
  else if (isArray) editor = whole
  else if (field.type === 'bool') editor = html`<input ...${common} type="checkbox" checked=${value} onChange=${event => set(event.target.checked ? 'true' : 'false')} />`
  else if (isFlags(field)) editor = html`<${Flags} field=${field} value=${value} common=${common} set=${set} />`
  else if (field.values) editor = html`<select ...${common} value=${value} onChange=${event => set(event.target.value)}>${field.values.includes(value) ? '' : html`<option>${value}</option>`}${field.values.map(each => html`<option>${each}</option>`)}</select>`
  else if (field.type === 'entity') editor = html`<span class="pair"><${Input} ...${common} value=${value ?? 'none'} onChange=${event => set(event.target.value)} /><button class="plain link" disabled=${field.read_only} onClick=${() => pick(set)} aria-label=${`choose ${path}`} data-test="pick">choose</button>
    ${value && html`<button class="plain link" onClick=${() => open(value)} aria-label=${`go to ${value}`}>→</button>`}</span>`
  else if (field.type === 'text' || field.type === 'string') editor = whole
  else editor = html`<span class="pair"><${Input} ...${common} inputmode="decimal" value=${value} onChange=${event => set(event.target.value)} />
    ${range && html`<${Input} type="range" min=${field.minimum} max=${field.maximum} step="any" value=${value} aria-label=${`${name}, ${range}`} disabled=${field.read_only} onChange=${event => set(event.target.value)} />`}</span>`
  const isCurve = onWatch && field.count === 1 && !/text|string|list/.test(field.type)
  return html`<tr><th scope="row">${field.name}</th><td>${editor}</td><td class="muted">${isColour(field) || isFlags(field) ? '' : field.unit || ''} ${range}${isCurve && html` <button class="plain watch" title="watch as a curve" aria-label=${`watch ${path}`} onClick=${() => onWatch(path)} data-test="watch">∿</button>`}</td></tr>`
}
