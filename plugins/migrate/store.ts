import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Kind } from './model.ts'

const Target = v.object({ target: v.string() })

/** What came over. */
export class ItemStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }
  /** What was made of it here; empty when that was begun and may have ended, `undefined` when it was not begun. */
  async target(id: string): Promise<string | undefined> {
    const row = await this.#db.one`SELECT target FROM migrate_item WHERE id = ${id}`
    return v.parse(v.optional(Target), row)?.target
  }
  /** For the batch that makes it. */
  insert(item: {
    readonly id: string
    readonly runId: string
    readonly kind: Kind
    readonly name: string
    readonly target: string
    readonly at: string
  }): Statement {
    const { id, runId, kind, name, target, at } = item
    return this.#db.sql`INSERT INTO migrate_item (id, run_id, kind, name, target, created_at)
      VALUES (${id}, ${runId}, ${kind}, ${name}, ${target}, ${at})
      ON CONFLICT (id) DO UPDATE SET run_id = excluded.run_id, target = excluded.target WHERE migrate_item.target = ''`
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
