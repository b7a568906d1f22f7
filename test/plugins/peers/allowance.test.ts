import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Identity } from '../../../plugins/peers/identity.ts'
import { FrameProxy } from '../../support/frame-proxy.ts'
import { Node } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

// What a daemon that knows the secret can take of another one.

let node: Node
let friend: Node
let proxy: FrameProxy
let port: number
beforeAll(async () => {
  proxy = await FrameProxy.start()
  friend = await Node.start('friend')
  node = await Node.start('node', {
    max_peers: 2,
    max_known_peers: 2,
    max_pending: 1,
    tokens_per_hour: 1,
    bytes_per_minute: 16_777_216,
    peers: [`friend@127.0.0.1:${proxy.port}`],
  })
  port = await node.port()
  await node.spawn('scribe')
})
afterAll(async () => {
  await Promise.all([node?.[Symbol.asyncDispose](), friend?.[Symbol.asyncDispose](), proxy?.[Symbol.asyncDispose]()])
})

const identities = new Map<string, Identity>()
async function link(self: string): Promise<RawPeer> {
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
const known = async (): Promise<readonly string[]> => (await node.peers()).map(({ node_id: id }) => id).toSorted()

describe('a daemon that knows the secret', () => {
  it('takes no place of one that the configuration names, and nothing is stored of it that has none', async () => {
    await link('first')
    await node.linked('first')
    expect(await (await link('second')).ended()).toMatchObject({
      code: 429,
      message: 'All places are taken: network.max_peers allows 2, 1 of them for nodes of network.peers',
    })
    expect(await known()).toEqual(['first'])
  })

  it('is one of so many whose keys are kept, and those of the configuration are kept all the same', async () => {
    const second = await link('second')
    await node.linked('second')
    second.socket.destroy()
    await node.unlinked('second')
    expect(await (await link('third')).ended()).toMatchObject({
      code: 429,
      message: expect.stringMatching(/^2 nodes are known.*network\.max_known_peers/),
    })
    proxy.target = await friend.port()
    await node.linked('friend')
    expect(await known()).toEqual(['first', 'friend', 'second'])
  })

  it('has so many tokens in an hour, however often it links anew', async () => {
    expect(await (await link('first')).ask(ask('1'))).toMatchObject({ text: 'Hello' })
    const again = await link('first')
    expect(await again.ask(ask('2'))).toMatchObject({
      code: 429,
      message: expect.stringMatching(/tokens of this hour/),
    })
    // What was answered is answered again.
    expect(await again.ask(ask('1'))).toMatchObject({ text: 'Hello' })
  })

  it('has so many messages worked on at a time, over all of its links', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>()
    const { promise: asked, resolve: ready } = Promise.withResolvers<void>()
    const complete = node.model.complete.bind(node.model)
    node.model.complete = async function* (request, signal) {
      ready()
      await held
      yield* complete(request, signal)
    }
    onTestFinished(() => void (node.model.complete = complete))
    const before = await link('second')
    before.send({ type: 'request', ...ask('1') })
    await asked
    before.socket.destroy()
    await node.unlinked('second')
    const after = await link('second')
    expect(await after.ask(ask('2'))).toMatchObject({ code: 429, message: expect.stringMatching(/1 requests/) })
    const answer = after.ask(ask('1'))
    release()
    expect(await answer).toMatchObject({ id: '1', text: 'Hello' })
  })

  it('loses its link with too many bytes', async () => {
    const peer = await link('second')
    const half = { id: 'big', type: 'notification', event: 'no_such_event', padding: 'x'.repeat(9_000_000) }
    expect(await peer.ask(half)).toMatchObject({ code: 400 })
    peer.send(half)
    expect(await peer.ended()).toMatchObject({ code: 429, message: expect.stringMatching(/network\.bytes_per_minute/) })
    await node.audited('sends too many bytes')
  })
})

it('a daemon has few new keys in an hour, and an address few connections in a minute', async () => {
  await using strict = await Node.start('strict', { new_peers_per_hour: 1, connections_per_minute: 3 })
  const at = await strict.port()
  const peers = [await RawPeer.link(at, 'strict', 'one'), await RawPeer.link(at, 'strict', 'two')]
  expect(await peers[1]?.ended()).toMatchObject({ message: expect.stringMatching(/network\.new_peers_per_hour/) })
  await expect(RawPeer.link(at, 'strict', 'three')).resolves.toBeDefined()
  await expect(RawPeer.link(at, 'strict', 'one')).rejects.toThrow()
  await strict.audited(/network\.connections_per_minute/)
  for (const { socket } of peers) socket.destroy()
})

it('shows no character of another daemon that moves the cursor or the direction of reading', async () => {
  await using reader = await Node.start('reader')
  const identity = new (class extends Identity {
    override prove(proven: Parameters<Identity['prove']>[0]) {
      return super.prove(proven, 'the\u001b[2Jboss\u202E')
    }
  })()
  const peer = await RawPeer.link(await reader.port(), 'reader', 'odd', { identity })
  const { id } = await peer.next()
  const agent = { id: 'a', name: 'x\u0007y', description: 'one\ntwo' }
  peer.send({ id, type: 'response', method: 'discover_result', agents: [agent] })
  const seen = await reader.linked('odd', ({ agents }) => agents.length > 0)
  expect(seen).toMatchObject({ node_name: 'the [2Jboss', agents: [{ name: 'x y', description: 'one two' }] })
  const asked = reader.send('odd', 'a', 'Hello')
  const request = await peer.next()
  peer.send({ id: request.id, type: 'response', method: 'error', code: 500, message: `\u001b[2J${'x'.repeat(9000)}` })
  const { message } = (await asked).body.error
  expect([message.includes('\u001b'), message.length < 1100]).toEqual([false, true])
  peer.socket.destroy()
})
