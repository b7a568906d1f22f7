import { connect, Socket } from 'node:net'
import { PassThrough } from 'node:stream'
import { expect, test, vi } from 'vitest'
import * as v from 'valibot'
import { defineRoute } from '../../../core/http/route.ts'
import type { EventStream, RouteInput, ServerSentEvent } from '../../../core/http/route.ts'
import { EventStreamBody } from '../../../core/http/sse.ts'
import { KeepAlive } from '../../../core/http/streamed-body.ts'
import { missingHeaders, open, ping } from './harness.ts'

const streaming = (
  handle: (input: RouteInput<unknown, unknown, unknown>) => EventStream,
  more: { feed?: true; auth?: 'public' | 'bearer'; renderError?: (problem: { message: string }) => unknown } = {},
) =>
  defineRoute({
    method: 'GET',
    path: '/api/events',
    summary: 'Events',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    streams: v.unknown(),
    ...more,
    handle: handle as never,
  })

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

test('events are written in the wire format, names and ids included', async () => {
  const { url } = await open([
    streaming(async function* () {
      yield { event: 'chunk', data: '{"a":1}', id: '7' }
      yield { data: 'x\ny' }
    }),
  ])
  const answer = await fetch(`${url}/api/events`)
  expect([
    answer.headers.get('content-type'),
    answer.headers.get('cache-control'),
    missingHeaders(answer.headers),
  ]).toEqual(['text/event-stream; charset=utf-8', 'no-store', []])
  expect(await answer.text()).toBe('id: 7\nevent: chunk\ndata: {"a":1}\n\ndata: x\ndata: y\n\n')
})

test('the head goes out before the first event', async () => {
  const first = Promise.withResolvers<void>()
  const { url } = await open([
    streaming(async function* () {
      await first.promise
      yield { data: '1' }
    }),
  ])
  const answer = await fetch(`${url}/api/events`)
  expect(answer.status).toBe(200)
  first.resolve()
  expect(await answer.text()).toBe('data: 1\n\n')
})

test('an answer that is ready at once is one write to the socket, with its head and its end', async () => {
  const { url, port } = await open([
    streaming(async function* () {
      yield { data: '1' }
      yield { data: '2' }
    }),
  ])
  const writes = [vi.spyOn(Socket.prototype, '_write'), vi.spyOn(Socket.prototype, '_writev')]
  try {
    expect(await (await fetch(`${url}/api/events`)).text()).toBe('data: 1\n\ndata: 2\n\n')
    const sockets = writes.flatMap(({ mock }) => mock.contexts as Socket[])
    expect(sockets.filter(({ localPort }) => localPort === port)).toHaveLength(1)
  } finally {
    for (const spy of writes) spy.mockRestore()
  }
})

test('a client of HTTP/1.0 gets the events as they are', async () => {
  const { port } = await open([
    streaming(async function* () {
      yield { data: '1' }
      await new Promise((resolve) => setImmediate(resolve))
      yield { data: '2' }
    }),
  ])
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (bytes) => {
    text += bytes
  })
  socket.write('GET /api/events HTTP/1.0\r\nHost: localhost\r\n\r\n')
  await new Promise((resolve) => socket.on('close', resolve))
  expect(text.split('\r\n\r\n')[1]).toBe('data: 1\n\ndata: 2\n\n')
})

test('events that are ready together leave as one chunk', async () => {
  const { port } = await open([
    streaming(async function* () {
      for (let n = 0; n < 5; n++) yield { data: String(n) }
    }),
  ])
  const socket = connect(port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.write('GET /api/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
  await new Promise((resolve) => socket.on('close', resolve))
  expect(text.split('\r\n\r\n').slice(1).join()).toMatch(
    /^[0-9a-f]+\r\ndata: 0\n\ndata: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n/,
  )
})

test('the source is pulled only as fast as the client reads', async () => {
  let pulled = 0
  const { port } = await open([
    streaming(async function* () {
      for (; pulled < 100_000; pulled++) yield { data: 'x'.repeat(1000) }
    }),
  ])
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.write('GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await expect.poll(() => pulled).toBeGreaterThan(10)
  let before = -1
  await expect
    .poll(
      () => {
        const same = pulled === before
        before = pulled
        return same
      },
      { interval: 100 },
    )
    .toBe(true)
  expect(pulled).toBeLessThan(50_000)
  socket.destroy()
})

test('a source that never waits does not starve other requests', async () => {
  const { url } = await open([
    streaming(async function* ({ signal }) {
      while (!signal.aborted) yield { data: 'x' }
    }),
    ping,
  ])
  const stream = await fetch(`${url}/api/events`)
  const reader = stream.body?.getReader()
  await reader?.read()
  const reading = (async () => {
    for (;;) if ((await reader?.read())?.done !== false) return
  })().catch(() => {})
  expect((await fetch(`${url}/api/ping`)).status).toBe(200)
  await reader?.cancel()
  await reading
})

test('when the client leaves, the signal aborts, the source is closed and the scope is free again', async () => {
  const ended = Promise.withResolvers<unknown>()
  const { url, scope } = await open([
    streaming(async function* ({ signal }) {
      try {
        yield { data: '1' }
        await untilAborted(signal)
      } finally {
        ended.resolve(signal.reason)
      }
    }),
  ])
  const controller = new AbortController()
  const answer = await fetch(`${url}/api/events`, { signal: controller.signal })
  await answer.body?.getReader().read()
  expect(scope.running).toBe(1)
  controller.abort()
  expect(await ended.promise).toMatchObject({ name: 'AbortError' })
  await expect.poll(() => scope.running).toBe(0)
})

test('a source without a finally is closed by return()', async () => {
  const returned = Promise.withResolvers<void>()
  const source: AsyncIterator<ServerSentEvent> = {
    next: () => new Promise(() => {}),
    return: async () => {
      returned.resolve()
      return { done: true, value: undefined }
    },
  }
  const { url } = await open([streaming(() => ({ [Symbol.asyncIterator]: () => source }))])
  const controller = new AbortController()
  await fetch(`${url}/api/events`, { signal: controller.signal })
  controller.abort()
  await returned.promise
})

test('an error in the middle is the last event, in the format of the route', async () => {
  const broken = async function* () {
    yield { data: '1' }
    throw new Error('secret path /x')
  }
  const { url, defects } = await open([streaming(broken)])
  const text = await (await fetch(`${url}/api/events`)).text()
  expect(text).toMatch(
    /^data: 1\n\nevent: error\ndata: \{"error":\{"code":"internal_error","message":"Internal server error"/,
  )
  expect(defects).toHaveLength(1)
  const own = await open([streaming(broken, { renderError: ({ message }) => ({ mine: message }) })])
  expect(await (await fetch(`${own.url}/api/events`)).text()).toContain(
    'event: error\ndata: {"mine":"Internal server error"}',
  )
})

test('a quiet stream gets a comment from the shared timer', async () => {
  const { url } = await open(
    [
      streaming(async function* ({ signal }) {
        await untilAborted(signal)
      }),
    ],
    { settings: { sseKeepAliveMs: 20 } },
  )
  const answer = await fetch(`${url}/api/events`)
  const reader = answer.body?.getReader()
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain(': keep-alive\n\n')
  await reader?.cancel()
})

test('no pause of a quiet stream is longer than the one that is configured', () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  try {
    const out = new PassThrough()
    const silent: EventStream = { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => undefined) }) }
    const keepAlive = new KeepAlive(() => 1000)
    new EventStreamBody({
      events: silent,
      keepAlive,
      allowed: () => true,
      failed: () => undefined,
      last: () => ({ data: '' }),
      feed: false,
      ended: () => undefined,
    }).pipe(out)
    for (let pause = 0; pause < 3; pause++) {
      vi.advanceTimersByTime(1000)
      expect(String(out.read())).toBe(': keep-alive\n\n')
    }
    keepAlive.end('all')
  } finally {
    vi.useRealTimers()
  }
})

test('unloading ends a stream with a last event, and the scope waits for it', async () => {
  const { url, scope } = await open([
    streaming(async function* ({ signal }) {
      yield { data: '1' }
      await untilAborted(signal)
      throw signal.reason
    }),
  ])
  const answer = await fetch(`${url}/api/events`)
  await scope.close(50)
  expect(await answer.text()).toMatch(
    /^data: 1\n\nevent: error\ndata: .*"service_unavailable","message":"service restart"/,
  )
  expect(scope.ledger()).toEqual([])
})

test('an endless feed is a ledger entry that unloading closes at once', async () => {
  const { url, scope } = await open([
    streaming(
      async function* ({ signal }) {
        yield { data: '1' }
        await untilAborted(signal)
      },
      { feed: true },
    ),
  ])
  const answer = await fetch(`${url}/api/events`)
  const reader = answer.body?.getReader()
  await reader?.read()
  expect(scope.running).toBe(0)
  expect(scope.ledger()).toContainEqual({ kind: 'stream', label: 'GET /api/events' })
  await scope.close(10_000)
  expect(scope.ledger()).toEqual([])
  expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('service restart')
})

test('an ended feed leaves the ledger', async () => {
  const { url, scope } = await open([
    streaming(
      async function* () {
        yield { data: '1' }
      },
      { feed: true },
    ),
  ])
  await (await fetch(`${url}/api/events`)).text()
  await expect.poll(() => scope.ledger().filter(({ kind }) => kind === 'stream')).toEqual([])
})

test('a drain ends feeds at once and other streams at its end', async () => {
  const { url, http } = await open([
    streaming(
      async function* ({ signal }) {
        yield { data: '1' }
        await untilAborted(signal)
      },
      { feed: true },
    ),
  ])
  const answer = await fetch(`${url}/api/events`)
  await http.drain(10_000)
  expect(await answer.text()).toContain('service restart')
  const other = await open([
    streaming(async function* ({ signal }) {
      yield { data: '1' }
      await untilAborted(signal)
    }),
  ])
  const second = await fetch(`${other.url}/api/events`)
  await other.http.drain(50)
  expect(await second.text()).toContain('service restart')
})

test('a stream opened with a key ends when the key is changed', async () => {
  const opened = await open(
    [
      streaming(
        async function* ({ signal }) {
          yield { data: '1' }
          await untilAborted(signal)
        },
        { auth: 'bearer' },
      ),
      ping,
    ],
    { settings: { apiKey: 'old' } },
  )
  const answer = await fetch(`${opened.url}/api/events`, { headers: { authorization: 'Bearer old' } })
  opened.settings.apiKey = 'new'
  expect((await fetch(`${opened.url}/api/ping`)).status).toBe(200)
  await expect(answer.text()).rejects.toThrow()
})

test('streams work without a port, too', async () => {
  const { http, scope } = await open(
    [
      streaming(async function* () {
        yield { data: '1' }
        yield { data: '2' }
      }),
    ],
    { listen: false },
  )
  const answer = await http.fetch(new Request('http://localhost/api/events'))
  expect(await answer.text()).toBe('data: 1\n\ndata: 2\n\n')
  await expect.poll(() => scope.running).toBe(0)
})

test('the signal of an ordinary request aborts when its client leaves or its plugin unloads', async () => {
  const reasons: unknown[] = []
  const started = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let n = 0
  const slow = defineRoute({
    method: 'GET',
    path: '/api/slow',
    summary: 'S',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    handle: async ({ signal }) => {
      started[n++]?.resolve()
      await untilAborted(signal)
      reasons.push(signal.reason)
      signal.throwIfAborted()
    },
  })
  const { url, scope, defects } = await open([slow])
  const controller = new AbortController()
  const left = fetch(`${url}/api/slow`, { signal: controller.signal }).catch(() => 'left')
  await started[0]?.promise
  controller.abort()
  expect(await left).toBe('left')
  await expect.poll(() => scope.running).toBe(0)
  const unloaded = fetch(`${url}/api/slow`)
  await started[1]?.promise
  await scope.close(20)
  const answer = await unloaded
  expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '1'])
  expect(reasons).toMatchObject([{ name: 'AbortError' }, { message: 'plugin "plugin" unloaded' }])
  expect(defects).toEqual([])
})
