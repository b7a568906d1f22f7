import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect, it, onTestFinished } from 'vitest'
import { startHost } from '../support/host.ts'
import type { Json } from '../support/json.ts'

/** What is wrong in them has to be noticed. */
const NOTICED = /^(?:core|audit)_/
/** Values with which rows are found that are looked for by them. */
const FOUND: Readonly<Record<string, readonly Readonly<Record<string, string | number | null>>[]>> = {
  approvals_request: [{ state: 'pending' }, { state: 'denied' }],
  approvals_grant: [{ revoked_at: null }],
  channels_inbox: [{ state: 'pending' }],
  channels_outbox: [{ state: 'pending' }, { state: 'dead' }],
  journal_turn: [{ state: 'running' }, { state: 'failed' }],
  schedules_job: [{ enabled: 1, ended_at: null }],
  tasks_task: [{ status: 'pending' }, { labels: '[', status: 'in_progress', attempts: 0, revision: 0, wake: 0 }],
  triggers_trigger: [{ enabled: 1 }],
  webhooks_target: [{ kind: 'outbound', enabled: 1 }],
  workflows_run: [{ state: 'Running' }],
}

/** Rows of another version or a person: each table has some in which nothing is as expected. */
function addRows(file: string): void {
  using database = new DatabaseSync(file)
  database.exec('PRAGMA foreign_keys = OFF')
  // What a virtual table consists of belongs to the engine.
  const tables = database
    .prepare("SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'")
    .all() as { name: string }[]
  for (const { name: table } of tables) {
    if (NOTICED.test(table) || table.startsWith('sqlite_')) continue
    const columns = database.prepare(`PRAGMA table_info(${table})`).all() as Json[]
    for (const [at, given] of (FOUND[table] ?? [{}]).entries()) {
      const values = columns.map(({ name, type, pk }) => {
        if (name in given) return given[name] ?? null
        // Tables are strict: a column has the type that it was made with.
        if (type === 'INTEGER' || type === 'REAL') return 1_000 + at
        if (type === 'BLOB') return new Uint8Array([at])
        return pk > 0 ? `unreadable ${at}` : '{'
      })
      const names = columns.map(({ name }) => `"${name}"`).join()
      const places = columns.map(() => '?').join()
      database.prepare(`INSERT OR IGNORE INTO ${table} (${names}) VALUES (${places})`).run(...values)
    }
  }
}

it('a daemon starts on rows that it cannot read, names them, answers every list and runs its jobs without them', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-rows-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const config = { default_provider: 'builtin', pairing: { enabled: true } }
  await (await startHost({ home, config, listen: false })).stop()
  addRows(join(home, 'data/svc.db'))

  const jobs: { readonly plugin: string; readonly run: () => Promise<void> }[] = []
  const jobTimer = (plugin: string) => {
    const add = (_when: unknown, run: () => Promise<void>) => {
      jobs.push({ plugin, run })
      return () => undefined
    }
    return { every: add, cron: add }
  }
  await using host = await startHost({ home, config, listen: false, jobTimer })
  const failed = host.app.daemon.plugins().filter(({ state }) => state !== 'loaded')
  const { paths } = (await host.json('GET', '/api/openapi.json')).body
  const lists = Object.entries<Json>(paths).filter(
    // That of the security systems runs all their probes, as their job does.
    ([path, { get }]) =>
      get && !/[{]|^\/api\/security/.test(path) && !JSON.stringify(get).includes('text/event-stream'),
  )
  const wrong: unknown[] = []
  for (const [path] of lists) {
    const answer = await host.fetch(path)
    const text = await answer.text()
    if (answer.status === 500) wrong.push([path, text])
  }
  for (const { plugin, run } of jobs) if (plugin !== 'security') await run()
  expect([failed, wrong, host.defects()]).toEqual([[], [], []])
  const named = new Set(host.log.map((line) => / error \[[\w-]+\] the row of (\w+) with /.exec(line)?.[1]))
  expect([...named]).toEqual(
    expect.arrayContaining([
      'agents_agent',
      'journal_turn',
      'queue_job',
      'a2a_task',
      'a2a_agent',
      'a2a_sent',
      'approvals_request',
      'catalog_model',
      'channels_account',
      'channels_binding',
      'comms_event',
      'goals_goal',
      'mcp_server',
      'integrations_installed',
      'peers_pin',
      'schedules_job',
      'tasks_task',
      'triggers_trigger',
      'webhooks_target',
      'workflows_definition',
    ]),
  )
})
