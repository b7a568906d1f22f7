import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import postgresqlConnector from 'db0/connectors/postgresql'
import { afterEach, describe, expect, it } from 'vitest'
import { openDatabase } from '../../../core/storage/open.ts'
import { openVault } from '../../../core/storage/vault-file.ts'
import { AnchorFile } from '../../../plugins/audit/anchor.ts'
import { migrations } from '../../../plugins/audit/migrations.ts'
import { AuditTrail } from '../../../plugins/audit/service.ts'
import { BLOCK } from '../../../plugins/audit/tree/merkle.ts'
import { Signer } from '../../../plugins/audit/tree/signer.ts'
import { openWriters } from '../../../plugins/audit/writers/open.ts'
import { broadcastKey, closing, emptyPostgres, folder, recorder } from '../../core/storage/engines.ts'

const trails: AuditTrail[] = []
afterEach(async () => {
  await Promise.all(trails.splice(0).map((trail) => trail.close()))
})

/** A daemon on the database with a home of its own; all have the key of the vault. */
async function enter(url: string, home: string, dir?: string) {
  const folderOf = dir ?? (await folder())
  await writeFile(join(folderOf, 'vault.key'), 'ab'.repeat(32), { mode: 0o600 })
  const { log, lines } = recorder()
  const database = closing(await openDatabase({ url, log, broadcastKey }))
  await database.migrate('audit', migrations)
  const vault = (await openVault(database, { file: join(folderOf, 'vault.key') }, log)).forPlugin('audit')
  const writers = openWriters(database.sql, home)
  const anchorFile = join(folderOf, 'audit.anchor')
  const trail = new AuditTrail({
    db: database.sql,
    anchor: new AnchorFile(anchorFile, vault, writers),
    signer: new Signer(vault, writers),
    log,
    writers,
  })
  trails.push(trail)
  await trail.anchor()
  const add = (count: number, what = home): Promise<unknown> =>
    database.sql.batch(
      Array.from({ length: count }, (_, n) =>
        trail.entry({ event: 'agent_message', agentId: home, details: `${what} ${n + 1}` }),
      ),
    )
  return { db: database.sql, database, trail, vault, anchorFile, dir: folderOf, lines, add }
}
type Daemon = Awaited<ReturnType<typeof enter>>

const stop = new AbortController().signal
/** Entries with the time of another clock. */
async function addAt({ db, trail }: Daemon, ms: number, count = 1): Promise<void> {
  const timestamp = new Date(ms).toISOString()
  const fields = { timestamp, event_type: 'agent_message', agent_id: '', details: 'x' }
  for (let left = count; left > 0; left -= 64)
    await db.batch(Array.from({ length: Math.min(left, 64) }, () => trail.store.append(fields)))
}

/** A batch of a daemon that has its entry and does not end until `commit` is called. */
async function openBatch(url: string, { db, trail }: Daemon, details: string) {
  const connector = postgresqlConnector({ url })
  const holder = await connector.getInstance()
  await holder.query('SELECT pg_advisory_lock(7)')
  const done = db.batch([
    trail.entry({ event: 'agent_message', details }),
    { sql: 'SELECT pg_advisory_xact_lock(7)', values: [] },
  ])
  for (;;) {
    const { rows } = await holder.query("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    if (rows.length > 0) break
  }
  return {
    async commit() {
      await holder.query('SELECT pg_advisory_unlock(7)')
      await connector.dispose?.()
      await done
    },
  }
}

describe('daemons on one database', () => {
  it('add thousands of entries at the same time: none is lost or forked, and who follows misses none', async () => {
    const url = await emptyPostgres()
    const daemons = [await enter(url, 'one'), await enter(url, 'two'), await enter(url, 'three')]
    const [first] = daemons
    const total = 3 * 20 * 40
    const followed: number[] = []
    const follow = async (): Promise<void> => {
      while (followed.length < total)
        for (const { id } of await (first ?? expect.fail()).trail.following(followed.at(-1) ?? 0, 500))
          followed.push(id)
    }
    await Promise.all([
      follow(),
      ...daemons.map(async ({ add }) => {
        for (let round = 0; round < 20; round++) await Promise.all([add(10), add(1), add(14), add(15)])
      }),
    ])
    expect(followed).toEqual(Array.from({ length: total }, (_, n) => n + 1))
    const verdicts = await Promise.all(daemons.map(({ trail }) => trail.verify()))
    for (const verdict of verdicts) expect(verdict).toMatchObject({ status: 'valid', chain_length: total })
    const writers = verdicts[0]?.writers ?? []
    expect(new Set(writers.map(({ writer }) => writer.replace(/-\d+$/, '')))).toEqual(new Set(['one', 'two', 'three']))
    for (const { entries, last_seq: last } of writers) expect(entries).toBe(last)
  })

  it('an entry that is committed late gets a later number, and other batches do not wait for it', async () => {
    const url = await emptyPostgres()
    const [slow, same, other] = [await enter(url, 'one'), await enter(url, 'one'), await enter(url, 'two')]
    const batch = await openBatch(url, slow, 'late')
    await same.add(1, 'same home')
    await other.add(1, 'other home')
    expect((await other.trail.following(0, 10)).map(({ id, details }) => [id, details])).toEqual([
      [1, 'same home 1'],
      [2, 'other home 1'],
    ])
    expect((await other.trail.verify()).status).toBe('valid')
    await batch.commit()
    expect((await other.trail.following(2, 10)).map(({ id, details }) => [id, details])).toEqual([[3, 'late']])
    expect(await other.trail.verify()).toMatchObject({
      status: 'valid',
      writers: [
        { writer: expect.stringMatching(/^one-/), entries: 1 },
        { writer: expect.stringMatching(/^two-/), entries: 1 },
        { writer: expect.stringMatching(/^one-/), entries: 1 },
      ],
    })
  })

  it('the chain of one that was killed goes on in its next run, with what it left without a number', async () => {
    const url = await emptyPostgres()
    const killed = await enter(url, 'one')
    trails.pop()
    for (let n = 0; n < 3; n++) await addAt(killed, 0)
    const next = await enter(url, 'one', killed.dir)
    await next.add(2)
    expect(await next.trail.verify()).toMatchObject({
      status: 'valid',
      chain_length: 5,
      writers: [{ writer: expect.stringMatching(/^one-/), entries: 5, last_seq: 5 }],
    })
  })

  it('their clocks may differ: the order is that of the commits, and what is too young for one is kept', async () => {
    const url = await emptyPostgres()
    const [one, other] = [await enter(url, 'one'), await enter(url, 'two')]
    const old = Date.now() - 90 * 86_400_000
    await addAt(one, old + 1_800_000)
    await addAt(other, old - 1_800_000)
    await addAt(other, old - 1_700_000, BLOCK)
    await one.trail.number()
    const listed = (await one.trail.following(0, 2)).map(({ id, timestamp }) => [id, Date.parse(timestamp) - old])
    expect(listed).toEqual([
      [1, 1_800_000],
      [2, -1_800_000],
    ])
    await one.trail.checkpoint()
    await other.trail.retire(90, stop)
    expect(await one.trail.verify()).toMatchObject({ status: 'valid', first_entry: 1, chain_length: BLOCK + 2 })
  })

  it('make the first signature at once with one key, and leave each other the next', async () => {
    const url = await emptyPostgres()
    const [one, other] = [await enter(url, 'one'), await enter(url, 'two')]
    await Promise.all([one.add(3), other.add(4)])
    await Promise.all([one.trail.checkpoint(), other.trail.checkpoint()])
    const [mine, theirs] = await Promise.all([one.trail.verify(), other.trail.verify()])
    expect(mine).toMatchObject({ status: 'valid', anchor: 'known' })
    expect(theirs).toMatchObject({ status: 'valid', anchor: 'known', public_key: mine.public_key })
    const sizes = async () => (await one.trail.checkpoints.store.checkpoints(10)).map(({ size }) => size)
    await other.trail.checkpointInTurn()
    await one.trail.checkpointInTurn()
    await one.add(1)
    await one.trail.checkpointInTurn()
    await other.add(1)
    await other.trail.checkpointInTurn()
    expect((await sizes())[0]).toBe(8)
    await other.trail.checkpointInTurn()
    expect((await sizes())[0]).toBe(9)
  })

  it('drop what is too old at once, and each block once', async () => {
    const url = await emptyPostgres()
    const [one, other] = [await enter(url, 'one'), await enter(url, 'two')]
    for (const daemon of [one, other]) await addAt(daemon, Date.parse('2020-01-01T00:00:00Z'), BLOCK)
    await one.trail.anchor()
    await other.trail.anchor()
    await one.trail.checkpoint()
    await Promise.all([one.trail.retire(90, stop), other.trail.retire(90, stop)])
    expect(await one.trail.verify()).toMatchObject({
      status: 'valid',
      origin: { entry_id: 2 * BLOCK },
      chain_length: 2,
    })
    // The anchor of both is at an entry that is gone.
    await other.add(1)
    await other.trail.anchor()
    expect(await other.trail.verify()).toMatchObject({ status: 'valid', anchor: 'known', chain_length: 3 })
    expect(JSON.parse(await readFile(other.anchorFile, 'utf8'))).toMatchObject({ count: 2 * BLOCK + 3 })
  })
})

describe('the anchor of a daemon that joins others', () => {
  it('is made when it first starts, and not again when it is removed', async () => {
    const url = await emptyPostgres()
    const one = await enter(url, 'one')
    await one.add(3)
    await one.trail.checkpoint()
    const other = await enter(url, 'two')
    expect(JSON.parse(await readFile(other.anchorFile, 'utf8'))).toMatchObject({ count: 3 })
    await other.add(1)
    await rm(other.anchorFile)
    expect(await (await enter(url, 'two', other.dir)).trail.verify()).toMatchObject({
      status: 'invalid',
      anchor: 'missing',
    })
  })
})

describe('what was done to the entries of one of three writers is named', () => {
  let anchors = 0
  const MAX_ATTEMPTS = 20
  const shared = ['audit_entry', 'audit_staged', 'audit_chain', 'audit_checkpoint', 'core_vault']
  /**
   * Entries of three daemons in turns, five of each; when `staged`, only the first of each has its number. Says what
   * `verify` and, after a checkpoint, the next one find.
   */
  async function tamper(
    daemon: Daemon,
    staged: boolean,
    sql: string,
    attempt = 1,
  ): Promise<Awaited<ReturnType<AuditTrail['verify']>>[]> {
    const { db, anchorFile, vault, lines } = daemon
    await db.batch(shared.map((table) => ({ sql: `DELETE FROM ${table}`, values: [] })))
    const log = { warn: (line: string) => lines.push(line), error: (line: string) => lines.push(line) }
    const [trail = expect.fail(), ...others] = ['one', 'two', 'three'].map((home) => {
      const writers = openWriters(db, home)
      const anchor = new AnchorFile(`${anchorFile}-${++anchors}`, vault, writers)
      return new AuditTrail({ db, anchor, signer: new Signer(vault, writers), log, writers })
    })
    await trail.anchor()
    for (let n = 0; n < 5; n++) {
      if (staged && n === 1) await trail.anchor()
      for (const each of [trail, ...others]) await each.write({ event: 'agent_message', details: `message ${n}` })
    }
    if (!staged) {
      await trail.anchor()
      expect((await trail.verify()).status).toBe('valid')
    }
    // A daemon numbers what is a second old, which a slow machine needs for these.
    const isNumbered = staged && (await db.all`SELECT seq FROM audit_staged`).length < 12
    if (isNumbered && attempt < MAX_ATTEMPTS) {
      await Promise.all([trail, ...others].map((each) => each.close()))
      return tamper(daemon, staged, sql, attempt + 1)
    }
    await db.batch([{ sql, values: [] }])
    const found = [await trail.verify()]
    await trail.checkpoint()
    found.push(await trail.verify())
    await Promise.all([trail, ...others].map((each) => each.close()))
    return found
  }

  it('with a number', async () => {
    const daemon = await enter(await emptyPostgres(), 'any')
    const gone = (where: string) => `DELETE FROM audit_entry WHERE writer LIKE 'two-%' AND ${where}`
    for (const [what, sql, seq] of [
      ['its first entry', gone('seq = 1'), 1],
      ['one in the middle', gone('seq = 3'), 3],
      ['its last entry', gone('seq = 5'), 5],
      ['its newest entries', gone('seq >= 4'), 4],
      ['all of them', gone('true'), 1],
      ['a text', "UPDATE audit_entry SET details = 'nothing' WHERE writer LIKE 'two-%' AND seq = 2", 2],
      ['the writer', "UPDATE audit_entry SET writer = 'two-x' WHERE writer LIKE 'two-%' AND seq = 2", 2],
    ] as const)
      for (const verdict of await tamper(daemon, false, sql))
        expect(verdict, what).toMatchObject({
          status: 'invalid',
          first_invalid_writer: expect.stringMatching(/^two-/),
          first_invalid_seq: seq,
          first_invalid_id: 2 + (seq - 1) * 3,
        })
  })

  it('before it had a number, and for good', async () => {
    const daemon = await enter(await emptyPostgres(), 'any')
    const lost = (where: string) => `DELETE FROM audit_staged WHERE writer LIKE 'two-%' AND ${where}`
    for (const [what, sql, seq] of [
      ['its first entry', lost('seq = 2'), 2],
      ['one in the middle', lost('seq = 4'), 4],
      ['its last entry', lost('seq = 5'), 5],
      ['its newest entries', lost('seq >= 4'), 4],
      ['all of them', lost('true'), 2],
      ['a text', "UPDATE audit_staged SET details = 'nothing' WHERE writer LIKE 'two-%' AND seq = 3", 3],
      ['how far it got', "UPDATE audit_chain SET seq = 4 WHERE home = 'two'", 4],
    ] as const)
      for (const verdict of await tamper(daemon, true, sql))
        expect(verdict, what).toMatchObject({
          status: 'invalid',
          first_invalid_writer: expect.stringMatching(/^two-/),
          first_invalid_seq: seq,
        })
  })
})
