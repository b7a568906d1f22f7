import { Refusal } from 'svc/sdk'
import type { Tools } from 'svc/sdk'
import type { ToolCallAttempt } from '../chat/contract.ts'
import { actionHash, summarise, visible } from './action.ts'
import type { Clock } from './clock.ts'
import type { ApprovalsConfig } from './config.ts'
import type { Approval, Standing } from './contract.ts'
import { policyOf } from './policy.ts'
import { isHarmful, isRisky, riskOf } from './risk.ts'
import { toApproval } from './schema.ts'
import type { RequestRow } from './schema.ts'
import type { ApprovalService } from './service.ts'
import type { ApprovalStore } from './store.ts'

export interface GateDeps {
  readonly config: ApprovalsConfig
  readonly service: ApprovalService
  readonly store: ApprovalStore
  readonly clock: Clock
  readonly tools: Pick<Tools, 'find'>
  /** Aborts when the plugin is about to be unloaded. */
  readonly leaving: AbortSignal
}

/**
 * Stands before every call of a tool. Returns when nobody has to be asked or somebody approved exactly this call, which
 * uses the approval up; throws `forbidden` when it was rejected or nobody answered. There is no tool that answers
 * approvals, and what an agent fetches cannot reach this machine, so an agent cannot answer its own. A shell could,
 * where the daemon has no `api_key`: it is critical and asked about itself.
 */
export function createGate({
  config,
  service,
  store,
  clock,
  tools,
  leaving: unloaded,
}: GateDeps): (attempt: ToolCallAttempt) => Promise<void> {
  const reloading = new Refusal('service_unavailable', 'The approvals are being reloaded; the request stays open', {
    retryAfterSecs: 1,
    details: { ask_again: true },
  })
  const toIso = (ms: number): string => new Date(ms).toISOString()

  return async (attempt) => {
    await pass(attempt)
    await endChanged(attempt)
  }

  async function pass(attempt: ToolCallAttempt): Promise<void> {
    const { agent, tool, args, risk, refusal, suspicion } = attempt
    const policy = policyOf(agent, config)
    if (policy === 'never') return
    const doubted = suspicion !== undefined && isHarmful(tool, risk)
    if (policy === 'risky' && refusal === undefined && !doubted && !isRisky(tool, risk, config.require_approval)) return
    const hash = actionHash(tool, args ?? null)
    const standing = standingOf(attempt, hash)
    const call = { agentId: agent.id, sessionId: attempt.sessionId, tool, summary: summarise(tool, args) }
    const coveredBy = standing && (await service.covers(call, standing))
    if (coveredBy !== undefined) {
      attempt.approve?.(coveredBy)
      return
    }
    const signal = AbortSignal.any([attempt.signal, unloaded])
    for (;;) {
      if (unloaded.aborted) throw reloading
      signal.throwIfAborted()
      const wanted = await place(attempt, hash, standing)
      const approval = wanted.state === 'pending' ? await decided(wanted.id, signal) : wanted
      if (approval.state !== 'approved') throw refused(approval)
      // Somebody else with the same action was faster: this one has to be asked for by itself.
      if (!(await store.consume(approval.id, toIso(clock.now())))) continue
      attempt.approve?.(approval.decidedBy ?? 'operator')
      return
    }
  }

  /**
   * A program does what files of the workspace say, and text that somebody pasted, or that a page left there in another
   * session, can have an agent change those: `npm test` is the same words and another deed. So it is asked about again.
   */
  async function endChanged({ agent, tool, args, risk }: ToolCallAttempt): Promise<void> {
    if (risk === 'read' || !config.session_scope) return
    const assessed = tools.find(tool)?.assess?.(args)
    if (assessed?.harm === 'low') return
    await service.revokeChanged(agent.id, {
      tools: (name) => tools.find(name)?.needs === 'shell',
      except: typeof assessed?.standing === 'object' ? `call ${assessed.standing.key}` : undefined,
    })
  }

  async function decided(id: string, signal: AbortSignal): Promise<Approval> {
    try {
      return await service.decision(id, signal)
    } catch (error) {
      throw unloaded.aborted ? reloading : error
    }
  }

  /** The request that decides about this call: one there is, or a new one. */
  async function place(attempt: ToolCallAttempt, hash: string, standing: Standing | undefined): Promise<Approval> {
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
    const assessed = tools.find(tool)?.assess?.(args)
    return service.request({
      agentId: agent.id,
      agentName: agent.name,
      turnId,
      sessionId,
      callId,
      tool,
      action: tool,
      payload: args,
      summary: summarise(tool, args),
      risk: (suspicion === undefined ? assessed?.harm : undefined) ?? riskOf(tool, risk),
      intent: assessed && visible(assessed.intent),
      standing,
      description: explain(tools.find(tool)?.description, refusal ?? suspicionText(suspicion)),
    })
  }

  /**
   * What an approval for the session would cover, and what a standing one must say to cover this call. After something
   * that looked like instructions nothing: whoever wrote those would choose when it is done. The same for what may hold
   * words from outside, unless it only reads. Decision: what only the person's own messages flow into is no stranger's
   * word; without that no command that somebody asked for in a conversation could ever be covered. What somebody pasted
   * counts as their own: it can have no more than the very call done that they approved, and `endChanged` sees to it
   * that the call is still the same deed.
   */
  function standingOf(
    { tool, args, risk, labels = [], refusal, suspicion, sessionId }: ToolCallAttempt,
    hash: string,
  ): Standing | undefined {
    if (!config.session_scope || suspicion !== undefined || sessionId === '') return undefined
    const assessed = tools.find(tool)?.assess?.(args)
    // A tool that refuses no label acts outside all the same, and how often it does must not be a stranger's choice.
    const foreign =
      refusal === undefined
        ? risk !== 'read' && labels.some((label) => strangers.has(label))
        : labels.length === 0 || labels.some((label) => label !== 'UserInput')
    if (assessed?.standing === 'once' || (foreign && assessed?.harm !== 'low')) return undefined
    if (assessed?.standing)
      return { key: `call ${assessed.standing.key}`, covers: visible(assessed.standing.covers).slice(0, 300) }
    return (assessed?.harm ?? riskOf(tool, risk)) === 'critical'
      ? undefined
      : { key: `same ${hash}`, covers: 'exactly this call' }
  }

  /**
   * Asked for in this conversation, or over the API, by nobody who still waits; and not so long ago that nobody
   * remembers.
   */
  function usableFor(row: RequestRow, sessionId: string): boolean {
    if (row.session_id !== sessionId && row.session_id !== '') return false
    if (row.state === 'pending') return row.expires_at > toIso(clock.now()) && !service.awaited(row.id)
    return (
      row.state === 'approved' &&
      row.consumed_at === null &&
      !service.awaited(row.id) &&
      service.holds(row) &&
      (row.decided_at ?? '') > toIso(clock.now() - config.approved_for_secs * 1000)
    )
  }
}

/** What may be the words of somebody who was not asked, as against what is merely secret. */
const strangers: ReadonlySet<string> = new Set(['ExternalNetwork', 'UntrustedAgent'])
const DESCRIPTION_CHARS = 300
function suspicionText(suspicion: string | undefined): string | undefined {
  return suspicion && `This call needs your approval, because ${suspicion}.`
}
/** Why it is asked for, and what the tool says it does. */
function explain(does = '', reason: string | undefined): string {
  const short = does.length > DESCRIPTION_CHARS ? `${does.slice(0, DESCRIPTION_CHARS - 1).toWellFormed()}…` : does
  return visible(reason === undefined ? short : `${reason.slice(0, 400)} ${short}`.trimEnd())
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
