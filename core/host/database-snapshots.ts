import { relative, resolve, sep } from 'node:path'
import type { Config } from '../config/schema.ts'
import { Refusal } from '../errors/error.ts'
import { checkFile } from '../storage/check-file.ts'
import { completedSwap, forgetSwap, planSwap } from '../storage/swap.ts'
import type { SwapPlan } from '../storage/swap.ts'
import { deriveKey, sealKey, unsealKey } from '../storage/vault-key.ts'
import { vaultKeySource } from '../storage/vault-key-source.ts'
import { defineService } from './define.ts'

export type { SwapPlan }

/** Copies the daemon's data and puts copies back. Provided by the core. */
export interface DatabaseSnapshots {
  readonly homeDir: string
  readonly dataDir: string
  /**
   * The path of the database, relative to `dataDir`. Throws `conflict` when it is not there: on PostgreSQL, in
   * memory, elsewhere.
   */
  databaseName(): string
  /** Copies the database consistently while it is in use. The file has mode 0600 and is complete or absent. */
  snapshot(file: string): Promise<void>
  /** What is wrong with a copy; `undefined` when it is intact. */
  checkFile(file: string): Promise<string | undefined>
  /** A secret key for one purpose, derived from the vault's key; `undefined` while the vault has none. */
  deriveKey(purpose: string): Promise<Uint8Array | undefined>
  /** Encrypts the vault's key with a passphrase. */
  sealKey(passphrase: string): Promise<string>
  /** The text of the key file and the key for one purpose. Throws `invalid_request` for a wrong passphrase. */
  unsealKey(
    sealed: string,
    passphrase: string,
    purpose: string,
  ): Promise<{ readonly keyFile: string; readonly derived: Uint8Array }>
  /** The next start performs the swap before it opens anything. The plan is durable when this returns. */
  planSwap(swap: SwapPlan): void
  /** The swap that the last start performed, until `forgetSwap`. */
  completedSwap(): SwapPlan | undefined
  forgetSwap(): void
}
export const DatabaseSnapshots = defineService<DatabaseSnapshots>()('database-snapshots')

export function createDatabaseSnapshots(config: Config, snapshot: (file: string) => Promise<void>): DatabaseSnapshots {
  const { home_dir: home, data_dir: data } = config
  const key = vaultKeySource(config)
  return {
    homeDir: home,
    dataDir: data,
    databaseName: () => databaseName(config),
    snapshot,
    checkFile,
    deriveKey: (purpose) => deriveKey(key, purpose),
    sealKey: (passphrase) => sealKey(key, passphrase),
    unsealKey,
    planSwap: (swap) => planSwap(home, swap),
    completedSwap: () => completedSwap(home),
    forgetSwap: () => forgetSwap(home),
  }
}

function databaseName({ data_dir: data, database_url: url }: Config): string {
  const path = /^sqlite:(.+)$/.exec(url)?.[1]
  if (path === undefined)
    throw new Refusal(
      'conflict',
      'The data is on a PostgreSQL server: back it up with pg_dump and restore it with pg_restore, together with the key ' +
        'of the vault and the files (docs/backup.md, PostgreSQL)',
    )
  if (path === ':memory:') throw new Refusal('conflict', 'The database is in memory: there is nothing to copy')
  const name = relative(data, resolve(path))
  if (name.startsWith('..') || name.includes(sep))
    throw new Refusal(
      'conflict',
      `The database lies outside ${data}: database_url has to name a file in data_dir for backups`,
    )
  return name
}
