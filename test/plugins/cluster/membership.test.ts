import { createConsola } from 'consola'
import postgresqlConnector from 'db0/connectors/postgresql'
import { Refusal } from 'svc/sdk'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import type { PluginDatabase } from '../../../core/storage/database.ts'
import type { Member } from '../../../plugins/cluster/contract.ts'
import { Membership } from '../../../plugins/cluster/membership.ts'
import { migrations } from '../../../plugins/cluster/migrations.ts'
import { MemberStore } from '../../../plugins/cluster/store.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'

const log = createConsola({ level: 0 })
const LEASE_MS = 15_000

interface Daemon {
  readonly membership: Membership
  readonly store: MemberStore
  readonly db: PluginDatabase
  /** Of the others that ended, in the order in which this one was told. */
  readonly ended: string[]
  /** What it was told of its own death: the twin's id, if there is one. */
  readonly died: (string | undefined)[]
  /** What was asked of it. */
  readonly states: string[]
}

async function stage() {
  const database = await createTestDatabase()
  const { url } = database
  onTestFinished(() => database[Symbol.asyncDispose]())
  const setUp = await openDatabase({ url, log })
  await setUp.migrate('cluster', migrations)
  await setUp.sql.batch([
    setUp.sql.sql`CREATE TABLE work (what TEXT PRIMARY KEY)`,
    setUp.sql.sql`CREATE TABLE record (details TEXT)`,
  ])
  onTestFinished(() => setUp[Symbol.asyncDispose]())
  return {
    url,
    sql: setUp.sql,
    records: async () =>
      (await setUp.sql.all<{ details: string }>`SELECT details FROM record ORDER BY details`).map((row) => row.details),
    work: async () => (await setUp.sql.all<{ what: string }>`SELECT what FROM work`).map(({ what }) => what),
    /** A daemon with connections of its own. It beats when it is told to. */
    async daemon(id: string, { homeId = `home of ${id}`, leaseMs = LEASE_MS } = {}): Promise<Daemon> {
      const { sql: db, [Symbol.asyncDispose]: close } = await openDatabase({ url, log })
      onTestFinished(() => close())
      const ended: string[] = []
      const died: (string | undefined)[] = []
      const states: string[] = []
      const self: Member = {
        id,
        homeId,
        name: id,
        hostName: 'host',
        address: undefined,
        version: '1',
        startedAt: `2026-01-01T00:00:00.00${id.length}Z`,
        state: 'active',
      }
      const store = new MemberStore(db, log)
      const membership = new Membership({
        store,
        audit: { entry: ({ details }) => db.sql`INSERT INTO record (details) VALUES (${details})` },
        tellChange: () => [],
        self,
        leaseMs,
        log,
        onRead: () => undefined,
        onEnded: (member) => ended.push(member.id),
        onState: (state) => states.push(state),
        now: () => 0,
        onDead: (twin) => died.push(twin?.id),
      })
      await membership.join()
      return { membership, store, db, ended, died, states }
    },
  }
}

const beat = async (times: number, ...daemons: readonly Daemon[]): Promise<void> => {
  for (let at = 0; at < times; at++) for (const { membership } of daemons) await membership.beat()
}
const act = ({ db, membership }: Daemon, what: string): Promise<unknown> =>
  db.batch([...membership.fence(), db.sql`INSERT INTO work (what) VALUES (${what})`])

describe('the daemons on a database', () => {
  it('know each other as long as they beat', async () => {
    const on = await stage()
    const [one, other] = [await on.daemon('a'), await on.daemon('bb')]
    await beat(8, one, other)
    expect((await one.membership.members()).map(({ id }) => id)).toEqual(['a', 'bb'])
    expect([one.membership.isAlive('bb'), other.membership.isAlive('a'), one.membership.isAlive('a')]).toEqual([
      true,
      true,
      true,
    ])
    expect(one.membership.isAlive('never seen')).toBe(false)
    expect([one.ended, other.ended, one.died, other.died]).toEqual([[], [], [], []])
  })

  it('declare one dead that stands still for a lease, once, and each is told', async () => {
    const on = await stage()
    const [one, other, third] = [await on.daemon('a'), await on.daemon('bb'), await on.daemon('ccc')]
    await beat(2, one, other, third)
    // At least two thirds of a lease...
    await beat(2, one, other)
    expect(one.ended).toEqual([])
    // ...and a lease at most.
    await beat(1, one, other)
    expect([one.ended, other.ended]).toEqual([['ccc'], ['ccc']])
    expect(one.membership.isAlive('ccc')).toBe(false)
    expect(one.membership.declaredDead + other.membership.declaredDead).toBe(1)
    expect((await on.records()).filter((details) => details.includes('declared dead'))).toHaveLength(1)
  })

  it('count from anew after a beat that failed: the others may have waited for the database too', async () => {
    const on = await stage()
    const [one, other] = [await on.daemon('a'), await on.daemon('bb')]
    await beat(2, one, other)
    await beat(1, one)
    vi.spyOn(one.store, 'beat').mockRejectedValueOnce(new Refusal('service_unavailable', 'The database is away'))
    await beat(3, one)
    expect(one.ended).toEqual([])
    await beat(1, one)
    expect(one.ended).toEqual(['bb'])
  })

  it('keep one with a longer lease for as long as that', async () => {
    const on = await stage()
    const [one, slow] = [await on.daemon('a'), await on.daemon('bb', { leaseMs: LEASE_MS * 4 })]
    for (let round = 0; round < 3; round++) {
      await beat(4, one)
      await beat(1, slow)
    }
    expect(one.ended).toEqual([])
    await beat(13, one)
    expect(one.ended).toEqual(['bb'])
  })

  it('declare one dead whose row has a lease that no configuration allows', async () => {
    const on = await stage()
    const one = await on.daemon('a', { leaseMs: 1_800_000 })
    await on.daemon('bb', { leaseMs: Number.MAX_SAFE_INTEGER })
    await beat(7, one)
    expect(one.ended).toEqual(['bb'])
  })

  it('go on beside one in a state that they do not know, and declare it dead', async () => {
    const on = await stage()
    const [one, other, third] = [await on.daemon('a'), await on.daemon('bb'), await on.daemon('ccc')]
    await on.sql.run`UPDATE cluster_member SET state = 'resting' WHERE id <> 'a'`
    await beat(8, one, other)
    expect(one.ended).toEqual(['ccc'])
    expect(await one.membership.members()).toMatchObject([{ state: 'active' }, { id: 'bb', state: 'unknown' }])
    expect([other.states, other.membership.isDraining, third.died]).toEqual([[], false, []])
    await on.daemon('dddd')
    await beat(4, one)
    expect(one.ended).toEqual(['ccc', 'bb', 'dddd'])
  })

  it('are told of one that leaves', async () => {
    const on = await stage()
    const [one, other] = [await on.daemon('a'), await on.daemon('bb')]
    await one.membership.refresh()
    await other.membership.leave()
    await one.membership.refresh()
    expect(one.ended).toEqual(['bb'])
    expect(await on.records()).toContain('daemon "bb" (bb, svc 1) left')
  })

  it('are drained at any of them', async () => {
    const on = await stage()
    const [one, other] = [await on.daemon('a'), await on.daemon('bb')]
    await one.membership.setState('bb', 'draining')
    await other.membership.refresh()
    expect([one.membership.isDraining, other.membership.isDraining, other.states]).toEqual([false, true, ['draining']])
    expect(await one.membership.members()).toMatchObject([{ state: 'active' }, { state: 'draining' }])
    await other.membership.setState('bb', 'active')
    await one.membership.setState('bb', 'stopping')
    await other.membership.refresh()
    expect(other.states).toEqual(['draining', 'active', 'stopping'])
    await expect(one.membership.setState('nobody', 'draining')).rejects.toMatchObject({ code: 'not_found' })
  })

  it('give way to a later run on the same home', async () => {
    const on = await stage()
    const [one, killed] = [await on.daemon('a'), await on.daemon('bb', { homeId: 'h' })]
    await one.membership.refresh()
    const next = await on.daemon('ccc', { homeId: 'h' })
    await one.membership.refresh()
    expect(one.ended).toEqual(['bb'])
    expect((await one.membership.members()).map(({ id }) => id)).toEqual(['a', 'ccc'])
    expect(next.ended).toEqual([])
    await killed.membership.beat()
    expect(killed.died).toEqual(['ccc'])
  })
})

describe('one that was declared dead', () => {
  it('writes nothing more, and finds it out with its next beat', async () => {
    const on = await stage()
    const [one, paused] = [await on.daemon('a'), await on.daemon('bb')]
    await act(paused, 'before')
    await beat(4, one)
    expect(one.ended).toEqual(['bb'])
    await expect(act(paused, 'after')).rejects.toMatchObject({ code: 'service_unavailable' })
    await act(one, 'mine')
    expect(await on.work()).toEqual(['before', 'mine'])
    await paused.membership.beat()
    await paused.membership.beat()
    expect(paused.died).toEqual([undefined])
    expect(paused.membership.isAlive('bb')).toBe(false)
    // What it sees of the others is old: it takes nothing over.
    expect(paused.ended).toEqual([])
    await paused.membership.leave()
    expect((await on.records()).some((details) => details.endsWith(' left'))).toBe(false)
  })

  it('declares nobody dead', async () => {
    const on = await stage()
    const [one, paused, third] = [await on.daemon('a'), await on.daemon('bb'), await on.daemon('ccc')]
    await on.sql.run`DELETE FROM cluster_member WHERE id = 'bb'`
    const store = new MemberStore(paused.db, log)
    await expect(
      paused.db.batch([store.requireAlive('bb'), store.requireStill('ccc', 1_000), store.leave('ccc')]),
    ).rejects.toMatchObject({ code: 'service_unavailable' })
    await beat(8, one, third)
    expect(one.membership.isAlive('ccc')).toBe(true)
  })
})

describe('a batch with a fence', () => {
  it('keeps its daemon alive until it is committed, and the others do not wait for it', async () => {
    const on = await stage()
    const [one, other] = [await on.daemon('a'), await on.daemon('bb')]
    await beat(1, one)
    // A lock stands for whatever a batch waits for.
    const lock = postgresqlConnector({ url: on.url })
    onTestFinished(() => lock.dispose?.())
    await lock.exec('SELECT pg_advisory_lock(1)')
    const batch = other.db.batch([
      ...other.membership.fence(),
      other.db.sql`SELECT pg_advisory_xact_lock(1)`,
      other.db.sql`INSERT INTO work (what) VALUES ('done')`,
    ])
    await eventually(async () =>
      expect(await on.sql.all`SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'`).toHaveLength(1),
    )
    await beat(6, one)
    expect(one.ended).toEqual([])
    await lock.exec('SELECT pg_advisory_unlock(1)')
    await batch
    await beat(1, one)
    expect(one.ended).toEqual(['bb'])
    expect(await on.work()).toEqual(['done'])
  })

  it('takes over from a dead daemon only', async () => {
    const on = await stage()
    const [one, other] = [await on.daemon('a'), await on.daemon('bb')]
    const take = () =>
      one.db.batch([
        ...one.membership.fence(),
        ...one.membership.unlessAlive('bb'),
        one.db.sql`INSERT INTO work (what) VALUES ('taken')`,
      ])
    await expect(take()).rejects.toMatchObject({ code: 'service_unavailable' })
    await other.membership.leave()
    await take()
    expect(await on.work()).toEqual(['taken'])
  })
})
