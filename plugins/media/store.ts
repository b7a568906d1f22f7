import type { PluginDatabase, Statement } from 'svc/sdk'

/** See `migrations.ts`. */
export interface StoredCall {
  readonly state: 'sent' | 'paid' | 'done'
  /** What the agent was told. */
  readonly result: string | null
  /** JSON of the rest of `Made`; `null` for a call that ended before there was a place for it. */
  readonly detail: string | null
}

/** Calls that cost something, by the id that is the same when a call is made again after a crash. */
export class CallStore {
  readonly #db: Pick<PluginDatabase, 'sql' | 'one' | 'batch'>
  constructor(db: Pick<PluginDatabase, 'sql' | 'one' | 'batch'>) {
    this.#db = db
  }

  async find(id: string): Promise<StoredCall | undefined> {
    return this.#db.one<StoredCall>`SELECT state, result, detail FROM media_call WHERE id = ${id}`
  }
  begin(call: {
    readonly id: string
    readonly agentId: string
    readonly tool: string
    readonly at: string
  }): Statement {
    return this.#db.sql`INSERT INTO media_call (id, agent_id, tool, state, created_at)
      VALUES (${call.id}, ${call.agentId}, ${call.tool}, 'sent', ${call.at})`
  }
  paid(id: string): Statement {
    return this.#db.sql`UPDATE media_call SET state = 'paid' WHERE id = ${id}`
  }
  done(id: string, result: string, detail: string): Statement {
    return this.#db.sql`UPDATE media_call SET state = 'done', result = ${result}, detail = ${detail} WHERE id = ${id}`
  }
  /** For a call that made nothing. */
  remove(id: string): Statement {
    return this.#db.sql`DELETE FROM media_call WHERE id = ${id}`
  }
  removeOf(agentId: string): Statement {
    return this.#db.sql`DELETE FROM media_call WHERE agent_id = ${agentId}`
  }
  async prune(before: string): Promise<void> {
    await this.#db.batch([this.#db.sql`DELETE FROM media_call WHERE created_at < ${before}`])
  }
}
