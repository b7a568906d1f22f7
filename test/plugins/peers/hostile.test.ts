import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import type { Json } from '../../support/json.ts'
import { Node } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

let node: Node
let port: number
let last = 0
const limits = {
  max_half_open_per_address: 4,
  max_answer_bytes: 1_000_000,
  max_queued_bytes: 1_000_000,
  messages_per_minute: 100,
}
beforeAll(async () => {
  node = await Node.start('node', limits)
  port = await node.port()
  await node.spawn('scribe')
})
afterAll(() => node?.[Symbol.asyncDispose]())

async function link(self = `peer-${++last}`, to = node): Promise<RawPeer> {
  const peer = await RawPeer.link(await to.port(), to.name, self)
  onTestFinished(() => void peer.socket.destroy())
  return peer
}
const ask = (id: string, message = 'Hello') => ({
  id,
  type: 'request',
  method: 'agent_message',
  agent: 'scribe',
  message,
})

/** The next message of this kind; pings before it are answered. */
async function message(peer: RawPeer, is: (message: Json) => boolean): Promise<Json> {
  for (;;) {
    const next = await peer.next()
    if (is(next)) return next
    if (next.method === 'ping') peer.send({ id: next.id, type: 'response', method: 'pong', uptime_secs: 1 })
  }
}

describe('a stranger', () => {
  it.each([
    ['TLS', Buffer.from('16030100c8010000c40303', 'hex')],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: node\r\n\r\n')],
    ['SSH', Buffer.from('SSH-2.0-OpenSSH_9.6\r\n')],
    ['zeros', Buffer.alloc(1000)],
    ['deep JSON', frameOf('['.repeat(60_000))],
    ['text that is no UTF-8', frameOf(Buffer.from('ff00fe', 'hex'))],
  ])('that speaks %s is told once, and gone', async (_, bytes) => {
    const peer = await RawPeer.connect(port)
    onTestFinished(() => void peer.socket.destroy())
    peer.socket.write(bytes)
    expect(await peer.ended()).toMatchObject({ type: 'error', code: 400 })
  })

  it('with a thousand connections leaves room for a daemon that has a link, and for one that comes after it', async () => {
    const friend = await link('friend')
    const sockets = Array.from({ length: 1000 }, () =>
      connect({ host: '127.0.0.1', port }).on('error', () => undefined),
    )
    const closed = sockets.map((socket) => once(socket.resume(), 'close'))
    friend.send({ id: 'p', type: 'request', method: 'ping' })
    for (let message: Json; message?.id !== 'p';) message = await friend.next()
    for (const socket of sockets) socket.destroy()
    await Promise.all(closed)
    await link('after')
    await node.linked('after')
  })
})

describe('a daemon that knows the secret', () => {
  it('has no answer that is too long in either direction', async () => {
    const peer = await link('long')
    node.model.answer('x'.repeat(1_000_001))
    peer.send(ask('1'))
    expect(await message(peer, ({ id }) => id === '1')).toMatchObject({
      code: 413,
      message: expect.stringMatching(/network\.max_answer_bytes/),
    })
    const sent = node.send('long', 'anybody', 'Hello')
    const { id } = await message(peer, ({ method }) => method === 'agent_message')
    peer.send({ id, type: 'response', method: 'agent_response', text: 'x'.repeat(1_000_001) })
    expect((await sent).status).toBe(413)
  })

  it('asks for agents no more often than it may, and thousands of times costs it the link', async () => {
    const peer = await link('curious')
    const codes = new Map<string, number>()
    const begun = performance.now()
    for (let at = 0; at < 2000; at++) peer.send({ id: `d${at}`, type: 'request', method: 'discover', query: '' })
    try {
      for (;;) {
        const { method, code = '' } = await peer.next()
        codes.set(`${method} ${code}`.trim(), (codes.get(`${method} ${code}`.trim()) ?? 0) + 1)
      }
    } catch {
      // It is closed.
    }
    // One more has become due with every 600 ms.
    expect(codes.get('discover_result')).toBeLessThanOrEqual(100 + (performance.now() - begun) / 600)
    await node.audited('curious at')
  })

  it('describes its agents at such length that only some of it is kept', async () => {
    const peer = await link('wordy')
    const description = '\u4e00'.repeat(4000)
    const agents = Array.from({ length: 1000 }, (_, at) => ({ id: `a${at}`, name: `agent ${at}`, description }))
    const { id } = await message(peer, ({ method }) => method === 'discover')
    peer.send({ id, type: 'response', method: 'discover_result', agents })
    const { agents: kept } = await node.linked('wordy', (one) => one.agents.length > 0)
    expect(kept[0]).toMatchObject({ name: 'agent 0', description })
    expect(JSON.stringify(kept).length).toBeLessThan(300_000)
  })
})

/** They answer no ping, so everything else that is awaited here must hold without their link. */
describe('a daemon that falls silent', () => {
  let impatient: Node
  beforeAll(async () => {
    impatient = await Node.start('impatient', { ...limits, ping_interval_ms: 200, ping_timeout_ms: 200 })
    await impatient.spawn('scribe')
  })
  afterAll(() => impatient?.[Symbol.asyncDispose]())

  it('is found dead although the clock of the day is set back by an hour', async () => {
    // The other way round the handshake is refused, because the daemon may have taken its clock before.
    await link('mute', impatient)
    const { now } = Date
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => now() - 3_600_000)
    onTestFinished(() => clock.mockRestore())
    await impatient.audited(/mute at .*: The peer does not answer a ping/)
    await impatient.unlinked('mute')
  })

  it('and reads nothing of what it asked for loses its link', async () => {
    const peer = await link('deaf', impatient)
    peer.socket.pause()
    const text = 'x'.repeat(900_000)
    impatient.model.answer(...Array.from({ length: 16 }, () => text))
    for (let at = 0; at < 16; at++) peer.send(ask(`${at}`))
    // Whichever is noticed first.
    await impatient.audited(/deaf at .*: The peer does not (read: \d+ bytes wait to be sent|answer a ping)/)
    await impatient.unlinked('deaf')
  })
})

function frameOf(content: string | Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(Buffer.byteLength(content))
  return Buffer.concat([length, Buffer.from(content)])
}
