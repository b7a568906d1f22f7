import * as v from 'valibot'
import { runAs } from 'svc/internal'
import type { ToolCall } from 'svc/providers'
import { omitUndefined } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Effect, Journal, Trace } from '../../journal/contract.ts'
import type { ToolCallRequest, ToolCallResult, ToolCalls } from '../contract.ts'
import { labelsOfMessage, SOURCES } from '../safety/labels.ts'
import { LiveTurn } from './live-turn.ts'
import { TurnProgress } from './progress.ts'
import type { CutCallDeps } from './cut-calls.ts'
import { Receipt } from './resume.ts'
import { ToolExecutor } from './tool-executor.ts'
import type { ToolExecutorDeps } from './tool-executor.ts'
import { effectKey, toReceipt } from './record.ts'
import type { Outcome, ToolOutcome } from './tool-step.ts'

export interface ToolCallServiceDeps extends ToolExecutorDeps, Pick<CutCallDeps, 'onCutCall'> {
  readonly journal: Pick<Journal, 'effects' | 'done'>
}
/** A person has not decided yet. */
const UNDECIDED = Symbol('undecided')

/** Calls that no model asked for, through the same executor as those of a turn. */
export class ToolCallService implements ToolCalls {
  readonly #deps: ToolCallServiceDeps
  constructor(deps: ToolCallServiceDeps) {
    this.#deps = deps
  }

  call(request: ToolCallRequest): Promise<ToolCallResult> {
    return runAs({ kind: 'agent', id: request.agentId }, () => this.#call(request))
  }
  async #call(request: ToolCallRequest): Promise<ToolCallResult> {
    const { agents, journal } = this.#deps
    const [earlier] = request.isNew ? [] : await journal.effects(request.id)
    if (earlier?.result !== undefined)
      return earlier.state === 'unknown' ? { outcome: 'unknown' } : ended(v.parse(Receipt, earlier.result))
    const agent = await agents.requireRunning(request.agentId)
    const waitSecs = request.counted ? 0 : this.#rateWaitSecs(agent)
    if (waitSecs > 0) return { outcome: 'waiting', counted: false, untilMs: Date.now() + waitSecs * 1000 }
    return this.#execute(request, agent, earlier)
  }
  #rateWaitSecs({ id, manifest }: Agent): number {
    return this.#deps.toolCallRate.take(id, manifest.resources.max_tool_calls_per_minute)
  }

  async #execute(request: ToolCallRequest, agent: Agent, earlier: Effect | undefined): Promise<ToolCallResult> {
    const { record } = this.#deps
    const { id, sessionId, entryPoint, tool: name, args } = request
    const live = new LiveTurn({
      id,
      agentId: agent.id,
      sessionId,
      entryPoint,
      options: omitUndefined({ hops: request.hops }),
      resumed: earlier !== undefined,
      resumable: true,
    })
    const progress = this.#progressOf(live, request)
    const call: ToolCall = { id, name, args }
    if (earlier) {
      const { recoverCall } = await import('./cut-calls.ts')
      const recovered = await recoverCall(this.#deps, { live, agent }, call)
      if (recovered?.failed === true) return { outcome: 'unknown' }
      if (recovered) {
        await this.#record({ live, progress, call, outcome: recovered }, true)
        return ended(recovered)
      }
    }
    // One listener: `AbortSignal.any` costs several times as much.
    const stop = new AbortController()
    const leave = (): void => stop.abort(request.signal.reason)
    let hasBegun = earlier !== undefined
    let onlyReads = false
    const executor = new ToolExecutor(this.#deps, {
      live,
      agent,
      progress,
      emit: () => undefined,
      known: undefined,
      isCounted: true,
      onPerson: () => stop.abort(UNDECIDED),
      caller: omitUndefined({ progress: request.progress, client: request.client }),
      begin: async () => {
        // What only reads is recorded with its end: after a crash it would be called again anyway.
        if (hasBegun || onlyReads) return
        await record.commit(live, record.callBegins(live, call))
        hasBegun = true
      },
    })
    const offer = executor.offer(name, args)
    if (typeof offer === 'string') return ended({ text: offer, failed: true })
    onlyReads = offer.risk === 'read'
    let outcome: Outcome
    request.signal.addEventListener('abort', leave, { once: true })
    if (request.signal.aborted) leave()
    try {
      outcome = await executor.call(call, stop.signal)
    } catch (error) {
      if (error === UNDECIDED) return { outcome: 'waiting', counted: true }
      if (hasBegun) await record.commit(live, record.ended(live, 'interrupted', `${name} was stopped`, progress))
      throw error
    } finally {
      request.signal.removeEventListener('abort', leave)
    }
    await this.#record({ live, progress, call, outcome }, hasBegun)
    return ended(outcome)
  }

  #progressOf(live: LiveTurn, { entryPoint, args, labels = [] }: ToolCallRequest): TurnProgress {
    const progress = new TurnProgress(live)
    const all = labelsOfMessage(entryPoint, JSON.stringify(args ?? null), labels, this.#deps.personalData)
    progress.carried = new Map(all.map((label) => [label, SOURCES[label]]))
    return progress
  }

  /** A call that was refused is recorded too, with its end. */
  async #record(
    {
      live,
      progress,
      call,
      outcome,
    }: {
      readonly live: LiveTurn
      readonly progress: TurnProgress
      readonly call: ToolCall
      readonly outcome: Outcome
    },
    hasBegun: boolean,
  ): Promise<void> {
    const { record } = this.#deps
    const how = outcome.failed ? 'failed' : 'done'
    const details = `${call.name} ${how}`
    const invoked = record.toolInvoked(live, { call, outcome })
    await record.commit(
      live,
      hasBegun
        ? [record.receipt(live, call, outcome), invoked, ...record.ended(live, 'done', details, progress)]
        : [
            ...this.#ended(live, { call, outcome }, progress.takeTraces()),
            invoked,
            record.endEntry(live, 'done', details),
          ],
    )
  }

  /** The turn and its call, which no row tells of yet. */
  #ended(live: LiveTurn, { call, outcome }: ToolOutcome, traces: readonly Trace[]): readonly Statement[] {
    const { journal, record } = this.#deps
    const effect = {
      key: effectKey(live.id, call.id),
      kind: 'tool' as const,
      name: call.name,
      input: JSON.stringify(call.args ?? null),
      state: outcome.failed ? ('failed' as const) : ('done' as const),
      result: toReceipt(outcome),
    }
    return journal.done(record.oneCall(live), effect, traces)
  }
}

function ended({ text, failed, labels = [], content, structured }: Outcome): ToolCallResult {
  return { outcome: 'ended', text, failed, labels, ...omitUndefined({ content, structured }) }
}
