import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FrameProxy } from '../../support/frame-proxy.ts'
import { eventually, Node } from './nodes.ts'

let alice: Node
let bob: Node
let proxy: FrameProxy

beforeAll(async () => {
  proxy = await FrameProxy.start()
  ;[alice, bob] = await Promise.all([
    Node.start('alice', { peers: [`bob@127.0.0.1:${proxy.port}`], listen: '' }),
    Node.start('bob', { max_message_bytes: 65_536 }),
  ])
  proxy.target = await bob.port()
  await bob.spawn('scribe')
  await alice.linked('bob')
})
afterAll(async () => {
  await Promise.all([alice?.[Symbol.asyncDispose](), bob?.[Symbol.asyncDispose](), proxy?.[Symbol.asyncDispose]()])
})

describe('two daemons', () => {
  it('are linked, encrypted and authenticated, and know each other by key and agents', async () => {
    const seen = await alice.linked('bob', ({ agents }) => agents.length > 0)
    expect(seen).toMatchObject({
      node_id: 'bob',
      node_name: "bob's daemon",
      state: 'connected',
      authenticated: true,
      encrypted: true,
      protocol_version: 1,
    })
    expect(seen.agents.map(({ name }: { name: string }) => name)).toContain('scribe')
    expect(await bob.linked('alice')).toMatchObject({ node_id: 'alice', authenticated: true })
    const { identity_fingerprint: fingerprint } = await bob.status()
    expect(seen.fingerprint).toBe(fingerprint)
    expect(await alice.audited(/node bob at .* is new; its key/)).toContain(fingerprint)
    expect(await bob.audited('linked with node alice')).toContain('encrypted')
  })

  it('have an agent of one answer a message of the other, once for each key', async () => {
    bob.model.answer('The pen is mightier.')
    const key = 'one-message'
    const first = await alice.send('bob', 'scribe', 'Write a line', key)
    expect(first).toMatchObject({ status: 200, body: { text: 'The pen is mightier.' } })
    const requests = bob.model.requests.length
    expect((await alice.send('bob', 'scribe', 'Write a line', key)).body).toEqual(first.body)
    expect(bob.model.requests).toHaveLength(requests)
    expect(await alice.send('bob', 'nobody', 'Hello?')).toMatchObject({ status: 404 })
    expect((await alice.send('bob', 'scribe', 'x'.repeat(66_000))).status).toBe(413)
    expect(await alice.send('carol', 'scribe', 'Hello?')).toMatchObject({ status: 404 })
  })

  it('tell each other of agents that come and go', async () => {
    const id = await bob.spawn('guest')
    await alice.linked('bob', ({ agents }) => agents.some(({ name }: { name: string }) => name === 'guest'))
    await bob.host.json('DELETE', `/api/agents/${id}`)
    await alice.linked('bob', ({ agents }) => !agents.some(({ name }: { name: string }) => name === 'guest'))
  })

  it('measure how far they are', async () => {
    const { status, body } = await alice.host.json('POST', '/api/peers/bob/ping')
    expect([status, body.latency_ms > 0, Number.isInteger(body.uptime_secs)]).toEqual([200, true, true])
  })

  it('are linked again after one of them was away, and a message that waits for the answer is answered once', async () => {
    const turns = bob.model.requests.length
    let cut = false
    proxy.tamper = (frame) => {
      // The first answer on the link is lost.
      if (frame.from === 'callee' && frame.index > 2 && !cut && bob.model.requests.length > turns) {
        cut = true
        proxy.cut()
        return []
      }
      return [frame.content]
    }
    bob.model.answer('Answered once.')
    expect(await alice.send('bob', 'scribe', 'Say it once')).toMatchObject({
      status: 200,
      body: { text: 'Answered once.' },
    })
    expect(cut).toBe(true)
    expect(bob.model.requests).toHaveLength(turns + 1)
    await bob.stop()
    await alice.unlinked('bob')
    await bob.start()
    proxy.target = await bob.port()
    await alice.linked('bob')
    await eventually(async () => expect((await alice.status()).connected_peers).toBe(1))
  })

  it('lose no message that is sent while one of them starts', async () => {
    await alice.stop()
    await alice.start()
    expect(await alice.send('bob', 'scribe', 'Early')).toMatchObject({ status: 200, body: { text: 'Early' } })
  })

  it('nor one to a node of the configuration that was never there', async () => {
    await using late = await FrameProxy.start()
    await using zoe = await Node.start('zoe', { peers: [`bob@127.0.0.1:${late.port}`], listen: '' })
    const sent = zoe.send('bob', 'scribe', 'First')
    late.target = await bob.port()
    expect(await sent).toMatchObject({ status: 200, body: { text: 'First' } })
  })
})
