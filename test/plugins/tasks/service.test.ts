import { beforeAll, describe, expect, it } from 'vitest'
import type { Statement } from 'svc/sdk'
import type { Agents } from '../../../plugins/agents/contract.ts'
import { Limits } from '../../../plugins/tasks/config.ts'
import type { TaskEvent } from '../../../plugins/tasks/contract.ts'
import { migrations } from '../../../plugins/tasks/migrations.ts'
import { TaskService } from '../../../plugins/tasks/service.ts'
import { TaskStore } from '../../../plugins/tasks/store.ts'
import type { Database } from '../../../core/storage/database.ts'
import { parse } from '../../../core/schema/parse.ts'
import { engines, open, pglite } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const ids: Readonly<Record<string, string>> = { two: '22222222-2222-4222-8222-222222222222' }
const agents = {
  find: async () => undefined,
  findByName: async (name: string) => (ids[name] === undefined ? undefined : { id: ids[name], name }),
  list: async () => [],
} as unknown as Agents

/** One daemon of those on a database. */
function startService(database: Database, clock: ManualClock, limits: Record<string, unknown> = {}) {
  const events: string[] = []
  // What stands for the audit trail: a row that exists exactly when the change does.
  const entry = ({ details }: { details: string }): Statement =>
    database.sql.sql`INSERT INTO tasks_trail (details) VALUES (${details})`
  const service = new TaskService({
    store: new TaskStore(database.sql),
    agents,
    audit: { entry, write: async () => {}, entries: async () => [] },
    limits: parse(Limits, limits),
    clock,
    notify: (name, { eventId }: TaskEvent) => events.push(`${name} ${eventId}`),
  })
  return { service, events }
}
async function start(engine: EngineName, limits?: Record<string, unknown>) {
  const { database } = await open(engine)
  await database.migrate('tasks', [...migrations, { id: 'trail', sql: 'CREATE TABLE tasks_trail (details TEXT)' }])
  const clock = new ManualClock()
  const trail = async (): Promise<number> => (await database.sql.all`SELECT * FROM tasks_trail`).length
  return { database, clock, trail, ...startService(database, clock, limits) }
}

describe.each(engines)('the tasks on %s', (engine) => {
  beforeAll(async () => {
    if (engine === 'pglite') await pglite()
  }, 120_000)

  it('go to one agent each, the oldest first, also with two daemons on one database', async () => {
    const { database, clock, service, events, trail } = await start(engine)
    const other = startService(database, clock)
    const posted: string[] = []
    for (let n = 0; n < 6; n++) {
      posted.push((await service.post({ title: `task ${n}` })).id)
      clock.advance(1)
    }
    const { id: reserved } = await service.post({ title: 'for two', assignedTo: 'two' })
    const claims = await Promise.all(
      Array.from({ length: 10 }, (_, n) => (n % 2 === 0 ? service : other.service).claim(`agent ${n}`)),
    )
    const taken = claims.flatMap((task) => (task ? [task] : []))
    expect(taken.map(({ id }) => id).toSorted()).toEqual(posted.toSorted())
    expect(new Set(taken.map(({ claimed_by }) => claimed_by)).size).toBe(6)
    expect(await service.claim(ids['two'] ?? '')).toMatchObject({ id: reserved, attempts: 1 })
    // Whoever lost a race left neither an event nor an entry.
    const claimed = [...events, ...other.events].filter((event) => event.startsWith('claimed'))
    expect(claimed.toSorted()).toEqual([...posted, reserved].map((id) => `claimed ${id}:1`).toSorted())
    expect(await trail()).toBe(14)
  })

  it('are open again when their time is over, and fail at last', async () => {
    const { service, clock, events } = await start(engine, { claim_ttl_secs: 60, max_attempts: 2, retention_days: 1 })
    const { id } = await service.post({ title: 'slow' })
    await service.claim('one')
    clock.advance(59_999)
    await service.sweep()
    expect(await service.require(id)).toMatchObject({ status: 'in_progress' })
    clock.advance(1)
    expect(await service.claim('two')).toMatchObject({ id, claimed_by: 'two' })
    await expect(service.complete(id, 'one', 'late')).rejects.toThrow('Another agent')
    clock.advance(60_000)
    await service.sweep()
    expect(await service.require(id)).toMatchObject({ status: 'failed', attempts: 2, lease_until: null })
    clock.advance(86_400_001)
    await service.sweep()
    expect(await service.find(id)).toBeUndefined()
    expect(events.map((event) => event.replace(id, 'it'))).toEqual([
      'posted it:0',
      'claimed it:1',
      'changed it:2',
      'claimed it:3',
      'changed it:4',
    ])
  })

  it('are refused beyond their limits, also at the same time, and what is refused leaves nothing', async () => {
    const limits = { max_open: 4, max_open_per_agent: 2, max_claimed_per_agent: 1, max_text_chars: 256 }
    const { service, trail } = await start(engine, limits)
    const post = (agentId?: string) => service.post({ title: 'x', agentId }).catch((error: Error) => error.message)
    const first = await Promise.all(Array.from({ length: 5 }, () => post('one')))
    const refused = first.filter((answer) => typeof answer === 'string')
    expect(refused).toHaveLength(3)
    expect(refused[0]).toContain('plugins.tasks.max_open_per_agent')
    await post()
    await post('two')
    expect(await post()).toContain('plugins.tasks.max_open allows')
    expect(await trail()).toBe(4)
    await expect(service.post({ title: 'x', description: 'a'.repeat(257) })).rejects.toThrow('max_text_chars')
    const claims = await Promise.allSettled([service.claim('one'), service.claim('one')])
    expect(claims.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected'])
  })

  it('are posted once by their id, and completed once', async () => {
    const { service, events } = await start(engine)
    const id = '11111111-1111-4111-8111-111111111111'
    await Promise.all([1, 2, 3].map(() => service.post({ id, title: 'once' })))
    await service.claim('one')
    const ends = await Promise.allSettled([1, 2, 3].map((n) => service.complete(id, 'one', `result ${n}`)))
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(events).toEqual([`posted ${id}:0`, `claimed ${id}:1`, `completed ${id}:2`])
  })
})
