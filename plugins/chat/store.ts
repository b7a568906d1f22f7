import type { PluginDatabase, Statement } from 'svc/sdk'

/** The messages of failed turns are marked, which earlier versions did not do. */
export const FAILED_TURNS_MARKED = 'failed-turns-are-marked'

/** What was done once in this home. */
export class UpkeepStore {
  readonly #db: Pick<PluginDatabase, 'one' | 'sql'>
  constructor(db: Pick<PluginDatabase, 'one' | 'sql'>) {
    this.#db = db
  }

  async isDone(name: string): Promise<boolean> {
    return (await this.#db.one`SELECT done_at FROM chat_upkeep WHERE name = ${name}`) !== undefined
  }
  done(name: string, at: string): Statement {
    return this.#db.sql`INSERT INTO chat_upkeep (name, done_at) VALUES (${name}, ${at}) ON CONFLICT (name) DO NOTHING`
  }
}
