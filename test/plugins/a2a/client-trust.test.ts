import { generateKeyPairSync } from 'node:crypto'
import { AgentCard, generateAgentCardSignature } from '@a2a-js/sdk'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import type { Json } from '../../support/json.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'
import { cardOf, startRemoteAgent } from './remote-agent.ts'
import type { RemoteAgentServer } from './remote-agent.ts'

// Signed cards, labels of answers, and what becomes of a message when the plugin goes while it is sent.

let test: PluginTest
let remote: RemoteAgentServer
let sender: string
const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

beforeAll(async () => {
  remote = await startRemoteAgent('1.0')
  test = await startPlugin({
    plugin: new URL('../../../plugins/a2a', import.meta.url),
    builtIns: [...turnPlugins, 'queue', 'delegation'],
    fetch: 'network',
    database: 'file',
    config: {
      outbound: { allow: ['127.0.0.1'] },
      a2a: { poll_min_ms: 10, poll_max_ms: 20 },
      plugins: { drain_ms: 50 },
    },
  })
  sender = await test.spawn(
    'sender',
    'capabilities.tools = ["*"]\ncapabilities.agent_spawn = true\ncapabilities.network = ["127.0.0.1"]',
  )
})
afterAll(async () => {
  await test[Symbol.asyncDispose]()
  await remote[Symbol.asyncDispose]()
})
beforeEach(async () => {
  remote.intercept = undefined
  remote.card = cardOf('1.0', remote.origin)
  await test.request('DELETE', '/api/a2a/agents/Echo%201.0')
})
const discover = async (): Promise<Json> =>
  (await test.request<Json>('POST', '/api/a2a/discover', { url: remote.origin })).body.agent
const trust = async (): Promise<void> => {
  await discover()
  expect(await test.request('POST', '/api/a2a/agents/Echo%201.0/approve')).toMatchObject({ status: 200 })
}
const latest = async (): Promise<Json> => (await test.request<Json>('GET', '/api/a2a/tasks?limit=1')).body.tasks[0]

it('a signed card is verified with the key at its address; a wrong signature is never trusted', async () => {
  const jku = `${remote.origin}/keys.json`
  const sign = generateAgentCardSignature(privateKey, { alg: 'ES256', typ: 'JOSE', kid: 'k-1', jku })
  const plain = AgentCard.fromJSON(cardOf('1.0', remote.origin, { signatures: [] }))
  const signed = AgentCard.toJSON(await sign(plain)) as Json
  remote.intercept = ({ url }, answer) => {
    if (url.pathname !== '/keys.json') return false
    answer.json(200, { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'k-1', alg: 'ES256' }] })
    return true
  }
  remote.card = { ...signed, description: 'Something that nobody signed.' }
  const printed = (['debug', 'log', 'error'] as const).map((name) => vi.spyOn(console, name))
  const forged = await discover()
  for (const print of printed) expect(print, 'text of others goes nowhere past the log').not.toHaveBeenCalled()
  expect(forged).toMatchObject({ signature: { state: 'invalid' }, warnings: ['its signature is wrong'] })
  const refused = await test.request<Json>('POST', '/api/a2a/agents/Echo%201.0/approve')
  expect([refused.status, refused.body.error.message]).toEqual([409, expect.stringContaining('signature')])
  remote.card = signed
  expect((await discover()).signature).toEqual({ state: 'valid', keys: [`k-1 at ${remote.origin}`] })
  expect(await test.request('POST', '/api/a2a/agents/Echo%201.0/approve')).toMatchObject({ status: 200 })
})

it('an answer keeps its labels in the turn: a tool that refuses them is not called', async () => {
  await trust()
  const spawn = { calls: [{ tool: 'agent_spawn', args: { name: 'x', system_prompt: 'x' } }] }
  const ask = { calls: [{ tool: 'a2a_send', args: { agent_name: 'Echo 1.0', message: 'make an agent' } }] }
  await test.say(sender, 'Ask the other agent, and do what it says.', ask, spawn, 'Refused.')
  expect(await auditDetails(test, 'taint_violation')).toEqual([
    expect.stringMatching(/agent_spawn refuses (?:UntrustedAgent|ExternalNetwork).*a2a_send/),
  ])
})

it('a message goes on after the plugin was replaced in the middle of it, and becomes one task', async () => {
  await trust()
  const held = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  let cuts = 0
  remote.intercept = async ({ url }) => {
    if (url.pathname !== '/rpc' || cuts++ > 0) return false
    arrived.resolve()
    await held.promise
    return true
  }
  const call = { agentId: sender, turnId: 't-cut', callId: 'c-cut' }
  const args = { agent_name: 'Echo 1.0', message: 'cut off' }
  const cut = test.callTool('a2a_send', args, call).catch((error: unknown) => error)
  await arrived.promise
  await test.reload()
  held.resolve()
  await cut
  await expect.poll(async () => (await latest()).status).toBe('completed')
  const again = await test.callTool('a2a_send', args, call)
  expect(again).toMatchObject({ failed: false, text: expect.stringContaining('echo: cut off') })
  expect(remote.texts.filter((text) => text === 'cut off')).toHaveLength(1)
})

it('an agent that asks to be asked again in a million years is asked within follow_secs', async () => {
  await using own = await startPlugin({
    plugin: new URL('../../../plugins/a2a', import.meta.url),
    builtIns: [...turnPlugins, 'queue'],
    fetch: 'network',
    config: {
      plugins: { queue: { retry_min_ms: 10 } },
      a2a: { follow_secs: 1, send_wait_secs: 0, external_agents: [{ name: 'partner', url: remote.origin }] },
    },
  })
  let asked = 0
  remote.intercept = ({ url }, answer) => {
    if (url.pathname !== '/rpc' || asked++ > 0) return false
    answer.raw(429, { 'retry-after': '9'.repeat(400) }, '{}')
    return true
  }
  await own.request('POST', '/api/a2a/send', { agent_id: 'partner', message: 'patience' })
  await expect.poll(() => remote.texts).toContain('patience')
  expect(asked).toBeGreaterThan(1)
})

it('what was sent is forgotten sent_retention_days later, also when the other side never told its end', async () => {
  await trust()
  remote.intercept = ({ url, body }, answer) => {
    if (url.pathname !== '/rpc') return false
    const task = { id: 'for-ever', contextId: 'c', status: { state: 'TASK_STATE_INPUT_REQUIRED' } }
    answer.json(200, { jsonrpc: '2.0', id: (body as Json).id, result: { task } })
    return true
  }
  const { body } = await test.request<Json>('POST', '/api/a2a/send', { agent_id: 'Echo 1.0', message: 'x' })
  const isKnown = async (): Promise<boolean> =>
    (await test.request<Json>('GET', '/api/a2a/tasks')).body.tasks.some(({ id }: Json) => id === body.id)
  expect(await isKnown()).toBe(true)
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 31 * 86_400_000 })
  try {
    await test.advance(3_600_000)
    await expect.poll(isKnown).toBe(false)
  } finally {
    vi.useRealTimers()
  }
})
