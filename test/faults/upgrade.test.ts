import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { migrations as agents } from '../../plugins/agents/migrations.ts'
import { migrations as chat } from '../../plugins/chat/migrations.ts'
import { migrations as cluster } from '../../plugins/cluster/migrations.ts'
import { migrations as journal } from '../../plugins/journal/migrations.ts'
import { migrations as sessions } from '../../plugins/sessions/migrations.ts'
import type { Migration } from '../../core/storage/database.ts'
import { builtPackage } from '../support/built-package.ts'
import { byHand } from '../support/chat-stage.ts'
import { startDaemon } from '../support/daemon.ts'
import type { DaemonProcess } from '../support/daemon.ts'
import { startFakeProvider } from '../support/fake-provider.ts'
import { SHARED_VAULT_KEY } from '../support/host.ts'
import type { Json } from '../support/json.ts'
import { createTestDatabase } from '../support/postgres-server.ts'
import { temporaryFolder } from '../support/plugin-folder.ts'

/** Tables of a turn, and the plugins they belong to: the next version adds to each of them. */
const NEXT: readonly (readonly [readonly Migration[], readonly string[]])[] = [
  [agents, ['agents_agent']],
  [chat, ['chat_session_owner', 'chat_relayed_turn']],
  [cluster, ['cluster_member']],
  [journal, ['journal_turn', 'journal_effect']],
  [sessions, ['sessions_session', 'sessions_message']],
]

/** This build with a higher version, whose plugins have one migration more. */
async function buildNext(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-next-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  await cp(await builtPackage(), folder, { recursive: true, verbatimSymlinks: true })
  const facts = join(folder, 'dist/build.json')
  await writeFile(facts, JSON.stringify({ ...JSON.parse(await readFile(facts, 'utf8')), version: '99.0.0' }))
  const core = join(folder, 'dist/core')
  const name = (await readdir(core)).find((file) => file.startsWith('built-ins-')) ?? ''
  let text = await readFile(join(core, name), 'utf8')
  for (const [migrations, tables] of NEXT) {
    const sql = tables.map((table) => `ALTER TABLE ${table} ADD COLUMN next_note TEXT`).join(';')
    const id = `id: "${migrations.at(-1)?.id}"`
    // Other plugins may have one of this name: that of this one comes behind its first table.
    const at = text.lastIndexOf('{', text.indexOf(id, text.indexOf(`CREATE TABLE ${tables[0]} (`)))
    text = `${text.slice(0, at)}{ id: "999-next", sql: ${JSON.stringify(sql)} }, ${text.slice(at)}`
  }
  await writeFile(join(core, name), text)
  return join(folder, 'dist/svc.js')
}

async function writeHome(folder: string, name: string, config: string): Promise<string> {
  const home = join(folder, name)
  await mkdir(home, { mode: 0o700 })
  await writeFile(join(home, 'config.toml'), `${config}\n[plugins.cluster]\nname = "${name}"\nnotice_secs = 0\n`)
  return home
}
const call = async (daemon: DaemonProcess, method: string, path: string, body?: object): Promise<Json> => {
  const answer = await fetch(`${daemon.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
  return JSON.parse(text)
}

it('a daemon of the next version joins, both answer, and the old one drains', async () => {
  await using folder = await temporaryFolder()
  const next = buildNext()
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const fake = await startFakeProvider()
  onTestFinished(() => fake[Symbol.asyncDispose]())
  const config = `database_url = "${database.url}"
default_provider = "openai"
default_model = "fake-1"
[providers.openai]
base_url = "${fake.url}"
api_key = "test-key"`
  const start = async (name: string, file?: string): Promise<DaemonProcess> => {
    const home = await writeHome(folder.path, name, config)
    const daemon = await startDaemon({
      home,
      env: { SVC_VAULT_KEY: SHARED_VAULT_KEY },
      ...(file !== undefined && { file }),
    })
    onTestFinished(() => daemon[Symbol.asyncDispose]())
    return daemon
  }
  const old = await start('old')
  const agent = (await call(old, 'GET', '/api/agents'))[0].id as string
  const say = async (daemon: DaemonProcess, message: string): Promise<string> =>
    (await call(daemon, 'POST', `/api/agents/${agent}/message`, { message })).response
  // What it has prepared it has prepared for the tables as they are.
  for (const message of ['one', 'two']) expect(await say(old, message)).toBe('Hello from the fake.')

  const words = byHand()
  fake.script({ text: words.text })
  const running = say(old, 'three')
  await fake.request(2)
  const fresh = await start('fresh', await next)
  expect(await database.query("SELECT count(*) FROM core_migration WHERE id = '999-next'")).toBe(String(NEXT.length))
  // It waits behind the turn that runs at the old one.
  const relayed = say(fresh, 'four')
  words.say('Begun before and ended after.')
  words.end()
  expect(await running).toBe('Begun before and ended after.')
  expect(await relayed).toBe('Hello from the fake.')
  for (const daemon of [old, fresh, old]) expect(await say(daemon, 'five')).toBe('Hello from the fake.')
  const { members } = await call(fresh, 'GET', '/api/cluster')
  expect(members.map(({ name, version }: Json) => [name, version])).toEqual([
    ['old', expect.not.stringMatching('99.0.0')],
    ['fresh', '99.0.0'],
  ])

  // As a service manager ends it.
  expect(await old.stop()).toBe(0)
  expect((await call(fresh, 'GET', '/api/cluster')).members).toHaveLength(1)
  expect(await say(fresh, 'six')).toBe('Hello from the fake.')
  const shown = (await call(fresh, 'GET', `/api/agents/${agent}/session`)).messages as readonly Json[]
  expect(shown.filter(({ role }) => role === 'User').map(({ content }) => content)).toEqual([
    'one',
    'two',
    'three',
    'four',
    'five',
    'five',
    'five',
    'six',
  ])
  // One of the old version that starts again is as useful as it was.
  const late = await start('late')
  expect(late.output()).toContain('it was used with a newer version')
  expect(await say(late, 'seven')).toBe('Hello from the fake.')
})
