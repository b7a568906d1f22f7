import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { DatabaseLink } from '../../faults/cluster/database-link.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import { openSharedChat } from '../../support/shared-chat.ts'

const LAUNCH = { name: 'launch', args: { label: 'once' } }

/** A daemon whose line to the database breaks. */
async function openStage() {
  const database = await createTestDatabase()
  const link = await DatabaseLink.open(database.host)
  const shared = await openSharedChat({ ...database, url: link.through(database.url) })
  const one = await shared.start('one', { plugins: { approvals: { policy: 'never' } } })
  return {
    ...shared,
    one,
    link,
    ask: async (message: string, headers: Record<string, string> = {}) =>
      one.host.json('POST', `/api/agents/${await one.spawn('digger')}/message`, { message }, headers),
    async [Symbol.asyncDispose]() {
      await shared[Symbol.asyncDispose]()
      await link[Symbol.asyncDispose]()
    },
  }
}

it('a message of which the database did not say whether it is written is answered, once', async () => {
  await using stage = await openStage()
  const lost = stage.link.loseAnswer('a lost answer')
  const answer = await stage.ask('a lost answer')
  await lost
  expect(answer).toMatchObject({ status: 200, body: { response: 'Hello from the fake.' } })
  expect(await stage.database.query('SELECT state FROM journal_turn')).toBe('done')
  expect(stage.fake.requests).toHaveLength(1)
})

it('a turn whose calls are written without a word goes on with them, each made once', async () => {
  await using stage = await openStage()
  stage.fake.script({ calls: [LAUNCH] }, { text: 'It is launched.' })
  const lost = stage.link.loseAnswer('"once"')
  const answer = await stage.ask('launch it')
  await lost
  expect(answer).toMatchObject({ status: 200, body: { response: 'It is launched.' } })
  expect(await readFile(stage.launches, 'utf8')).toBe('once\n')
  expect(stage.fake.requests).toHaveLength(2)
  expect(await stage.database.query('SELECT count(*) FROM usage_record')).toBe('2')
})

it('a turn stands still while the database is away, and goes on when it is back: each answer of the model is paid', async () => {
  await using stage = await openStage()
  const { fake, link, one, database } = stage
  const away = Promise.withResolvers<void>()
  fake.script({ text: sayLater(away.promise), calls: [LAUNCH] }, { calls: [LAUNCH] }, { text: 'It is launched.' })
  const asked = stage.ask('launch it')
  await fake.request(0)
  link.goAway(true)
  away.resolve()
  await eventually(() => expect(one.host.log.join('\n')).toContain('stands still while the database is away'))
  expect(existsSync(stage.launches)).toBe(false)
  link.goAway(false)
  expect(await asked).toMatchObject({ status: 200, body: { response: 'It is launched.' } })
  expect(await readFile(stage.launches, 'utf8')).toBe('once\n')
  expect(await database.query('SELECT state FROM journal_turn')).toBe('done')
  expect(await database.query('SELECT count(*) FROM usage_record')).toBe('3')
})

it('an answer that was not in the required form is paid once, whether or not the database had its cost', async () => {
  await using stage = await openStage()
  const { fake, link, one, database } = stage
  const format = { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } }
  for (const [round, lose] of [link.loseAnswer, link.loseStatements].entries()) {
    fake.script({ text: 'no JSON' })
    fake.always({ text: '{"a":1}' })
    const agent = await one.spawn(`formal-${round}`)
    const lost = lose.call(link, 'fake-1')
    const body = { message: 'say it', response_format: format }
    const answer = await one.host.json('POST', `/api/agents/${agent}/message`, body)
    await lost
    expect(answer).toMatchObject({ status: 200, body: { response: '{"a":1}' } })
    const paid = await database.query(`SELECT count(*) FROM usage_record WHERE agent_id = '${agent}'`)
    expect(paid).toBe('2')
  }
})

async function* sayLater(moment: Promise<void>): AsyncGenerator<string> {
  yield 'I launch'
  await moment
  yield ' it.'
}
