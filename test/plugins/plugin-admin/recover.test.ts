import { existsSync, readdirSync, readFileSync } from 'node:fs'
import * as files from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { createConsola } from 'consola'
import * as v from 'valibot'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { KeyValueStorage, StoredValue } from '../../../core/storage/key-value.ts'
import type { PluginDatabase } from '../../../core/storage/database.ts'
import type { AcceptedPermissions } from '../../../core/host/accepted-permissions.ts'
import { AcceptedPermissionsFile } from '../../../core/host/accepted-permissions.ts'
import { inUse } from '../../../plugins/plugin-admin/install/staging.ts'
import { Installer } from '../../../plugins/plugin-admin/install/service.ts'
import { migrations } from '../../../plugins/plugin-admin/migrations.ts'
import { Settings } from '../../../plugins/plugin-admin/settings.ts'
import { InstallStore } from '../../../plugins/plugin-admin/store.ts'
import { temporaryFolder } from '../../support/plugin-folder.ts'
import { pack, sha512 } from '../../support/plugin-registry.ts'
import { open, recorder } from '../../core/storage/engines.ts'

// The process ends before each of its effects in turn: a change of a file, of the database, of what is loaded. After a
// start, either the version before or the new one is whole, and nothing else is left.

const fault = vi.hoisted(() => {
  let left = Infinity
  class Killed extends Error {}
  return {
    Killed,
    /** The process ends before the effect of this number; `Infinity`: it lives. */
    arm(effect: number): void {
      left = effect
    },
    get happened(): boolean {
      return left <= 0
    },
    /** Every effect comes through here. */
    guard<A extends readonly unknown[], R>(effect: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
      return async (...args) => {
        if (left <= 0 || --left <= 0) throw new Killed('the process was killed')
        return await effect(...args)
      }
    },
  }
})

vi.mock('node:fs/promises', async (original) => {
  const real = await original<typeof files>()
  const changing = ['rename', 'mkdir', 'unlink', 'rmdir', 'rm', 'writeFile', 'cp', 'copyFile'] as const
  const guarded = Object.fromEntries(changing.map((name) => [name, fault.guard(real[name] as () => Promise<unknown>)]))
  return { ...real, ...guarded, default: { ...real, ...guarded } }
})

interface Code {
  readonly version: string
  readonly permissions: readonly string[]
}
const codeIn = (folder: string): Code =>
  JSON.parse(readFileSync(join(folder, 'index.ts'), 'utf8').slice('//'.length)) as Code
vi.mock('../../../plugins/plugin-admin/inspect/inspect.ts', () => ({
  inspectPlugin: async (folder: string) => ({
    ...codeIn(folder),
    name: 'one',
    declaresUses: true,
    requires: [],
    provides: [],
    unsupported: [],
  }),
}))

const plugin = (version: string, lib = ''): Record<string, string> => ({
  'index.ts': `//${JSON.stringify({ version, permissions: [`tool:${version}`] })}`,
  'data/text.txt': version,
  ...(lib === '' ? {} : { 'package.json': JSON.stringify({ dependencies: { lib } }) }),
})
const lib = (version: string): Buffer => pack({ 'package.json': `{"version":"${version}"}`, 'b/c.js': version })

let root: Awaited<ReturnType<typeof temporaryFolder>>
let sql: PluginDatabase
beforeAll(async () => {
  root = await temporaryFolder()
})
afterAll(() => root[Symbol.asyncDispose]())

/** A registry with two versions of one package. */
async function fetchPackage(url: string) {
  const version = /lib-(.*)\.tgz/.exec(url)?.[1]
  const dist = (one: string) => ({ tarball: `http://registry.test/lib-${one}.tgz`, integrity: sha512(lib(one)) })
  const versions = Object.fromEntries(['1.0.0', '2.0.0'].map((one) => [one, { dist: dist(one) }]))
  const bytes = version === undefined ? Buffer.from(JSON.stringify({ versions })) : lib(version)
  return { ok: true, status: 200, bytes: async () => bytes, chunks: () => Readable.from([bytes]) }
}

/** The store whose writes are effects. */
function guardedStore(store: InstallStore): InstallStore {
  return Object.assign(Object.create(store) as InstallStore, {
    find: store.find.bind(store),
    unfinished: store.unfinished.bind(store),
    put: store.put.bind(store),
    remove: store.remove.bind(store),
    commit: fault.guard(store.commit.bind(store)),
  })
}

const stored = new Map<string, StoredValue>()
/** Where the daemon keeps which plugins were installed. */
function storageOf(home: string): KeyValueStorage {
  return {
    getItem: async (key: string) => stored.get(home + key) ?? null,
    setItem: fault.guard(async (key: string, value: StoredValue) => void stored.set(home + key, value)),
  } as KeyValueStorage
}

/** The plugins that one life of a daemon runs, by folder. */
class FakeDaemon {
  readonly loaded = new Map<string, string>()
  readonly #accepted: AcceptedPermissions
  constructor(plugins: string, accepted: AcceptedPermissions) {
    this.#accepted = accepted
    const folders = readdirSync(plugins).filter((name) => !name.startsWith('.'))
    for (const name of folders) {
      try {
        this.#load(join(plugins, name))
      } catch {
        // It serves without this one, until recovery puts it right.
      }
    }
  }
  readonly sync = fault.guard(async (folder: string) => this.#load(folder))
  readonly unload = fault.guard(async () => this.loaded.clear())
  plugins() {
    const facts = { name: 'one', state: 'loaded', provides: [], requires: [] }
    return [...this.loaded].map(([source, version]) => ({ ...facts, source, version }))
  }
  #load(folder: string): void {
    if (!existsSync(join(folder, 'index.ts'))) return void this.loaded.delete(folder)
    const { version, permissions } = codeIn(folder)
    const accepted = this.#accepted.of(folder)
    if (!permissions.every((one) => accepted?.includes(one) ?? true)) throw new Error('it uses more than was accepted')
    this.loaded.set(folder, version)
  }
}

const storedData = { tables: [{ name: 'one_row', rows: 1 }], values: 0, secrets: [] }

/** One life of a daemon on a home. */
async function boot(home: string) {
  const plugins = join(home, 'plugins')
  // A new process has none.
  inUse.clear()
  const accepted = new AcceptedPermissionsFile(home)
  await accepted.open(storageOf(home))
  const daemon = new FakeDaemon(plugins, accepted)
  const store = new InstallStore(sql, '', recorder().log)
  const installer = new Installer({
    plugins,
    log: createConsola({ level: -999 }),
    settings: v.parse(Settings, { registry_url: 'http://registry.test' }),
    store: guardedStore(store),
    accepted: {
      of: (folder) => accepted.of(folder),
      isInstalled: (folder) => accepted.isInstalled(folder),
      problem: (folder) => accepted.problem(folder),
      accept: fault.guard((folder, permissions) => accepted.accept(folder, permissions)),
      forget: fault.guard((folder) => accepted.forget(folder)),
    },
    audit: { entry: () => sql.sql`SELECT 1`, write: fault.guard(async () => undefined), entries: async () => [] },
    daemon: daemon as never,
    pluginData: {
      describe: async () => storedData,
      delete: fault.guard(async (_plugin, entries) => void (await sql.batch(entries))),
    },
    fetch: fetchPackage as never,
    sharing: async () => undefined,
  })
  return {
    installer,
    /** Everything that a person could find. */
    state: async () => ({
      files: filesIn(plugins),
      loaded: [...daemon.loaded.values()],
      accepted: accepted.of(join(plugins, 'one')),
      isInstalled: accepted.isInstalled(join(plugins, 'one')),
      row: await store.find('one').then((row) => row && { version: row.version, state: row.state, hash: row.hash }),
    }),
  }
}
function filesIn(folder: string): Readonly<Record<string, string>> {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  const paths = entries.map((entry) => [join(entry.parentPath, entry.name), entry.isFile()] as const)
  // A hidden folder counts even when it is empty.
  return Object.fromEntries(
    paths
      .filter(([path, isFile]) => isFile || path.slice(folder.length).startsWith('/.'))
      .map(([path, isFile]) => [path.slice(folder.length), isFile ? readFileSync(path, 'utf8') : 'folder']),
  )
}

async function write(folder: string, content: Readonly<Record<string, string>>): Promise<string> {
  for (const [name, text] of Object.entries(content)) {
    await files.mkdir(join(folder, name, '..'), { recursive: true })
    await files.writeFile(join(folder, name), text)
  }
  return folder
}

type Daemon = Awaited<ReturnType<typeof boot>>
interface Change {
  readonly prepare: (daemon: Daemon, home: string) => Promise<unknown>
  readonly change: (daemon: Daemon, home: string) => Promise<unknown>
}
const install = async ({ installer }: Daemon, home: string, content: Readonly<Record<string, string>>) =>
  await installer.install({
    path: await write(join(home, `source-${content['data/text.txt']}`), content),
    update: true,
    accept_permissions: true,
    dry_run: false,
  })
const changes: Readonly<Record<string, Change>> = {
  'an installation': {
    prepare: (_daemon, home) => files.mkdir(join(home, 'source-1')),
    change: (daemon, home) => install(daemon, home, plugin('1.0.0', '1.0.0')),
  },
  'an update': {
    prepare: (daemon, home) => install(daemon, home, plugin('1.0.0', '1.0.0')),
    change: (daemon, home) => install(daemon, home, plugin('2.0.0', '2.0.0')),
  },
  'an update to the same version': {
    prepare: (daemon, home) => install(daemon, home, plugin('1.0.0')),
    change: (daemon, home) =>
      install(daemon, home, { ...plugin('1.0.0'), 'data/text.txt': 'same version, other text' }),
  },
  'an update of a plugin that a person wrote': {
    prepare: async ({ installer }, home) => {
      await write(join(home, 'plugins', 'one'), plugin('1.0.0'))
      await installer.recover()
    },
    change: (daemon, home) => install(daemon, home, plugin('2.0.0')),
  },
  'a removal': {
    prepare: (daemon, home) => install(daemon, home, plugin('1.0.0', '1.0.0')),
    change: async ({ installer }) => void (await installer.uninstall('one', { force: false })),
  },
  'a removal with all that it has stored': {
    prepare: (daemon, home) => install(daemon, home, plugin('1.0.0', '1.0.0')),
    change: async ({ installer }) => void (await installer.uninstall('one', { force: false, deletesData: true })),
  },
  'dependencies that replace others': {
    prepare: async (daemon, home) => {
      await install(daemon, home, plugin('1.0.0', '1.0.0'))
      await write(join(home, 'plugins', 'one'), { 'package.json': '{"dependencies":{"lib":"2.0.0"}}' })
    },
    change: ({ installer }) => installer.installDependencies('one'),
  },
  'dependencies where there were none': {
    prepare: async (daemon, home) => {
      await install(daemon, home, plugin('1.0.0'))
      await write(join(home, 'plugins', 'one'), { 'package.json': '{"dependencies":{"lib":"2.0.0"}}' })
    },
    change: ({ installer }) => installer.installDependencies('one'),
  },
}

/** Kills the process before each effect of `work` in turn, each time on a new home, until it is not reached. */
async function atEveryEffect(label: string, { prepare, change }: Change) {
  const outcomes = { before: 0, after: 0 }
  let after: unknown
  for (let effect = Infinity; ; effect = effect === Infinity ? 1 : effect + 1) {
    const home = join(root.path, `${label.replaceAll(' ', '-')}-${effect}`)
    await files.mkdir(join(home, 'plugins'), { recursive: true })
    await sql.batch([sql.sql`DELETE FROM plugin_admin_installed`])
    await prepare(await boot(home), home)
    const first = await boot(home)
    const before = await first.state()
    fault.arm(effect)
    await change(first, home).catch((error: unknown) => {
      if (!fault.happened) throw error
    })
    const wasKilled = fault.happened
    fault.arm(Infinity)
    if (effect === Infinity) after = relative(await first.state(), home)
    else if (!wasKilled) return outcomes
    if (wasKilled) await recoverKilled(home, effect % 3 === 0)
    const found = relative(await (await boot(home)).state(), home)
    const isAfter = JSON.stringify(found) === JSON.stringify(after)
    if (!isAfter) expect(found, `killed before effect ${effect}`).toEqual(relative(before, home))
    outcomes[isAfter ? 'after' : 'before']++
  }
}
/** Recovery after a kill. With `often` it is killed as well, at every second of its effects. */
async function recoverKilled(home: string, often: boolean): Promise<void> {
  for (let effect = often ? 1 : Infinity; ; effect += 2) {
    const { installer } = await boot(home)
    fault.arm(effect)
    await installer.recover().catch(() => undefined /* killed */)
    const wasKilled = fault.happened
    fault.arm(Infinity)
    if (!wasKilled) return
  }
}
const relative = (state: unknown, home: string): unknown =>
  JSON.parse(JSON.stringify(state).replaceAll(home, '<home>')) as unknown

it('does nothing for a row of a change that this home has not begun', async () => {
  const { database } = await open('sqlite')
  await database.migrate('plugin-admin', migrations)
  sql = database.sql
  const home = join(root.path, 'not-begun')
  await files.mkdir(join(home, 'plugins'), { recursive: true })
  const first = await boot(home)
  await install(first, home, plugin('1.0.0', '1.0.0'))
  const before = await first.state()
  const outside = await write(join(home, 'outside'), plugin('6.6.6'))
  for (const [state, name] of [
    ['removing', 'one'],
    ['installing', 'one'],
    ['removing', '../outside'],
    ['installing', '../outside'],
  ] as const) {
    await sql.run`DELETE FROM plugin_admin_installed WHERE name <> 'one'`
    await sql.run`INSERT INTO plugin_admin_installed
        (home, name, version, source, hash, permissions, state, replaces, installed_at, updated_at)
      VALUES ('', ${name}, '1.0.0', 'x', 'x', '[]', ${state}, '{"folder":true,"permissions":["fs","net"]}', 'a', 'b')
      ON CONFLICT (home, name) DO UPDATE SET state = excluded.state, replaces = excluded.replaces`
    await (await boot(home)).installer.recover()
    await sql.run`UPDATE plugin_admin_installed SET state = 'installed', replaces = NULL WHERE name = 'one'`
    expect(await (await boot(home)).state(), `${state} ${name}`).toEqual(before)
    expect(existsSync(join(outside, 'index.ts'))).toBe(true)
  }
})

describe('a process that is killed at any step', () => {
  it.each(Object.entries(changes))('of %s leaves the version before or the new one', async (label, change) => {
    const { database } = await open('sqlite')
    await database.migrate('plugin-admin', migrations)
    sql = database.sql
    const { before, after } = await atEveryEffect(label, change)
    expect(before).toBeGreaterThan(0)
    expect(after).toBeGreaterThan(0)
    expect(before + after).toBeGreaterThan(10)
  })
})
