import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import type { CheckResult } from '../../../core/cli/plugin-cli.ts'
import { createDaemonClient } from '../../../core/net/daemon-client.ts'
import check from '../../../plugins/peers/cli/check.ts'
import { Identity } from '../../../plugins/peers/identity.ts'
import { runHere } from '../../core/cli/here.ts'
import { pluginText, temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { eventually, Node, SECRET } from './nodes.ts'
import { RawPeer } from './raw-peer.ts'

let alice: Node
let bob: Node
beforeAll(async () => {
  bob = await Node.start('bob')
  const peers = [`bob@127.0.0.1:${await bob.port()}`]
  alice = await Node.start('alice', { peers }, ['system', 'providers/builtin'])
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

it('svc doctor, svc peer list and messages say why a daemon is not linked', async () => {
  const zed = await Node.start('zed')
  const address = `127.0.0.1:${await zed.port()}`
  await using dora = await Node.start('dora', { peers: [`zed@${address}`], connect_wait_secs: 0 }, ['system'])
  await dora.linked('zed')
  const daemon = createDaemonClient({ url: dora.host.url })
  const doctor = (): Promise<CheckResult> => check({ config: dora.host.announced, env: {}, daemon })
  expect(await doctor()).toEqual({ state: 'ok', found: '1 of network.peers, all linked' })
  await zed[Symbol.asyncDispose]()
  await dora.unlinked('zed')
  const reason = `${address} refused the connection`
  await eventually(async () => expect(await doctor()).toMatchObject({ state: 'warn', found: `not linked: ${reason}` }))
  expect((await runHere(['peer', 'list', '--home', dora.home])).stdout).toContain(`\n${reason}\n`)
  const { status, body } = await dora.send('zed', 'anybody', 'Hello', 'key')
  expect([status, body.error.message]).toEqual([
    503,
    expect.stringMatching(new RegExp(`connect_wait_secs.*: ${reason}`)),
  ])
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
  expect(bob.model.requests.at(-1)?.turns.at(-1)).toMatchObject({ parts: [{ labels: ['UntrustedAgent'] }] })
  // What alice and bob both know is no message to an agent.
  const secret = { peer: 'bob', agent: 'scribe', message: `It is ${SECRET}` }
  expect(await use(writer, 'peer_send', secret)).toContain('peer_send refuses Secret')
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

it('agents that ask each other in a circle are ended by the number of daemons their message came through', async () => {
  const grant = 'capabilities = { tools = ["*"], ofp_connect = ["*"] }'
  const asker = await alice.spawn('asker', grant)
  await bob.spawn('echo', grant)
  // Both send on to the other one, and repeat what comes of it.
  const turns = alice.model.requests.length
  const args = (peer: string, agent: string) => ({ peer, agent, message: 'Go on' })
  const forth = { calls: [{ tool: 'peer_send', args: args('bob', 'echo') }] }
  const back = { calls: [{ tool: 'peer_send', args: args('alice', 'asker') }] }
  alice.model.answer(forth, forth, forth)
  bob.model.answer(back, back)
  const { body } = await alice.host.json('POST', `/api/agents/${asker}/message`, { message: 'Go on' })
  expect(body.response).toContain('This came through 5 daemons, network.max_hops allows 4')
  expect(alice.model.requests.length - turns).toBe(6)
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
  const imitator = await RawPeer.link(port, 'alice', 'CAROL')
  expect(await imitator.ended()).toMatchObject({ code: 403, message: expect.stringContaining('known node "carol"') })
  for (const peer of ['mallory', 'trudy'])
    expect(await use(writer, 'peer_send', { peer, agent: 'scribe', message: 'For carol only' })).toContain(
      'capabilities.ofp_connect',
    )
})

it('plugins and metrics hear of links, frames and messages, and of a daemon that shuts down', async () => {
  const heard = (event: string, what: string): string =>
    `ctx.hooks.on(notify('peers:${event}'), ({ peer, reason }) => ctx.log.info('heard ${what} ' + peer.nodeId + ' ' + reason))`
  const setup = `${heard('connected', 'hello of')}\n${heard('disconnected', 'goodbye of')}\nreturn {}`
  await using folder = await temporaryFolder()
  const plugin = pluginText('listener', { setup })
  const port = await alice.port()
  await using clara = await Node.start('clara', { peers: [`alice@127.0.0.1:${port}`] }, [
    await writePlugin(join(folder.path, 'listener'), plugin),
    'system',
  ])
  await clara.linked('alice')
  const peer = await RawPeer.link(await clara.port(), 'clara', 'dave')
  expect(await peer.ask({ id: '1', method: 'agent_message', agent: 'assistant', message: 'Hi' })).toMatchObject({
    text: 'Hi',
  })
  expect(await peer.ask({ id: '2', method: 'agent_message', agent: 'nobody', message: 'Hi' })).toMatchObject({
    code: 404,
  })
  peer.send({ id: '3', type: 'notification', event: 'shutting_down' })
  await peer.ended()
  await expect(RawPeer.link(await clara.port(), 'clara', 'eve', { secret: SECRET.toUpperCase() })).rejects.toThrow()
  await clara.audited('did not prove')
  await eventually(() => expect(clara.host.log.join('\n')).toContain('heard goodbye of dave the peer is shutting down'))
  expect(clara.host.log.join('\n')).toContain('heard hello of dave')
  const metrics = await (await clara.host.fetch('/api/metrics')).text()
  for (const line of [
    'svc_peers_connected 1',
    'svc_peer_links_refused_total 1',
    'svc_peer_messages_total{outcome="answered"} 1',
    'svc_peer_messages_total{outcome="failed"} 1',
  ])
    expect(metrics).toContain(line)
  expect(metrics).toMatch(/svc_peer_frames_total\{direction="in"\} [1-9]/)
  await alice.stop()
  await eventually(() =>
    expect(clara.host.log.join('\n')).toContain('heard goodbye of alice the peer is shutting down'),
  )
})
