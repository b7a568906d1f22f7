import type { PluginDatabase } from 'svc/sdk'

export class GreetingStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** How often this name was greeted, this time included. */
  async count(name: string): Promise<number> {
    const row = await this.#db.one<{ times: number }>`INSERT INTO hello_greeting (name, times) VALUES (${name}, 1)
      ON CONFLICT (name) DO UPDATE SET times = hello_greeting.times + 1 RETURNING times`
    return Number(row?.times ?? 1)
  }
}
