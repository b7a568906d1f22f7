import { once } from 'node:events'
import { Duplex } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Identity } from '../../../plugins/peers/identity.ts'
import { FrameChannel } from '../../../plugins/peers/links/channel.ts'
import type { Json } from '../../support/json.ts'
import { eventually, Node } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

let node: Node
let port: number
let last = 0
beforeAll(async () => {
  node = await Node.start('node', {
    max_peers: 2,
    max_half_open: 3,
    max_half_open_per_address: 2,
    messages_per_minute: 3,
    frames_per_minute: 20,
    max_pending: 2,
    connect_wait_secs: 0,
  })
  port = await node.port()
  await node.spawn('scribe')
})
afterAll(() => node?.[Symbol.asyncDispose]())

async function connect(to = port): Promise<RawPeer> {
  const peer = await RawPeer.connect(to)
  onTestFinished(() => void peer.socket.destroy())
  return peer
}
const identities = new Map<string, Identity>()
/** A peer with a name of its own, so that it has its whole allowance. */
async function link(self = `peer-${++last}`): Promise<RawPeer> {
  const identity = identities.get(self) ?? new Identity()
  identities.set(self, identity)
  const peer = await RawPeer.link(port, 'node', self, { identity })
  onTestFinished(async () => {
    peer.socket.destroy()
    await node.unlinked(self)
  })
  return peer
}
const ask = (id: string, message = 'Hello') => ({ id, method: 'agent_message', agent: 'scribe', message })

describe('who has proven nothing', () => {
  it('has few connections, of which each ends in time: one that is slow to speak, and one that says nothing', async () => {
    const held = [await connect(), await connect()]
    const third = await connect()
    await once(third.socket, 'close')
    await node.audited('too many connections that have not proven anything')
    for (const { socket } of held) socket.destroy()

    // On a node of its own: where handshakes have to succeed, so short a limit would be reached on a loaded machine.
    const hasty = await Node.start('hasty', { max_half_open_per_address: 2, handshake_timeout_ms: 300 })
    onTestFinished(() => hasty[Symbol.asyncDispose]())
    const to = await hasty.port()
    const silent = await connect(to)
    const slow = await connect(to)
    // The length of a frame whose content never ends.
    slow.socket.write(Buffer.from([0, 1, 0, 0]))
    const drip = setInterval(() => slow.socket.write(Buffer.from([0])), 20)
    onTestFinished(() => clearInterval(drip))
    expect(await silent.ended()).toBeUndefined()
    await slow.ended()
    clearInterval(drip)
    // And there is room again: those after them are ended for the same reason, not because they are too many.
    for (const next of [await connect(to), await connect(to)]) await next.ended()
    await eventually(async () => {
      const late = (await hasty.audit()).filter((entry) => /the handshake did not end within 300 ms/i.test(entry))
      expect(late).toHaveLength(4)
    })
    expect((await hasty.audit()).join()).not.toContain('too many connections')
  })

  it.each([
    ['a frame of 17 MB', { length: 17_000_000 }, /A frame of 17000000 bytes is longer than 65536/],
    ['a frame of 65 KiB', { length: 66_560 }, /A frame of 66560 bytes is longer than 65536/],
    ['an empty frame', { length: 0 }, /A frame is empty/],
  ])('is refused %s at its length', async (_, { length }, reason) => {
    const peer = await connect()
    const head = Buffer.alloc(4)
    head.writeUInt32BE(length)
    peer.socket.write(head)
    expect(await peer.ended()).toMatchObject({ type: 'error', code: 400, message: expect.stringMatching(reason) })
    await node.audited(reason)
  })

  it.each([
    ['no JSON', 'hello', 400],
    ['an unknown message', { type: 'hallo' }, 400],
    ['a request before the handshake', { id: '1', type: 'request', method: 'ping' }, 401],
    ['another version', { type: 'hello', version: 9 }, 1],
  ])('is told what is wrong with %s', async (_, message, code) => {
    const peer = await connect()
    if (typeof message === 'string') peer.channel.send(Buffer.concat([Buffer.from([0, 0, 0, 5]), Buffer.from(message)]))
    else peer.channel.sendJson(message)
    expect(await peer.ended()).toMatchObject({ type: 'error', code })
  })

  it.each([
    [
      'another secret',
      { secret: 'a secret that no node of this test knows' },
      /did not prove that it knows the secret/,
    ],
    ['a clock that is wrong', { now: () => Date.now() - 301_000 }, /The clocks differ by more than 300 s/],
    ['no encryption', { encryption: 'off' as const }, /The peer does not encrypt/],
  ])('is refused with %s', async (_, side, reason) => {
    await expect(RawPeer.link(port, 'node', 'stranger', side)).rejects.toThrow()
    await node.audited(reason)
    expect((await node.peers()).map(({ node_id: id }) => id)).not.toContain('stranger')
  })
})

describe('a linked daemon', () => {
  it('is one of so many', async () => {
    await link()
    await link()
    const third = await link()
    expect(await third.ended()).toMatchObject({
      method: 'error',
      code: 429,
      message: expect.stringMatching(/network\.max_peers/),
    })
  })

  it('has an answer to so many messages in a minute, and to those of so many bytes', async () => {
    const peer = await link()
    expect(await peer.ask(ask('long', 'x'.repeat(66_560)))).toMatchObject({ method: 'error', code: 413 })
    for (const id of ['1', '2', '3'])
      expect(await peer.ask(ask(id))).toMatchObject({ method: 'agent_response', text: 'Hello' })
    expect(await peer.ask(ask('4'))).toMatchObject({ method: 'error', code: 429 })
    expect(await peer.ask({ id: '5', method: 'ping' })).toMatchObject({ method: 'pong' })
  })

  it('keeps the allowance it had when it links anew', async () => {
    const peer = await link('again')
    for (const id of ['1', '2', '3']) await peer.ask(ask(id))
    peer.socket.destroy()
    await node.unlinked('again')
    const second = await link('again')
    expect(await second.ask(ask('1'))).toMatchObject({ method: 'error', code: 429 })
  })

  it('has so many messages worked on at a time', async () => {
    const peer = await link()
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const complete = node.model.complete.bind(node.model)
    node.model.complete = async function* (request, signal) {
      await held
      yield* complete(request, signal)
    }
    for (const id of ['1', '2', '2']) peer.send({ type: 'request', ...ask(id) })
    expect(await peer.ask(ask('3'))).toMatchObject({
      method: 'error',
      code: 429,
      message: expect.stringMatching(/2 requests/),
    })
    release()
    const answers: Json[] = []
    // The node asks in between which agents there are.
    while (answers.length < 2) answers.push(...[await peer.next()].filter(({ type }) => type === 'response'))
    expect(answers.map(({ id, method }) => [id, method]).toSorted()).toEqual([
      ['1', 'agent_response'],
      ['2', 'agent_response'],
    ])
    node.model.complete = complete
  })

  it('loses its link with too many frames, and with a frame that is too long', async () => {
    const flood = await link()
    for (let at = 0; at < 21; at++) flood.send({ id: String(at), type: 'notification', event: 'no_such_event' })
    expect(await flood.ended()).toMatchObject({ code: 429 })
    await node.audited('sends too many frames')
    const huge = await link()
    const head = Buffer.alloc(4)
    head.writeUInt32BE(17_000_000)
    huge.socket.write(head)
    expect(await huge.ended()).toMatchObject({ code: 400 })
    await node.audited(/A frame of 17000000 bytes is longer than 16777216/)
  })

  it('is told what is wrong with a request', async () => {
    const peer = await link()
    const answers = [
      { id: 'a', method: 'handshake' },
      { id: 'b', method: 'agent_message', agent: 'scribe' },
      { id: 'c', method: 'agent_message', agent: 'nobody', message: 'Hello' },
      { id: 'd', method: 'agent_message', agent: 'scribe', message: 'Hello', sender: '\ud800' },
      { ...ask('e'), hops: -1 },
      { ...ask('f'), hops: 5 },
    ]
    const codes: number[] = []
    for (const request of answers) codes.push((await peer.ask(request)).code)
    expect(codes).toEqual([400, 400, 404, 400, 400, 409])
  })
})

it('gives up on an answer that does not come, and on a daemon that is away', async () => {
  const hasty = await Node.start('hasty', { message_timeout_secs: 1, connect_wait_secs: 1 })
  onTestFinished(() => hasty[Symbol.asyncDispose]())
  const peer = await RawPeer.link(await hasty.port(), 'hasty', 'mute')
  await hasty.linked('mute')
  const gone = await RawPeer.link(await hasty.port(), 'hasty', 'gone')
  await hasty.linked('gone')
  gone.socket.destroy()
  await hasty.unlinked('gone')
  const [late, away] = await Promise.all(['mute', 'gone'].map((to) => hasty.send(to, 'anybody', 'Hello', to)))
  expect([late?.status, late?.body.error.message]).toEqual([
    503,
    'Node "mute" did not answer in time (network.message_timeout_secs)',
  ])
  expect([away?.status, away?.body.error.message]).toEqual([503, expect.stringMatching(/connect_wait_secs/)])
  peer.socket.destroy()
})

it('buffers no more than so much for a peer that does not read', async () => {
  const socket = new Duplex({ read() {}, write() {} })
  const channel = new FrameChannel(socket, 1000)
  channel.send(Buffer.alloc(900))
  expect([channel.queuedBytes, socket.destroyed]).toEqual([900, false])
  channel.send(Buffer.alloc(101))
  expect(socket.destroyed).toBe(true)
  expect((await channel.ended).message).toMatch(/does not read/)
})

it('ends a link whose other side is silent', async () => {
  const strict = await Node.start('strict', { ping_interval_ms: 40, ping_timeout_ms: 40 })
  onTestFinished(() => strict[Symbol.asyncDispose]())
  const mute = await RawPeer.link(await strict.port(), 'strict', 'mute')
  await mute.ended()
  await strict.audited('does not answer a ping within 40 ms')
})

it('shows and lets be asked only agents that are shared', async () => {
  const shy = await Node.start('shy', { share: ['scribe'] })
  onTestFinished(() => shy[Symbol.asyncDispose]())
  await shy.spawn('scribe')
  await shy.spawn('hidden')
  const peer = await RawPeer.link(await shy.port(), 'shy', 'talker')
  const { agents } = await peer.ask({ id: 'd', method: 'discover', query: '' })
  expect(agents.map(({ name, tools }: { name: string; tools: unknown }) => [name, tools])).toEqual([['scribe', []]])
  expect(await peer.ask({ id: 'e', method: 'agent_message', agent: 'hidden', message: 'Psst' })).toMatchObject({
    code: 404,
  })
  peer.socket.destroy()
})

it('is off with a short or an empty secret, says so everywhere, and stops nothing else', async () => {
  const off = await Node.start('off', { shared_secret: 'too short' })
  onTestFinished(() => off[Symbol.asyncDispose]())
  await eventually(async () =>
    expect(await off.status()).toMatchObject({
      enabled: true,
      online: false,
      listen_address: null,
      problem: expect.stringMatching(/The shared secret has 9 bytes; at least 32 are needed/),
    }),
  )
  expect((await off.send('somebody', 'scribe', 'Hello')).status).toBe(503)
  expect(off.host.app.daemon.warnings().concat(off.host.log).join()).toContain('networking is off')
})
