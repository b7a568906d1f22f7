import { createServer } from 'node:http'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import { createOutbound } from '../../../core/net/outbound.ts'
import type { OutboundSettings, Resolve } from '../../../core/net/outbound.ts'
import { drained } from '../../support/fake-provider.ts'

const settings: OutboundSettings = {
  allow: [],
  headersTimeoutMs: 5000,
  idleTimeoutMs: 5000,
  maxBytes: 1_000_000,
  maxRedirects: 5,
}

interface Server extends AsyncDisposable {
  readonly origin: string
  readonly port: number
  hits: number
  readonly seen: IncomingMessage[]
  connections: number
  readonly closed: Promise<void>[]
}
async function serve(listener: RequestListener): Promise<Server> {
  const seen: IncomingMessage[] = []
  const closed: Promise<void>[] = []
  const server = createServer((request, response) => {
    state.hits++
    seen.push(request)
    closed.push(new Promise((resolve) => response.once('close', resolve)))
    listener(request, response)
  })
  server.on('connection', () => {
    state.connections++
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const state: Server = {
    origin: `http://127.0.0.1:${port}`,
    port,
    hits: 0,
    seen,
    connections: 0,
    closed,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
  return state
}
const ok =
  (text = 'ok'): RequestListener =>
  (_, response) => {
    response.end(text)
  }
const to =
  (location: string, status = 302): RequestListener =>
  (_, response) => {
    response.writeHead(status, { location })
    response.end()
  }
const open = (more: Partial<OutboundSettings> = {}, resolve?: Resolve) =>
  createOutbound({ settings: () => stable(more), ...(resolve && { resolve }) })
const made = new WeakMap<object, OutboundSettings>()
function stable(more: Partial<OutboundSettings>): OutboundSettings {
  let whole = made.get(more)
  if (!whole) made.set(more, (whole = { ...settings, ...more }))
  return whole
}
const refusal = { name: 'Refusal', code: 'forbidden' }

describe('what is refused', () => {
  const forms = (port: number): readonly string[] => [
    `http://127.0.0.1:${port}/`,
    `http://localhost:${port}/`,
    `http://LOCALHOST.:${port}/`,
    `http://2130706433:${port}/`,
    `http://0x7f000001:${port}/`,
    `http://0177.0.0.1:${port}/`,
    `http://127.1:${port}/`,
    `http://１２７.0.0.1:${port}/`,
    `http://[::1]:${port}/`,
    `http://[::ffff:127.0.0.1]:${port}/`,
    `http://[::ffff:7f00:1]:${port}/`,
    `http://[::127.0.0.1]:${port}/`,
    `http://[64:ff9b::7f00:1]:${port}/`,
    `http://0.0.0.0:${port}/`,
    `http://[::]:${port}/`,
  ]
  it('no way of writing a loopback address reaches it', async () => {
    await using server = await serve(ok())
    await using out = open()
    for (const url of forms(server.port)) await expect(out.fetch(url), url).rejects.toMatchObject(refusal)
    expect(server.hits + server.connections).toBe(0)
  })
  it('the message names the setting that permits it', async () => {
    await using out = open()
    await expect(out.fetch('http://10.1.2.3/')).rejects.toThrow('add "10.1.2.3" to [outbound] allow in config.toml')
  })
  it('a name with one forbidden address among good ones is refused', async () => {
    await using server = await serve(ok())
    await using out = open({}, async () => [
      { address: '93.184.216.34', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ])
    await expect(out.fetch(`http://example.test:${server.port}/`)).rejects.toMatchObject(refusal)
    expect(server.connections).toBe(0)
  })
  it('a name that changes its address between two requests is checked each time it is connected', async () => {
    await using server = await serve((_, response) => {
      response.setHeader('connection', 'close')
      response.end('ok')
    })
    const answers = ['127.0.0.2', '127.0.0.1']
    // Only the first address is on the list, as a public one would be.
    await using out = open({ allow: ['127.0.0.2'] }, async () => [
      { address: answers.shift() ?? '127.0.0.1', family: 4 },
    ])
    await expect(out.fetch(`http://rebind.test:${server.port}/`)).rejects.toBeInstanceOf(UpstreamFailure)
    await expect(out.fetch(`http://rebind.test:${server.port}/`)).rejects.toMatchObject(refusal)
    expect(server.hits).toBe(0)
  })
  it('a name that cannot be resolved is refused, not tried', async () => {
    await using out = open({}, () => Promise.reject(Object.assign(new Error('nope'), { code: 'ENOTFOUND' })))
    await expect(out.fetch('http://nowhere.test/')).rejects.toMatchObject({
      name: 'UpstreamFailure',
      reason: 'network',
    })
  })
  it('other protocols, user names and ports of other protocols', async () => {
    await using out = open({}, async () => [{ address: '93.184.216.34', family: 4 }])
    for (const url of [
      'file:///etc/passwd',
      'ftp://example.test/',
      'data:text/plain,x',
      'http://user@example.test/',
      'http://u:p@example.test/',
      'http://example.test:22/',
      'http://example.test:6379/',
    ]) {
      await expect(out.fetch(url), url).rejects.toMatchObject(refusal)
    }
    await expect(out.fetch('nonsense')).rejects.toMatchObject({ code: 'invalid_request' })
  })
  it('metadata services, whatever is permitted', async () => {
    const allow = ['0.0.0.0/0', '::/0', 'metadata.google.internal', '169.254.169.254', 'innocent.test']
    await using out = open({ allow }, async () => [{ address: '169.254.169.254', family: 4 }])
    for (const url of [
      'http://169.254.169.254/',
      'http://[::ffff:a9fe:a9fe]/',
      'http://metadata.google.internal/',
      'http://[fd00:ec2::254]/',
      'http://100.100.100.200/',
      'http://innocent.test/',
    ]) {
      await expect(out.fetch(url), url).rejects.toThrow('never permitted')
      await expect(out.forOperator()(url), url).rejects.toThrow('never permitted')
    }
  })
})

describe('what is permitted', () => {
  for (const allow of ['127.0.0.1', '127.0.0.0/8', 'stub.test']) {
    it(`an address of the list: ${allow}`, async () => {
      await using server = await serve(ok('hello'))
      await using out = open({ allow: [allow] }, async () => [{ address: '127.0.0.1', family: 4 }])
      const host = allow.endsWith('test') ? 'stub.test' : '127.0.0.1'
      expect(await (await out.fetch(`http://${host}:${server.port}/`)).text()).toBe('hello')
      expect(server.hits).toBe(1)
      expect(server.seen[0]?.headers.host).toBe(`${host}:${server.port}`)
    })
  }
  it('loopback and private addresses for the operator', async () => {
    await using server = await serve(ok())
    await using out = open()
    expect((await out.forOperator()(server.origin)).status).toBe(200)
    // A connection that the operator may use is not lent to others.
    await expect(out.fetch(server.origin)).rejects.toMatchObject(refusal)
    expect(server.hits).toBe(1)
  })
  it('ignores proxies of the environment', async () => {
    await using proxy = await serve(ok('proxy'))
    await using server = await serve(ok('direct'))
    process.env.HTTP_PROXY = process.env.http_proxy = proxy.origin
    process.env.NODE_USE_ENV_PROXY = '1'
    try {
      await using out = open()
      expect(await (await out.forOperator()(server.origin)).text()).toBe('direct')
    } finally {
      delete process.env.HTTP_PROXY
      delete process.env.http_proxy
      delete process.env.NODE_USE_ENV_PROXY
    }
    expect(proxy.connections).toBe(0)
  })
})

describe('redirects', () => {
  const both = { allow: ['stub.test'] }
  const resolve: Resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  it('are followed with each hop checked from the top', async () => {
    await using victim = await serve(ok('secret'))
    await using stub = await serve(to(`http://127.0.0.1:${victim.port}/`))
    await using out = open(both, resolve)
    await expect(out.fetch(`http://stub.test:${stub.port}/`)).rejects.toMatchObject(refusal)
    expect([stub.hits, victim.hits, victim.connections]).toEqual([1, 0, 0])
  })
  it('end after five', async () => {
    await using stub = await serve(to('/again'))
    await using out = open(both, resolve)
    await expect(out.fetch(`http://stub.test:${stub.port}/`)).rejects.toThrow('more than 5 times')
    expect(stub.hits).toBe(6)
  })
  it('keep credentials within an origin and drop them on another', async () => {
    await using other = await serve(ok())
    await using stub = await serve((request, response) =>
      (request.url === '/one' ? to('/two') : to(`http://stub.test:${other.port}/`))(request, response),
    )
    await using out = open(both, resolve)
    await out.fetch(`http://stub.test:${stub.port}/one`, {
      headers: { Authorization: 'Bearer k', Cookie: 'c=1', 'X-Api-Key': 'k', 'x-custom': 'k', Accept: 'text/plain' },
    })
    expect(stub.seen[1]?.headers).toMatchObject({ authorization: 'Bearer k', 'x-custom': 'k' })
    const { authorization, cookie, accept, ...rest } = other.seen[0]?.headers ?? {}
    expect([authorization, cookie, rest['x-api-key'], rest['x-custom'], accept]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      'text/plain',
    ])
  })
  it('turn a POST into a GET where the standard says so', async () => {
    await using stub = await serve((request, response) =>
      (request.url === '/301' ? to('/end', 301) : request.url === '/307' ? to('/end', 307) : ok())(request, response),
    )
    await using out = open(both, resolve)
    for (const path of ['/301', '/307'])
      await out.fetch(`http://stub.test:${stub.port}${path}`, { method: 'POST', body: 'x' })
    expect(stub.seen.filter(({ url }) => url === '/end').map(({ method }) => method)).toEqual(['GET', 'POST'])
  })
})

describe('reading', () => {
  it('gives text, JSON, bytes and a standard response', async () => {
    await using server = await serve((request, response) => {
      response.setHeader('x-one', 'two')
      response.end(request.url === '/json' ? '{"a":1}' : 'grüße')
    })
    await using out = open()
    const fetch = out.forOperator()
    expect(await (await fetch(`${server.origin}/json`)).json()).toEqual({ a: 1 })
    expect(await (await fetch(server.origin)).text()).toBe('grüße')
    expect(Buffer.from(await (await fetch(server.origin)).bytes()).toString()).toBe('grüße')
    const response = (await fetch(server.origin)).toResponse()
    expect([await response.text(), response.headers.get('x-one')]).toEqual(['grüße', 'two'])
    await expect((await fetch(server.origin)).json()).rejects.toMatchObject({ reason: 'malformed' })
    // All five over one connection.
    expect(server.connections).toBe(1)
  })
  it('sends methods, headers and bodies', async () => {
    await using server = await serve((request, response) => {
      request.pipe(response)
    })
    await using out = open()
    expect(
      await (
        await out.forOperator()(server.origin, {
          method: 'put',
          headers: { 'X-A': 'b', Host: 'evil.test' },
          body: 'bödy',
        })
      ).text(),
    ).toBe('bödy')
    expect(server.seen[0]).toMatchObject({
      method: 'PUT',
      headers: { 'x-a': 'b', host: `127.0.0.1:${server.port}`, 'content-length': '5', 'accept-encoding': 'identity' },
    })
  })
  it('decompresses and counts the size after that', async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000))
    await using server = await serve((request, response) => {
      const [encoding, body] =
        request.url === '/bomb'
          ? ['gzip', bomb]
          : request.url === '/br'
            ? ['br', brotliCompressSync('brotli')]
            : request.url === '/odd'
              ? ['zstd', Buffer.from('x')]
              : ['gzip', gzipSync('gzip')]
      response.writeHead(200, { 'content-encoding': encoding })
      response.end(body)
    })
    await using out = open()
    const fetch = out.forOperator()
    expect(await (await fetch(`${server.origin}/gzip`)).text()).toBe('gzip')
    expect(await (await fetch(`${server.origin}/br`)).text()).toBe('brotli')
    await expect((await fetch(`${server.origin}/bomb`)).text()).rejects.toThrow('more than 1000000 bytes')
    await expect((await fetch(`${server.origin}/odd`)).text()).rejects.toThrow('not understood')
  })
  it('holds the sender back while nobody reads', async () => {
    const total = 20_000_000
    let written = 0
    await using server = await serve(async (_, response) => {
      const piece = Buffer.alloc(100_000)
      while (written < total && !response.destroyed) {
        written += piece.length
        if (!response.write(piece)) await drained(response)
      }
      response.end()
    })
    await using out = open()
    const response = await out.forOperator()(server.origin, { maxBytes: total })
    let read = 0
    for await (const chunk of response.chunks()) {
      read += chunk.length
      // What was written but not read is what fits into the buffers of both ends of the connection.
      if (read === chunk.length) {
        for (let turn = 0; turn < 200; turn++) await new Promise((resolve) => setImmediate(resolve))
        expect(written).toBeLessThan(total)
      }
    }
    expect(read).toBe(total)
  })
  it('chunks that came together are read as one', async () => {
    await using server = await serve((_, response) => {
      response.socket?.cork()
      for (const piece of ['one ', 'two ', 'three']) response.write(piece)
      response.end()
      response.socket?.uncork()
    })
    await using out = open()
    const response = await out.forOperator()(server.origin)
    expect(await Array.fromAsync(response.chunks(), String)).toEqual(['one two three'])
  })
  it('an answer that breaks off is a failure', async () => {
    await using server = await serve((_, response: ServerResponse) => {
      response.writeHead(200, { 'content-length': '100' })
      response.write('half')
      setImmediate(() => response.socket?.destroy())
    })
    await using out = open()
    await expect((await out.forOperator()(server.origin)).text()).rejects.toMatchObject({
      name: 'UpstreamFailure',
      reason: 'cut',
    })
  })
})

describe('ending', () => {
  const silent: RequestListener = () => {}
  const half: RequestListener = (_, response) => {
    response.write('half')
  }
  it('an abort before, while waiting and while reading rejects with its reason and closes the connection', async () => {
    await using waiting = await serve(silent)
    await using reading = await serve(half)
    await using out = open()
    const fetch = out.forOperator()
    const reason = new Error('enough')
    await expect(fetch(waiting.origin, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
    expect(waiting.connections).toBe(0)
    const first = new AbortController()
    const pending = fetch(waiting.origin, { signal: first.signal })
    await expect.poll(() => waiting.hits).toBe(1)
    first.abort(reason)
    await expect(pending).rejects.toBe(reason)
    await waiting.closed[0]
    const second = new AbortController()
    const response = await fetch(reading.origin, { signal: second.signal })
    await expect(
      (async () => {
        for await (const _ of response.chunks()) second.abort(reason)
      })(),
    ).rejects.toBe(reason)
    await reading.closed[0]
  })
  it('leaving the body early closes the connection', async () => {
    await using server = await serve(half)
    await using out = open()
    for await (const _ of (await out.forOperator()(server.origin)).chunks()) break
    await server.closed[0]
  })
  it('silence before and after the headers and a body nobody reads end by themselves', async () => {
    await using waiting = await serve(silent)
    await using reading = await serve(half)
    await using out = open()
    const fetch = out.forOperator()
    await expect(fetch(waiting.origin, { headersTimeoutMs: 30 })).rejects.toMatchObject({ reason: 'timeout' })
    await expect((await fetch(reading.origin, { idleTimeoutMs: 30 })).text()).rejects.toMatchObject({
      reason: 'timeout',
    })
    await fetch(reading.origin, { idleTimeoutMs: 30 })
    await Promise.all([...waiting.closed, ...reading.closed])
  })
  it('drops that trickle in do not outlive the limit for the whole', async () => {
    await using server = await serve((_, response) => {
      const timer = setInterval(() => response.write('.'), 5)
      response.once('close', () => clearInterval(timer))
    })
    await using out = open()
    await expect((await out.forOperator()(server.origin, { totalTimeoutMs: 50 })).text()).rejects.toMatchObject({
      reason: 'timeout',
    })
  })
  it('disposing ends what runs', async () => {
    await using server = await serve(half)
    const out = open()
    const text = (await out.forOperator()(server.origin)).text()
    const ended = expect(text).rejects.toBeInstanceOf(UpstreamFailure)
    await out[Symbol.asyncDispose]()
    await ended
    await expect(out.fetch('http://example.test/')).rejects.toBeInstanceOf(UpstreamFailure)
  })
  it('a refused connection and a broken name are failures, an address that is not allowed a refusal', async () => {
    const { port } = await serve(ok()).then(async (server) => {
      await server[Symbol.asyncDispose]()
      return server
    })
    await using out = open()
    await expect(out.forOperator()(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({
      reason: 'network',
      retry: 'later',
      message: `127.0.0.1:${port} refused the connection`,
    })
    await expect(out.fetch(`http://127.0.0.1:${port}/`)).rejects.toBeInstanceOf(Refusal)
  })
})
