import type { PluginDatabase, Statement } from 'svc/sdk'

/** Base URLs that were set while running. */
export class AddressStore {
  readonly #db: PluginDatabase
  readonly #tellChanged: () => readonly Statement[]
  /** `tellChanged` is for each batch that changes rows: other daemons have them in memory. */
  constructor(db: PluginDatabase, tellChanged: () => readonly Statement[]) {
    this.#db = db
    this.#tellChanged = tellChanged
  }

  async all(): Promise<readonly (readonly [provider: string, url: string])[]> {
    const rows = await this.#db.all<{ provider: string; url: string }>`SELECT provider, url FROM providers_address`
    return rows.map(({ provider, url }) => [provider, url])
  }
  async set(provider: string, url: string, entries: readonly Statement[]): Promise<void> {
    await this.#db.batch([
      this.#db.sql`INSERT INTO providers_address (provider, url) VALUES (${provider}, ${url}) ON CONFLICT (provider)
          DO UPDATE SET url = excluded.url`,
      ...entries,
      ...this.#tellChanged(),
    ])
  }
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
