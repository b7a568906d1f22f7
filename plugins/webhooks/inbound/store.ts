import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { WakeRow } from '../schema.ts'

const SeenRequest = v.object({ fingerprint: v.string(), effect_id: v.string() })
export type SeenRequest = v.InferOutput<typeof SeenRequest>

export class InboundStore {
  readonly #db: PluginDatabase
  readonly #wakes: RowReader<typeof WakeRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#wakes = new RowReader({ table: 'webhooks_wake', key: ['id'], schema: WakeRow, log })
  }

  /** Remembers a request under the id of its sender. Returns the row of the first request with this id. */
  async remember(
    id: string,
    row: SeenRequest,
    now: string,
  ): Promise<{ readonly isFirst: boolean; readonly row: SeenRequest }> {
    const { changes } = await this.#db.run`INSERT INTO webhooks_seen (id, fingerprint, effect_id, seen_at)
      VALUES (${id}, ${row.fingerprint}, ${row.effect_id}, ${now}) ON CONFLICT (id) DO NOTHING`
    if (changes === 1) return { isFirst: true, row }
    const stored = await this.#db.one`SELECT fingerprint, effect_id FROM webhooks_seen WHERE id = ${id}`
    return { isFirst: false, row: v.parse(v.optional(SeenRequest, row), stored) }
  }
  deleteSeen(before: string): Statement {
    return this.#db.sql`DELETE FROM webhooks_seen WHERE seen_at < ${before}`
  }

  wake(row: Omit<WakeRow, 'attempts'>): Statement {
    return this.#db.sql`INSERT INTO webhooks_wake (id, agent, mode, text, state, attempts, created_at)
      VALUES (${row.id}, ${row.agent}, ${row.mode}, ${row.text}, 'pending', 0, ${row.created_at})
      ON CONFLICT (id) DO NOTHING`
  }
  async has(id: string): Promise<boolean> {
    return (await this.#db.one`SELECT id FROM webhooks_wake WHERE id = ${id}`) !== undefined
  }
  /** Oldest first. */
  async waiting(limit: number): Promise<readonly WakeRow[]> {
    const rows = await this.#db.all`SELECT id, agent, mode, text, attempts, created_at FROM webhooks_wake
      WHERE state = 'pending' ORDER BY created_at, id LIMIT ${limit}`
    return this.#wakes.all(rows)
  }
  async attempted(id: string): Promise<void> {
    await this.#db.run`UPDATE webhooks_wake SET attempts = attempts + 1 WHERE id = ${id} AND state = 'pending'`
  }
  async ended(id: string, state: 'done' | 'dead'): Promise<void> {
    await this.#db.run`UPDATE webhooks_wake SET state = ${state} WHERE id = ${id}`
  }
  deleteWakes(before: string): Statement {
    return this.#db.sql`DELETE FROM webhooks_wake WHERE state <> 'pending' AND created_at < ${before}`
  }
  commit(statements: readonly Statement[]) {
    return this.#db.batch(statements)
  }
}
