import type { Logger } from 'svc/sdk'
import { estimateUsage } from 'svc/providers'
import type { CompletionRequest, Turn } from 'svc/providers'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Hooks, PluginDatabase, ToolDescription } from 'svc/sdk'
import type { Agent, Manifest } from '../../agents/contract.ts'
import type { Inference, InferenceEvent, ResolvedModel } from '../../providers/contract.ts'
import type { Sessions } from '../../sessions/contract.ts'
import type { Compactor } from '../context/compactor.ts'
import { PromptBuilt } from '../contract.ts'
import { instruction } from './response-format.ts'
import { toTurns } from '../context/history.ts'
import { inject } from '../context/injection.ts'
import type { LiveTurn, TurnOptions } from './live-turn.ts'
import type { Progress } from './progress.ts'
import type { TurnRecord } from './record.ts'
import { repair } from '../safety/history-repair.ts'
import { untagReplay, tagReplay } from '../context/provider-replay.ts'
import type { BudgetGate } from './budget-gate.ts'
import { fit } from '../context/window.ts'

export interface ModelCallerDeps {
  readonly inference: Inference
  readonly hooks: Hooks
  readonly sessions: Sessions
  readonly compactor: Compactor
  readonly budgetGate: BudgetGate
  readonly record: TurnRecord
  readonly db: Pick<PluginDatabase, 'batch'>
  readonly log: Pick<Logger, 'warn'>
  readonly historyMessages: number
  /** What the models of one turn may take together. */
  readonly turnMs: number
}
/** After the provider said that the window is full, this much of what it was thought to be is used. */
const SHRUNK = 0.6
/** A failure that another model may not have. */
const elsewhere = new Set(['auth', 'not_found', 'rate_limit'])
export const TEXT_ONLY =
  'response_format: the built-in offline model writes text only; configure a provider to ask for a form'
type Choice = Manifest['fallback_models'][number]
/** It failed, or it cannot be called any more: its key or its driver went away since it was chosen. */
const isOfProvider = (error: unknown): error is UpstreamFailure | Refusal =>
  error instanceof UpstreamFailure || (error instanceof Refusal && error.code === 'service_unavailable')

/** What an agent may be answered by: the model it names, its fallbacks, then those of the daemon, each once. */
function listModelChoices(inference: Inference, { manifest }: Agent): readonly Choice[] {
  const general = inference.fallbacks()
  if (general.length === 0) return [manifest.model, ...manifest.fallback_models]
  const own: readonly Choice[] = [manifest.model, ...manifest.fallback_models]
  return [
    ...own,
    ...general.filter((one) => !own.some(({ provider, model }) => provider === one.provider && model === one.model)),
  ]
}

/** Whether a turn asks its model to think; `undefined` leaves that to the model. */
function wantsThinking(options: TurnOptions, { manifest }: Agent): boolean | undefined {
  return options.thinking ?? (manifest.thinking === undefined ? undefined : manifest.thinking['enabled'] !== false)
}
/** What becomes of what the model thinks. Switched off it is not shown, also of a model that thinks all the same. */
export function showsReasoning(
  options: TurnOptions,
  agent: Agent,
): { readonly kept: boolean; readonly streamed: boolean } {
  const kept = wantsThinking(options, agent) !== false
  return {
    kept,
    streamed: kept && (options.thinking === true || agent.manifest.thinking?.['stream_thinking'] !== false),
  }
}

/** The model of an agent as it can be called now: the one it names, else its fallbacks in their order. `from` skips the first ones. */
export async function chooseModel(
  inference: Inference,
  agent: Agent,
  from = 0,
): Promise<{ readonly model: ResolvedModel; readonly index: number }> {
  const choices = listModelChoices(inference, agent)
  const { manifest } = agent
  let refused: unknown
  for (const [index, choice] of choices.entries()) {
    if (index < from) continue
    try {
      const model = await inference.resolve({
        provider: choice.provider,
        model: choice.model,
        ...(choice.base_url === undefined ? {} : { baseUrl: choice.base_url }),
        ...(choice.api_key_env === undefined ? {} : { apiKeyEnv: choice.api_key_env }),
      })
      const contextWindow = index === 0 ? (manifest.model.context_window ?? model.contextWindow) : model.contextWindow
      return { model: contextWindow === model.contextWindow ? model : { ...model, contextWindow }, index }
    } catch (error) {
      // The first one is what the operator has to look at.
      refused ??= error
    }
  }
  throw refused ?? new Refusal('service_unavailable', 'no further model to fall back to')
}

/** Calls the models of one turn: builds each request, keeps it within the window, falls back, and notes how it went. */
export class ModelCaller {
  readonly #deps: ModelCallerDeps
  readonly #live: LiveTurn
  readonly #agent: Agent
  readonly #progress: Progress
  readonly #offered: readonly ToolDescription[]
  #choice: number
  #compacted = false
  constructor(
    deps: ModelCallerDeps,
    facts: { live: LiveTurn; agent: Agent; progress: Progress; offered: readonly ToolDescription[]; choice: number },
  ) {
    this.#deps = deps
    this.#live = facts.live
    this.#agent = facts.agent
    this.#progress = facts.progress
    this.#offered = facts.offered
    this.#choice = facts.choice
  }

  async *complete(turns: readonly Turn[], signal: AbortSignal): AsyncGenerator<InferenceEvent> {
    const progress = this.#progress
    progress.iterations++
    for (;;) {
      const request = (progress.request = await this.#request(turns))
      const model = progress.model
      if (!model) throw new Error('a turn asks a model before one is chosen')
      const tried = {
        at: new Date().toISOString(),
        from: performance.now(),
        first: undefined as number | undefined,
        chars: '',
      }
      let told = false
      progress.written = 0
      if (this.#deps.budgetGate.due(this.#agent)) {
        progress.held = await this.#deps.budgetGate.pass({
          agent: this.#agent,
          turnId: this.#live.id,
          sessionId: this.#live.sessionId,
          model,
          request,
        })
      }
      const restMs = this.#deps.turnMs - progress.modelMs
      try {
        this.#live.enter({ phase: 'waiting_for_model', detail: `${model.provider}/${model.model}`, attempt: 1 })
        if (restMs <= 0) throw turnTimeout(model, this.#deps.turnMs)
        for await (const event of this.#deps.inference.complete(model, request, signal, restMs)) {
          if (event.type === 'phase') {
            yield event
            continue
          }
          tried.first ??= performance.now() - tried.from
          if (event.type === 'text' && tried.chars.length < 200) tried.chars += event.delta
          if (event.type === 'text' || event.type === 'thinking') progress.written += event.delta.length
          if (event.type === 'end') this.#trace(tried, false, tried.chars, event.usage)
          told ||= event.type === 'text' || event.type === 'call'
          yield event.type === 'end' && event.replay !== undefined
            ? { ...event, replay: tagReplay(model, event.replay) }
            : event
        }
        return
      } catch (error) {
        this.#trace(tried, true, error instanceof Error ? error.message : String(error))
        signal.throwIfAborted()
        if (told || !isOfProvider(error)) throw error
        await this.#settle(model, request)
        if (this.#deps.turnMs <= progress.modelMs) throw turnTimeout(model, this.#deps.turnMs, error)
        if (
          error instanceof UpstreamFailure && error.reason === 'context_length'
            ? !(await this.#makeRoom(turns, model, signal))
            : !(await this.#fallBack(error))
        )
          throw error
      }
    }
  }

  /** A call that failed before it said anything: what it thought is counted, and what was set aside for it is given back. */
  async #settle(model: ResolvedModel, request: CompletionRequest): Promise<void> {
    const progress = this.#progress
    const thought = progress.written > 0 ? estimateUsage(request, progress.written) : undefined
    progress.written = 0
    if (thought) progress.spend(thought)
    const statements = [...(thought ? this.#deps.record.spent(this.#live, model, thought) : []), ...progress.giveBack()]
    if (statements.length > 0) await this.#deps.db.batch(statements)
  }

  async #request(turns: readonly Turn[]): Promise<CompletionRequest> {
    const { manifest } = this.#agent
    const { options } = this.#live
    const { model, replaced, shrink } = this.#progress
    if (!model) throw new Error('a turn asks a model before one is chosen')
    const thinking = wantsThinking(options, this.#agent)
    const format = this.#live.format
    const { extra_params: extra } = manifest.model
    const all = replaced ? [...replaced.turns, ...turns.slice(replaced.count)] : turns
    const { system, turns: told } = inject(manifest.model.system_prompt, repair(all).turns, manifest.context_injection)
    const built = await this.#deps.hooks.apply(PromptBuilt, {
      model: model.model,
      system:
        system +
        (options.instructions === undefined ? '' : `\n\n${options.instructions}`) +
        (format ? instruction(format) : ''),
      turns: untagReplay(model, told),
      tools: this.#offered,
      maxTokens: options.maxTokens ?? manifest.model.max_output_tokens ?? manifest.model.max_tokens,
      temperature: options.temperature ?? manifest.model.temperature,
      ...(thinking === undefined ? {} : { thinking }),
      ...(format ? { responseFormat: format } : {}),
      ...(Object.keys(extra).length > 0 ? { extra } : {}),
    })
    return fit(built, Math.floor(model.contextWindow * shrink))
  }

  /** The provider says that its window is full: once in a turn the older messages are summarised and what is left is cut closer. */
  async #makeRoom(turns: readonly Turn[], model: ResolvedModel, signal: AbortSignal): Promise<boolean> {
    if (this.#compacted) return false
    this.#compacted = true
    const { compactor, sessions, log, historyMessages } = this.#deps
    const { id, sessionId } = this.#live
    try {
      await compactor.compact({
        agent: this.#agent,
        sessionId,
        model,
        before: id,
        signal,
        because: 'overflow',
        payer: this.#progress,
      })
      this.#progress.replaced = {
        turns: toTurns(await sessions.tail(sessionId, id, historyMessages), id),
        count: turns.length,
      }
    } catch (error) {
      signal.throwIfAborted()
      log.warn(`session ${sessionId} could not be compacted: ${error instanceof Error ? error.message : String(error)}`)
    }
    // Even without a summary a closer fit may be enough: that is the one retry.
    this.#progress.shrink = SHRUNK
    return true
  }

  async #fallBack(failure: UpstreamFailure | Refusal): Promise<boolean> {
    if (failure instanceof UpstreamFailure && failure.retry !== 'later' && !elsewhere.has(failure.reason)) return false
    if (this.#choice >= listModelChoices(this.#deps.inference, this.#agent).length - 1) return false
    try {
      const { model, index } = await chooseModel(this.#deps.inference, this.#agent, this.#choice + 1)
      this.#deps.log.warn(`turn ${this.#live.id} goes on with ${model.provider}/${model.model}: ${failure.message}`)
      this.#live.enter({
        phase: 'switching_model',
        detail: `${model.provider}/${model.model} answers instead: ${failure.message}`,
      })
      this.#choice = index
      this.#progress.model = model
      return true
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      // No other model can be used now, so what is told is why this one failed.
      return false
    }
  }

  #trace(
    tried: { readonly at: string; readonly from: number; readonly first: number | undefined },
    failed: boolean,
    output: string,
    usage?: { readonly input: number; readonly output: number },
  ): void {
    const { model } = this.#progress
    this.#progress.modelMs += performance.now() - tried.from
    this.#progress.trace({
      kind: 'model',
      name: model ? `${model.provider}/${model.model}` : '',
      startedAt: tried.at,
      durationMs: performance.now() - tried.from,
      firstMs: tried.first,
      failed,
      tokens: usage && { input: usage.input, output: usage.output },
      input: '',
      output,
    })
  }
}

function turnTimeout({ provider }: ResolvedModel, turnMs: number, cause?: unknown): UpstreamFailure {
  return new UpstreamFailure(
    provider,
    `${provider} did not finish this turn in time: its models may take ${turnMs / 1000} s together`,
    { reason: 'timeout', retry: 'later', cause },
  )
}
