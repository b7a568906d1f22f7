import { hash } from 'node:crypto'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openVault } from '../../../core/storage/vault-file.ts'
import { AnchorFile } from '../../../plugins/audit/anchor.ts'
import { migrations } from '../../../plugins/audit/migrations.ts'
import { AuditTrail } from '../../../plugins/audit/service.ts'
import { Signer } from '../../../plugins/audit/tree/signer.ts'
import { openWriters } from '../../../plugins/audit/writers/open.ts'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { EngineName } from '../../core/storage/engines.ts'

async function start(engine: EngineName, rows = 0) {
  const opened = await open(engine)
  await opened.database.migrate('audit', migrations)
  const { log, lines } = recorder()
  const vault = (await openVault(opened.database, { file: join(opened.dir, 'vault.key') }, log)).forPlugin('audit')
  const file = join(opened.dir, 'audit.anchor')
  const writers = engine === 'sqlite' ? undefined : openWriters(opened.database.sql, 'home')
  const next = async () => {
    const trail = new AuditTrail({
      db: opened.database.sql,
      anchor: new AnchorFile(file, vault, writers),
      signer: new Signer(vault, writers),
      log,
      writers,
    })
    await trail.anchor()
    return trail
  }
  const trail = await next()
  const db = opened.database.sql
  await db.batch(
    Array.from({ length: rows }, (_, n) =>
      trail.entry({ event: 'agent_message', agentId: `agent-${n % 3}`, details: `message ${n + 1}` }),
    ),
  )
  await trail.anchor()
  return { ...opened, db, trail, next, anchorFile: file, lines }
}

const withLength = (field: unknown): string => `${Buffer.byteLength(String(field))}:${String(field)}`

describe.each(engines)('the audit chain on %s', (engine) => {
  it('an empty one is valid', async () => {
    const { trail } = await start(engine)
    expect(await trail.verify()).toMatchObject({
      status: 'valid',
      chain_length: 0,
      first_entry: null,
      last_entry: null,
      anchor: 'known',
    })
  })

  it('numbers entries from 1 without gaps and links each to the one before, however they are written', async () => {
    const { db, trail } = await start(engine)
    await db.batch([
      trail.entry({ event: 'agent_spawned', agentId: 'a', details: 'one' }),
      trail.entry({ event: 'agent_killed', agentId: 'a', details: 'two' }),
    ])
    await Promise.all(
      Array.from({ length: 30 }, (_, n) => trail.write({ event: 'config_change', details: `change ${n}` })),
    )
    await trail.number()
    const rows = await trail.store.recent(100, { agentId: undefined, eventType: undefined })
    expect(rows.map((row) => row.id)).toEqual(Array.from({ length: 32 }, (_, n) => n + 1))
    expect(rows[0]?.prev_hash).toBe('0'.repeat(64))
    for (const [n, row] of rows.entries()) {
      if (n > 0) expect(row.prev_hash).toBe(rows[n - 1]?.hash)
      const body = [row.timestamp, row.event_type, row.agent_id, row.details]
        .map(withLength)
        .concat(row.writer ? [row.actor, row.writer, row.seq, row.writer_hash].map(withLength) : [])
        .join('')
      expect(row.hash).toBe(hash('sha256', `svc-audit-1:${row.id}:${row.prev_hash}:${body}`))
    }
    expect(await trail.verify()).toMatchObject({ status: 'valid', chain_length: 32, first_entry: 1, last_entry: 32 })
  })

  it('an entry is on disk with its change or neither is', async () => {
    const { db, database, trail } = await start(engine)
    await database.migrate('other', [{ id: '1', sql: 'CREATE TABLE other_thing (id INTEGER PRIMARY KEY)' }])
    await expect(
      db.batch([
        db.sql`INSERT INTO other_thing (id) VALUES (1)`,
        trail.entry({ event: 'config_change', details: 'x' }),
        db.sql`INSERT INTO other_thing (id) VALUES (1)`,
      ]),
    ).rejects.toThrow()
    expect(await trail.verify()).toMatchObject({ status: 'valid', chain_length: 0 })
    await trail.write({ event: 'config_change', details: 'y' })
    expect(await trail.verify()).toMatchObject({ status: 'valid', chain_length: 1, last_entry: 1 })
  })

  it('what stands in details is cleaned and still verifies', async () => {
    const { trail } = await start(engine)
    await trail.write({
      event: 'auth_attempt',
      agentId: 'grün\n👋',
      details: `key sk-abcdefghijklmnop0000 \u0000 ${'ü'.repeat(9_000)} \ud800`,
    })
    await trail.number()
    const [row] = await trail.store.recent(1, { agentId: undefined, eventType: undefined })
    expect(row?.agent_id).toBe('grün\\n👋')
    expect(row?.details).not.toMatch(/sk-abc/)
    expect(Buffer.byteLength(row?.details ?? '')).toBeLessThanOrEqual(4_096)
    expect((await trail.verify()).status).toBe('valid')
  })

  it('a period, an agent and a place in the chain limit what is listed and counted', async () => {
    const { trail } = await start(engine, 9)
    const all = await trail.store.recent(100, { agentId: undefined, eventType: undefined })
    const anytime = { since: undefined, until: undefined, before: undefined }
    const ids = async (...[limit, filter, period]: Parameters<typeof trail.store.within>): Promise<number[]> =>
      (await trail.store.within(limit, filter, period)).map(({ id }) => id)
    expect(await ids(2, { agentId: undefined, eventType: undefined }, { ...anytime, before: 5 })).toEqual([3, 4])
    expect(await ids(9, { agentId: 'agent-1', eventType: 'agent_message' }, { ...anytime, before: 9 })).toEqual([
      2, 5, 8,
    ])
    expect(
      await ids(9, { agentId: undefined, eventType: undefined }, { ...anytime, until: '2020-01-01T00:00:00.000Z' }),
    ).toEqual([])
    expect(
      await trail.store.countWithin(
        { agentId: 'agent-1', eventType: undefined },
        { ...anytime, since: all[0]?.timestamp },
      ),
    ).toBe(3)
    expect((await trail.following(7, 10)).map(({ id }) => id)).toEqual([8, 9])
    expect(await trail.newest()).toBe(9)
  })

  it('more than a page verifies', async () => {
    const { trail } = await start(engine, 2_500)
    expect(await trail.verify()).toMatchObject({ status: 'valid', chain_length: 2_500, last_entry: 2_500 })
  })

  it.each<[string, (db: Awaited<ReturnType<typeof start>>['db']) => Promise<unknown>, number]>([
    ['an edited text', (db) => db.run`UPDATE audit_entry SET details = 'nothing happened' WHERE id = 5`, 5],
    ['an edited time', (db) => db.run`UPDATE audit_entry SET timestamp = '2020-01-01T00:00:00.000Z' WHERE id = 1`, 1],
    [
      'a character moved from one field to the next',
      (db) => db.run`UPDATE audit_entry SET event_type = 'agent_messagea', agent_id = 'gent-0' WHERE id = 7`,
      7,
    ],
    ['a deleted entry', (db) => db.run`DELETE FROM audit_entry WHERE id = 6`, 6],
    ['a trimmed start', (db) => db.run`DELETE FROM audit_entry WHERE id <= 3`, 1],
    [
      'two entries swapped',
      (db) =>
        db.batch([
          db.sql`UPDATE audit_entry SET id = 1000 WHERE id = 4`,
          db.sql`UPDATE audit_entry SET id = 4 WHERE id = 5`,
          db.sql`UPDATE audit_entry SET id = 5 WHERE id = 1000`,
        ]),
      4,
    ],
    ['a cut end', (db) => db.run`DELETE FROM audit_entry WHERE id > 8`, 9],
    ['everything gone', (db) => db.run`DELETE FROM audit_entry`, 1],
    ['a forged last entry', (db) => db.run`UPDATE audit_entry SET hash = ${'f'.repeat(64)} WHERE id = 12`, 12],
  ])('%s is found on the live database', async (_, tamper, firstInvalid) => {
    const { db, trail } = await start(engine, 12)
    expect((await trail.verify()).status).toBe('valid')
    await tamper(db)
    expect(await trail.verify()).toMatchObject({ status: 'invalid', first_invalid_id: firstInvalid })
  })

  it('a cut end stays found when new entries grow over it, and after a restart', async () => {
    const { db, trail, next, lines } = await start(engine, 12)
    await db.run`DELETE FROM audit_entry WHERE id > 8`
    for (let n = 0; n < 10; n++) await trail.write({ event: 'config_change', details: 'innocent' })
    await trail.anchor()
    expect(await trail.verify()).toMatchObject({ status: 'invalid' })
    const restarted = await next()
    expect(await restarted.verify()).toMatchObject({ status: 'invalid', first_invalid_id: 12 })
    expect(lines.join('\n')).toMatch(/does not reach its anchor/)
  })
})

describe('the anchor', () => {
  it('is a file for its owner only, at the end of the chain', async () => {
    const { trail, anchorFile } = await start('sqlite', 5)
    expect((await stat(anchorFile)).mode & 0o777).toBe(0o600)
    expect(JSON.parse(await readFile(anchorFile, 'utf8'))).toMatchObject({ count: 5 })
    await trail.write({ event: 'config_change', details: 'x' })
    await trail.close()
    expect(JSON.parse(await readFile(anchorFile, 'utf8'))).toMatchObject({ count: 6 })
  })

  it('that is behind after a crash is brought to the end', async () => {
    const { trail, next, anchorFile } = await start('sqlite', 5)
    const before = await readFile(anchorFile)
    await trail.write({ event: 'config_change', details: 'x' })
    await trail.close()
    await writeFile(anchorFile, before)
    const restarted = await next()
    expect(JSON.parse(await readFile(anchorFile, 'utf8'))).toMatchObject({ count: 6 })
    expect((await restarted.verify()).status).toBe('valid')
  })

  it('that was written by someone without the key is not believed', async () => {
    const { db, trail, anchorFile } = await start('sqlite', 5)
    await db.run`DELETE FROM audit_entry WHERE id = 5`
    const tip = await trail.store.find(4)
    await writeFile(anchorFile, JSON.stringify({ count: 4, tip_hash: tip?.hash, hmac: 'a'.repeat(64) }))
    expect(await trail.verify()).toMatchObject({ status: 'invalid', anchor: 'forged' })
    await trail.anchor()
    expect(await trail.verify()).toMatchObject({ status: 'invalid', anchor: 'forged' })
  })

  it.each(['missing', 'garbage'])('that is %s makes the chain invalid and is not made anew', async (kind) => {
    const { trail, next, anchorFile } = await start('sqlite', 5)
    await (kind === 'missing' ? rm(anchorFile) : writeFile(anchorFile, '{"count":'))
    expect((await trail.verify()).status).toBe('invalid')
    expect((await (await next()).verify()).status).toBe('invalid')
  })

  it('whose key was removed from the vault proves nothing, and none is made in its place', async () => {
    const { db, database, trail, next } = await start('sqlite', 5)
    await database.sql.run`DELETE FROM core_vault`
    await db.run`DELETE FROM audit_entry WHERE id = 5`
    expect(await trail.verify()).toMatchObject({
      status: 'invalid',
      anchor: 'keyless',
      reason: expect.stringMatching(/key of the anchor is missing/),
    })
    expect(await (await next()).verify()).toMatchObject({ status: 'invalid', anchor: 'keyless' })
  })

  it('a chain written anew from the start is found', async () => {
    const { db, trail, next } = await start('sqlite', 5)
    await db.run`DELETE FROM audit_entry`
    for (let n = 0; n < 5; n++) await trail.write({ event: 'config_change', details: 'another story' })
    expect(await trail.verify()).toMatchObject({ status: 'invalid', first_invalid_id: 5 })
    expect((await (await next()).verify()).status).toBe('invalid')
  })
})
