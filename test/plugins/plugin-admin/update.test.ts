import { existsSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { pack } from '../../support/plugin-registry.ts'
import { greeter, openStage } from './stage.ts'
import type { Stage } from './stage.ts'

let stage: Stage
beforeAll(async () => {
  stage = await openStage()
})
afterAll(() => stage[Symbol.asyncDispose]())

async function install(files: Readonly<Record<string, string>>, more: object = { accept_permissions: true }) {
  const path = await stage.file('greeter.tgz', pack(files))
  return stage.call('POST', '/api/plugins/install', { path, update: true, ...more })
}
const greeting = async (): Promise<unknown> => (await stage.call('GET', '/api/greeter')).body.text
const status = async () => (await stage.call('GET', '/api/plugins/greeter')).body

/** Sends requests one after the other until the work has ended; each answer but 200 is kept. */
async function underTraffic<T>(
  work: () => Promise<T>,
): Promise<{ readonly result: T; readonly failed: readonly number[] }> {
  const done = new AbortController()
  const failed: number[] = []
  let sent = 0
  const send = async (): Promise<void> => {
    while (!done.signal.aborted) {
      const { status: code } = await stage.call('GET', '/api/greeter')
      sent++
      // Answers without a port come in microtasks: let the rest of the process have its turn.
      await setImmediate()
      if (code !== 200) failed.push(code)
    }
  }
  const traffic = [send(), send(), send()]
  const result = await work().finally(() => done.abort())
  await Promise.all(traffic)
  expect(sent).toBeGreaterThan(10)
  return { result, failed }
}

describe('an update under traffic', () => {
  it('asks for what it uses beyond the version before, and then no request fails', async () => {
    await install(greeter('one'))
    const wider = greeter('two', {
      version: '1.1.0',
      uses: "{ routes: ['/api/greeter'], jobs: true, hosts: ['example.org'] }",
    })
    const asked = await install(wider, { accept: ['route:/api/greeter'] })
    expect(asked).toMatchObject({
      status: 409,
      body: {
        error: {
          details: {
            reason: 'permissions_required',
            added: ['host:example.org', 'jobs'],
            missing: ['host:example.org', 'jobs'],
          },
        },
      },
    })
    expect(await greeting()).toBe('one')
    const { result, failed } = await underTraffic(() => install(wider, { accept: ['host:example.org', 'jobs'] }))
    expect(result).toMatchObject({ status: 201, body: { status: 'updated', version: '1.1.0' } })
    expect(failed).toEqual([])
    expect(await greeting()).toBe('two')
    expect((await stage.audited()).join('\n')).toContain('plugin "greeter" updated from 1.0.0 to 1.1.0')
  })

  it.each([
    ['setup throws', greeter('three', { version: '1.2.0', more: "throw new Error('broken setup')" }), 'broken setup'],
    ['it does what it does not declare', greeter('three', { version: '1.2.0', uses: '{}' }), 'uses'],
  ])('is taken back when %s: the version before never stops', async (_what, files, message) => {
    const { result, failed } = await underTraffic(() => install(files))
    expect([result.status, result.body.error.message]).toEqual([409, expect.stringContaining(message)])
    expect(result.body.error.details).toMatchObject({ rolled_back: true })
    expect(failed).toEqual([])
    expect(await greeting()).toBe('two')
    expect(await status()).toMatchObject({
      version: '1.1.0',
      state: 'loaded',
      installed: { accepted_permissions: ['host:example.org', 'jobs', 'route:/api/greeter'] },
    })
    // The folder is the one before, also for the next start.
    await stage.call('POST', '/api/plugins/greeter/reload')
    expect(await greeting()).toBe('two')
    expect((await readdir(join(stage.home, 'plugins'))).filter((name) => name.startsWith('.'))).toEqual([])
    expect((await stage.audited()).join('\n')).toContain(
      'plugin "greeter" 1.2.0 was not installed, the state before is back',
    )
  })
})

it('an older version takes the place of a newer one when it is sent as an update', async () => {
  expect((await install(greeter('older', { version: '1.0.5' }))).body).toMatchObject({ status: 'updated' })
  expect(await greeting()).toBe('older')
  expect((await stage.audited()).join('\n')).toContain('plugin "greeter" updated from 1.1.0 to 1.0.5')
})

it('a plugin that another one needs is removed only with force', async () => {
  const token = "defineService<{ word(): string }>()('shared-word')"
  const text = (name: string, members: string, setup: string) => `import * as v from 'valibot'
import { definePlugin, defineService } from 'svc/sdk'
export default definePlugin({ name: '${name}', version: '1.0.0', config: v.object({}), uses: {}, ${members},
  setup() { ${setup} } })`
  for (const [name, members, setup] of [
    ['giver', `provides: { it: ${token} }`, "return { it: { word: () => 'hi' } }"],
    ['taker', `requires: { it: ${token} }`, 'return {}'],
  ] as const)
    expect(await install({ 'index.ts': text(name, members, setup) })).toMatchObject({ status: 201 })
  const remove = (body: object) => stage.call('POST', '/api/plugins/uninstall', body)
  const refused = await remove({ name: 'giver' })
  expect([refused.status, refused.body.error.message]).toEqual([409, expect.stringContaining('needed by taker')])
  expect((await remove({ name: 'giver', force: true })).status).toBe(200)
  expect((await stage.call('GET', '/api/plugins/taker')).body).toMatchObject({ state: 'failed' })
  expect((await remove({ name: 'taker' })).status).toBe(200)
})

it('dependencies that break the plugin are taken back', async () => {
  const { registry, call } = stage
  registry.publish('lib', '1.0.0', pack({ 'index.js': "module.exports = 'sound'" }))
  const files = greeter('x', { name: 'dependent', uses: "{ routes: ['/api/greeter'] }" })
  files['package.json'] = JSON.stringify({ dependencies: { lib: '^1.0.0' } })
  files['index.ts'] = `import lib from 'lib'\n${files['index.ts']}`
    .replace("text: 'x'", 'text: lib')
    .replaceAll('/api/greeter', '/api/dependent')
  expect((await install(files)).status).toBe(201)
  const text = async (): Promise<unknown> => (await call('GET', '/api/dependent')).body.text
  expect(await text()).toBe('sound')

  registry.publish('broken-lib', '1.0.0', pack({ 'index.js': "throw new Error('broken lib')" }))
  const folder = join(stage.home, 'plugins', 'dependent')
  await writeFile(join(folder, 'package.json'), JSON.stringify({ dependencies: { 'broken-lib': '1' } }))
  await writeFile(join(folder, 'index.ts'), `import 'broken-lib'\n${files['index.ts']}`)
  expect(await call('POST', '/api/plugins/dependent/install-deps', {})).toMatchObject({
    status: 409,
    body: {
      error: { message: expect.stringContaining('broken lib') as string, details: { rolled_back: true } },
    },
  })
  expect(await text()).toBe('sound')
  expect(await readdir(join(folder, 'node_modules'))).toEqual(['lib'])
  await writeFile(join(folder, 'index.ts'), files['index.ts'])
  expect((await call('POST', '/api/plugins/dependent/reload')).status).toBe(200)
  expect(await text()).toBe('sound')
  const { body } = await call('GET', '/api/plugins/dependent')
  expect(body).toMatchObject({ state: 'loaded', error: null })
  const plugins = await readdir(join(stage.home, 'plugins'))
  expect(plugins.filter((name) => name.startsWith('.'))).toEqual([])
  expect((await stage.audited()).join('\n')).toContain('dependencies of plugin "dependent" were not installed')
  expect((await call('POST', '/api/plugins/uninstall', { name: 'dependent' })).status).toBe(200)
})

it('a removal under traffic lets running requests end, and leaves no file', async () => {
  const answers: number[] = []
  const requests = Array.from({ length: 20 }, async () => {
    answers.push((await stage.call('GET', '/api/greeter')).status)
  })
  const removed = await stage.call('POST', '/api/plugins/uninstall', { name: 'greeter' })
  await Promise.all(requests)
  expect(removed).toMatchObject({ status: 200, body: { removed: true } })
  expect(new Set(answers).difference(new Set([200, 404]))).toEqual(new Set())
  expect((await stage.call('GET', '/api/greeter')).status).toBe(404)
  expect(existsSync(join(stage.home, 'plugins', 'greeter'))).toBe(false)
  expect((await stage.call('POST', '/api/plugins/uninstall', { name: 'greeter' })).status).toBe(404)
  expect((await stage.call('POST', '/api/plugins/uninstall', { name: 'audit' })).body.error.message).toContain(
    'is built in',
  )
})

it('a request that runs when the removal begins gets its answer, and the removal waits for it', async () => {
  const begun = Promise.withResolvers<void>()
  Object.assign(globalThis, { onSlowRequest: begun.resolve })
  const files = greeter('late', { name: 'slow' })
  files['index.ts'] = (files['index.ts'] ?? '').replace('setup({ routes,', 'setup({ leaving, routes,').replace(
    "() => ({ text: 'late' })",
    `async () => {
        globalThis.onSlowRequest()
        await new Promise((resolve) => leaving.addEventListener('abort', resolve))
        return { text: 'late' }
      }`,
  )
  expect((await install(files)).status).toBe(201)
  const request = stage.call('GET', '/api/greeter')
  await begun.promise
  expect((await stage.call('POST', '/api/plugins/uninstall', { name: 'slow' })).status).toBe(200)
  expect(await request).toMatchObject({ status: 200, body: { text: 'late' } })
  expect((await stage.call('GET', '/api/greeter')).status).toBe(404)
})
