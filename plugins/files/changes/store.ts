import * as v from 'valibot'
import type { PluginDatabase } from 'svc/sdk'

const ChangeRow = v.object({ path: v.string(), before_hash: v.string(), after_hash: v.string() })
export type ChangeRow = v.InferOutput<typeof ChangeRow>

/** What calls were about to do to files. */
export class ChangeStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  async insert(call: { readonly key: string; readonly agentId: string }, rows: readonly ChangeRow[], at: string) {
    await this.#db.batch(
      rows.map(
        ({ path, before_hash: before, after_hash: after }) => this.#db.sql`INSERT INTO files_change
          (call_key, path, agent_id, before_hash, after_hash, created_at)
          VALUES (${call.key}, ${path}, ${call.agentId}, ${before}, ${after}, ${at})`,
      ),
    )
  }
  async ofCall(key: string): Promise<readonly ChangeRow[]> {
    return v.parse(
      v.array(ChangeRow),
      await this.#db.all`SELECT path, before_hash, after_hash FROM files_change WHERE call_key = ${key} ORDER BY path`,
    )
  }
  async prune(before: string): Promise<void> {
    await this.#db.run`DELETE FROM files_change WHERE created_at < ${before}`
  }
  async clear(agentId: string): Promise<void> {
    await this.#db.run`DELETE FROM files_change WHERE agent_id = ${agentId}`
  }
}
