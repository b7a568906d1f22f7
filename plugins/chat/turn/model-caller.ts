import { messageOf } from 'svc/internal'
import { estimateUsage } from 'svc/providers'
import type { CompletionRequest, Turn } from 'svc/providers'
import { Refusal, UpstreamFailure } from 'svc/sdk'
import type { Hooks, Logger, Statement } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'
import type { Budgets } from '../../budgets/contract.ts'
import type { Inference, InferenceEvent, ResolvedModel } from '../../providers/contract.ts'
import { tagReplay } from '../context/history.ts'
import type { TurnHistory } from '../context/history.ts'
import { asksAboutImage, buildRequest, hasOldImages } from '../context/request.ts'
import type { RequestContext, RequestDeps } from '../context/request.ts'
import { measure } from '../context/window.ts'
import { ModelCallStarting } from '../contract.ts'
import { chooseModel, listModelChoices } from './model-choice.ts'
import type { TurnRecord } from './record.ts'

export interface ModelCallerDeps extends RequestDeps {
  readonly inference: Inference
  readonly history: TurnHistory
  readonly budgetGate: BudgetGate
  readonly record: TurnRecord
  readonly log: Pick<Logger, 'warn'>
  /** Time the models of one turn may take together. */
  readonly turnMs: number
}
/** The turn that calls, and the place of its model among the choices of its agent. */
interface CallingTurn extends RequestContext {
  readonly choice: number
}
/** Part of the window that is used after the provider said that it is full. */
const SHARE_AFTER_OVERFLOW = 0.6
/** Failures that another model may not have. */
const OTHER_MODEL_MAY_HELP: ReadonlySet<string> = new Set(['auth', 'not_found', 'rate_limit'])
const TRACE_CHARS = 200

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
  readonly #turn: CallingTurn
  /** Index of the model in the list of choices. */
  #choice: number
  #compacted = false
  constructor(deps: ModelCallerDeps, turn: CallingTurn) {
    this.#deps = deps
    this.#turn = turn
    this.#choice = turn.choice
  }

  /** Settles when a model has ended its answer. Falls back while nothing was said; throws what the last model threw. */
  async complete(turns: readonly Turn[], signal: AbortSignal, onEvent: (event: InferenceEvent) => void): Promise<void> {
    this.#turn.progress.iterations++
    for (;;) {
      const attempt = await this.#prepare(turns)
      try {
        return await this.#stream(attempt, signal, onEvent)
      } catch (error) {
        this.#trace(attempt, messageOf(error))
        signal.throwIfAborted()
        if (attempt.answered || !isProviderFailure(error)) throw error
        await this.#settle(attempt)
        if (this.#deps.turnMs <= this.#turn.progress.modelMs) throw turnTimeout(attempt.model, this.#deps.turnMs, error)
        if (!(await this.#recover(error, attempt, turns))) throw error
      }
    }
  }

  /** Prepares another attempt after a failure. `false` when nothing is left to try. */
  async #recover(
    error: UpstreamFailure | Refusal,
    { model, request }: Attempt,
    turns: readonly Turn[],
  ): Promise<boolean> {
    if (!(error instanceof UpstreamFailure)) return this.#fallBack(error)
    if (error.reason === 'context_length') return this.#makeRoom(turns, model)
    // A model without vision refuses every later turn of a session that holds an image.
    if (error.reason === 'invalid_request' && hasOldImages(request.turns) && !asksAboutImage(request.turns)) {
      this.#deps.modelsWithoutVision.add(nameOf(model))
      return true
    }
    return this.#fallBack(error)
  }

  /** Builds the request and passes the budgets. */
  async #prepare(turns: readonly Turn[]): Promise<Attempt> {
    const { progress } = this.#turn
    const { model } = progress
    if (!model) throw new Error('a turn calls a model before one is chosen')
    const request = (progress.request = await buildRequest(this.#deps, this.#turn, turns, model))
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
    if (this.#deps.budgetGate.isRequired(this.#turn.agent)) {
      const { id: turnId, sessionId } = this.#turn.live
      progress.reservation = await this.#deps.budgetGate.reserve({
        agent: this.#turn.agent,
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
    const { progress } = this.#turn
    const restMs = turnMs - progress.modelMs
    this.#turn.live.enter({ phase: 'waiting_for_model', detail: `${model.provider}/${model.model}`, attempt: 1 })
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
    const { progress } = this.#turn
    const usage = progress.written > 0 ? estimateUsage(request, progress.written) : undefined
    progress.written = 0
    if (usage) progress.addUsage(usage)
    progress.unpaid = [
      ...(usage ? this.#deps.record.usage(this.#turn.live, model, usage) : []),
      ...progress.releaseReservation(),
    ]
    if (progress.unpaid.length > 0) await this.#deps.record.commit(this.#turn.live, progress.unpaid)
    progress.unpaid = []
  }

  /** Handles a full window: once in a turn it summarises the older messages and cuts the rest shorter. */
  async #makeRoom(turns: readonly Turn[], model: ResolvedModel): Promise<boolean> {
    if (this.#compacted) return false
    this.#compacted = true
    const { progress } = this.#turn
    const compacted = await this.#deps.history.afterOverflow({ ...this.#turn, model })
    if (compacted) progress.compactedTurns = { turns: compacted, count: turns.length }
    // Even without a summary a closer fit may be enough: that is the one retry.
    progress.windowShare = SHARE_AFTER_OVERFLOW
    return true
  }

  /** Goes on with the next model of the list. `false` when there is none to try. */
  async #fallBack(failure: UpstreamFailure | Refusal): Promise<boolean> {
    const { inference, log } = this.#deps
    if (failure instanceof UpstreamFailure && failure.retry !== 'later' && !OTHER_MODEL_MAY_HELP.has(failure.reason))
      return false
    if (this.#choice >= listModelChoices(inference, this.#turn.agent).length - 1) return false
    try {
      const { model, index } = await chooseModel(inference, this.#turn.agent, this.#choice + 1)
      const name = `${model.provider}/${model.model}`
      log.warn(`turn ${this.#turn.live.id} continues with ${name}: ${failure.message}`)
      this.#turn.live.enter({ phase: 'switching_model', detail: `${name} answers instead: ${failure.message}` })
      this.#choice = index
      this.#turn.progress.model = model
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
    this.#turn.progress.modelMs += durationMs
    this.#turn.progress.addTrace({
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

/** Token counts are estimates, and a reservation must rather be too high. */
const MARGIN = 1.1
/** Length of an answer when the request does not limit it. */
const ANSWER_TOKENS = 4096
/** Statements that release a reservation. */
export type ReleaseReservation = () => readonly Statement[]
export interface BudgetRequest {
  readonly agent: Agent
  readonly turnId: string
  readonly sessionId: string
  readonly model: ResolvedModel
  readonly request: CompletionRequest
}

/** Reserves the budget for each call of a model. */
export class BudgetGate {
  readonly #hooks: Hooks
  readonly #budgets: () => Budgets | undefined
  constructor(hooks: Hooks, budgets: () => Budgets | undefined) {
    this.#hooks = hooks
    this.#budgets = budgets
  }

  /** Most agents have no limit and skip the gate. While the budgets are being loaded the gate waits for them. */
  isRequired(agent: Agent): boolean {
    return this.#budgets()?.limits(agent) ?? true
  }

  /** Throws the refusal. */
  async reserve({ request, ...call }: BudgetRequest): Promise<ReleaseReservation | undefined> {
    const releases: ReleaseReservation[] = []
    const { used } = measure(request, request.system, call.model.contextWindow)
    await this.#hooks.check(ModelCallStarting, {
      ...call,
      maxTokens: { input: Math.ceil(used * MARGIN), output: request.maxTokens ?? ANSWER_TOKENS },
      onRelease: (release) => {
        releases.push(release)
      },
    })
    return releases.length === 0 ? undefined : () => releases.flatMap((release) => release())
  }
}
