import { currentActor, messageOf, runAs, ServerAway } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { readJson } from 'svc/sdk'
import type { Hooks, Logger, Statement } from 'svc/sdk'
import type { Agent, Agents } from '../../agents/contract.ts'
import { OutcomeUnknown, WorkflowStepEnded } from '../contract.ts'
import type { StepCall, StepResult, StepType } from '../contract.ts'
import type { Step } from '../definition.ts'
import { renderTemplate, renderValue } from '../templates/template.ts'
import type { StepTypes } from '../steps/registry.ts'
import { newAttempt } from './attempt.ts'
import type { Member } from './attempt.ts'
import { labelsOf } from './labels.ts'
import type { Position, StepEnd } from './position.ts'
import type { ActiveRun } from './run.ts'
import type { AttemptRow } from './schema.ts'
import type { RunStore } from './store.ts'
import { StepTimeout } from './timeout.ts'

export interface StepRunnerDeps {
  readonly store: RunStore
  readonly agents: Pick<Agents, 'find' | 'findByName'>
  readonly stepTypes: Pick<StepTypes, 'find' | 'leaving' | 'explainMissing'>
  /** Settles when no plugin is being loaded: a step type may be gone for a moment only. */
  readonly pluginsLoaded: (signal: AbortSignal) => Promise<void>
  /** Aborts when this plugin is unloaded, and with it what steps do. */
  readonly unloaded: AbortSignal
  readonly hooks: Pick<Hooks, 'emit'>
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  readonly limits: { readonly outputChars: number; readonly renderedChars: number }
  /** Commits a change of the run with the statements; fails when somebody else has the run. */
  readonly save: (statements: readonly Statement[], change: Parameters<ActiveRun['change']>[0]) => Promise<void>
}
export type MemberEnd =
  | StepEnd
  | { readonly outcome: 'failed'; readonly error: string }
  | { readonly outcome: 'waiting'; readonly afterMs: number }
/** Has the end written, with the position of the run if that follows. */
type RecordEnd = (end: StepEnd, write: (position?: Position) => Promise<void>) => Promise<void>
type CallEnd =
  | StepResult
  /** Its plugin is being replaced: the same attempt is made again. */
  | { readonly outcome: 'cut off' }
  | { readonly outcome: 'failed'; readonly error: string; readonly mayRetry: boolean }

/** A wake can be lost with the process that should have given it. */
const RECHECK_MS = 60_000
/** A plugin is replaced in less, usually. */
const REPLACED_MS = 250
/** A timer can do no longer ones. */
const MAX_TIMER_MS = 2_000_000_000

/** Runs one step until it ends or waits. Every attempt is a row before it does anything. */
export class StepRunner {
  readonly #deps: StepRunnerDeps
  constructor(deps: StepRunnerDeps) {
    this.#deps = deps
  }

  /** Rejects when the signal aborts; the attempt goes on with the next worker then. */
  async run(run: ActiveRun, member: Member, signal: AbortSignal, recordEnd: RecordEnd): Promise<MemberEnd> {
    for (;;) {
      const known = run.attemptOf(member.index, member.iteration)
      const waitMs = known ? this.#waitMs(known) : 0
      if (waitMs > 0) return { outcome: 'waiting', afterMs: waitMs }
      const attempt = await this.#begin(run, member, known)
      const result = await this.#call(run, member, attempt, known?.state === 'running', signal)
      if (result.outcome === 'cut off') return { outcome: 'waiting', afterMs: REPLACED_MS }
      if (result.outcome === 'waiting') return this.#wait(run, attempt, result)
      if (result.outcome === 'done') return this.#complete(run, member, attempt, result, recordEnd)
      const end = await this.#fail(run, member, attempt, result, recordEnd)
      if (end) return end
    }
  }

  #waitMs({ state, woken, wake_at: wakeAt }: AttemptRow): number {
    if (state !== 'waiting' || woken === 1) return 0
    return Math.max((wakeAt ?? 0) - this.#deps.clock.now(), 0)
  }

  /** The attempt as a row that says it runs: whoever finds it so after a crash knows that it may have acted. */
  async #begin(run: ActiveRun, member: Member, known: AttemptRow | undefined): Promise<AttemptRow> {
    const { store, clock } = this.#deps
    if (known?.state === 'running') return known
    const attempt: AttemptRow = known
      ? { ...known, state: 'running', woken: 0, wake_at: null, waits_for: null }
      : newAttempt(run.id, member, 1, clock.now())
    const woken = known?.woken === 1 ? [store.clearWoken(attempt.key)] : []
    await this.#deps.save([store.saveAttempt(attempt), ...woken], {})
    run.keep(attempt)
    return attempt
  }
  async #call(
    run: ActiveRun,
    member: Member,
    attempt: AttemptRow,
    wasCutOff: boolean,
    signal: AbortSignal,
  ): Promise<CallEnd> {
    const { clock, log } = this.#deps
    const { step } = member
    let leaving: AbortSignal | undefined
    const limitMs = Math.min(step.timeoutSecs * 1000, run.leftMs, MAX_TIMER_MS)
    const stop = new AbortController()
    const cancel = clock.after(Math.max(limitMs, 0), () => stop.abort(new StepTimeout(step.timeoutSecs)))
    try {
      const type = await this.#typeOf(step, signal)
      leaving = this.#deps.stepTypes.leaving(step.type)
      const signals = [signal, stop.signal, ...(leaving ? [leaving] : [])]
      const call = await this.#prepare(run, member, attempt, wasCutOff, AbortSignal.any(signals))
      // What a step causes is known to come from its run: chains of triggers are counted by it.
      const origin = currentActor()?.origin ?? run.row.parent_run_id ?? run.id
      const actor = { kind: 'workflow', id: run.id, origin }
      return await unlessAborted(
        runAs(actor, () => type.run(call)),
        call.signal,
      )
    } catch (error) {
      if (signal.aborted) throw signal.reason
      const isReplaced = leaving?.aborted === true && error === leaving.reason
      if (isReplaced || this.#deps.unloaded.aborted || error instanceof ServerAway) return { outcome: 'cut off' }
      const text = messageOf(error)
      log.warn(`step "${attempt.step}" of run ${run.id} failed (attempt ${attempt.attempt}): ${text}`)
      return {
        outcome: 'failed',
        error: text,
        mayRetry: !(error instanceof Error && error.name === OutcomeUnknown.name),
      }
    } finally {
      cancel()
    }
  }
  async #typeOf({ type: name }: Step, signal: AbortSignal): Promise<StepType> {
    const { stepTypes, pluginsLoaded } = this.#deps
    const known = stepTypes.find(name)
    if (known) return known
    await pluginsLoaded(signal)
    const type = stepTypes.find(name)
    if (!type) throw new Error(stepTypes.explainMissing(name))
    return type
  }
  async #prepare(
    run: ActiveRun,
    { step, iteration, input, index }: Member,
    attempt: AttemptRow,
    wasCutOff: boolean,
    signal: AbortSignal,
  ): Promise<StepCall> {
    const { renderedChars } = this.#deps.limits
    const scope = run.scope(iteration, input)
    const prompt = renderTemplate(step.prompt, scope, renderedChars)
    const given = renderValue(step.with, scope, renderedChars) as Readonly<Record<string, unknown>>
    const agent = await this.#findAgent(step)
    run.keep(Object.assign(attempt, { prompt, agent_id: agent?.id ?? null, agent_name: agent?.name ?? null }))
    return {
      runId: run.id,
      workflowName: run.row.workflow_name,
      step: attempt.step,
      key: attempt.key,
      attempt: attempt.attempt,
      with: { prompt, ...given },
      input,
      variables: run.variables,
      agentId: agent?.id,
      asker: askerOf(run),
      labels: labelsOf(run, step, index),
      hops: run.row.hops,
      wasCutOff,
      state: attempt.wait_state === null ? undefined : readJson(attempt.wait_state),
      signal,
    }
  }
  async #findAgent({ agent }: Step): Promise<Agent | undefined> {
    if (!agent) return undefined
    const { agents } = this.#deps
    const found = 'id' in agent ? await agents.find(agent.id) : await agents.findByName(agent.name)
    if (!found) throw new Error(`there is no agent "${'id' in agent ? agent.id : agent.name}"`)
    return found
  }

  async #wait(
    run: ActiveRun,
    attempt: AttemptRow,
    result: Extract<StepResult, { readonly outcome: 'waiting' }>,
  ): Promise<MemberEnd> {
    const { store, clock } = this.#deps
    const wakeAt = result.untilMs ?? clock.now() + RECHECK_MS
    const waiting: AttemptRow = {
      ...attempt,
      state: 'waiting',
      wait_state: JSON.stringify(result.state ?? null),
      wake_at: wakeAt,
      waits_for: result.event ?? null,
    }
    await this.#deps.save([store.saveAttempt(waiting)], {})
    run.keep(waiting)
    return { outcome: 'waiting', afterMs: Math.max(wakeAt - clock.now(), 0) }
  }

  async #complete(
    run: ActiveRun,
    { step }: Member,
    attempt: AttemptRow,
    result: Extract<StepResult, { readonly outcome: 'done' }>,
    recordEnd: RecordEnd,
  ): Promise<MemberEnd> {
    const { store, clock, limits } = this.#deps
    const output = cut(result.output, limits.outputChars)
    const row: AttemptRow = {
      ...attempt,
      state: 'completed',
      output,
      input_tokens: result.inputTokens ?? 0,
      output_tokens: result.outputTokens ?? 0,
      cost_usd: result.costUsd === undefined ? 0 : result.costUsd,
      ended_at: clock.now(),
      waits_for: null,
    }
    const variable = step.outputVar === undefined ? [] : [store.setVariable(run.id, step.outputVar, output)]
    if (step.outputVar !== undefined) run.setVariable(step.outputVar, output)
    const end: StepEnd = { outcome: 'done', output }
    await recordEnd(end, (position) =>
      this.#deps.save([store.saveAttempt(row), ...variable], { hasCompleted: true, ...(position && { position }) }),
    )
    await this.#ended(run, row, 'completed')
    return end
  }

  /** `undefined`: there is another attempt. */
  async #fail(
    run: ActiveRun,
    member: Member,
    attempt: AttemptRow,
    { error, mayRetry }: Extract<CallEnd, { readonly outcome: 'failed' }>,
    recordEnd: RecordEnd,
  ): Promise<MemberEnd | undefined> {
    const { store, clock } = this.#deps
    const { step } = member
    const failed: AttemptRow = { ...attempt, state: 'failed', error, ended_at: clock.now(), waits_for: null }
    if (step.errorMode === 'skip') {
      const end: StepEnd = { outcome: 'skipped', error }
      const row: AttemptRow = { ...failed, state: 'skipped' }
      await recordEnd(end, (position) =>
        this.#deps.save([store.saveAttempt(row)], position === undefined ? {} : { position }),
      )
      await this.#ended(run, row, 'skipped')
      return end
    }
    if (step.errorMode === 'retry' && mayRetry && attempt.attempt <= step.maxRetries && run.leftMs > 0) {
      const delayMs = step.retryDelaySecs * 1000 * 2 ** (attempt.attempt - 1)
      const next: AttemptRow = {
        ...newAttempt(run.id, member, attempt.attempt + 1, clock.now()),
        state: 'waiting',
        wake_at: clock.now() + delayMs,
      }
      await this.#deps.save([store.saveAttempt(failed), store.saveAttempt(next)], {})
      run.keep(next)
      return undefined
    }
    await this.#deps.save([store.saveAttempt(failed)], {})
    await this.#ended(run, failed, 'failed')
    return { outcome: 'failed', error }
  }

  async #ended(run: ActiveRun, row: AttemptRow, state: 'completed' | 'failed' | 'skipped'): Promise<void> {
    run.keep(row)
    await this.#deps.hooks.emit(WorkflowStepEnded, { runId: run.id, step: row.step, state })
  }
}

function askerOf({ row: { asker } }: ActiveRun): StepCall['asker'] {
  return asker ? { turnId: undefined, sessionId: undefined, ...asker } : undefined
}
function cut(text: string, max: number): string {
  if (text.length <= max) return text
  return `${text.slice(0, max).toWellFormed()}\n[cut: ${text.length - max} of ${text.length} characters are not kept]`
}
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const stop = (): void => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
    // What it does after that is not recorded.
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}
