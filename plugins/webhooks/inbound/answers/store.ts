import * as v from 'valibot'
import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase } from 'svc/sdk'

/** Where the answer of a turn goes, and whether it is there. `skipped`: there was nothing to deliver. */
export const AnswerRow = v.object({
  id: v.string(),
  agent_id: v.string(),
  channel: v.string(),
  account: v.nullable(v.string()),
  recipient: v.string(),
  thread: v.nullable(v.string()),
  state: v.picklist(['pending', 'queued', 'skipped', 'failed']),
  error: v.nullable(v.string()),
  created_at: v.string(),
})
export type AnswerRow = v.InferOutput<typeof AnswerRow>

/** The rows of `webhooks_answer`. */
export class AnswerStore {
  readonly #db: PluginDatabase
  readonly #rows: RowReader<typeof AnswerRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'webhooks_answer', key: ['id'], schema: AnswerRow, log })
  }

  /** Of a row that is there already, only the time is written: it is then that of whoever tries last. */
  async insert({ id, agent_id, channel, account, recipient, thread, created_at }: AnswerRow): Promise<void> {
    await this.#db.run`INSERT INTO webhooks_answer (id, agent_id, channel, account, recipient, thread, state,
        error, created_at)
      VALUES (${id}, ${agent_id}, ${channel}, ${account}, ${recipient}, ${thread}, 'pending', NULL, ${created_at})
      ON CONFLICT (id) DO UPDATE SET created_at = excluded.created_at WHERE webhooks_answer.state = 'pending'`
  }
  async find(id: string): Promise<AnswerRow | undefined> {
    return this.#rows.oneOrThrow(await this.#db.one`SELECT * FROM webhooks_answer WHERE id = ${id}`)
  }
  /** Oldest first. */
  async waiting(limit: number): Promise<readonly AnswerRow[]> {
    const rows = await this.#db.all`SELECT * FROM webhooks_answer WHERE state = 'pending'
      ORDER BY created_at, id LIMIT ${limit}`
    return this.#rows.all(rows)
  }
  async ended(id: string, state: AnswerRow['state'], error: string | null = null): Promise<void> {
    await this.#db.run`UPDATE webhooks_answer SET state = ${state}, error = ${error}
      WHERE id = ${id} AND state = 'pending'`
  }
  /** Nothing when somebody else has tried since. */
  async remove(id: string, createdAt: string): Promise<void> {
    await this.#db.run`DELETE FROM webhooks_answer
      WHERE id = ${id} AND created_at = ${createdAt} AND state = 'pending'`
  }
  async deleteOld(before: string): Promise<void> {
    await this.#db.run`DELETE FROM webhooks_answer WHERE created_at < ${before}`
  }
}
