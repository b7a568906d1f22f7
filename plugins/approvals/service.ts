import { randomUUID } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { Principal, Statement } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { actionHash } from './action.ts'
import { toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { TwoPeopleRule } from './config.ts'
import type { Approval, ApprovalInput, Approvals, Escalation, FormContent, Grant, Scope } from './contract.ts'
import { matches } from './matching.ts'
import { answered, credentialOf, OPERATOR, requireKey, toPerson } from './person.ts'
import type { Answerer } from './person.ts'
import { answerColumns, toApproval } from './schema.ts'
import type { RequestRow } from './schema.ts'
import type { StandingApprovals } from './standing.ts'
import type { ApprovalStore } from './store.ts'

export interface ApprovalServiceDeps {
  readonly store: ApprovalStore
  readonly audit: Audit
  readonly clock: Clock
  readonly limits: {
    readonly timeoutSecs: number
    /** Of single agents, by id or by name. */
    readonly agentTimeoutSecs: ReadonlyMap<string, number>
    readonly pendingPerAgent: number
    readonly payloadBytes: number
    readonly keepDays: number
    readonly sessionScope: boolean
    readonly grantsPerSession: number
    readonly twoPeople: readonly TwoPeopleRule[]
  }
  readonly asks: Approvals['asks']
  /** Whether the effect of this tool is for the API key only: then so is the approval of its calls. */
  readonly isLasting: (tool: string) => boolean
  /** What a principal presented beside the API key, to store. */
  readonly remember: (principal: Principal) => string | undefined
  /** Whether what was remembered is still accepted. */
  readonly holds: (remembered: string) => boolean
  /** Called after the change is on disk; must not throw. */
  readonly requested: (approval: Approval) => void
  /** Called at the start for each request of an earlier process that still waits. */
  readonly resumed: (approval: Approval) => void
  readonly resolved: (approval: Approval) => void
  /** Called when a standing approval let a call pass. */
  readonly granted: () => void
  /** Remembers in this home that a standing approval was revoked. */
  readonly revoked: (id: string, at: string) => Promise<void>
  /** The same for the other daemons on the database. */
  readonly tellRevoked: (id: string) => readonly Statement[]
  /** Called when a request could not be expired at its time. */
  readonly failed: (error: unknown) => void
}
type FormInput = Readonly<Record<string, unknown>>
const RECENT = 50
/** What an agent reads of why it was rejected. */
const MAX_REASON_CHARS = 1024
const DAY_MS = 86_400_000

/** Holds requests until they are answered. The table decides; timers and waiters only read it. */
export class ApprovalService implements Approvals {
  readonly #deps: ApprovalServiceDeps
  readonly #timers = new Map<string, () => void>()
  readonly #waiters = new Map<string, Set<(approval: Approval) => void>>()
  #standing: Promise<StandingApprovals> | undefined
  #held = 0
  constructor(deps: ApprovalServiceDeps) {
    this.#deps = deps
  }

  /** Resumes what an earlier process left: overdue requests expire, the others get the time they have left. */
  async open(): Promise<void> {
    this.#held = await this.#deps.store.countStanding()
    await this.#expireOverdue()
    for (const row of await this.#deps.store.pending()) {
      this.#arm(row.id, row.expires_at)
      this.#deps.resumed(toApproval(row))
    }
  }
  /** Also those that nobody waits for, as another daemon asked that is gone. */
  async #expireOverdue(): Promise<void> {
    const { clock, store } = this.#deps
    for (const row of await store.overdue(toIso(clock.now()))) await this.#expire(row, 'timeout')
  }
  close(): void {
    for (const cancel of this.#timers.values()) cancel()
    this.#timers.clear()
  }

  async request(input: ApprovalInput): Promise<Approval> {
    const { store, audit, clock, limits } = this.#deps
    const known = input.id === undefined ? undefined : await this.find(input.id)
    if (known) return known
    const payload = this.#encodePayload(input.payload ?? null)
    this.#encodePayload(input.form ?? null)
    const form = input.form && (await import('./form/parse.ts')).parseForm(input.form)
    // Two people cannot fill in one form, and an answer permits nothing.
    const needed = !form && limits.twoPeople.some((rule) => matches(rule, input)) ? 2 : 1
    const { agentTimeoutSecs: ofAgent } = limits
    const timeoutSecs =
      input.timeoutSecs ?? ofAgent.get(input.agentId) ?? ofAgent.get(input.agentName) ?? limits.timeoutSecs
    const lasting = input.lasting === true || this.#deps.isLasting(input.tool)
    const approval = toPending({ ...input, lasting }, clock.now(), { timeoutSecs, needed, form })
    // No agent can ask too often then, and runs of workflows are limited themselves.
    const maxPending = input.agentId === '' ? Number.MAX_SAFE_INTEGER : limits.pendingPerAgent
    try {
      await store.commit(
        await store.insert(approval, payload, maxPending),
        audit.entry({
          event: 'capability_check',
          agentId: input.agentId,
          details:
            `approval ${approval.id} requested, risk ${input.risk}, action ${approval.actionHash}: ` + input.summary,
        }),
      )
    } catch (error) {
      if ((await store.pendingOf(input.agentId)).length < maxPending) throw error
      throw new Refusal(
        'rate_limit',
        `${limits.pendingPerAgent} approvals of this agent are pending already ` +
          '(plugins.approvals.pending_per_agent); answer those first',
        { cause: error, retryAfterSecs: limits.timeoutSecs },
      )
    }
    this.#arm(approval.id, approval.expiresAt)
    this.#deps.requested(approval)
    // A standing approval may have been given while this request was made.
    if (approval.standing && limits.sessionScope)
      await (await this.#openStanding()).coverRequest(approval, approval.standing)
    return approval
  }

  #encodePayload(payload: unknown): string {
    const { payloadBytes } = this.#deps.limits
    const encoded = JSON.stringify(payload)
    const bytes = Buffer.byteLength(encoded)
    if (bytes <= payloadBytes) return encoded
    throw new Refusal(
      'payload_too_large',
      `payload: ${bytes} bytes of JSON are more than the ${payloadBytes} that can be put before a ` +
        'person (plugins.approvals.payload_bytes)',
      { details: { limit_bytes: payloadBytes } },
    )
  }

  async find(id: string): Promise<Approval | undefined> {
    const row = await this.#deps.store.find(id)
    return row && toApproval(await this.#expireIfOverdue(row))
  }
  async list(agentId?: string, recent = RECENT): Promise<readonly Approval[]> {
    const { store } = this.#deps
    for (const row of await (agentId === undefined ? store.pending() : store.pendingOf(agentId)))
      await this.#expireIfOverdue(row)
    const [pending, decided] = await Promise.all(
      agentId === undefined
        ? [store.pending(), store.decided(recent)]
        : [store.pendingOf(agentId), store.decidedOf(agentId, recent)],
    )
    return [...pending, ...decided].map(toApproval)
  }
  asks(...call: Parameters<Approvals['asks']>): boolean {
    return this.#deps.asks(...call)
  }
  approve(id: string, by: Answerer, scope: Scope = 'once', content?: FormInput): Promise<Approval> {
    return this.#answer(id, 'approved', by, { scope, content })
  }
  /** Whether an approval still counts: without the API key as long as the credential that it was given with. */
  holds({ credential, decided_by: by }: Pick<RequestRow, 'credential' | 'decided_by'>): boolean {
    return by === OPERATOR || (credential !== null && this.#deps.holds(credential))
  }
  reject(id: string, by: Answerer, reason?: string): Promise<Approval> {
    return this.#answer(id, 'rejected', by, { reason: reason?.trim().slice(0, MAX_REASON_CHARS) || undefined })
  }
  async noteAsked(id: string, message: Parameters<Approvals['noteAsked']>[1]): Promise<void> {
    const { store, audit, clock } = this.#deps
    const row = await store.find(id)
    if (row?.state !== 'pending' || (await store.isEscalated(message.id))) return
    const details = `approval ${id} escalated to ${message.channel} chat ${message.to}: ${row.summary}`
    try {
      await store.commit(
        store.escalate(message.id, id, message, toIso(clock.now())),
        audit.entry({ event: 'capability_check', agentId: row.agent_id, details }),
      )
    } catch (error) {
      const now = await store.find(id)
      if (now?.state === 'pending' && !(await store.isEscalated(message.id))) throw error
    }
  }
  async escalations(): Promise<readonly Escalation[]> {
    return (await this.#deps.store.escalations()).map(({ id, approval_id: approvalId, channel, chat: to }) => ({
      id,
      approvalId,
      channel,
      to,
    }))
  }
  /** Whether two people have to approve such a request. */
  needsTwo(input: Pick<ApprovalInput, 'risk' | 'tool' | 'agentId' | 'agentName'>): boolean {
    return this.#deps.limits.twoPeople.some((rule) => matches(rule, input))
  }

  /** Who gave the standing approval that covers this call, if one does; its use is on disk then. */
  async covers(...call: Parameters<StandingApprovals['covers']>): Promise<string | undefined> {
    return await (await this.#openStanding()).covers(...call)
  }
  /** The standing approvals that hold. */
  async grants(agentId?: string, sessionId?: string): Promise<readonly Grant[]> {
    return await (await this.#openStanding()).list(agentId, sessionId)
  }
  /** Throws `approval_not_found`, and `conflict` when it was revoked before. */
  async revoke(id: string, by: string): Promise<Grant> {
    return await (await this.#openStanding()).revoke(id, by)
  }
  /** Revokes all standing approvals of a session or an agent that ended. */
  async revokeAll(agentId: string, sessionId: string | undefined, why: string): Promise<void> {
    await (await this.#openStanding()).revokeAll(agentId, sessionId, why)
  }
  /** See `StandingApprovals`. */
  async revokeChanged(...change: Parameters<StandingApprovals['revokeChanged']>): Promise<void> {
    await (await this.#openStanding()).revokeChanged(...change)
  }
  /** Loaded when the first tool is called, or a session ends. */
  #openStanding(): Promise<StandingApprovals> {
    return (this.#standing ??= import('./standing.ts').then(
      ({ StandingApprovals }) =>
        new StandingApprovals({
          ...this.#deps,
          isOverdue: (row) => this.#overdue(row),
          settle: (row) => this.#settle(row),
          counted: (change) => void (this.#held += change),
        }),
    ))
  }

  /** Settles with the answer, at the latest when it expires. Rejects with the reason of the signal. */
  async decision(id: string, signal: AbortSignal): Promise<Approval> {
    const { promise, resolve, reject } = Promise.withResolvers<Approval>()
    this.#addWaiter(id, resolve)
    const stop = (): void => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    try {
      signal.throwIfAborted()
      // Answered before the wait began. Whoever leaves meanwhile leaves the answer unused.
      const known = await Promise.race([this.find(id), promise])
      if (known && known.state !== 'pending') return known
      // Asked by a daemon that is gone: the request ends in time here too.
      if (known && !this.#timers.has(id)) this.#arm(id, known.expiresAt)
      return await promise
    } finally {
      signal.removeEventListener('abort', stop)
      this.#removeWaiter(id, resolve)
    }
  }
  /** A request was decided by another daemon on the database: who waits for the answer here gets it. */
  async decidedElsewhere(id: string): Promise<void> {
    const row = await this.#deps.store.find(id)
    if (row && row.state !== 'pending') this.#settle(row)
  }
  /** The same for all that wait here, when what others said may have been lost. */
  async lookAgain(): Promise<void> {
    for (const id of new Set([...this.#waiters.keys(), ...this.#timers.keys()])) await this.decidedElsewhere(id)
  }
  /** How many wait for an answer. */
  get waiting(): number {
    return this.#timers.size
  }
  /** How many standing approvals hold. */
  get standing(): number {
    return this.#held
  }
  awaited(id: string): boolean {
    return this.#waiters.has(id)
  }
  /** A call takes the request for itself until this is disposed of: it counts as awaited, also before it is on disk. */
  hold(id: string): Disposable {
    const waiter = (): void => undefined
    this.#addWaiter(id, waiter)
    return { [Symbol.dispose]: () => this.#removeWaiter(id, waiter) }
  }
  #addWaiter(id: string, waiter: (approval: Approval) => void): void {
    this.#waiters.set(id, (this.#waiters.get(id) ?? new Set()).add(waiter))
  }
  #removeWaiter(id: string, waiter: (approval: Approval) => void): void {
    const waiters = this.#waiters.get(id)
    waiters?.delete(waiter)
    if (waiters?.size === 0) this.#waiters.delete(id)
  }

  /** Expires the pending requests of an agent, or of one of its turns. */
  async withdraw(agentId: string, reason: string, turnId?: string): Promise<void> {
    for (const row of await this.#deps.store.pendingOf(agentId))
      if (turnId === undefined || row.turn_id === turnId) await this.#expire(row, reason)
  }
  async withdrawRequest(id: string, reason: string): Promise<void> {
    const row = await this.#deps.store.find(id)
    if (row?.state === 'pending') await this.#expire(row, reason)
  }
  async prune(): Promise<void> {
    const { store, clock, limits } = this.#deps
    await this.#expireOverdue()
    await store.prune(toIso(clock.now() - limits.keepDays * DAY_MS))
  }

  async #answer(
    id: string,
    state: 'approved' | 'rejected',
    answerer: Answerer,
    {
      scope,
      content: given,
      reason,
    }: {
      readonly scope?: Scope
      readonly content?: FormInput | undefined
      readonly reason?: string | undefined
    } = {},
  ): Promise<Approval> {
    const { store, audit, clock } = this.#deps
    const found = await store.find(id)
    if (!found) throw new Refusal('approval_not_found', `No approval ${id}`)
    const row = await this.#expireIfOverdue(found)
    if (row.state !== 'pending') throw answered(row)
    if (state === 'approved' && (row.lasting === 1 || this.#deps.isLasting(row.tool_name))) requireKey(answerer)
    const content = state === 'approved' ? await filledIn(row, given) : undefined
    if (state === 'approved' && row.needed === 2) return this.#approveAsOneOfTwo(row, answerer, scope)
    const by = toPerson(answerer).name
    const credential = credentialOf(answerer, this.#deps)
    const at = toIso(clock.now())
    const grant = scope === 'session' ? await (await this.#openStanding()).give(row, by, at) : undefined
    const coverage = grant ? ` for session ${row.session_id}, which covers ${row.covers}` : ''
    try {
      await store.commit(
        ...(await store.answer(row, state, { by, credential, at, scope: scope ?? null, content, reason })),
        ...(grant ? [grant] : []),
        audit.entry({
          event: 'capability_check',
          agentId: row.agent_id,
          details: `approval ${id} ${state} by ${by}${coverage}, action ${row.action_hash}: ${row.summary}${because(reason)}`,
        }),
      )
    } catch (error) {
      const now = await store.find(id)
      if (!now) throw error
      const settled = await this.#expireIfOverdue(now)
      if (settled.state === 'pending') throw error
      throw answered(settled)
    }
    const approval = this.#settle({
      ...row,
      state,
      decided_at: at,
      decided_by: by,
      scope: scope ?? null,
      ...answerColumns(content, reason),
    })
    if (grant) await (await this.#openStanding()).granted(row)
    return approval
  }
  /** Two people are seldom needed: the code is loaded by the first such request. */
  async #approveAsOneOfTwo(row: RequestRow, by: Answerer, scope: Scope = 'once'): Promise<Approval> {
    const { approveAsOneOfTwo } = await import('./two-people.ts')
    const approved = await approveAsOneOfTwo(this.#deps, row, by, scope)
    return approved.state === 'pending' ? toApproval(approved) : this.#settle(approved)
  }

  /** The row as it is now: it may be overdue although its timer has not run. */
  async #expireIfOverdue(row: RequestRow): Promise<RequestRow> {
    if (row.state !== 'pending' || !this.#overdue(row)) return row
    await this.#expire(row, 'timeout')
    return (await this.#deps.store.find(row.id)) ?? row
  }
  #overdue(row: Pick<RequestRow, 'expires_at'>): boolean {
    return row.expires_at <= toIso(this.#deps.clock.now())
  }

  async #expire(row: RequestRow, by: string): Promise<void> {
    const { store, audit, clock } = this.#deps
    const at = toIso(clock.now())
    try {
      await store.commit(
        ...(await store.expire(row, by, at)),
        audit.entry({
          event: 'capability_check',
          agentId: row.agent_id,
          details:
            `approval ${row.id} expired (${by}), which is a rejection, action ${row.action_hash}: ` + row.summary,
        }),
      )
    } catch (error) {
      const now = await store.find(row.id)
      if (now?.state === 'pending') throw error
      // Somebody answered at the same moment; waiting calls still need the answer.
      if (now) this.#resolveWaiters(toApproval(now))
      return
    }
    this.#settle({ ...row, state: 'expired', decided_at: at, decided_by: by })
  }

  #settle(row: RequestRow): Approval {
    const approval = toApproval(row)
    this.#timers.get(row.id)?.()
    this.#timers.delete(row.id)
    this.#resolveWaiters(approval)
    this.#deps.resolved(approval)
    return approval
  }
  #resolveWaiters(approval: Approval): void {
    for (const resolve of this.#waiters.get(approval.id) ?? []) resolve(approval)
  }

  #arm(id: string, expiresAt: string): void {
    const { clock, store, failed } = this.#deps
    const check = async (): Promise<void> => {
      this.#timers.delete(id)
      const row = await store.find(id)
      if (row && row.state !== 'pending') this.#resolveWaiters(toApproval(row))
      if (row?.state !== 'pending') return
      // The wall clock was set back.
      if (this.#overdue(row)) await this.#expire(row, 'timeout')
      else this.#arm(id, expiresAt)
    }
    this.#timers.set(
      id,
      clock.after(Math.max(1, Date.parse(expiresAt) - clock.now()), () => {
        check().catch(failed)
      }),
    )
  }
}

/** What is recorded of the answer to a form. A content without a form would be lost. */
async function filledIn(row: RequestRow, given: FormInput | undefined): Promise<FormContent | undefined> {
  const { form } = toApproval(row)
  if (form) return (await import('./form/check.ts')).checkContent(form, given ?? {})
  if (given === undefined) return undefined
  throw new Refusal('invalid_request', 'content: this approval has no form to fill in')
}

function toPending(
  input: ApprovalInput,
  now: number,
  { timeoutSecs, needed, form }: Pick<Approval, 'timeoutSecs' | 'needed' | 'form'>,
): Approval {
  const payload = input.payload ?? null
  return {
    id: input.id ?? randomUUID(),
    agentId: input.agentId,
    agentName: input.agentName,
    turnId: input.turnId ?? '',
    sessionId: input.sessionId ?? '',
    callId: input.callId ?? '',
    tool: input.tool,
    action: input.action,
    description: input.description,
    summary: input.summary,
    payload,
    actionHash: actionHash(input.tool, payload),
    risk: input.risk,
    state: 'pending',
    requestedAt: toIso(now),
    timeoutSecs,
    expiresAt: toIso(now + timeoutSecs * 1000),
    decidedAt: undefined,
    decidedBy: undefined,
    reason: undefined,
    intent: input.intent ?? `use ${input.action}`,
    // Two people decide each time.
    standing: needed === 2 || form ? undefined : input.standing,
    scope: undefined,
    needed,
    firstBy: undefined,
    lasting: input.lasting === true,
    form,
    content: undefined,
  }
}

const because = (reason: string | undefined): string => (reason === undefined ? '' : `; reason: ${reason}`)
