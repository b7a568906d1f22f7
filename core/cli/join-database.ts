import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { configDigests } from '../config/digests.ts'
import { setConfigValue } from '../config/set.ts'
import { CoreSchema } from '../config/schema.ts'
import { createLog } from '../log/log.ts'
import { commandLine } from '../process/command-name.ts'
import { readVariable } from '../process/inherited.ts'
import type { Database, PluginDatabase } from '../storage/database.ts'
import { lockHome, HomeInUse } from '../storage/lock.ts'
import { openDatabase } from '../storage/open.ts'
import { checkSharedKey, VaultKeyRefused } from '../storage/vault-file.ts'
import { deriveKey } from '../storage/vault-key.ts'
import type { VaultKeySource } from '../storage/vault-key-source.ts'
import { exits, Failure } from './failure.ts'
import type { HomeLocation } from './home-location.ts'
import { readDefinitions } from './plugin-definitions.ts'
import { readSecret } from './secret-input.ts'
import { loadSettings } from './settings.ts'
import { explainServer } from './start-failure.ts'

export interface JoinRequest {
  /** Written into the file. Absent: that of `SVC_DATABASE_URL`, which stays there. */
  readonly url: string | undefined
  /** A file with the key of the vault. Absent: `SVC_VAULT_KEY`, else that of the home, else it is read. */
  readonly keyFile: string | undefined
  /** Asked before anything is written, with the database that is joined: throws a `Failure` for what is wrong. */
  readonly check: (sql: PluginDatabase, digests: DigestConfig) => Promise<void>
}
/** Digests of a part of a configuration, by dotted key, as the daemons with the key that was given make them. */
export type DigestConfig = (purpose: string, config: unknown) => Promise<ReadonlyMap<string, string>>
export interface Joined {
  /** Keys and files that were written. */
  readonly written: readonly string[]
  /** What else the daemon needs, a sentence each. */
  readonly needed: readonly string[]
}

/**
 * Sets a home up for a PostgreSQL database that other daemons use. Throws a `Failure`, and writes nothing then, when the
 * home is in use or has data of its own, the server lets nobody in, or the key does not open the vault of the others.
 */
export async function joinDatabase(
  location: HomeLocation,
  { url: named, keyFile, check: alsoCheck }: JoinRequest,
): Promise<Joined> {
  const { home } = location
  const url = named ?? readVariable('SVC_DATABASE_URL')?.trim()
  if (!url) throw new Failure(exits.usage, 'no database is named', 'give its address, or set SVC_DATABASE_URL')
  if (!/^postgres(ql)?:\/\/./.test(url))
    throw new Failure(exits.usage, 'this is no PostgreSQL database', 'name one as postgres://user@host/database')
  using lock = await lockHome(home).catch((error: unknown) => {
    throw error instanceof HomeInUse ? new Failure(exits.inUse, error.message, undefined, { cause: error }) : error
  })
  void lock
  await refuseUsed(location)
  const own = join(home, 'vault.key')
  const source = await keySource(own, keyFile)
  await check(url, source, alsoCheck)
  const written: string[] = []
  const needed: string[] = []
  const config = join(home, 'config.toml')
  const write = async (key: string, value: string): Promise<void> => {
    await setConfigValue(config, key, value, CoreSchema)
    written.push(`${key} in ${config}`)
  }
  if (named !== undefined) await write('database_url', url)
  else needed.push('The daemon needs SVC_DATABASE_URL in its environment.')
  if (source.isNamed) await write('vault_key_file', source.file)
  else if (source.given !== undefined && readVariable('SVC_VAULT_KEY') !== undefined)
    needed.push('The daemon needs SVC_VAULT_KEY in its environment.')
  else if (source.given !== undefined) {
    await writeFile(own, `${source.given}\n`, { mode: 0o600, flag: 'wx', flush: true })
    written.push(own)
  }
  return { written, needed }
}

/** What belongs to the rows of a file would be taken for that of the shared database, or the rows be missed. */
async function refuseUsed(location: HomeLocation): Promise<void> {
  const { config, sources } = await loadSettings(location)
  // What the environment names says nothing of what the home has used.
  const isShared = /^postgres(ql)?:/.test(config.database_url)
  if (isShared && sources.get('database_url') !== 'SVC_DATABASE_URL') return
  const file = isShared ? join(config.data_dir, 'svc.db') : resolve(config.database_url.replace(/^sqlite:/, ''))
  const definitions = isShared ? [] : await readDefinitions(location.home, config.plugins.paths)
  const sidecars = definitions.flatMap(({ databaseSidecars = [] }) => databaseSidecars)
  const found = [file, ...sidecars.map((name) => join(location.home, name))].filter((path) => existsSync(path))
  if (found.length > 0)
    throw new Failure(
      exits.refused,
      `this home has data of its own: ${found.join(', ')}`,
      'nothing was written; join with a new home (--home), take the data along into an empty database with ' +
        `${commandLine('database copy <address>')}, or move these files out of the home first`,
    )
}

async function keySource(own: string, keyFile: string | undefined): Promise<VaultKeySource> {
  if (keyFile !== undefined) return { file: keyFile, isNamed: true }
  const given = readVariable('SVC_VAULT_KEY')?.trim()
  if (given) return { file: own, given }
  if (existsSync(own)) return { file: own }
  const typed = await readSecret('Key of the vault of the other daemons (their vault.key): ')
  if (typed === '')
    throw new Failure(
      exits.usage,
      'the key of the vault is missing',
      'copy vault.key of another home, name a file with --vault-key-file, or set SVC_VAULT_KEY; ' +
        'for the first daemon of a new database, `openssl rand -hex 32` makes one',
    )
  return { file: own, given: typed }
}

interface Rights {
  readonly user: string
  readonly schema: string
  readonly may_create: number
  /** A table that another role owns. */
  readonly foreign_table: string | null
}
/** A daemon of a later version changes tables and makes new ones: that is not to fail then. */
async function checkRights({ sql }: Pick<Database, 'sql'>): Promise<void> {
  const rights = await sql.one<Rights>`SELECT current_user AS "user", current_schema() AS schema,
    CAST(has_schema_privilege(current_schema(), 'CREATE') AS INTEGER) AS may_create,
    (SELECT min(tablename) FROM pg_tables
      WHERE schemaname = current_schema() AND NOT pg_has_role(tableowner, 'USAGE')) AS foreign_table`
  if (!rights) return
  const { user, schema, may_create: mayCreate, foreign_table: table } = rights
  if (Number(mayCreate) !== 1)
    throw new Failure(
      exits.config,
      `the role "${user}" may not make tables in the schema "${schema}"`,
      `nothing was written; as an owner of the database run: GRANT CREATE ON SCHEMA "${schema}" TO "${user}"`,
    )
  if (table !== null)
    throw new Failure(
      exits.config,
      `the table "${table}" belongs to another role, so "${user}" may not change it`,
      'nothing was written; let all daemons use one role, or grant it the role that owns the tables',
    )
}

async function check(url: string, source: VaultKeySource, alsoCheck: JoinRequest['check']): Promise<void> {
  try {
    const log = createLog({ level: 'silent' })
    await using database = await openDatabase({ url, password: readVariable('PGPASSWORD'), log })
    await checkRights(database)
    await checkSharedKey(database, source)
    await alsoCheck(database.sql, async (purpose, config) => {
      const secret = await deriveKey(source, purpose)
      return secret === undefined ? new Map() : configDigests(config, secret)
    })
  } catch (error) {
    if (error instanceof VaultKeyRefused) {
      const isOfHome = source.given === undefined && source.isNamed !== true
      const how = isOfHome ? ` with --vault-key-file or SVC_VAULT_KEY: this home has one of its own` : ''
      throw new Failure(exits.config, error.message, `nothing was written; give the key of the other daemons${how}`, {
        cause: error,
      })
    }
    throw explainServer(error, url) ?? error
  }
}
