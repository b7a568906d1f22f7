import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { fingerprint } from '../../../core/host/folders.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { processesOf } from '../../support/plugin-processes.ts'
import { pluginText, routeText, writePlugin } from '../../support/plugin-folder.ts'

const cause = (error: unknown): string => (error instanceof Error ? error.message : String(error))
const route = (path: string, handle: string, more = '') => `ctx.routes.add(defineRoute({
    method: 'POST', path: '${path}', summary: 'A test', auth: 'public', effect: 'read', cost: 1, ${more}
    returns: v.any(), handle: async (input: any) => { ${handle} } }))`

/** Uses everything that crosses; what it finds is the answer of a route. */
const everything = pluginText('everything', {
  before: `import { readFileSync, writeSync } from 'node:fs'
import { reply } from 'svc/sdk'
import { connect } from 'node:net'
import { spawn } from 'node:child_process'
let heard = 0
const tried = async (work: () => unknown) => { try { return String(await work()) } catch (error: any) { return error.code ?? error.message } }`,
  members: `uses: { routes: ['/api/everything/*'], tools: ['everything'], hooks: ['other:happened'], tables: true,
    secrets: ['key'], hosts: ['api.example.org'], jobs: true },
    migrations: [{ id: '1', sql: 'CREATE TABLE everything_it (id TEXT, size INTEGER)' }],`,
  setup: `
    ${route(
      '/api/everything/use/:id',
      `
      await ctx.storage.setItem('count', { value: 1 })
      await ctx.vault.write('key', 'hidden')
      await ctx.db.run\`INSERT INTO everything_it (id, size) VALUES (\${input.params.id}, \${3n})\`
      ctx.log.info('used by', input.params.id)
      counter.add(2)
      const answer = await ctx.fetch('https://api.example.org/x', { method: 'POST', body: 'hi' })
      return {
        stored: await ctx.storage.getItem('count'),
        secret: await ctx.vault.read('key'),
        rows: await ctx.db.all\`SELECT id, size FROM everything_it\`,
        fetched: await answer.json(),
        body: input.body,
        heard,
      }`,
      `params: v.object({ id: v.string() }), body: v.object({ size: v.number() }),`,
    )}
    ${route(
      '/api/everything/refused',
      `
      return {
        fetch: await tried(() => ctx.fetch('https://other.example.org')),
        secret: await tried(() => ctx.vault.read('other')),
        table: await tried(() => ctx.db.all\`SELECT * FROM core_migration\`),
        file: await tried(() => readFileSync('/etc/hostname')),
        program: await tried(() => spawn('true')),
        daemon: await tried(() => readFileSync('/proc/' + input.body.pid + '/environ')),
        kill: await tried(() => process.kill(input.body.pid, 0)),
        vaultKey: await tried(() => readFileSync(input.body.home + '/vault.key')),
        binding: await tried(() => (process as any).binding('spawn_sync')),
        native: await tried(() => (process as any).dlopen({ exports: {} }, '/lib/x.node')),
        member: await tried(() => ctx.spawn.start({ command: 'true', cwd: '/' })),
        environment: Object.keys(process.env).filter((name) => !/^(PATH|PWD|NODE_|SHLVL|OLDPWD|_$)/.test(name)),
      }`,
      `body: v.object({ pid: v.number(), home: v.string() }),`,
    )}
    ${route(
      '/api/everything/network',
      `
      return await new Promise((resolve) => {
        const socket = connect(input.body.port, '127.0.0.1', () => resolve('connected'))
        socket.on('error', (error: any) => resolve(error.code))
      })`,
      `body: v.object({ port: v.number() }),`,
    )}
    ${route('/api/everything/hang', 'for (;;) {}')}
    ${route('/api/everything/crash', 'process.exit(3)')}
    ${route('/api/everything/garbage', `writeSync(Number(process.argv[2]), 'no message\\n'); return {}`)}
    ${route('/api/everything/huge', `writeSync(Number(process.argv[2]), Buffer.alloc(100_000, 'a')); return {}`)}
    ${route(
      '/api/everything/forge',
      `
      const send = (message: object) => writeSync(Number(process.argv[2]), JSON.stringify(message) + '\\n')
      for (let id = 0; id < 100; id++) send({ answer: id, value: { '~type': 'stream', value: 1 } })
      for (const object of [0, 1, 2, 3]) for (const method of ['constructor', '__proto__', 'toString', 'fetch', 'connect'])
        send({ id: 1e6 + object, method: 'object', input: { object, method, args: ['http://127.0.0.1:1/', { host: '127.0.0.1', port: 1 }] } })
      for (const method of ['__proto__', 'constructor', 'describe', 'setup', 'spawn', 'credentials', '~next', '~return'])
        send({ id: 2e6, method, input: 0 })
      const path = (at: string) => ({ kind: 'route', key: 'route ' + at, method: 'GET', path: at, summary: 'x', auth: 'public', cost: 0,
        hasBody: false, hasRecall: false, answers: [] })
      for (const at of ['/api/agents', '/api/other/emit', 'nowhere']) send({ id: 3e6, method: 'register', input: path(at) })
      send({ id: 3e6, method: 'register', input: { ...path('/api/everything/late'), auth: 'signed' } })
      send({ id: 3e6, method: 'db', input: { method: 'constructor', sql: ['SELECT 1'], values: [] } })
      send({ id: 3e6, method: 'log', input: { method: 'constructor', args: [] } })
      send({ id: 1e7, method: 'storage', input: JSON.parse('{"method":"getItem","args":["a"],"__proto__":{"polluted":true}}') })
      return {}`,
    )}
    ${route('/api/everything/status', `return reply('x', {}, 99_999)`)}
    ${route('/api/everything/split', `return reply('x', { 'x-a': 'b\\r\\nx-c: d' })`)}
    ${route('/api/everything/event', `return (async function* () { yield { data: { toString: 1 } } as never })()`)}
    ${route('/api/everything/eat', 'const all = []; for (;;) all.push(new Array(1e7).fill(all))')}
    ${routeText('/api/everything/alive', 'alive')}
    ctx.tools.add(defineTool({ name: 'everything', description: 'A test', risk: 'read',
      input: v.object({ name: v.string() }), run: async ({ name }) => 'Hello, ' + name }))
    ctx.hooks.on(notify('other:happened'), ({ by }: any) => { heard += by })
    const counter = ctx.metrics.counter('svc_everything_total', 'A test')
    return {}`,
})

describe('a plugin in a process of its own', () => {
  let host: TestHost
  beforeAll(async () => {
    host = await startHost({
      plugins: [],
      config: {
        plugins: {
          isolated: ['everything', 'needy', 'loose'],
          worker_memory_mb: 64,
          worker_hang_ms: 5_000,
          worker_message_bytes: 65_536,
        },
      },
      fetch: async (url, request) =>
        ({
          status: 200,
          url: String(url),
          toResponse: () => Response.json({ sent: request?.body }),
        }) as never,
    })
    await host.app.host.load(await writePlugin(join(host.home, 'plugins/everything'), everything))
    const emit = `${route('/api/other/emit', `await ctx.hooks.emit(notify('other:happened'), { by: 5 }); return {}`)}; return {}`
    await host.app.host.load(await writePlugin(join(host.home, 'other'), pluginText('other', { setup: emit })))
  })
  afterAll(async () => {
    await host[Symbol.asyncDispose]()
  })
  const status = () => host.app.daemon.plugins().find(({ name }) => name === 'everything')
  const alive = async (): Promise<void> => {
    for (;;) if ((await host.fetch('/api/everything/alive')).status === 200) return
  }

  it('uses what it declares through messages', async () => {
    await host.json('POST', '/api/other/emit')
    expect((await host.json('POST', '/api/everything/use/a', { size: 2 })).body).toEqual({
      stored: { value: 1 },
      secret: 'hidden',
      rows: [{ id: 'a', size: 3 }],
      fetched: { sent: 'hi' },
      body: { size: 2 },
      heard: 5,
    })
    expect(host.log.join('')).toContain('used by a')
    expect(host.app.daemon.metrics()).toContain('svc_everything_total 2')
    expect(status()).toMatchObject({ isolation: 'worker', access: 'declared', state: 'loaded', error: undefined })
  })

  it('gets clear errors for bad input, as every route', async () => {
    const { status: code, body } = await host.json('POST', '/api/everything/use/a', { size: 'big' })
    expect(code).toBe(400)
    expect(JSON.stringify(body)).toContain('size')
  })

  it('shows models the schema of its tools, and runs them', async () => {
    const call = { agentId: 'a', agentName: 'a', sessionId: 's', turnId: 't', callId: 'c' }
    const { signal } = new AbortController()
    expect(await host.app.callTool('everything', { name: 'Ada' }, { ...call, signal })).toMatchObject({
      text: 'Hello, Ada',
      failed: false,
    })
    expect(await host.app.callTool('everything', {}, { ...call, signal })).toMatchObject({ failed: true })
  })

  it('is refused everything else, by the daemon and by the system', async () => {
    const facts = { pid: process.pid, home: host.home }
    expect((await host.json('POST', '/api/everything/refused', facts)).body).toEqual({
      fetch: 'forbidden',
      secret: 'forbidden',
      table: 'forbidden',
      file: 'ERR_ACCESS_DENIED',
      program: 'ERR_ACCESS_DENIED',
      daemon: 'ERR_ACCESS_DENIED',
      kill: expect.stringMatching(/^(ESRCH|EPERM|ERR_ACCESS_DENIED)$/),
      vaultKey: 'ERR_ACCESS_DENIED',
      binding: 'ERR_ACCESS_DENIED',
      native: 'ERR_DLOPEN_DISABLED',
      member: expect.stringContaining('ctx.spawn.start is not available with isolation = "worker"'),
      environment: [],
    })
  })

  it('has no network of its own', async () => {
    const port = Number(new URL(host.url).port)
    expect((await host.json('POST', '/api/everything/network', { port })).body).not.toBe('connected')
  })

  it.each([
    ['crash', 'its process ended: it ended with code 3'],
    ['eat', 'its process ended: it used more memory than it may'],
    ['hang', 'its process did not answer for 5000 ms and is ended'],
    ['garbage', 'its process ended: it sent a message that is no JSON'],
    ['huge', 'its process ended: it sent a message of more than 65536 bytes'],
  ])('costs only itself when it fails: %s', async (how, message) => {
    const answer = await host.json('POST', `/api/everything/${how}`)
    expect(answer.status).toBe(503)
    expect(status()?.error).toMatch(/its process ended: .*; it is started again \(attempt \d\)/)
    expect(host.log.join('')).toContain(message)
    await alive()
    expect(status()).toMatchObject({ state: 'loaded', error: undefined })
    expect(host.app.registrations().filter((line) => line.includes('/alive'))).toHaveLength(1)
  })

  it('reaches nothing but what is exposed to it, whatever it writes to the channel', async () => {
    const before = host.app.registrations()
    await host.fetch('/api/everything/forge', { method: 'POST' })
    await alive()
    expect({}).not.toHaveProperty('polluted')
    expect(host.app.registrations()).toEqual(before)
    expect((await host.fetch('/api/agents')).status).toBe(404)
    expect(status()).toMatchObject({ state: 'loaded', error: undefined })
  })

  it.each(['status', 'split'])('does not break the answers of the daemon: %s', async (how) => {
    const answer = await host.fetch(`/api/everything/${how}`, { method: 'POST' })
    expect([answer.status, answer.headers.get('x-c')]).toEqual([500, null])
    expect(host.defects()).toHaveLength(1)
  })

  it('ends a stream whose events are none', async () => {
    const answer = await host.fetch('/api/everything/event', { method: 'POST' })
    expect(await answer.text()).toContain('event: error')
    expect(host.defects()).toHaveLength(1)
  })

  it('is reloaded and unloaded as any other, and its process ends', async () => {
    const folder = join(host.home, 'plugins/everything')
    await writePlugin(folder, everything.replace(`'alive')`, `'alive') // changed`).replace('"alive"', '"edited"'))
    await host.app.host.reload('everything')
    expect((await host.json('GET', '/api/everything/alive')).body).toEqual({ text: 'edited' })
    // As the watcher says that it saw what was read already.
    await host.app.host.sync(folder, await fingerprint(folder))
    expect(status()?.reloads).toBe(1)
    await expect.poll(() => processesOf(host.home)).not.toEqual([])
    await writePlugin(folder, 'export default {')
    expect(await host.app.host.reload('everything').catch(cause)).toMatch(/the code before goes on: .*index\.ts/)
    expect((await host.json('GET', '/api/everything/alive')).body).toEqual({ text: 'edited' })
    await host.app.host.unload('everything')
    // That of the code before ends after its last call.
    await expect.poll(() => processesOf(host.home)).toEqual([])
    expect(status()?.error).toBeUndefined()
    expect((await host.fetch('/api/everything/alive')).status).toBe(404)
  })

  it('is not loaded where it needs what does not cross, and gets nothing without uses', async () => {
    const load = async (name: string, text: string) =>
      host.app.host.load(await writePlugin(join(host.home, 'plugins', name), text)).then(() => 'loaded', cause)
    expect(
      await load('needy', pluginText('needy', { members: `sections: { needy: v.optional(v.string()) },` })),
    ).toContain('uses sections, which is not available with isolation = "worker"')
    expect(await load('loose', pluginText('loose', { setup: `${routeText('/api/loose', 'x')}; return {}` }))).toContain(
      'may not use "route:/api/loose"',
    )
  })
})
