import * as v from 'valibot'
import { jsonColumn, RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'

const UseRow = v.object({ turn_id: v.string(), agent_id: v.string(), memory_ids: jsonColumn(v.array(v.string())) })
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

  async find(turnId: string): Promise<{ readonly agentId: string; readonly ids: readonly string[] } | undefined> {
    const row = this.#rows.one(
      await this.#db.one`SELECT turn_id, agent_id, memory_ids FROM memory_use WHERE turn_id = ${turnId}`,
    )
    return row && { agentId: row.agent_id, ids: row.memory_ids }
  }
  ofAgentKilled(agentId: string): Statement {
    return this.#db.sql`DELETE FROM memory_use WHERE agent_id = ${agentId}`
  }
  /** Of turns that nobody looks at any more. */
  dropBefore(at: string): Statement {
    return this.#db.sql`DELETE FROM memory_use WHERE created_at < ${at}`
  }
}
