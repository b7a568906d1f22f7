import { estimateUsage } from 'svc/providers'
import type { CompletionRequest, Turn } from 'svc/providers'
import { omitUndefined, Refusal, UpstreamFailure } from 'svc/sdk'
import type { Hooks, Logger, PluginDatabase, ToolDescription } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Catalog } from '../../catalog/contract.ts'
import type { Inference, InferenceEvent, ResolvedModel } from '../../providers/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { Compactor } from '../context/compactor.ts'
import { tagReplay, toTurns, untagReplay } from '../context/history.ts'
import { inject } from '../context/injection.ts'
import { asksAboutImage, hasOldImages, withoutOldImages } from '../context/old-images.ts'
import { fit } from '../context/window.ts'
import { PromptBuilt } from '../contract.ts'
import { repair } from '../safety/history-repair.ts'
import type { BudgetGate } from './budget-gate.ts'
import type { LiveTurn, TurnOptions } from './live-turn.ts'
import { chooseModel, listModelChoices } from './model-choice.ts'
import type { TurnProgress } from './progress.ts'
import type { TurnRecord } from './record.ts'
import { instruction } from './response-format.ts'

export interface ModelCallerDeps {
  readonly inference: Inference
  readonly hooks: Hooks
  readonly sessions: Sessions
  readonly compactor: Compactor
  readonly catalog: () => Catalog | undefined
  /** Models that refused images of earlier messages, as `provider/model`. */
  readonly modelsWithoutVision: Set<string>
  readonly budgetGate: BudgetGate
  readonly record: TurnRecord
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly log: Pick<Logger, 'warn'>
  readonly historyMessages: number
  /** Time the models of one turn may take together. */
  readonly turnMs: number
}
/** Part of the window that is used after the provider said that it is full. */
const SHARE_AFTER_OVERFLOW = 0.6
/** Failures that another model may not have. */
const OTHER_MODEL_MAY_HELP: ReadonlySet<string> = new Set(['auth', 'not_found', 'rate_limit'])
const TRACE_CHARS = 200

/** Whether a turn asks its model to think; `undefined` leaves that to the model. */
function wantsThinking(options: TurnOptions, { manifest }: Agent): boolean | undefined {
  return options.thinking ?? (manifest.thinking === undefined ? undefined : manifest.thinking['enabled'] !== false)
}
/** Whether the model's reasoning is kept and streamed. When off, it is not shown, even if the model reasons anyway. */
export function reasoningPolicy(
  options: TurnOptions,
  agent: Agent,
): { readonly kept: boolean; readonly streamed: boolean } {
  const kept = wantsThinking(options, agent) !== false
  const streamed = kept && (options.thinking === true || agent.manifest.thinking?.['stream_thinking'] !== false)
  return { kept, streamed }
}

/** One call of one model, as far as it came. */
interface Attempt {
  readonly model: ResolvedModel
  readonly request: CompletionRequest
  readonly startedAt: string
  readonly start: number
  /** When its first event came, in milliseconds after the start. */
  firstMs: number | undefined
  output: string
  /** The caller was given text or a tool call, so that no other model can start over. */
  answered: boolean
}

/**
 * Calls the models of one turn: builds each request, keeps it within the window, falls back, and traces the outcome.
 */
export class ModelCaller {
  readonly #deps: ModelCallerDeps
  readonly #live: LiveTurn
  readonly #agent: Agent
  readonly #progress: TurnProgress
  readonly #tools: readonly ToolDescription[]
  /** Index of the model in the list of choices. */
  #choice: number
  #compacted = false
  constructor(
    deps: ModelCallerDeps,
    turn: { live: LiveTurn; agent: Agent; progress: TurnProgress; tools: readonly ToolDescription[]; choice: number },
  ) {
    this.#deps = deps
    this.#live = turn.live
    this.#agent = turn.agent
    this.#progress = turn.progress
    this.#tools = turn.tools
    this.#choice = turn.choice
  }

  /** Settles when a model has ended its answer. Falls back while nothing was said; throws what the last model threw. */
  async complete(turns: readonly Turn[], signal: AbortSignal, onEvent: (event: InferenceEvent) => void): Promise<void> {
    this.#progress.iterations++
    for (;;) {
      const attempt = await this.#prepare(turns)
      try {
        return await this.#stream(attempt, signal, onEvent)
      } catch (error) {
        this.#trace(attempt, error instanceof Error ? error.message : String(error))
        signal.throwIfAborted()
        if (attempt.answered || !isProviderFailure(error)) throw error
        await this.#settle(attempt)
        if (this.#deps.turnMs <= this.#progress.modelMs) throw turnTimeout(attempt.model, this.#deps.turnMs, error)
        if (!(await this.#recover(error, attempt, turns, signal))) throw error
      }
    }
  }

  /** Prepares another attempt after a failure. `false` when nothing is left to try. */
  async #recover(
    error: UpstreamFailure | Refusal,
    { model, request }: Attempt,
    turns: readonly Turn[],
    signal: AbortSignal,
  ): Promise<boolean> {
    if (!(error instanceof UpstreamFailure)) return this.#fallBack(error)
    if (error.reason === 'context_length') return this.#makeRoom(turns, model, signal)
    // A model without vision refuses every later turn of a session that holds an image.
    if (error.reason === 'invalid_request' && hasOldImages(request.turns) && !asksAboutImage(request.turns)) {
      this.#deps.modelsWithoutVision.add(nameOf(model))
      return true
    }
    return this.#fallBack(error)
  }

  async #cannotSee(model: ResolvedModel): Promise<boolean> {
    if (this.#deps.modelsWithoutVision.has(nameOf(model))) return true
    const catalog = this.#deps.catalog()
    await catalog?.ready()
    return catalog?.find(model.provider, model.model)?.supports.vision === false
  }

  /** Builds the request and passes the budgets. */
  async #prepare(turns: readonly Turn[]): Promise<Attempt> {
    const progress = this.#progress
    const { model } = progress
    if (!model) throw new Error('a turn calls a model before one is chosen')
    const request = (progress.request = await this.#buildRequest(turns, model))
    const attempt: Attempt = {
      model,
      request,
      startedAt: new Date().toISOString(),
      start: performance.now(),
      firstMs: undefined,
      output: '',
      answered: false,
    }
    progress.written = 0
    if (this.#deps.budgetGate.isRequired(this.#agent)) {
      const { id: turnId, sessionId } = this.#live
      progress.reservation = await this.#deps.budgetGate.reserve({
        agent: this.#agent,
        turnId,
        sessionId,
        model,
        request,
      })
    }
    return attempt
  }

  async #stream(attempt: Attempt, signal: AbortSignal, onEvent: (event: InferenceEvent) => void): Promise<void> {
    const { model, request, start } = attempt
    const { inference, turnMs } = this.#deps
    const progress = this.#progress
    const restMs = turnMs - progress.modelMs
    this.#live.enter({ phase: 'waiting_for_model', detail: `${model.provider}/${model.model}`, attempt: 1 })
    if (restMs <= 0) throw turnTimeout(model, turnMs)
    for await (const event of inference.complete(model, request, signal, restMs)) {
      if (event.type !== 'phase') attempt.firstMs ??= performance.now() - start
      if (event.type === 'text' || event.type === 'thinking') progress.written += event.delta.length
      if (event.type === 'text' && attempt.output.length < TRACE_CHARS) attempt.output += event.delta
      attempt.answered ||= event.type === 'text' || event.type === 'call'
      if (event.type !== 'end') onEvent(event)
      else {
        this.#trace(attempt, undefined, event.usage)
        const { replay } = event
        onEvent(replay === undefined ? event : { ...event, replay: tagReplay(model, replay) })
      }
    }
  }

  /** After a call that failed before it said anything: counts its reasoning and releases its reservation. */
  async #settle({ model, request }: Attempt): Promise<void> {
    const progress = this.#progress
    const usage = progress.written > 0 ? estimateUsage(request, progress.written) : undefined
    progress.written = 0
    if (usage) progress.addUsage(usage)
    const statements = [
      ...(usage ? this.#deps.record.usage(this.#live, model, usage) : []),
      ...progress.releaseReservation(),
    ]
    if (statements.length > 0) await this.#deps.db.batch(statements)
  }

  async #buildRequest(turns: readonly Turn[], model: ResolvedModel): Promise<CompletionRequest> {
    const { manifest } = this.#agent
    const { options, format } = this.#live
    const { compactedTurns, windowShare } = this.#progress
    const { extra_params: extra, system_prompt: rules } = manifest.model
    const all = compactedTurns ? [...compactedTurns.turns, ...turns.slice(compactedTurns.count)] : turns
    const injected = inject(rules, repair(all).turns, manifest.context_injection)
    const hidden = hasOldImages(injected.turns) && (await this.#cannotSee(model))
    const shown = hidden ? withoutOldImages(injected.turns) : injected.turns
    const instructions = options.instructions === undefined ? '' : `\n\n${options.instructions}`
    const request = await this.#deps.hooks.apply(PromptBuilt, {
      model: model.model,
      system: injected.system + instructions + (format ? instruction(format) : ''),
      turns: untagReplay(model, shown),
      tools: this.#tools,
      maxTokens: options.maxTokens ?? manifest.model.max_output_tokens ?? manifest.model.max_tokens,
      temperature: options.temperature ?? manifest.model.temperature,
      ...omitUndefined({
        thinking: wantsThinking(options, this.#agent),
        responseFormat: format,
        extra: Object.keys(extra).length > 0 ? extra : undefined,
      }),
    })
    return fit(request, Math.floor(model.contextWindow * windowShare))
  }

  /** Handles a full window: once in a turn it summarises the older messages and cuts the rest shorter. */
  async #makeRoom(turns: readonly Turn[], model: ResolvedModel, signal: AbortSignal): Promise<boolean> {
    if (this.#compacted) return false
    this.#compacted = true
    const { compactor, sessions, log, historyMessages } = this.#deps
    const { id, sessionId } = this.#live
    const progress = this.#progress
    try {
      await compactor.compact({
        agent: this.#agent,
        sessionId,
        model,
        before: id,
        signal,
        reason: 'overflow',
        turn: progress,
      })
      const tail = await sessions.tail(sessionId, id, historyMessages)
      progress.compactedTurns = { turns: toTurns(tail, id), count: turns.length }
    } catch (error) {
      signal.throwIfAborted()
      log.warn(`session ${sessionId} could not be compacted: ${error instanceof Error ? error.message : String(error)}`)
    }
    // Even without a summary a closer fit may be enough: that is the one retry.
    progress.windowShare = SHARE_AFTER_OVERFLOW
    return true
  }

  /** Goes on with the next model of the list. `false` when there is none to try. */
  async #fallBack(failure: UpstreamFailure | Refusal): Promise<boolean> {
    const { inference, log } = this.#deps
    if (failure instanceof UpstreamFailure && failure.retry !== 'later' && !OTHER_MODEL_MAY_HELP.has(failure.reason))
      return false
    if (this.#choice >= listModelChoices(inference, this.#agent).length - 1) return false
    try {
      const { model, index } = await chooseModel(inference, this.#agent, this.#choice + 1)
      const name = `${model.provider}/${model.model}`
      log.warn(`turn ${this.#live.id} goes on with ${name}: ${failure.message}`)
      this.#live.enter({ phase: 'switching_model', detail: `${name} answers instead: ${failure.message}` })
      this.#choice = index
      this.#progress.model = model
      return true
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      // No other model can be used now, so the failure of this one is reported.
      return false
    }
  }

  #trace(
    attempt: Attempt,
    error: string | undefined,
    usage?: { readonly input: number; readonly output: number },
  ): void {
    const { model, startedAt, start, firstMs, output } = attempt
    const durationMs = performance.now() - start
    this.#progress.modelMs += durationMs
    this.#progress.addTrace({
      kind: 'model',
      name: `${model.provider}/${model.model}`,
      startedAt,
      durationMs,
      firstMs,
      failed: error !== undefined,
      tokens: usage && { input: usage.input, output: usage.output },
      input: '',
      output: error ?? output,
    })
  }
}

function nameOf({ provider, model }: ResolvedModel): string {
  return `${provider}/${model}`
}

/** The model failed, or it cannot be called any more: its key or its driver went away since it was chosen. */
function isProviderFailure(error: unknown): error is UpstreamFailure | Refusal {
  return error instanceof UpstreamFailure || (error instanceof Refusal && error.code === 'service_unavailable')
}

function turnTimeout({ provider }: ResolvedModel, turnMs: number, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure(
    provider,
    `${provider} did not finish this turn in time: its models may take ${turnMs / 1000} s together`,
    { reason: 'timeout', retry: 'later', cause },
  )
}
