import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { Identity } from '../../../plugins/peers/identity.ts'
import { FrameProxy, pass, toFrame } from '../../support/frame-proxy.ts'
import type { ProxiedFrame, Tamper } from '../../support/frame-proxy.ts'
import { eventually, Node } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

// A man in the middle of the link between two daemons. The frames of a direction: the caller sends hello, proof,
// identity and then envelopes; the other one challenge, identity and then envelopes.

let alice: Node
let bob: Node
let proxy: FrameProxy
/** All that bob was sent on an earlier link. */
const recorded: Buffer[] = []

beforeAll(async () => {
  proxy = await FrameProxy.start()
  proxy.tamper = (frame) => {
    if (frame.from === 'caller' && frame.index === 0) recorded.length = 0
    if (frame.from === 'caller') recorded.push(frame.content)
    return [frame.content]
  }
  ;[alice, bob] = await Promise.all([
    Node.start('alice', { peers: [`bob@127.0.0.1:${proxy.port}`], listen: '' }),
    Node.start('bob', { messages_per_minute: 1000, max_half_open_per_address: 32 }),
  ])
  proxy.target = await bob.port()
  await bob.spawn('scribe')
  await alice.linked('bob')
  await alice.send('bob', 'scribe', 'A message that is recorded')
  proxy.tamper = pass
})
beforeEach(async () => {
  proxy.tamper = pass
  await alice.linked('bob')
})
afterAll(async () => {
  await Promise.all([alice?.[Symbol.asyncDispose](), bob?.[Symbol.asyncDispose](), proxy?.[Symbol.asyncDispose]()])
})

/** Flips one bit. */
function flipped(content: Buffer, at: number): Buffer {
  const changed = Buffer.from(content)
  changed[at] = (changed[at] ?? 0) ^ 1
  return changed
}
function without(content: Buffer, key: string): Buffer {
  const { [key]: _, ...rest } = JSON.parse(content.toString())
  return Buffer.from(JSON.stringify(rest))
}
/** Does it to one frame of the connection, and lets the others pass. */
const at =
  (from: ProxiedFrame['from'], index: number, tamper: Tamper): Tamper =>
  (frame) =>
    frame.from === from && frame.index === index ? tamper(frame) : [frame.content]
const NOT_NEXT = /A frame is not what the peer sent next/

interface Attack {
  readonly name: string
  readonly tamper: Tamper
  /** Who notices, and what that node writes down. */
  readonly by: 'alice' | 'bob'
  readonly reason: RegExp
}
const handshake: readonly Attack[] = [
  {
    name: 'takes the offer to encrypt out of the call',
    by: 'bob',
    reason: /did not prove that it knows the secret/,
    tamper: at('caller', 0, ({ content }) => [without(content, 'ephemeral')]),
  },
  {
    name: 'takes it out of the answer',
    by: 'alice',
    reason: /did not prove that it knows the secret/,
    tamper: at('callee', 0, ({ content }) => [without(content, 'ephemeral')]),
  },
  {
    name: 'puts its own key into the answer',
    by: 'alice',
    reason: /did not prove that it knows the secret/,
    tamper: at('callee', 0, ({ content }) => [
      Buffer.from(JSON.stringify({ ...JSON.parse(content.toString()), ephemeral: 'ab'.repeat(32) })),
    ]),
  },
  {
    name: 'sends the call back to the caller',
    by: 'alice',
    reason: /not the one that comes here|another node/,
    tamper: at('caller', 0, ({ content, write }) => (write('caller', toFrame(content)), [])),
  },
  {
    name: 'sends a call of an earlier link',
    by: 'bob',
    reason: /This call was made before/,
    tamper: at('caller', 0, () => recorded.slice(0, 1)),
  },
  {
    name: 'sends a whole earlier link',
    by: 'bob',
    reason: /This call was made before/,
    tamper: ({ from, index, content }) => (from === 'callee' ? [content] : index === 0 ? recorded : []),
  },
  {
    name: 'sends a proof of an earlier link',
    by: 'bob',
    reason: /did not prove that it is there/,
    tamper: at('caller', 1, () => recorded.slice(1, 2)),
  },
  {
    name: 'changes the identity',
    by: 'bob',
    reason: NOT_NEXT,
    tamper: at('caller', 2, ({ content }) => [flipped(content, 5)]),
  },
  {
    name: 'says that it is another version',
    by: 'bob',
    reason: /another version/,
    tamper: at('caller', 0, ({ content }) => [Buffer.from(content.toString().replace('"version":1', '"version":2'))]),
  },
  {
    name: 'calls in the name of another node',
    by: 'bob',
    reason: /did not prove that it knows the secret/,
    tamper: at('caller', 0, ({ content }) => [Buffer.from(content.toString().replace('alice', 'mallory'))]),
  },
]
const link: readonly Attack[] = [
  {
    name: 'changes a frame',
    by: 'bob',
    reason: NOT_NEXT,
    tamper: at('caller', 3, ({ content }) => [flipped(content, 20)]),
  },
  {
    name: 'changes the end of a frame',
    by: 'bob',
    reason: NOT_NEXT,
    tamper: at('caller', 3, ({ content }) => [flipped(content, content.byteLength - 1)]),
  },
  {
    name: 'cuts a frame short',
    by: 'bob',
    reason: NOT_NEXT,
    tamper: at('caller', 3, ({ content }) => [content.subarray(0, 10)]),
  },
  {
    name: 'sends a frame twice',
    by: 'bob',
    reason: NOT_NEXT,
    tamper: at('caller', 3, ({ content }) => [content, content]),
  },
  { name: 'leaves a frame out', by: 'bob', reason: NOT_NEXT, tamper: at('caller', 3, () => []) },
  {
    name: 'changes the order',
    by: 'bob',
    reason: NOT_NEXT,
    tamper: ({ from, index, content, earlier }) =>
      from === 'callee' || index < 3 || index > 4 ? [content] : index === 3 ? [] : [content, ...earlier.slice(3)],
  },
  {
    name: 'sends a frame back',
    by: 'alice',
    reason: NOT_NEXT,
    tamper: at('caller', 3, ({ content, write }) => (write('caller', toFrame(content)), [content])),
  },
  {
    name: 'puts in a frame of its own',
    by: 'bob',
    reason: NOT_NEXT,
    tamper: at('caller', 3, ({ content }) => [Buffer.from('{"id":"1","type":"request","method":"ping"}'), content]),
  },
  {
    name: 'changes an answer',
    by: 'alice',
    reason: NOT_NEXT,
    tamper: at('callee', 2, ({ content }) => [flipped(content, 3)]),
  },
]

describe('a man in the middle', () => {
  it.each(handshake)('gets no link when it $name', async ({ tamper, by, reason }) => {
    const node = by === 'alice' ? alice : bob
    const before = await node.newest()
    proxy.tamper = tamper
    proxy.cut()
    await node.audited(reason, before)
    await alice.unlinked('bob')
    await bob.unlinked('alice')
    proxy.tamper = pass
    // An attempt of which a frame is missing would wait for it as long as a handshake may take.
    proxy.cut()
    await alice.linked('bob')
  })

  it('gets no link when it never brings the proof', async () => {
    await using hasty = await Node.start('hasty', { handshake_timeout_ms: 400 })
    await using way = await FrameProxy.start(await hasty.port())
    way.tamper = ({ from, index, content }) => (from === 'caller' && index > 0 ? [] : [content])
    await expect(RawPeer.link(way.port, 'hasty', 'carol')).rejects.toThrow()
    await hasty.audited(/handshake did not end within 400 ms/)
    expect(await hasty.peers()).toEqual([])
  })

  it.each(link)(
    'ends the link when it $name, and the message is answered once all the same',
    async ({ name, tamper, by, reason }) => {
      const node = by === 'alice' ? alice : bob
      const before = await node.newest()
      const turns = bob.model.requests.length
      let attacks = 0
      proxy.tamper = (frame) => {
        // Once: what is tried again gets through.
        if (attacks > 1) return [frame.content]
        let wrote = false
        const content = tamper({
          ...frame,
          write(side, bytes) {
            wrote = true
            frame.write(side, bytes)
          },
        })
        if (wrote || content.length !== 1 || content[0] !== frame.content) attacks++
        return content
      }
      proxy.cut()
      const text = `A message for who ${name}`
      expect(await alice.send('bob', 'scribe', text)).toMatchObject({ status: 200, body: { text } })
      await node.audited(reason, before)
      const asked = bob.model.requests
        .slice(turns)
        .filter(({ turns: said }) => JSON.stringify(said.at(-1)).includes(text))
      expect(asked).toHaveLength(1)
    },
  )

  it('reads nothing', async () => {
    const seen: string[] = []
    proxy.tamper = ({ content }) => {
      seen.push(content.toString('latin1'))
      return [content]
    }
    proxy.cut()
    await alice.linked('bob')
    await alice.send('bob', 'scribe', 'Nobody else may read this')
    expect(seen.length).toBeGreaterThan(5)
    expect(seen.join()).not.toMatch(/Nobody else|agent_message|scribe|daemon/)
  })
})

it('refuses another key of a known node until an operator removes the pin, and says so on both sides', async () => {
  const port = await bob.port()
  const first = await RawPeer.link(port, 'bob', 'carol')
  await bob.linked('carol')
  first.socket.destroy()
  await bob.unlinked('carol')
  const second = new Identity()
  const impostor = await RawPeer.link(port, 'bob', 'carol', { identity: second })
  expect(await impostor.ended()).toMatchObject({ code: 403, message: expect.stringContaining('peer unpin carol') })
  await bob.audited(/refused: link with .*The key of node carol is not the one it had/)
  expect((await bob.host.json('DELETE', '/api/peers/carol/pin')).body).toEqual({ status: 'unpinned', node_id: 'carol' })
  await bob.audited('forgot the key of node carol')
  expect((await bob.host.json('DELETE', '/api/peers/carol/pin')).status).toBe(404)
  const accepted = await RawPeer.link(port, 'bob', 'carol', { identity: second })
  onTestFinished(() => void accepted.socket.destroy())
  expect((await bob.linked('carol')).fingerprint).toBe(second.fingerprint)
})

it('takes no identity that another link proved', async () => {
  const port = await bob.port()
  const peer = await RawPeer.link(port, 'bob', 'dave')
  const { link: proven } = peer
  if (!proven) throw new Error('no link')
  const stolen = new Identity().prove(proven, 'dave')
  const thief = new (class extends Identity {
    override prove() {
      return stolen
    }
  })()
  const other = await RawPeer.link(port, 'bob', 'erin', { identity: thief })
  expect(await other.ended()).toBeUndefined()
  await bob.audited('did not prove that it has the key it shows')
  peer.socket.destroy()
})

it('keeps one link of two daemons that call each other at the same time, and finds back when one was killed', async () => {
  await using forth = await FrameProxy.start()
  await using back = await FrameProxy.start()
  await using one = await Node.start('one', { peers: [`127.0.0.1:${forth.port}`] })
  await using two = await Node.start('two', { peers: [`one@127.0.0.1:${back.port}`] })
  forth.target = await two.port()
  back.target = await one.port()
  await Promise.all([one.linked('two'), two.linked('one')])
  await two.spawn('scribe')
  await one.spawn('reader')
  const counts = async () => [(await one.status()).connected_peers, (await two.status()).connected_peers]
  await eventually(async () => expect(await counts()).toEqual([1, 1]))
  expect((await one.send('two', 'scribe', 'Forth')).body.text).toBe('Forth')
  expect((await two.send('one', 'reader', 'Back')).body.text).toBe('Back')
  await two.stop()
  await one.unlinked('two')
  await two.start()
  forth.target = await two.port()
  await Promise.all([one.linked('two'), two.linked('one')])
  expect((await one.send('two', 'scribe', 'Again')).body.text).toBe('Again')
})
