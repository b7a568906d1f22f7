import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import { WakeRow } from '../schema.ts'

const Seen = v.object({ fingerprint: v.string(), effect_id: v.string() })
export type Seen = v.InferOutput<typeof Seen>

export class InboundStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** Remembers a request by the id its sender gave it. What was remembered first, which is this one or an earlier. */
  async remember(id: string, row: Seen, now: string): Promise<{ readonly first: boolean; readonly row: Seen }> {
    const { changes } = await this.#db
      .run`INSERT INTO webhooks_seen (id, fingerprint, effect_id, seen_at) VALUES (${id}, ${row.fingerprint}, ${row.effect_id}, ${now}) ON CONFLICT (id) DO NOTHING`
    if (changes === 1) return { first: true, row }
    return {
      first: false,
      row: v.parse(
        v.optional(Seen, row),
        await this.#db.one`SELECT fingerprint, effect_id FROM webhooks_seen WHERE id = ${id}`,
      ),
    }
  }
  forgetSeen(before: string): Statement {
    return this.#db.sql`DELETE FROM webhooks_seen WHERE seen_at < ${before}`
  }

  wake(row: Omit<WakeRow, 'attempts'>): Statement {
    return this.#db
      .sql`INSERT INTO webhooks_wake (id, agent, mode, text, state, attempts, created_at) VALUES (${row.id}, ${row.agent}, ${row.mode}, ${row.text}, 'pending', 0, ${row.created_at}) ON CONFLICT (id) DO NOTHING`
  }
  async has(id: string): Promise<boolean> {
    return (await this.#db.one`SELECT id FROM webhooks_wake WHERE id = ${id}`) !== undefined
  }
  /** Oldest first. */
  async waiting(limit: number): Promise<readonly WakeRow[]> {
    return v.parse(
      v.array(WakeRow),
      await this.#db
        .all`SELECT id, agent, mode, text, attempts, created_at FROM webhooks_wake WHERE state = 'pending' ORDER BY created_at, id LIMIT ${limit}`,
    )
  }
  async attempted(id: string): Promise<void> {
    await this.#db.run`UPDATE webhooks_wake SET attempts = attempts + 1 WHERE id = ${id} AND state = 'pending'`
  }
  async ended(id: string, state: 'done' | 'dead'): Promise<void> {
    await this.#db.run`UPDATE webhooks_wake SET state = ${state} WHERE id = ${id}`
  }
  forgetWakes(before: string): Statement {
    return this.#db.sql`DELETE FROM webhooks_wake WHERE state <> 'pending' AND created_at < ${before}`
  }
  commit(statements: readonly Statement[]) {
    return this.#db.batch(statements)
  }
}
