import { estimateUsage } from 'svc/providers'
import type { ResponseFormat } from 'svc/providers'
import * as v from 'valibot'
import { runAs } from 'svc/internal'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Hooks, Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Message } from '../../sessions/contract.ts'
import { ModelCaller, chooseModel, showsReasoning, TEXT_ONLY } from './model-call.ts'
import type { ModelCallerDeps } from './model-call.ts'
import { TurnEnded, TurnFailed, TurnStarting } from '../contract.ts'
import type { TurnResult } from '../contract.ts'
import { explain, failureOf, naming } from './failure.ts'
import { checkAnswer, FormatInput } from './response-format.ts'
import { createGuard, guardLimits } from '../safety/loop-guard.ts'
import { toTurns } from '../context/history.ts'
import type { LiveTurn } from './live-turn.ts'
import { runLoop } from './loop.ts'
import type { LoopInput, LoopPorts, Outcome } from './loop.ts'
import { Progress } from './progress.ts'
import type { TurnRecord } from './record.ts'
import { recall } from './recall.ts'
import type { Effects } from './recall.ts'
import { isRouted, routed, withModel } from './model-routing.ts'
import { carriedBy } from '../safety/taint.ts'
import { countTurn, familyOf, mostTokens } from '../context/tokens.ts'
import { ToolExecutor } from './tool-executor.ts'
import type { ToolExecutorDeps } from './tool-executor.ts'

export interface TurnRunnerDeps extends ModelCallerDeps, ToolExecutorDeps {
  readonly effects: Effects
  readonly hooks: Hooks
  readonly record: TurnRecord
  readonly limits: { readonly maxIterations: number; readonly toolCalls: number; readonly reasoningChars: number }
  /** Runs what must end before the plugin goes, and that nobody waits for. */
  readonly background: (work: () => Promise<void>) => void
  readonly onDefect: (error: unknown, turnId: string) => void
}

/** Messages a turn may add before the next one looks whether there are too many. */
const BEYOND = 20
const INTERRUPTED = '[Interrupted: the service stopped before this was answered.]'

export class TurnRunner {
  readonly #deps: TurnRunnerDeps
  constructor(deps: TurnRunnerDeps) {
    this.#deps = deps
  }

  /** Runs a turn to whatever end and records it. Never rejects. `next` is the turn that follows in the session. */
  run(live: LiveTurn, next: () => LiveTurn | undefined): Promise<void> {
    // What is done in a turn is done by the agent, whoever sent the message and whoever's message came before it.
    return runAs({ kind: 'agent', id: live.agentId }, () => this.#run(live, next))
  }
  async #run(live: LiveTurn, next: () => LiveTurn | undefined): Promise<void> {
    const started = performance.now()
    const progress = new Progress(live)
    const follow = (): Statement[] => {
      const after = next()
      return after ? [this.#deps.record.running(after.id)] : []
    }
    try {
      const result = await this.#turn(live, progress, follow)
      live.finish(result)
      const { agent } = progress
      if (agent)
        this.#deps.background(() =>
          this.#deps.hooks.emit(TurnEnded, {
            agent,
            entryPoint: live.entryPoint,
            result,
            durationMs: performance.now() - started,
          }),
        )
    } catch (error) {
      await this.#broken(live, progress, naming(error, progress.model?.provider), follow)
    }
  }

  async #turn(live: LiveTurn, progress: Progress, follow: () => Statement[]): Promise<TurnResult> {
    const { db, agents, inference, hooks, record, limits } = this.#deps
    live.signal.throwIfAborted()
    const named = (progress.agent = await agents.requireRunning(live.agentId))
    live.push({ type: 'thinking' })
    await hooks.check(TurnStarting, { agent: named, turnId: live.id, sessionId: live.sessionId })
    const wanted = live.options.model
    const asked = wanted === undefined && isRouted(named) ? await this.#messages(live, named) : undefined
    const agent = wanted ? withModel(named, wanted, []) : asked ? await routed(named, asked, inference.choose) : named
    const [{ model, index }, messages] = await Promise.all([
      chooseModel(inference, agent),
      asked ?? this.#messages(live, agent),
    ])
    progress.model = model
    live.format = live.options.responseFormat ?? formatOf(agent)
    if (live.format && model.provider === 'builtin') throw new Refusal('service_unavailable', TEXT_ONLY)
    const window = await this.#compacted(live, agent, progress, messages)
    progress.carried = carriedBy(window)
    const input = await this.#input(live, agent, window, progress)
    progress.iterations = input.iterations
    progress.calls = input.pending?.calls ?? []
    const shown = showsReasoning(live.options, agent)
    const loop = runLoop(input, this.#ports(live, agent, progress, index, input.pending?.known))
    for (;;) {
      const { done, value } = await loop.next()
      if (done) {
        progress.iterations = value.iterations
        progress.request = undefined
        if (value.usage) progress.spend(value.usage)
        const result = progress.result(value.stop)
        await db.batch([
          ...record.said(live, { text: value.text, reasoning: progress.takeReasoning() }, progress.labels),
          ...(value.usage && progress.model ? record.spent(live, progress.model, value.usage) : []),
          ...progress.giveBack(),
          ...record.ended(live, 'done', `${result.usage.input} tokens in, ${result.usage.output} out`, progress),
          ...follow(),
        ])
        return result
      }
      if (value.type === 'reasoning') {
        if (!shown.kept) continue
        progress.think(value.delta, limits.reasoningChars)
        if (!shown.streamed) continue
      }
      if (value.type === 'text') {
        progress.said += value.delta
        progress.step += value.delta
      }
      live.push(value)
    }
  }

  async #messages(live: LiveTurn, agent: Agent): Promise<readonly Message[]> {
    const { sessions, compactor, historyMessages } = this.#deps
    // More than are compacted, or those in between would be neither read nor summarised.
    const most = Math.max(historyMessages, compactor.limits(agent).threshold_messages + BEYOND)
    return sessions.tail(live.sessionId, live.id, agent.manifest.max_history_messages ?? most)
  }

  /** The messages for the model, after the older ones were summarised if they are too many or too long. Nothing is lost when that fails. */
  async #compacted(
    live: LiveTurn,
    agent: Agent,
    progress: Progress,
    messages: readonly Message[],
  ): Promise<readonly Message[]> {
    const { compactor, log } = this.#deps
    const { model } = progress
    const limits = compactor.limits(agent)
    if (!model || model.provider === 'builtin') return messages
    const most = model.contextWindow * limits.token_threshold_ratio
    const many = messages.length > limits.threshold_messages
    const turns = toTurns(messages)
    const family = familyOf(model.model)
    const long = mostTokens(turns) > most && turns.reduce((sum, turn) => sum + countTurn(turn, family), 0) > most
    if (!many && !long) return messages
    live.enter({ phase: 'compacting', detail: 'older messages are being summarised' })
    try {
      const { status } = await compactor.compact({
        agent,
        sessionId: live.sessionId,
        model,
        before: live.id,
        signal: live.signal,
        because: long ? 'overflow' : 'threshold',
        payer: progress,
      })
      return status === 'compacted' ? await this.#messages(live, agent) : messages
    } catch (error) {
      live.signal.throwIfAborted()
      log.warn(
        `session ${live.sessionId} could not be compacted and stays as it is: ${error instanceof Error ? error.message : String(error)}`,
      )
      return messages
    }
  }

  async #input(live: LiveTurn, agent: Agent, messages: readonly Message[], progress: Progress): Promise<LoopInput> {
    const maxIterations = Math.min(agent.manifest.autonomous.max_iterations, this.#deps.limits.maxIterations)
    const base = {
      turns: toTurns(messages, live.resumed ? live.id : undefined),
      maxIterations,
      signal: live.signal,
      iterations: 0,
    }
    if (!live.resumed) return base
    const recalled = await recall(this.#deps.effects, live.id, messages, live.waiting)
    for (const { tool } of recalled.earlier ?? [])
      if (this.#deps.tools.find(tool)?.risk !== 'read') progress.effects.push(tool)
    for (const { labels = [] } of recalled.pending?.known.values() ?? []) {
      progress.carried = new Map([
        ...labels.map((label) => [label, 'the answer of a tool'] as const),
        ...progress.carried,
      ])
    }
    return { ...base, ...recalled }
  }

  #ports(
    live: LiveTurn,
    agent: Agent,
    progress: Progress,
    choice: number,
    known: ReadonlyMap<string, Outcome> | undefined,
  ): LoopPorts {
    const { db, record, limits } = this.#deps
    const executor = new ToolExecutor(this.#deps, { live, agent, progress })
    const models = new ModelCaller(this.#deps, { live, agent, progress, offered: executor.offered(), choice })
    return {
      guard: createGuard({ ...guardLimits, callsPerTurn: limits.toolCalls }, live.tally),
      complete: (turns, signal) => models.complete(turns, signal),
      offer: (name) => executor.offer(name),
      call: (call, signal) => executor.call(call, signal),
      check: live.format && ((text, usage, again) => this.#check(live, progress, live.format, { text, usage, again })),
      async recordCalls({ text, calls, usage, replay }) {
        progress.request = undefined
        progress.spend(usage)
        await db.batch([
          ...record.calls(live, { text, reasoning: progress.takeReasoning(), calls, replay }, progress.labels),
          ...(progress.model ? record.spent(live, progress.model, usage) : []),
          ...progress.giveBack(),
          ...record.traces(progress),
        ])
        progress.step = ''
        progress.calls = calls
        progress.begun.clear()
        progress.outcomes.clear()
      },
      async recordReceipt(call, outcome) {
        await db.batch([record.receipt(live, call, outcome)])
      },
      async recordResults(results) {
        // What is known of an earlier process has its receipt, or stays unknown.
        const fresh = results.filter(({ call }) => !known?.has(call.id))
        await db.batch([
          ...record.results(live, results),
          ...fresh.map(({ call, outcome }) => record.receipt(live, call, outcome)),
          ...record.traces(progress),
        ])
        progress.calls = []
      },
    }
  }

  async #check(
    live: LiveTurn,
    progress: Progress,
    format: ResponseFormat | undefined,
    { text, usage, again }: { text: string; usage: Parameters<Progress['spend']>[0]; again: boolean },
  ) {
    const checked = format ? checkAnswer(text, format) : { text }
    if (!('fault' in checked)) return checked
    const { db, record } = this.#deps
    progress.request = undefined
    progress.spend(usage)
    await db.batch([
      ...(progress.model ? record.spent(live, progress.model, usage) : []),
      ...progress.giveBack(),
      ...record.traces(progress),
    ])
    if (!again) return checked
    const provider = progress.model?.provider ?? 'the model'
    throw new UpstreamFailure(
      provider,
      `${provider} did not answer in the form that was asked for, twice: ${checked.fault}`,
      { reason: 'malformed', retry: 'never' },
    )
  }

  /** The turn was stopped, or something failed: what was said and done is kept, marked as not being all. */
  async #broken(live: LiveTurn, progress: Progress, error: unknown, follow: () => Statement[]): Promise<void> {
    const { record, hooks, onDefect, db, background } = this.#deps
    const stopped = live.stopped
    const message = stopped ? stopped.message : explain(error)
    if (message === undefined) onDefect(error, live.id)
    const reason = message ?? 'internal error'
    const state = stopped ? (stopped.by === 'cancel' ? 'cancelled' : 'interrupted') : 'failed'
    const failure = state === 'failed' ? failureOf(error) : undefined
    const shown = stopped?.by === 'unload' ? interrupted(live) : error
    const cut =
      progress.request !== undefined && progress.written > 0
        ? estimateUsage(progress.request, progress.written)
        : undefined
    if (cut) progress.spend(cut)
    const paid = [...(cut && progress.model ? record.spent(live, progress.model, cut) : []), ...progress.giveBack()]
    try {
      if (state === 'interrupted' && (live.resumable || live.waiting)) {
        const known = progress.calls.flatMap((call) => {
          const outcome = progress.outcomes.get(call.id)
          return outcome ? [record.receipt(live, call, outcome)] : []
        })
        await db.batch([...known, ...paid, ...record.traces(progress), record.release(live.id)])
      } else {
        await db.batch([
          ...(live.forgotten ? [] : [...this.#unanswered(live, progress), ...this.#partial(live, progress, state)]),
          ...(failure && !live.forgotten ? record.failed(live, failure, progress.effects) : []),
          ...paid,
          ...record.ended(live, state, reason, progress, failure),
          ...follow(),
        ])
      }
    } catch (unrecorded) {
      // The turn stays open in the journal, and the next boot marks it: nothing is lost, only told later.
      onDefect(unrecorded, live.id)
    }
    if (state === 'cancelled') {
      const { agent } = progress
      const result = progress.result('cancelled')
      live.finish(result)
      if (agent) background(() => hooks.emit(TurnEnded, { agent, entryPoint: live.entryPoint, result, durationMs: 0 }))
      return
    }
    live.fail(shown)
    const { agent } = progress
    if (agent)
      background(() => hooks.emit(TurnFailed, { agent, entryPoint: live.entryPoint, turnId: live.id, message: reason }))
  }

  #partial(live: LiveTurn, progress: Progress, state: 'cancelled' | 'interrupted' | 'failed'): readonly Statement[] {
    const text = progress.step.trimStart()
    const { labels } = progress
    const said = {
      text: text === '' && state === 'interrupted' ? INTERRUPTED : text,
      reasoning: progress.takeReasoning(),
    }
    if (state !== 'failed') return this.#deps.record.said(live, said, labels, state)
    return text === '' ? [] : this.#deps.record.said(live, said, labels, 'cut')
  }

  /** Every recorded call gets a result, or the transcript could not be sent to a model again. */
  #unanswered(live: LiveTurn, progress: Progress): Statement[] {
    if (progress.calls.length === 0) return []
    const { record } = this.#deps
    const results = progress.calls.map((call) => ({
      call,
      outcome: progress.outcomes.get(call.id) ?? {
        text: progress.begun.has(call.id)
          ? 'stopped: it is not known how far this got'
          : 'not run: the turn was stopped before',
        failed: true,
      },
    }))
    return [
      ...record.results(live, results),
      ...results.map(({ call, outcome }) => record.receipt(live, call, outcome)),
    ]
  }
}

function interrupted({ waiting }: LiveTurn): Refusal {
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
