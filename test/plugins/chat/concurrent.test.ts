import { afterAll, beforeAll, expect, it } from 'vitest'
import { byHand, openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

async function turns(agent: string): Promise<readonly { turn_id: string; state: string }[]> {
  return (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body.turns
}

it('an agent answers as many sessions at a time as its manifest says, and tells why others wait', async () => {
  const agent = await stage.spawn('one-at-a-time', [], 'max_concurrent_invocations = 1')
  const sessions: string[] = []
  for (const label of ['first', 'second'])
    sessions.push((await stage.host.json('POST', `/api/agents/${agent}/sessions`, { label })).body.session_id)
  const hand = byHand()
  const asked = stage.fake.requests.length
  stage.fake.script({ text: hand.text })
  const first = stage.post(`/api/agents/${agent}/message`, { message: 'one', session_id: sessions[0] })
  await stage.fake.request(asked)
  const second = stage.post(`/api/agents/${agent}/message`, { message: 'two', session_id: sessions[1] })
  await expect
    .poll(() => turns(agent).then((found) => found.map(({ state }) => state).sort()))
    .toEqual(['queued', 'running'])
  const [running, queued] = ['running', 'queued'].map((state) =>
    turns(agent).then((found) => found.find((turn) => turn.state === state)),
  )
  const { body } = await stage.host.json('GET', `/api/turns/${(await queued)?.turn_id}`)
  expect(body).toMatchObject({ state: 'queued', ahead: [(await running)?.turn_id] })
  // Whoever gives up gives up nobody else's place.
  const third = stage.post(`/api/agents/${agent}/message`, { message: 'three' })
  await expect.poll(() => turns(agent).then((found) => found.length)).toBe(3)
  expect(stage.fake.requests.length).toBe(asked + 1)
  hand.say('done')
  hand.end()
  const answers = await Promise.all([first, second, third])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200])
  expect((await turns(agent)).every(({ state }) => state === 'done')).toBe(true)
})

it('without such a limit two sessions are answered at the same time', async () => {
  const agent = await stage.spawn('many-at-a-time', [])
  const {
    body: { session_id: session },
  } = await stage.host.json('POST', `/api/agents/${agent}/sessions`, {})
  const hands = [byHand(), byHand()]
  const asked = stage.fake.requests.length
  for (const { text } of hands) stage.fake.script({ text })
  const {
    body: { session_id: other },
  } = await stage.host.json('POST', `/api/agents/${agent}/sessions`, {})
  const both = [session, other].map((each) =>
    stage.post(`/api/agents/${agent}/message`, { message: 'hello', session_id: each }),
  )
  await stage.fake.request(asked + 1)
  for (const hand of hands) hand.end()
  expect((await Promise.all(both)).length).toBe(2)
})

it('what the manifest puts into a conversation reaches the model and is not stored', async () => {
  const agent = await stage.spawn(
    'briefed',
    [],
    [
      '[[context_injection]]',
      'name = "rules"',
      'content = "Be brief."',
      '[[context_injection]]',
      'content = "It is Monday."',
      'position = "before_user"',
    ].join('\n'),
  )
  const asked = stage.fake.requests.length
  expect((await stage.post(`/api/agents/${agent}/message`, { message: 'hello' })).status).toBe(200)
  const { body } = await stage.fake.request(asked)
  expect(JSON.stringify(body.messages)).toContain('[rules]\\nBe brief.')
  expect(JSON.stringify(body.messages)).toContain('It is Monday.')
  expect(JSON.stringify(await stage.session(agent))).not.toMatch(/Monday|brief/)
})
