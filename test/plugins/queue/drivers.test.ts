import { expect, it } from 'vitest'
import type { NewJob } from '../../../plugins/queue/contract.ts'
import { eventually } from '../../support/eventually.ts'
import { done, job, rejectOnAbort, Stage } from './stage.ts'

const HOUR_MS = 3_600_000

it('is pg-boss on PostgreSQL unless the file says otherwise, and says what it needs elsewhere', async () => {
  const postgres = await Stage.open('pg-boss')
  expect((await postgres.start({ settings: { driver: 'auto' } })).driver.constructor.name).toBe('PgBossDriver')
  expect((await postgres.start({ settings: { driver: 'embedded' } })).driver.constructor.name).toBe('EmbeddedDriver')
  const sqlite = await Stage.open('embedded on sqlite')
  expect((await sqlite.start({ settings: { driver: 'auto' } })).driver.constructor.name).toBe('EmbeddedDriver')
  await expect(sqlite.start({ settings: { driver: 'pg-boss' } })).rejects.toThrow(
    'plugins.queue.driver is "pg-boss", which needs PostgreSQL',
  )
})

it('opens as many connections as it may, whatever it has to do at once', async () => {
  const stage = await Stage.open('pg-boss')
  const one = await stage.start({ settings: { connections: 1, default_concurrency: 20 } })
  for (const lane of ['work', 'a', 'b', 'c']) one.queue.work(lane, { run: done })
  for (let n = 0; n < 20; n++) await one.add(job(`${n}`))
  one.begin()
  await eventually(async () => expect(await one.queue.list('work', 'done', 100, 0)).toHaveLength(20))
  const rows = await stage.database.sql.all`SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'svc-queue'`
  expect(rows).toHaveLength(1)
})

it('a job is lost by the lease of the daemon that has it, however short that of the one that added it', async () => {
  const stage = await Stage.open('pg-boss')
  const hasty = await stage.start({ settings: { lease_secs: 10 } })
  await hasty.add(job('long'))
  const patient = await stage.start({ settings: { lease_secs: 60 } })
  patient.queue.work('work', { run: rejectOnAbort })
  patient.begin()
  await eventually(async () => {
    const rows = await stage.database.sql.all`SELECT state, heartbeat_seconds FROM queue_pgboss.job`
    expect(rows).toEqual([{ state: 'active', heartbeat_seconds: 60 }])
  })
})

it('a job that cannot be read stops no other, and stays where it is', async () => {
  const stage = await Stage.open('pg-boss')
  const one = await stage.start()
  await one.add(job('bad'))
  await stage.database.sql.run`UPDATE queue_pgboss.job SET data = '{"id": "bad"}'`
  await one.add(job('good'))
  one.queue.work('work', { run: done })
  one.begin()
  await eventually(async () => expect(await one.state('good')).toBe('done'))
  expect(await one.queue.list('work', 'running', 10, 0)).toEqual([])
  const [left] = await stage.database.sql.all<{ state: string }>`SELECT state FROM queue_pgboss.job
    WHERE data->>'id' = 'bad'`
  expect(left?.state).toBe('active')
})

it('makes its schema once when daemons start at the same moment', async () => {
  const stage = await Stage.open('pg-boss')
  const daemons = await Promise.all(['one', 'two', 'three'].map((owner) => stage.start({ owner })))
  for (const { queue, begin } of daemons) {
    queue.work('work', { run: done })
    begin()
  }
  await daemons[0]?.add(job('a'))
  await eventually(async () => expect(await daemons[1]?.state('a')).toBe('done'))
})

it.each([
  ['embedded', 'pg-boss'],
  ['pg-boss', 'embedded'],
])('carries the jobs over from %s to %s, once', async (before, after) => {
  const stage = await Stage.open(before === 'pg-boss' ? 'pg-boss' : 'embedded on postgresql')
  stage.clock.jump(Date.now() - stage.clock.now())
  const old = await stage.start({ settings: { driver: before, max_failures: 1, lease_secs: 60 } })
  old.queue.work('work', {
    run(given) {
      if (given.id === 'hangs') return rejectOnAbort(given)
      return given.id === 'dead' ? Promise.reject(new Error('broken')) : done()
    },
  })
  old.begin()
  for (const id of ['done', 'dead', 'hangs']) await old.add(job(id))
  await eventually(async () => {
    expect([await old.state('done'), await old.state('dead'), await old.state('hangs')]).toEqual([
      'done',
      'dead',
      'running',
    ])
  })
  const later: Partial<NewJob> = { dueAt: Date.now() + 24 * HOUR_MS, group: 'g', agentId: 'x', payload: [1] }
  await old.add(job('later', later))
  await old.add(job('cancelled', later))
  await old.queue.cancel('work', 'cancelled')
  const kept = ['done', 'dead', 'later', 'cancelled']
  const rows = await Promise.all(kept.map((id) => old.queue.find('work', id)))
  await old.crash()

  const owner = 'another home'
  const next = await stage.start({ owner, settings: { driver: after, lease_secs: 60 } })
  const ran: unknown[] = []
  next.queue.work('work', {
    run({ id, payload, losses }) {
      ran.push([id, payload, losses])
      return done()
    },
  })
  next.begin()
  await eventually(async () => expect(await next.state('later')).toBe('pending'))
  for (const [index, id] of kept.entries()) {
    const { settledAt, error, ...row } = rows[index] ?? {}
    expect(await next.queue.find('work', id)).toMatchObject(row)
    expect((await next.queue.find('work', id))?.error).toBe(error)
    expect((await next.queue.find('work', id))?.settledAt === undefined).toBe(settledAt === undefined)
  }
  // What was done is not done again, and what the other one still works on is left to it.
  await next.add(job('done'))
  expect(await next.state('hangs')).toBeUndefined()
  await stage.age(120_000)
  await eventually(async () => {
    stage.clock.advance(20_000)
    expect(await next.state('hangs')).toBe('done')
  })
  await next.queue.hurry('work', 'later')
  await eventually(async () => expect(await next.state('later')).toBe('done'))
  expect(ran).toEqual([
    ['hangs', { n: 'hangs' }, 1],
    ['later', [1], 0],
  ])
})

it.each(['embedded on sqlite', 'pg-boss'] as const)('%s: says which home runs how many jobs', async (name) => {
  const stage = await Stage.open(name)
  const one = await stage.start({ owner: 'one' })
  one.queue.work('work', { run: rejectOnAbort })
  one.begin()
  for (const id of ['a', 'b']) await one.add(job(id))
  await eventually(async () => expect(await one.queue.list('work', 'running', 10, 0)).toHaveLength(2))
  await one.queue.renew()
  expect(await one.queue.owned()).toEqual([{ owner: 'one', what: 'jobs', count: 2 }])
  await one.queue.pause(true)
  await one.add(job('c'))
  await one.queue.cancel('work', 'a')
  await eventually(async () => expect(await one.queue.owned()).toEqual([{ owner: 'one', what: 'jobs', count: 1 }]))
  expect(await one.state('c')).toBe('pending')
  await one.queue.pause(false)
  await eventually(async () => expect(await one.state('c')).toBe('running'))
})
