// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// node look_large.mjs LARGE ROOT CHROMIUM [PICTURES]: uses the inspector's page on a program with 200 systems, 1,000
// archetypes and a deep tree: finds, folds, filters, sorts, edits, undoes, watches, stops. With PICTURES, writes a picture
// of each view to that folder, wide and narrow, light and dark.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'

const [large, root, browserPath, pictures] = process.argv.slice(2)
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
const TALLEST = 6000 // pixels of a page, whatever is unfolded
const check = (holds, what) => { if (!holds) throw new Error(what) }
const until = async (what, holds) => {
  for (let i = 0; i < 1200; i++) { // a minute: other tests may take the processors
    if (await holds()) return
    await new Promise(done => setTimeout(done, 50))
  }
  throw new Error(`did not happen: ${what}`)
}
const program = spawn(large, [pictures ? '100000' : '20000'])
const url = await new Promise(done => program.stdout.on('data', data => done(String(data).split(/\s/)[1])))
let failed = 1
const browser = await chromium.launch({ executablePath: browserPath, args: ['--no-sandbox', '--disable-gpu'] })
try {
  const page = await browser.newPage({ viewport: { width: 1400, height: 900 }, colorScheme: 'light' })
  const errors = []
  page.on('pageerror', error => errors.push(String(error)))
  page.on('console', message => { if (message.type() === 'error') errors.push(message.text()) })
  const test = name => page.locator(`[data-test="${name}"]`)
  const api = async (method, path) => (await page.request.fetch(`${url}api/${path}`, { method })).json()
  // Holds the answer to a request back: `asked` is when the program has answered, answer() when the page has got it.
  const hold = async pattern => {
    const gate = () => { let open; const opened = new Promise(done => { open = done }); return { open, opened } }
    const [asked, answered, got] = [gate(), gate(), gate()]
    await page.route(pattern, async route => {
      const response = await route.fetch()
      asked.open()
      await answered.opened
      await route.fulfill({ response })
      got.open()
    })
    const answer = async () => { answered.open(); await got.opened; await page.waitForTimeout(200); await page.unroute(pattern) }
    return { asked: asked.opened, answer }
  }
  const looks = [[1400, 'light'], [1400, 'dark'], [420, 'light'], [420, 'dark']]
  // In each look, nothing is wider than the page, and the page is not endless.
  const look = async name => {
    for (const [width, colorScheme] of looks) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme })
      const size = await page.locator('html').evaluate(element => [element.scrollWidth, element.scrollHeight])
      check(size[0] <= width, `${name} is ${size[0]} pixels wide at ${width}`)
      check(size[1] <= TALLEST, `${name} is ${size[1]} pixels high at ${width}`)
      if (!pictures) continue
      await page.waitForTimeout(250)
      await page.screenshot({ path: `${pictures}/large_${name}_${width}_${colorScheme}.png` })
    }
    await page.setViewportSize({ width: 1400, height: 900 })
    await page.emulateMedia({ colorScheme: 'light' })
  }
  const find = async (text, chosen, key = 'Control+k') => {
    await page.keyboard.press(key)
    await test('find').fill(text)
    await until(`${text} is found`, async () => (await test('found').allTextContents()).some(each => each.startsWith(chosen)))
    const at = (await test('found').allTextContents()).findIndex(each => each.startsWith(chosen))
    for (let i = 0; i < at; i++) await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    check(await test('find').count() === 0, 'the search stays open')
  }
  await page.goto(url)
  await page.waitForSelector('main table tbody tr')
  check((await page.locator('.figures').first().textContent()).includes('95 %'), 'no percentiles')
  await look('frame')
  await test('minutes').click()
  await until('seconds', async () => (await page.locator('.figures').first().textContent()).includes('longest'))
  await look('minutes')
  await test('frames').click()

  // One search over everything, by keyboard alone.
  await find('spread power', 'spread power', '/')
  await until('the system is shown', async () => (await test('system-name').textContent()) === 'spread power')
  check(await page.locator('tr.chosen').count() === 1, 'the system is not marked in its phase')
  // A budget of a system marks it in the list of the frame.
  await test('system-budget').fill('0.0000001')
  await test('system-budget').press('Tab')
  await find('sort police', 'sort police')
  await test('system-budget').fill('0.0000001')
  await test('system-budget').press('Tab')
  await test('tab-frame').click()
  await until('a mark', async () => (await test('over').textContent()).includes('sort police'))
  await look('budgets')
  await find('sort police', 'sort police')
  await until('the further query of the system', async () => (await page.locator('section.detail').textContent()).includes('query sleepers'))
  await page.keyboard.press('Control+k')
  await test('find').fill('energy')
  await until('kinds', async () => (await page.locator('.find [role=group]').count()) >= 3)
  await look('find')
  await page.keyboard.press('Escape')
  await find('Weather', 'Weather')
  await until('the resource is shown', async () => (await test('type-name').textContent()) === 'Weather')
  check((await test('users').count()) > 0, 'no system reads the resource')
  await find('branch99', 'branch99')
  await until('the entity is shown', async () => (await page.locator('section.entity h2').textContent()).startsWith('branch99'))
  await find('0:1', 'house 0')
  await until('an entity by its handle', async () => (await page.locator('section.entity h2').textContent()) === 'house 0')

  // An answer to an earlier search that comes later than that to the next one is not shown.
  const search = await hold(/api\/entities\?.*name=house/)
  await test('by-name').click()
  await test('search').fill('house 1')
  await search.asked
  await test('search').fill('branch9')
  await until('what was searched last', async () => (await test('node').allTextContents()).some(each => each.startsWith('branch9')))
  await search.answer()
  check((await test('node').allTextContents()).every(each => each.includes('branch9')), 'a late answer replaces a newer one')
  await test('by-tree').click()

  // Which systems match, and why others do not.
  await test('matches').click()
  await until('systems that match', async () => (await test('matching').locator('button').count()) > 0)
  check((await test('failing').locator('tr').first().textContent()).includes('it '), 'no reason')
  await look('entity')

  // The schedule folds, by phases and by sets.
  await test('tab-schedule').click()
  await page.waitForSelector('[data-test=group]')
  await test('unfold').click()
  await until('all systems', async () => (await test('system').count()) === 200)
  check((await page.locator('main').textContent()).includes('1 of 2'), 'no turns of systems')
  check(await page.locator('p.sync').count() >= 5, 'no sync points')
  check((await page.locator('p.sync').allTextContents()).some(text => text.includes('sees the commands of')), 'a sync point without its reason')
  await look('schedule')
  await test('fold').click()
  await until('none', async () => (await test('system').count()) === 0)
  await test('group-sets').click()
  await until('twenty sets', async () => (await test('group').count()) === 20)
  await look('sets')
  await test('group-phases').click()
  await test('filter-systems').fill('decay rail')
  await until('one system', async () => (await test('system').count()) === 1)
  await test('system').click()
  await test('draw').click()
  await page.waitForSelector('svg.graph rect')
  await look('picture')
  await test('filter-systems').fill('')

  // Single commands, by sync point and by system.
  await test('tab-commands').click()
  await page.waitForSelector('[data-test=single-commands] tbody tr')
  await test('command-system').fill('spread power')
  await until('no command of the system', async () => (await test('command-count').textContent()).includes('none'))
  await test('command-system').fill('sort animals')
  await until('commands of the system', async () => (await test('single-commands').locator('tbody tr').count()) > 0)
  await test('command-system').fill('')
  await test('command-sync').selectOption('0')
  await look('commands')

  // Archetypes, the largest first.
  await test('tab-archetypes').click()
  await page.waitForSelector('.chunks i')
  check(/of 1,0\d\d,/.test(await test('archetype-count').textContent()), 'not all archetypes are read')
  await test('filter-archetypes').fill('Part03 Part04')
  await until('few archetypes', async () => (await page.locator('.archetype').count()) <= 2)
  await test('order-archetypes').selectOption('memory')
  await test('filter-archetypes').fill('')
  await look('archetypes')

  // A table: sorted, filtered, scrolled, edited.
  await find('Energy', 'Energy')
  await test('show-entities').click()
  await page.waitForSelector('.grid tbody tr td')
  const cells = path => page.locator(`[data-cell="${path}"]`)
  const numbers = async path => (await cells(path).evaluateAll(list => list.map(each => Number(each.value))))
  await test('pause').click()
  await until('a pause', async () => (await test('frame').textContent()).includes('paused'))
  await test('sort').first().click()
  await test('table-where').fill('Energy.value >= 20, Energy.value < 30')
  await until('sorted and filtered', async () => { const list = await numbers('Energy.value'); return list.length > 20 && list.every((each, i) => each >= 20 && each < 30 && (i === 0 || each >= list[i - 1])) })
  await test('sort').first().click()
  await until('descending', async () => { const list = await numbers('Energy.value'); return list[0] > list[list.length - 1] })
  await test('table-where').fill('')
  const all = pictures ? 100000 : 20000
  await until('all rows', async () => (await test('table-count').textContent()).startsWith(all.toLocaleString('en')))
  await page.locator('.grid').evaluate(element => { element.scrollTop = element.scrollHeight })
  await until('the last rows', async () => (await page.locator('.grid tbody tr[aria-rowindex]').last().getAttribute('aria-rowindex')) === String(all))
  await page.locator('.grid').evaluate(element => { element.scrollTop = 0 })
  await until('the first rows', async () => (await page.locator('.grid tbody tr[aria-rowindex]').first().getAttribute('aria-rowindex')) === '1')
  await test('sort').first().click()
  await until('not sorted', async () => (await page.locator('.grid tbody tr[aria-rowindex]').first().textContent()).includes('house 0'))
  await cells('Energy.value').first().fill('7.5')
  await cells('Energy.value').first().press('Tab')
  await until('the edit', async () => (await api('GET', 'entity?entity=0:1')).values.components.Energy.value === 7.5)
  await test('choose').nth(1).click()
  await test('choose').nth(4).click({ modifiers: ['Shift'] })
  await until('four are chosen', async () => (await test('actions').textContent()).startsWith('4 entities'))
  await look('table')
  await page.getByLabel('add to all').selectOption('Asleep')
  await until('the tag of four', async () => (await Promise.all(['1:1', '4:1'].map(entity => api('GET', `entity?entity=${entity}`)))).every(entity => 'Asleep' in entity.values.components))

  // Each edit is taken back by itself, the last one first.
  const edits = async () => (await api('GET', 'watch')).edit_count
  check(await edits() === 5, `${await edits()} edits`)
  await test('undo').click()
  await until('four edits', async () => (await edits()) === 4)
  check((await api('GET', 'entity?entity=0:1')).values.components.Energy.value === 7.5, 'undo took back more than one edit')
  for (let i = 3; i >= 0; i--) {
    await until('undo', async () => (await test('undo').count()) === 1)
    await page.waitForTimeout(200)
    await test('undo').click()
    await until(`${i} edits`, async () => (await edits()) === i)
  }
  check((await api('GET', 'entity?entity=0:1')).values.components.Energy.value !== 7.5, 'the first edit stays')

  // Create, copy, add, relate, destroy.
  await test('create').selectOption('empty')
  await until('a new entity', async () => (await page.locator('section.entity h2').textContent()).startsWith('#'))
  const made = (await page.locator('section.entity h2').textContent()).slice(1)
  await test('add').fill('Part09')
  await until('a component', async () => 'Part09' in (await api('GET', `entity?entity=${made}`)).values.components)
  await test('target').fill('0:1')
  await test('relate').click()
  await until('a parent', async () => (await api('GET', `entity?entity=${made}`)).relations.some(relation => relation.targets.some(target => target.entity === '0:1')))
  await test('copy').click()
  await until('a copy', async () => (await page.locator('section.entity h2').textContent()) !== `#${made}`)
  // The answer to the destruction comes when another entity is chosen, which stays chosen.
  const destruction = await hold(/api\/destroy\?/)
  await test('destroy').click()
  await test('create').selectOption({ index: 2 })
  await until('an instance', async () => (await page.locator('input[data-path="Link.note"]').count()) === 1 && (await page.locator('input[data-path="Link.note"]').inputValue()) === 'part of a tree')
  await destruction.answer()
  check(await page.locator('input[data-path="Link.note"]').count() === 1, 'the end of another entity closes the chosen one')

  // An editor for each kind of field.
  await find('branch5', 'branch5')
  await until('the entity', async () => (await page.locator('section.entity h2').textContent()) === 'branch5')
  const paint = async () => (await api('GET', 'entity?entity=/' + Array.from({ length: 6 }, (_, i) => `branch${i}`).join('/'))).values.components.Paint
  await page.locator('input[data-path="Paint.colour"][type=color]').fill('#0000ff')
  await until('a colour', async () => JSON.stringify((await paint()).colour) === '[0,0,1]')
  await page.locator('input[data-path="Paint.place[1]"]').fill('7')
  await page.locator('input[data-path="Paint.place[1]"]').press('Tab')
  await until('a part of a vector', async () => (await paint()).place[1] === 7)
  await page.getByLabel('Paint.traits in flags: wet').click()
  await until('a flag', async () => (await paint()).traits === 7)
  await page.locator('input[data-path="Paint.spots[1].y"]').fill('9')
  await page.locator('input[data-path="Paint.spots[1].y"]').press('Tab')
  await until('an element', async () => (await paint()).spots[1].y === 9)
  await test('pick').click()
  await test('find').fill('house 77')
  await until('an entity to choose', async () => (await test('found').allTextContents()).some(each => each.startsWith('house 77')))
  await page.keyboard.press('Enter')
  await until('the chosen entity', async () => (await page.locator('input[data-path="Link.other"]').inputValue()) === '/house 77')
  await look('editors')

  // A field as a curve, and a condition that stops the program.
  await find('0:1', 'house 0')
  await until('the entity', async () => (await page.locator('section.entity h2').textContent()) === 'house 0')
  await page.getByLabel('watch Energy.value').click()
  await test('pause').click()
  await until('a curve', async () => (await test('curve').count()) === 1)
  await page.waitForTimeout(500)
  await test('where').fill('Energy.value > 99')
  await test('break').click()
  await until('a stop', async () => (await test('stopped').count()) === 1)
  await look('stopped')
  await test('frame-before').click()
  await until('the frame before', async () => (await test('stopped').textContent()).startsWith('Before frame'))
  check((await api('GET', 'entity?entity=0:1')).values.components.Energy.value <= 99, 'the condition is true in the frame before')
  await page.keyboard.press('.')
  await until('a stop again', async () => (await test('stopped').textContent()).startsWith('After frame'))

  // A change of the entity stops it, too.
  await until('no stop', async () => { for (const probe of (await api('GET', 'probes')).probes) await api('POST', `unprobe?probe=${probe.probe}`); return true })
  await test('change-of').selectOption('Energy.value')
  await test('break-change').click()
  await test('step').click()
  await until('a stop at a change', async () => (await test('stopped').count()) === 1 && /Energy.value of 0:1 changed/.test(await test('stopped').textContent()))

  // Comparison with a filter; the panel of the program.
  await test('step').click()
  await test('tab-history').click()
  await test('compare').click()
  await page.waitForSelector('main table tbody tr')
  await test('filter-changes').fill('changed energy')
  await until('changes of one component', async () => { const list = await page.locator('main table tbody tr td:nth-child(3)').allTextContents(); return list.length > 0 && list.every(each => each === 'Energy') })
  await look('compare')
  const download = async locator => { const [file] = await Promise.all([page.waitForEvent('download'), locator.click()]); return [file.suggestedFilename(), readFileSync(await file.path())] }
  const [archiveName, archive] = await download(test('save-archive'))
  check(/^frame_\d+\.archive$/.test(archiveName) && archive.length > 100000, `${archiveName} has ${archive.length} bytes`)
  await page.getByLabel('next').fill('3')
  await page.getByLabel('next').press('Tab')
  await test('record-case').click()
  await until('a test case', async () => (await test('case').count()) === 1)
  const files = []
  for (const link of await test('case').locator('a').all()) files.push(await download(link))
  check(files.map(([name]) => name.split('.')[1]).join() === 'archive,replay,c', files.map(([name]) => name).join())
  check(String(files[2][1]).includes(`#define ARCHIVE "${files[0][0]}"`), 'the program of the case names another archive')
  await look('saved')
  await test('tab-panels').click()
  await page.waitForSelector('[data-test=panel] tbody tr')
  check(await page.locator('[data-test=panel] button.link').count() === 3, 'systems of modules are no links')
  await look('panels')
  await page.locator('[data-test=panel] button.link').first().click()
  await until('the system of a module', async () => (await test('system-name').textContent()) === 'gather animals')
  check(errors.filter(error => !error.includes('status of 4')).length === 0, errors.join('\n'))
  console.log('found, folded, sorted, edited, took back, watched, stopped')
  failed = 0
} catch (error) {
  console.log(error.message)
  if (pictures) await browser.contexts()[0].pages()[0].screenshot({ path: `${pictures}/failed.png` })
} finally {
  await browser.close()
  program.kill('SIGTERM')
}
process.exit(failed)
