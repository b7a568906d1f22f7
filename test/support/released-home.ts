import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gunzipSync, gzipSync } from 'node:zlib'
import Sqlite from 'better-sqlite3'
import { startHost } from './host.ts'
import type { TestHost } from './host.ts'
import type { Json } from './json.ts'
import { writeOpenFang } from './openfang-source.ts'

/**
 * Homes of released versions: a folder for each, with its files, its database (packed) and what it answered. Make one of
 * the present version with `npm run fixture-home` when it is released, and never change it afterwards.
 */
const released = fileURLToPath(new URL('../fixtures/homes', import.meta.url))
const DATABASE = 'svc.db.gz'
const ANSWERS = 'answers.json'
/** Made anew, or of this machine. */
const NOT_KEPT = /^(svc\.db.*|snapshots|cache|logs?|.*\.lock|.*\.pid|reserve|migrations|plugin-processes)$/
/** What time alone changes. */
const OF_TIME = /^(next|age|uptime|score)(_|$)/

export type Answers = Readonly<Record<string, Json>>

export const releasedHomes = (): Promise<string[]> => readdir(released)

/** A copy of the home of a version, to start on, with what it answered then. */
export async function openReleased(version: string): Promise<{ readonly home: string; readonly answers: Answers }> {
  const home = await mkdtemp(join(tmpdir(), 'svc-released-'))
  const from = join(released, version)
  await cp(join(from, 'home'), home, { recursive: true })
  await mkdir(join(home, 'data'), { recursive: true })
  await writeFile(join(home, 'data', 'svc.db'), gunzipSync(await readFile(join(from, DATABASE))), { mode: 0o600 })
  return { home, answers: JSON.parse(await readFile(join(from, ANSWERS), 'utf8')) }
}

/** Makes a small home of the present version with data of each kind. Throws where one is there already. */
export async function makeReleased(version: string): Promise<string> {
  const to = join(released, version)
  const work = await mkdtemp(join(tmpdir(), 'svc-release-'))
  try {
    const [home, moved] = [join(work, 'home'), join(work, 'moved')]
    await mkdir(home)
    await fill(home, join(work, 'source'))
    // What differs in another folder, or after another start, is nothing that a later version could lose.
    await cp(home, moved, { recursive: true })
    const answers = common(await askHome(home), await askHome(moved))
    const db = new Sqlite(join(home, 'data', 'svc.db'))
    db.exec(`VACUUM INTO '${join(work, 'svc.db')}'`)
    db.close()
    await mkdir(released, { recursive: true })
    await mkdir(to)
    await cp(home, join(to, 'home'), {
      recursive: true,
      filter: (path) => path === home || !NOT_KEPT.test(path.slice(path.lastIndexOf('/') + 1)),
    })
    await writeFile(join(to, DATABASE), gzipSync(await readFile(join(work, 'svc.db')), { level: 9 }))
    await writeFile(join(to, ANSWERS), `${JSON.stringify(answers, undefined, 1)}\n`)
    return to
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function fill(home: string, source: string): Promise<void> {
  await writeOpenFang(source, ['one', 'two'])
  await writeFile(join(source, 'secrets.env'), 'GROQ_API_KEY=gsk-fixture-key-of-a-released-home\n')
  await using host = await startOn(home)
  const send = async (method: string, path: string, body: object): Promise<Json> => {
    const { status, body: answer } = await host.json(method, path, body)
    if (status >= 300) throw new Error(`${method} ${path} answered ${status}: ${JSON.stringify(answer)}`)
    return answer
  }
  const { skipped } = await send('POST', '/api/migrate', { source })
  if (skipped.length > 0) throw new Error(`not all came over: ${JSON.stringify(skipped)}`)
  const { agent_id: id } = await send('POST', '/api/agents', {
    manifest_toml: 'name = "talker"\n[model]\nprovider = "builtin"\nmodel = "offline"\n',
  })
  await send('POST', `/api/agents/${id}/message`, { message: 'hello, ü and 👋' })
  await send('PUT', `/api/memory/agents/${id}/kv/deep`, { value: { list: [1, 'two', null] } })
}

const startOn = (home: string): Promise<TestHost> =>
  startHost({ home, listen: false, fetch: () => Promise.reject(new Error('a home of a test sends nothing')) })

async function askHome(home: string): Promise<Answers> {
  await using host = await startOn(home)
  return await askAll(host)
}

/** What a home holds, by the path that shows it. */
export async function askAll(host: TestHost): Promise<Answers> {
  const found: Record<string, Json> = {}
  const ask = async (path: string): Promise<Json> => {
    const { status, body } = await host.json('GET', path)
    if (status !== 200) throw new Error(`GET ${path} answered ${status}: ${JSON.stringify(body)}`)
    return (found[path] = body)
  }
  const names = ['workflows', 'cron/jobs', 'triggers', 'memory', 'skills/skill-one', 'skills/skill-two']
  for (const name of names) await ask(`/api/${name}`)
  // Of these, what the home holds and not what the version says about it.
  const part = async (path: string, of: (body: Json) => Json): Promise<Json> => (found[path] = of(await ask(path)))
  await part('/api/channels/telegram', ({ account_list: list }) =>
    list.map(({ account_id: id, enabled, has_token: hasToken, config }: Json) => ({ id, enabled, hasToken, config })),
  )
  await part('/api/providers', ({ providers }) =>
    providers.filter(({ id, name }: Json) => (id ?? name) === 'groq').map((one: Json) => one.auth_status),
  )
  const agents = await part('/api/agents', (list) =>
    list.map(({ id, name, created_at: at }: Json) => ({ id, name, created_at: at })),
  )
  for (const { id } of agents) {
    await ask(`/api/memory/agents/${id}/kv`)
    await ask(`/api/agents/${id}/turns`)
    for (const { session_id: session } of (await ask(`/api/agents/${id}/sessions`)).sessions)
      await ask(`/api/sessions/${session}`)
  }
  return found
}

/** What two answers have in common; lists of another length have nothing. */
function common(one: Json, other: Json): Json {
  if (Array.isArray(one))
    return Array.isArray(other) && one.length === other.length
      ? one.map((entry, at) => common(entry, other[at]))
      : undefined
  if (typeof one !== 'object' || one === null) return one === other ? one : undefined
  if (typeof other !== 'object' || other === null) return undefined
  return Object.fromEntries(
    Object.entries(one)
      .filter(([name]) => !OF_TIME.test(name))
      .map(([name, value]) => [name, common(value, other[name])])
      .filter(([, value]) => value !== undefined),
  )
}
