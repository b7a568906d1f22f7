import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, cp, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import * as v from 'valibot'
import { createApp } from '../app.ts'
import type { App } from '../app.ts'
import { UpstreamFailure } from '../errors/error.ts'
import { messageOf } from '../errors/message.ts'
import type { AnyPlugin } from '../host/define.ts'
import { shapeDigest, shapeOf } from '../http/answer-shape.ts'
import type { ReadAnswer } from '../http/read-answer.ts'
import { readVariable } from '../process/inherited.ts'
import type { JobTimer } from '../jobs/timer.ts'
import { createLog } from '../log/log.ts'
import { DaemonRefusal } from '../net/daemon-client.ts'
import type { DaemonClient } from '../net/daemon-client.ts'
import { checkFile } from '../storage/check-file.ts'
import { openDatabase } from '../storage/open.ts'
import { openReadOnly } from '../storage/read-only.ts'
import { connect, hasDaemon } from './connect.ts'
import type { ClientArgs } from './connect.ts'
import { databasePath } from './database-path.ts'
import { exits, Failure } from './failure.ts'
import { locateHome } from './home-location.ts'
import { readDefinitions } from './plugin-definitions.ts'
import { loadSettings } from './settings.ts'

/** Requests of one rehearsal. */
const MAX_REQUESTS = 100
const STAY_MS = 60_000
/** No job of a plugin runs. */
const STILL: JobTimer = { every: () => () => undefined, cron: () => () => undefined }

export interface Rehearsal {
  /** Plugins whose tables were brought up to date, or were already. */
  readonly migrated: readonly string[]
  readonly migrations: number
  /** Why this version must not be used; empty when nothing speaks against it. */
  readonly problems: readonly string[]
  readonly requests: number
  /** How many of them were recorded; the others are the rows without parameters. */
  readonly recorded: number
  /** Whether a daemon ran whose answers could be compared. */
  readonly isCompared: boolean
  readonly differences: readonly { readonly path: string; readonly what: string }[]
}

export interface RehearsalOptions {
  /** Plugins which act by themselves: only their tables are migrated. */
  readonly off: readonly string[]
  /** Requests that the home answered, the latest last: they are asked first. */
  readonly recorded: readonly ReadAnswer[]
  /** An empty PostgreSQL database, which gets the copy of one on a server and keeps it. */
  readonly scratchUrl?: string | undefined
}

/** Tries this version on a copy of the home, which is removed. Throws a `Failure` when no copy can be made. */
export async function rehearseVersion(
  args: ClientArgs,
  { off, recorded, scratchUrl }: RehearsalOptions,
): Promise<Rehearsal> {
  const location = locateHome(args)
  const { config } = await loadSettings(location)
  const isOnServer = /^postgres(ql)?:/.test(config.database_url)
  if (scratchUrl !== undefined) checkScratch(scratchUrl, isOnServer)
  else if (isOnServer)
    throw new Failure(
      exits.failed,
      'the data of this home is on a PostgreSQL server',
      'name an empty database for the copy: --database-url postgres://user@host/database',
    )
  const database = scratchUrl === undefined ? databasePath(config) : undefined
  if (database !== undefined && !existsSync(database))
    throw new Failure(exits.notFound, `there is no database ${database}`)
  const client = (await hasDaemon(args)) ? (await connect(args)).client : undefined
  const copy = await mkdtemp(join(tmpdir(), 'svc-rehearsal-'))
  // What a daemon waits for, a timer or a job, keeps no process alive by itself: a daemon has its port for that.
  const alive = setInterval(() => undefined, STAY_MS)
  try {
    const unread: string[] = []
    const paths = config.plugins.paths.map((path) => resolve(path))
    const definitions = await readDefinitions(location.home, paths, (folder, why) =>
      unread.push(`the plugin in ${folder} cannot be read: ${why}`),
    )
    const disabled = [...new Set([...config.plugins.disabled, ...off])]
    await copyHome(location.home, definitions, copy)
    if (database !== undefined) {
      using source = openReadOnly(database)
      await source.snapshot(join(copy, 'data', 'svc.db'))
    } else if (scratchUrl !== undefined)
      await (await import('./copy-on-server.ts')).copyOnServer(config.database_url, scratchUrl, copy)
    const url = scratchUrl ?? `sqlite:${join(copy, 'data', 'svc.db')}`
    const { migrated, migrations, problems } = await migrateCopy(url, definitions)
    // Otherwise the daemon on the copy names what it cannot load.
    if (problems.length > 0) problems.push(...unread)
    const answers =
      problems.length === 0
        ? await replay({ copy, url, paths, disabled, definitions, client, recorded, problems })
        : { requests: 0, recorded: 0, differences: [] }
    return { migrated, migrations, problems, ...answers, isCompared: client !== undefined }
  } finally {
    clearInterval(alive)
    await rm(copy, { recursive: true, force: true })
  }
}

/**
 * The configuration, the key of the vault, the home's own plugins and what belongs to the database. The database is
 * copied after them, consistent while in use.
 */
async function copyHome(home: string, definitions: readonly AnyPlugin[], copy: string): Promise<void> {
  const sidecars = definitions.flatMap(({ databaseSidecars = [] }) => databaseSidecars)
  await mkdir(join(copy, 'data'), { mode: 0o700 })
  for (const name of ['config.toml', 'vault.key', 'accepted-permissions.json', ...sidecars])
    if (existsSync(join(home, name))) await copyFile(join(home, name), join(copy, name))
  // Those that `plugins.paths` names stay where they are: they may import what lies beside them.
  const plugins = join(home, 'plugins')
  if (existsSync(plugins)) await cp(plugins, join(copy, 'plugins'), { recursive: true })
}

async function migrateCopy(
  url: string,
  definitions: readonly AnyPlugin[],
): Promise<{ readonly migrated: readonly string[]; readonly migrations: number; readonly problems: string[] }> {
  const migrated: string[] = []
  const problems: string[] = []
  let count = 0
  await using database = await openDatabase({
    url,
    password: readVariable('PGPASSWORD'),
    log: createLog({ level: 'error' }),
  })
  for (const { name, migrations = [] } of definitions) {
    if (migrations.length === 0) continue
    try {
      count += await database.migrate(name, migrations, { strict: true })
      migrated.push(name)
    } catch (error) {
      problems.push(`the tables of "${name}" cannot be migrated: ${messageOf(error)}`)
    }
  }
  const damage = url.startsWith('sqlite:') ? await checkFile(url.slice('sqlite:'.length), 'integrity_check') : undefined
  if (damage !== undefined) problems.push(`the migrated copy is damaged: ${damage}`)
  return { migrated, migrations: count, problems }
}

function checkScratch(url: string, isOnServer: boolean): void {
  if (!isOnServer)
    throw new Failure(exits.usage, 'the database of this home is a file', 'leave --database-url out: it is copied')
  if (!/^postgres(ql)?:\/\/./.test(url))
    throw new Failure(exits.usage, 'this is no PostgreSQL database', 'name one as postgres://user@host/database')
}

interface Replay {
  readonly copy: string
  /** Of the copied database. */
  readonly url: string
  readonly paths: readonly string[]
  readonly disabled: readonly string[]
  /** Of all plugins, those that are left out too. */
  readonly definitions: readonly AnyPlugin[]
  readonly client: DaemonClient | undefined
  readonly recorded: readonly ReadAnswer[]
  readonly problems: string[]
}

/** A daemon on the copy that does nothing by itself and sends nothing. */
async function openCopy({ copy, url, paths: folders, disabled }: Replay, key: string): Promise<App> {
  const loaded = await loadSettings(
    { home: copy, configFile: undefined },
    {
      api_key: key,
      home_dir: copy,
      data_dir: join(copy, 'data'),
      database_url: url,
      'plugins.disabled': disabled,
      'plugins.paths': folders,
      'plugins.watch': false,
    },
  )
  return createApp({
    loaded,
    // What does not load is among the problems; what needs a plugin that acts is none.
    log: createLog({ level: 'silent' }),
    jobTimer: () => STILL,
    fetch: () =>
      Promise.reject(
        new UpstreamFailure('network', 'a rehearsal sends nothing', { reason: 'network', retry: 'later' }),
      ),
  })
}

/** Asks the copy, and the daemon that runs, the same; adds to `problems` what the copy fails to answer. */
async function replay(replayed: Replay): Promise<Pick<Rehearsal, 'requests' | 'recorded' | 'differences'>> {
  const { definitions, client, recorded, problems } = replayed
  const key = randomUUID()
  await using app = await openCopy(replayed, key)
  const ask = async (path: string): Promise<Answer> => {
    const headers = { authorization: `Bearer ${key}` }
    const response = await app.fetch(new Request(new URL(`http://127.0.0.1${path}`), { headers }))
    return { status: response.status, shape: shapeOf(await response.json().catch(() => undefined)) }
  }
  problems.push(...failedPlugins(app))
  const differences: { path: string; what: string }[] = []
  const off = new Set(app.daemon.plugins().flatMap(({ name, state }) => (state === 'loaded' ? [] : [name])))
  const owners = new Map<string, string>()
  app.daemon.followReads(({ path, plugin }) => owners.set(path, plugin))
  const isComparable = comparableWithout(off, definitions)
  const known = new Map(
    recorded
      .filter(({ plugin }) => !off.has(plugin))
      .slice(-MAX_REQUESTS)
      .map((request) => [request.path, request]),
  )
  const paths = [...new Set([...known.keys(), ...requestsOf(app)])].slice(0, MAX_REQUESTS)
  for (const path of paths) {
    const [now, before] = [await ask(path), await askDaemon(client, path)]
    if (now.status === 500) problems.push(`GET ${path} answers ${now.status}`)
    const earlier = client ? undefined : known.get(path)
    const what = before
      ? difference(before, now, (field) => isComparable(field, owners.get(path)))
      : earlier && recordedDifference(earlier, now)
    if (what !== undefined) differences.push({ path, what })
  }
  return { requests: paths.length, recorded: known.size, differences }
}

/** Plugins that this version cannot load, other than those that need one that acts. */
const failedPlugins = (app: App): readonly string[] =>
  app.daemon
    .plugins()
    .filter(({ state, error = '' }) => state === 'failed' && !/^needs service .* is not loaded$/.test(error))
    .map(({ name, error }) => `the plugin "${name}" is not loaded: ${error}`)

/**
 * Whether an answer of a plugin can have a field while these are left out: their sections of the configuration are
 * missing, and what is made with their services is empty.
 */
function comparableWithout(
  off: ReadonlySet<string>,
  definitions: readonly AnyPlugin[],
): (field: string, plugin: string | undefined) => boolean {
  const leftOut = definitions.filter(({ name }) => off.has(name))
  const sections = new Set(leftOut.flatMap(({ sections: own = {} }) => Object.keys(own)))
  const services = new Set(leftOut.flatMap(({ provides = {} }) => Object.keys(provides)))
  const users = new Set(
    definitions.flatMap(({ name, optional = {} }) =>
      Object.keys(optional).some((service) => services.has(service)) ? [name] : [],
    ),
  )
  return (field, plugin) =>
    !field.split('.').some((part) => sections.has(part)) && (plugin === undefined || !users.has(plugin))
}

interface Answer {
  readonly status: number
  /** The names of the fields, by their place. */
  readonly shape: ReadonlySet<string>
}

/** Rows that read JSON and have no parameters; the one that lists all rows would lack those of plugins that act. */
function requestsOf(app: App): readonly string[] {
  const reading = app
    .routes()
    .filter(({ method, effect, streams, produces }) => method === 'GET' && effect === 'read' && !streams && !produces)
    .map(({ path }) => path)
  const plain = reading.filter(
    (path) => path.startsWith('/api/') && !path.includes(':') && path !== '/api/openapi.json',
  )
  return plain.toSorted().slice(0, MAX_REQUESTS)
}

async function askDaemon(client: DaemonClient | undefined, path: string): Promise<Answer | undefined> {
  if (!client) return undefined
  try {
    return { status: 200, shape: shapeOf(await client.call('GET', path, v.unknown())) }
  } catch (error) {
    if (!(error instanceof DaemonRefusal)) throw error
    // Its limit of requests says nothing about the copy, nor does a system that only it may reach.
    return error.status === 429 || error.status > 500 ? undefined : { status: error.status, shape: new Set() }
  }
}

function difference(before: Answer, now: Answer, isComparable: (field: string) => boolean): string | undefined {
  if (now.status > 500) return undefined
  if (before.status !== now.status) return `answered ${before.status}, and would answer ${now.status}`
  const gone = [...before.shape].filter((name) => !now.shape.has(name) && isComparable(name))
  return gone.length === 0 ? undefined : `would lack ${gone.slice(0, 5).join(', ')}`
}

/** Without a daemon to ask, what it answered when it ran: also data that changed since then makes a difference. */
function recordedDifference(before: ReadAnswer, now: Answer): string | undefined {
  if (now.status > 500) return undefined
  if (before.status !== now.status)
    return `answered ${before.status} when it was recorded, and would answer ${now.status}`
  if (before.shape === shapeDigest(now.shape)) return undefined
  return 'would have other fields than when it was recorded'
}
