import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import type { Answer, RecordedRequest } from '../../support/fake-provider.ts'

let stage: ChatStage
let summaries: { answer: Answer; asked: string[] }
beforeEach(async () => {
  summaries = { answer: { text: 'They spoke of numbers.' }, asked: [] }
  stage = await openChat({
    memory: true,
    config: { plugins: { chat: { compaction: { threshold_messages: 6, keep_recent: 2 } } } },
  })
  stage.fake.always((request) => {
    if (!isSummary(request)) return { text: 'ok' }
    summaries.asked.push(text(request))
    return summaries.answer
  })
})
afterEach(async () => {
  await stage[Symbol.asyncDispose]()
})

const isSummary = ({ body }: RecordedRequest): boolean =>
  String(body.messages?.[0]?.content).startsWith('You summarise conversations')
const text = ({ body }: RecordedRequest): string =>
  (body.messages ?? [])
    .map(({ content }) => (typeof content === 'string' ? content : JSON.stringify(content)))
    .join('\n')
const last = (): RecordedRequest => stage.fake.requests.findLast((request) => !isSummary(request)) as RecordedRequest
async function say(message: string, agent = stage.agent) {
  const answer = await stage.host.json('POST', `/api/agents/${agent}/message`, { message })
  expect(answer.status).toBe(200)
  return answer.body
}
async function sayMany(count: number, agent = stage.agent) {
  for (let n = 1; n <= count; n++) await say(`number ${n}`, agent)
}
const compact = (body?: object, agent = stage.agent) =>
  stage.host.json('POST', `/api/agents/${agent}/session/compact`, body)

describe('compaction on request', () => {
  it('puts a summary in the place of the older messages, for the model alone', async () => {
    await sayMany(3)
    const { status, body } = await compact()
    expect([status, body]).toMatchObject([
      200,
      { status: 'compacted', message: 'Session compacted: 4 messages summarized, 2 kept' },
    ])
    expect(summaries.asked[0]).toContain('number 2')
    expect(summaries.asked[0]).not.toContain('number 3')
    await say('and now')
    const seen = text(last())
    expect(seen).toContain('They spoke of numbers.')
    expect(seen).not.toContain('number 2')
    expect(seen).toContain('number 3')
    const session = (await stage.host.json('GET', `/api/agents/${stage.agent}/session`)).body
    expect(session.messages).toHaveLength(8)
    expect([session.compacted_summary, session.summarized_messages]).toEqual(['They spoke of numbers.', 4])
  })

  it("sends the agent's rules with every request all the same", async () => {
    const agent = await stage.spawn('ruled', ['*'], '[model]\nsystem_prompt = "Speak like a sailor."\n')
    await sayMany(3, agent)
    await compact(undefined, agent)
    await say('and now', agent)
    expect(last().body.messages?.[0]).toMatchObject({
      role: 'system',
      content: expect.stringContaining('Speak like a sailor.'),
    })
  })

  it('says so when there is nothing to summarise', async () => {
    await sayMany(1)
    expect((await compact()).body).toMatchObject({
      status: 'not_needed',
      message: 'No compaction needed: 2 messages, compacted by itself over 6',
    })
    expect(summaries.asked).toEqual([])
  })

  it('a failed summary leaves everything as it was', async () => {
    await sayMany(3)
    summaries.answer = { status: 400, body: '{"error":{"message":"no"}}' }
    expect((await compact()).status).toBeGreaterThanOrEqual(400)
    summaries.answer = { text: '   ' }
    expect((await compact()).status).toBeGreaterThanOrEqual(400)
    await say('and now')
    expect(text(last())).toContain('number 1')
    expect((await stage.host.json('GET', `/api/agents/${stage.agent}/session`)).body.compacted_summary).toBeNull()
  })

  it('is undone, and the one before holds again', async () => {
    await sayMany(3)
    await compact()
    summaries.answer = { text: 'They went on.' }
    await sayMany(2)
    expect((await compact()).body.status).toBe('compacted')
    expect(summaries.asked[1]).toContain('They spoke of numbers.')
    expect((await compact({ undo: true })).body).toMatchObject({
      status: 'restored',
      message: 'Summary taken back: 4 messages are read in full again',
    })
    await say('and now')
    expect(text(last())).toContain('They spoke of numbers.')
    expect((await compact({ undo: true })).body.status).toBe('restored')
    expect((await compact({ undo: true })).body.status).toBe('not_needed')
    await say('then')
    expect(text(last())).toContain('number 1')
  })

  it('never parts a call from its results', async () => {
    await sayMany(2)
    stage.fake.script(
      {
        calls: [
          { name: 'kv_list', args: {} },
          { name: 'kv_get', args: { key: 'a' } },
        ],
      },
      { text: 'looked' },
    )
    const agent = await stage.spawn('caller')
    await say('look', agent)
    await compact(undefined, agent)
    await say('and now', agent)
    const roles = (last().body.messages ?? []).map(({ role }) => role)
    expect(roles.filter((role) => role === 'tool')).toHaveLength(2)
    expect(text(last())).toContain('looked')
  })

  it('works by session id too, and is 404 for one that is not there', async () => {
    await sayMany(3)
    const { session_id } = await stage.session()
    expect((await stage.host.json('POST', `/api/sessions/${session_id}/compact`)).body.status).toBe('compacted')
    expect((await stage.host.json('POST', '/api/sessions/00000000-0000-4000-8000-000000000000/compact')).status).toBe(
      404,
    )
    expect((await stage.host.json('POST', '/api/sessions/nonsense/compact')).status).toBe(400)
    expect(
      (await stage.host.json('POST', '/api/agents/00000000-0000-4000-8000-000000000000/session/compact')).status,
    ).toBe(404)
  })

  it('is gone with the history, and stays with its own session', async () => {
    await sayMany(3)
    await compact()
    await stage.host.json('POST', `/api/agents/${stage.agent}/sessions`, {})
    await say('hello')
    expect(text(last())).not.toContain('They spoke of numbers.')
    await stage.host.json('DELETE', `/api/agents/${stage.agent}/history`)
    await say('hello')
    expect(text(last())).not.toContain('They spoke')
  })

  it('is written down', async () => {
    await sayMany(3)
    await compact()
    const { body } = await stage.host.json('GET', '/api/audit/recent?event_type=session_changed')
    expect(JSON.stringify(body)).toContain('4 messages summarized')
  })
})

describe('what a summary takes', () => {
  it('is counted and traced like any call of a model', async () => {
    await sayMany(3)
    await compact()
    const { body } = await stage.host.json('GET', `/api/agents/${stage.agent}/traces`)
    expect(JSON.stringify(body)).toContain('They spoke of numbers.')
    expect(body.traces).toHaveLength(4)
  })
  it('is given up when the turn that needs it is cancelled, and nothing is changed', async () => {
    await sayMany(4)
    const summary = byHand()
    summaries.answer = { text: summary.text }
    const index = stage.fake.requests.length
    const answer = stage.host.json('POST', `/api/agents/${stage.agent}/message`, { message: 'number 5' })
    await stage.fake.request(index)
    expect((await stage.host.json('POST', `/api/agents/${stage.agent}/stop`)).body.message).toBe('Agent run cancelled')
    expect((await answer).body.stop).toBe('cancelled')
    summary.end()
    expect((await stage.host.json('GET', `/api/agents/${stage.agent}/session`)).body.compacted_summary).toBeNull()
    summaries.answer = { text: 'They spoke of numbers.' }
    expect((await say('number 6')).stop).toBe('done')
  })
  it('asked for twice at the same time is made once', async () => {
    await sayMany(3)
    const summary = byHand()
    summaries.answer = { text: summary.text }
    const index = stage.fake.requests.length
    const both = [compact(), compact()]
    await stage.fake.request(index)
    summary.say('Once.')
    summary.end()
    expect((await Promise.all(both)).map(({ body }) => body.status)).toEqual(['compacted', 'compacted'])
    expect(summaries.asked).toHaveLength(1)
  })
  it('does not hold up what is said meanwhile, and stands for none of it', async () => {
    await sayMany(3)
    const summary = byHand()
    summaries.answer = { text: summary.text }
    const index = stage.fake.requests.length
    const compacting = compact()
    await stage.fake.request(index)
    await say('meanwhile')
    summary.say('They spoke of numbers.')
    summary.end()
    expect((await compacting).body.message).toBe('Session compacted: 4 messages summarized, 2 kept')
    await say('and now')
    expect(text(last())).toContain('meanwhile')
    expect(text(last())).toContain('number 3')
  })
})

describe('compaction by itself', () => {
  it('comes before the turn that finds too many messages', async () => {
    await sayMany(3)
    expect(summaries.asked).toEqual([])
    await say('number 4')
    expect(summaries.asked).toHaveLength(0)
    await say('number 5')
    expect(summaries.asked).toHaveLength(1)
    expect(text(last())).toContain('They spoke of numbers.')
    expect(text(last())).toContain('number 5')
    expect(text(last())).not.toContain('number 1')
  })

  it('that fails does not stop the turn', async () => {
    summaries.answer = { status: 400, body: '{"error":{"message":"no"}}' }
    await sayMany(6)
    expect(text(last())).toContain('number 1')
  })

  it('rests after it was undone', async () => {
    await sayMany(5)
    expect(summaries.asked).toHaveLength(1)
    await compact({ undo: true })
    await say('number 6')
    expect(summaries.asked).toHaveLength(1)
    expect(text(last())).toContain('number 1')
  })

  it('comes when the messages fill the window, however few they are', async () => {
    const agent = await stage.spawn('narrow', [], '[model]\ncontext_window = 4000\nmax_tokens = 500\n')
    for (const letter of ['a', 'b']) await say(letter.repeat(6000), agent)
    await say('short', agent)
    expect(summaries.asked.length).toBeGreaterThan(0)
    expect(text(last())).toContain('They spoke of numbers.')
  })
})

describe('a provider whose window is full', () => {
  const full: Answer = {
    status: 400,
    body: JSON.stringify({
      error: { message: "This model's maximum context length is 10 tokens", code: 'context_length_exceeded' },
    }),
  }
  it('gets the request once more, with a summary of what is older', async () => {
    await sayMany(2)
    stage.fake.script(
      full,
      (request) => {
        summaries.asked.push(text(request))
        return { text: 'They spoke of numbers.' }
      },
      { text: 'it fits' },
    )
    expect((await say('and now')).response).toBe('it fits')
    expect(text(last())).toContain('They spoke of numbers.')
    expect(text(last())).toContain('and now')
  })
  it('twice is an error that says so, and nothing is lost', async () => {
    await sayMany(2)
    stage.fake.script(full, { text: 'A summary.' }, full)
    const { status, body } = await stage.host.json('POST', `/api/agents/${stage.agent}/message`, { message: 'and now' })
    expect(status).toBeGreaterThanOrEqual(400)
    expect(body.error.message).toContain('maximum context length')
    expect((await stage.session()).messages).toHaveLength(5)
  })
  it('in the middle of a turn keeps the calls of that turn', async () => {
    const agent = await stage.spawn('worker')
    await sayMany(2, agent)
    stage.fake.script(
      { calls: [{ name: 'kv_set', args: { key: 'a', value: 1 } }] },
      full,
      { text: 'A summary.' },
      { text: 'done' },
    )
    expect(await say('store it', agent)).toMatchObject({ response: 'done' })
    const roles = (last().body.messages ?? []).map(({ role }) => role)
    expect(roles.slice(-2)).toEqual(['assistant', 'tool'])
    expect(text(last())).toContain('store it')
  })
})
