import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { createServer as createTlsServer, Server as TlsServer, TLSSocket } from 'node:tls'
import { generate } from 'selfsigned'
import { expect, it, onTestFinished } from 'vitest'
import { WebSocketServer } from 'ws'
import { createOutbound } from '../../../core/net/outbound.ts'
import type { OutboundSettings } from '../../../core/net/outbound.ts'
import { Scope } from '../../../core/scope/scope.ts'

const base: OutboundSettings = {
  allow: ['127.0.0.1'],
  headersTimeoutMs: 2000,
  idleTimeoutMs: 2000,
  maxBytes: 1000,
  maxRedirects: 0,
  connectTimeoutMs: 2000,
  maxPluginConnections: 4,
}
const { private: key, cert } = generate([{ name: 'commonName', value: 'chat.test' }], {
  algorithm: 'sha256',
  days: 1,
  keySize: 2048,
  extensions: [
    { name: 'basicConstraints', cA: true },
    { name: 'subjectAltName', altNames: [{ type: 2, value: 'chat.test' }] },
  ],
})

/** A plugin's way out, where `chat.test` and `inside.test` have addresses of this machine. */
function startNetwork() {
  const scope = new Scope('chat')
  let settings = base
  const outbound = createOutbound({
    settings: () => settings,
    resolve: async (name) =>
      name === 'nowhere.test'
        ? await new Promise<never>(() => undefined)
        : [{ address: name === 'inside.test' ? '127.0.0.2' : '127.0.0.1', family: 4 }],
    own: { ports: () => new Set([4545]), names: () => [], addresses: () => [] },
  })
  onTestFinished(async () => {
    await scope.close(10)
    await outbound[Symbol.asyncDispose]()
  })
  return {
    scope,
    plugin: outbound.connectorFor(scope, false),
    operator: outbound.connectorFor(scope, true),
    change(next: Partial<OutboundSettings>) {
      settings = { ...settings, ...next }
      outbound.recheck()
    },
  }
}

/** A server that answers each connection as given. */
async function listen(onConnection: (socket: Socket) => void, server = createServer()): Promise<number> {
  const open = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    open.add(socket)
    socket.on('error', () => undefined)
  })
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', onConnection)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(async () => {
    for (const socket of open) socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  return (server.address() as AddressInfo).port
}
const echo = (socket: Socket): void => void socket.on('data', (data) => socket.write(data))
async function answerTo(socket: Socket, text: string): Promise<string> {
  socket.write(text)
  const [data] = (await once(socket, 'data')) as [Buffer]
  return data.toString()
}

it('refuses what a request is refused, but no port for its number', async () => {
  const { plugin, operator } = startNetwork()
  const port = await listen(echo)
  const refused = [
    ['169.254.169.254', 80, /metadata/],
    ['metadata.google.internal', 80, /metadata/],
    ['127.0.0.2', port, /this machine.*\[outbound\] allow/],
    ['inside.test', port, /this machine/],
    ['0x7f.2', port, /this machine/],
    ['::ffff:127.0.0.2', port, /this machine/],
    ['127.0.0.1', 4545, /the daemon itself/],
  ] as const
  for (const [host, to, message] of refused)
    await expect(plugin.connect({ host, port: to }), host).rejects.toMatchObject({
      code: 'forbidden',
      message: expect.stringMatching(message),
    })
  for (const host of ['', 'a b', 'user@chat.test', 'chat.test/x', 'chat.test:25'])
    await expect(plugin.connect({ host, port }), host).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(plugin.connect({ host: 'chat.test', port: 0 })).rejects.toMatchObject({ code: 'invalid_request' })
  await expect(operator.connect({ host: '169.254.169.254', port })).rejects.toMatchObject({ code: 'forbidden' })
  // Nobody listens on the port of IRC here: that it says so shows that the port was tried.
  await expect(plugin.connect({ host: '127.0.0.1', port: 6667 })).rejects.toMatchObject({ reason: 'network' })
  const socket = (await plugin.connect({ host: '127.0.0.1', port })) as Socket
  expect(await answerTo(socket, 'hello')).toBe('hello')
})

it('ends with its signal, with the plugin and with the permission, and is in the ledger until then', async () => {
  const { plugin, scope, change } = startNetwork()
  const port = await listen(echo)
  const abort = new AbortController()
  const first = (await plugin.connect({ host: '127.0.0.1', port, signal: abort.signal })) as Socket
  const second = (await plugin.connect({ host: '127.0.0.1', port })) as Socket
  expect(scope.ledger()).toEqual([1, 2].map(() => ({ kind: 'connection', label: `127.0.0.1:${port}` })))
  abort.abort(new Error('enough'))
  await once(first, 'close')
  expect(scope.ledger()).toHaveLength(1)
  change({ allow: [] })
  await once(second, 'close')
  expect(scope.ledger()).toEqual([])
  change({ allow: ['127.0.0.1'] })
  const third = (await plugin.connect({ host: '127.0.0.1', port })) as Socket
  await scope.close(10)
  expect(third.closed).toBe(true)
  await expect(plugin.connect({ host: '127.0.0.1', port })).rejects.toThrow('unloaded')
  await expect(plugin.connect({ host: '127.0.0.1', port, signal: abort.signal })).rejects.toThrow()
})

it('gives up after its time or on abort, also while the name is looked up, and beyond its number', async () => {
  const { plugin } = startNetwork()
  const port = await listen(() => undefined)
  await expect(plugin.connect({ host: 'nowhere.test', port, timeoutMs: 20 })).rejects.toMatchObject({
    reason: 'timeout',
  })
  // The server accepts and never begins TLS.
  await expect(plugin.connect({ host: '127.0.0.1', port, tls: true, timeoutMs: 50 })).rejects.toMatchObject({
    reason: 'timeout',
  })
  const abort = new AbortController()
  const waiting = plugin.connect({ host: 'nowhere.test', port, signal: abort.signal })
  abort.abort(new Error('enough'))
  await expect(waiting).rejects.toThrow('enough')
  const open = await Promise.all([1, 2, 3, 4].map(() => plugin.connect({ host: '127.0.0.1', port })))
  await expect(plugin.connect({ host: '127.0.0.1', port })).rejects.toThrow(/outbound\.plugin_connections/)
  open[0]?.destroy()
  await once(open[0] as Socket, 'close')
  await plugin.connect({ host: '127.0.0.1', port })
})

it('checks certificates, with those that the plugin trusts besides', async () => {
  const { plugin } = startNetwork()
  const port = await listen(echo, createTlsServer({ key, cert }))
  const to = { host: 'chat.test', port }
  await expect(plugin.connect({ ...to, tls: true })).rejects.toThrow(/no certificate that is trusted/)
  await expect(plugin.connect({ ...to, host: '127.0.0.1', tls: { ca: cert } })).rejects.toThrow(/certificate/)

  const byName = (await plugin.connect({ ...to, tls: { ca: cert } })) as Socket
  const byServername = (await plugin.connect({
    ...to,
    host: '127.0.0.1',
    tls: { ca: cert, servername: 'chat.test' },
  })) as Socket
  const unchecked = (await plugin.connect({ ...to, tls: { rejectUnauthorized: false } })) as Socket

  for (const socket of [byName, byServername, unchecked]) {
    expect(socket).toBeInstanceOf(TLSSocket)
    expect(await answerTo(socket, 'secret')).toBe('secret')
  }
})

it('upgrades to TLS, unless the other side sent commands in advance', async () => {
  const { plugin, scope } = startNetwork()
  const context = { key, cert, isServer: true }
  const port = await listen((socket) => {
    socket.once('data', (data) => {
      socket.write(data.toString() === 'honest' ? 'go' : 'go\r\nforged')
      if (data.toString() === 'honest')
        new TLSSocket(socket, context).on('data', (text: Buffer) => socket.emit('told', text.toString()))
      socket.once('told', () => socket.destroy())
    })
  })
  const honest = (await plugin.connect({ host: 'chat.test', port })) as Socket
  expect(await answerTo(honest, 'honest')).toBe('go')
  const secure = (await plugin.startTls(honest, { ca: cert })) as Socket
  await expect(plugin.startTls(honest), 'the plain side is no connection any more').rejects.toThrow(/startTls takes/)
  secure.write('told over TLS')
  await once(secure, 'close')
  expect(scope.ledger()).toEqual([])
  const forger = (await plugin.connect({ host: 'chat.test', port })) as Socket
  forger.write('forger')
  await once(forger, 'readable')
  forger.read(2)
  await expect(plugin.startTls(forger, { ca: cert })).rejects.toMatchObject({ reason: 'malformed' })
})

it('a WebSocket misses no message, shows pings, has a limit and ends as said', async () => {
  const { plugin, scope } = startNetwork()
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', handleProtocols: () => 'chat.v1' })
  onTestFinished(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  await once(server, 'listening')
  const url = `ws://chat.test:${(server.address() as AddressInfo).port}/socket?x=1#part`
  server.on('connection', (client, request) => {
    client.send(`${request.url} ${request.headers['x-key']} ${request.headers.host}`)
    client.ping('there?')
    client.on('message', (data, isBinary) => {
      if (isBinary) client.send(new Uint8Array(2000))
      else client.close(4001, 'as you like')
    })
  })
  const open = (): ReturnType<typeof plugin.webSocket> =>
    plugin.webSocket(url, { headers: { 'x-key': 'k', Host: 'evil.test' }, protocols: ['chat.v1'], maxBytes: 500 })
  const socket = await open()
  expect(socket.protocol).toBe('chat.v1')
  await new Promise((resolve) => setImmediate(resolve))
  const ping = new Promise((resolve) => socket.on('ping', (data) => resolve(String(data))))
  const message = new Promise((resolve) => socket.on('message', resolve))
  expect(await message).toBe(`/socket?x=1 k ${new URL(url).host}`)
  expect(await ping).toBe('there?')
  const pong = new Promise((resolve) => socket.on('pong', (data) => resolve(String(data))))
  socket.ping(Buffer.from('alive'))
  expect(await pong).toBe('alive')
  await socket.send('bye')
  expect(await socket.closed).toEqual({ code: 4001, reason: 'as you like' })
  await expect(socket.send('late')).rejects.toMatchObject({ reason: 'network' })

  const flooded = await open()
  flooded.on('message', () => undefined)
  await flooded.send(new Uint8Array([1]))
  expect(await flooded.closed).toMatchObject({ code: 1006, error: { message: expect.stringMatching(/size/) } })

  const broken = await open()
  broken.on('message', () => {
    throw new Error('listener failed')
  })
  expect(await broken.closed).toMatchObject({ error: { message: 'listener failed' } })
  const last = await open()
  await scope.close(10)
  expect(await last.closed).toMatchObject({ code: 1006 })
})

it('a refused WebSocket says why, and only addresses of WebSockets are taken', async () => {
  const { plugin } = startNetwork()
  let answer = ''
  const port = await listen((socket) => socket.once('data', () => socket.end(answer)))
  const cases = [
    [
      'HTTP/1.1 429 Slow down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n',
      { reason: 'rate_limit', retryAfterSecs: 7 },
    ],
    ['HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n', { reason: 'auth', retry: 'never' }],
    ['HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n', { reason: 'invalid_request' }],
    ['HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n', { reason: 'server_error', retry: 'later' }],
    ['', { reason: 'network', retry: 'later' }],
  ] as const
  for (const [text, failure] of cases) {
    answer = text
    await expect(plugin.webSocket(`ws://127.0.0.1:${port}/`), text).rejects.toMatchObject(failure)
  }
  for (const url of [
    'http://chat.test/',
    'chat.test',
    `ws://user:pass@chat.test:${port}/`,
    'ws://127.0.0.2/',
    'ws://chat.test:25/',
  ])
    await expect(plugin.webSocket(url), url).rejects.toMatchObject({ code: expect.stringMatching(/forbidden|invalid/) })
})
