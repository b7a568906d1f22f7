import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { byHand, openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

/** An agent that answers in two sessions at the same time; the turns of the active session and of the other one. */
async function busyAgent(name: string) {
  const words = [byHand(), byHand()]
  const earlier = stage.fake.requests.length
  stage.fake.script(...words.map(({ text }) => ({ text })))
  const agent = await stage.spawn(name)
  const other = crypto.randomUUID()
  const send = (sessionId?: string) =>
    stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'work', session_id: sessionId })
  const answers = [send(), send(other)]
  const running = async () =>
    (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body.turns.filter(
      ({ state }: { state: string }) => state === 'running',
    )
  // A turn runs before it calls the model: without its call, its scripted answer would stay for the next test.
  await stage.fake.request(earlier + words.length - 1)
  expect(await running()).toHaveLength(2)
  const sessions = async () => (await running()).map(({ session_id: id }: { session_id: string }) => id)
  return {
    agent,
    other,
    sessions,
    answers,
    finish() {
      for (const each of words) {
        each.say('done')
        each.end()
      }
    },
  }
}

describe('stopping an agent that works in two sessions', () => {
  it('by the command without a session cancels the active one alone', async () => {
    const { agent, other, sessions, answers, finish } = await busyAgent('command')
    const answer = await stage.host.json('POST', `/api/agents/${agent}/commands`, { command: '/stop' })
    expect(answer.body.content).toBe('Agent run cancelled.')
    await expect.poll(sessions).toEqual([other])
    finish()
    const stops = (await Promise.all(answers)).map(({ body }) => body.stop)
    expect(stops).toEqual(['cancelled', 'done'])
  })

  it('by the route cancels the session that it names, and without one all of them', async () => {
    const { agent, other, sessions, answers, finish } = await busyAgent('route')
    const stop = (body?: object) => stage.host.json('POST', `/api/agents/${agent}/stop`, body)
    const active = (await sessions()).filter((id: string) => id !== other)
    expect((await stop({ session_id: other })).body).toEqual({ status: 'stopped', message: 'Agent run cancelled' })
    await expect.poll(sessions).toEqual(active)
    expect((await stop({ session_id: other })).body).toEqual({ status: 'stopped', message: 'No active run' })
    expect((await stop()).body).toEqual({ status: 'stopped', message: 'Agent run cancelled' })
    expect((await Promise.all(answers)).map(({ body }) => body.stop)).toEqual(['cancelled', 'cancelled'])
    expect((await stop()).body).toEqual({ status: 'stopped', message: 'No active run' })
    finish()
  })

  it('by the route without a session cancels both', async () => {
    const { agent, answers, finish } = await busyAgent('both')
    const stopped = await stage.host.json('POST', `/api/agents/${agent}/stop`)
    expect(stopped.body).toEqual({ status: 'stopped', message: 'Agent run cancelled' })
    expect((await Promise.all(answers)).map(({ body }) => body.stop)).toEqual(['cancelled', 'cancelled'])
    finish()
  })

  it('by the route refuses a session that is not of this agent, and cancels nothing', async () => {
    const { agent, other, sessions, answers, finish } = await busyAgent('owner')
    const running = (await sessions()).toSorted()
    const idle = await stage.spawn('idle')
    const stop = (of: string, session_id: unknown) => stage.host.json('POST', `/api/agents/${of}/stop`, { session_id })
    const unknown = crypto.randomUUID()
    for (const [of, id] of [
      [idle, other],
      [agent, (await stage.session(idle)).session_id],
      [agent, unknown],
    ] as const) {
      const refused = await stop(of, id)
      expect([refused.status, refused.body.error.code]).toEqual([404, 'session_not_found'])
      expect(refused.body.error.message).toBe(`No session ${id} of this agent`)
    }
    for (const id of ['work', '', 7]) expect((await stop(agent, id)).status, String(id)).toBe(400)
    // The active session of an agent that nobody has written to yet.
    const fresh = (await stage.session(idle)).session_id
    expect((await stop(idle, fresh)).body).toEqual({ status: 'stopped', message: 'No active run' })
    expect((await sessions()).toSorted()).toEqual(running)
    finish()
    expect((await Promise.all(answers)).map(({ body }) => body.stop)).toEqual(['done', 'done'])
  })
})
