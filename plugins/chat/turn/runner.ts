import * as v from 'valibot'
import { runAs } from 'svc/internal'
import { estimateUsage } from 'svc/providers'
import type { ResponseFormat, Usage } from 'svc/providers'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import type { Message } from '../../sessions/contract.ts'
import { toTurns } from '../context/history.ts'
import { countTurn, familyOf, maxTokens } from '../context/tokens.ts'
import { TurnEnded, TurnFailed, TurnStarting } from '../contract.ts'
import type { TurnResult } from '../contract.ts'
import { createGuard, guardLimits } from '../safety/loop-guard.ts'
import { carriedBy } from '../safety/taint.ts'
import { explain, failureOf, naming } from './failure.ts'
import type { LiveTurn } from './live-turn.ts'
import { runLoop } from './loop.ts'
import type { LoopEnd, LoopEvent, LoopInput, LoopPorts, Outcome } from './loop.ts'
import { ModelCaller, reasoningPolicy } from './model-caller.ts'
import type { ModelCallerDeps } from './model-caller.ts'
import { chooseModel, isRouted, routed, withModel } from './model-choice.ts'
import { TurnProgress } from './progress.ts'
import { checkAnswer, FormatInput, TEXT_ONLY } from './response-format.ts'
import { INTERRUPTED, resumePoint } from './resume.ts'
import type { Effects } from './resume.ts'
import { ToolExecutor } from './tool-executor.ts'
import type { ToolExecutorDeps } from './tool-executor.ts'

export interface TurnRunnerDeps extends ModelCallerDeps, ToolExecutorDeps {
  readonly effects: Effects
  readonly limits: { readonly maxIterations: number; readonly toolCalls: number; readonly reasoningChars: number }
  /** Runs work that nobody waits for and that must end before the plugin unloads. */
  readonly background: (work: () => Promise<void>) => void
  readonly onDefect: (error: unknown, turnId: string) => void
}
/** A turn with what is known of it, and the statements that start the next turn of its session. */
interface Run {
  readonly live: LiveTurn
  readonly progress: TurnProgress
  readonly startNext: () => Statement[]
}
/** A turn with the agent that answers and the place of its model among the agent's choices. */
interface Prepared extends Run {
  readonly agent: Agent
  readonly model: ResolvedModel
  readonly choice: number
}

/** Messages a turn may add before the next turn compacts the session. */
const MESSAGES_OF_A_TURN = 20

export class TurnRunner {
  readonly #deps: TurnRunnerDeps
  constructor(deps: TurnRunnerDeps) {
    this.#deps = deps
  }

  /**
   * Runs a turn to its end, whatever that is, and records it. Never rejects. `next` returns the following turn of the
   * session.
   */
  run(live: LiveTurn, next: () => LiveTurn | undefined): Promise<void> {
    // The agent is the actor of its turn, whoever sent the message.
    return runAs({ kind: 'agent', id: live.agentId }, () => this.#run(live, next))
  }
  async #run(live: LiveTurn, next: () => LiveTurn | undefined): Promise<void> {
    const start = performance.now()
    const progress = new TurnProgress(live)
    const startNext = (): Statement[] => {
      const following = next()
      return following ? [this.#deps.record.running(following.id)] : []
    }
    const run = { live, progress, startNext }
    try {
      const result = await this.#answer(run)
      live.finish(result)
      this.#announceEnd(run, result, performance.now() - start)
    } catch (error) {
      await this.#break(run, naming(error, progress.model?.provider))
    }
  }
  #announceEnd({ live: { entryPoint }, progress: { agent } }: Run, result: TurnResult, durationMs: number): void {
    const { background, hooks } = this.#deps
    if (agent) background(() => hooks.emit(TurnEnded, { agent, entryPoint, result, durationMs }))
  }

  async #answer(run: Run): Promise<TurnResult> {
    const { live, progress } = run
    const { hooks, agents, limits } = this.#deps
    live.signal.throwIfAborted()
    const named = (progress.agent = await agents.requireRunning(live.agentId))
    live.push({ type: 'thinking' })
    await hooks.check(TurnStarting, { agent: named, turnId: live.id, sessionId: live.sessionId })
    const { messages, ...turn } = await this.#prepare(run, named)
    const window = await this.#compactIfNeeded(turn, messages)
    progress.carried = carriedBy(window)
    const input = await this.#loopInput(turn, window)
    progress.iterations = input.iterations
    progress.calls = input.pending?.calls ?? []
    const reasoning = reasoningPolicy(live.options, turn.agent)
    const emit = (event: LoopEvent): void => {
      if (event.type === 'reasoning') {
        if (reasoning.kept) progress.addReasoning(event.delta, limits.reasoningChars)
        if (!reasoning.streamed) return
      }
      if (event.type === 'text') progress.addText(event.delta)
      live.push(event)
    }
    return this.#finish(run, await runLoop(input, this.#ports(turn, emit, input.pending?.known)))
  }

  /** Chooses the agent's model and reads the messages for it. */
  async #prepare(run: Run, named: Agent): Promise<Prepared & { readonly messages: readonly Message[] }> {
    const { live, progress } = run
    const { inference } = this.#deps
    const { options } = live
    let agent = named
    let question: readonly Message[] | undefined
    if (options.model !== undefined) agent = withModel(named, options.model, [])
    else if (isRouted(named)) {
      question = await this.#messages(live, named)
      agent = await routed(named, question, inference.choose)
    }
    const [{ model, index }, messages] = await Promise.all([
      chooseModel(inference, agent),
      question ?? this.#messages(live, agent),
    ])
    progress.model = model
    live.format = options.responseFormat ?? formatOf(agent)
    if (live.format && model.provider === 'builtin') throw new Refusal('service_unavailable', TEXT_ONLY)
    return { ...run, agent, model, choice: index, messages }
  }

  async #finish({ live, progress, startNext }: Run, end: LoopEnd): Promise<TurnResult> {
    const { db, record } = this.#deps
    progress.iterations = end.iterations
    progress.request = undefined
    if (end.usage) progress.addUsage(end.usage)
    const result = progress.result(end.stop)
    const details = `${result.usage.input} tokens in, ${result.usage.output} out`
    await db.batch([
      ...record.answer(live, { text: end.text, reasoning: progress.takeReasoning() }, progress.labels),
      ...(end.usage && progress.model ? record.usage(live, progress.model, end.usage) : []),
      ...progress.releaseReservation(),
      ...record.ended(live, 'done', details, progress),
      ...startNext(),
    ])
    return result
  }

  async #messages(live: LiveTurn, agent: Agent): Promise<readonly Message[]> {
    const { sessions, compactor, historyMessages } = this.#deps
    // More than the compaction threshold, or the messages in between would be neither read nor summarised.
    const limit = Math.max(historyMessages, compactor.limits(agent).threshold_messages + MESSAGES_OF_A_TURN)
    return sessions.tail(live.sessionId, live.id, agent.manifest.max_history_messages ?? limit)
  }

  /** The messages for the model. Too many or too long ones are summarised first; nothing is lost when that fails. */
  async #compactIfNeeded(turn: Prepared, messages: readonly Message[]): Promise<readonly Message[]> {
    const { live, agent, model, progress } = turn
    const { compactor, log } = this.#deps
    const { sessionId, id: before, signal } = live
    if (model.provider === 'builtin') return messages
    const limits = compactor.limits(agent)
    const overflow = exceeds(toTurns(messages), model, limits.token_threshold_ratio)
    if (!overflow && messages.length <= limits.threshold_messages) return messages
    live.enter({ phase: 'compacting', detail: 'older messages are being summarised' })
    try {
      const reason = overflow ? 'overflow' : 'threshold'
      const { status } = await compactor.compact({ agent, sessionId, model, before, signal, reason, turn: progress })
      return status === 'compacted' ? await this.#messages(live, agent) : messages
    } catch (error) {
      signal.throwIfAborted()
      const why = error instanceof Error ? error.message : String(error)
      log.warn(`session ${sessionId} could not be compacted and stays as it is: ${why}`)
      return messages
    }
  }

  async #loopInput({ live, agent, progress }: Prepared, messages: readonly Message[]): Promise<LoopInput> {
    const { limits, effects, tools } = this.#deps
    const input = {
      turns: toTurns(messages, live.resumed ? live.id : undefined),
      maxIterations: Math.min(agent.manifest.autonomous.max_iterations, limits.maxIterations),
      signal: live.signal,
      iterations: 0,
    }
    if (!live.resumed) return input
    const point = await resumePoint(effects, live.id, messages, live.waiting)
    for (const { tool } of point.earlier ?? []) if (tools.find(tool)?.risk !== 'read') progress.effects.push(tool)
    for (const { labels = [] } of point.pending?.known.values() ?? []) {
      const known = labels.map((label) => [label, 'the answer of a tool'] as const)
      progress.carried = new Map([...known, ...progress.carried])
    }
    return { ...input, ...point }
  }

  #ports(turn: Prepared, emit: (event: LoopEvent) => void, known: ReadonlyMap<string, Outcome> | undefined): LoopPorts {
    const { live, progress } = turn
    const { db, record, limits } = this.#deps
    const { format } = live
    const executor = new ToolExecutor(this.#deps, turn)
    const models = new ModelCaller(this.#deps, { ...turn, tools: executor.offered() })
    return {
      guard: createGuard({ ...guardLimits, callsPerTurn: limits.toolCalls }, live.toolCalls),
      emit,
      complete: (turns, signal, onEvent) => models.complete(turns, signal, onEvent),
      offer: (name) => executor.offer(name),
      call: (call, signal) => executor.call(call, signal),
      check: format && ((text, usage, again) => this.#checkFormat(turn, format, { text, usage, again })),
      recordCalls: async ({ usage, ...step }) => {
        const { calls } = step
        progress.request = undefined
        progress.addUsage(usage)
        await db.batch([
          ...record.toolCalls(live, { ...step, reasoning: progress.takeReasoning() }, progress.labels),
          ...this.#spent(turn, usage),
        ])
        progress.unrecordedText = ''
        progress.calls = calls
        progress.startedCalls.clear()
        progress.outcomes.clear()
      },
      recordReceipt: async (call, outcome) => {
        await db.batch([record.receipt(live, call, outcome)])
      },
      recordResults: async (results) => {
        // Outcomes of an earlier process have their receipt, or stay unknown.
        const fresh = results.filter(({ call }) => !known?.has(call.id))
        await db.batch([
          ...record.toolResults(live, results),
          ...fresh.map(({ call, outcome }) => record.receipt(live, call, outcome)),
          ...record.traces(progress),
        ])
        progress.calls = []
      },
    }
  }

  /** Statements for a call of the model that did not end the turn. */
  #spent({ live, progress }: Run, usage: Usage): Statement[] {
    const { record } = this.#deps
    return [
      ...(progress.model ? record.usage(live, progress.model, usage) : []),
      ...progress.releaseReservation(),
      ...record.traces(progress),
    ]
  }

  async #checkFormat(
    turn: Prepared,
    format: ResponseFormat,
    answer: { readonly text: string; readonly usage: Usage; readonly again: boolean },
  ) {
    const { progress } = turn
    const checked = await checkAnswer(answer.text, format)
    if (!('fault' in checked)) return checked
    progress.request = undefined
    progress.addUsage(answer.usage)
    await this.#deps.db.batch(this.#spent(turn, answer.usage))
    if (!answer.again) return checked
    const provider = progress.model?.provider ?? 'the model'
    throw new UpstreamFailure(
      provider,
      `${provider} did not answer in the form that was asked for, twice: ${checked.fault}`,
      { reason: 'malformed', retry: 'never' },
    )
  }

  /** The turn was stopped or failed: its text and its effects are kept and marked as incomplete. */
  async #break(run: Run, error: unknown): Promise<void> {
    const { live, progress } = run
    const { hooks, onDefect, background } = this.#deps
    const { stopped, entryPoint } = live
    const message = stopped ? stopped.message : explain(error)
    if (message === undefined) onDefect(error, live.id)
    const reason = message ?? 'internal error'
    try {
      await this.#recordBroken(run, error, reason)
    } catch (unrecorded) {
      // The turn stays open in the journal, and the next start marks it: nothing is lost, only reported later.
      onDefect(unrecorded, live.id)
    }
    if (stopped?.by === 'cancel') {
      const result = progress.result('cancelled')
      live.finish(result)
      this.#announceEnd(run, result, 0)
      return
    }
    live.fail(stopped?.by === 'unload' ? unloading(live) : error)
    const { agent } = progress
    if (agent) background(() => hooks.emit(TurnFailed, { agent, entryPoint, turnId: live.id, message: reason }))
  }

  async #recordBroken({ live, progress, startNext }: Run, error: unknown, reason: string): Promise<void> {
    const { record, db } = this.#deps
    const { stopped, forgotten } = live
    const state = stopped ? STATE_AFTER_STOP[stopped.by] : 'failed'
    const failure = stopped ? undefined : failureOf(error)
    const cut = progress.request && progress.written > 0 ? estimateUsage(progress.request, progress.written) : undefined
    if (cut) progress.addUsage(cut)
    const paid = [
      ...(cut && progress.model ? record.usage(live, progress.model, cut) : []),
      ...progress.releaseReservation(),
    ]
    if (state === 'interrupted' && (live.resumable || live.waiting)) {
      const receipts = progress.calls.flatMap((call) => {
        const outcome = progress.outcomes.get(call.id)
        return outcome ? [record.receipt(live, call, outcome)] : []
      })
      await db.batch([...receipts, ...paid, ...record.traces(progress), record.released(live.id)])
      return
    }
    const messages = forgotten
      ? []
      : [...this.#openCallResults(live, progress), ...this.#partial(live, progress, state)]
    await db.batch([
      ...messages,
      ...(failure && !forgotten ? record.failed(live, failure, progress.effects) : []),
      ...paid,
      ...record.ended(live, state, reason, progress, failure),
      ...startNext(),
    ])
  }

  #partial(
    live: LiveTurn,
    progress: TurnProgress,
    state: 'cancelled' | 'interrupted' | 'failed',
  ): readonly Statement[] {
    const { record } = this.#deps
    const text = progress.unrecordedText.trimStart()
    const reasoning = progress.takeReasoning()
    if (state === 'failed') return text === '' ? [] : record.answer(live, { text, reasoning }, progress.labels, 'cut')
    const shown = text === '' && state === 'interrupted' ? INTERRUPTED : text
    return record.answer(live, { text: shown, reasoning }, progress.labels, state)
  }

  /** Every recorded call gets a result, or the transcript could not be sent to a model again. */
  #openCallResults(live: LiveTurn, { calls, outcomes, startedCalls }: TurnProgress): readonly Statement[] {
    if (calls.length === 0) return []
    const { record } = this.#deps
    const results = calls.map((call) => {
      const text = startedCalls.has(call.id)
        ? 'stopped: it is not known how far this got'
        : 'not run: the turn was stopped before'
      return { call, outcome: outcomes.get(call.id) ?? { text, failed: true } }
    })
    return [
      ...record.toolResults(live, results),
      ...results.map(({ call, outcome }) => record.receipt(live, call, outcome)),
    ]
  }
}

const STATE_AFTER_STOP = { cancel: 'cancelled', unload: 'interrupted' } as const

/** Whether the messages fill more than this part of the model's window. */
function exceeds(turns: ReturnType<typeof toTurns>, { model, contextWindow }: ResolvedModel, ratio: number): boolean {
  const limit = contextWindow * ratio
  if (maxTokens(turns) <= limit) return false
  const family = familyOf(model)
  return turns.reduce((sum, turn) => sum + countTurn(turn, family), 0) > limit
}

function unloading({ waiting }: LiveTurn): Refusal {
  return new Refusal(
    'service_unavailable',
    waiting
      ? 'The turn waits for a decision and goes on when the service is back; its answer will be in the session'
      : 'The turn was interrupted: the service is stopping or being replaced',
    { retryAfterSecs: 5 },
  )
}
function formatOf({ manifest }: Agent): ResponseFormat | undefined {
  if (manifest.response_format === undefined) return undefined
  const parsed = v.safeParse(FormatInput, manifest.response_format)
  if (!parsed.success)
    throw new Refusal('invalid_request', `response_format of the manifest: ${parsed.issues[0].message}`)
  return parsed.output
}
