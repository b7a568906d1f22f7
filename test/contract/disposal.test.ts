import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import { pluginText, routeText, writePlugin } from '../support/plugin-folder.ts'
import { processesOf } from '../support/plugin-processes.ts'
import { leavesNothing } from './plugin.ts'

const CYCLES = 50
/** Each starts two processes. */
const ISOLATED_CYCLES = 8

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

/** In a process of its own, with everything open that it can open. */
const separate = (port: number): string =>
  pluginText('separate', {
    members: `outbound: 'operator', uses: { routes: ['/api/separate'], tools: ['separate'], hooks: ['daemon:listening'], jobs: true,
      hosts: ['127.0.0.1'], tables: true, secrets: true }, migrations: [{ id: '1', sql: 'CREATE TABLE separate_it (id TEXT)' }],
      hooks: [gate('separate:gate')],`,
    setup: `${routeText('/api/separate', 'x')}
    ctx.tools.add(defineTool({ name: 'separate', description: 'x', risk: 'read', input: v.object({}), run: async () => '' }))
    ctx.hooks.on(notify('daemon:listening'), () => {})
    ctx.hooks.on(gate('separate:gate'), () => {})
    ctx.jobs.every('tidy', 60_000, async () => {})
    ctx.jobs.cron('nightly', '0 3 * * *', async () => {})
    ctx.metrics.counter('svc_separate_total', 'A test').add()
    await ctx.storage.setItem('a', 1)
    await ctx.vault.write('a', 'b')
    await ctx.db.run\`INSERT INTO separate_it (id) VALUES ('a')\`
    setInterval(() => {}, 60_000)
    ctx.own('it', () => {})
    void ctx.run(() => new Promise((resolve) => ctx.leaving.addEventListener('abort', resolve)))
    const address = '127.0.0.1:${port}'
    const answer = await ctx.fetch('http://' + address)
    const socket = await ctx.webSocket('ws://' + address)
    socket.on('message', () => {})
    const connection = await ctx.connect({ host: '127.0.0.1', port: ${port} })
    connection.on('data', () => {})
    ctx.fetch('http://' + address + '/never').catch(() => {})
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
  let server: WebSocketServer
  beforeAll(async () => {
    host = await startHost({
      config: { plugins: { paths: [playground('hello'), playground('parrot.ts')], isolated: ['separate'] } },
    })
    // Skills are read once the daemon listens, and their tools are registered then.
    expect((await host.json('GET', '/api/skills')).status).toBe(200)
    const http = createServer(({ url }, response) => void (url === '/never' || response.end('x'.repeat(100_000))))
    await once(http.listen(0, '127.0.0.1'), 'listening')
    server = new WebSocketServer({ server: http })
    const { port } = http.address() as AddressInfo
    await host.app.host.load(await writePlugin(join(host.home, 'plugins/separate'), separate(port)))
    await host.app.host.load(await writePlugin(join(host.home, 'everything'), everything))
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
    server.options.server?.close()
  })

  it(`leaves no process, socket or handle after ${ISOLATED_CYCLES} times in a process of its own`, async () => {
    await leavesNothing(host, 'separate', ISOLATED_CYCLES)
    await host.app.host.unload('separate')
    await expect.poll(() => processesOf(host.home)).toEqual([])
    await expect.poll(() => server.clients.size).toBe(0)
  })

  it('is found out when it leaves a process', async () => {
    const before = `import { spawn } from 'node:child_process'
const undo = ((globalThis as any).leftByTest ??= [])`
    const start = `const child = spawn('sleep', ['600'], { stdio: 'ignore' }); undo.push({ close: () => child.kill() }); return {}`
    await host.app.host.load(
      await writePlugin(join(host.home, 'forker'), pluginText('forker', { before, setup: start })),
    )
    await expect(leavesNothing(host, 'forker', 4)).rejects.toThrow(/left behind a program/)
    endAll()
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
