import { basename, join } from 'node:path'
import type { Config } from '../config/load.ts'
import { redact } from '../config/redact.ts'
import { isTree } from '../config/shape.ts'
import { builtInFolders } from '../host/folders.ts'
import { createLoader } from '../host/loader.ts'
import { createDatabaseSnapshots } from '../host/database-snapshots.ts'
import { createLog } from '../log/log.ts'
import type { Fetch } from '../net/fetch.ts'
import type { PluginDatabase } from '../storage/database.ts'
import { openReadOnly } from '../storage/read-only.ts'
import type { ReadOnlyDatabase } from '../storage/read-only.ts'
import { openVault } from '../storage/vault-file.ts'
import { vaultKeySource } from '../storage/vault-key-source.ts'
import { databasePath } from './database-path.ts'
import { exits, Failure } from './failure.ts'
import { note } from './output.ts'
import { messageOf } from '../errors/message.ts'

export interface OfflineOptions {
  readonly config: Config
  /** A database instead of that of the home. */
  readonly file?: string | undefined
  /** Rows elsewhere, such as a copy of the database: the work reads them, and the secrets there, and makes no copy. */
  readonly sql?: PluginDatabase | undefined
  /** Requests to addresses of the configuration; without it the work sends none. */
  readonly fetch?: Fetch
  /** The work needs no secrets: the key of the vault is not looked for. */
  readonly withoutSecrets?: boolean
  /** The work goes on without a database that cannot be read. */
  readonly databaseIsOptional?: boolean
}

/**
 * Runs the function `work` of `offline` in the definition of a built-in plugin on the data of a home, whether or not a
 * daemon runs. It reads the database; the plugin is not set up. Throws a `Failure` when there is no such function or
 * the database cannot be read.
 */
export async function workOffline(
  plugin: string,
  work: string,
  { config, file, sql: elsewhere, fetch, withoutSecrets, databaseIsOptional }: OfflineOptions,
  options: Readonly<Record<string, string | boolean | undefined>>,
): Promise<unknown> {
  const folders = await builtInFolders()
  const folder = folders.find((one) => basename(one) === plugin)
  if (folder === undefined) throw new Failure(exits.notFound, `this svc has no plugin "${plugin}"`)
  const { offline } = await createLoader({
    builtIns: new Set(folders),
    cacheDir: join(config.home_dir, 'cache', 'plugins'),
  }).load(folder, false)
  const run = offline?.[work]
  if (!run) throw new Failure(exits.notFound, `the plugin "${plugin}" cannot ${work} without a daemon`)
  const log = createLog({ level: 'warn' })
  using database = elsewhere ? undefined : openFile(file ?? databasePath(config), databaseIsOptional === true)
  const sql = elsewhere ?? database?.sql
  const vault =
    sql &&
    !withoutSecrets &&
    (await openVault({ sql, scrub: async () => undefined }, vaultKeySource(config), log)).forPlugin(plugin)
  const redacted = redact(config)
  return await run(
    {
      databaseSnapshots: createDatabaseSnapshots(config, async (target) => {
        await snapshot(database, target)
      }),
      db: sql,
      log,
      config: isTree(redacted) ? redacted : {},
      section: config.plugins[plugin] ?? {},
      fetch,
      secret: async (name) => (vault ? await vault.read(name) : undefined),
    },
    options,
  )
}

function openFile(file: string, isOptional: boolean): ReadOnlyDatabase | undefined {
  try {
    return openReadOnly(file)
  } catch (error) {
    const why = messageOf(error)
    if (!isOptional)
      throw new Failure(
        error instanceof Error && 'code' in error && error.code === 'ENOENT' ? exits.notFound : exits.failed,
        `${file} cannot be read: ${why}`,
        undefined,
        { cause: error },
      )
    note(`svc: the database cannot be read, going on without it (${why})`)
    return undefined
  }
}
async function snapshot(database: ReadOnlyDatabase | undefined, target: string): Promise<void> {
  if (!database) throw new Failure(exits.failed, 'there is no database to copy')
  await database.snapshot(target)
}
