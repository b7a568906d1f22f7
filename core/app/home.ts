import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { ConsolaInstance } from 'consola'
import type { Config } from '../config/schema.ts'
import type { AcceptedPermissions, AcceptedPermissionsFile } from '../host/accepted-permissions.ts'
import { CrashRecord } from '../host/crash-record.ts'
import type { CrashLimits } from '../host/crash-record.ts'
import { readVariable } from '../process/inherited.ts'
import type { Database } from '../storage/database.ts'
import { DiskReserve } from '../storage/disk-reserve.ts'
import { lockHome } from '../storage/lock.ts'
import type { HomeLock } from '../storage/lock.ts'
import { openDatabase } from '../storage/open.ts'
import type { PostgresSettings } from '../storage/postgres-client.ts'
import { homeId } from '../process/liveness.ts'
import { refuseLost } from '../storage/sqlite-file.ts'
import { openStorage } from '../storage/storage.ts'
import type { PluginStorage } from '../storage/storage.ts'
import { completeSwap } from '../storage/swap.ts'
import { checkSharedKey, openVault } from '../storage/vault-file.ts'
import type { VaultFile } from '../storage/vault-file.ts'
import { deriveKey } from '../storage/vault-key.ts'
import { vaultKeySource } from '../storage/vault-key-source.ts'
import type { VaultKeySource } from '../storage/vault-key-source.ts'
import type { PartStack } from './part-stack.ts'

/** What the daemon keeps on disk, open and locked for this process. */
export interface Home {
  readonly lock: HomeLock
  readonly reserve: DiskReserve
  readonly database: Database
  readonly storage: PluginStorage
  readonly vault: VaultFile
  readonly restarts: RestartCount
  /** What was accepted for installed plugins. */
  readonly accepted: AcceptedPermissions
  /** Plugins that ended the daemon. */
  readonly crashes: CrashRecord
}
export interface HomeOptions {
  readonly config: Config
  readonly log: ConsolaInstance
  /** Asked each time. */
  readonly crashLimits: () => CrashLimits
  readonly accepted: AcceptedPermissionsFile
  /** Sidecar files of the database, which show that a missing database existed. */
  readonly sidecars: () => Promise<readonly string[]>
}

/**
 * Locks the home, completes a planned swap and opens database, storage and vault. Throws `HomeInUse` and
 * `DatabaseRefused`.
 */
export async function openHome(
  { config, log, accepted, sidecars, crashLimits }: HomeOptions,
  parts: PartStack,
): Promise<Home> {
  const home = config.home_dir
  const lock = parts.own('home lock', await lockHome(home))
  reportSwap(home, log)
  const reserve = parts.own('disk reserve', new DiskReserve(join(config.data_dir, 'reserve'), log))
  if (isDatabaseFile(config)) await refuseMissing(config, sidecars)
  const key = vaultKeySource(config)
  const database = parts.own(
    'database',
    await openDatabase({
      url: config.database_url,
      password: readVariable('PGPASSWORD'),
      broadcastKey: async (sql) => {
        await checkSharedKey({ sql }, key, log.withTag('vault'))
        return await requireKey(key, 'messages-between-daemons')
      },
      log: log.withTag('database'),
      onFull: () => reserve.release(),
      postgres: postgresSettings(config),
    }),
  )
  const storage = parts.own('storage', openStorage(database, join(config.data_dir, 'files')))
  const [vault, restarts] = await Promise.all([
    openVault(database, key, log.withTag('vault')),
    RestartCount.open(storage),
    accepted.open(
      storage.forPlugin('core'),
      database.broadcast.isShared ? homeId({ homeDir: config.home_dir }) : undefined,
    ),
  ])
  // A start after a crash is a restart that nobody requested.
  if (lock.afterCrash) await restarts.increment()
  const crashes = new CrashRecord(home, crashLimits)
  return { lock, reserve, database, storage, vault, restarts, accepted, crashes }
}

async function requireKey(source: VaultKeySource, purpose: string): Promise<Uint8Array> {
  const key = await deriveKey(source, purpose)
  if (!key) throw new Error('the vault has no key')
  return key
}

/** Loads the code of plugins for their sidecar files only if the database file is missing. */
async function refuseMissing({ home_dir: home, database_url: url }: Config, sidecars: HomeOptions['sidecars']) {
  const path = url.slice('sqlite:'.length)
  if (existsSync(path)) return
  for (const name of await sidecars()) refuseLost(path, join(home, name))
}

function postgresSettings({ database }: Config): PostgresSettings {
  return {
    connections: database.connections,
    statementTimeoutMs: database.statement_timeout_secs * 1000,
    idleTransactionMs: database.idle_transaction_secs * 1000,
  }
}

/** Whether the database is a file of this machine. */
export function isDatabaseFile({ database_url: url }: Config): boolean {
  return url.startsWith('sqlite:') && url !== 'sqlite::memory:'
}

function reportSwap(home: string, log: ConsolaInstance): void {
  const swapped = completeSwap(home)
  if (!swapped) return
  const restored = Object.values(swapped.facts).join(', ')
  const previous = swapped.moves[0]?.keep ?? home
  log.info(`restored: ${restored}; the previous data is in ${previous}`)
}

/** How often this home was started again, kept across restarts. */
class RestartCount {
  readonly #storage: PluginStorage
  #count: number

  static async open(storage: PluginStorage): Promise<RestartCount> {
    return new RestartCount(storage, (await storage.forPlugin('core').getItem<number>('restart_count')) ?? 0)
  }
  private constructor(storage: PluginStorage, count: number) {
    this.#storage = storage
    this.#count = count
  }

  get count(): number {
    return this.#count
  }

  async increment(): Promise<void> {
    const next = this.#count + 1
    await this.#storage.forPlugin('core').setItem('restart_count', next)
    this.#count = next
  }
}
