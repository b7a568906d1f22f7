import type { Clock } from 'svc/internal'
import { SerialQueue } from 'svc/sdk'
import type { Hooks, Logger, Statement } from 'svc/sdk'
import type { Audit } from '../../audit/contract.ts'
import type { Job, JobOutcome } from '../../queue/contract.ts'
import { WorkflowRunChanged } from '../contract.ts'
import { conditionHolds } from '../definitions/condition.ts'
import type { Step } from '../definition.ts'
import { toSummary } from './summary.ts'
import type { RunChanges } from './changes.ts'
import { collectOutputs, groupAt, inputAfter, labelOf, positionAfter } from './position.ts'
import type { Position, StepEnd } from './position.ts'
import { ActiveRun } from './run.ts'
import type { AttemptRow, RunRow } from './schema.ts'
import { newAttempt } from './attempt.ts'
import { StepRunner } from './step-runner.ts'
import type { MemberEnd, StepRunnerDeps } from './step-runner.ts'
import type { RunStore } from './store.ts'

export interface EngineDeps extends Omit<StepRunnerDeps, 'save'> {
  readonly store: RunStore
  readonly audit: Pick<Audit, 'entry'>
  readonly hooks: Pick<Hooks, 'emit'>
  readonly clock: Clock
  readonly log: Pick<Logger, 'info' | 'warn'>
  readonly changes: RunChanges
  /** Calls the step again that waits for this run. */
  readonly wake: (stepKey: string) => Promise<void>
  /** Ends what steps of a run that has ended still do. */
  readonly stopSteps: (runId: string) => Promise<void>
  readonly ended: (state: 'Completed' | 'Failed') => void
}

/** Until it is resumed, which makes its job due at once. */
const PAUSED_MS = 30 * 86_400_000

/** Moves runs forward. What it has recorded is never done again. */
export class Engine {
  readonly #deps: EngineDeps
  constructor(deps: EngineDeps) {
    this.#deps = deps
  }

  async work(job: Job): Promise<JobOutcome> {
    const { store, clock } = this.#deps
    const before = await store.find(job.id)
    if (before?.state === 'Paused') return { outcome: 'postponed', afterMs: PAUSED_MS }
    const row = await store.take(job.id, clock.now())
    if (!row || hasEnded(row)) return { outcome: 'done' }
    if (before?.state === 'Pending') await this.#announce(row.id)
    const [attempts, variables] = await Promise.all([store.attempts(row.id), store.variables(row.id)])
    const run = new ActiveRun(row, attempts, variables, clock)
    try {
      return await this.#advance(run, job.signal)
    } catch (error) {
      // It was cancelled meanwhile, maybe by another daemon: what this attempt did is not recorded.
      const now = await store.find(row.id)
      if (now && !hasEnded(now)) throw error
      await this.#deps.stopSteps(row.id)
      return { outcome: 'done' }
    }
  }

  async #advance(run: ActiveRun, signal: AbortSignal): Promise<JobOutcome> {
    for (;;) {
      signal.throwIfAborted()
      const state = (await this.#deps.store.find(run.id))?.state
      if (state === 'Paused') return this.#postpone(run, PAUSED_MS)
      const step = run.steps[run.position.index]
      if (!step) return this.#end(run, { state: 'Completed', output: run.position.input })
      if (run.leftMs <= 0) return this.#end(run, { state: 'Failed', error: tooLong(run) })
      const outcome = await this.#step(run, step, signal)
      if (outcome) return outcome
    }
  }

  /** One step, or all that run side by side. An outcome ends the work on this run for now. */
  async #step(run: ActiveRun, step: Step, signal: AbortSignal): Promise<JobOutcome | undefined> {
    const { index, input } = run.position
    if (step.mode === 'collect') {
      await this.#collect(run, step)
      return undefined
    }
    if (step.mode === 'conditional' && !(await this.#holds(run, step.condition, input))) {
      await this.#save(run, [], { position: positionAfter(index + 1, input) })
      return undefined
    }
    return this.#runGroup(run, groupAt(run.steps, index), signal)
  }

  async #runGroup(run: ActiveRun, group: readonly Step[], signal: AbortSignal): Promise<JobOutcome | undefined> {
    const { index, iteration, input } = run.position
    const ends: (MemberEnd | undefined)[] = group.map((_, offset) => endOf(run.attemptOf(index + offset, iteration)))
    const open = [...ends.keys()].filter((offset) => ends[offset] === undefined)
    // The end of the last one lies in one batch with the position that follows.
    const recording = new SerialQueue()
    const runner = new StepRunner({ ...this.#deps, save: (...change) => this.#save(run, ...change) })
    await settleAll(
      open.map(async (offset) => {
        const step = group[offset] as Step
        const member = { step, index: index + offset, iteration, input }
        ends[offset] = await runner.run(run, member, signal, (end, write) =>
          recording.run(async () => {
            ends[offset] = end
            await write(ends.every(isFinished) ? await this.#next(run, group, ends) : undefined)
          }),
        )
      }),
    )
    const failed = ends.findIndex((end) => end?.outcome === 'failed')
    const failure = ends[failed]
    if (failure?.outcome === 'failed') {
      const label = labelOf(group[failed] as Step, iteration)
      const error = run.leftMs <= 0 ? tooLong(run) : `step "${label}" failed: ${failure.error}`
      return this.#end(run, { state: 'Failed', error })
    }
    const waits = ends.flatMap((end) => (end?.outcome === 'waiting' ? [end.afterMs] : []))
    if (waits.length > 0) return this.#postpone(run, Math.min(...waits))
    // All were recorded by an earlier worker, which did not get as far as the position.
    if (open.length === 0) await this.#save(run, [], { position: await this.#next(run, group, ends) })
    return undefined
  }

  async #next(run: ActiveRun, group: readonly Step[], ends: readonly (MemberEnd | undefined)[]): Promise<Position> {
    const { index, iteration, input } = run.position
    const output = inputAfter(ends.filter(isFinished), input)
    const [step] = group
    const end = ends[0]
    if (step?.mode === 'loop' && end?.outcome === 'done' && iteration < step.maxIterations) {
      const isOver = step.until !== '' && (await this.#holds(run, step.until, output))
      if (!isOver) return { index, iteration: iteration + 1, input: output }
    }
    return positionAfter(index + group.length, output)
  }

  async #collect(run: ActiveRun, step: Step): Promise<void> {
    const { store, clock } = this.#deps
    const { index, iteration, input } = run.position
    const output = collectOutputs(run.steps, index, run.attempts)
    const now = clock.now()
    const begun = newAttempt(run.id, { step, index, iteration, input }, 1, now)
    const row: AttemptRow = { ...begun, type: 'collect', state: 'completed', output, ended_at: now }
    const variable = step.outputVar === undefined ? [] : [store.setVariable(run.id, step.outputVar, output)]
    const position = positionAfter(index + 1, output)
    await this.#save(run, [store.saveAttempt(row), ...variable], { position, hasCompleted: true })
    run.keep(row)
    if (step.outputVar !== undefined) run.setVariable(step.outputVar, output)
  }

  #holds(run: ActiveRun, condition: string, output: string): Promise<boolean> {
    const { iteration, input } = run.position
    return conditionHolds(condition, output, run.scope(iteration, input))
  }

  async #postpone(run: ActiveRun, afterMs: number): Promise<JobOutcome> {
    await this.#save(run, [], {})
    return { outcome: 'postponed', afterMs: Math.max(afterMs, 0) }
  }

  async #end(
    run: ActiveRun,
    end:
      | { readonly state: 'Completed'; readonly output: string }
      | { readonly state: 'Failed'; readonly error: string },
  ): Promise<JobOutcome> {
    const { audit, ended, wake, log } = this.#deps
    const { id, workflow_name: name, parent_key: parentKey } = run.row
    const text = end.state === 'Failed' ? `: ${end.error}` : ''
    const entry = audit.entry({
      event: end.state === 'Completed' ? 'workflow_completed' : 'workflow_failed',
      details: `run ${id} of workflow "${name}" ${end.state === 'Completed' ? 'is completed' : 'failed'}${text}`,
    })
    const open = run.attempts.some(({ ended_at: endedAt }) => endedAt === null)
    const { store, clock } = this.#deps
    await this.#save(run, open ? [store.cancelAttempts(id, clock.now()), entry] : [entry], end)
    if (open) await this.#deps.stopSteps(id)
    if (end.state === 'Failed') log.info(`run ${id} of workflow "${name}" failed${text}`)
    ended(end.state)
    await this.#announce(id)
    if (parentKey !== null) await wake(parentKey)
    return { outcome: 'done' }
  }

  /** One after the other: a change is made from the one before, whatever steps do side by side. */
  #save(run: ActiveRun, statements: readonly Statement[], part: Parameters<ActiveRun['change']>[0]): Promise<void> {
    const { store, clock, changes } = this.#deps
    return run.saves.run(async () => {
      const change = run.change(part)
      await store.commit([store.advance(run.row, change, clock.now()), ...statements])
      run.moved(change)
      changes.tell(run.id)
    })
  }
  async #announce(id: string): Promise<void> {
    const { store, hooks, changes } = this.#deps
    const row = await store.find(id)
    if (!row) return
    changes.tell(id)
    await hooks.emit(WorkflowRunChanged, { ...toSummary(row), workflowName: row.workflow_name })
  }
}

/** All have ended before the first rejection is thrown: none writes any more after that. */
async function settleAll<T>(work: readonly Promise<T>[]): Promise<readonly T[]> {
  await Promise.allSettled(work)
  return Promise.all(work)
}
function endOf(attempt: AttemptRow | undefined): MemberEnd | undefined {
  if (attempt?.state === 'completed') return { outcome: 'done', output: attempt.output ?? '' }
  if (attempt?.state === 'skipped') return { outcome: 'skipped', error: attempt.error ?? '' }
  // Another attempt would be there already.
  return attempt?.state === 'failed' ? { outcome: 'failed', error: attempt.error ?? '' } : undefined
}
const isFinished = (end: MemberEnd | undefined): end is StepEnd => end?.outcome === 'done' || end?.outcome === 'skipped'
const hasEnded = ({ state }: Pick<RunRow, 'state'>): boolean =>
  state === 'Completed' || state === 'Failed' || state === 'Cancelled'
const tooLong = ({ row }: ActiveRun): string =>
  `the run worked longer than the ${row.definition.totalTimeoutSecs} seconds that its workflow may`
