// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// node look.mjs SWARM ROOT CHROMIUM [PICTURES]: opens every view of the inspector's page in a browser, edits a value,
// scrubs, compares and steps. With PICTURES, writes a picture of each view to that folder.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'

const [swarm, root, browserPath, pictures] = process.argv.slice(2)
let chromium
try {
  ({ chromium } = createRequire(resolve(root, 'inspect/page/index.js'))('playwright-core'))
} catch {
  console.log('skipped: playwright-core is not installed; run npm ci in inspect/page')
  process.exit(77)
}
if (!existsSync(browserPath)) {
  console.log(`skipped: there is no browser at ${browserPath}`)
  process.exit(77)
}
const check = (holds, what) => { if (!holds) throw new Error(what) }
// The content policy of the page forbids the browser's own polling, which compiles text.
const until = async (what, holds) => {
  for (let i = 0; i < 200; i++) {
    if (await holds()) return
    await new Promise(done => setTimeout(done, 50))
  }
  throw new Error(`did not happen: ${what}`)
}
const program = spawn(swarm, ['--inspect', '--entities', pictures ? '20000' : '3000', '--threads', '2'])
const url = await new Promise(done => program.stdout.on('data', data => done(String(data).split(/\s/)[1])))
let failed = 1
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: 'light' })
  const errors = [], outside = []
  page.on('pageerror', error => errors.push(String(error)))
  page.on('console', message => { if (message.type() === 'error') errors.push(message.text()) })
  page.on('request', request => { if (!request.url().startsWith(url) && !request.url().startsWith('data:')) outside.push(request.url()) })
  const test = name => page.locator(`[data-test="${name}"]`)
  const picture = async name => {
    if (!pictures) return
    await page.mouse.move(5, 5)
    await page.mouse.wheel(0, -5000)
    await page.waitForTimeout(200)
    await page.screenshot({ path: `${pictures}/inspector_${name}.png` })
  }
  const api = async (method, path) => {
    const answer = await page.request.fetch(`${url}api/${path}`, { method })
    return answer.json()
  }
  await page.goto(url)
  await page.waitForSelector('main table tbody tr')
  const budget = page.locator('input[type=number]').first()
  await budget.fill('0.0001')
  await budget.press('Tab')
  await page.waitForSelector('[data-scale=logarithmic] canvas')
  await budget.fill('16.7')
  await budget.press('Tab')
  await page.waitForSelector('[data-scale=linear] canvas')
  await test('record').click()
  await page.waitForSelector('svg.flames rect')
  await page.waitForTimeout(pictures ? 3000 : 100)
  await picture('frame')
  await test('tab-schedule').click()
  await page.waitForSelector('svg.graph rect')
  await test('capture').click()
  await page.waitForSelector('.columns i')
  check(await page.locator('svg.graph .edge text').count() > 0, 'no reasons on edges')
  check((await page.locator('svg.graph .edge text').first().textContent()).length > 3, 'the reason of an edge is empty')
  await picture('schedule')
  const waits = (await api('GET', 'schedule')).edges.flat().at(-1).after
  await page.keyboard.press('/')
  await test('find').fill(waits)
  await page.waitForSelector('[data-test=found]')
  await page.keyboard.press('Enter')
  await page.waitForSelector('[data-test=edges] tbody tr')
  check(await page.locator('[data-test=edges] tbody tr').count() > 0, `no edges lead to ${waits}`)
  await test('pause').click()
  await until('a pause', async () => (await test('frame').textContent()).includes('paused'))
  await test('tab-entities').click()
  await test('by-query').click()
  await test('search').fill('Hunter')
  await page.waitForTimeout(1000)
  await test('node').first().click()
  const input = page.locator('input[data-path="Energy.value"]')
  await input.fill('0.75')
  await input.press('Tab')
  const entity = (await page.locator('.node.chosen').first().textContent()).trim().slice(1)
  for (let i = 0; i < 20 && (await api('GET', `entity?entity=${entity}`)).values.components.Energy.value !== 0.75; i++) await page.waitForTimeout(50)
  check((await api('GET', `entity?entity=${entity}`)).values.components.Energy.value === 0.75, 'the edit is not in the world')
  await page.locator('input[data-path="Energy.value"]').fill('many')
  await page.locator('input[data-path="Energy.value"]').press('Tab')
  await page.waitForSelector('[role=alert]')
  await page.locator('[role=alert] button').click()
  await until('no error after it was closed', async () => await page.locator('[role=alert]').count() === 0)
  await page.locator('input[data-path="Energy.value"]').fill('more')
  await page.locator('input[data-path="Energy.value"]').press('Tab')
  await page.waitForSelector('[role=alert]')
  await test('tab-events').click()
  await until('no error in another view', async () => await page.locator('[role=alert]').count() === 0)
  await test('tab-entities').click()
  await test('by-tree').click()
  await test('next').click()
  await picture('entities')
  await test('tab-archetypes').click()
  await page.waitForSelector('.chunks i')
  await picture('archetypes')
  await test('tab-events').click()
  await page.waitForTimeout(200)
  await picture('events')
  await test('tab-commands').click()
  await page.waitForSelector('[data-test=no-commands]')
  await test('step').click()
  await page.waitForSelector('[data-test=single-commands] tbody tr')
  await picture('commands')
  await test('step').click()
  await test('tab-history').click()
  await test('compare').click()
  await page.waitForSelector('main table tbody tr')
  await picture('history')
  const before = await api('GET', 'hash')
  const slider = test('scrub')
  for (const frame of [before.frame - 3, before.frame - 1, before.frame - 2, before.frame]) {
    await slider.fill(String(frame))
    await until(`frame ${frame}`, async () => (await test('frame').textContent()).replace(/,/g, '') === `frame ${frame} paused`)
  }
  await slider.fill(String(before.frame - 2))
  await page.waitForSelector('[data-test=later]')
  await slider.fill(String(before.frame))
  await until('the present', async () => await test('later').count() === 0)
  check((await api('GET', 'hash')).hash === before.hash, 'scrubbing there and back changed the hash')
  await page.keyboard.press('1')
  check(await test('tab-frame').getAttribute('aria-selected') === 'true', 'the key 1 does not open the first view')
  await page.setViewportSize({ width: 420, height: 900 })
  await page.emulateMedia({ colorScheme: 'dark' })
  await page.waitForTimeout(300)
  const width = await page.locator('html').evaluate(element => element.scrollWidth)
  check(width <= 420, `the page is ${width} pixels wide`)
  await picture('narrow')
  await test('pause').click()
  check(errors.filter(error => !error.includes('status of 4')).length === 0, errors.join('\n'))
  check(outside.length === 0, `requests left the machine: ${outside}`)
  console.log('every view opened; edit, scrub, compare and step worked')
  failed = 0
} catch (error) {
  console.log(error.message)
} finally {
  await browser.close()
  program.kill('SIGTERM')
}
process.exit(failed)
