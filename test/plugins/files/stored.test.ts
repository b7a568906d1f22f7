import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { randomUUID } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { omitUndefined } from 'svc/sdk'
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest'
import { systemTimer } from '../../../core/jobs/timer.ts'
import type { JobTimer } from '../../../core/jobs/timer.ts'
import { eventually } from '../../support/eventually.ts'
import { runHere } from '../../core/cli/here.ts'
import { SHARED_VAULT_KEY } from '../../support/host.ts'
import type { HostOptions } from '../../support/host.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'
import { createTestDatabase } from '../../support/postgres-server.ts'
import type { TestDatabase } from '../../support/postgres-server.ts'
import { openTools } from '../../support/tool-stage.ts'
import type { ToolStage } from '../../support/tool-stage.ts'

/** Workspaces in the database: what one daemon writes is there at the other. */
let database: TestDatabase
let one: ToolStage
let two: ToolStage
let agent: string
beforeAll(async () => {
  database = await createTestDatabase()
  one = await open(database.url, 'database')
  two = await open(database.url, 'database')
  agent = await one.spawn('filer', 'shell = ["*"]')
})
afterAll(async () => {
  await two?.[Symbol.asyncDispose]()
  await one?.[Symbol.asyncDispose]()
  await database?.[Symbol.asyncDispose]()
})

function open(
  url: string,
  mount: 'database' | 'folder',
  home?: string,
  jobTimer?: HostOptions['jobTimer'],
): Promise<ToolStage> {
  const caps = { max_copy_bytes: 8_000, max_copy_files: 30, sweep_hours: 2 }
  const config = {
    database_url: url,
    plugins: { files: { mount, max_file_bytes: 1000, max_upload_bytes: 2000, ...caps } },
  }
  const given = omitUndefined({ home, jobTimer })
  return openTools(['shell', 'approvals'], { memory: false, config, ...given })
}
const put = async (of: string, name: string, content: string, at = one) => {
  expect((await at.host.json('PUT', `/api/agents/${of}/files/${name}`, { content })).status).toBe(200)
}
/** Where a daemon keeps copies for programs. */
const copiesOf = ({ host }: ToolStage) => join(host.home, 'data/workspaces')
const path = (name = '') => `/api/agents/${agent}/files${name === '' ? '' : `/${name}`}`

it('files that a tool writes at one are read, searched, patched and listed at the other', async () => {
  expect((await one.call(agent, 'file_write', { path: 'notes/a.txt', content: 'hello\nworld\n' })).text).toContain(
    'Created "notes/a.txt"',
  )
  expect(await two.call(agent, 'file_read', { path: './notes/a.txt' })).toEqual({
    text: 'hello\nworld\n',
    failed: false,
  })
  const patch =
    '*** Begin Patch\n*** Update File: notes/a.txt\n@@\n-hello\n+goodbye\n*** Add File: b.txt\n+b\n*** End Patch'
  expect((await two.call(agent, 'apply_patch', { patch })).text).toBe('Done: changed "notes/a.txt", added "b.txt".')
  for (const search of ['.', 'notes', 'notes/a.txt'])
    expect((await one.call(agent, 'code_search', { query: 'goodbye', path: search })).text).toBe(
      'notes/a.txt:1: goodbye',
    )
  expect(await one.json(agent, 'file_list', { path: 'notes' })).toEqual({
    entries: [{ name: 'a.txt', type: 'file', size_bytes: 14 }],
    total: 1,
  })
  expect((await one.json(agent, 'file_list', { path: '.' })).entries).toContainEqual({ name: 'notes', type: 'folder' })
  const { files } = (await two.host.json('GET', path())).body
  expect(files.filter(({ exists }: { exists: boolean }) => exists).map(({ name }: { name: string }) => name)).toEqual(
    expect.arrayContaining(['SOUL.md', 'b.txt', 'notes/a.txt']),
  )
})

it('an upload at one is read at the other, and goes with its agent', async () => {
  const { body } = await one.host.json('POST', '/api/agents', { manifest_toml: 'name = "receiver"' })
  const sent = await one.host.fetch(`/api/agents/${body.agent_id}/upload`, {
    method: 'POST',
    body: 'a'.repeat(1500),
    headers: { 'x-filename': 'long.txt', 'content-type': 'text/plain' },
  })
  const { file_id: id } = (await sent.json()) as { file_id: string }
  expect(await (await two.host.fetch(`/api/uploads/${id}`)).text()).toBe('a'.repeat(1500))
  expect((await two.host.json('DELETE', `/api/agents/${body.agent_id}`)).status).toBeLessThan(300)
  expect(await database.query(`SELECT count(*) FROM files_stored WHERE agent_id = '${body.agent_id}'`)).toBe('0')
})

it('names and sizes are checked as in a folder', async () => {
  for (const name of [
    '../x',
    '/etc/passwd',
    'a/../../x',
    '~/x',
    'C:/x',
    'a\0b',
    '%2e%2e/x',
    '.',
    '',
    'con',
    'a/'.repeat(600),
  ])
    for (const [tool, args] of [
      ['file_read', { path: name }],
      ['create_directory', { path: name }],
    ] as const)
      expect([name, tool, (await one.call(agent, tool, args)).failed]).toEqual([name, tool, true])
  const put = async (name: string, content = 'x') => {
    const { status, body } = await one.host.json('PUT', path(name), { content })
    return [status, body.error?.message]
  }
  expect(await put('b.txt/c')).toEqual([403, expect.stringContaining('"b.txt" is a file')])
  expect(await put('notes')).toEqual([403, expect.stringContaining('it is a folder')])
  expect(await put('large', 'x'.repeat(1001))).toEqual([413, expect.stringContaining('at most 1000 bytes')])
  for (const name of ['%2e%2e%2fx', '%252e%252e/x', 'con', 'a%5cb', '%7e/x'])
    expect([name, (await put(name))[0]]).toEqual([name, expect.toSatisfy((status) => status === 400 || status === 403)])
  expect((await one.call(agent, 'file_read', { path: 'notes' })).text).toContain('is a folder')
  expect((await one.host.json('DELETE', path('missing'))).status).toBe(404)
  expect((await one.host.json('DELETE', path('b.txt'))).status).toBe(200)
})

it('a program works on a copy, and what it made, changed and removed is there at the other', async () => {
  for (const name of ['p/changed.txt', 'p/gone.txt', 'p/same.txt']) await put(agent, name, 'before\n')
  const command =
    'cd p && cat same.txt && echo after >> changed.txt && rm gone.txt && mkdir q && echo new > q/new.txt && ln -s q l && echo x > $TMPDIR/y'
  expect(await two.call(agent, 'shell_exec', { command: `sh -c '${command}'` })).toEqual({
    text: 'exit code 0\nbefore\n',
    failed: false,
  })
  const list = async (path: string) => (await one.json(agent, 'file_list', { path })).entries
  expect(await list('p')).toEqual([
    { name: 'changed.txt', type: 'file', size_bytes: 13 },
    { name: 'q', type: 'folder' },
    { name: 'same.txt', type: 'file', size_bytes: 7 },
  ])
  expect((await one.call(agent, 'file_read', { path: 'p/changed.txt' })).text).toBe('before\nafter\n')
  expect((await one.call(agent, 'file_read', { path: 'p/q/new.txt' })).text).toBe('new\n')
  expect((await two.call(agent, 'shell_exec', { command: 'cat nothing' })).text).toContain('exit code 1')
  expect((await readdir(copiesOf(two))).filter((name) => name.startsWith('.copy.'))).toEqual([])
})

it.each(['database', 'sqlite'])(
  'of two programs that change one file the second is told, and nothing of it is kept: %s',
  async (where) => {
    const home = await mkdtemp(join(tmpdir(), 'svc-stored-'))
    onTestFinished(() => rm(home, { recursive: true, force: true }))
    await using first = await open(where === 'database' ? database.url : `sqlite:${join(home, 'svc.db')}`, 'database')
    const second = where === 'database' ? one : first
    const worker = await first.spawn(`worker-${where}`, 'shell = ["*"]')
    const run = (at: ToolStage, command: string) => at.call(worker, 'shell_exec', { command: `sh -c "${command}"` })
    for (const theirs of ['echo two > c.txt', 'rm c.txt', 'echo two > new.txt']) {
      await put(worker, 'c.txt', 'before', second)
      await second.host.json('DELETE', `/api/agents/${worker}/files/new.txt`)
      const running = run(
        first,
        'echo one > c.txt; echo one > new.txt; echo one > other.txt; while [ ! -e go ]; do sleep 0.05; done',
      )
      const copy = await eventually(async () => {
        const found = (await readdir(copiesOf(first))).find((name) => name.startsWith('.copy.')) ?? ''
        await stat(join(copiesOf(first), found, 'files/other.txt'))
        return join(copiesOf(first), found)
      })
      expect((await run(second, theirs)).failed).toBe(false)
      await writeFile(join(copy, 'files/go'), '')
      const name = theirs.split(' ').at(-1)
      expect(await running).toEqual({
        text: expect.stringContaining(
          `not kept: "${name}" changed elsewhere while the program ran: read it again\nexit code 0`,
        ),
        failed: true,
      })
      expect((await second.call(worker, 'file_read', { path: 'other.txt' })).failed).toBe(true)
    }
  },
)

it('programs get no more than max_copy_bytes and max_copy_files, and what cannot be kept is named', async () => {
  const worker = await one.spawn('large', 'shell = ["*"]')
  const run = async (command: string) => (await one.call(worker, 'shell_exec', { command: `sh -c '${command}'` })).text
  expect(await run('head -c 1500 /dev/zero > big')).toMatch(/not kept: .*at most 1000 bytes/)
  expect(await run('ln SOUL.md hard')).toContain('not kept: "SOUL.md" has a hard link now')
  expect(await run('touch a:b')).toContain('not kept: The name of the file has a colon')
  expect(await run('for i in 1 2 3 4 5 6 7 8 9; do head -c 900 /dev/zero > $i; done')).toMatch(
    /not kept: .*max_copy_bytes/,
  )
  expect(await run('i=0; while [ $i -lt 40 ]; do touch f$i; i=$((i+1)); done')).toMatch(/not kept: .*max_copy_files/)
  for (const name of '123456789') await put(worker, name, 'x'.repeat(900))
  expect(await run('true')).toMatch(/^The workspace has .*max_copy_bytes/)
})

it('a program that goes on running is refused, with what to do', async () => {
  const { text, failed } = await one.call(agent, 'process_start', { command: 'cat' })
  expect([failed, text]).toEqual([true, expect.stringMatching(/plugins\.files\.mount = "database".*shell_exec/)])
})

it('files whose agent is gone are removed by one daemon, and that is in the audit log', async () => {
  await using made = await createTestDatabase()
  const sweeps: (() => Promise<void>)[] = []
  const jobTimer = (plugin: string): JobTimer => ({
    ...systemTimer,
    every(ms, run) {
      if (plugin !== 'files') return systemTimer.every(ms, run)
      if (ms === 7_200_000) sweeps.push(run)
      return () => undefined
    },
  })
  await using oldest = await open(made.url, 'database', undefined, jobTimer)
  await using other = await open(made.url, 'database', undefined, jobTimer)
  const kept = await other.spawn('kept')
  await put(kept, 'kept.txt', 'kept', oldest)
  await made.query(`INSERT INTO files_workspace (agent_id) VALUES ('gone')`)
  await made.query(`INSERT INTO files_stored (agent_id, path, size_bytes, modified_at, content)
    VALUES ('gone', 'a', 1, '2026', 'a'), ('gone', 'b', 1, '2026', 'b')`)
  const left = () => made.query(`SELECT count(*) FROM files_stored WHERE agent_id = 'gone'`)
  expect(sweeps).toHaveLength(2)
  await sweeps[1]?.()
  expect(await left()).toBe('2')
  await sweeps[0]?.()
  expect(await left()).toBe('0')
  expect(await oldest.audit('file_access')).toContain('2 files of an agent that is gone were removed')
  expect((await other.call(kept, 'file_read', { path: 'kept.txt' })).text).toBe('kept')
})

it('svc cluster join refuses a home whose files would lie elsewhere, and says what to set', async () => {
  await using folder = await temporaryFolder()
  const { path: home } = folder
  const join_ = () => runHere(['cluster', 'join', database.url, '--home', home], { SVC_VAULT_KEY: SHARED_VAULT_KEY })
  const local = await join_()
  expect([local.code, local.stderr]).toEqual([
    5,
    expect.stringMatching(
      /lie in the database for the other daemons, and in the folder .*workspaces for this home[^]*nothing was written; set plugins\.files\.mount = "database"/,
    ),
  ])
  expect(await readdir(home)).not.toContain('config.toml')
  const set = (lines: string) => writeFile(join(home, 'config.toml'), lines, { mode: 0o600 })
  await set('[plugins.files]\nmount = "s3"\ns3 = { bucket = "agents", access_key_id = "a", secret_access_key = "b" }')
  expect((await join_()).stderr).toContain('and in the bucket agents/ at us-east-1 for this home')
  await set('[plugins.files]\nmount = "database"')
  expect((await join_()).code).toBe(0)
})

it('folders of before are taken in once, and a daemon that works on other files is named', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-stored-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  await using shared = await createTestDatabase()
  const folder = await open(shared.url, 'folder', home)
  const kept = await folder.spawn('kept')
  await folder.call(kept, 'file_write', { path: 'old.txt', content: 'old' })
  {
    await using elsewhere = await open(shared.url, 'folder')
    const { members } = (await elsewhere.host.json('GET', '/api/cluster')).body
    expect(members.map(({ problems }: { problems: readonly string[] }) => problems.length).toSorted()).toEqual([0, 1])
    expect(JSON.stringify(members)).toContain('the files of its agents are not those of the daemon that answers')
  }
  await folder[Symbol.asyncDispose]()
  await mkdir(join(home, 'data/workspaces/no-agent'))
  await writeFile(join(home, 'data/workspaces/no-agent/x'), 'x')
  await mkdir(join(home, 'data/workspaces/.copy.of-before/files'), { recursive: true })
  await using moved = await open(shared.url, 'database', home)
  await using beside = await open(shared.url, 'database')
  expect((await beside.call(kept, 'file_read', { path: 'old.txt' })).text).toBe('old')
  expect(moved.host.log.join()).toContain('1 programs were cut off')
  expect(await readdir(join(home, 'data/workspaces'))).not.toContain('.copy.of-before')
  expect(
    (await moved.host.json('GET', '/api/cluster')).body.members.flatMap(
      (member: { problems: string[] }) => member.problems,
    ),
  ).toEqual([])
})

it('the folder that was in use is taken in also when its path went with the change', async () => {
  const [home, share] = [await mkdtemp(join(tmpdir(), 'svc-stored-')), await mkdtemp(join(tmpdir(), 'svc-share-'))]
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  onTestFinished(() => rm(share, { recursive: true, force: true }))
  await writeFile(join(share, '.mount'), randomUUID())
  await using shared = await createTestDatabase()
  const start = (files: object) =>
    openTools([], { memory: false, home, config: { database_url: shared.url, plugins: { files } } })
  const folder = await start({ path: share })
  const kept = await folder.spawn('kept')
  await folder.call(kept, 'file_write', { path: 'new.txt', content: 'new' })
  await folder[Symbol.asyncDispose]()
  // Where they were before `path` was set.
  await mkdir(join(home, 'data/workspaces', kept), { recursive: true })
  await writeFile(join(home, 'data/workspaces', kept, 'new.txt'), 'old')
  await rename(share, `${share}-away`)
  await expect(start({ mount: 'database' })).rejects.toThrow(`were in ${share}, which is not there`)
  await rename(`${share}-away`, share)
  await using stored = await start({ mount: 'database' })
  expect((await stored.call(kept, 'file_read', { path: 'new.txt' })).text).toBe('new')
})
