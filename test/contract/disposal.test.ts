import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import { pluginText, routeText, writePlugin } from '../support/plugin-folder.ts'
import { leavesNothing } from './plugin.ts'

const CYCLES = 50

/** Registers something of every kind. */
const everything = pluginText('everything', {
  members: `migrations: [{ id: '1', sql: 'CREATE TABLE everything_it (id TEXT)' }],`,
  setup: `${routeText('/api/everything', 'x')}
    ctx.routes.addSocket(defineSocket({ path: '/api/everything/socket', summary: 'A test', auth: 'public', effect: 'read',
      cost: 1, frameCost: 1, accept: () => ({}), open() {}, frame() {} }))
    ctx.tools.add(defineTool({ name: 'everything', description: 'x', risk: 'read', input: v.object({}), run: async () => '' }))
    ctx.hooks.on(notify('daemon:listening'), () => {})
    ctx.hooks.on(gate('everything:gate'), () => {})
    ctx.jobs.every('tidy', 60_000, async () => {})
    ctx.jobs.cron('nightly', '0 3 * * *', async () => {})
    ctx.metrics.counter('svc_everything_total', 'A test').add()
    ctx.metrics.observed('svc_everything', 'A test', () => [{ value: 1 }])
    ctx.credentials.accept({ name: 'everything', find: () => undefined })
    await ctx.storage.setItem('a', 1)
    await ctx.vault.write('a', 'b')
    await ctx.db.run\`INSERT INTO everything_it (id) VALUES ('a')\`
    const timer = setInterval(() => {}, 60_000)
    ctx.own('timer', () => clearInterval(timer))
    void ctx.run(() => new Promise((resolve) => ctx.leaving.addEventListener('abort', resolve)))
    ctx.signal.addEventListener('abort', () => {})
    return {}`,
})

const broken: readonly (readonly [name: string, setup: string, message: RegExp])[] = [
  ['a timer', 'setInterval(() => {}, 60_000)', /left behind a timer \(.*index\.ts:\d+:\d+\): pass what ends it/],
  ['a timer that is unreferenced', 'setInterval(() => {}, 60_000).unref()', /left behind a timer/],
  ['an open port', `createServer().listen(0, '127.0.0.1')`, /left behind an open port/],
  ['a file watcher', `watch('/')`, /left behind a file watcher/],
  ['a listener of the process', `process.on('SIGUSR2', () => {})`, /left behind a listener of process event "SIGUSR2"/],
]

describe('a plugin that is unloaded', () => {
  let host: TestHost
  beforeAll(async () => {
    host = await startHost({ config: { plugins: { paths: [playground('hello'), playground('parrot.ts')] } } })
    await host.app.host.load(await writePlugin(join(host.home, 'everything'), everything))
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
  })

  it.each(['everything', 'hello', 'provider-parrot', 'channel-webhook', 'kv'])(
    `leaves nothing after ${CYCLES} times: %s`,
    async (name) => {
      await leavesNothing(host, name, CYCLES)
    },
  )

  it.each(broken)('is reported with what it leaves, and fails the check: %s', async (kind, setup, message) => {
    const before = `import { createServer } from 'node:net'; import { watch } from 'node:fs'
const undo = ((globalThis as any).leftByTest ??= [])`
    const leaky = `leaky-${kind.replaceAll(' ', '-')}`
    const text = pluginText(leaky, { before, setup: `undo.push(${setup}); return {}` })
    const folder = await writePlugin(join(host.home, leaky), text)
    await host.app.host.load(folder)
    await host.app.host.unload(leaky)
    const error = host.app.daemon.plugins().find(({ name }) => name === leaky)?.error
    expect(error).toMatch(message)
    expect(host.log.join('')).toContain(`plugin "${leaky}" left behind`)
    await host.app.host.reload(leaky)
    await expect(leavesNothing(host, leaky, 4)).rejects.toThrow(/left behind/)
    endAll()
  })
})

/** What the broken plugins left. */
function endAll(): void {
  const left = (globalThis as unknown as { leftByTest: { close?(): void; removeAllListeners?: unknown }[] }).leftByTest
  for (const one of left?.splice(0) ?? []) {
    if (one instanceof Object && 'close' in one && typeof one.close === 'function') one.close()
    else clearInterval(one as unknown as NodeJS.Timeout)
  }
  process.removeAllListeners('SIGUSR2')
}
function playground(name: string): string {
  return fileURLToPath(new URL(`../../playground/plugins/${name}`, import.meta.url))
}
