import { Refusal } from 'svc/sdk'
import type { PluginDatabase, Statement, Vault } from 'svc/sdk'
import { MAX_KEYS } from './keys.ts'
import type { HeldKeys } from './keys.ts'

/** How often a key is added again when other daemons change the keys of the provider meanwhile. */
const MAX_TRIES = 10

export interface KeyChange {
  readonly provider: string
  readonly given: readonly string[]
  readonly address: string | undefined
  /** For the same batch. */
  readonly entries: readonly Statement[]
}
export interface KeyChangeDeps {
  readonly vault: Vault
  readonly versions: Pick<KeyVersionStore, 'find' | 'advance' | 'advanceFrom'>
  /** Reads those that are there, which the given ones join; absent: they are replaced. */
  readonly held: (() => Promise<HeldKeys | undefined>) | undefined
}

/** Stores keys in the vault. Of those that are there another daemon may change some at the same moment. */
export async function storeKeys({ vault, versions, held }: KeyChangeDeps, change: KeyChange): Promise<void> {
  const { provider, given, address } = change
  if (!held) return write(vault, change, given, versions.advance(provider))
  for (let attempt = 1; ; attempt++) {
    const version = await versions.find(provider)
    const before = await held()
    const keys = before?.address === address ? [...(before?.keys ?? []), ...given] : given
    try {
      return await write(vault, change, keys, versions.advanceFrom(provider, version))
    } catch (error) {
      if (attempt === MAX_TRIES || (await versions.find(provider)) === version) throw error
    }
  }
}
async function write(
  vault: Vault,
  { provider, address, entries }: KeyChange,
  keys: readonly string[],
  version: Statement,
): Promise<void> {
  const all = [...new Set(keys)]
  if (all.length > MAX_KEYS)
    throw new Refusal('invalid_request', `Provider ${provider} cannot have more than ${MAX_KEYS} keys`)
  await vault.write(provider, JSON.stringify({ keys: all, address }), [version, ...entries])
}

/** Counts the changes of the stored keys of each provider, which lie in the vault. */
export class KeyVersionStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** 0 for a provider whose keys were never changed. */
  async find(provider: string): Promise<number> {
    const row = await this.#db.one<{ readonly version: number | string }>`SELECT version FROM providers_key_version
      WHERE provider = ${provider}`
    return Number(row?.version ?? 0)
  }
  /** For the batch that changes the keys. */
  advance(provider: string): Statement {
    return this.#db.sql`INSERT INTO providers_key_version (provider, version) VALUES (${provider}, 1)
      ON CONFLICT (provider) DO UPDATE SET version = providers_key_version.version + 1`
  }
  /** The same, which makes its batch fail when they have changed since: the version becomes NULL. */
  advanceFrom(provider: string, version: number): Statement {
    if (version === 0)
      return this.#db.sql`INSERT INTO providers_key_version (provider, version) VALUES (${provider}, 1)`
    return this.#db.sql`UPDATE providers_key_version
      SET version = CASE WHEN version = ${version} THEN version + 1 END WHERE provider = ${provider}`
  }
}
