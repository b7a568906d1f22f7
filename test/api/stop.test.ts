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
  await expect.poll(async () => (await running()).length, { timeout: 10_000 }).toBe(2)
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
    await expect.poll(sessions, { timeout: 10_000 }).toEqual([other])
    finish()
    const stops = (await Promise.all(answers)).map(({ body }) => body.stop)
    expect(stops).toEqual(['cancelled', 'done'])
  })
})
