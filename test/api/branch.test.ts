import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import type { Json } from '../support/json.ts'

let stage: ChatStage
let serial = 0
const NOBODY = '00000000-0000-4000-8000-000000000000'
beforeAll(async () => {
  stage = await openChat({
    config: {
      plugins: { providers: { breaker_failures: 1000, tries: 1 }, sessions: { branch_max_messages: 5 } },
    },
  })
  stage.fake.always(({ body }) => ({ text: `heard ${String(body.messages?.at(-1)?.content)}` }))
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

const spawn = (tools?: string[]) => stage.spawn(`branching-${serial++}`, tools)
const say = (agent: string, message: string) => stage.host.json('POST', `/api/agents/${agent}/message`, { message })
const read = async (id: string): Promise<Json> => (await stage.host.json('GET', `/api/sessions/${id}`)).body
const branch = (id: string, body?: object, headers?: Record<string, string>) =>
  stage.host.json('POST', `/api/sessions/${id}/branch`, body, headers)
const contents = ({ messages }: Json): string[] => messages.map(({ content }: { content: string }) => content)
/** What the model was given beside the rules, in the last request. */
const told = () =>
  stage.fake.requests
    .at(-1)
    ?.body.messages?.filter(({ role }) => role !== 'system')
    .map(({ content }) => content)

describe('a conversation is branched', () => {
  it('at an answer: its copy goes on without what came after, and the old one stays as it is', async () => {
    const agent = await spawn()
    for (const text of ['one', 'two', 'three']) await say(agent, text)
    const before = await read((await stage.session(agent)).session_id)
    const { status, body } = await branch(before.session_id, { message: before.messages[3].id })
    expect([status, body]).toEqual([
      201,
      {
        session_id: expect.any(String),
        branched_from: before.session_id,
        label: 'one (branch)',
        message_count: 4,
      },
    ])
    await say(agent, 'another way')
    expect(told()).toEqual(['one', 'heard one', 'two', 'heard two', 'another way'])
    const after = await read(body.session_id)
    expect(after).toMatchObject({ active: true, message_count: 6, title: 'one (branch)' })
    expect(after.messages[0]).toMatchObject({ created_at: before.messages[0].created_at })
    const ids = (view: Json, field: string) => view.messages.map((message: Json) => message[field])
    for (const field of ['id', 'turn_id'])
      expect(ids(after, field).filter((id: string) => ids(before, field).includes(id))).toEqual([])
    expect(await read(before.session_id)).toEqual({ ...before, active: false, context: expect.any(Object) })
    const trail = (await stage.host.json('GET', '/api/audit/recent?limit=50')).body.entries
    expect(JSON.stringify(trail)).toContain(`${body.session_id} branched from ${before.session_id} at message`)
  })

  it('by number, by default whole, once under an Idempotency-Key, under a label that is free', async () => {
    const agent = await spawn()
    await say(agent, 'one')
    await say(agent, 'two')
    const { session_id: id } = await stage.session(agent)
    expect(contents(await read((await branch(id, { message: 2, label: 'half' })).body.session_id))).toEqual([
      'one',
      'heard one',
    ])
    const [first, again] = [
      await branch(id, undefined, { 'idempotency-key': 'whole' }),
      await branch(id, undefined, { 'idempotency-key': 'whole' }),
    ]
    expect(again.body).toEqual(first.body)
    expect(contents(await read(first.body.session_id))).toEqual(['one', 'heard one', 'two', 'heard two'])
    expect((await branch(id)).body.label).toBe('one (branch 2)')
    expect((await branch(first.body.session_id)).body.label).toBe('one (branch 3)')
    expect((await branch(id, { label: 'half' })).status).toBe(409)
    for (const body of [{ message: 0 }, { message: 1.5 }, { message: '' }, { message: null }, { label: '' }])
      expect([body, (await branch(id, body)).status]).toEqual([body, 400])
    for (const [session, message, text] of [
      [id, 5, 'No message 5: this conversation has 4, counted from 1'],
      [id, NOBODY, `No message ${NOBODY} in this conversation`],
      [NOBODY, 1, `No session ${NOBODY}`],
    ] as const) {
      const { status, body } = await branch(session, { message })
      expect([status, body.error.message]).toEqual([404, text])
    }
    const sessions = (await stage.host.json('GET', `/api/agents/${agent}/sessions`)).body.sessions
    expect(sessions).toHaveLength(5)
  })

  it('with branch_max_messages at most', async () => {
    const agent = await spawn()
    for (const text of ['one', 'two', 'three']) await say(agent, text)
    const { session_id: id } = await stage.session(agent)
    for (const message of [undefined, 6, 7, NOBODY]) {
      const { status, body } = await branch(id, { message })
      expect([status, body.error.message]).toEqual([409, expect.stringContaining('at most 5 messages')])
    }
    expect((await branch(id, { message: 4 })).body.message_count).toBe(4)
  })

  it('not in a turn that runs or failed; with the results of tools', async () => {
    const agent = await spawn(['kv_set'])
    const { session_id: id } = await stage.session(agent)
    const slow = byHand()
    const index = stage.fake.requests.length
    const call = { text: 'Writing.', calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] }
    stage.fake.script(call, { text: slow.text })
    const first = say(agent, 'write it down')
    await stage.fake.request(index + 1)
    for (const message of [1, 2]) {
      const { status, body } = await branch(id, { message })
      expect([status, body.error.message]).toEqual([409, expect.stringContaining('still being answered: wait')])
    }
    expect((await branch(id)).body.error.message).toContain('send one first')
    slow.say('done')
    slow.end()
    await first
    const [, calls] = (await read((await branch(id, { message: 2 })).body.session_id)).messages
    expect(calls).toMatchObject({ content: 'Writing.', tools: [{ name: 'kv_set', is_error: false }] })
    expect(calls.tools[0].result).toEqual(expect.any(String))
    await stage.host.json('POST', `/api/agents/${agent}/sessions/${id}/switch`)
    stage.fake.script({ status: 400 })
    await say(agent, 'this fails')
    const failed = await branch(id, { message: 4 })
    expect([failed.status, failed.body.error.message]).toEqual([409, expect.stringContaining('retry it first')])
    expect(contents(await read((await branch(id)).body.session_id))).toEqual(['write it down', 'Writing.', 'done'])
  })
})
