import { appendFile, mkdir, mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { renameSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { refuseUnsupported } from '../../../plugins/migrate/detect.ts'
import { HomeDraft } from '../../../plugins/migrate/model.ts'
import { readChannels } from '../../../plugins/migrate/readers/channels.ts'
import { splitMemories } from '../../../plugins/migrate/readers/memories.ts'
import { openSource } from '../../../plugins/migrate/source/open-source.ts'
import { SourceFolder } from '../../../plugins/migrate/source/source-folder.ts'
import { readVariables } from '../../../plugins/migrate/source/values.ts'
import { startHost } from '../../support/host.ts'
import { turnPlugins } from '../plugin-test.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-migrate-hostile-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const limits = {
  maxEntries: 20_000,
  maxFileBytes: 4_000_000,
  maxDatabaseBytes: 100_000_000,
  maxSessions: 100,
  maxMessages: 4,
  maxMemories: 5,
  foreignOwner: false,
}
const open = (path: string, denied: readonly string[] = []) =>
  openSource(path, undefined, { limits, denied, scratchDir: join(folder, 'scratch') })
async function write(files: Readonly<Record<string, string>>): Promise<string> {
  const path = await mkdtemp(join(folder, 'openclaw-'))
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(path, name)), { recursive: true })
    await writeFile(join(path, name), text)
  }
  return path
}
/** Microseconds of the processor. */
function costOf(work: () => unknown): number {
  const before = process.cpuUsage()
  work()
  return process.cpuUsage(before).user
}

describe('names that every object has', () => {
  const names = ['constructor', '__proto__', 'toString', 'hasOwnProperty']

  it('are no channels, no policies and no systems', () => {
    const draft = new HomeDraft(limits)
    for (const name of names) {
      const section = JSON.parse(
        `{"${name}": {}, "telegram": {"token": "1:a", "dmPolicy": "${name}", "groupPolicy": "${name}"}}`,
      )
      readChannels(draft, { section, variables: () => undefined, foundSecret() {} })
      expect(() => refuseUnsupported(name)).not.toThrow()
    }
    expect(draft.left.map(({ reason }) => reason)).toEqual(names.map(() => 'there is no counterpart of it here'))
    for (const { fields } of draft.channels)
      expect(fields).toMatchObject({ dm_policy: 'allowed_only', group_policy: 'mention_only' })
  })

  it('leave the rest of a home as it is', async () => {
    const tables = names.map((name) => `"${name}": {}`).join(', ')
    const path = await write({
      'openclaw.json': `{ ${tables}, channels: { ${tables} }, models: { providers: { ${tables} } }, env: { ${tables} },
        agents: { list: [{ id: 'constructor', name: '__proto__' }, { id: 'main', ${tables} }] } }`,
      'workspace/MEMORY.md': '- It rains.\n',
    })
    await using host = await startHost({
      plugins: [...turnPlugins, 'memory', 'queue', 'usage', 'migrate'],
      listen: false,
    })
    const scanned = await host.json('POST', '/api/migrate/scan', { path })
    expect([scanned.status, scanned.body.agents?.length]).toEqual([200, 2])
    expect((await host.json('POST', '/api/migrate', { source: path })).status).toBe(200)
    expect(host.defects()).toEqual([])
  })
})

describe('a text as large as a file may be', () => {
  const size = 200_000
  it.each(['<!--', '<!-- -->', '\n', ' ', '- ', '# ', '-\t', '* * ', '#', '1. ', '<!-', '--'])(
    'that is full of %j is read at once',
    (part) => {
      const text = part.repeat(Math.floor(size / part.length))
      for (const end of ['', 'x', '\u2028x'])
        for (const start of ['', '# ', '- ', '<!-- '])
          expect(costOf(() => [...splitMemories(`${start}${text}${end}`)])).toBeLessThan(1_000_000)
    },
  )
  it.each([' ', '=', 'A=', '"', 'A = ', 'export '])('that is full of %j has its variables read at once', (part) => {
    const text = part.repeat(Math.floor(size / part.length))
    for (const end of ['', 'x', '\u2028x'])
      for (const start of ['', 'A=', 'A=x', 'export '])
        expect(costOf(() => readVariables(`${start}${text}${end}`))).toBeLessThan(1_000_000)
  })
  it('is read as before', () => {
    const text =
      '# Ann \n<!-- no\n- nor this -->- likes tea\n\n1) and\n  rain\n***\n## Bob ##\nis\ntall\n---\n+ x <!-- open\n- y'
    expect([...splitMemories(text)]).toEqual([
      { content: 'likes tea', category: 'Ann' },
      { content: 'and rain', category: 'Ann' },
      { content: 'is tall', category: 'Bob' },
      { content: 'x <!-- open', category: 'Bob' },
      { content: 'y', category: 'Bob' },
    ])
    expect([...readVariables(` export A = "x y" \nB='' \n C=a"b\nD\n1=2\nE= \r\nF="`)]).toEqual([
      ['A', 'x y'],
      ['B', ''],
      ['C', 'a"b'],
      ['E', ''],
      ['F', '"'],
    ])
  })
})

describe('more than there may be', () => {
  it('of memories: the first ones come over, and the rest is named', async () => {
    const many = Array.from({ length: 100_000 }, (_, at) => `- It rained ${at} times.`).join('\n')
    const path = await write({ 'openclaw.json': '{}', 'workspace/MEMORY.md': many, 'workspace/memory/a.md': '- More.' })
    await using source = await open(path)
    expect(source.home.memories).toHaveLength(5)
    expect(source.home.left).toEqual([
      { kind: 'memory', name: 'memories', reason: 'there are more than 5: raise plugins.migrate.max_memories' },
    ])
  })

  it('of the bytes of a conversation in a database: it stays behind', async () => {
    const path = await write({ 'openclaw.json': '{}', 'agents/main/agent/none': '' })
    const db = new Sqlite(join(path, 'agents/main/agent/openclaw-agent.sqlite'))
    db.exec('CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, created_at INTEGER)')
    const insert = db.prepare('INSERT INTO transcript_events VALUES (?, ?, ?, ?)')
    const text = 'x'.repeat(100_000)
    for (let seq = 0; seq < 50; seq++)
      insert.run('large', seq, JSON.stringify({ type: 'message', message: { role: 'user', content: text } }), seq + 1)
    insert.run('small', 0, JSON.stringify({ type: 'message', message: { role: 'user', content: 'hello' } }), 1)
    db.close()
    await using source = await open(path)
    const byKey = new Map(source.home.sessions.map((session) => [session.key, session]))
    await expect(byKey.get('main/large')?.read()).rejects.toThrow('plugins.migrate.max_file_bytes')
    expect((await byKey.get('main/small')?.read())?.messages).toHaveLength(1)
  })
})

it('a file that is large and almost empty fills no disk when it is copied', async () => {
  const path = await write({ 'state.db': 'begin' })
  await truncate(join(path, 'state.db'), 64_000_000)
  await appendFile(join(path, 'state.db'), 'end')
  await using source = await SourceFolder.open(path, [], limits)
  const copy = join(folder, 'copy.db')
  expect(await source.copy('state.db', copy)).toBe(true)
  const { size, blocks } = await stat(copy)
  expect([size, blocks * 512 < 4_000_000]).toEqual([64_000_003, true])
  expect((await readFile(copy)).equals(await readFile(join(path, 'state.db')))).toBe(true)
})

it('a folder that is put in the place of the one that was looked at is not read', async () => {
  const home = join(folder, 'home')
  const above = join(folder, 'above')
  await mkdir(join(home, 'openclaw'), { recursive: true })
  await mkdir(join(above, 'openclaw'), { recursive: true })
  await writeFile(join(home, 'openclaw', 'openclaw.json'), '{ agents: { list: [{ id: "secret" }] } }')
  await writeFile(join(above, 'openclaw', 'openclaw.json'), '{}')
  /** The folder above becomes a link to the home while the path is being compared with it. */
  class Swapping extends Array<string> {
    override *[Symbol.iterator](): ArrayIterator<string> {
      yield home
      renameSync(above, `${above}-before`)
      symlinkSync(home, above)
    }
  }
  await expect(open(join(above, 'openclaw'), new Swapping())).rejects.toMatchObject({ code: 'forbidden' })
})
