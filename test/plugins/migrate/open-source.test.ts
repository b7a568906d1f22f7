import { chown, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openSource } from '../../../plugins/migrate/source/open-source.ts'
import { candidates } from '../../../plugins/migrate/detect.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-migrate-source-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const limits = {
  maxEntries: 20_000,
  maxFileBytes: 100_000,
  maxDatabaseBytes: 1_000_000,
  maxSessions: 20_000,
  maxMemories: 20_000,
  maxMessages: 4,
  foreignOwner: false,
}
const open = (path: string, more: Partial<typeof limits> = {}) =>
  openSource(path, undefined, {
    limits: { ...limits, ...more },
    denied: [join(folder, 'svc')],
    scratchDir: join(folder, 'scratch'),
  })
const line = (role: string, text: string, id: number) =>
  JSON.stringify({ type: 'message', id: `${id}`, timestamp: 1_770_000_000_000 + id, message: { role, content: text } })

describe('a large source', () => {
  it('has 10,000 conversations, read one at a time; beyond a limit the rest is named', async () => {
    const path = join(folder, 'large')
    const sessions = join(path, 'agents', 'main', 'sessions')
    await mkdir(sessions, { recursive: true })
    await writeFile(join(path, 'openclaw.json'), '{}')
    const text = `${line('user', 'hello', 1)}\n`
    for (let from = 0; from < 10_000; from += 500)
      await Promise.all(Array.from({ length: 500 }, (_, at) => writeFile(join(sessions, `${from + at}.jsonl`), text)))
    await using source = await open(path)
    expect(source.home.sessions).toHaveLength(10_000)
    expect((await source.home.sessions.at(-1)?.read())?.messages).toHaveLength(1)
    await using few = await open(path, { maxSessions: 10 })
    expect(few.home.sessions).toHaveLength(10)
    expect(few.home.left).toContainEqual({
      kind: 'session',
      name: 'agents/main/sessions',
      reason: 'it has more than 10 sessions: raise plugins.migrate.max_sessions',
    })
    await expect(open(path, { maxEntries: 5_000 })).rejects.toMatchObject({ code: 'payload_too_large' })
  })

  it('has long conversations, large files and lines that are none: the newest messages come over', async () => {
    const path = join(folder, 'long')
    const sessions = join(path, 'agents', 'main', 'sessions')
    await mkdir(sessions, { recursive: true })
    await writeFile(join(path, 'openclaw.json'), '{}')
    const lines = Array.from({ length: 6 }, (_, at) => line(at % 2 === 0 ? 'user' : 'assistant', `m${at}`, at))
    await writeFile(join(sessions, 'long.jsonl'), `${lines.join('\n')}\n{"half":\n`)
    await writeFile(join(sessions, 'huge.jsonl'), 'x'.repeat(100_001))
    await using source = await open(path)
    const [huge, long] = source.home.sessions
    const transcript = await long?.read()
    expect(transcript?.messages.map(({ blocks }) => blocks[0])).toMatchObject([
      { text: 'm2' },
      { text: 'm3' },
      { text: 'm4' },
      { text: 'm5' },
    ])
    expect(transcript?.warnings).toEqual([
      'the oldest 2 of 6 messages are left out',
      '1 lines are no JSON and are left out',
    ])
    await expect(huge?.read()).rejects.toThrow('plugins.migrate.max_file_bytes')
  })

  it('has its conversations in SQLite since version 2026.7.2; nothing is written beside it', async () => {
    const path = join(folder, 'sqlite')
    const agent = join(path, 'agents', 'main', 'agent')
    await mkdir(agent, { recursive: true })
    await writeFile(join(path, 'openclaw.json'), '{}')
    const db = new Sqlite(join(agent, 'openclaw-agent.sqlite'))
    db.pragma('journal_mode = WAL')
    db.exec(`CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT);
      CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER);
      INSERT INTO session_windows VALUES ('s1', 'agent:main:main')`)
    const insert = db.prepare('INSERT INTO transcript_events VALUES (?, ?, ?, ?)')
    insert.run('s1', 1, line('assistant', 'second', 2), 2)
    insert.run('s1', 0, line('user', 'first', 1), 1)
    insert.run('s1', 2, 'broken', 3)
    // It is not closed: what was written last is in the log of the database.
    await using source = await open(path)
    const [session] = source.home.sessions
    expect(session?.label).toBe('agent:main:main')
    expect((await session?.read())?.messages.map(({ blocks }) => blocks[0])).toMatchObject([
      { text: 'first' },
      { text: 'second' },
    ])
    await using small = await open(path, { maxDatabaseBytes: 100 })
    expect(small.home.left[0]?.reason).toContain('plugins.migrate.max_database_bytes')
    db.close()
  })

  it('has its schedules in SQLite since version 2026.6.1, and older ones in a file beside it', async () => {
    const path = join(folder, 'schedules')
    await mkdir(join(path, 'state'), { recursive: true })
    await mkdir(join(path, 'cron'))
    await writeFile(join(path, 'openclaw.json'), '{}')
    await writeFile(join(path, 'kg.json'), '{"dbPath":"/srv/graph.db"}')
    const older = [
      { id: 'j1', name: 'As it was', schedule: { kind: 'every', everyMs: 1 }, payload: { message: 'Old.' } },
      { id: 'j9', name: 'Removed since', schedule: { kind: 'every', everyMs: 60_000 }, payload: { message: 'Old.' } },
    ]
    await writeFile(join(path, 'cron', 'jobs.json'), JSON.stringify({ version: 1, jobs: older }))
    const db = new Sqlite(join(path, 'state', 'openclaw.sqlite'))
    db.exec(`CREATE TABLE cron_jobs (store_key TEXT, job_id TEXT, name TEXT, enabled INTEGER, delete_after_run INTEGER,
      agent_id TEXT, schedule_kind TEXT, schedule_expr TEXT, schedule_tz TEXT, every_ms INTEGER, at TEXT,
      session_target TEXT, trigger_script TEXT, payload_kind TEXT, payload_message TEXT, delivery_channel TEXT,
      delivery_to TEXT, PRIMARY KEY (store_key, job_id))`)
    await using empty = await open(path)
    expect(empty.home.jobs.map(({ key }) => key)).toEqual(['j1', 'j9'])

    const add = (row: Record<string, string | number>): void => {
      const all = { store_key: 'a', enabled: 1, agent_id: 'main', payload_kind: 'agentTurn', ...row }
      const names = Object.keys(all)
      db.prepare(`INSERT INTO cron_jobs (${names.join(', ')}) VALUES (${names.map(() => '?').join(', ')})`).run(
        ...Object.values(all),
      )
    }
    const everyHour = { schedule_kind: 'every', every_ms: 3_600_000, payload_message: 'Look.' }
    const morning = { schedule_kind: 'cron', schedule_expr: '0 7 * * *', schedule_tz: 'Europe/Berlin' }
    const sent = { delivery_channel: 'telegram', delivery_to: '42' }
    add({ job_id: 'j1', name: 'Morning', ...morning, payload_message: 'Read the news.', ...sent })
    add({ job_id: 'j1', name: 'Of another store', ...everyHour, store_key: 'b', payload_kind: 'systemEvent' })
    add({
      job_id: 'j2',
      name: 'Once',
      schedule_kind: 'at',
      at: '2036-01-01T00:00:00Z',
      payload_message: 'Now.',
      delete_after_run: 1,
      session_target: 'main',
    })
    add({ job_id: 'j3', name: 'Program', ...everyHour, payload_kind: 'command' })
    add({ job_id: 'j4', name: 'Watch', ...everyHour, trigger_script: 'return true' })
    db.close()
    await using source = await open(path)
    expect(source.home.jobs).toEqual([
      {
        key: 'j1',
        name: 'Morning',
        agent: 'main',
        body: {
          name: 'Morning',
          schedule: { kind: 'cron', expr: '0 7 * * *', tz: 'Europe/Berlin' },
          prompt: 'Read the news.',
          session_mode: 'new',
        },
        warnings: ['its answers went to telegram 42: add that as delivery_targets'],
      },
      expect.objectContaining({ key: 'b j1', name: 'Of another store' }),
      expect.objectContaining({
        key: 'j2',
        body: {
          name: 'Once',
          schedule: { kind: 'at', at: '2036-01-01T00:00:00.000Z' },
          prompt: 'Now.',
          one_shot: true,
          session_mode: 'persistent',
        },
      }),
    ])
    expect(source.home.left).toEqual([
      { kind: 'cron', name: 'Program', reason: expect.stringContaining('only what an agent is asked') },
      { kind: 'cron', name: 'Watch', reason: expect.stringContaining('a program of the other system') },
      { kind: 'cron', name: 'Removed since', reason: expect.stringContaining('cron/jobs.json only') },
      { kind: 'config', name: 'kg.json', reason: expect.stringContaining('graph of knowledge') },
    ])
  })

  it('has a database that is none: it stays behind', async () => {
    const path = join(folder, 'damaged')
    await mkdir(join(path, 'data'), { recursive: true })
    await writeFile(join(path, 'data', 'openfang.db'), 'not a database'.repeat(400))
    await using source = await open(path)
    expect(source.home.left).toEqual([
      { kind: 'config', name: 'data/openfang.db', reason: expect.stringContaining('file is not a database') },
    ])
  })
})

describe('broken files', () => {
  const nested = '['.repeat(5_000)
  const bomb = `a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n`
  it.each([
    ['openclaw.json', '{ agents: ', 'config openclaw.json'],
    ['openclaw.json', nested, 'config openclaw.json'],
    ['agents/main/agent/auth-profiles.json', '{"profiles":', 'agent agents/main/agent/auth-profiles.json'],
    ['agents/main/sessions/sessions.json', '[[[', 'session agents/main/sessions/sessions.json'],
    ['cron/jobs.json', 'no JSON', 'config cron/jobs.json'],
    ['config.toml', 'a = [', 'config config.toml'],
    ['agents/scout/agent.toml', 'name = ', 'agent agents/scout/agent.toml'],
    ['workflows/all.yaml', bomb, 'config workflows/all.yaml'],
    ['trigger_jobs.json', nested, 'config trigger_jobs.json'],
    ['cron_jobs.json', '{"a":1', 'config cron_jobs.json'],
  ])('%s that is %s stays behind alone', async (name, text, left) => {
    const path = await mkdtemp(join(folder, 'broken-openfang-'))
    const isClaw = /openclaw|main|cron\//.test(name)
    const good = isClaw
      ? { 'openclaw.json': '{}', 'workspace/MEMORY.md': '- It rains.\n' }
      : { 'config.toml': '', 'agents/other/agent.toml': 'name = "other"\n' }
    for (const [file, content] of Object.entries({ ...good, [name]: text })) {
      await mkdir(join(path, file, '..'), { recursive: true })
      await writeFile(join(path, file), content)
    }
    await using source = await open(path)
    expect(source.home.left.map(({ kind, name: at, reason }) => [`${kind} ${at}`, reason])).toEqual([
      [left, expect.stringMatching(/^it cannot be read: /)],
    ])
    expect(source.home.agents.map(({ key }) => key)).toEqual([isClaw ? 'main' : 'other'])
  })
})

it.runIf(process.getuid?.() === 0)(
  'a folder of another user is refused, and files of another user are left',
  async () => {
    const path = join(folder, 'foreign')
    await mkdir(path)
    await writeFile(join(path, 'openclaw.json'), '{}')
    await chown(join(path, 'openclaw.json'), 12_345, 12_345)
    await expect(open(path)).rejects.toThrow('is no home')
    await chown(path, 12_345, 12_345)
    await expect(open(path)).rejects.toMatchObject({ code: 'forbidden' })
    await using source = await open(path, { foreignOwner: true })
    expect(source.home.agents.map(({ key }) => key)).toEqual(['main'])
  },
)

it('homes are looked for where the systems put them', () => {
  const found = candidates({ OPENCLAW_STATE_DIR: '/srv/claw', OPENFANG_HOME: 'relative', APPDATA: '/app' }, '/home/ada')
  expect(found.map(({ path }) => path)).toEqual([
    '/srv/claw',
    ...['.openclaw', '.clawdbot', '.moldbot', '.moltbot', 'openclaw', '.config/openclaw'].map(
      (at) => `/home/ada/${at}`,
    ),
    '/app/openclaw',
    '/home/ada/.openfang',
    '/home/ada/.librefang',
  ])
})
