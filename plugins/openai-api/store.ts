import type { PluginDatabase, Statement } from 'svc/sdk'

/** Which session holds which conversation of a client that sends the whole of it each time. */
export class ConversationStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** Claims the session whose content has this digest; nobody else gets it until it is settled. */
  async claim(agentId: string, digest: string, at: string): Promise<string | undefined> {
    const row = await this.#db.one<{
      session_id: string
    }>`UPDATE openai_api_conversation SET digest = NULL, used_at = ${at}
      WHERE digest = ${digest} AND agent_id = ${agentId} AND session_id = (
        SELECT c.session_id FROM openai_api_conversation c
        WHERE c.digest = ${digest} AND c.agent_id = ${agentId} LIMIT 1) RETURNING session_id`
    return row?.session_id
  }
  insert(sessionId: string, agentId: string, at: string): Statement {
    return this.#db.sql`INSERT INTO openai_api_conversation (session_id, agent_id, digest, used_at)
      VALUES (${sessionId}, ${agentId}, NULL, ${at})`
  }
  async settle(sessionId: string, digest: string, at: string): Promise<void> {
    await this.#db
      .run`UPDATE openai_api_conversation SET digest = ${digest}, used_at = ${at} WHERE session_id = ${sessionId}`
  }
  unused(before: string, limit: number): Promise<{ session_id: string; agent_id: string }[]> {
    return this.#db.all`SELECT session_id, agent_id FROM openai_api_conversation
      WHERE used_at < ${before} ORDER BY used_at LIMIT ${limit}`
  }
  async forget(sessionId: string): Promise<void> {
    await this.#db.run`DELETE FROM openai_api_conversation WHERE session_id = ${sessionId}`
  }
  async commit(statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }
}
