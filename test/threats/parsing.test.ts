import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { matchesWildcard } from 'svc/internal'
import { raw } from '../core/http/harness.ts'
import { openChat } from '../support/chat-stage.ts'
import { startHost } from '../support/host.ts'
import type { TestHost } from '../support/host.ts'
import { PATIENCE_MS } from '../support/patience.ts'

let host: TestHost
let agent: string
beforeAll(async () => {
  host = await startHost({ config: { http: { max_body_bytes: 1_048_576 } } })
  agent = (
    await host.json('POST', '/api/agents', {
      manifest_toml: 'name = "target"\n[model]\nprovider = "builtin"\nmodel = "offline"\n',
    })
  ).body.agent_id
})
afterAll(() => host[Symbol.asyncDispose]())

const port = (): number => Number(new URL(host.url).port)
const post = (path: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
  host.fetch(path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })
/** Does the work and finds that others are answered meanwhile, or soon after: a daemon that hangs fails the test. */
async function whileServing<T>(work: () => Promise<T>): Promise<{ readonly result: T }> {
  const [result, health] = await Promise.all([
    work(),
    host.fetch('/api/health', { signal: AbortSignal.timeout(PATIENCE_MS) }),
  ])
  expect(health.status).toBe(200)
  return { result }
}

describe('threats: what is sent', () => {
  it('JSON depth bomb', async () => {
    for (const bomb of [
      '['.repeat(400_000),
      '{"a":'.repeat(150_000),
      `{"message":${'['.repeat(100_000)}${']'.repeat(100_000)}}`,
    ]) {
      const { result } = await whileServing(() => post(`/api/agents/${agent}/message`, bomb))
      expect(result.status).toBe(400)
      expect((await result.json()).error.message).toMatch(/nested|JSON/)
    }
  })

  it('Prototype pollution', async () => {
    const poison =
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"manifest_toml":"name = \\"p\\"\\n[metadata.__proto__]\\npolluted = true\\n[metadata.constructor.prototype]\\npolluted = true"}'
    for (const path of ['/api/agents', `/api/agents/${agent}/message`, '/api/config/set', '/v1/chat/completions'])
      await (await post(path, poison)).arrayBuffer()
    await host.json('PUT', `/api/memory/agents/${agent}/kv/__proto__`, { value: { polluted: true } })
    await host.json('POST', '/api/config/set', { key: '__proto__.polluted', value: true })
    await host.fetch('/api/agents?__proto__[polluted]=1&constructor.prototype.polluted=1')
    expect('polluted' in {}).toBe(false)
    expect(JSON.stringify((await host.json('GET', `/api/agents/${agent}`)).body)).not.toContain('polluted')
  })

  it.each([
    [
      'tables in tables',
      () =>
        Array.from(
          { length: 3_000 },
          (_, depth) => `[${Array.from({ length: Math.min(depth + 1, 120) }, () => 'a').join('.')}]`,
        ).join('\n'),
    ],
    ['one key of many parts', () => `name = "x"\n${Array.from({ length: 20_000 }, () => 'a').join('.')} = 1`],
    ['lists in lists', () => `name = "x"\nx = ${'['.repeat(50_000)}${']'.repeat(50_000)}`],
    ['a text without an end', () => `name = """${'\\u0041'.repeat(100_000)}`],
    ['a million keys', () => Array.from({ length: 60_000 }, (_, n) => `k${n} = 1`).join('\n')],
  ])('TOML bombs: %s', async (_, bomb) => {
    const { result } = await whileServing(() => post('/api/agents', JSON.stringify({ manifest_toml: bomb() })))
    expect([400, 413, 201]).toContain(result.status)
    expect(result.status).not.toBe(500)
    expect(host.defects()).toEqual([])
  })

  it('Body size', async () => {
    const long = JSON.stringify({ message: 'x'.repeat(1_100_000) })
    const announced = await post(`/api/agents/${agent}/message`, long)
    expect([announced.status, (await announced.json()).error.code]).toEqual([413, 'payload_too_large'])
    // Not announced: it is counted while it comes.
    const chunk = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`
    const answer = await raw(
      port(),
      `POST /api/agents/${agent}/message HTTP/1.1\r\nHost: 127.0.0.1:${port()}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n${chunk.repeat(20)}0\r\n\r\n`,
    )
    expect(answer.status).toBe(413)
    // Claimed and never sent: nothing is set aside for it.
    const before = process.memoryUsage().arrayBuffers
    expect(
      (
        await raw(
          port(),
          `POST /api/agents HTTP/1.1\r\nHost: 127.0.0.1:${port()}\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\nConnection: close\r\n\r\n`,
        )
      ).status,
    ).toBe(413)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(50_000_000)
  })

  it('Decompression bomb', async () => {
    const bomb = new Uint8Array(gzipSync(Buffer.alloc(200_000_000)))
    const before = process.memoryUsage().rss
    for (const encoding of ['gzip', 'deflate', 'br', 'gzip, gzip', 'x-gzip']) {
      const response = await post(`/api/agents/${agent}/message`, bomb.slice(), { 'content-encoding': encoding })
      expect(response.status).toBe(400)
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(150_000_000)
  })

  it('Multipart abuse', async () => {
    const upload = (body: string, type: string) =>
      host.fetch(`/api/agents/${agent}/upload`, { method: 'POST', headers: { 'content-type': type }, body })
    const part = (name: string, filename: string, content: string): string =>
      `--b\r\nContent-Disposition: form-data; name="${name}"; filename="${filename}"\r\n\r\n${content}\r\n`
    for (const [body, type] of [
      ['--b--', 'multipart/form-data'],
      ['', 'multipart/form-data; boundary=b'],
      ['--b\r\n'.repeat(50_000), 'multipart/form-data; boundary=b'],
      [`${part('x'.repeat(100_000), 'a', 'b')}--b--`, 'multipart/form-data; boundary=b'],
      [`--b\r\n${'X: y\r\n'.repeat(20_000)}\r\n--b--`, 'multipart/form-data; boundary=b'],
      [part('file', 'a', 'b'), `multipart/form-data; boundary=${'b'.repeat(5_000)}`],
    ] as const) {
      const { result } = await whileServing(() => upload(body, type))
      expect(result.status).toBeGreaterThanOrEqual(400)
      expect(result.status).toBeLessThan(500)
    }
    for (const name of [
      '../../../etc/cron.d/x',
      '..\\\\..\\\\x',
      '/etc/passwd',
      'a\u0000.txt',
      'CON',
      '.',
      '..',
      'x'.repeat(400),
    ]) {
      const response = await upload(`${part('file', name, 'content')}--b--\r\n`, 'multipart/form-data; boundary=b')
      const { filename } = await response.json()
      if (response.status < 300) expect(filename).toMatch(/^[^/\\\p{Cc}]{1,255}$/u)
      else expect(response.status).toBeLessThan(500)
    }
  })

  it('ReDoS in globs and conditions', async () => {
    // With backtracking these would not end.
    for (const [pattern, text, matches] of [
      [`${'*a'.repeat(200)}b`, 'a'.repeat(20_000), false],
      ['*'.repeat(5_000), 'x'.repeat(20_000), true],
      [`${'a*'.repeat(1_000)}c`, 'a'.repeat(20_000), false],
    ] as const)
      expect(matchesWildcard(pattern, text)).toBe(matches)
    const { result } = await whileServing(() =>
      post(
        '/api/agents',
        JSON.stringify({
          manifest_toml: `name = "r"\n[capabilities]\ntools = ["${'*a'.repeat(200)}b"]\nnetwork = ["${'*.a'.repeat(500)}"]\nshell = ["${'* '.repeat(300)}"]`,
        }),
      ),
    )
    expect(result.status).toBeLessThan(500)
  })

  it('Cyclic/huge structures', async () => {
    const wide = Object.fromEntries(Array.from({ length: 40_000 }, (_, n) => [`k${n}`, n]))
    const { result } = await whileServing(() =>
      host.json('PUT', `/api/memory/agents/${agent}/kv/wide`, { value: wide }),
    )
    expect([result.status, result.body.error.message]).toEqual([413, expect.stringMatching(/at most 262144/)])
    const deep = `{"value":${'{"a":'.repeat(60)}1${'}'.repeat(60)}}`
    expect(
      (
        await host.fetch(`/api/memory/agents/${agent}/kv/deep`, {
          method: 'PUT',
          headers: { 'content-type': 'application/json' },
          body: deep,
        })
      ).status,
    ).toBeLessThan(500)
    for (const path of [`/api/memory/agents/${agent}/kv`, `/api/agents/${agent}/memory/export`])
      expect((await host.fetch(path)).status).toBe(200)
  })

  it('Slowloris and slow consumers', async () => {
    const { connect } = await import('node:net')
    await using small = await startHost({ config: { http: { headers_timeout_ms: 5_000, request_timeout_ms: 6_000 } } })
    const stuck = await Promise.all(
      Array.from(
        { length: 50 },
        () =>
          new Promise<number>((resolve) => {
            const socket = connect(Number(new URL(small.url).port), '127.0.0.1', () => {
              socket.write('GET /api/health HTTP/1.1\r\nHost: x\r\nX-Slow: ')
            })
            let answer = ''
            socket.on('data', (data) => {
              answer += data.toString()
            })
            socket.on('error', () => socket.destroy())
            socket.on('close', () => resolve(Number(answer.split(' ')[1])))
          }),
      ),
    )
    // Each is told why and let go; nobody holds a place for longer than the time for headers.
    expect(stuck).toEqual(stuck.map(() => 408))
    expect((await small.fetch('/api/health')).status).toBe(200)
  })

  it('Header/log injection', async () => {
    const hostile = encodeURIComponent('x\r\nSet-Cookie: a=b\r\n\r\n<script>\u001b[2J\u202e')
    const response = await host.fetch(`/api/agents/${hostile}`, {
      headers: { 'x-request-id': 'not-an-id', 'user-agent': 'a\tb' },
    })
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(response.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    await host.json('POST', '/api/agents', { manifest_toml: 'name = "fine\\n2026-01-01 ERROR forged"\n' })
    await host.json('PUT', `/api/memory/agents/${agent}/kv/${encodeURIComponent('k\nforged: entry\u001b[31m')}`, {
      value: 1,
    })
    // What another system says is logged: it cannot pretend to be a line of its own, nor move the cursor of whoever
    // reads.
    await using told = await openChat()
    const said = 'bad\n2026-01-01 ERROR forged\r\u001b[2J\u202e'
    told.fake.script({ status: 400, body: JSON.stringify({ error: { message: said } }) })
    await told.post(`/api/agents/${told.agent}/message`, { message: 'hello' })
    expect(told.host.log.join('')).toContain('ERROR forged')
    const lines = [...host.log, ...told.host.log].flatMap((line) => line.trimEnd().split('\n'))
    expect(lines.filter((line) => /^\s*(forged|2026-01-01 ERROR)|[\p{Cc}\u202e]/u.test(line))).toEqual([])
    const { entries } = (await host.json('GET', '/api/audit/recent?limit=100')).body
    expect(entries.filter(({ details }: { details: string }) => /[\p{Cc}\u202e]/u.test(details))).toEqual([])
  })

  it('WS abuse', async () => {
    const socket = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${agent}/ws`)
    await new Promise((resolve) => {
      socket.addEventListener('message', resolve, { once: true })
    })
    const closed = new Promise<number>((resolve) => {
      socket.addEventListener('close', ({ code }) => resolve(code), { once: true })
    })
    socket.send('x'.repeat(600_000))
    expect(await closed).toBe(1009)
    const binary = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${agent}/ws`)
    await new Promise((resolve) => {
      binary.addEventListener('message', resolve, { once: true })
    })
    const refused = new Promise<number>((resolve) => {
      binary.addEventListener('close', ({ code }) => resolve(code), { once: true })
    })
    binary.send(new Uint8Array([0, 1, 2]))
    expect(await refused).toBe(1003)
    expect((await host.fetch('/api/health')).status).toBe(200)
  })
})
