import { connect } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import * as v from 'valibot'
import { Refusal } from '../../../core/errors/error.ts'
import { defineSocket } from '../../../core/http/route.ts'
import type { Socket } from '../../../core/http/route.ts'
import { Scope } from '../../../core/scope/scope.ts'
import { missingHeaders, open, parseAnswer, ping, raw } from './harness.ts'

const known = '0d2f2f3e-5f0a-4a58-8b0a-6b1c3f0f7f11'
interface Seen {
  sockets: Socket[]
  frames: string[]
  closed: number
}
const echoSocket = (seen: Seen = { sockets: [], frames: [], closed: 0 }, auth: 'public' | 'bearer' = 'bearer') =>
  defineSocket({
    path: '/api/agents/:id/ws',
    summary: 'Echo',
    auth,
    cost: 5,
    effect: 'conversation',
    frameCost: 10,
    params: v.object({ id: v.pipe(v.string(), v.uuid('not a UUID')) }),
    accept: ({ params }) => {
      if (params.id !== known) throw new Refusal('agent_not_found', `No agent ${params.id}`)
      return { agent: params.id }
    },
    open(socket, state) {
      seen.sockets.push(socket)
      socket.send(JSON.stringify({ type: 'connected', ...state }))
    },
    frame(socket, _state, text) {
      seen.frames.push(text)
      socket.send(`echo ${text}`)
    },
    close() {
      seen.closed++
    },
  })
const path = `/api/agents/${known}/ws`

/** A client that keeps what it got. */
function client(url: string, protocols: string[] = []) {
  const socket = new WebSocket(url, protocols)
  const got: string[] = []
  const waiting: (() => void)[] = []
  const closed = new Promise<CloseEvent>((resolve) => {
    socket.addEventListener('close', resolve)
  })
  socket.addEventListener('error', () => {})
  socket.addEventListener('message', ({ data }) => {
    got.push(String(data))
    for (const wake of waiting.splice(0)) wake()
  })
  const until = async (count: number): Promise<string[]> => {
    while (got.length < count)
      await Promise.race([
        new Promise<void>((resolve) => waiting.push(resolve)),
        closed.then(() => {
          throw new Error(`closed after ${got.length}`)
        }),
      ])
    return got
  }
  return { socket, got, until, closed }
}

/** Sends an upgrade by hand and reads the whole answer. */
async function upgrade(port: number, target: string, headers: Record<string, string> = {}) {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => socket.destroy())
  const all = {
    Host: 'localhost',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    ...headers,
  }
  socket.write(
    `GET ${target} HTTP/1.1\r\n${Object.entries(all)
      .map(([name, value]) => `${name}: ${value}\r\n`)
      .join('')}\r\n`,
  )
  const [data] = (await once(socket, 'data')) as [Buffer]
  socket.destroy()
  return parseAnswer(data.toString())
}

test('a socket opens, echoes in order and closes', async () => {
  const seen: Seen = { sockets: [], frames: [], closed: 0 }
  const { wsUrl, scope } = await open([], { sockets: [echoSocket(seen)] })
  const { socket, until, closed } = client(`${wsUrl}${path}`)
  await until(1)
  for (let n = 0; n < 20; n++) socket.send(String(n))
  expect(await until(21)).toEqual([
    `{"type":"connected","agent":"${known}"}`,
    ...Array.from({ length: 20 }, (_, n) => `echo ${n}`),
  ])
  expect(scope.ledger().filter(({ kind }) => kind === 'socket')).toHaveLength(1)
  socket.close()
  await closed
  await expect.poll(() => [seen.closed, scope.ledger().filter(({ kind }) => kind === 'socket')]).toEqual([1, []])
  expect(seen.sockets[0]?.signal.aborted).toBe(true)
})

test('the switching answer carries the headers of every answer', async () => {
  const { port } = await open([], { sockets: [echoSocket()] })
  const answer = await upgrade(port, path)
  expect([answer.status, missingHeaders(answer.headers)]).toEqual([101, []])
  expect(answer.headers.has('sec-websocket-extensions')).toBe(false)
})

test('refused upgrades are complete answers: 400, 401, 403, 404, 429', async () => {
  const opened = await open([ping], { sockets: [echoSocket()], settings: { apiKey: 'k' } })
  const { port } = opened
  const key = { Authorization: 'Bearer k' }
  const cases: [string, Record<string, string>, number, string][] = [
    ['/api/agents/nonsense/ws', key, 400, 'invalid_request'],
    ['/api/agents/1d2f2f3e-5f0a-4a58-8b0a-6b1c3f0f7f11/ws', key, 404, 'agent_not_found'],
    ['/api/nothing', key, 404, 'not_found'],
    ['/api/ping', key, 400, 'invalid_request'],
    [path, {}, 401, ''],
    [path, { Authorization: 'Bearer wrong' }, 401, ''],
    [path, { ...key, Origin: 'http://evil.example' }, 403, 'forbidden'],
    [path, { ...key, 'Sec-WebSocket-Key': 'x' }, 400, 'invalid_request'],
    [path, { ...key, 'Sec-WebSocket-Version': '8' }, 400, 'invalid_request'],
    [path, { ...key, Upgrade: 'h2c' }, 400, 'invalid_request'],
    [path, { ...key, 'Sec-WebSocket-Protocol': 'a, a' }, 400, 'invalid_request'],
    ['/api/agents/%zz/ws', key, 400, 'invalid_request'],
  ]
  for (const [target, headers, status, code] of cases) {
    const answer = await upgrade(port, target, headers)
    expect([target, headers, answer.status, missingHeaders(answer.headers)]).toEqual([target, headers, status, []])
    const body = JSON.parse(answer.body) as { error: { code?: string; request_id?: string } }
    if (code === '') expect([typeof body.error, answer.headers.get('www-authenticate')]).toEqual(['string', 'Bearer'])
    else expect(body.error).toMatchObject({ code, request_id: answer.headers.get('x-request-id') })
  }
  opened.settings.tokensPerMinute = 1
  // What was used before may be given back by now, on a slow machine: this takes the only token of the minute, if it
  // is there.
  await fetch(`${opened.url}/api/ping`).then((answer) => answer.arrayBuffer())
  const limited = await upgrade(port, path, key)
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '60'])
})

test('without a key a foreign page cannot open a socket, a local one can', async () => {
  const { port } = await open([], { sockets: [echoSocket()] })
  expect((await upgrade(port, path, { Origin: 'https://evil.example' })).status).toBe(403)
  expect((await upgrade(port, path, { Origin: 'null' })).status).toBe(403)
  expect((await upgrade(port, path, { Host: 'evil.example' })).status).toBe(403)
  expect((await upgrade(port, path, { Origin: 'http://localhost:3000' })).status).toBe(101)
})

test('without a key another port of this machine is let in nowhere, unless it is configured', async () => {
  const { port } = await open([{ ...ping, method: 'POST' }], {
    sockets: [echoSocket()],
    settings: { allowedHosts: ['localhost:8443', 'proxy.internal'] },
  })
  const answers = async (headers: Record<string, string>): Promise<number[]> => {
    const lines = Object.entries({ Connection: 'close', 'Content-Length': '0', ...headers })
    const posted = await raw(
      port,
      `POST /api/ping HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`,
    )
    return [posted.status, (await upgrade(port, path, headers)).status]
  }
  for (const Host of ['localhost:9999', '127.0.0.1:1', '[::1]:80', '127.0.0.2:9999'])
    expect([Host, await answers({ Host })]).toEqual([Host, [403, 403]])
  for (const Host of [`localhost:${port}`, 'localhost:8443', 'proxy.internal:9999', 'proxy.internal'])
    expect([Host, await answers({ Host })]).toEqual([Host, [200, 101]])
  const Host = `localhost:${port}`
  for (const Origin of ['http://localhost:9999', 'http://localhost', 'https://127.0.0.1'])
    expect([Origin, await answers({ Host, Origin })]).toEqual([Origin, [403, 403]])
  // Beside its own port those of development servers.
  for (const Origin of [`http://localhost:${port}`, `http://127.0.0.1:${port}`, 'http://localhost:3000'])
    expect([Origin, await answers({ Host, Origin })]).toEqual([Origin, [200, 101]])
})

test('too many wrong keys are refused before they are compared', async () => {
  const { port, failures } = await open([], {
    sockets: [echoSocket()],
    settings: { apiKey: 'k', failedAuthPerMinute: 3 },
  })
  for (let n = 0; n < 3; n++) expect((await upgrade(port, path, { Authorization: 'Bearer guess' })).status).toBe(401)
  expect((await upgrade(port, path, { Authorization: 'Bearer k' })).status).toBe(429)
  expect(failures).toHaveLength(3)
})

test('a browser opens a socket with a one-use ticket', async () => {
  const { url, port, wsUrl, settings } = await open([], { sockets: [echoSocket()], settings: { apiKey: 'k' } })
  const ask = async () =>
    (await (
      await fetch(`${url}/api/auth/ws-ticket`, { method: 'POST', headers: { authorization: 'Bearer k' } })
    ).json()) as { ticket: string; protocol: string; expires_in: number }
  expect((await fetch(`${url}/api/auth/ws-ticket`, { method: 'POST' })).status).toBe(401)
  const { ticket, protocol, expires_in } = await ask()
  expect([protocol, expires_in]).toEqual([`svc.ticket.${ticket}`, 30])
  const { socket, until } = client(`${wsUrl}${path}`, ['svc', protocol])
  await until(1)
  expect(socket.protocol).toBe('svc')
  socket.close()
  expect((await upgrade(port, path, { 'Sec-WebSocket-Protocol': `svc, ${protocol}` })).status).toBe(401)
  expect((await upgrade(port, path, { 'Sec-WebSocket-Protocol': 'svc.ticket.AAAA' })).status).toBe(401)
  const old = await ask()
  settings.apiKey = 'other'
  expect((await upgrade(port, path, { 'Sec-WebSocket-Protocol': old.protocol })).status).toBe(401)
})

test('a socket opened with a key is closed when the key changes', async () => {
  const opened = await open([ping], { sockets: [echoSocket()], settings: { apiKey: 'k' } })
  const { protocol } = (await (
    await fetch(`${opened.url}/api/auth/ws-ticket`, { method: 'POST', headers: { authorization: 'Bearer k' } })
  ).json()) as { protocol: string }
  const { until, closed } = client(`${opened.wsUrl}${path}`, [protocol])
  await until(1)
  opened.settings.apiKey = 'new'
  expect((await fetch(`${opened.url}/api/ping`)).status).toBe(200)
  expect(await closed).toMatchObject({ code: 1008, reason: 'unauthorized' })
})

test('binary frames are refused with 1003 and far oversized ones with 1009', async () => {
  const { wsUrl } = await open([], { sockets: [echoSocket()], settings: { socketFrameBytes: 1000 } })
  const binary = client(`${wsUrl}${path}`)
  await binary.until(1)
  binary.socket.send(new Uint8Array([1]))
  expect((await binary.closed).code).toBe(1003)
  const large = client(`${wsUrl}${path}`)
  await large.until(1)
  large.socket.send('x'.repeat(4001))
  expect((await large.closed).code).toBe(1009)
})

test('a frame over the limit is refused and the socket goes on', async () => {
  const { wsUrl } = await open([], {
    sockets: [
      {
        ...echoSocket(),
        refused(socket, _state, problem) {
          socket.send(`refused ${problem.code}: ${problem.message}`)
        },
      },
    ],
    settings: { socketFrameBytes: 65_536 },
  })
  const { socket, until } = client(`${wsUrl}${path}`)
  await until(1)
  socket.send('\u4e16'.repeat(22_000))
  expect((await until(2))[1]).toBe('refused payload_too_large: Message too large (max 64KB)')
  socket.send('x'.repeat(65_536))
  expect((await until(3))[2]).toHaveLength(65_536 + 'echo '.length)
  socket.close()
})

test('an address may have so many sockets and no more; one that closes makes room', async () => {
  const { wsUrl, url } = await open([], { sockets: [echoSocket()], settings: { socketsPerAddress: 2 } })
  const [first, second] = [client(`${wsUrl}${path}`), client(`${wsUrl}${path}`)]
  await Promise.all([first.until(1), second.until(1)])
  const port = Number(new URL(url).port)
  const answer = await upgrade(port, path)
  expect([answer.status, answer.headers.get('retry-after'), missingHeaders(answer.headers)]).toEqual([429, '60', []])
  first.socket.close()
  await first.closed
  // The server hears of the end a moment after the client.
  while ((await upgrade(port, path)).status === 429)
    await new Promise((resolve) => {
      setImmediate(resolve)
    })
  second.socket.close()
})

test('a client that sends nothing for too long is closed, even when it answers pings', async () => {
  const { wsUrl } = await open([], { sockets: [echoSocket()], settings: { socketIdleMs: 60 } })
  const { closed, until } = client(`${wsUrl}${path}`)
  await until(1)
  expect(await closed).toMatchObject({ code: 1000, reason: 'idle' })
})

test('a route may price its frames', async () => {
  const { wsUrl } = await open([], {
    sockets: [
      {
        ...echoSocket(),
        costOf: (text: string) => (text === 'cheap' ? 0 : 1000),
        refused(socket, _state, problem) {
          socket.send(problem.code)
        },
      },
    ],
    settings: { tokensPerMinute: 20 },
  })
  const { socket, until } = client(`${wsUrl}${path}`)
  await until(1)
  for (const text of ['cheap', 'cheap', 'dear', 'dear']) socket.send(text)
  expect((await until(5)).slice(1)).toContain('rate_limit')
  socket.close()
})

test('every frame costs tokens; over the limit the socket is closed, or the route is told', async () => {
  const seen: Seen = { sockets: [], frames: [], closed: 0 }
  const plain = await open([], { sockets: [echoSocket(seen)], settings: { tokensPerMinute: 20 } })
  const first = client(`${plain.wsUrl}${path}`)
  await first.until(1)
  first.socket.send('a')
  await first.until(2)
  first.socket.send('b')
  expect(await first.closed).toMatchObject({ code: 1008, reason: 'Rate limit exceeded' })
  const told = await open([], {
    sockets: [
      {
        ...echoSocket(),
        refused(socket, _state, problem) {
          socket.send(`refused ${problem.code}`)
        },
      },
    ],
    settings: { tokensPerMinute: 20 },
  })
  const second = client(`${told.wsUrl}${path}`)
  await second.until(1)
  second.socket.send('a')
  second.socket.send('b')
  expect((await second.until(3)).slice(1).sort()).toEqual(['echo a', 'refused rate_limit'])
  second.socket.close()
})

test('frames are delivered one at a time, and a flood of waiting ones closes the socket', async () => {
  const gate = Promise.withResolvers<void>()
  const order: string[] = []
  const slow = {
    ...echoSocket(),
    async frame(_socket: Socket, _state: unknown, text: string) {
      order.push(`start ${text}`)
      await gate.promise
      order.push(`end ${text}`)
    },
  }
  const { wsUrl } = await open([], { sockets: [slow] })
  const { socket, until, closed } = client(`${wsUrl}${path}`)
  await until(1)
  socket.send('1')
  socket.send('2')
  await expect.poll(() => order).toEqual(['start 1'])
  gate.resolve()
  await expect.poll(() => order).toEqual(['start 1', 'end 1', 'start 2', 'end 2'])
  socket.close()
  await closed
  const stuck = await open([], { sockets: [{ ...echoSocket(), frame: () => new Promise<void>(() => {}) }] })
  const flood = client(`${stuck.wsUrl}${path}`)
  await flood.until(1)
  for (let n = 0; n < 100; n++) flood.socket.send('x')
  expect(await flood.closed).toMatchObject({ code: 1008, reason: 'too many frames at once' })
})

test('a client that does not read is closed with 1013, and drained() waits for one that is slow', async () => {
  const seen: Seen = { sockets: [], frames: [], closed: 0 }
  const { port } = await open([], { sockets: [echoSocket(seen)], settings: { socketBufferBytes: 200_000 } })
  const socket = connect(port, '127.0.0.1')
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `Host: localhost`,
      `Connection: Upgrade`,
      `Upgrade: websocket`,
      `Sec-WebSocket-Version: 13`,
      `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==`,
      ``,
      ``,
    ].join('\r\n'),
  )
  await once(socket, 'data')
  socket.pause()
  const live = seen.sockets[0]
  if (!live) throw new Error('no socket')
  while (live.bufferedBytes < 150_000) live.send('x'.repeat(10_000))
  let drained = false
  const waiting = live.drained().then(() => {
    drained = true
  })
  expect(drained).toBe(false)
  socket.resume()
  await waiting
  socket.pause()
  while (!live.signal.aborted) live.send('x'.repeat(10_000))
  await live.drained()
  expect(live.bufferedBytes).toBeLessThan(400_000)
  socket.destroy()
  await expect.poll(() => seen.closed).toBe(1)
})

test('unloading the plugin closes its sockets with 1001', async () => {
  const { wsUrl, scope } = await open([], { sockets: [echoSocket()] })
  const { until, closed } = client(`${wsUrl}${path}`)
  await until(1)
  await scope.close(1_000)
  expect(await closed).toMatchObject({ code: 1001, reason: 'service restart' })
  expect(scope.ledger()).toEqual([])
})

test('a drain closes sockets with 1001', async () => {
  const { wsUrl, http } = await open([], { sockets: [echoSocket()] })
  const { until, closed } = client(`${wsUrl}${path}`)
  await until(1)
  await http.drain(1_000)
  expect(await closed).toMatchObject({ code: 1001, reason: 'service restart' })
})

test('a drain does not wait for a client that never answers the close', async () => {
  const { port, http } = await open([], { sockets: [echoSocket()] })
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => socket.destroy())
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `Host: localhost`,
      `Connection: Upgrade`,
      `Upgrade: websocket`,
      `Sec-WebSocket-Version: 13`,
      `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==`,
      ``,
      ``,
    ].join('\r\n'),
  )
  await once(socket, 'data')
  await http.drain(1_000)
  socket.destroy()
})

test('a silent client that does not answer pings is cut', async () => {
  const { port } = await open([], { sockets: [echoSocket()], settings: { socketIdleMs: 50 } })
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => socket.destroy())
  socket.write(
    [
      `GET ${path} HTTP/1.1`,
      `Host: localhost`,
      `Connection: Upgrade`,
      `Upgrade: websocket`,
      `Sec-WebSocket-Version: 13`,
      `Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==`,
      ``,
      ``,
    ].join('\r\n'),
  )
  await once(socket, 'data')
  socket.resume()
  await new Promise((resolve) => socket.on('close', resolve))
})

test('a handler that throws ends its socket with 1011, is reported, and harms no other', async () => {
  const broken = {
    ...echoSocket(),
    path: '/api/broken/:id' as const,
    frame() {
      throw new Error('bug')
    },
  }
  const { wsUrl, defects } = await open([], { sockets: [echoSocket(), broken] })
  const fine = client(`${wsUrl}${path}`)
  const bad = client(`${wsUrl}/api/broken/${known}`)
  await Promise.all([fine.until(1), bad.until(1)])
  bad.socket.send('x')
  expect(await bad.closed).toMatchObject({ code: 1011, reason: 'internal error' })
  expect(defects).toMatchObject([{ where: 'WebSocket /api/broken/:id frame' }])
  fine.socket.send('y')
  expect((await fine.until(2))[1]).toBe('echo y')
  fine.socket.close()
})

test('an upgrade waits while its plugin is replaced', async () => {
  const { http, wsUrl, scope } = await open([], { sockets: [echoSocket()] })
  const release = http.hold(['plugin'])
  await scope.close(100)
  const waiting = client(`${wsUrl}${path}`)
  const next = new Scope('plugin')
  http.forPlugin(next).addSocket(echoSocket())
  release()
  await waiting.until(1)
  waiting.socket.close()
})
