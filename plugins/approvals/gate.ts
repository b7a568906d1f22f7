import { randomUUID } from 'node:crypto'
import { Refusal } from 'svc/sdk'
import type { Tools } from 'svc/sdk'
import type { ToolCallAttempt } from '../chat/contract.ts'
import { actionHash, summarise, visible } from './action.ts'
import { toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import type { ApprovalsConfig } from './config.ts'
import type { Approval, RiskLevel, Standing } from './contract.ts'
import { asks, policyOf } from './policy.ts'
import { isAtLeastHigh, isHarmful, riskOf } from './risk.ts'
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
 * Checks every tool call. Passes when no approval is needed or somebody approved exactly this call, which uses the
 * approval up; throws `forbidden` when it was rejected or nobody answered. No tool answers approvals, and what an agent
 * fetches cannot reach this machine, so an agent cannot approve its own calls. A shell could, where the daemon has no
 * `api_key`: it counts as critical and needs an approval itself.
 */
export class ApprovalGate {
  readonly #deps: GateDeps
  constructor(deps: GateDeps) {
    this.#deps = deps
  }

  async check(attempt: ToolCallAttempt): Promise<void> {
    await this.#requireApproval(attempt)
    await this.#revokeChanged(attempt)
  }

  async #requireApproval(attempt: ToolCallAttempt): Promise<void> {
    if (!this.#needsApproval(attempt)) return
    const { service, store, clock } = this.#deps
    const { agent, tool, args, sessionId } = attempt
    const hash = actionHash(tool, args ?? null)
    const request = { agentId: agent.id, agentName: agent.name, tool, risk: this.#riskOf(attempt) }
    const standing = service.needsTwo(request) ? undefined : this.#standingOf(attempt, hash)
    const call = { agentId: agent.id, sessionId, tool, summary: summarise(tool, args) }
    const grantedBy = standing && (await service.covers(call, standing))
    if (grantedBy !== undefined) {
      attempt.approve?.(grantedBy)
      return
    }
    for (;;) {
      // Held until the approval is used: an equal call at the same moment asks for its own.
      using held = new DisposableStack()
      const approval = await this.#decide(attempt, hash, standing, held)
      if (approval.state !== 'approved') throw refused(approval)
      // Another call with the same action has used the approval up: this one needs its own.
      if (!(await store.consume(approval.id, toIso(clock.now())))) continue
      attempt.approve?.(approval.decidedBy ?? 'operator')
      return
    }
  }

  #needsApproval({ agent, tool, args, risk, refusal, suspicion }: ToolCallAttempt): boolean {
    const { config, tools } = this.#deps
    if (policyOf(agent, config) === 'never') return false
    const isSuspicious =
      suspicion !== undefined && (isHarmful(tool, risk) || isAtLeastHigh(tools.find(tool)?.assess?.(args)?.harm))
    return refusal !== undefined || isSuspicious || asks(agent, { name: tool, risk }, config)
  }

  /** The answer to the request for this call, which is made unless there is one. */
  async #decide(
    attempt: ToolCallAttempt,
    hash: string,
    standing: Standing | undefined,
    held: DisposableStack,
  ): Promise<Approval> {
    const { service, leaving } = this.#deps
    const signal = AbortSignal.any([attempt.signal, leaving])
    if (leaving.aborted) throw reloading()
    signal.throwIfAborted()
    const approval = await this.#findOrRequest(attempt, hash, standing, held)
    if (approval.state !== 'pending') return approval
    attempt.waits?.()
    try {
      return await service.decision(approval.id, signal)
    } catch (error) {
      throw leaving.aborted ? reloading() : error
    }
  }

  /**
   * Ends standing approvals for the shell after a call that may have changed files. What a program does depends on the
   * files of the workspace, and pasted text or a fetched page can make an agent change those: `npm test` is the same
   * command and another action then.
   */
  async #revokeChanged({ agent, tool, args, risk }: ToolCallAttempt): Promise<void> {
    const { config, service, tools } = this.#deps
    if (risk === 'read' || !config.session_scope) return
    const assessed = tools.find(tool)?.assess?.(args)
    if (assessed?.harm === 'low') return
    await service.revokeChanged(agent.id, {
      tools: (name) => tools.find(name)?.needs === 'shell',
      except: typeof assessed?.standing === 'object' ? `call ${assessed.standing.key}` : undefined,
    })
  }

  #riskOf({ tool, args, risk, suspicion }: ToolCallAttempt): RiskLevel {
    const assessed = suspicion === undefined ? this.#deps.tools.find(tool)?.assess?.(args) : undefined
    return assessed?.harm ?? riskOf(tool, risk)
  }

  /** The request that decides this call: an existing one, or a new one. No other call takes it while it is held. */
  async #findOrRequest(
    attempt: ToolCallAttempt,
    hash: string,
    standing: Standing | undefined,
    held: DisposableStack,
  ): Promise<Approval> {
    const { service, store, tools } = this.#deps
    const { agent, tool, args, refusal, suspicion, turnId, sessionId, callId } = attempt
    const take = (row: RequestRow): Approval => {
      held.use(service.hold(row.id))
      return toApproval(row)
    }
    // The answer to a form permits no call.
    const rows = (await store.ofAction(agent.id, hash)).filter(({ form }) => form === null)
    const own = rows.find((row) => row.turn_id === turnId && row.call_id === callId && row.consumed_at === null)
    // Requested before a restart, or before the plugin was reloaded.
    if (own) return take(own)
    const rejected = rows.find((row) => row.turn_id === turnId && (row.state === 'rejected' || row.state === 'expired'))
    // A model that repeats a rejected call must not wear out the person.
    if (rejected) return toApproval(rejected)
    const usable = rows.find((row) => this.#isUsable(row, sessionId))
    if (usable) return take(usable)
    const assessed = tools.find(tool)?.assess?.(args)
    const id = randomUUID()
    held.use(service.hold(id))
    return service.request({
      id,
      agentId: agent.id,
      agentName: agent.name,
      turnId,
      sessionId,
      callId,
      tool,
      action: tool,
      payload: args,
      summary: summarise(tool, args),
      risk: this.#riskOf(attempt),
      intent: assessed && visible(assessed.intent),
      standing,
      description: explain(tools.find(tool)?.description, refusal ?? suspicionText(suspicion)),
    })
  }

  /**
   * What an approval for the session would cover, and the key that a standing one must have to cover this call.
   * Nothing after text that looked like instructions: whoever wrote it would choose when the call is repeated. The same
   * for calls that may hold text from outside, unless they only read. Decision: `UserInput` alone, the person's own
   * messages, does not count as outside; otherwise no command that somebody requests in a conversation could be
   * covered. Text that somebody pasted counts as their own: it can only repeat the very call that they approved, and
   * `#revokeChanged` makes sure that the call still does the same.
   */
  #standingOf(
    { tool, args, risk, labels = [], refusal, suspicion, sessionId }: ToolCallAttempt,
    hash: string,
  ): Standing | undefined {
    const { config, tools } = this.#deps
    if (!config.session_scope || suspicion !== undefined || sessionId === '') return undefined
    const assessed = tools.find(tool)?.assess?.(args)
    // A tool that refuses no label may still act outside, and untrusted text must not decide how often.
    const foreign =
      refusal === undefined
        ? risk !== 'read' && labels.some((label) => OUTSIDE_LABELS.has(label))
        : labels.length === 0 || labels.some((label) => label !== 'UserInput')
    if (assessed?.standing === 'once' || (foreign && assessed?.harm !== 'low')) return undefined
    if (assessed?.standing)
      return { key: `call ${assessed.standing.key}`, covers: visible(assessed.standing.covers).slice(0, 300) }
    return (assessed?.harm ?? riskOf(tool, risk)) === 'critical'
      ? undefined
      : { key: `same ${hash}`, covers: 'exactly this call' }
  }

  /** Requested in this conversation or over the API, awaited by nobody else, and not answered too long ago. */
  #isUsable(row: RequestRow, sessionId: string): boolean {
    const { config, service, clock } = this.#deps
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

/** Labels of text from an untrusted author, as opposed to text that is merely secret. */
const OUTSIDE_LABELS: ReadonlySet<string> = new Set(['ExternalNetwork', 'UntrustedAgent'])
const DESCRIPTION_CHARS = 300
function suspicionText(suspicion: string | undefined): string | undefined {
  return suspicion && `This call needs your approval, because ${suspicion}.`
}
/** Why an approval is needed, and how the tool describes itself. */
function explain(toolDescription = '', reason: string | undefined): string {
  const short =
    toolDescription.length > DESCRIPTION_CHARS
      ? `${toolDescription.slice(0, DESCRIPTION_CHARS - 1).toWellFormed()}…`
      : toolDescription
  return visible(reason === undefined ? short : `${reason.slice(0, 400)} ${short}`.trimEnd())
}
function whyRefused({ state, timeoutSecs, decidedBy, reason }: Approval): string {
  if (state === 'rejected') return `a person rejected it${reason === undefined ? '' : `: ${JSON.stringify(reason)}`}`
  if (decidedBy === 'timeout') return `nobody approved it within ${timeoutSecs} seconds`
  return `the request ended: ${decidedBy ?? 'expired'}`
}
function refused(approval: Approval): Refusal {
  return new Refusal(
    'forbidden',
    `${approval.tool} was not done, because ${whyRefused(approval)}. Do not try the same again; say what you ` +
      'wanted to do and why.',
  )
}
/** The request stays open, and the model can ask again once the plugin is back. */
function reloading(): Refusal {
  return new Refusal('service_unavailable', 'The approvals are being reloaded; the request stays open', {
    retryAfterSecs: 1,
    details: { ask_again: true },
  })
}
