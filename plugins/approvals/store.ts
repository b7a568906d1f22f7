import * as v from 'valibot'
import type { PluginDatabase, Statement } from 'svc/sdk'
import type { Approval } from './contract.ts'
import { RequestRow } from './schema.ts'

export class ApprovalStore {
  readonly #db: PluginDatabase
  constructor(db: PluginDatabase) {
    this.#db = db
  }

  /** The limit is part of the statement: over it the state becomes NULL, which the column refuses, and the batch fails with it. */
  insert(approval: Approval, payload: string, limit: number): Statement {
    return this.#db
      .sql`INSERT INTO approvals_request (id, agent_id, agent_name, turn_id, session_id, call_id, tool_name, action, description, summary,
        payload, action_hash, risk, state, requested_at, timeout_secs, expires_at)
      VALUES (${approval.id}, ${approval.agentId}, ${approval.agentName}, ${approval.turnId}, ${approval.sessionId}, ${approval.callId}, ${approval.tool},
        ${approval.action}, ${approval.description}, ${approval.summary}, ${payload}, ${approval.actionHash}, ${approval.risk},
        CASE WHEN (SELECT COUNT(*) FROM approvals_request WHERE agent_id = ${approval.agentId} AND state = 'pending') < ${limit} THEN 'pending' END,
        ${approval.requestedAt}, ${approval.timeoutSecs}, ${approval.expiresAt})`
  }
  /** Who is first wins: for the second the state becomes NULL, and its batch fails, audit entry and all. */
  answer(id: string, state: 'approved' | 'rejected', by: string, at: string): Statement {
    return this.#db.sql`UPDATE approvals_request SET decided_at = ${at}, decided_by = ${by},
      state = CASE WHEN state = 'pending' AND expires_at > ${at} THEN ${state} END WHERE id = ${id}`
  }
  expire(id: string, by: string, at: string): Statement {
    return this.#db.sql`UPDATE approvals_request SET decided_at = ${at}, decided_by = ${by},
      state = CASE WHEN state = 'pending' THEN 'expired' END WHERE id = ${id}`
  }
  async commit(...statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }

  /** Whether this call is the one that an approval is used for. */
  async consume(id: string, at: string): Promise<boolean> {
    const { changes } = await this.#db
      .run`UPDATE approvals_request SET consumed_at = ${at} WHERE id = ${id} AND state = 'approved' AND consumed_at IS NULL`
    return changes === 1
  }

  async find(id: string): Promise<RequestRow | undefined> {
    return v.parse(v.optional(RequestRow), await this.#db.one`SELECT * FROM approvals_request WHERE id = ${id}`)
  }
  /** Everything an agent asked for exactly this action, newest first. */
  async ofAction(agentId: string, hash: string): Promise<readonly RequestRow[]> {
    return v.parse(
      v.array(RequestRow),
      await this.#db.all`SELECT * FROM approvals_request
      WHERE agent_id = ${agentId} AND action_hash = ${hash} ORDER BY requested_at DESC, id LIMIT 50`,
    )
  }
  async pending(): Promise<readonly RequestRow[]> {
    return v.parse(
      v.array(RequestRow),
      await this.#db.all`SELECT * FROM approvals_request WHERE state = 'pending' ORDER BY requested_at, id`,
    )
  }
  async pendingOf(agentId: string): Promise<readonly RequestRow[]> {
    return v.parse(
      v.array(RequestRow),
      await this.#db.all`SELECT * FROM approvals_request
      WHERE state = 'pending' AND agent_id = ${agentId} ORDER BY requested_at, id`,
    )
  }
  async decided(limit: number): Promise<readonly RequestRow[]> {
    return v.parse(
      v.array(RequestRow),
      await this.#db.all`SELECT * FROM approvals_request
      WHERE decided_at IS NOT NULL ORDER BY decided_at DESC, id LIMIT ${limit}`,
    )
  }
  async decidedOf(agentId: string, limit: number): Promise<readonly RequestRow[]> {
    return v.parse(
      v.array(RequestRow),
      await this.#db.all`SELECT * FROM approvals_request
      WHERE decided_at IS NOT NULL AND agent_id = ${agentId} ORDER BY decided_at DESC, id LIMIT ${limit}`,
    )
  }
  async prune(before: string): Promise<void> {
    await this.#db.run`DELETE FROM approvals_request WHERE decided_at < ${before}`
  }
}
