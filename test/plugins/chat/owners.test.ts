import { createHmac } from 'node:crypto'
import { EventSourceParserStream } from 'eventsource-parser/stream'
import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { DatabaseLink } from '../../faults/cluster/database-link.ts'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { createTestDatabase, startPostgres } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { openSharedChat } from '../../support/shared-chat.ts'
import type { SharedChat, SharedStage } from '../../support/shared-chat.ts'

it('a message at another daemon is answered by the owner of its session, and its client gets the stream', async () => {
  await using shared = await openSharedChat()
  const { fake, database } = shared
  const one = await shared.start('one')
  const two = await shared.start('two')
  fake.script({ text: 'It began', fault: 'stall' }, { text: ['A second', ' answer.'] })
  const first = one.post(`/api/agents/${one.agent}/message/stream`, { message: 'one' })
  await fake.request(0)
  const owner = await database.query('SELECT owner FROM chat_session_owner')
  const second = await two.post(`/api/agents/${one.agent}/message/stream`, { message: 'two' })
  expect(await database.query('SELECT state, owner FROM journal_turn ORDER BY id')).toBe(
    `running|${owner}\nqueued|${owner}`,
  )
  // The running turn is stopped where it does not run.
  expect(await (await two.post(`/api/agents/${one.agent}/stop`)).json()).toMatchObject({
    message: 'Agent run cancelled',
  })
  expect(await (await first).text()).toContain('"stop":"cancelled"')
  const answer = await second.text()
  expect(answer).toContain('"A second')
  expect(answer).toContain('"stop":"done"')
  expect(fake.requests).toHaveLength(2)
  const texts = (await two.session()).messages.map(({ content }) => content)
  expect(texts).toEqual(['one', 'It began', 'two', 'A second answer.'])
  // What nothing happens in is given up.
  for (let looks = 0; looks < 3; looks++) for (const { timer } of [one, two]) await timer.advance(5_000)
  expect(await database.query('SELECT count(*) FROM chat_session_owner')).toBe('0')
  expect(await database.query('SELECT count(*) FROM chat_relayed_turn')).toBe('0')
})

it('a daemon that lacks a plugin which another one has keeps no session, and takes none', async () => {
  await using shared = await openSharedChat()
  const { database } = shared
  // Alone it does what it can.
  const lacking = await shared.start('lacking', { plugins: { files: { path: '/nowhere/mounted' } } })
  const say = async (at: SharedStage): Promise<string> => {
    expect((await at.host.json('POST', `/api/agents/${at.agent}/message`, { message: 'hello' })).status).toBe(200)
    return database.query('SELECT owner FROM chat_session_owner')
  }
  const members = `SELECT id, lacks IS NULL FROM cluster_member ORDER BY started_at`
  expect(await say(lacking)).toBe((await database.query(members)).split('|')[0])
  const whole = await shared.start('whole')
  await eventually(async () => {
    // What a message of the other one makes due is done with the next beat.
    await lacking.timer.advance(5_000)
    expect(await database.query('SELECT count(*) FROM chat_session_owner')).toBe('0')
  })
  const [, other = ''] = (await database.query(members)).split('\n')
  expect(other).toMatch(/\|t$/)
  expect([await say(lacking), await say(whole)]).toEqual([other.split('|')[0], other.split('|')[0]])
  expect((await lacking.host.json('GET', '/api/ready')).body.error.message).toBe('This daemon is impaired (plugins)')
  // What the other one leaves is taken over here again, since nobody has more.
  await whole.host.stop()
  await eventually(async () => {
    await lacking.timer.advance(5_000)
    expect((await lacking.host.json('GET', '/api/ready')).status).toBe(200)
  })
  expect(await say(lacking)).not.toBe(other.split('|')[0])
})

it('messages at two daemons are answered in one order, each once', async () => {
  await using shared = await openSharedChat()
  const { fake, database } = shared
  const one = await shared.start('one')
  const two = await shared.start('two')
  const count = 12
  const answers = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const { status, body } = await (at % 2 ? one : two).host.json('POST', `/api/agents/${one.agent}/message`, {
        message: `message ${at}`,
      })
      return { status, text: body.response as string }
    }),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: count }, () => 200))
  expect(fake.requests).toHaveLength(count)
  // Each request holds all questions up to its own, answered, and none that comes later.
  const asked = fake.requests.map(({ body }) =>
    (body.messages ?? []).filter(({ role }) => role === 'user').map(({ content }) => String(content)),
  )
  const order = asked.at(-1) ?? []
  expect(order.toSorted()).toEqual(Array.from({ length: count }, (_, at) => `message ${at}`).toSorted())
  asked.forEach((questions, at) => expect(questions).toEqual(order.slice(0, at + 1)))
  const shown = (await two.session()).messages
  expect(shown.map(({ role }) => role)).toEqual(
    Array.from({ length: 2 * count }, (_, at) => (at % 2 ? 'Assistant' : 'User')),
  )
  expect(shown.filter((_, at) => at % 2 === 0).map(({ content }) => content)).toEqual(order)
  expect(await database.query(`SELECT DISTINCT state FROM journal_turn`)).toBe('done')
})

it('a message with one key at two daemons is one turn', async () => {
  await using shared = await openSharedChat()
  const { fake, database } = shared
  const one = await shared.start('one')
  const two = await shared.start('two')
  for (let round = 0; round < 3; round++) {
    const send = ({ host }: SharedStage) =>
      host.json(
        'POST',
        `/api/agents/${one.agent}/message`,
        { message: `round ${round}` },
        { 'idempotency-key': `key-${round}` },
      )
    const answers = await Promise.all([one, two, one, two].map(send))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect(new Set(answers.map(({ body }) => body.turn_id)).size).toBe(1)
  }
  expect(fake.requests).toHaveLength(3)
  expect(await database.query('SELECT count(*) FROM journal_turn')).toBe('3')
})

it('a message that is repeated where its session is, before that daemon has heard of it, is the same turn', async () => {
  const database = await createTestDatabase()
  await using link = await DatabaseLink.open(database.host)
  await using shared = await openSharedChat(database)
  const { fake } = shared
  const token = 'a-token-of-more-than-thirty-two-characters'
  const webhooks = { webhook_triggers: { enabled: true, token } }
  const one = await shared.start('one', { ...webhooks, database_url: link.through(database.url) })
  const two = await shared.start('two', webhooks)
  await one.host.json('POST', `/api/agents/${one.agent}/message`, { message: 'the session is here' })
  const body = { message: 'again' }
  const seconds = Math.floor(Date.now() / 1000)
  const code = createHmac('sha256', token)
    .update(`an-id.${seconds}.${JSON.stringify(body)}`)
    .digest('base64')
  const send = ({ host }: SharedStage) =>
    host.json('POST', '/api/hooks/agent', body, {
      'webhook-id': 'an-id',
      'webhook-timestamp': String(seconds),
      'webhook-signature': `v1,${code}`,
    })
  link.deafen()
  const first = send(two)
  await eventually(async () => expect(await database.query('SELECT count(*) FROM chat_relayed_turn')).toBe('1'))
  const second = await send(one)
  link.release()
  expect([second.status, second.body.response]).toEqual([200, 'Hello from the fake.'])
  expect((await first).body.turn_id).toBe(second.body.turn_id)
  expect(fake.requests).toHaveLength(2)
})

/** The first daemon stands still until the others declare it dead. */
async function declareDead(alive: SharedStage, database: TestDatabase): Promise<void> {
  await expect
    .poll(
      async () => {
        await alive.timer.advance(5_000)
        return database.query('SELECT count(*) FROM cluster_member')
      },
      // Time for what each step sets off: the clock must not run away from a turn that goes on meanwhile.
      { interval: 200 },
    )
    .toBe('1')
}

it('a turn of a dead daemon is interrupted, whoever follows it is told, and the daemon writes nothing when it wakes up', async () => {
  await using shared = await openSharedChat()
  const { fake, database } = shared
  const one = await shared.start('one')
  const two = await shared.start('two')
  const wakeUp = Promise.withResolvers<void>()
  fake.script({ text: lateWords(wakeUp.promise) })
  const first = one.post(`/api/agents/${one.agent}/message/stream`, { message: 'one' })
  await fake.request(0)
  const session = await database.query('SELECT session_id FROM chat_session_owner')
  const feed = readFeed(await two.host.fetch(`/api/sessions/${session}/stream`))
  expect((await feed.next('snapshot')).turns).toHaveLength(1)
  expect(await feed.next('chunk')).toMatchObject({ content: 'It began' })

  await declareDead(two, database)
  const error = await feed.next('error')
  expect(error.error.message).toContain('The service stopped before this was answered')
  const second = await two.host.json('POST', `/api/agents/${one.agent}/message`, { message: 'two' })
  expect(second.body.response).toBe('Hello from the fake.')

  wakeUp.resolve()
  expect(await (await first).text()).toContain('another one has taken the session over')
  expect((await two.session()).messages.map(({ content }) => content)).toEqual([
    'one',
    '[Interrupted: the service stopped before this was answered.]',
    'two',
    'Hello from the fake.',
  ])
  expect(await database.query('SELECT state FROM journal_turn ORDER BY created_at')).toBe('interrupted\ndone')
  await feed.close()
})

it('a turn that may resume goes on at another daemon, once, as does a message that was relayed to the dead one', async () => {
  await using shared = await openSharedChat()
  const { fake, database } = shared
  const one = await shared.start('one')
  const two = await shared.start('two')
  fake.script({ text: 'It began', fault: 'stall' }, { text: 'I went on.' }, { text: 'The relayed one.' })
  const first = one.post(`/api/agents/${one.agent}/message/stream`, { message: 'one' })
  await fake.request(0)
  const second = two.post(`/api/agents/${one.agent}/message`, { message: 'two' })
  const states = () => database.query('SELECT state FROM journal_turn ORDER BY created_at')
  await expect.poll(states).toBe('running\nqueued')
  // As a turn of a channel, which no client waits for.
  await database.query(`UPDATE journal_turn SET on_crash = 'resume' WHERE state = 'running'`)
  const session = await database.query('SELECT session_id FROM chat_session_owner')
  const feed = readFeed(await two.host.fetch(`/api/sessions/${session}/stream`))
  expect((await feed.next('snapshot')).turns).toHaveLength(2)

  await declareDead(two, database)
  expect((await feed.next('done')).stop).toBe('done')
  expect(await (await second).json()).toMatchObject({ response: 'The relayed one.' })
  expect(await states()).toBe('done\ndone')
  expect(fake.requests).toHaveLength(3)
  expect((await two.session()).messages.map(({ content }) => content)).toEqual([
    'one',
    'I went on.',
    'two',
    'The relayed one.',
  ])
  await feed.close()
  await (await first).body?.cancel()
})

it('a step of a workflow gets the answer of its turn that another daemon took over', async () => {
  await using shared = await openSharedChat()
  const { fake, database } = shared
  const one = await shared.start('one')
  const two = await shared.start('two')
  const wakeUp = Promise.withResolvers<void>()
  fake.script({ text: lateWords(wakeUp.promise) }, { text: 'I went on.' })
  const steps = [{ name: 'ask', agent_id: one.agent, prompt: 'one' }]
  const { workflow_id: id } = (await one.host.json('POST', '/api/workflows', { name: 'asks', steps })).body
  const { run_id: run } = (await one.host.json('POST', `/api/workflows/${id}/run?wait=false`, { input: '' })).body
  await fake.request(0)
  await declareDead(two, database)
  await expect.poll(() => database.query("SELECT state || coalesce(error, '') FROM journal_turn")).toBe('done')

  wakeUp.resolve()
  const end = async (): Promise<Json> => (await two.host.json('GET', `/api/workflows/runs/${run}`)).body
  await expect.poll(async () => (await end()).state).not.toBe('Running')
  expect(await end()).toMatchObject({ error: null, state: 'Completed', output: 'I went on.' })
  expect(fake.requests).toHaveLength(2)
})

it('the end of a turn is written when the server of the database is back', async () => {
  await using server = await startPostgres()
  await using shared = await openSharedChat(await server.createDatabase())
  const { fake, database } = shared
  const one = await shared.start('one')
  const words = Promise.withResolvers<void>()
  fake.script({ text: lateWords(words.promise) })
  const asked = one.post(`/api/agents/${one.agent}/message`, { message: 'one' })
  await fake.request(0)
  await server.stop('fast')
  words.resolve()
  await eventually(() => expect(one.host.log.join('\n')).toContain('cannot be written yet; that is tried again'))
  await server.start()
  expect(await (await asked).json()).toMatchObject({ response: 'It began and ended.' })
  expect(await database.query("SELECT state || coalesce(error, '') FROM journal_turn")).toBe('done')
  one.host.defects()
})

describe('a turn that waits for a person', () => {
  async function waitingTurn(shared: SharedChat) {
    const { fake, database } = shared
    const one = await shared.start('one')
    const agent = await one.spawn('digger')
    const two = await shared.start('two')
    fake.script({ calls: [{ name: 'launch', args: { label: 'once' } }] }, { text: 'It is launched.' })
    const asked = two.post(`/api/agents/${agent}/message`, { message: 'launch it' })
    const state = () => database.query('SELECT state FROM journal_turn')
    await expect.poll(state).toBe('waiting')
    const find = () => database.query('SELECT id FROM approvals_request')
    await expect.poll(find).not.toBe('')
    const approval = await find()
    return { one, two, agent, asked, approval, state }
  }

  it('goes on where it runs when the answer comes at another daemon', async () => {
    await using shared = await openSharedChat()
    const { one, asked, approval } = await waitingTurn(shared)
    expect((await one.host.json('POST', `/api/approvals/${approval}/approve`)).status).toBe(200)
    expect(await (await asked).json()).toMatchObject({ response: 'It is launched.' })
    expect(await readFile(shared.launches, 'utf8')).toBe('once\n')
  })

  it('waits on at another daemon when its own one stops', async () => {
    await using shared = await openSharedChat()
    const { one, two, asked, approval, state } = await waitingTurn(shared)
    await two.host.stop()
    expect((await asked).status).toBe(503)
    const owner = await shared.database.query('SELECT id FROM cluster_member')
    await expect.poll(() => shared.database.query('SELECT owner FROM journal_turn')).toBe(owner)
    expect((await one.host.json('POST', `/api/approvals/${approval}/approve`)).status).toBe(200)
    await expect.poll(state).toBe('done')
    expect(await readFile(shared.launches, 'utf8')).toBe('once\n')
  })
})

async function* lateWords(moment: Promise<void>): AsyncGenerator<string> {
  yield 'It began'
  await moment
  yield ' and ended.'
}

function readFeed(response: Response) {
  const events = (response.body ?? new ReadableStream())
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream())
  const reader = events.getReader()
  return {
    async next(wanted: string): Promise<Json> {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) throw new Error(`the stream ended before ${wanted}`)
        if (value.event === wanted) return JSON.parse(value.data)
      }
    },
    close: () => reader.cancel(),
  }
}
