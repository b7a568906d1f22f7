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
