// SPDX-License-Identifier: MIT
// Copyright (c) 2026 The Quern authors
//
// Makes ../page.html: style and code in one file, and a policy that permits only them and the server's own address.
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { build } from 'esbuild'

const bundle = await build({ entryPoints: ['app.js'], bundle: true, minify: true, write: false, target: 'es2020', format: 'iife', legalComments: 'none' })
const styles = await build({ stdin: { contents: readFileSync('node_modules/uplot/dist/uPlot.min.css', 'utf8') + readFileSync('style.css', 'utf8'), loader: 'css' }, minify: true, write: false })
const code = bundle.outputFiles[0].text.replaceAll('</script', '<\\/script').trim(), style = styles.outputFiles[0].text.trim()
const hash = text => `'sha256-${createHash('sha256').update(text).digest('base64')}'`
const policy = `default-src 'none'; script-src ${hash(code)}; style-src ${hash(style)}; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'`
writeFileSync('../page.html', `<!doctype html>
<html lang="en">
<!-- SPDX-License-Identifier: MIT. Made by scripts/build_inspect_page.sh from inspect/page; contains Preact, htm (Apache-2.0) and uPlot (MIT). -->
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta http-equiv="Content-Security-Policy" content="${policy}">
<title>Quern inspector</title><link rel="icon" href="data:,">
<style>${style}</style>
<body><div id="app"></div><noscript>The inspector needs JavaScript.</noscript>
<script>${code}</script>
`)
