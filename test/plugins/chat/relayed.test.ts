import OpenAI from 'openai'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { openSharedChat } from '../../support/shared-chat.ts'
import type { SharedChat, SharedStage } from '../../support/shared-chat.ts'
import { rpc } from '../a2a/stage.ts'

/** Every session belongs to the first daemon, and everybody asks at the second. */
let shared: SharedChat
let one: SharedStage
let two: SharedStage
beforeAll(async () => {
  shared = await openSharedChat()
  const start = (name: string) =>
    shared.start(name, { plugins: { cluster: { name }, chat: { text_flush_ms: 1, compaction: { keep_recent: 2 } } } })
  one = await start('one')
  two = await start('two')
  shared.fake.always({ text: ['Hello', ' from', ' the', ' fake.'] })
})
afterAll(() => shared[Symbol.asyncDispose]())

let serial = 0
/** An agent that the first daemon has answered: it has its session from then on, for no timer moves here. */
async function spawn(): Promise<{ readonly id: string; readonly name: string }> {
  const name = `relayed-${++serial}`
  const id = await one.spawn(name)
  await (await one.post(`/api/agents/${id}/message`, { message: 'one' })).text()
  return { id, name }
}
/** The daemons that worked on the turns of an agent. */
const owners = (id: string): Promise<string> =>
  shared.database.query(`SELECT DISTINCT m.name FROM journal_turn t JOIN cluster_member m ON m.id = t.owner
    WHERE t.agent_id = '${id}'`)

it('WebSocket', async () => {
  const { id } = await spawn()
  const socket = new WebSocket(`${two.host.url.replace('http', 'ws')}/api/agents/${id}/ws`)
  const frames: { readonly type: string; readonly content?: string }[] = []
  const { promise: answered, resolve } = Promise.withResolvers<void>()
  socket.addEventListener('message', ({ data }) => {
    const frame = JSON.parse(String(data)) as (typeof frames)[number]
    frames.push(frame)
    if (frame.type === 'connected') socket.send(JSON.stringify({ type: 'message', content: 'two' }))
    if (frame.type === 'response' || frame.type === 'error') resolve()
  })
  await answered
  socket.close()
  const text = frames.filter(({ type }) => type === 'text_delta').map(({ content }) => content)
  expect(text.join('')).toBe('Hello from the fake.')
  expect(frames.at(-1)).toMatchObject({ type: 'response', content: 'Hello from the fake.' })
  expect((await one.session(id)).messages.map(({ content }) => content)).toEqual([
    'one',
    'Hello from the fake.',
    'two',
    'Hello from the fake.',
  ])
  expect(await owners(id)).toBe('one')
})

it('the API of OpenAI, streaming', async () => {
  const { id, name } = await spawn()
  const client = new OpenAI({ baseURL: `${two.host.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const messages = [{ role: 'user' as const, content: 'two' }]
  let text = ''
  for await (const { choices } of await client.chat.completions.create({ model: name, messages, stream: true }))
    text += choices[0]?.delta.content ?? ''
  expect(text).toBe('Hello from the fake.')
  expect(await owners(id)).toBe('one')
})

it('A2A', async () => {
  const send = async ({ host }: SharedStage, text: string) =>
    (
      await rpc(host, {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: { message: { messageId: text, role: 'ROLE_USER', contextId: 'a-context', parts: [{ text }] } },
      })
    ).body.result.task
  await send(one, 'one')
  const task = await send(two, 'two')
  expect(task.status.state).toBe('TASK_STATE_COMPLETED')
  expect(JSON.stringify(task.artifacts)).toContain('Hello from the fake.')
  const session = await shared.database.query("SELECT DISTINCT session_id FROM journal_turn WHERE entry_point = 'a2a'")
  expect(session.split('\n')).toHaveLength(1)
  const owner = `SELECT DISTINCT m.name FROM journal_turn t JOIN cluster_member m ON m.id = t.owner
    WHERE t.session_id = '${session}'`
  expect(await shared.database.query(owner)).toBe('one')
})

it('compaction', async () => {
  const { id } = await spawn()
  for (const message of ['two', 'three', 'four'])
    await (await one.post(`/api/agents/${id}/message`, { message })).text()
  shared.fake.script({ text: 'They counted.' })
  const { body } = await two.host.json('POST', `/api/agents/${id}/session/compact`)
  expect(body.status).toBe('compacted')
  // The owner is told of it a moment later.
  await eventually(async () => {
    await (await one.post(`/api/agents/${id}/message`, { message: 'five' })).text()
    const seen = JSON.stringify(shared.fake.requests.at(-1)?.body.messages)
    expect(seen).toContain('They counted.')
    expect(seen).not.toContain('"two"')
  })
})
