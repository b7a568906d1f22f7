import { Refusal } from 'svc/sdk'
import type { Tools } from 'svc/sdk'
import type { ToolCallAttempt } from '../chat/contract.ts'
import { actionHash, summarise, visible } from './action.ts'
import type { Clock } from './clock.ts'
import type { ApprovalsConfig } from './config.ts'
import type { Approval } from './contract.ts'
import { policyOf } from './policy.ts'
import { isHarmful, isRisky, riskOf } from './risk.ts'
import { toApproval } from './schema.ts'
import type { RequestRow } from './schema.ts'
import type { Desk } from './service.ts'
import type { ApprovalStore } from './store.ts'

export interface GateParts {
  readonly config: ApprovalsConfig
  readonly desk: Desk
  readonly store: ApprovalStore
  readonly clock: Clock
  readonly tools: Pick<Tools, 'find'>
  /** Aborts when the plugin is about to be unloaded. */
  readonly leaving: AbortSignal
}

/**
 * Stands before every call of a tool. Returns when nobody has to be asked or somebody approved exactly this call, which uses the
 * approval up; throws `forbidden` when it was rejected or nobody answered. There is no tool that answers approvals, and what an agent
 * fetches cannot reach this machine, so an agent cannot answer its own. A shell could, where the daemon has no `api_key`: it is
 * critical and asked about itself.
 */
export function createGate({
  config,
  desk,
  store,
  clock,
  tools,
  leaving: unloaded,
}: GateParts): (attempt: ToolCallAttempt) => Promise<void> {
  const reloading = new Refusal('service_unavailable', 'The approvals are being reloaded; the request stays open', {
    retryAfterSecs: 1,
    details: { ask_again: true },
  })
  const toIso = (ms: number): string => new Date(ms).toISOString()

  return async (attempt) => {
    const { agent, tool, args, risk, refusal, suspicion } = attempt
    const policy = policyOf(agent, config)
    if (policy === 'never') return
    const doubted = suspicion !== undefined && isHarmful(tool, risk)
    if (policy === 'risky' && refusal === undefined && !doubted && !isRisky(tool, risk, config.require_approval)) return
    const hash = actionHash(tool, args ?? null)
    const signal = AbortSignal.any([attempt.signal, unloaded])
    for (;;) {
      if (unloaded.aborted) throw reloading
      signal.throwIfAborted()
      const wanted = await place(attempt, hash)
      const approval = wanted.state === 'pending' ? await decided(wanted.id, signal) : wanted
      if (approval.state !== 'approved') throw refused(approval)
      // Somebody else with the same action was faster: this one has to be asked for by itself.
      if (!(await store.consume(approval.id, toIso(clock.now())))) continue
      attempt.approve?.(approval.decidedBy ?? 'operator')
      return
    }
  }

  async function decided(id: string, signal: AbortSignal): Promise<Approval> {
    try {
      return await desk.decision(id, signal)
    } catch (error) {
      throw unloaded.aborted ? reloading : error
    }
  }

  /** The request that decides about this call: one there is, or a new one. */
  async function place(attempt: ToolCallAttempt, hash: string): Promise<Approval> {
    const { agent, tool, args, risk, refusal, suspicion, turnId, sessionId, callId } = attempt
    const rows = await store.ofAction(agent.id, hash)
    const own = rows.find((row) => row.turn_id === turnId && row.call_id === callId && row.consumed_at === null)
    // Asked before the process ended, or before the approvals were reloaded.
    if (own) return toApproval(own)
    const rejected = rows.find((row) => row.turn_id === turnId && (row.state === 'rejected' || row.state === 'expired'))
    // A model that does not take no for an answer must not wear out the person.
    if (rejected) return toApproval(rejected)
    const usable = rows.find((row) => usableFor(row, sessionId))
    if (usable) return toApproval(usable)
    return desk.request({
      agentId: agent.id,
      agentName: agent.name,
      turnId,
      sessionId,
      callId,
      tool,
      action: tool,
      payload: args,
      summary: summarise(tool, args),
      risk: riskOf(tool, risk),
      description: explain(tools.find(tool)?.description, refusal ?? suspicion),
    })
  }

  /** Asked for in this conversation, or over the API, by nobody who still waits; and not so long ago that nobody remembers. */
  function usableFor(row: RequestRow, sessionId: string): boolean {
    if (row.session_id !== sessionId && row.session_id !== '') return false
    if (row.state === 'pending') return row.expires_at > toIso(clock.now()) && !desk.awaited(row.id)
    return (
      row.state === 'approved' &&
      row.consumed_at === null &&
      !desk.awaited(row.id) &&
      (row.decided_at ?? '') > toIso(clock.now() - config.approved_for_secs * 1000)
    )
  }
}

const DESCRIPTION_CHARS = 300
/** Why it is asked for, and what the tool says it does. */
function explain(does = '', refusal: string | undefined): string {
  const short = does.length > DESCRIPTION_CHARS ? `${does.slice(0, DESCRIPTION_CHARS - 1).toWellFormed()}…` : does
  return visible(refusal === undefined ? short : `Needs a person, because ${refusal.slice(0, 400)}. ${short}`.trimEnd())
}
function refused({ tool, state, timeoutSecs, decidedBy }: Approval): Refusal {
  const why =
    state === 'rejected'
      ? 'a person rejected it'
      : decidedBy === 'timeout'
        ? `nobody approved it within ${timeoutSecs} seconds`
        : `the request ended: ${decidedBy ?? 'expired'}`
  return new Refusal(
    'forbidden',
    `${tool} was not done, because ${why}. Do not try the same again; say what you wanted to do and why.`,
  )
}
