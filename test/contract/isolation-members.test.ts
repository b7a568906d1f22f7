import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { join } from 'node:path'
import { TLSSocket } from 'node:tls'
import { generate } from 'selfsigned'
import { beforeAll, describe, expect, it } from 'vitest'
import { WebSocketServer } from 'ws'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import { pluginText, temporaryFolder, writePlugin } from '../support/plugin-folder.ts'

// Members of routes and tools, raw bodies, calls of tools, sockets and the end: what does not cross is refused by name.

const modes = ['none', 'worker'] as const
const route = (method: string, path: string, handle: string, more = '') => `ctx.routes.add(defineRoute({
    method: '${method}', path: '/api/parts/${path}', summary: 'A test', auth: 'public', effect: 'own', cost: 1, ${more}
    returns: v.any(), handle: async (input: any) => { ${handle} } }))`
const parts = pluginText('parts', {
  before: `import { defineError, rawBody, reply } from 'svc/sdk'
const asleep = defineError('asleep' as never, { status: 423, format: 'coded', meaning: 'it sleeps' })
const effects = new Map<string, number>()
const tried = async (work: () => unknown) => { try { await work(); return 'done' } catch (error: any) { return error.message } }
/** Lines of a connection, one after another. */
function linesOf(connection: any) {
  let text = ''; let wake = () => {}
  connection.on('data', (bytes: Uint8Array) => { text += Buffer.from(bytes).toString(); wake() })
  return async () => {
    for (;;) {
      const at = text.indexOf('\\n')
      if (at !== -1) { const line = text.slice(0, at); text = text.slice(at + 1); return line }
      await new Promise<void>((resolve) => { wake = resolve })
    }
  }
}`,
  members: `outbound: 'operator', uses: { routes: ['/api/parts/*'], tools: ['*'], hosts: ['127.0.0.1', 'localhost'], secrets: true, tables: true },`,
  setup: `
    const step = (name: string) => ctx.log.info('step: ' + name)
    ${route(
      'POST',
      'make',
      `effects.set(input.effectId, input.body.n); return (async function* () { yield { data: 'made ' + input.body.n } })()`,
      `body: v.object({ n: v.number() }), idempotent: true,
       recall: (id: string) => effects.has(id) ? { recalled: effects.get(id) } : undefined,`,
    )}
    ${route('PATCH', 'thing', 'return { body: input.body, unchanged: input.unchanged ?? false }', `body: v.object({ a: v.optional(v.number()), b: v.optional(v.string(), 'x') }), shown: () => ({ fields: { a: 1, c: 2 }, measured: ['c'] }),`)}
    ${route('POST', 'empty', 'return { body: input.body }', `body: v.object({ a: v.optional(v.number(), 4) }),`)}
    ${route('GET', 'asleep', `throw new Refusal(asleep, 'not now')`, 'errors: [asleep],')}
    ${route('GET', 'moved', `return reply('elsewhere', { 'content-type': 'text/plain', 'x-kind': 'test' }, 303)`, `answers: { 303: { description: 'elsewhere', type: 'text/plain' } },`)}
    ${route('POST', 'raw', `return reply(new Uint8Array([...input.body].toReversed()), { 'content-type': 'application/octet-stream' })`, `body: rawBody(8), produces: 'application/octet-stream',`)}
    ${route('GET', 'headers', `return { one: input.header('x-one'), none: input.header('x-none') ?? null, all: input.headers()['x-two'] }`)}
    ${route('GET', 'held', `return Object.assign((async function* () { throw new Refusal('conflict', 'no events') })(), { headers: { 'x-held': 'yes' }, holdsStatus: true })`)}
    ${route('GET', 'events', `return Object.assign((async function* () { yield { data: '1', id: 'a' } })(), { headers: { 'x-events': 'yes' } })`)}
    ${route(
      'POST',
      'tool',
      `return await ctx.tools.call('double', input.body, { agentId: 'a', agentName: 'ada', sessionId: 's', turnId: 't', callId: 'c',
        labels: ['ExternalNetwork'], signal: input.signal }).then(({ durationMs, ...result }: any) => result)`,
      'body: v.any(),',
    )}
    ctx.tools.add(defineTool({ name: 'double', description: 'Doubles', risk: 'read', polls: true, needs: 'shell',
      input: v.object({ n: v.number() }), run: async ({ n }: any, { labels }: any) => labels + ' ' + n * 2 }))
    ${route(
      'POST',
      'socket',
      `
      const { port } = input.body
      const plain = await ctx.connect({ host: '127.0.0.1', port })
      const next = linesOf(plain)
      plain.write('hello\\n')
      const first = await next()
      plain.write('big\\n')
      const big = (await next()).length
      plain.write('starttls\\n')
      const ready = await next()
      const secure = await ctx.startTls(plain, { rejectUnauthorized: false })
      const nextSecure = linesOf(secure)
      secure.write('hidden\\n')
      const hidden = await nextSecure()
      const closed = new Promise((resolve) => secure.once('close', resolve))
      secure.end('bye\\n')
      await closed
      const abort = new AbortController()
      const other = await ctx.connect({ host: '127.0.0.1', port, signal: abort.signal })
      const gone = new Promise((resolve) => other.once('close', () => resolve('closed')))
      abort.abort()
      return { first, big, ready, hidden, aborted: await gone, destroyed: other.destroyed,
        untrusted: (await tried(async () => {
          const again = await ctx.connect({ host: '127.0.0.1', port }); const line = linesOf(again)
          again.write('starttls\\n'); await line(); await ctx.startTls(again) })).replace(/:\\d+/, ''),
        eager: (await tried(async () => {
          const again = await ctx.connect({ host: '127.0.0.1', port }); again.write('hello\\n')
          await new Promise((resolve) => again.once('readable', resolve)); await ctx.startTls(again, { rejectUnauthorized: false }) })).replace(/:\\d+/, ''),
        undeclared: (await tried(() => ctx.connect({ host: '10.0.0.1', port }))).slice(0, 40),
        nobody: (await tried(() => ctx.connect({ host: '127.0.0.1', port: 1 }))) !== 'done' }`,
      'body: v.object({ port: v.number() }),',
    )}
    ${route(
      'POST',
      'web-socket',
      `
      const url = 'ws://127.0.0.1:' + input.body.port
      const socket = await ctx.webSocket(url, { protocols: ['chat'], headers: { 'x-token': 'abc' } })
      const messages: unknown[] = []
      let wake = () => {}
      socket.on('message', (message: any) => { messages.push(typeof message === 'string' ? message : [...message]); wake() })
      const answered = async (count: number) => { while (messages.length < count) await new Promise<void>((resolve) => { wake = resolve }) }
      const pong = new Promise((resolve) => socket.on('pong', (data: Uint8Array) => resolve(Buffer.from(data).toString())))
      await socket.send('one'); await socket.send(new Uint8Array([1, 255])); socket.ping(Buffer.from('alive'))
      await answered(3)
      const end = await socket.close(4000, 'enough')
      const other = await ctx.webSocket(url)
      other.on('message', () => {})
      await other.send('close')
      const lost = await ctx.webSocket(url)
      lost.on('message', () => {})
      lost.terminate()
      const { code } = await lost.closed
      return { protocol: socket.protocol, messages, pong: await pong, buffered: socket.bufferedBytes, end: end.code,
        closed: await other.closed, lost: code, refused: (await tried(() => ctx.webSocket('ws://10.0.0.1/'))).slice(0, 40) }`,
      'body: v.object({ port: v.number() }),',
    )}
    const base = { method: 'GET', path: '/api/parts/refused', summary: 'A test', auth: 'public', effect: 'read', cost: 1,
      returns: v.any(), handle: () => ({}) }
    const refused: Record<string, () => unknown> = {
      token: () => ctx.routes.add({ ...base, token: () => 'x' }),
      signed: () => ctx.routes.add({ ...base, signed: () => true }),
      signedAuth: () => ctx.routes.add({ ...base, auth: 'signed' }),
      effectOf: () => ctx.routes.add({ ...base, effectOf: () => 'read' }),
      costOf: () => ctx.routes.add({ ...base, costOf: () => 1 }),
      renderError: () => ctx.routes.add({ ...base, renderError: () => ({}) }),
      assess: () => ctx.tools.add({ name: 'risky', description: 'x', risk: 'read', input: v.object({}), assess: () => ({ intent: 'x' }), run: async () => '' }),
      check: () => ctx.fetch('http://127.0.0.1/', { check: () => {} }),
      statements: () => ctx.vault.write('a', 'b', []),
      socket: () => ctx.routes.addSocket({}),
      list: () => ctx.tools.list(),
      program: () => ctx.spawn.start({ command: 'true' }),
      listen: () => ctx.listen({ key: 'listen', maxConnections: 1, accept: () => {} }),
      credentials: () => ctx.credentials.accept({ name: 'x', find: () => undefined }),
      observed: () => ctx.metrics.observed('svc_parts', 'x', () => []),
      optional: () => ctx.optional('x'),
    }
    ${route('GET', 'refusals', `return Object.fromEntries(await Promise.all(Object.entries(refused).map(async ([name, work]) => [name, await tried(work)])))`)}
    ${route('GET', 'secret-header', `return { key: input.header('authorization') ?? null }`)}
    ${route('POST', 'work', `void ctx.run(async () => { await new Promise((resolve) => ctx.leaving.addEventListener('abort', resolve)); step('finished') }); return {}`)}
    ctx.signal.addEventListener('abort', () => step('aborted'))
    ctx.own('first', async () => step('disposed first'))
    ctx.own('second', async () => step('disposed second'))
    return {}`,
})

const other = pluginText('other', {
  setup: `ctx.routes.add(defineRoute({ method: 'GET', path: '/api/other/tool', summary: 'A test', auth: 'public', effect: 'read',
      cost: 1, returns: v.any(), handle: () => { const { polls, needs, risk, input } = ctx.tools.find('double'); return { polls, needs, risk, input } } }))
    return {}`,
})
const never = new AbortController().signal
const call = { agentId: 'a', agentName: 'ada', sessionId: 's', turnId: 't', callId: 'c', signal: never }

/** Answers lines, large ones too, and upgrades to TLS when it is asked to. */
async function startLineServer(): Promise<AsyncDisposable & { readonly port: number }> {
  const { private: key, cert } = generate([{ name: 'commonName', value: 'localhost' }], {
    algorithm: 'sha256',
    days: 1,
  })
  const sockets = new Set<Socket>()
  const converse = (socket: Socket, prefix: string): void => {
    const read = (bytes: Buffer): void => {
      const line = bytes.toString().trim()
      if (line === 'starttls') {
        socket.off('data', read)
        socket.write('ready\n')
        return converse(new TLSSocket(socket, { isServer: true, key, cert }), 'secure ')
      }
      if (line === 'bye') return void socket.end()
      socket.write(line === 'big' ? `${'x'.repeat(2_000_000)}\n` : `${prefix}${line}\n`)
    }
    socket.on('data', read).on('error', () => undefined)
  }
  const server = createServer((socket) => {
    sockets.add(socket)
    converse(socket, 'plain ')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Echoes messages after its greeting, which has the token of the request. */
async function startEcho(): Promise<AsyncDisposable & { readonly port: number }> {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  server.on('connection', (socket, { headers }) => {
    socket.send(`token ${headers['x-token']}`)
    socket.on('message', (data, isBinary) => {
      if (String(data) === 'close') socket.close(4001, 'go away')
      else socket.send(data, { binary: isBinary })
    })
  })
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const client of server.clients) client.terminate()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** What a client of the plugin sees. */
async function useAll(host: TestHost): Promise<Record<string, unknown>> {
  await using lines = await startLineServer()
  await using echo = await startEcho()
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const init = { method, headers: { 'content-type': 'application/json', ...headers }, redirect: 'manual' } as const
    const answer = await host.fetch(`/api/parts/${path}`, {
      ...init,
      ...(body !== undefined && { body: body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body) }),
    })
    const text = (await answer.text()).replaceAll(/"request_id":"[^"]*"/g, '')
    return {
      status: answer.status,
      text,
      kind: ['x-kind', 'x-held', 'x-events'].map((name) => answer.headers.get(name)),
    }
  }
  const key = { 'idempotency-key': 'once' }
  return {
    recall: [await ask('POST', 'make', { n: 1 }, key), await ask('POST', 'make', { n: 1 }, key)],
    shown: [
      await ask('PATCH', 'thing', { a: 1, c: 5 }),
      await ask('PATCH', 'thing', { a: 2 }),
      await ask('PATCH', 'thing', { d: 1 }),
    ],
    bodies: [await ask('POST', 'empty'), await ask('POST', 'empty', []), await ask('POST', 'empty', { a: 'b' })],
    error: await ask('GET', 'asleep'),
    reply: await ask('GET', 'moved'),
    raw: [await ask('POST', 'raw', Buffer.from('abc')), await ask('POST', 'raw', Buffer.alloc(9))],
    headers: await ask('GET', 'headers', undefined, { 'x-one': '1', 'x-two': '2' }),
    streams: [await ask('GET', 'held'), await ask('GET', 'events')],
    tools: [await ask('POST', 'tool', { n: 4 }), await ask('POST', 'tool', { n: 'four' })],
    described: (await host.json('GET', '/api/other/tool')).body,
    called: { ...(await host.app.callTool('double', { n: 1 }, call)), durationMs: 0 },
    socket: await ask('POST', 'socket', { port: lines.port }),
    webSocket: await ask('POST', 'web-socket', { port: echo.port }),
  }
}

interface Found extends Readonly<Record<string, unknown>> {
  readonly refusals: Readonly<Record<string, string>>
  readonly secretHeader: unknown
}
async function observe(mode: (typeof modes)[number]): Promise<Found> {
  await using home = await temporaryFolder()
  await writePlugin(join(home.path, 'plugins/parts'), parts)
  await writePlugin(join(home.path, 'plugins/other'), other)
  await using host = await startHost({
    plugins: [],
    home: home.path,
    memory: true,
    config: { development: true, plugins: { isolated: mode === 'worker' ? ['parts'] : [] } },
  })
  const used = await useAll(host)
  // What is refused in a process of its own is done in the daemon: not here.
  const refusals = mode === 'worker' ? (await host.json('GET', '/api/parts/refusals')).body : {}
  const { status } = await host.fetch('/api/parts/secret-header', { headers: { authorization: 'Bearer x' } })
  const secretHeader = { status, defects: host.defects().map(({ error }) => String(error)) }
  await host.json('POST', '/api/parts/work')
  await host.app.host.unload('parts')
  return {
    ...used,
    refusals,
    secretHeader,
    end: [...host.log.join('').matchAll(/step: [a-z ]+/g)].map(([text]) => text.trim()),
    state: host.app.daemon.plugins().map(({ name, state, error }) => [name, state, error]),
  }
}

const notCrossing = [
  ['token', 'route GET /api/parts/refused: token'],
  ['signed', 'route GET /api/parts/refused: signed'],
  ['signedAuth', 'route GET /api/parts/refused: auth "signed"'],
  ['effectOf', 'route GET /api/parts/refused: effectOf'],
  ['costOf', 'route GET /api/parts/refused: costOf'],
  ['renderError', 'route GET /api/parts/refused: renderError'],
  ['assess', 'tool risky: assess'],
  ['check', 'ctx.fetch: check'],
  ['statements', 'ctx.vault.write with statements'],
  ['socket', 'ctx.routes.addSocket'],
  ['list', 'ctx.tools.list'],
  ['program', 'ctx.spawn.start'],
  ['listen', 'ctx.listen'],
  ['credentials', 'ctx.credentials.accept'],
  ['observed', 'ctx.metrics.observed'],
  ['optional', 'ctx.optional'],
] as const

describe('what crosses, member by member', () => {
  const found: Record<string, Found> = {}
  beforeAll(async () => {
    for (const mode of modes) found[mode] = await observe(mode)
  })

  it('does what it is written for', () => {
    expect(found['none']).toMatchObject({
      recall: [
        { status: 200, text: expect.stringContaining('data: made 1') },
        { status: 200, text: '{"recalled":1}' },
      ],
      shown: [
        { text: '{"body":{},"unchanged":true}' },
        { text: '{"body":{"a":2,"b":"x"},"unchanged":false}' },
        { status: 400 },
      ],
      bodies: [{ text: '{"body":{"a":4}}' }, { status: 400 }, { status: 400 }],
      error: { status: 423, text: expect.stringContaining('asleep') },
      reply: { status: 303, text: 'elsewhere', kind: ['test', null, null] },
      raw: [{ status: 200, text: 'cba' }, { status: 413 }],
      headers: { text: '{"one":"1","none":null,"all":"2"}' },
      streams: [
        { status: 409, kind: [null, 'yes', null] },
        { status: 200, kind: [null, null, 'yes'] },
      ],
      described: { polls: true, needs: 'shell' },
      called: { text: 'undefined 2', failed: false },
      end: ['step: finished', 'step: aborted', 'step: disposed second', 'step: disposed first'],
    })
    const textOf = (aspect: string) =>
      JSON.parse((found['none'] as unknown as Record<string, { text: string }>)[aspect]?.text ?? '') as unknown
    expect(textOf('socket')).toMatchObject({
      first: 'plain hello',
      big: 2_000_000,
      ready: 'ready',
      hidden: 'secure hidden',
      aborted: 'closed',
      nobody: true,
      eager: '127.0.0.1 sent more than the answer to STARTTLS before the encryption began',
    })
    expect(textOf('webSocket')).toMatchObject({
      protocol: 'chat',
      messages: ['token abc', 'one', [1, 255]],
      pong: 'alive',
      buffered: 0,
      end: 4000,
      closed: { code: 4001, reason: 'go away' },
      lost: 1006,
    })
  })

  const aspects = ['recall', 'shown', 'bodies', 'error', 'reply', 'raw', 'headers', 'streams', 'tools', 'described']
  it.each([...aspects, 'called', 'socket', 'webSocket', 'end', 'state'])(
    'is the same in its own process: %s',
    (aspect) => {
      expect(found['worker']?.[aspect]).toEqual(found['none']?.[aspect])
    },
  )

  it.each(notCrossing)('refuses what does not cross, by name: %s', (name, member) => {
    expect(found['worker']?.refusals[name]).toBe(
      `${member} is not available with isolation = "worker": leave it out, or set plugins.isolation to "none"`,
    )
  })

  it('keeps the credentials of a request in the daemon', () => {
    expect(found['worker']?.secretHeader).toEqual({
      status: 500,
      defects: [expect.stringContaining('request header "authorization" is not available')],
    })
  })
})
