import * as v from 'valibot'
import { jsonColumn, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import { idSet } from '../store.ts'

const UseRow = v.object({ turn_id: v.string(), memory_ids: jsonColumn(v.array(v.string())) })
/** Turns between their question and their end, in this process. */
const MAX_OPEN = 10_000

/** Which memories a turn was told of. */
export class MemoryUses {
  readonly #db: PluginDatabase
  readonly #open = new Map<string, readonly string[]>()
  readonly #rows: RowReader<typeof UseRow>
  constructor(db: PluginDatabase, log: Pick<Logger, 'error'>) {
    this.#db = db
    this.#rows = new RowReader({ table: 'memory_use', key: ['turn_id'], schema: UseRow, log })
  }

  found(turnId: string, ids: readonly string[]): void {
    this.#open.delete(turnId)
    if (ids.length === 0) return
    if (this.#open.size >= MAX_OPEN) for (const oldest of this.#open.keys()) if (this.#open.delete(oldest)) break
    this.#open.set(turnId, ids)
  }
  /** For the batch that ends the turn. */
  ended(turnId: string, agentId: string, userId: string | undefined, at: string): readonly Statement[] {
    const ids = this.#open.get(turnId)
    if (!ids) return []
    this.#open.delete(turnId)
    return [
      this.#db.sql`INSERT INTO memory_use (turn_id, agent_id, user_id, memory_ids, created_at)
        VALUES (${turnId}, ${agentId}, ${userId ?? ''}, ${JSON.stringify(ids)}, ${at}) ON CONFLICT (turn_id) DO NOTHING`,
    ]
  }
  failed(turnId: string): void {
    this.#open.delete(turnId)
  }

  /** The memories of these turns, by turn; of one person, or without `userId` of everybody. */
  async find(turnIds: readonly string[], userId?: string): Promise<ReadonlyMap<string, readonly string[]>> {
    const set = idSet(turnIds)
    const rows = this.#rows.all(
      await this.#db.all`SELECT turn_id, memory_ids FROM memory_use
        WHERE turn_id IN (SELECT key FROM json_each(${set}))
          AND (${Number(userId === undefined)} = 1 OR user_id = ${userId ?? ''})
          AND agent_id NOT IN (SELECT agent_id FROM memory_removal)`,
    )
    return new Map(rows.map(({ turn_id: turnId, memory_ids: ids }) => [turnId, ids]))
  }
  ofUserForgotten(userId: string): Statement {
    return this.#db.sql`DELETE FROM memory_use WHERE user_id = ${userId}`
  }
}
