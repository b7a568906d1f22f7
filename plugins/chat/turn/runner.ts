import * as v from 'valibot'
import { runAs, ServerAway } from 'svc/internal'
import type { ResponseFormat, ToolCall, Usage } from 'svc/providers'
import { omitUndefined, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Recovery, Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Journal } from '../../journal/contract.ts'
import type { ResolvedModel } from '../../providers/contract.ts'
import type { Message } from '../../sessions/contract.ts'
import type { ModelHistory } from '../context/history.ts'
import { offeredTools, reasoningPolicy } from '../context/request.ts'
import { TurnContextBuilt, TurnEnded, TurnEnding, TurnFailed, TurnStarting } from '../contract.ts'
import type { TurnResult } from '../contract.ts'
import { carriedBy } from '../safety/labels.ts'
import { riskOfCall } from './call-risk.ts'
import { explain, failureOf, isTakenOver, naming, SessionLost } from './failure.ts'
import type { LiveTurn } from './live-turn.ts'
import { runLoop } from './loop.ts'
import type { LoopEnd, LoopEvent, LoopInput, LoopPorts } from './loop.ts'
import { ModelCaller } from './model-caller.ts'
import type { ModelCallerDeps } from './model-caller.ts'
import { chooseModel, isRouted, routed, withModel } from './model-choice.ts'
import { TurnProgress } from './progress.ts'
import { checkAnswer, FormatInput, TEXT_ONLY } from './response-format.ts'
import { resumePoint } from './resume.ts'
import type * as ToolExecutorModule from './tool-executor.ts'
import type { ToolExecutorDeps } from './tool-executor.ts'
import type { ToolPorts } from './tool-step.ts'

export interface TurnRunnerDeps extends ModelCallerDeps, ToolExecutorDeps {
  readonly journal: Pick<Journal, 'effects' | 'find'>
  readonly maxIterations: number
  readonly reasoningChars: number
  /** Aborts when the plugin begins to unload. */
  readonly leaving: AbortSignal
  /** Runs work that nobody waits for and that must end before the plugin unloads. */
  readonly background: (work: () => Promise<void>) => void
  readonly onDefect: (error: unknown, turnId: string) => void
  /** Another daemon has taken the session of a turn over. */
  readonly onLost: (turn: LiveTurn) => void
  /** Counts calls that an earlier process did not finish. */
  readonly onCutCall: (outcome: Recovery['outcome']) => void
}
/** Loaded by the first call of a tool. Kept: an `import()` of what is loaded already resolves its name again. */
let toolExecutor: Promise<typeof ToolExecutorModule> | undefined
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

/** Runs one turn from its agent to its answer: prepare, loop, record. */
export class TurnRunner {
  readonly #deps: TurnRunnerDeps
  constructor(deps: TurnRunnerDeps) {
    this.#deps = deps
  }

  /**
   * Runs a turn to its end, whatever that is, and records it. Never rejects. `next` returns the following turn of the
   * session. `agent`: as it was read just now.
   */
  run(live: LiveTurn, next: () => LiveTurn | undefined, agent?: Agent): Promise<void> {
    // The agent is the actor of its turn, whoever sent the message.
    const origin = live.sender?.origin ?? live.id
    return runAs({ kind: 'agent', id: live.agentId, origin }, () => this.#run(live, next, agent))
  }
  async #run(live: LiveTurn, next: () => LiveTurn | undefined, agent?: Agent): Promise<void> {
    const start = performance.now()
    const progress = new TurnProgress(live)
    const startNext = (): Statement[] => {
      const following = next()
      return following ? [this.#deps.record.running(following.id)] : []
    }
    const run = { live, progress, startNext }
    try {
      const result = await this.#answerAtLast(run, agent)
      live.finish(result)
      this.#announceEnd(run, result, performance.now() - start)
    } catch (error) {
      await this.#recordUnfinished(run, naming(error, progress.model?.provider))
    }
  }

  /** A database that is away is no failure of the turn: it goes on from its rows, as after a crash. */
  async #answerAtLast(run: Run, agent?: Agent): Promise<TurnResult> {
    const { record, journal, leaving, log } = this.#deps
    for (let known = agent; ; known = undefined) {
      try {
        return await this.#answer(run, known)
      } catch (error) {
        const { live } = run
        if (!(error instanceof ServerAway) || live.signal.aborted || leaving.aborted) throw error
        log.warn(`turn ${live.id} stands still while the database is away`, error)
        const { awaitDatabase } = await import('./unfinished-turn.ts')
        await awaitDatabase({ record, journal, leaving }, run, error)
      }
    }
  }

  async #answer(run: Run, found?: Agent): Promise<TurnResult> {
    const { live, progress } = run
    const { hooks, agents, history } = this.#deps
    live.signal.throwIfAborted()
    const named = found?.state === 'Running' ? found : await agents.requireRunning(live.agentId)
    progress.agent = named
    live.push({ type: 'thinking' })
    await hooks.check(TurnStarting, { agent: named, turnId: live.id, sessionId: live.sessionId })
    const { messages, ...turn } = await this.#prepare(run, named)
    const [past, { additions }] = await Promise.all([
      history.forModel(turn, messages),
      hooks.apply(TurnContextBuilt, { agent: named, turn: live, messages, additions: [] }),
    ])
    progress.carried = carriedBy(past.messages)
    if (additions.length > 0) progress.addContext(additions)
    const input = await this.#loopInput(turn, past)
    progress.iterations = input.iterations
    progress.calls = input.pending?.calls ?? []
    return this.#finish(run, await runLoop(input, this.#ports(turn, input)))
  }

  /** Chooses the agent's model and reads the messages for it. */
  async #prepare(run: Run, named: Agent): Promise<Prepared & { readonly messages: readonly Message[] }> {
    const { live, progress } = run
    const { inference, history } = this.#deps
    const { options } = live
    let agent = named
    let question: readonly Message[] | undefined
    if (options.model !== undefined) agent = withModel(named, options.model, [])
    else if (isRouted(named)) {
      question = await history.messages(live, named)
      agent = await routed(named, question, inference.choose)
    }
    const [{ model, index }, messages] = await Promise.all([
      chooseModel(inference, agent),
      question ?? history.messages(live, agent),
    ])
    progress.model = model
    live.format = options.responseFormat ?? formatOf(agent)
    if (live.format && model.provider === 'builtin') throw new Refusal('service_unavailable', TEXT_ONLY)
    return { ...run, agent, model, choice: index, messages }
  }

  async #loopInput({ live, agent, progress }: Prepared, { messages, turns }: ModelHistory): Promise<LoopInput> {
    const { maxIterations: max, journal, tools } = this.#deps
    const maxIterations = Math.min(agent.manifest.autonomous.max_iterations, max)
    const input = { turns, maxIterations, signal: live.signal, iterations: 0 }
    if (!live.resumed) return input
    const mayHaveBegun = (callId: string): boolean => progress.mayHaveBegun(callId)
    const { cut = [], ...point } = await resumePoint(journal, live.id, messages, mayHaveBegun)
    progress.resume(cut)
    for (const { tool, args } of point.earlier ?? [])
      if (riskOfCall(tools.find(tool), args) !== 'read') progress.effects.push(tool)
    const pending = point.pending && {
      ...point.pending,
      known: new Map([...point.pending.known, ...(await this.#recover({ live, agent }, point.pending.calls, cut))]),
    }
    for (const { labels = [] } of pending?.known.values() ?? []) {
      const known = labels.map((label) => [label, 'the answer of a tool'] as const)
      progress.carried = new Map([...known, ...progress.carried])
    }
    return { ...input, ...point, ...omitUndefined({ pending }) }
  }

  /** Most turns have no call that was cut off: the code is loaded by the first one. */
  async #recover(turn: Pick<Prepared, 'live' | 'agent'>, calls: readonly ToolCall[], cut: readonly ToolCall[]) {
    if (cut.length === 0) return []
    const { recoverCutCalls } = await import('./cut-calls.ts')
    return recoverCutCalls(this.#deps, turn, { calls, cut })
  }

  /** What the loop calls: the models, the tools, and the record of each step. */
  #ports(turn: Prepared, { pending }: LoopInput): LoopPorts {
    const { live, agent, progress } = turn
    const { record, tools, agents } = this.#deps
    const { format } = live
    const emit = this.#emitter(turn)
    const models = new ModelCaller(this.#deps, { ...turn, tools: offeredTools(agent, tools, agents) })
    const createExecutor = async (): Promise<ToolPorts> => {
      const { ToolExecutor } = await (toolExecutor ??= import('./tool-executor.ts'))
      return new ToolExecutor(this.#deps, { live, agent, progress, emit, known: pending?.known })
    }
    let executor: Promise<ToolPorts> | undefined
    return {
      emit,
      complete: (turns, signal, onEvent) => models.complete(turns, signal, onEvent),
      tools: () => (executor ??= createExecutor()),
      check: format && ((text, usage, again) => this.#checkFormat(turn, format, { text, usage, again })),
      recordCalls: async ({ usage, ...step }) => {
        progress.request = undefined
        progress.addUsage(usage)
        progress.unrecordedCalls = step.calls
        await this.#pay(
          turn,
          usage,
          record.toolCalls(live, { ...step, reasoning: progress.takeReasoning() }, progress.labels),
        )
        progress.startStep(step.calls)
      },
    }
  }

  /** Hands the events of the loop to the readers of the turn, and keeps what its record needs. */
  #emitter({ live, agent, progress }: Prepared): (event: LoopEvent) => void {
    const { reasoningChars } = this.#deps
    const reasoning = reasoningPolicy(live.options, agent)
    return (event) => {
      if (event.type === 'reasoning') {
        if (reasoning.kept) progress.addReasoning(event.delta, reasoningChars)
        if (!reasoning.streamed) return
      }
      if (event.type === 'text') progress.addText(event.delta)
      live.push(event)
    }
  }

  async #finish({ live, progress, startNext }: Run, end: LoopEnd): Promise<TurnResult> {
    const { hooks, record } = this.#deps
    const { agent } = progress
    if (!agent) throw new Error('a turn ends before its agent is known')
    progress.iterations = end.iterations
    progress.request = undefined
    if (end.usage) progress.addUsage(end.usage)
    const result = progress.result(end.stop)
    const details = `${result.usage.input} tokens in, ${result.usage.output} out`
    const { statements: following } = await hooks.apply(TurnEnding, { agent, turn: live, statements: [] })
    await this.#commitEnd(live, [
      ...record.answer(live, { text: end.text, reasoning: progress.takeReasoning() }, progress.labels),
      ...(end.usage && progress.model ? record.usage(live, progress.model, end.usage) : []),
      ...progress.releaseReservation(),
      ...record.ended(live, 'done', details, progress),
      ...following,
      ...startNext(),
    ])
    return result
  }

  async #commitEnd(live: LiveTurn, statements: readonly Statement[]): Promise<void> {
    try {
      await this.#deps.record.commit(live, statements)
    } catch (error) {
      const { commitAgain } = await import('./unfinished-turn.ts')
      await commitAgain(this.#deps, live, statements, error)
    }
  }

  #announceEnd({ live: { entryPoint }, progress: { agent } }: Run, result: TurnResult, durationMs: number): void {
    const { background, hooks } = this.#deps
    if (!agent) return
    background(async () => {
      // Whoever waits for the answer gets it first.
      await nextTick()
      await hooks.emit(TurnEnded, { agent, entryPoint, result, durationMs })
    })
  }

  /** Records what a call of the model cost that did not end the turn, with what it led to. */
  async #pay({ live, progress }: Prepared, usage: Usage, also: readonly Statement[] = []): Promise<void> {
    const { record } = this.#deps
    const { model } = progress
    progress.unpaid = [...(model ? record.usage(live, model, usage) : []), ...progress.releaseReservation()]
    await record.commit(live, [...also, ...progress.unpaid, ...record.tracesSoFar(progress)])
    progress.unpaid = []
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
    await this.#pay(turn, answer.usage)
    if (!answer.again) return checked
    const provider = progress.model?.provider ?? 'the model'
    throw new UpstreamFailure(
      provider,
      `${provider} did not answer in the form that was asked for, twice: ${checked.fault}`,
      { reason: 'malformed', retry: 'never' },
    )
  }

  /** Another daemon works on the session: nothing is recorded here, and only what was reserved for the turn is freed. */
  async #leaveToOther({ live, progress }: Run): Promise<void> {
    const { onDefect, onLost, record } = this.#deps
    onLost(live)
    live.fail(new SessionLost(live.id))
    const reserved = progress.releaseReservation()
    try {
      if (reserved.length > 0) await record.commit({}, reserved)
    } catch (error) {
      onDefect(error, live.id)
    }
  }

  /** The turn was stopped or failed. */
  async #recordUnfinished(run: Run, error: unknown): Promise<void> {
    const { live, progress } = run
    const { hooks, onDefect, background, leaving, record } = this.#deps
    // Providers and tools unload one by one: what fails for want of one is no answer, and goes on after the start.
    if (isTakenOver(error)) live.stop('lost')
    else if (leaving.aborted && (error instanceof ServerAway || (live.resumable && failureOf(error).retryable)))
      live.stop('unload')
    if (live.stopped?.by === 'lost') return this.#leaveToOther(run)
    const { stopped, entryPoint } = live
    const message = stopped ? stopped.message : explain(error)
    if (message === undefined) onDefect(error, live.id)
    const reason = message ?? 'internal error'
    try {
      // Loaded by the first turn that is stopped or fails.
      const { recordUnfinishedTurn } = await import('./unfinished-turn.ts')
      const commit = (statements: readonly Statement[]): Promise<void> => this.#commitEnd(live, statements)
      await recordUnfinishedTurn({ record, commit }, run, error, reason)
    } catch (unrecorded) {
      if (isTakenOver(unrecorded)) return this.#leaveToOther(run)
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
}

/** Settles after the reactions to all that is settled by now. */
function nextTick(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve)
  })
}

function unloading({ id, waiting, resumable }: LiveTurn): Refusal {
  const message = waiting
    ? 'The turn waits for a decision and goes on when the service is back; its answer will be in the session'
    : resumable
      ? 'The service is stopping or being replaced. The turn goes on when it is back; its answer will be in the session'
      : 'The turn was interrupted: the service is stopping or being replaced'
  return new Refusal('service_unavailable', message, { retryAfterSecs: 5, details: { turn_id: id } })
}
function formatOf({ manifest }: Agent): ResponseFormat | undefined {
  if (manifest.response_format === undefined) return undefined
  const parsed = v.safeParse(FormatInput, manifest.response_format)
  if (!parsed.success)
    throw new Refusal('invalid_request', `response_format of the manifest: ${parsed.issues[0].message}`)
  return parsed.output
}
