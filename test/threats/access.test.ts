import type crypto from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createAuth } from '../../core/auth/bearer.ts'
import { createLimiter } from '../../core/limit/gcra.ts'
import { raw } from '../core/http/harness.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'

const compared = vi.hoisted(() => ({ count: 0 }))
vi.mock('node:crypto', async (original) => {
  const real = await original<typeof crypto>()
  return {
    ...real,
    timingSafeEqual: (...sides: Parameters<typeof real.timingSafeEqual>) => {
      compared.count++
      return real.timingSafeEqual(...sides)
    },
  }
})

const key = 'correct-horse-battery-staple'
const bearer = { authorization: `Bearer ${key}` }
let locked: TestHost
let open: TestHost
beforeAll(async () => {
  ;[locked, open] = await Promise.all([startHost({ config: { api_key: key } }), startHost()])
})
afterAll(() => Promise.all([locked[Symbol.asyncDispose](), open[Symbol.asyncDispose]()]))

const portOf = (host: TestHost): number => Number(new URL(host.url).port)
/** Exactly these bytes as a request line, which no client would send. */
const request = (host: TestHost, line: string, headers: readonly string[] = [], body = '') =>
  raw(
    portOf(host),
    `${line}\r\nHost: 127.0.0.1:${portOf(host)}\r\nConnection: close\r\n${headers.map((header) => `${header}\r\n`).join('')}\r\n${body}`,
  )
const agentsOf = async (host: TestHost, headers: Record<string, string> = {}): Promise<number> =>
  (await host.json('GET', '/api/agents', undefined, headers)).body.length
const manifest = 'name = "intruder"\n[model]\nprovider = "builtin"\nmodel = "offline"\n'

describe('threats: who may call', () => {
  it('Auth forgotten on one route, or done after the work', async () => {
    const document = (await locked.json('GET', '/api/openapi.json', undefined, bearer)).body as {
      paths: Record<string, Record<string, object>>
    }
    const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ path: path.replaceAll(/\{\w+\}/g, 'x'), method: method.toUpperCase() })),
    )
    expect(operations.length).toBeGreaterThan(90)
    const before = (await locked.json('GET', '/api/audit/verify', undefined, bearer)).body
    const answers = await Promise.all(
      operations.map(async ({ method, path }) => {
        // What is wrong with the body or the id is not said to somebody without the key.
        const response = await fetch(locked.url + path, {
          method,
          headers: { 'content-type': 'application/json' },
          ...(method === 'GET' ? {} : { body: '{"half' }),
        })
        const text = await response.text()
        return { what: `${method} ${path}`, status: response.status, text }
      }),
    )
    const open = answers.filter(({ status }) => status !== 401).map(({ what }) => what)
    expect(open.toSorted()).toEqual([
      'GET /',
      // The platform signs these: they answer 404 where there is no such channel.
      'GET /api/channels/x/webhook',
      'GET /api/channels/x/webhook/x',
      'GET /api/health',
      // A browser comes back here from a login, with a state that is used once.
      'GET /api/mcp/oauth/callback',
      // What an authorization server reads of this client.
      'GET /api/mcp/oauth/client-metadata.json',
      // A page asks before it has a key whether it can be remembered.
      'GET /api/pairing',
      // A load balancer asks it.
      'GET /api/ready',
      'GET /assets/x',
      // The address is signed, ends soon, and shows one canvas in which nothing runs.
      'GET /canvas/x/x',
      // Pages without data: the reference asks for the key, and the guide is that of every daemon.
      'GET /docs',
      'GET /docs/guide',
      'GET /docs/guide/x',
      'GET /favicon.svg',
      'GET /frames/kit/x',
      'GET /frames/x/x/x',
      'GET /pages/kit/x',
      'GET /pages/x/x/x',
      'POST /api/channels/x/webhook',
      'POST /api/channels/x/webhook/x',
    ])
    expect(
      answers.filter(
        ({ status, text }) =>
          status === 401 &&
          // Each protocol has its own shape of an error.
          !/^\{("jsonrpc":"2\.0",)?"error":(\{("code":-32000,)?"message":)?"Missing Authorization: Bearer <api_key> header"/.test(
            text,
          ),
      ),
    ).toEqual([])
    const after = (await locked.json('GET', '/api/audit/verify', undefined, bearer)).body
    expect(after.entries ?? after.total ?? after.count).toBe(before.entries ?? before.total ?? before.count)
  })

  it.each([
    '//api/agents',
    '/api//agents',
    '/./api/agents',
    '/api/./agents',
    '/api/health/../agents',
    '/api/health/..%2fagents',
    '/api/%61gents',
    '/%61pi/agents',
    '/API/agents',
    '/api/agents/',
    '/api/agents;/',
    '/api/agents%00',
    '/api/agents%3f',
    '/api\\agents',
    '/api/health%2f..%2fagents',
    '/assets/../api/agents',
    '/assets/..%2fapi%2fagents',
    '/api/agents#/api/health',
    '/;/api/agents',
    '/api/agents?path=/api/health',
  ])('Path tricks around the check: %s', async (path) => {
    const answer = await request(locked, `GET ${path} HTTP/1.1`)
    expect([400, 401, 404]).toContain(answer.status)
    expect(answer.body).not.toContain('"state"')
  })
  it('Path tricks around the check: a whole address in the request line', async () => {
    const answer = await request(locked, `GET http://127.0.0.1:${portOf(locked)}/api/agents HTTP/1.1`)
    expect([400, 401, 404]).toContain(answer.status)
  })

  it('Key unset and bound wide', async () => {
    await using host = await startHost({ listen: false, config: { listen_addr: '0.0.0.0:0' } })
    await expect(host.app.listen()).rejects.toThrow(/key/)
  })

  it('Brute force, incl. loopback and WS', async () => {
    await using host = await startHost({
      config: { api_key: key, rate_limit: { tokens_per_minute: 1_000_000, failed_auth_per_minute: 10 } },
    })
    const statuses: number[] = []
    for (let guess = 0; guess < 14; guess++) {
      const headers =
        guess % 2 === 0
          ? []
          : ['Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==']
      const path = guess % 2 === 0 ? '/api/agents' : '/api/agents/0f6a9c1e-4b1f-4a8e-9b63-0a4a5f1f2c3d/ws'
      const connection = guess % 2 === 0 ? [] : ['Connection: Upgrade']
      const answer = await raw(
        portOf(host),
        `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${portOf(host)}\r\n${[...headers, ...connection, `Authorization: Bearer guess-${guess}`, ...(guess % 2 === 0 ? ['Connection: close'] : [])].map((line) => `${line}\r\n`).join('')}\r\n`,
      )
      statuses.push(answer.status)
    }
    expect(statuses.slice(0, 10)).toEqual(Array.from({ length: 10 }, () => 401))
    expect(statuses.slice(10)).toEqual([429, 429, 429, 429])
    // Not even the right key is compared now, or its answer would tell a guesser that it was right.
    expect((await host.fetch('/api/agents', { headers: bearer })).status).toBe(429)
  })

  it('Timing oracle on key', () => {
    const auth = createAuth({
      apiKey: () => key,
      failures: createLimiter({ tokens: 100, windowMs: 60_000, maxKeys: 10, now: () => 0 }),
    })
    const credentials = (given: string) => ({
      method: 'GET',
      path: '/',
      requestId: '',
      header: (name: string) => (name === 'authorization' ? `Bearer ${given}` : undefined),
    })
    // Keys of every length, right at the beginning or not at all, are compared once and as a whole.
    for (const given of ['x', key.slice(0, -1), `${key}x`, 'y'.repeat(4096)]) {
      compared.count = 0
      expect(() => auth.check('bearer', credentials(given), '127.0.0.1', 'a')).toThrow('Invalid API key')
      expect(compared.count).toBe(1)
    }
    expect(auth.check('bearer', credentials(key), '127.0.0.1', 'a').kind).toBe('operator')
  })

  it.each([
    ['two different keys', ['Authorization: Bearer wrong', `Authorization: Bearer ${key}`]],
    ['a list', [`Authorization: Bearer wrong, Bearer ${key}`]],
    ['a folded line', ['Authorization: Bearer', `\t${key}`]],
    ['another scheme', [`Authorization: Basic ${Buffer.from(`x:${key}`).toString('base64')}`]],
    ['a key with NUL', [`Authorization: Bearer ${key}\u0000`]],
    ['no space', [`Authorization: Bearer${key}`]],
    ['half of it', [`Authorization: Bearer ${key.slice(0, 10)}`]],
    ['other case', [`Authorization: Bearer ${key.toUpperCase()}`]],
    ['a header with a space in its name', [`Authorization : Bearer ${key}`]],
    ['a cookie', [`Cookie: api_key=${key}; authorization=Bearer ${key}`]],
    ['a proxy header', [`Proxy-Authorization: Bearer ${key}`]],
    ['an original header', ['X-Original-URL: /api/health', 'X-Rewrite-URL: /api/health']],
  ])('Header parsing: %s', async (_, headers) => {
    const answer = await request(locked, 'GET /api/agents HTTP/1.1', headers)
    expect([400, 401]).toContain(answer.status)
  })

  it('Method/override tricks', async () => {
    const {
      body: { agent_id: id },
    } = await open.json('POST', '/api/agents', { manifest_toml: manifest })
    for (const header of ['x-http-method-override', 'x-method-override', 'x-http-method'])
      await open.fetch(`/api/agents/${id}?_method=DELETE`, { headers: { [header]: 'DELETE' } })
    await open.fetch(`/api/agents/${id}`, { method: 'HEAD' })
    expect((await open.fetch(`/api/agents/${id}`)).status).toBe(200)
    for (const method of ['TRACE', 'CONNECT', 'PROPFIND', 'FOO']) {
      const answer = await request(locked, `${method} /api/agents HTTP/1.1`)
      expect(answer.status === 0 || answer.status >= 400).toBe(true)
      expect(answer.body).not.toContain(key)
    }
    expect((await locked.fetch('/api/agents', { method: 'HEAD' })).status).toBe(401)
    await open.json('DELETE', `/api/agents/${id}`)
  })

  it.each([
    ['two lengths', ['Content-Length: 4', 'Content-Length: 44']],
    ['a list of lengths', ['Content-Length: 4, 44']],
    ['a length and chunks', ['Content-Length: 4', 'Transfer-Encoding: chunked']],
    ['chunks twice', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked']],
    ['chunks in disguise', ['Transfer-Encoding: xchunked']],
    ['chunks with a tab', ['Transfer-Encoding:\tchunked, identity']],
    ['a negative length', ['Content-Length: -1']],
    ['a length in hexadecimal', ['Content-Length: 0x4']],
    ['a bare line feed', ['X: a\nTransfer-Encoding: chunked']],
  ])('Request smuggling: %s', async (_, headers) => {
    const before = await agentsOf(open)
    const hidden = JSON.stringify({ manifest_toml: manifest })
    const inner = `POST /api/agents HTTP/1.1\r\nHost: 127.0.0.1:${portOf(open)}\r\nContent-Type: application/json\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`
    const answer = await raw(
      portOf(open),
      `POST /api/agents/bulk HTTP/1.1\r\nHost: 127.0.0.1:${portOf(open)}\r\nContent-Type: application/json\r\n${headers.join('\r\n')}\r\n\r\n0\r\n\r\n${inner}`,
    )
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.text.match(/HTTP\/1\.1 /g)).toHaveLength(1)
    expect(await agentsOf(open)).toBe(before)
  })

  it('Rate-limit bypass', async () => {
    await using host = await startHost({
      config: { rate_limit: { tokens_per_minute: 60, failed_auth_per_minute: 10 } },
    })
    const statuses: number[] = []
    for (let n = 0; n < 70; n++) {
      const response = await host.fetch(
        n % 3 === 0 ? `/api/health?n=${n}` : n % 3 === 1 ? '/api/health' : `/not/there/${n}`,
        {
          headers: {
            'x-forwarded-for': `203.0.113.${n}`,
            'x-real-ip': `203.0.113.${n}`,
            forwarded: `for=203.0.113.${n}`,
            'cf-connecting-ip': `203.0.113.${n}`,
          },
        },
      )
      await response.arrayBuffer()
      statuses.push(response.status)
    }
    expect(statuses.filter((status) => status === 429).length).toBeGreaterThanOrEqual(9)
    const refused = await host.fetch('/api/health')
    expect([refused.status, refused.headers.get('retry-after'), await refused.json()]).toEqual([
      429,
      '60',
      { error: 'Rate limit exceeded' },
    ])
  })
})

describe('a daemon without a key behind a proxy', () => {
  const status = async (path: string, headers: Record<string, string>): Promise<number> =>
    (await open.json('GET', path, undefined, headers)).status
  it.each([
    '203.0.113.9',
    '127.0.0.1, 203.0.113.9',
    '203.0.113.9, 127.0.0.1',
    '2001:db8::1',
    '203.0.113.9:4711',
    'unknown',
  ])('serves nobody that the proxy says is on another machine: %s', async (hops) => {
    const answer = await open.json('GET', '/api/agents', undefined, { 'x-forwarded-for': hops })
    expect([answer.status, answer.body.error]).toEqual([401, expect.stringContaining('set api_key')])
  })
  it('serves this machine, and what needs no key', async () => {
    expect(await status('/api/agents', { 'x-forwarded-for': '127.0.0.1, ::1' })).toBe(200)
    expect(await status('/api/health', { 'x-forwarded-for': '203.0.113.9' })).toBe(200)
  })
})
