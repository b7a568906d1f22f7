import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { DatabaseSnapshots } from '../../../core/host/database-snapshots.ts'
import { checkFile } from '../../../core/storage/check-file.ts'
import { Snapshots } from '../../../plugins/backups/snapshots.ts'

let home: string
const lines: string[] = []
const log = {
  info: (line: string) => {
    lines.push(line)
  },
  warn: (line: string) => {
    lines.push(line)
  },
  error: (line: string) => {
    lines.push(line)
  },
}
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-snapshots-'))
  mkdirSync(join(home, 'data'))
  const db = new Sqlite(join(home, 'data', 'svc.db'))
  db.exec('CREATE TABLE thing (text TEXT)')
  db.close()
  writeFileSync(join(home, 'audit.anchor'), 'anchor')
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

function snapshots(now: () => Date, options: { readonly damage?: boolean; readonly kept?: number } = {}): Snapshots {
  const copy = async (file: string): Promise<void> => {
    if (options.damage === true) return writeFileSync(file, 'not a database')
    const db = new Sqlite(join(home, 'data', 'svc.db'), { readonly: true })
    await db.backup(file)
    db.close()
  }
  const databaseSnapshots = {
    homeDir: home,
    dataDir: join(home, 'data'),
    databaseName: () => 'svc.db',
    snapshot: copy,
    checkFile,
  } as Partial<DatabaseSnapshots> as DatabaseSnapshots
  return new Snapshots(databaseSnapshots, { intervalMs: 3_600_000, kept: options.kept ?? 3 }, log, now)
}

describe('copies of the database', () => {
  it('are taken when the newest is old enough, checked, with the anchor, and so many are kept', async () => {
    let now = Date.parse('2026-01-01T00:00:00.000Z')
    const taken = snapshots(() => new Date(now))
    expect(await taken.take()).toBe('svc-20260101T000000000Z.db')
    now += 3_599_000
    expect(await taken.take()).toBeUndefined()
    for (let hour = 0; hour < 4; hour++) {
      now += 3_601_000
      expect(await taken.take()).toMatch(/^svc-/)
    }
    const folder = join(home, 'data', 'snapshots')
    expect(await taken.list()).toHaveLength(3)
    expect(readdirSync(folder).toSorted()).toHaveLength(6)
    for (const name of await taken.list()) {
      expect(await checkFile(join(folder, name))).toBeUndefined()
      expect(existsSync(join(folder, name.replace(/\.db$/, '.anchor')))).toBe(true)
    }
    expect(statSync(folder).mode & 0o777).toBe(0o700)
  })

  it('a damaged one is thrown away, told, and earlier ones are kept', async () => {
    let now = Date.parse('2026-01-01T00:00:00.000Z')
    await snapshots(() => new Date(now)).take()
    now += 7_200_000
    const damaged = snapshots(() => new Date(now), { damage: true })
    expect(await damaged.take()).toBeUndefined()
    expect(readdirSync(join(home, 'data', 'snapshots')).toSorted()).toEqual([
      'svc-20260101T000000000Z.anchor',
      'svc-20260101T000000000Z.db',
    ])
    expect(lines.join('\n')).toMatch(/does not pass the check/)
  })
})
