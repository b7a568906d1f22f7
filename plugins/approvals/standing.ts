import { randomUUID } from 'node:crypto'
import { toIso } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Approval, Grant, Standing } from './contract.ts'
import { OPERATOR } from './person.ts'
import { toApproval, toGrant } from './schema.ts'
import type { GrantRow, RequestRow } from './schema.ts'
import type { ApprovalServiceDeps } from './service.ts'

export interface StandingDeps extends Pick<
  ApprovalServiceDeps,
  'store' | 'audit' | 'clock' | 'limits' | 'granted' | 'revoked' | 'tellRevoked'
> {
  readonly isOverdue: (row: Pick<RequestRow, 'expires_at'>) => boolean
  /** A request was answered in the name of a standing approval. */
  readonly settle: (row: RequestRow) => void
  /** So many more hold. */
  readonly counted: (change: 1 | -1) => void
}

/** Approvals for a whole session: calls of one tool with one key pass until it ends or the approval is revoked. */
export class StandingApprovals {
  readonly #deps: StandingDeps
  constructor(deps: StandingDeps) {
    this.#deps = deps
  }

  /** The statement for a new one. Throws `forbidden` where the request can be approved once only. */
  async give(row: RequestRow, by: string, at: string): Promise<Statement> {
    const { store, limits } = this.#deps
    const { standing } = toApproval(row)
    // Anyone else who may answer can be removed, and nothing of theirs may stay in force.
    if (by !== OPERATOR) throw new Refusal('forbidden', 'Only the operator can approve for a whole session')
    if (!limits.sessionScope)
      throw new Refusal('forbidden', 'Approvals for a session are switched off (plugins.approvals.session_scope)')
    if (!standing || row.session_id === '')
      throw new Refusal('forbidden', 'This can be approved once only: what comes next may do harm of another kind')
    if ((await store.countGrants(row.agent_id, row.session_id)) >= limits.grantsPerSession)
      throw new Refusal(
        'conflict',
        `This session has ${limits.grantsPerSession} standing approvals already ` +
          '(plugins.approvals.grants_per_session); revoke one first',
      )
    const grant: Grant = {
      id: randomUUID(),
      agentId: row.agent_id,
      agentName: row.agent_name,
      sessionId: row.session_id,
      tool: row.tool_name,
      covers: standing.covers,
      approvalId: row.id,
      grantedAt: at,
      grantedBy: by,
      uses: 0,
      lastUsedAt: undefined,
      revokedAt: undefined,
      revokedBy: undefined,
    }
    return await store.insertGrant(grant, standing.key, limits.grantsPerSession)
  }
  /** It is on disk: answers the pending requests that it covers. */
  async granted({ agent_id: agentId, session_id: sessionId, tool_name: tool, standing_key: key }: RequestRow) {
    this.#deps.counted(1)
    if (key === null) return
    const grant = await this.#find({ agentId, sessionId, tool }, { key })
    if (!grant) return
    for (const row of await this.#deps.store.pendingOf(agentId))
      if (row.session_id === sessionId && row.tool_name === tool && row.standing_key === key)
        await this.#cover(row.id, grant)
  }
  /** Answers a request that one covers which was given meanwhile. */
  async coverRequest(approval: Approval, standing: Standing): Promise<void> {
    const grant = await this.#find(approval, standing)
    if (grant) await this.#cover(approval.id, grant)
  }

  /** Who gave the one that covers this call, if one does; its use is on disk then. */
  async covers(
    { agentId, sessionId, tool, summary }: Pick<Approval, 'agentId' | 'sessionId' | 'tool' | 'summary'>,
    { key }: Pick<Standing, 'key'>,
  ): Promise<string | undefined> {
    const { store, audit, clock } = this.#deps
    const grant = await this.#find({ agentId, sessionId, tool }, { key })
    if (!grant) return undefined
    try {
      await store.commit(
        store.useGrant(grant.id, toIso(clock.now())),
        audit.entry({
          event: 'capability_check',
          agentId,
          details:
            `allowed by grant ${grant.id} of session ${sessionId} (approval ${grant.approval_id} by ` +
            `${grant.granted_by}): ${summary}`,
        }),
      )
      this.#deps.granted()
      return grant.granted_by
    } catch (error) {
      const now = await store.findGrant(grant.id)
      if (now?.revoked_at === null) throw error
      return undefined
    }
  }
  async #find(
    { agentId, sessionId, tool }: Pick<Approval, 'agentId' | 'sessionId' | 'tool'>,
    { key }: Pick<Standing, 'key'>,
  ): Promise<GrantRow | undefined> {
    const { limits, store } = this.#deps
    return limits.sessionScope ? await store.grantFor(agentId, sessionId, tool, key) : undefined
  }
  /** Answers a request that a standing approval covers, in the name of whoever gave that. */
  async #cover(id: string, grant: GrantRow): Promise<void> {
    const { store, audit, clock, isOverdue } = this.#deps
    const row = await store.find(id)
    if (row?.state !== 'pending') return
    const at = toIso(clock.now())
    try {
      await store.commit(
        ...(await store.answer(row, 'approved', { by: grant.granted_by, at, scope: 'session', content: undefined })),
        store.useGrant(grant.id, at),
        audit.entry({
          event: 'capability_check',
          agentId: row.agent_id,
          details:
            `approval ${id} approved by grant ${grant.id} of session ${row.session_id} (approval ` +
            `${grant.approval_id} by ${grant.granted_by}), action ${row.action_hash}: ${row.summary}`,
        }),
      )
    } catch (error) {
      // Answered, expired or revoked at the same moment: the person decides, or has decided.
      const [now, current] = await Promise.all([store.find(id), store.findGrant(grant.id)])
      if (now?.state === 'pending' && !isOverdue(now) && current?.revoked_at === null) throw error
      return
    }
    this.#deps.granted()
    this.#deps.settle({ ...row, state: 'approved', decided_at: at, decided_by: grant.granted_by, scope: 'session' })
  }

  /** Those that hold. */
  async list(agentId?: string, sessionId?: string): Promise<readonly Grant[]> {
    return (await this.#deps.store.grants(agentId, sessionId)).map(toGrant)
  }
  /** Throws `approval_not_found`, and `conflict` when it was revoked before. */
  async revoke(id: string, by: string): Promise<Grant> {
    const row = await this.#deps.store.findGrant(id)
    if (!row) throw new Refusal('approval_not_found', `No standing approval ${id}`)
    const at = await this.#revoke(row, by)
    if (at === undefined) throw new Refusal('conflict', 'This standing approval was revoked before')
    return toGrant({ ...row, revoked_at: at, revoked_by: by })
  }
  /** Revokes all of a session or an agent that ended. */
  async revokeAll(agentId: string, sessionId: string | undefined, why: string): Promise<void> {
    for (const row of await this.#deps.store.grants(agentId, sessionId)) await this.#revoke(row, why)
  }
  /**
   * Revokes them after an agent changed something: what it was allowed to run may do something else now. `tools` says
   * for which tools that matters; approvals that only read, and the one of the call itself, stay.
   */
  async revokeChanged(
    agentId: string,
    { tools, except }: { readonly tools: (tool: string) => boolean; readonly except: string | undefined },
  ): Promise<void> {
    const { store } = this.#deps
    for (const row of await store.grants(agentId, undefined)) {
      if (row.standing_key === except || !tools(row.tool_name)) continue
      const given = await store.find(row.approval_id)
      if (given?.risk !== 'low') await this.#revoke(row, 'the agent changed something since')
    }
  }
  /** Returns when it was revoked; `undefined` when somebody else has revoked it. */
  async #revoke(row: GrantRow, by: string): Promise<string | undefined> {
    const { store, audit, clock } = this.#deps
    if (row.revoked_at !== null) return undefined
    const at = toIso(clock.now())
    try {
      await store.commit(
        store.revokeGrant(row.id, by, at),
        ...this.#deps.tellRevoked(row.id),
        audit.entry({
          event: 'capability_check',
          agentId: row.agent_id,
          details: `grant ${row.id} of session ${row.session_id} revoked (${by}): ${row.tool_name}, ${row.covers}`,
        }),
      )
      this.#deps.counted(-1)
      await this.#deps.revoked(row.id, at)
      return at
    } catch (error) {
      const now = await store.findGrant(row.id)
      if (now?.revoked_at === null) throw error
      return undefined
    }
  }
}
