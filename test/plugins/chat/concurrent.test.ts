import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { AgentService } from '../../../plugins/agents/service.ts'
import { byHand, openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})
afterEach(() => {
  vi.restoreAllMocks()
})

async function turns(agent: string): Promise<readonly { turn_id: string; state: string }[]> {
  return (await stage.host.json('GET', `/api/agents/${agent}/turns`)).body.turns
}

async function twoSessions(agent: string): Promise<readonly string[]> {
  const sessions: string[] = []
  for (const label of ['first', 'second'])
    sessions.push((await stage.host.json('POST', `/api/agents/${agent}/sessions`, { label })).body.session_id)
  return sessions
}

it('an agent answers as many sessions at a time as its manifest says, and tells why others wait', async () => {
  const agent = await stage.spawn('one-at-a-time', [], 'max_concurrent_invocations = 1')
  const sessions = await twoSessions(agent)
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

/** The agent of the next turn cannot be read `failures` times, once that turn was accepted. Settles when it was not. */
function failReads(failures: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { find, requireRunning } = AgentService.prototype
  vi.spyOn(AgentService.prototype, 'requireRunning').mockImplementationOnce(async function (this: AgentService, id) {
    const agent = await requireRunning.call(this, id)
    let left = failures
    vi.spyOn(AgentService.prototype, 'find').mockImplementation(function (this: AgentService, each) {
      if (each !== id || left === 0) return find.call(this, each)
      left--
      if (left === 0) resolve()
      return Promise.reject(new Error('the row cannot be read'))
    })
    return agent
  })
  return promise
}

it('a turn whose agent cannot be read at its start runs beside no other one of that agent', async () => {
  const agent = await stage.spawn('unread-at-start', [], 'max_concurrent_invocations = 1')
  const sessions = await twoSessions(agent)
  const hand = byHand()
  const asked = stage.fake.requests.length
  stage.fake.script({ text: hand.text })
  const first = stage.post(`/api/agents/${agent}/message`, { message: 'one', session_id: sessions[0] })
  await stage.fake.request(asked)
  const failed = failReads(1)
  const second = stage.post(`/api/agents/${agent}/message`, { message: 'two', session_id: sessions[1] })
  await failed
  // A third one that is answered shows that the second one had its chance.
  const other = await stage.spawn('answers-meanwhile', [])
  expect((await stage.post(`/api/agents/${other}/message`, { message: 'three' })).status).toBe(200)
  expect(stage.fake.requests.length).toBe(asked + 2)
  hand.end()
  expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200])
})

it('a turn whose agent cannot be read at all is ended, and the next one is answered', async () => {
  const agent = await stage.spawn('unread', [], 'max_concurrent_invocations = 1')
  const failed = failReads(2)
  expect((await stage.post(`/api/agents/${agent}/message`, { message: 'one' })).status).toBe(500)
  await failed
  expect(stage.host.defects().map(({ error }) => String(error))).toEqual(['Error: the row cannot be read'])
  expect((await turns(agent)).map(({ state }) => state)).toEqual(['failed'])
  vi.restoreAllMocks()
  expect((await stage.post(`/api/agents/${agent}/message`, { message: 'two' })).status).toBe(200)
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
