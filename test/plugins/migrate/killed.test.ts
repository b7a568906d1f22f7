import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { encode } from '@msgpack/msgpack'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { call } from '../../faults/home.ts'
import { startDaemon } from '../../support/daemon.ts'

let folder: string
let source: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-migrate-killed-'))
  source = await writeSource(Array.from({ length: 12 }, (_, index) => `n${index}`))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A home of OpenFang with a thing of each kind for each mark. */
async function writeSource(marks: readonly string[]): Promise<string> {
  const path = join(folder, 'openfang')
  const files: Record<string, string> = {
    'config.toml': marks
      .map((mark) => `[[channels.telegram]]\naccount_id = "bot-${mark}"\nbot_token = "1:${mark}"\n`)
      .join(''),
    'cron_jobs.json': JSON.stringify(
      marks.map((mark) => ({
        id: `job-${mark}`,
        agent_id: `agent-${mark}`,
        name: `job-${mark}`,
        schedule: { kind: 'every', every_secs: 600 },
        action: { kind: 'agent_turn', message: 'Look.' },
      })),
    ),
    'trigger_jobs.json': JSON.stringify(
      marks.map((mark) => ({
        id: `trigger-${mark}`,
        agent_id: `agent-${mark}`,
        pattern: 'lifecycle',
        prompt_template: 'event: {{event}}',
      })),
    ),
  }
  for (const mark of marks) {
    files[`agents/agent-${mark}/agent.toml`] = `name = "agent-${mark}"\ndescription = "Tends the garden"\n`
    files[`workspaces/agent-${mark}/MEMORY.md`] = '- The hedge is cut in May.\n- The pond freezes in January.\n'
    files[`workspaces/agent-${mark}/notes/today.md`] = 'Water the roses.\n'
    files[`skills/skill-${mark}/SKILL.md`] =
      `---\nname: skill-${mark}\ndescription: Cuts hedges\n---\nCut the hedge ${mark}.\n`
    files[`workflows/${mark}.json`] = JSON.stringify({
      id: `flow-${mark}`,
      name: `flow-${mark}`,
      steps: [{ name: 'one', agent_name: `agent-${mark}`, prompt: 'Look: {{input}}' }],
    })
  }
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(path, name, '..'), { recursive: true })
    await writeFile(join(path, name), text)
  }
  await mkdir(join(path, 'data'))
  using db = closing(new Sqlite(join(path, 'data', 'openfang.db')))
  db.exec(`CREATE TABLE sessions (id TEXT PRIMARY KEY, agent_id TEXT, messages BLOB, created_at TEXT);
    CREATE TABLE kv_store (agent_id TEXT, key TEXT, value BLOB)`)
  for (const mark of marks) {
    db.prepare('INSERT INTO kv_store VALUES (?, ?, ?)').run(`agent-${mark}`, 'pond', Buffer.from('{"deep":2}'))
    const messages = encode([
      { role: 'user', content: 'Is the hedge high?' },
      { role: 'assistant', content: 'It is.' },
    ])
    const at = '2026-01-05T10:00:00Z'
    db.prepare('INSERT INTO sessions VALUES (?, ?, ?, ?)').run(`session-${mark}`, `agent-${mark}`, messages, at)
  }
  return path
}

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
    const home = join(folder, `killed-${part}`)
    {
      await using dying = await startDaemon({ home })
      let hasEnded = false
      const running = call(dying, 'POST', '/api/migrate', migrate).then(
        ({ status }) => status,
        () => 'killed',
      )
      void running.then(() => (hasEnded = true))
      while (!hasEnded && countItems(home) < all * part) await nextTurn()
      await dying.kill()
      expect(await running).toBe('killed')
      expect(countItems(home)).toBeLessThan(all)
    }
    await using again = await startDaemon({ home })
    const { status, body } = await call(again, 'POST', '/api/migrate', migrate)
    expect([part, status, body.skipped]).toEqual([part, 200, []])
    const third = await call(again, 'POST', '/api/migrate', migrate)
    expect(third.body).toMatchObject({ imported_count: 0, skipped: [] })
    await again.stop()
    expect([part, await contents(home)]).toEqual([part, expected])
  }
})
