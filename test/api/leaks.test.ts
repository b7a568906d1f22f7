import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'

/** Somebody who talks to an agent somewhere, and what only this conversation knows. */
interface Place {
  readonly name: string
  readonly secret: string
  say(text: string): Promise<string>
}

let stage: ChatStage
let places: readonly Place[]
let one: string
let other: string
const names = [
  'an agent',
  'a second session of it',
  'a client that names a session',
  'one user of a client',
  'another user of a client',
  'another agent',
  'an agent that another one asks',
] as const

beforeAll(async () => {
  stage = await openChat()
  one = await stage.spawn('one', [])
  other = await stage.spawn('other', ['agent_send'], '')
  await stage.host.json('PATCH', `/api/agents/${other}`, {
    manifest_toml: 'name = "other"\n[capabilities]\ntools = ["agent_send"]\nagent_message = ["*"]\n',
  })
  const {
    body: { session_id: second },
  } = await stage.host.json('POST', `/api/agents/${one}/sessions`, { label: 'second' })
  // Making it switched to it: the first one is the active one again.
  const { sessions } = (await stage.host.json('GET', `/api/agents/${one}/sessions`)).body
  const first =
    sessions.find((session: { session_id: string }) => session.session_id !== second)?.session_id ??
    (await stage.host.json('POST', `/api/agents/${one}/sessions`, {})).body.session_id
  await stage.host.json('POST', `/api/agents/${one}/sessions/${first}/switch`)
  const message =
    (agent: string, session?: string) =>
    async (text: string): Promise<string> =>
      (
        await (
          await stage.post(`/api/agents/${agent}/message`, {
            message: text,
            ...(session === undefined ? {} : { session_id: session }),
          })
        ).json()
      ).response
  const completion =
    (headers: Record<string, string>, more: object) =>
    async (text: string): Promise<string> =>
      (
        await stage.host.json(
          'POST',
          '/v1/chat/completions',
          { model: 'svc:one', messages: [{ role: 'user', content: text }], ...more },
          headers,
        )
      ).body.choices[0].message.content
  const asked = async (text: string): Promise<string> => {
    stage.fake.script({ calls: [{ name: 'agent_send', args: { agent_id: 'one', message: text } }] })
    return message(
      other,
      (await stage.host.json('POST', `/api/agents/${other}/sessions`, {})).body.session_id,
    )('ask it')
  }
  const talks = [
    message(one),
    message(one, second),
    completion({ 'x-svc-session': 'named' }, {}),
    completion({}, { user: 'alice' }),
    completion({}, { user: 'bob' }),
    message(other, undefined),
    asked,
  ]
  places = names.map((name, at) => ({
    name,
    secret: `canary-${at}-${'abcdefg'[at]}7f3`,
    say: talks[at] ?? message(one),
  }))
  for (const { secret, say } of places) await say(`remember ${secret}`)
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

const pairs = names.flatMap((from, at) =>
  names.flatMap((to, index) => (at === index ? [] : [[from, to, at, index] as const])),
)
/** The caller's own words stand in its own conversation with the agent it asks. */
const told = new Set(['an agent that another one asks > another agent'])

describe('what is said in one place is not told to the model in another', () => {
  it.each(pairs)('%s > %s', async (from, to, at, index) => {
    const [source, target] = [places[at], places[index]]
    if (!source || !target) throw new Error('no such place')
    const before = stage.fake.requests.length
    await target.say('what do you know?')
    const sent = stage.fake.requests
      .slice(before)
      .map(({ body }) => JSON.stringify(body))
      .join('\n')
    expect(sent).toContain('what do you know?')
    if (!told.has(`${from} > ${to}`)) expect(sent).not.toContain(source.secret)
  })
})

describe('what is said in one place is not shown in another', () => {
  it.each([
    'session',
    'sessions',
    'turns',
    'traces',
    'logs',
    'metrics',
    'files',
    'deliveries',
    'memory/export',
    'tools',
  ])('the %s of an agent hold nothing of another', async (what) => {
    const of = async (agent: string): Promise<string> => (await stage.host.fetch(`/api/agents/${agent}/${what}`)).text()
    const [mine, theirs] = [await of(one), await of(other)]
    expect(mine).not.toContain(places[5]?.secret)
    // What it asked another agent is its own words.
    for (const { secret } of places.slice(0, 5)) expect(theirs).not.toContain(secret)
  })

  it('no session can be read, switched to or written to by way of another agent', async () => {
    const { sessions } = (await stage.host.json('GET', `/api/agents/${one}/sessions`)).body
    for (const { session_id: id } of sessions) {
      expect((await stage.host.json('POST', `/api/agents/${other}/sessions/${id}/switch`)).status).toBe(404)
      expect((await stage.post(`/api/agents/${other}/message`, { message: 'mine?', session_id: id })).status).toBe(404)
    }
  })
})
