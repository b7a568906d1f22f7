import { expect, it } from 'vitest'
import { Refusal } from 'svc/sdk'
import type { PluginDatabase } from 'svc/sdk'
import { openTables, startInbox } from './inbox-stage.ts'

// Several daemons on one database.

const states = async (db: PluginDatabase): Promise<readonly unknown[]> =>
  (await db.all<{ state: string }>`SELECT state FROM channels_inbox ORDER BY id`).map(({ state }) => state)

it('a daemon that starts leaves the messages of a living one alone', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  const two = startInbox(db, 'two', answered)
  one.hold()
  await one.receive('first')
  await one.receive('second')
  await two.inbox.resume()
  for (let beats = 0; beats < 6; beats++) {
    await one.beat()
    await two.beat()
    await two.inbox.resume()
  }
  await two.settle()
  expect(answered).toEqual([])
  one.release()
  await one.settle()
  expect(answered).toEqual(['one first', 'one second'])
  expect(await states(db)).toEqual(['done', 'done'])
})

it('the messages of a daemon that died are answered once by another, in their order, after the lease', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  const others = ['two', 'three'].map((home) => startInbox(db, home, answered))
  one.hold()
  for (const id of ['first', 'second']) await one.receive(id)
  for (const other of others) await other.inbox.resume()
  await one.kill()
  for (let beats = 0; beats < 3; beats++) for (const other of others) await other.beat()
  expect(answered).toEqual([])
  for (const other of others) await other.beat()
  expect(answered).toEqual(['two first', 'two second'])
  expect(await states(db)).toEqual(['done', 'done'])
})

it('messages that wait in a row are claimed with the end of the one before, and answered by another after a crash', async () => {
  const db = await openTables()
  const answered: string[] = []
  let claims = 0
  const counted = new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (name !== 'one' && name !== 'run') return typeof value === 'function' ? value.bind(target) : value
      return (sql: TemplateStringsArray, ...values: readonly never[]) => {
        if (sql[0]?.includes("SET state = 'processing'")) claims++
        return db[name](sql, ...values)
      }
    },
  })
  const one = startInbox(counted, 'one', answered)
  one.hold()
  for (const id of ['first', 'second', 'third']) await one.receive(id)
  one.release()
  await one.settle()
  expect(answered).toEqual(['one first', 'one second', 'one third'])
  expect(claims).toBe(0)
  one.hold()
  for (const id of ['fourth', 'fifth']) await one.receive(id)
  await one.kill()
  const two = startInbox(db, 'one', answered)
  await two.inbox.resume()
  await two.settle()
  expect(answered.slice(3)).toEqual(['one fourth', 'one fifth'])
  expect(new Set(await states(db))).toEqual(new Set(['done']))
})

it.each([
  ['when it comes again', true],
  ['although it never comes again', false],
])('a message of which the database did not say that it is stored is answered once, %s', async (_, again) => {
  const db = await openTables()
  const answered: string[] = []
  let isLost = true
  const losing = new Proxy(db, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target)
      if (name !== 'run') return typeof value === 'function' ? value.bind(target) : value
      return async (sql: TemplateStringsArray, ...values: readonly never[]) => {
        const result = await db.run(sql, ...values)
        if (!isLost || !sql[0]?.startsWith('INSERT INTO channels_inbox')) return result
        isLost = false
        throw new Refusal('service_unavailable', 'whether it was written is not known')
      }
    },
  })
  const one = startInbox(losing, 'one', answered)
  await expect(one.receive('first')).rejects.toThrow('not known')
  if (again) await one.receive('first')
  await one.settle()
  expect(answered).toEqual(['one first'])
  expect(await states(db)).toEqual(['done'])
})

it('a daemon that starts again on its home goes on at once', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  one.hold()
  await one.receive('first')
  await one.kill()
  const again = startInbox(db, 'one', answered)
  await again.inbox.resume()
  await again.settle()
  expect(answered).toEqual(['one first'])
})

it('a daemon that ends in order leaves its messages to another at the next beat', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  const two = startInbox(db, 'two', answered)
  one.hold()
  await one.receive('first')
  await two.inbox.resume()
  await one.kill()
  await one.inbox.close()
  await two.beat()
  expect(answered).toEqual(['two first'])
})

it('a daemon that stood still for longer than its lease works on new messages only', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  const two = startInbox(db, 'two', answered)
  one.hold()
  for (const id of ['first', 'second']) await one.receive(id)
  await two.inbox.resume()
  for (let beats = 0; beats < 4; beats++) await two.beat()
  expect(answered).toEqual(['two first', 'two second'])
  await one.beat()
  await one.receive('third')
  one.release()
  await one.settle()
  expect(answered.filter((each) => each.endsWith('second'))).toEqual(['two second'])
  expect(answered.at(-1)).toBe('one third')
  expect(await states(db)).toEqual(['done', 'done', 'done'])
})

it('a message whose attempts were all cut short is put aside, and those behind it are answered', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  one.hold()
  for (const id of ['first', 'second']) await one.receive(id)
  await one.kill()
  await db.run`UPDATE channels_inbox SET attempts = 10 WHERE message_id LIKE 'first%'`
  const again = startInbox(db, 'one', answered)
  await again.inbox.resume()
  await again.settle()
  expect(answered).toEqual(['one second'])
  const rows = await db.all`SELECT state, reason FROM channels_inbox ORDER BY id`
  expect(rows).toMatchObject([
    { state: 'parked', reason: 'the attempts to answer it were not ended' },
    { state: 'done' },
  ])
})

it('a clock that is set back holds up no postponed message, in this process and the next', async () => {
  const db = await openTables()
  const answered: string[] = []
  const one = startInbox(db, 'one', answered)
  one.postpone(1)
  await one.receive('first')
  await one.settle()
  one.clock.jump(-86_400_000)
  // Other messages and the timer have it looked at again.
  await one.receive('second')
  await one.inbox.resume()
  await one.settle()
  expect(answered).toEqual([])
  one.clock.advance(5_000)
  await one.settle()
  expect(answered).toEqual(['one first', 'one second'])

  one.postpone(1)
  await one.receive('third')
  await one.settle()
  await one.kill()
  const again = startInbox(db, 'one', answered)
  again.clock.jump(-2 * 86_400_000)
  await again.inbox.resume()
  await again.settle()
  again.clock.advance(600_000)
  await again.settle()
  expect(answered.at(-1)).toBe('one third')
})

it('a message whose failure could not be written down is answered when the database is back', async () => {
  const db = await openTables()
  let isAway = false
  const orAway =
    <Given extends unknown[], T>(work: (...given: Given) => Promise<T>) =>
    (...given: Given): Promise<T> =>
      isAway ? Promise.reject(new Refusal('service_unavailable', 'The database does not answer')) : work(...given)
  const flaky = new Proxy(db, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      const bound = member.bind(target) as () => Promise<unknown>
      return name === 'run' || name === 'batch' ? orAway(bound) : bound
    },
  })
  const answered: string[] = []
  const one = startInbox(flaky, 'one', answered, async ({ message }) => {
    if (answered.length === 0) isAway = true
    answered.push(message.text)
    return { outcome: 'answered', agentId: '', statements: [] }
  })
  await one.receive('first')
  await one.settle()
  expect(await states(db)).toEqual(['processing'])
  isAway = false
  one.clock.advance(5_000)
  await one.settle()
  expect(await states(db)).toEqual(['done'])
  expect(answered).toEqual(['first', 'first'])
})
