import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { pluginText, routeText, temporaryFolder } from '../../support/plugin-folder.ts'

// What Node loads itself stays in its caches: a reload must not run the old code of it.

let host: TestHost
let outside: Awaited<ReturnType<typeof temporaryFolder>>
beforeAll(async () => {
  host = await startHost({ plugins: [], listen: false, memory: true })
  outside = await temporaryFolder()
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await outside[Symbol.asyncDispose]()
})

async function write(folder: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await writeFile(join(folder, name), text)
  }
}
/** A plugin whose route answers with `text` of what `imports` imports. */
const plugin = (name: string, imports: string) =>
  pluginText(name, {
    before: imports,
    setup: `${routeText(`/api/${name}`, 'x').replace('"x"', 'String(text)')}; return {}`,
  })
const text = async (name: string): Promise<unknown> => (await host.json('GET', `/api/${name}`)).body.text

interface Case {
  readonly imports: string
  readonly files: Readonly<Record<string, string>>
  readonly edit: Readonly<Record<string, string>>
}
const cases: Readonly<Record<string, Case>> = {
  commonjs: {
    imports: `import { text } from './lib.cjs'`,
    files: { 'lib.cjs': `exports.text = 'old'` },
    edit: { 'lib.cjs': `exports.text = 'new'` },
  },
  required: {
    imports: `import { text } from './one.cjs'`,
    files: { 'one.cjs': `exports.text = require('./two.cjs')`, 'two.cjs': `module.exports = 'old'` },
    edit: { 'two.cjs': `module.exports = 'new'` },
  },
  json: {
    imports: `import { text } from './data.json'`,
    files: { 'data.json': '{"text":"old"}' },
    edit: { 'data.json': '{"text":"new"}' },
  },
  nested: {
    imports: `import { text } from 'outer'`,
    files: {
      'node_modules/outer/package.json': '{"main":"main.js"}',
      'node_modules/outer/main.js': `exports.text = require('inner').text`,
      'node_modules/outer/node_modules/inner/index.js': `exports.text = require('./data.json').text`,
      'node_modules/outer/node_modules/inner/data.json': '{"text":"old"}',
    },
    edit: { 'node_modules/outer/node_modules/inner/data.json': '{"text":"new"}' },
  },
  modules: {
    imports: `import { text } from 'esm'`,
    files: {
      'node_modules/esm/package.json': '{"type":"module","exports":"./main.js"}',
      'node_modules/esm/main.js': `export { text } from './deep.js'`,
      'node_modules/esm/deep.js': `import lib from './lib.cjs'; export const text = await Promise.resolve(lib.text)`,
      'node_modules/esm/lib.cjs': `exports.text = require('./part.cjs')`,
      'node_modules/esm/part.cjs': `module.exports = 'old'`,
    },
    edit: { 'node_modules/esm/part.cjs': `module.exports = 'new'` },
  },
  moved: {
    imports: `import { text } from 'moved'`,
    files: {
      'node_modules/moved/package.json': '{"main":"old.js"}',
      'node_modules/moved/old.js': `exports.text = 'old'`,
    },
    edit: {
      'node_modules/moved/package.json': '{"main":"new.js"}',
      'node_modules/moved/old.js': `throw new Error('not the main file any more')`,
      'node_modules/moved/new.js': `exports.text = 'new'`,
    },
  },
}

describe('a reload runs the present code of what Node loads', () => {
  it.each(Object.entries(cases))('%s', async (name, { imports, files, edit }) => {
    const folder = join(host.home, name)
    await write(folder, { 'index.ts': plugin(name, imports), ...files })
    await host.app.host.load(folder)
    expect(await text(name)).toBe('old')
    await write(folder, edit)
    await host.app.host.reload(name)
    expect(await text(name)).toBe('new')
  })

  it('a file and a package behind links', async () => {
    await write(outside.path, {
      'file.cjs': `exports.text = 'old'`,
      'pack/index.js': `exports.part = require('./part')`,
      'pack/part.js': `module.exports = 'old'`,
    })
    const folder = join(host.home, 'linked')
    const imports = `import { text as file } from './file.cjs'\nimport { part } from 'pack'\nconst text = file + ' ' + part`
    await write(folder, { 'index.ts': plugin('linked', imports), 'node_modules/.keep': '' })
    await symlink(join(outside.path, 'file.cjs'), join(folder, 'file.cjs'))
    await symlink(join(outside.path, 'pack'), join(folder, 'node_modules', 'pack'))
    await host.app.host.load(folder)
    expect(await text('linked')).toBe('old old')
    await write(outside.path, { 'file.cjs': `exports.text = 'new'`, 'pack/part.js': `module.exports = 'new'` })
    await host.app.host.reload('linked')
    expect(await text('linked')).toBe('new new')
  })
})

it('nothing else is loaded anew: another plugin, what did not change, packages of the daemon', async () => {
  const counter = `globalThis.evaluated ??= {}; globalThis.evaluated.NAME = (globalThis.evaluated.NAME ?? 0) + 1; exports.text = globalThis.evaluated.NAME`
  for (const name of ['apart', 'edited'])
    await write(join(host.home, name), {
      'index.ts': plugin(name, `import { text } from './counter.cjs'\nimport './other.cjs'`),
      'counter.cjs': counter.replaceAll('NAME', name),
      'other.cjs': '',
    })
  const require = createRequire(import.meta.url)
  const ws = require('ws') as unknown
  await write(join(host.home, 'edited'), { 'other.cjs': `require(${JSON.stringify(require.resolve('ws'))})` })
  for (const name of ['apart', 'edited']) await host.app.host.load(join(host.home, name))
  await write(join(host.home, 'edited'), { 'other.cjs': `require(${JSON.stringify(require.resolve('ws'))});` })
  for (const name of ['apart', 'edited']) await host.app.host.reload(name)
  expect([await text('apart'), await text('edited')]).toEqual(['1', '2'])
  await host.app.host.reload('edited')
  expect(await text('edited')).toBe('2')
  expect(require('ws')).toBe(ws)
})
