import { connect } from 'node:net'
import { once } from 'node:events'
import { expect, test } from 'vitest'
import * as v from 'valibot'
import { defineError } from '../../../core/errors/codes.ts'
import { Refusal, UpstreamFailure } from '../../../core/errors/error.ts'
import { defineRoute, defineSocket, reply } from '../../../core/http/route.ts'
import { echo, guarded, missingHeaders, open, parseAnswer, ping, raw } from './harness.ts'
import type { CodedBody } from './harness.ts'

const throwing = (path: `/${string}`, error: () => unknown) =>
  defineRoute({
    method: 'GET',
    path,
    summary: 'Throws',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    handle: () => {
      throw error()
    },
  })

test('every answer carries the security headers and a fresh id', async () => {
  const socket = defineSocket({
    path: '/api/ws',
    summary: 'S',
    auth: 'bearer',
    cost: 1,
    effect: 'conversation',
    frameCost: 1,
    accept: () => null,
    open() {},
    frame() {},
  })
  const { url, port, settings } = await open([ping, guarded, echo, throwing('/api/bug', () => new Error('x'))], {
    settings: { apiKey: 'k' },
    sockets: [socket],
  })
  const key = { authorization: 'Bearer k' }
  const asks: [string, RequestInit, number][] = [
    ['/api/ping', {}, 200],
    ['/api/ping', { method: 'HEAD' }, 200],
    ['/api/ping', { method: 'OPTIONS' }, 204],
    ['/api/ping', { method: 'POST' }, 405],
    ['/nothing', {}, 404],
    ['/api/secret', {}, 401],
    ['/api/echo', { method: 'POST', headers: key, body: '{' }, 400],
    ['/api/echo', { method: 'POST', headers: key, body: 'x'.repeat(20_000) }, 413],
    ['/api/bug', {}, 500],
    ['/api/echo', { method: 'POST', headers: { ...key, origin: 'http://evil.example' }, body: '{}' }, 403],
    ['/api/ws', {}, 401],
    ['/api/ws', { headers: key }, 400],
  ]
  const ids = new Set<string | null>()
  for (const [path, init, status] of asks) {
    const answer = await fetch(`${url}${path}`, {
      ...init,
      ...(init.body === undefined
        ? {}
        : { headers: { 'content-type': 'application/json', ...(init.headers as Record<string, string>) } }),
    })
    await answer.text()
    expect([path, answer.status, missingHeaders(answer.headers)]).toEqual([path, status, []])
    ids.add(answer.headers.get('x-request-id'))
  }
  for (const bytes of [
    'garbage\r\n\r\n',
    'GET / HTTP/1.1\r\n\r\n',
    'GET / HTTP/9.9\r\nHost: x\r\n\r\n',
    `GET / HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
    'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n',
    'GET /api/ping HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\nConnection: close\r\n\r\n',
  ]) {
    const answer = await raw(
      port,
      bytes.replace(
        '\r\n\r\n',
        bytes.startsWith('GET / HTTP/1.1\r\n\r\n') ? '\r\nConnection: close\r\n\r\n' : '\r\n\r\n',
      ),
    )
    expect([answer.text.slice(0, 40), missingHeaders(answer.headers)]).toEqual([answer.text.slice(0, 40), []])
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(JSON.parse(answer.body)).toHaveProperty('error')
    ids.add(answer.headers.get('x-request-id'))
  }
  expect(ids.size).toBe(asks.length + 6)
  settings.tokensPerMinute = 1
  expect(missingHeaders((await fetch(`${url}/api/ping`)).headers)).toEqual([])
})

test('an answer cannot say who serves it, nor take away what every answer carries', async () => {
  const hidden = defineRoute({
    method: 'GET',
    path: '/api/boast',
    summary: 'Boasts',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    handle: () =>
      reply('x', {
        'X-Powered-By': 'x',
        Server: 'x',
        'X-Request-Id': 'x',
        'X-Frame-Options': 'ALLOW',
        'Content-Security-Policy': 'sandbox',
        'Cache-Control': 'no-cache',
      }),
  })
  const { url } = await open([hidden])
  const { headers } = await fetch(`${url}/api/boast`)
  expect(missingHeaders(headers)).toEqual([])
  expect(headers.get('content-security-policy')).toMatch(/^default-src 'self'; .*; sandbox$/)
  expect(headers.get('cache-control')).toBe('no-cache')
})

test('an id sent by the client is not used', async () => {
  const { url } = await open([ping])
  const sent = '3f0c8f5e-1111-4222-8333-444455556666'
  const answer = await fetch(`${url}/api/ping`, { headers: { 'x-request-id': sent } })
  expect(answer.headers.get('x-request-id')).not.toBe(sent)
})

test('API answers are not stored', async () => {
  const { url } = await open([ping])
  expect((await fetch(`${url}/api/ping`)).headers.get('cache-control')).toBe('no-store')
})

test('a refusal is coded, and its id is the one in the header', async () => {
  const { url } = await open([
    throwing('/api/x', () => new Refusal('agent_not_found', 'No agent x', { details: { id: 'x' } })),
  ])
  const answer = await fetch(`${url}/api/x`)
  expect(answer.status).toBe(404)
  expect(await answer.json()).toEqual({
    error: {
      code: 'agent_not_found',
      message: 'No agent x',
      details: { id: 'x' },
      request_id: answer.headers.get('x-request-id'),
    },
  })
})

const KeyNotFound = defineError('key_not_found', { status: 404, format: 'flat', meaning: 'the key does not exist' })
test('an error is answered as its plugin defined it', async () => {
  const { url } = await open([throwing('/api/x', () => new Refusal(KeyNotFound, 'No key "a"'))])
  expect(await (await fetch(`${url}/api/x`)).json()).toEqual({ error: 'No key "a"' })
})

test('a defect says nothing of itself, is logged with its stack and reported', async () => {
  const { url, defects, logged } = await open([throwing('/api/x', () => new Error('SELECT secret FROM /home/me'))])
  const answer = await fetch(`${url}/api/x`)
  const text = await answer.text()
  expect(answer.status).toBe(500)
  expect((JSON.parse(text) as CodedBody).error).toMatchObject({
    code: 'internal_error',
    message: 'Internal server error',
    details: {},
  })
  expect(text).not.toContain('SELECT')
  expect(defects).toMatchObject([{ where: 'GET /api/x', error: { message: 'SELECT secret FROM /home/me' } }])
  expect(logged.join()).toContain('request failed')
})

test('an upstream failure is 503 when it may pass and 500 when it will not, without details', async () => {
  const { url, defects } = await open([
    throwing(
      '/api/later',
      () =>
        new UpstreamFailure('openai', 'openai is busy', { reason: 'overloaded', retry: 'later', retryAfterSecs: 7 }),
    ),
    throwing(
      '/api/never',
      () => new UpstreamFailure('openai', 'openai refused the key', { reason: 'auth', retry: 'never' }),
    ),
  ])
  const later = await fetch(`${url}/api/later`)
  expect([later.status, later.headers.get('retry-after'), ((await later.json()) as CodedBody).error.code]).toEqual([
    503,
    '7',
    'service_unavailable',
  ])
  const never = await fetch(`${url}/api/never`)
  expect([never.status, ((await never.json()) as CodedBody).error.code]).toEqual([500, 'internal_error'])
  expect(defects).toEqual([])
})

test('an upstream system puts work off for a day at most', () => {
  const paused = (retryAfterSecs: number) =>
    new UpstreamFailure('x', 'x is busy', { reason: 'overloaded', retry: 'later', retryAfterSecs }).retryAfterSecs
  expect([7, 1e9, Infinity, NaN].map(paused)).toEqual([7, 86_400, 86_400, undefined])
})

test('a route may have an error format of its own, for every refusal after its lookup', async () => {
  const own = defineRoute({
    method: 'POST',
    path: '/v1/x',
    summary: 'X',
    auth: 'bearer',
    effect: 'conversation',
    cost: 1,
    body: v.object({ a: v.string() }),
    returns: v.unknown(),
    renderError: ({ message, code }) => ({ error: { message, type: code } }),
    handle: () => ({}),
  })
  const { url } = await open([own], { settings: { apiKey: 'k' } })
  expect(await (await fetch(`${url}/v1/x`, { method: 'POST' })).json()).toEqual({
    error: { message: 'Missing Authorization: Bearer <api_key> header', type: 'unauthorized' },
  })
})

test('smuggled lengths are refused', async () => {
  const { port } = await open([echo])
  const head = 'POST /api/echo HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n'
  for (const framing of [
    'Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}',
    'Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    'Transfer-Encoding: xchunked\r\n\r\n',
    'Content-Length: -1\r\n\r\n',
    'Content-Length: 2\nX: y\r\n\r\n{}',
  ]) {
    const answer = await raw(port, head + framing)
    expect([framing, answer.status]).toEqual([framing, 400])
    expect(answer.text.match(/HTTP\/1\.1 \d/g)).toHaveLength(1)
  }
})

test('a client that does not finish its headers is cut with 408', async () => {
  const { port } = await open([ping], { settings: { headersTimeoutMs: 100, requestTimeoutMs: 200 } })
  const answer = await raw(port, 'GET /api/ping HTTP/1.1\r\nHost: localhost\r\n')
  expect([answer.status, missingHeaders(answer.headers)]).toEqual([408, []])
})

test('a client that does not finish its body is cut with 408', async () => {
  const { port } = await open([echo], { settings: { headersTimeoutMs: 100, requestTimeoutMs: 200 } })
  const answer = await raw(port, 'POST /api/echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{')
  expect([answer.status, missingHeaders(answer.headers)]).toEqual([408, []])
})

test('while draining, an open connection gets 503 and is told to close', async () => {
  const started = Promise.withResolvers<void>()
  const finish = Promise.withResolvers<void>()
  const slow = defineRoute({
    method: 'GET',
    path: '/api/slow',
    summary: 'Slow',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: v.unknown(),
    handle: async () => {
      started.resolve()
      await finish.promise
      return { ok: true }
    },
  })
  const { http, port } = await open([slow, ping])
  const first = connect(port, '127.0.0.1')
  const second = connect(port, '127.0.0.1')
  await Promise.all([once(first, 'connect'), once(second, 'connect')])
  second.write('GET /api/ping HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await once(second, 'data')
  first.write('GET /api/slow HTTP/1.1\r\nHost: localhost\r\n\r\n')
  second.write('GET /api/ping HTTP/1.1\r\nHost: localhost\r\nX-Half: 1\r\n')
  await started.promise
  const drained = http.drain(5_000)
  second.write('\r\n')
  const [refused] = (await once(second, 'data')) as [Buffer]
  const answer = parseAnswer(refused.toString())
  expect([answer.status, answer.headers.get('connection'), missingHeaders(answer.headers)]).toEqual([503, 'close', []])
  finish.resolve()
  const [done] = (await once(first, 'data')) as [Buffer]
  expect(parseAnswer(done.toString()).status).toBe(200)
  await drained
  first.destroy()
  second.destroy()
})
