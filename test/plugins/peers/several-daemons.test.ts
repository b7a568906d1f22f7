import { afterAll, beforeAll, expect, it } from 'vitest'
import { call } from '../../../plugins/peers/handshake.ts'
import { Identity } from '../../../plugins/peers/identity.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { eventually, Node, SECRET } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

/** Daemons on one database are one node to others. */
let database: TestDatabase
let friend: Node
let one: Node
let two: Node
beforeAll(async () => {
  database = await createTestDatabase()
  friend = await Node.start('friend')
  await friend.spawn('scribe')
  const network = { node_id: 'we', peers: [`friend@127.0.0.1:${await friend.port()}`], tokens_per_hour: 1 }
  const start = (): Promise<Node> => Node.start('we', network, [], { database_url: database.url })
  ;[one, two] = await Promise.all([start(), start()])
  await one.spawn('clerk')
})
afterAll(async () => {
  for (const node of [one, two, friend]) await node?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
})

const identity = new Identity()
const ask = async (at: Node, id: string) => {
  const peer = await RawPeer.link(await at.port(), 'we', 'bob', { identity })
  const answer = await peer.ask({ id, method: 'agent_message', agent: 'clerk', message: 'Hello' })
  peer.socket.destroy()
  return answer
}
const fingerprint = async (node: Node) => (await node.status()).identity_fingerprint
const dials = async (node: Node) => (await node.status()).dialing[0]

it('they have one key', async () => {
  // Each has it when its network has begun.
  await eventually(async () => {
    const known = await fingerprint(one)
    expect(known).toEqual(expect.any(String))
    expect(await fingerprint(two)).toBe(known)
  })
})

it('a call that one has seen is refused by the other', async () => {
  const { hello } = call({ secret: SECRET, self: 'mallory', now: Date.now, encryption: 'required' }, 'we')
  const answers: unknown[] = []
  for (const node of [one, two]) {
    const peer = await RawPeer.connect(await node.port())
    peer.channel.sendJson(hello)
    answers.push(await peer.plain())
    peer.socket.destroy()
  }
  expect(answers).toMatchObject([
    { type: 'challenge' },
    { type: 'error', code: 403, message: 'This call was made before' },
  ])
})

it('the tokens of a node in an hour are those that it used at both, also after a restart', async () => {
  expect(await ask(one, '1')).toMatchObject({ text: 'Hello' })
  expect(await ask(two, '2')).toMatchObject({ code: 429 })
  await one.stop()
  await one.start()
  expect(await ask(one, '3')).toMatchObject({ code: 429 })
})

it('one of them is linked with a node, both write to its agents, and the other takes over when that one ends', async () => {
  const holder = await eventually(async () => {
    const [own, other] = await Promise.all([dials(one), dials(two)])
    expect([own.state, other.state].toSorted()).toEqual(['connected', 'waiting'])
    expect([own, other].find(({ state }) => state === 'waiting').problem).toMatch(/another daemon/)
    return own.state === 'connected' ? one : two
  })
  const other = holder === one ? two : one
  const { connected_at: since } = await friend.linked('we')
  for (const node of [holder, other]) {
    await node.linked('friend', ({ agents }) => agents.length > 0)
    expect(await node.send('friend', 'scribe', 'Hello')).toMatchObject({ status: 200, body: { text: 'Hello' } })
    expect((await node.host.json('POST', '/api/peers/friend/ping')).status).toBe(200)
    expect(await node.send('friend', 'nobody', 'Hello')).toMatchObject({ status: 404 })
  }
  await other.spawn('newcomer')
  await friend.linked('we', ({ agents }) => agents.some(({ name }: { name: string }) => name === 'newcomer'))
  expect((await friend.linked('we')).connected_at).toBe(since)
  await holder.stop()
  expect(await other.send('friend', 'scribe', 'Still there?')).toMatchObject({ status: 200 })
  expect(await dials(other)).toMatchObject({ state: 'connected', problem: null })
})
