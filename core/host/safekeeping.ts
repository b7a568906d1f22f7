import { join, relative, resolve, sep } from 'node:path'
import type { Config } from '../config/schema.ts'
import { Refusal } from '../errors/error.ts'
import { checkFile } from '../storage/check-file.ts'
import { completedSwap, forgetSwap, planSwap } from '../storage/swap.ts'
import type { SwapPlan } from '../storage/swap.ts'
import { deriveKey, sealKey, unsealKey } from '../storage/vault-key.ts'
import { defineService } from './define.ts'

export type { SwapPlan }

/** What copying and putting back the daemon's data takes. Provided by the core. */
export interface Safekeeping {
  readonly homeDir: string
  readonly dataDir: string
  /** Where the database lies in `dataDir`, relative to it. Throws `conflict` when it is not there: on PostgreSQL, in memory, elsewhere. */
  databaseName(): string
  /** A consistent copy of the database while it is in use, mode 0600, whole or not there. */
  snapshot(file: string): Promise<void>
  /** What is wrong with a copy; `undefined` when it is whole. */
  check(file: string): Promise<string | undefined>
  /** A secret key for one purpose, from the key of the vault; `undefined` while there is none. */
  key(purpose: string): Promise<Uint8Array | undefined>
  /** The vault's key under a passphrase. */
  sealKey(passphrase: string): Promise<string>
  /** The text of the key file and the key for one purpose. Throws `invalid_request` for a wrong passphrase. */
  unsealKey(
    sealed: string,
    passphrase: string,
    purpose: string,
  ): Promise<{ readonly keyFile: string; readonly derived: Uint8Array }>
  /** From here on the swap will happen: at the next start, before anything is opened. Durable when it returns. */
  plan(swap: SwapPlan): void
  /** What the last start put in place and nobody has told of yet. */
  restored(): SwapPlan | undefined
  forget(): void
}
export const Safekeeping = defineService<Safekeeping>()('safekeeping')

export function createSafekeeping(config: Config, snapshot: (file: string) => Promise<void>): Safekeeping {
  const { home_dir: home, data_dir: data, database_url: url } = config
  const keyFile = join(home, 'vault.key')
  return {
    homeDir: home,
    dataDir: data,
    databaseName() {
      const path = /^sqlite:(.+)$/.exec(url)?.[1]
      if (path === undefined)
        throw new Refusal(
          'conflict',
          'The data is on a PostgreSQL server, which is copied and restored with its own tools, such as pg_dump',
        )
      if (path === ':memory:') throw new Refusal('conflict', 'The database is in memory: there is nothing to keep')
      const name = relative(data, resolve(path))
      if (name.startsWith('..') || name.includes(sep))
        throw new Refusal(
          'conflict',
          `The database lies outside ${data}: database_url has to name a file in data_dir for backups`,
        )
      return name
    },
    snapshot,
    check: checkFile,
    key: (purpose) => deriveKey(keyFile, purpose),
    sealKey: (passphrase) => sealKey(keyFile, passphrase),
    unsealKey,
    plan: (swap) => planSwap(home, swap),
    restored: () => completedSwap(home),
    forget: () => forgetSwap(home),
  }
}
