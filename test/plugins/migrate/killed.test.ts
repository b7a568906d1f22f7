import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { call } from '../../faults/home.ts'
import { startDaemon } from '../../support/daemon.ts'
import { writeOpenFang } from '../../support/openfang-source.ts'

let folder: string
let source: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-migrate-killed-'))
  source = join(folder, 'openfang')
  await writeOpenFang(
    source,
    Array.from({ length: 12 }, (_, index) => `n${index}`),
  )
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const closing = (db: Sqlite.Database): Sqlite.Database & Disposable =>
  Object.assign(db, { [Symbol.dispose]: () => db.close() })
const openHome = (home: string) => closing(new Sqlite(join(home, 'data', 'svc.db'), { readonly: true }))
const countItems = (home: string): number => {
  using db = openHome(home)
  return Number(db.prepare('SELECT count(*) FROM migrate_item').pluck().get())
}

/** Rows of each table that holds what came over, and the files of agents and skills. */
const TABLES = /^(agents|channels|kv|migrate|schedules|sessions|skills|triggers|workflows)_|^memory_entry$/
async function contents(home: string): Promise<Record<string, number>> {
  using db = openHome(home)
  const names = db.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all().map(String)
  const rows = names
    .filter((name) => TABLES.test(name))
    .map((name) => [name, Number(db.prepare(`SELECT count(*) FROM "${name}"`).pluck().get())])
  const files = (await readdir(home, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  const inFolder = (name: string): number => files.filter((file) => file.includes(`/${name}/`)).length
  return Object.fromEntries([
    ...rows,
    ...['workspaces', 'skills'].map((name) => [`files of ${name}`, inFolder(name)]),
    ['copies of the source', files.filter((file) => /\/migrate-/.test(file)).length],
  ])
}

/**
 * A home whose daemon was killed when it had moved `part` of the items. On a busy machine the move may end before the
 * signal arrives: that home counts for nothing and the next one is tried.
 */
async function killedHome(part: number, all: number): Promise<string> {
  for (let attempt = 1; attempt <= 5; attempt++) {
    const home = join(folder, `killed-${part}-${attempt}`)
    await using dying = await startDaemon({ home })
    const ended = new AbortController()
    const running = call(dying, 'POST', '/api/migrate', { source }).then(
      ({ status }) => status,
      () => 'killed',
    )
    void running.then(() => ended.abort())
    while (!ended.signal.aborted && countItems(home) < all * part) await nextTurn()
    await dying.kill()
    if ((await running) === 'killed' && countItems(home) < all) return home
  }
  throw new Error(`the move ended before its daemon could be killed at ${part}, five times`)
}

it('a daemon that is killed at any point of a migration takes over the rest when it is run again, once', async () => {
  const whole = join(folder, 'whole')
  const migrate = { source }
  await using daemon = await startDaemon({ home: whole })
  const usual = await call(daemon, 'POST', '/api/migrate', migrate)
  expect([usual.status, usual.body.skipped]).toEqual([200, []])
  await daemon.stop()
  const expected = await contents(whole)
  const all = countItems(whole)
  expect(expected).toMatchObject({ 'files of workspaces': 24, 'files of skills': 24, 'copies of the source': 0 })
  expect(all).toBeGreaterThan(100)

  for (const part of [0.02, 0.3, 0.6, 0.9]) {
    const home = await killedHome(part, all)
    await using again = await startDaemon({ home })
    const { status, body } = await call(again, 'POST', '/api/migrate', migrate)
    expect([part, status, body.skipped]).toEqual([part, 200, []])
    const third = await call(again, 'POST', '/api/migrate', migrate)
    expect(third.body).toMatchObject({ imported_count: 0, skipped: [] })
    await again.stop()
    expect([part, await contents(home)]).toEqual([part, expected])
  }
})
