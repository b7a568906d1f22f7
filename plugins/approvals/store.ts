import { RowReader } from 'svc/internal'
import type { Logger, PluginDatabase, Statement } from 'svc/sdk'
import type { Approval, Grant, Person, Scope } from './contract.ts'
import type { ApprovalProofs } from './proof.ts'
import { answerColumns, EscalationRow, GrantRow, RequestRow } from './schema.ts'

export class ApprovalStore {
  readonly #db: PluginDatabase
  readonly #requests: RowReader<typeof RequestRow>
  readonly #grants: RowReader<typeof GrantRow>
  readonly #escalations: RowReader<typeof EscalationRow>
  readonly #proofs: () => Promise<ApprovalProofs>
  readonly #tellDecided: (id: string) => readonly Statement[]
  /** `proofs` loads its code with the first row. `tellDecided` is for the batch that decides a request: the other daemons on the database hear of it. */
  constructor(
    db: PluginDatabase,
    log: Pick<Logger, 'error'>,
    proofs: () => Promise<ApprovalProofs>,
    tellDecided: (id: string) => readonly Statement[] = () => [],
  ) {
    this.#db = db
    this.#proofs = proofs
    this.#requests = new RowReader({ table: 'approvals_request', key: ['id'], schema: RequestRow, log })
    this.#grants = new RowReader({ table: 'approvals_grant', key: ['id'], schema: GrantRow, log })
    this.#escalations = new RowReader({ table: 'approvals_escalation', key: ['id'], schema: EscalationRow, log })
    this.#tellDecided = tellDecided
  }

  /**
   * The limit is part of the statement: over it the state becomes NULL, which the column refuses, and the batch fails
   * with it.
   */
  async insert(approval: Approval, payload: string, limit: number): Promise<Statement> {
    const form = approval.form === undefined ? null : JSON.stringify(approval.form)
    const proof = await (await this.#proofs()).ofNew(approval, payload, form)
    return {
      ...this.#db
        .sql`INSERT INTO approvals_request (id, agent_id, agent_name, turn_id, session_id, call_id, tool_name, action,
        description, summary,
        payload, action_hash, risk, state, requested_at, timeout_secs, expires_at, intent, standing_key, covers,
        needed, form, lasting, proof)
      VALUES (${approval.id}, ${approval.agentId}, ${approval.agentName}, ${approval.turnId}, ${approval.sessionId},
      ${approval.callId}, ${approval.tool},
        ${approval.action}, ${approval.description}, ${approval.summary}, ${payload}, ${approval.actionHash},
        ${approval.risk},
        CASE WHEN (SELECT COUNT(*) FROM approvals_request WHERE agent_id = ${approval.agentId}
        AND state = 'pending') < ${limit} THEN 'pending' END,
        ${approval.requestedAt}, ${approval.timeoutSecs}, ${approval.expiresAt}, ${approval.intent},
        ${approval.standing?.key ?? null}, ${approval.standing?.covers ?? null}, ${approval.needed}, ${form},
        ${approval.lasting ? 1 : 0}, ${proof})`,
      exclusive: 'approvals_request',
    }
  }
  /** Who is first wins: for the second the state becomes NULL, and its batch fails, audit entry and all. */
  async answer(
    row: RequestRow,
    state: 'approved' | 'rejected',
    {
      by,
      credential,
      at,
      scope,
      content,
      reason,
    }: Pick<Approval, 'content'> & {
      by: string
      /** What an approver presented beside the API key. */
      credential?: string | undefined
      at: string
      scope: Scope | null
      reason?: string | undefined
    },
  ): Promise<readonly Statement[]> {
    const { id } = row
    const answer = {
      decided_at: at,
      decided_by: by,
      scope,
      credential: credential ?? null,
      ...answerColumns(content, reason),
    }
    const proof = await (await this.#proofs()).ofRequest({ ...row, ...answer, state })
    const statement = this.#db
      .sql`UPDATE approvals_request SET decided_at = ${at}, decided_by = ${by}, scope = ${scope},
      credential = ${answer.credential}, content = ${answer.content}, reason = ${answer.reason},
      proof = ${proof}, state = CASE WHEN state = 'pending' AND expires_at > ${at}
      AND (needed = 1 OR ${state} = 'rejected') THEN ${state} END WHERE id = ${id}`
    return [statement, ...this.#tellDecided(id)]
  }
  /** The first of two people. `replaces`: whose approval does not count any more. */
  async approveFirst(
    { id, action_hash: hash, first_person: replaces }: RequestRow,
    by: Person,
    credential: string | undefined,
    at: string,
  ): Promise<Statement> {
    const first = {
      first_by: by.name,
      first_person: by.person,
      first_at: at,
      first_credential: credential ?? null,
      first_in_own_chat: by.inOwnChat ? 1 : 0,
    }
    const proof = await (await this.#proofs()).ofFirst({ ...first, id, action_hash: hash })
    return this.#db.sql`UPDATE approvals_request SET first_by = ${first.first_by}, first_person = ${first.first_person},
      first_at = ${at}, first_credential = ${first.first_credential}, first_in_own_chat = ${first.first_in_own_chat},
      first_proof = ${proof},
      state = CASE WHEN state = 'pending' AND expires_at > ${at} AND needed = 2
      AND coalesce(first_person, '') = ${replaces ?? ''} THEN state END WHERE id = ${id}`
  }
  /** Another person than the first one, whose approval has to be the one that was looked at. */
  async approveSecond(
    row: RequestRow,
    by: string,
    credential: string | undefined,
    at: string,
  ): Promise<readonly Statement[]> {
    const { id, first_person: first } = row
    const answer = { decided_at: at, decided_by: by, scope: 'once' as const, credential: credential ?? null }
    const proof = await (await this.#proofs()).ofRequest({ ...row, ...answer, state: 'approved' })
    const statement = this.#db.sql`UPDATE approvals_request SET decided_at = ${at}, decided_by = ${by}, scope = 'once',
      credential = ${answer.credential}, proof = ${proof},
      state = CASE WHEN state = 'pending' AND expires_at > ${at} AND first_person = ${first} THEN 'approved' END
      WHERE id = ${id}`
    return [statement, ...this.#tellDecided(id)]
  }
  /** Fails with its batch when this chat was asked before or the request is answered: the column refuses NULL. */
  escalate(id: string, approvalId: string, chat: { readonly channel: string; readonly to: string }, at: string) {
    return this.#db.sql`INSERT INTO approvals_escalation (id, approval_id, channel, chat, escalated_at)
      VALUES (${id}, ${approvalId}, ${chat.channel}, ${chat.to},
        CASE WHEN (SELECT state FROM approvals_request WHERE id = ${approvalId}) = 'pending' THEN ${at} END)`
  }
  /** Of pending requests. */
  async escalations(): Promise<readonly EscalationRow[]> {
    return this.#escalations.all(
      await this.#db.all`SELECT e.id, e.approval_id, e.channel, e.chat FROM approvals_escalation e
      JOIN approvals_request r ON r.id = e.approval_id WHERE r.state = 'pending' ORDER BY e.escalated_at, e.id`,
    )
  }
  async isEscalated(id: string): Promise<boolean> {
    return (await this.#db.one`SELECT id FROM approvals_escalation WHERE id = ${id}`) !== undefined
  }
  async expire(row: RequestRow, by: string, at: string): Promise<readonly Statement[]> {
    const { id } = row
    const proof = await (await this.#proofs()).ofRequest({ ...row, decided_at: at, decided_by: by, state: 'expired' })
    const statement = this.#db
      .sql`UPDATE approvals_request SET decided_at = ${at}, decided_by = ${by}, proof = ${proof},
      state = CASE WHEN state = 'pending' THEN 'expired' END WHERE id = ${id}`
    return [statement, ...this.#tellDecided(id)]
  }
  async commit(...statements: readonly Statement[]): Promise<void> {
    await this.#db.batch(statements)
  }

  /** Whether this call is the one that an approval is used for. */
  async consume(id: string, at: string): Promise<boolean> {
    const { changes } = await this.#db
      .run`UPDATE approvals_request SET consumed_at = ${at} WHERE id = ${id} AND state = 'approved'
        AND consumed_at IS NULL`
    return changes === 1
  }

  /** Expired where no daemon wrote the row as it is. */
  async find(id: string): Promise<RequestRow | undefined> {
    const row = this.#requests.oneOrThrow(await this.#db.one`SELECT * FROM approvals_request WHERE id = ${id}`)
    return row && (await (await this.#proofs()).checked(row))
  }
  async #checked(rows: readonly RequestRow[]): Promise<readonly RequestRow[]> {
    if (rows.length === 0) return rows
    const proofs = await this.#proofs()
    return await Promise.all(rows.map((row) => proofs.checked(row)))
  }
  /** All requests of an agent for exactly this action, newest first. */
  async ofAction(agentId: string, hash: string): Promise<readonly RequestRow[]> {
    return await this.#checked(
      this.#requests.all(
        await this.#db.all`SELECT * FROM approvals_request
      WHERE agent_id = ${agentId} AND action_hash = ${hash} ORDER BY requested_at DESC, id LIMIT 50`,
      ),
    )
  }
  async pending(): Promise<readonly RequestRow[]> {
    const rows = this.#requests.all(
      await this.#db.all`SELECT * FROM approvals_request WHERE state = 'pending' ORDER BY requested_at, id`,
    )
    return (await this.#checked(rows)).filter(({ state }) => state === 'pending')
  }
  /** Whoever wrote them. */
  async overdue(at: string): Promise<readonly RequestRow[]> {
    return this.#requests.all(
      await this.#db.all`SELECT * FROM approvals_request WHERE state = 'pending' AND expires_at <= ${at} ORDER BY id`,
    )
  }
  async pendingOf(agentId: string): Promise<readonly RequestRow[]> {
    const rows = this.#requests.all(
      await this.#db.all`SELECT * FROM approvals_request
      WHERE state = 'pending' AND agent_id = ${agentId} ORDER BY requested_at, id`,
    )
    return (await this.#checked(rows)).filter(({ state }) => state === 'pending')
  }
  /** For people to look at: nothing is done because of these. */
  async decided(limit: number): Promise<readonly RequestRow[]> {
    return this.#requests.all(
      await this.#db.all`SELECT * FROM approvals_request
      WHERE decided_at IS NOT NULL ORDER BY decided_at DESC, id LIMIT ${limit}`,
    )
  }
  async decidedOf(agentId: string, limit: number): Promise<readonly RequestRow[]> {
    return this.#requests.all(
      await this.#db.all`SELECT * FROM approvals_request
      WHERE decided_at IS NOT NULL AND agent_id = ${agentId} ORDER BY decided_at DESC, id LIMIT ${limit}`,
    )
  }
  async prune(before: string): Promise<void> {
    await this.#db.run`DELETE FROM approvals_escalation WHERE approval_id IN
      (SELECT id FROM approvals_request WHERE decided_at < ${before})`
    await this.#db.run`DELETE FROM approvals_request WHERE decided_at < ${before}`
    await this.#db.run`DELETE FROM approvals_grant WHERE revoked_at < ${before}`
  }

  /** The limit is part of the statement, as with requests. */
  async insertGrant(grant: Grant, key: string, limit: number): Promise<Statement> {
    const proof = await (
      await this.#proofs()
    ).ofGrant({
      id: grant.id,
      agent_id: grant.agentId,
      session_id: grant.sessionId,
      tool_name: grant.tool,
      standing_key: key,
      covers: grant.covers,
      approval_id: grant.approvalId,
      granted_at: grant.grantedAt,
      granted_by: grant.grantedBy,
    })
    return {
      ...this.#db
        .sql`INSERT INTO approvals_grant (id, agent_id, agent_name, session_id, tool_name, standing_key, covers,
        approval_id, granted_at, granted_by, proof, uses)
      VALUES (${grant.id}, ${grant.agentId}, ${grant.agentName}, ${grant.sessionId}, ${grant.tool}, ${key},
      ${grant.covers}, ${grant.approvalId},
        ${grant.grantedAt}, ${grant.grantedBy}, ${proof},
        CASE WHEN (SELECT COUNT(*) FROM approvals_grant WHERE agent_id = ${grant.agentId}
        AND session_id = ${grant.sessionId} AND revoked_at IS NULL) < ${limit} THEN 0 END)`,
      exclusive: 'approvals_grant',
    }
  }
  async countGrants(agentId: string, sessionId: string): Promise<number> {
    const row = await this.#db.one<{ n: unknown }>`SELECT COUNT(*) AS n FROM approvals_grant
      WHERE agent_id = ${agentId} AND session_id = ${sessionId} AND revoked_at IS NULL`
    return Number(row?.n ?? 0)
  }
  async countStanding(): Promise<number> {
    const row = await this.#db.one<{ n: unknown }>`SELECT COUNT(*) AS n FROM approvals_grant WHERE revoked_at IS NULL`
    return Number(row?.n ?? 0)
  }
  async grantFor(agentId: string, sessionId: string, tool: string, key: string): Promise<GrantRow | undefined> {
    const rows = this.#grants.all(
      await this.#db.all`SELECT * FROM approvals_grant WHERE agent_id = ${agentId} AND session_id = ${sessionId}
      AND tool_name = ${tool} AND standing_key = ${key} AND revoked_at IS NULL ORDER BY granted_at, id LIMIT 100`,
    )
    return (await this.#proven(rows))[0]
  }
  /** Those that a daemon wrote. */
  async #proven(rows: readonly GrantRow[]): Promise<readonly GrantRow[]> {
    if (rows.length === 0) return rows
    const proofs = await this.#proofs()
    const held = await Promise.all(rows.map((row) => proofs.holdsGrant(row)))
    return rows.filter((_, at) => held[at])
  }
  /** Fails with its batch when the grant was revoked at the same moment: the column refuses NULL. */
  useGrant(id: string, at: string): Statement {
    return this.#db.sql`UPDATE approvals_grant SET last_used_at = ${at},
      uses = CASE WHEN revoked_at IS NULL THEN uses + 1 END WHERE id = ${id}`
  }
  async findGrant(id: string): Promise<GrantRow | undefined> {
    const row = this.#grants.oneOrThrow(await this.#db.one`SELECT * FROM approvals_grant WHERE id = ${id}`)
    return row && (await this.#proven([row]))[0]
  }
  /** Those that hold, the newest first. */
  async grants(agentId: string | undefined, sessionId: string | undefined): Promise<readonly GrantRow[]> {
    const rows = this.#grants.all(
      await this.#db.all`SELECT * FROM approvals_grant WHERE revoked_at IS NULL
      AND (${agentId ?? ''} = '' OR agent_id = ${agentId ?? ''})
      AND (${sessionId ?? ''} = '' OR session_id = ${sessionId ?? ''}) ORDER BY granted_at DESC, id LIMIT 1000`,
    )
    return await this.#proven(rows)
  }
  /** As `useGrant`: who comes second fails. */
  revokeGrant(id: string, by: string, at: string): Statement {
    return this.#db.sql`UPDATE approvals_grant SET revoked_at = ${at}, revoked_by = ${by},
      uses = CASE WHEN revoked_at IS NULL THEN uses END WHERE id = ${id}`
  }
}
