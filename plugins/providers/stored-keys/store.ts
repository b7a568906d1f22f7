import type { PluginDatabase, Statement } from 'svc/sdk'

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
