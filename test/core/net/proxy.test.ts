import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { Refusal } from '../../../core/errors/error.ts'
import { createOutbound } from '../../../core/net/outbound.ts'
import { openProxy } from '../../../core/net/proxy.ts'
import type { Proxy } from '../../../core/net/proxy.ts'

const ended: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ended.splice(0).toReversed()) await end()
})

/** A server whose every connection goes to `serve`, a proxy that may reach it, and what the proxy counted. */
async function stage(serve: (socket: Socket) => void, { maxConnections = 4, allow = ['far.test'] } = {}) {
  const met = new Set<Socket>()
  let most = 0
  const server = createServer((socket) => {
    met.add(socket)
    most = Math.max(most, met.size)
    socket.on('error', () => undefined).once('close', () => met.delete(socket))
    serve(socket)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const rules = { allow, headersTimeoutMs: 2000, idleTimeoutMs: 2000, maxBytes: 65_536, maxRedirects: 0 }
  let settings = rules
  const outbound = createOutbound({
    settings: () => settings,
    resolve: () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]),
  })
  const counted: string[] = []
  let granted = true
  const proxy: Proxy = await openProxy({
    outbound,
    admits: () => {
      if (!granted) throw new Refusal('forbidden', 'taken away')
    },
    settings: { maxConnections, maxTotalConnections: 1024, idleTimeoutMs: 30_000 },
    meter: { open: 0, connection: (outcome) => void counted.push(outcome), bytes: () => undefined },
  })
  ended.push(
    () => new Promise((resolve) => server.close(resolve)),
    () => outbound[Symbol.asyncDispose](),
    () => met.forEach((each) => each.destroy()),
    () => proxy.close(),
  )
  return {
    port,
    proxy,
    counted,
    most: () => most,
    met,
    revoke: () => void (granted = false),
    allow: (hosts: string[]) => void (settings = { ...rules, allow: hosts }),
    async ask(text: string): Promise<Socket> {
      const socket = connect(proxy.socket)
      socket.on('error', () => undefined)
      await once(socket, 'connect')
      socket.write(text.replaceAll('|', '\r\n'))
      ended.push(() => socket.destroy())
      return socket
    },
  }
}
async function all(socket: Socket): Promise<string> {
  let text = ''
  for await (const chunk of socket) text += String(chunk)
  return text
}

describe('the proxy of a program', () => {
  it('outlives a server that answers what is no HTTP', async () => {
    for (const line of [
      'HTTP/1.1 099 No',
      'HTTP/1.1 000 No',
      'HTTP/1.1 101 Switching|Upgrade: x|Connection: upgrade',
    ]) {
      const { ask, port } = await stage((socket) => socket.end(`${line}||`.replaceAll('|', '\r\n')))
      expect(await all(await ask(`GET http://far.test:${port}/ HTTP/1.1|Host: x|Connection: close||`)), line).toMatch(
        /^HTTP\/1\.1 502 /,
      )
    }
  })

  it('one that asks for many things at once holds no more connections than it may', async () => {
    const { ask, port, most, counted } = await stage(() => undefined)
    await ask(`GET http://far.test:${port}/ HTTP/1.1|Host: x||`.repeat(100))
    await eventually(() => expect(counted).toHaveLength(100))
    expect(counted.filter((outcome) => outcome === 'allowed')).toHaveLength(4)
    await eventually(() => expect(most()).toBe(4))
  })

  it('one that leaves before it is answered leaves nothing behind', async () => {
    const { ask, port, met } = await stage((socket) => socket.resume(), { maxConnections: 64 })
    for (const request of [`CONNECT far.test:${port} HTTP/1.1||`, `GET http://far.test:${port}/ HTTP/1.1|Host: x||`])
      for (let round = 0; round < 10; round++) (await ask(request)).destroy()
    // The last one is answered after all of them.
    const last = await ask(`CONNECT far.test:${port} HTTP/1.1||`)
    await once(last, 'data')
    await eventually(() => expect(met.size).toBe(1))
  })

  it('a program that reads slowly gets all that was sent to it', async () => {
    const size = 700_001
    const { ask, port, met } = await stage((socket) => socket.end(Buffer.alloc(size, 'x')))
    const socket = await ask(`CONNECT far.test:${port} HTTP/1.1||`)
    await eventually(() => expect(met.size).toBe(1))
    let text = ''
    for await (const chunk of socket) {
      text += String(chunk)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(text.length).toBe(size + 'HTTP/1.1 200 Connection established\r\n\r\n'.length)
  })

  it('a body is no second request, whatever the method', async () => {
    let heard = ''
    const { ask, port } = await stage((socket) => {
      socket.on('data', (bytes) => {
        heard += String(bytes)
        if (heard.includes('admin')) socket.end('HTTP/1.1 204 No Content\r\n\r\n')
      })
    })
    const inner = 'GET /admin HTTP/1.1|Host: other.test||'.replaceAll('|', '\r\n')
    await all(
      await ask(
        [
          `GET http://far.test:${port}/ HTTP/1.1|Host: x|Connection: close, x-hop|X-Hop: 1|`,
          `Transfer-Encoding: chunked||${inner.length.toString(16)}|${inner}|0||`,
        ].join(''),
      ),
    )
    expect(heard).toMatch(/transfer-encoding: chunked/i)
    expect(heard).not.toMatch(/x-hop/i)
  })

  it.each(['the program', 'the outbound rules'])(
    'what is taken from %s ends connections that are open',
    async (whom) => {
      const { ask, port, proxy, met, revoke, allow, counted } = await stage((socket) => socket.write('hello'))
      const tunnel = await ask(`CONNECT far.test:${port} HTTP/1.1||`)
      await once(tunnel, 'data')
      await proxy.recheck()
      expect([met.size, tunnel.destroyed]).toEqual([1, false])
      if (whom === 'the program') revoke()
      else allow([])
      const closed = once(tunnel.resume(), 'close')
      await proxy.recheck()
      await closed
      await eventually(() => expect(met.size).toBe(0))
      expect(counted).toEqual(['allowed', 'revoked'])
    },
  )
})
