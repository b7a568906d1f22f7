import { basename, join, resolve } from 'node:path'
import type { Config } from '../config/load.ts'
import { redact } from '../config/redact.ts'
import { isTree } from '../config/shape.ts'
import { builtInFolders } from '../host/folders.ts'
import { createLoader } from '../host/loader.ts'
import { createDatabaseSnapshots } from '../host/database-snapshots.ts'
import { createLog } from '../log/log.ts'
import { openReadOnly } from '../storage/read-only.ts'
import type { ReadOnlyDatabase } from '../storage/read-only.ts'
import { openVault } from '../storage/vault-file.ts'
import { exits, Failure } from './failure.ts'
import { note } from './output.ts'

export interface OfflineOptions {
  readonly config: Config
  /** A database instead of that of the home. */
  readonly file?: string | undefined
  /** What the work can do without: a database that is damaged. */
  readonly mayLack?: boolean
}

/** Has a built-in plugin work on the data of a home without a daemon, or beside one: it reads and sets nothing up. */
export async function workOffline(
  plugin: string,
  work: string,
  { config, file, mayLack }: OfflineOptions,
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
  using database = openFile(file ?? databasePath(config), mayLack === true)
  const keyFile = join(config.home_dir, 'vault.key')
  const vault =
    database && (await openVault({ sql: database.sql, scrub: async () => undefined }, keyFile, log)).forPlugin(plugin)
  const redacted = redact(config)
  return await run(
    {
      databaseSnapshots: createDatabaseSnapshots(config, async (target) => {
        await snapshot(database, target)
      }),
      db: database?.sql,
      log,
      config: isTree(redacted) ? redacted : {},
      secret: async (name) => await vault?.read(name),
    },
    options,
  )
}

/** The file of the home's database. Throws a `Failure` where it is on a server. */
export function databasePath(config: Config): string {
  const path = /^sqlite:(.+)$/.exec(config.database_url)?.[1]
  if (path === undefined || path === ':memory:')
    throw new Failure(
      exits.failed,
      'the database of this home is not a file',
      'ask the running daemon, and use the tools of the database server for copies',
    )
  return resolve(path)
}

function openFile(file: string, mayLack: boolean): ReadOnlyDatabase | undefined {
  try {
    return openReadOnly(file)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    if (!mayLack)
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
