import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { Identity } from '../../../plugins/peers/identity.ts'
import { runHere } from '../../core/cli/here.ts'
import { Node } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

let alice: Node
let bob: Node
beforeAll(async () => {
  bob = await Node.start('bob')
  alice = await Node.start('alice', { peers: [`bob@127.0.0.1:${await bob.port()}`] }, ['system', 'providers/builtin'])
  await bob.spawn('scribe')
  await alice.linked('bob', ({ agents }) => agents.length > 0)
})
afterAll(async () => {
  await Promise.all([alice?.[Symbol.asyncDispose](), bob?.[Symbol.asyncDispose]()])
})
const svc = (...args: string[]) => runHere(['peer', ...args, '--home', alice.home])

it('svc peer lists, shows, asks, writes to and forgets a daemon', async () => {
  const { identity_fingerprint: key } = await bob.status()
  const list = await svc('list')
  expect(list.stdout).toContain('This is node alice')
  expect(list.stdout).toMatch(new RegExp(`bob +bob's daemon +connected .*${key}`))
  expect((await svc('show', 'bob')).stdout).toMatch(/encrypted +yes/)
  expect((await svc('ping', 'bob')).stdout).toMatch(/answered in [\d.]+ ms/)
  expect((await svc('send', 'bob', 'scribe', 'Good morning')).stdout.trim()).toBe('Good morning')
  expect(JSON.parse((await svc('send', 'bob', 'scribe', 'Hi', '--json')).stdout).text).toBe('Hi')
  expect(await svc('show', 'nobody')).toMatchObject({
    code: expect.any(Number),
    stderr: expect.stringContaining('There is no peer'),
  })
  expect((await svc('unpin', 'bob')).stdout).toContain('The key of bob is forgotten')
  // It has the same key as before.
  await alice.audited('forgot the key of node bob')
  await alice.linked('bob')
})

/** The answer of an agent of alice whose model calls a tool and says what came of it. */
async function use(agentId: string, tool: string, args: object): Promise<string> {
  alice.model.answer({ calls: [{ tool, args: { ...args } }] })
  const { body } = await alice.host.json('POST', `/api/agents/${agentId}/message`, { message: `Use ${tool}` })
  return body.response
}

it('agents see other daemons and write to those their manifest names, and to no others', async () => {
  const grant = 'capabilities = { tools = ["*"], ofp_discover = true, ofp_connect = ["bo*"] }'
  const writer = await alice.spawn('writer', grant)
  await alice.linked('bob', ({ agents }) => agents.length > 0)
  expect(await use(writer, 'peer_agents', { query: 'scribe' })).toContain('scribe of bob')
  const turns = bob.model.requests.length
  bob.model.answer('The answer of bob')
  expect(await use(writer, 'peer_send', { peer: 'bob', agent: 'scribe', message: 'What is new?' })).toContain(
    'The answer of bob',
  )
  expect(bob.model.requests).toHaveLength(turns + 1)
  const stranger = await alice.spawn('stranger', grant.replace('bo*', 'carol'))
  expect(await use(stranger, 'peer_send', { peer: 'bob', agent: 'scribe', message: 'Hi' })).toContain(
    'capabilities.ofp_connect',
  )
  const { body: none } = await alice.host.json(
    'GET',
    `/api/agents/${await alice.spawn('plain', 'capabilities = { tools = ["*"] }')}/tools`,
  )
  expect(JSON.stringify(none)).not.toContain('peer_send')
  expect(bob.model.requests).toHaveLength(turns + 1)
})

it('a daemon that calls itself by the id or the name of another gets nothing that is meant for it', async () => {
  const port = await alice.port()
  const link = async (id: string, name: string): Promise<RawPeer> => {
    const named = new (class extends Identity {
      override prove(proven: Parameters<Identity['prove']>[0]) {
        return super.prove(proven, name)
      }
    })()
    const peer = await RawPeer.link(port, 'alice', id, { identity: named })
    onTestFinished(() => void peer.socket.destroy())
    await alice.linked(id)
    return peer
  }
  const carol = await link('carol', 'the office')
  expect((await alice.host.json('GET', '/api/peers/the%20office')).body.node_id).toBe('carol')
  const writer = await alice.spawn('clerk', 'capabilities = { tools = ["*"], ofp_connect = ["carol", "the office"] }')
  carol.socket.destroy()
  await alice.unlinked('carol')
  await link('mallory', 'carol')
  await link('trudy', 'the office')
  expect((await alice.host.json('GET', '/api/peers/carol')).body).toMatchObject({ node_id: 'carol' })
  expect((await alice.host.json('POST', '/api/peers/carol/ping')).status).toBe(503)
  expect((await alice.host.json('GET', '/api/peers/the%20office')).status).toBe(404)
  for (const peer of ['mallory', 'trudy'])
    expect(await use(writer, 'peer_send', { peer, agent: 'scribe', message: 'For carol only' })).toContain(
      'capabilities.ofp_connect',
    )
})
