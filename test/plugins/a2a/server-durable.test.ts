import { randomUUID } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { runHere } from '../../core/cli/here.ts'
import { openChat } from '../../support/chat-stage.ts'
import { daemonCommand, startDaemon } from '../../support/daemon.ts'
import { startFakeProvider } from '../../support/fake-provider.ts'
import type { Json } from '../../support/json.ts'
import { startRemoteAgent } from './remote-agent.ts'
import { connectSdk, message, readStream, send } from './stage.ts'

const ask = async (base: string, method: string, params: object, path = '/a2a'): Promise<Json> => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const answer = await fetch(`${base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })
  return (await answer.json()) as Json
}

const CONFIG = (partner: string) => `
[plugins.approvals]
policy = "never"
[[a2a.external_agents]]
name = "partner"
url = "${partner}"
`
const COURIER = `name = "courier"
[model]
provider = "builtin"
model = "offline"
[capabilities]
tools = ["a2a_send"]
network = ["127.0.0.1"]`
const errand = `use a2a_send ${JSON.stringify({ agent_name: 'partner', message: 'an errand' })}`
const errandMessage = { messageId: 'errand', role: 'ROLE_USER', parts: [{ text: errand }] }

// The build of the daemon does not count as time of the test.
beforeAll(async () => {
  await daemonCommand(false)
})

it('tasks survive kill -9, those of agents here and those they gave to others: each is done once, by the next daemon', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-a2a-'))
  await using fake = await startFakeProvider()
  await using partner = await startRemoteAgent('1.0')
  await writeFile(join(home, 'config.toml'), CONFIG(partner.origin))
  const arrived = Promise.withResolvers<void>()
  partner.intercept = ({ url }) => {
    if (url.pathname !== '/rpc') return false
    arrived.resolve()
    return true
  }
  const env = {
    SVC_PROVIDERS__OPENAI__BASE_URL: fake.url,
    SVC_PROVIDERS__OPENAI__API_KEY: 'test-key',
    SVC_DEFAULT_PROVIDER: 'openai',
    SVC_DEFAULT_MODEL: 'fake-1',
  }
  const sent = { message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'a long story' }] } }
  try {
    let id: string
    {
      await using daemon = await startDaemon({ home, env })
      fake.script({ text: 'It began', fault: 'stall' })
      const begun = await ask(daemon.url, 'SendMessage', { ...sent, configuration: { returnImmediately: true } })
      id = begun.result.task.id
      await fake.request(0)
      await fetch(`${daemon.url}/api/agents`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ manifest_toml: COURIER }),
      })
      const later = { message: errandMessage, configuration: { returnImmediately: true } }
      await ask(daemon.url, 'SendMessage', later, '/a2a/agents/courier')
      await arrived.promise
      await daemon.kill()
    }
    fake.script({ text: 'It ended.' })
    partner.intercept = undefined
    await using daemon = await startDaemon({ home, env })
    const again = await ask(daemon.url, 'SendMessage', sent)
    expect(again.result.task).toMatchObject({ id, status: { state: 'TASK_STATE_COMPLETED' } })
    expect(JSON.stringify(again.result.task.artifacts)).toContain('It ended.')
    expect(fake.requests).toHaveLength(2)
    const carried = await ask(daemon.url, 'SendMessage', { message: errandMessage }, '/a2a/agents/courier')
    expect(JSON.stringify(carried.result.task.artifacts)).toContain('echo: an errand')
    expect(partner.texts).toEqual(['an errand'])
    const ids = partner.requests('SendMessage').map(({ params }) => (params as Json).message.messageId)
    expect([ids.length, new Set(ids).size], 'sent again with the same id').toEqual([2, 1])
    expect((await ask(daemon.url, 'ListTasks', {})).result.totalSize).toBe(2)
  } finally {
    await rm(home, { recursive: true, force: true })
  }
})

it('a reload ends a stream with an error, and the client goes on with another one', async () => {
  await using stage = await openChat({ config: { plugins: { drain_ms: 50 } } })
  const client = await connectSdk(stage.host, '1.0')
  const gate = Promise.withResolvers<void>()
  async function* text() {
    yield 'Before'
    await gate.promise
    yield ' and after.'
  }
  stage.fake.script({ text: text() })
  const stream = client.sendMessageStream(message('a story'))
  const first = (await stream.next()).value
  const id = first?.payload?.$case === 'task' ? first.payload.value.id : ''
  await stream.next()
  const cut = readStream(stream)
  cut.catch(() => undefined)
  await stage.host.app.host.reload('a2a')
  await expect(cut).rejects.toThrow()
  const next = client.resubscribeTask({ tenant: '', id })
  await next.next()
  gate.resolve()
  expect(await readStream(next)).toMatchObject({ answer: 'Before and after.', isWhole: true })
  const task = await client.getTask({ tenant: '', id })
  expect(task.artifacts).toMatchObject([{ parts: [{ content: { value: 'Before and after.' } }] }])
})

it('needs the key for all but the cards, and for these too unless they are public', async () => {
  await using stage = await openChat({
    config: { api_key: 'the-key', a2a: { public_cards: true, public_url: 'https://svc.example.org/' } },
  })
  const card = await stage.host.json<Json>('GET', '/.well-known/agent-card.json')
  expect(card).toMatchObject({
    status: 200,
    body: { url: 'https://svc.example.org/a2a', security: [{ bearer: [] }, { apiKey: [] }] },
  })
  expect(card.body.skills.map((skill: Json) => skill.id)).toEqual(['conversation'])
  for (const [method, path] of [
    ['GET', '/a2a/agents'],
    ['GET', '/a2a/tasks'],
    ['POST', '/a2a'],
    ['POST', '/'],
    ['POST', '/a2a/agents/assistant'],
    ['POST', '/a2a/tasks/send'],
  ] as const)
    expect([path, (await stage.host.json(method, path, method === 'POST' ? {} : undefined)).status]).toEqual([
      path,
      401,
    ])
  await using closed = await openChat({ config: { api_key: 'the-key' } })
  for (const path of ['/.well-known/agent.json', '/.well-known/agent-card.json'])
    expect([path, (await closed.host.fetch(path)).status]).toEqual([path, 401])
})

it('shows card and tasks on the command line', async () => {
  await using stage = await openChat()
  const svc = (...args: string[]) => runHere(['a2a', ...args, '--home', stage.host.home])
  expect((await svc('tasks')).stdout).toContain('No program has given an agent here a task')
  expect((await svc('card')).stdout).toMatch(/address\s+http:\/\/127\.0\.0\.1:\d+\/a2a/)
  stage.fake.script({ text: 'Done.' })
  const task = await send(await connectSdk(stage.host, '1.0', 'assistant'), message('do this'))
  expect((await svc('tasks', '--agent', 'assistant')).stdout).toMatch(new RegExp(`${task.id}\\s+completed.*do this`))
  expect(JSON.parse((await svc('card', 'assistant', '--json')).stdout)).toMatchObject({ name: 'assistant' })
})
