import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { encode } from '@msgpack/msgpack'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

const more =
  'system queue files settings events tasks result-delivery approvals clock schedules workflows triggers skills channels ' +
  'channels/telegram memory kv providers/openai-compatible migrate'
let folder: string
let host: TestHost
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-migrate-stopped-'))
  host = await startHost({ plugins: [...turnPlugins, ...more.split(' ')], listen: false })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

/** A home of OpenFang with a thing of each kind, whose names end with `mark`. */
async function writeSource(mark: string): Promise<string> {
  const path = join(folder, mark)
  const files: Record<string, string> = {
    'config.toml': `[[channels.telegram]]\naccount_id = "bot-${mark}"\nbot_token = "1:${mark}"\n[default_model]\nprovider = "anthropic"\nmodel = "claude-sonnet-4-5"\n`,
    [`agents/agent-${mark}/agent.toml`]: `name = "agent-${mark}"\ndescription = "Tends the garden"\n`,
    [`workspaces/agent-${mark}/MEMORY.md`]: '- The hedge is cut in May.\n- The pond freezes in January.\n',
    [`workspaces/agent-${mark}/notes/today.md`]: 'Water the roses.\n',
    [`skills/skill-${mark}/SKILL.md`]: `---\nname: skill-${mark}\ndescription: Cuts hedges\n---\nCut the hedge.\n`,
    [`workflows/flow.json`]: JSON.stringify({
      id: `flow-${mark}`,
      name: `flow-${mark}`,
      steps: [{ name: 'one', agent_name: `agent-${mark}`, prompt: 'Look: {{input}}' }],
    }),
    'cron_jobs.json': JSON.stringify([
      {
        id: `job-${mark}`,
        agent_id: `agent-${mark}`,
        name: `job-${mark}`,
        schedule: { kind: 'every', every_secs: 600 },
        action: { kind: 'agent_turn', message: 'Look.' },
      },
    ]),
    'trigger_jobs.json': JSON.stringify([
      { id: `trigger-${mark}`, agent_id: `agent-${mark}`, pattern: 'lifecycle', prompt_template: 'event: {{event}}' },
    ]),
  }
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(path, name, '..'), { recursive: true })
    await writeFile(join(path, name), text)
  }
  await mkdir(join(path, 'data'))
  const db = new Sqlite(join(path, 'data', 'openfang.db'))
  db.exec('CREATE TABLE sessions (id TEXT PRIMARY KEY, agent_id TEXT, messages BLOB, created_at TEXT)')
  db.exec('CREATE TABLE kv_store (agent_id TEXT, key TEXT, value BLOB)')
  db.prepare('INSERT INTO kv_store VALUES (?, ?, ?)').run(`agent-${mark}`, 'pond', Buffer.from('{"deep":2}'))
  const messages = [
    { role: 'user', content: 'Is the hedge high?' },
    { role: 'assistant', content: 'It is.' },
  ]
  db.prepare('INSERT INTO sessions VALUES (?, ?, ?, ?)').run(
    `session-${mark}`,
    `agent-${mark}`,
    encode(messages),
    '2026-01-05T10:00:00Z',
  )
  db.close()
  return path
}

function inDatabase<T>(work: (db: Sqlite.Database) => T): T {
  const db = new Sqlite(join(host.home, 'data', 'svc.db'))
  try {
    return work(db)
  } finally {
    db.close()
  }
}
const migrate = (source: string) => host.json<Json>('POST', '/api/migrate', { source })
/** Rows of each table, but those that grow with every run and in the background. */
const NOT_COMPARED = /^(audit_|core_|events_|queue_|memory_vector|memory_sign|sqlite_)/
function tables(): readonly string[] {
  const found = inDatabase((db) =>
    // How many rows an index of words consists of depends on the order of writes.
    db.prepare("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' ORDER BY name").all(),
  )
  return found.map((row) => String((row as { name: unknown }).name)).filter((name) => !NOT_COMPARED.test(name))
}
const rowCounts = (): ReadonlyMap<string, number> =>
  inDatabase(
    (db) => new Map(tables().map((name) => [name, Number(db.prepare(`SELECT count(*) FROM "${name}"`).pluck().get())])),
  )
async function files(): Promise<readonly string[]> {
  const found = await readdir(host.home, { recursive: true, withFileTypes: true })
  return found
    .filter(
      (entry) => entry.isFile() && !/^svc\.db|^audit\./.test(entry.name) && !entry.parentPath.endsWith('migrations'),
    )
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
}
const ofAgentsAndSkills = async (): Promise<number> =>
  (await files()).filter((name) => /\/(workspaces|skills)\//.test(name)).length
/** What a piece of work adds to each table, and to the files of agents and skills. */
async function added(work: () => Promise<void>): Promise<Record<string, number>> {
  const [rows, before] = [rowCounts(), await ofAgentsAndSkills()]
  await work()
  const grown = [...rowCounts()].map(([name, count]) => [name, count - (rows.get(name) ?? 0)] as const)
  return Object.fromEntries(
    [...grown, ['files', (await ofAgentsAndSkills()) - before] as const].filter(([, by]) => by !== 0),
  )
}
/** All that is kept, to the byte. */
async function digest(): Promise<Record<string, string>> {
  const hash = (data: string | Uint8Array): string => createHash('sha256').update(data).digest('hex')
  const rows = inDatabase((db) =>
    tables().map((name) => [name, hash(JSON.stringify(db.prepare(`SELECT * FROM "${name}"`).all()))]),
  )
  const contents = await Promise.all((await files()).map(async (name) => [name, hash(await readFile(name))]))
  return Object.fromEntries([...rows, ...contents])
}

/** Runs end before the record of what was made is on disk, as with a daemon that is killed there. */
const stopAt = (kind: string) =>
  inDatabase((db) =>
    db.exec(`CREATE TRIGGER stop BEFORE INSERT ON migrate_item WHEN NEW.kind = '${kind}' AND NEW.target <> ''
      BEGIN SELECT RAISE(ABORT, 'stopped here'); END`),
  )
const goOn = () => inDatabase((db) => db.exec('DROP TRIGGER stop'))

const KINDS = 'config agent workspace value memory skill session channel workflow cron trigger'.split(' ')
it('a run that ends at any stage is completed by the next one: nothing is lost, and nothing is there twice', async () => {
  const resumed: (readonly [kind: string, added: Record<string, number>])[] = []
  for (const kind of KINDS) {
    const source = await writeSource(kind)
    const grown = await added(async () => {
      stopAt(kind)
      expect([kind, (await migrate(source)).status]).toEqual([kind, 500])
      goOn()
      expect(host.defects().length).toBeGreaterThan(0)
      const { status, body } = await migrate(source)
      expect([kind, status, body.skipped]).toEqual([kind, 200, []])
    })
    resumed.push([kind, grown])
  }
  const source = await writeSource('usual')
  const usual = await added(async () => {
    expect((await migrate(source)).body.skipped).toEqual([])
  })
  expect(usual).toMatchObject({ agents_agent: 1, memory_entry: 2, sessions_session: 2, kv_pair: 1, migrate_item: 12 })
  for (const one of resumed) expect(one).toEqual([one[0], usual])
})

it('a key that was stored by a run which was killed is that of the run', async () => {
  const source = await writeSource('key')
  await writeFile(join(source, 'secrets.env'), 'GROQ_API_KEY=gsk-of-the-source\n')
  stopAt('key')
  expect((await migrate(source)).status).toBe(500)
  goOn()
  expect(host.defects().length).toBeGreaterThan(0)
  expect((await migrate(source)).body).toMatchObject({ skipped: [] })
  await writeFile(join(source, 'secrets.env'), 'GROQ_API_KEY=another\n')
  expect((await migrate(source)).body).toMatchObject({ imported_count: 0, skipped: [] })
})

it('a second run changes nothing', async () => {
  const before = await digest()
  const { body } = await migrate(join(folder, 'usual'))
  expect(body).toMatchObject({ imported_count: 0, unchanged_count: 11, skipped: [] })
  expect(await digest()).toEqual(before)
})
