import { currentActor, findNearest, sleep, stableId, suggest } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Hooks, Statement } from 'svc/sdk'
import { v7 } from 'uuid'
import type { Approvals } from '../../approvals/contract.ts'
import type { Audit } from '../../audit/contract.ts'
import type { Chat } from '../../chat/contract.ts'
import type { Queue } from '../../queue/contract.ts'
import { WorkflowRunChanged } from '../contract.ts'
import type { RunSummary, WorkflowRuns } from '../contract.ts'
import type { Definitions, RunState, Workflow } from '../definition.ts'
import type { RunChanges } from './changes.ts'
import { LANE } from './lane.ts'
import { positionAfter } from './position.ts'
import type { Position } from './position.ts'
import type { AttemptRow, RunListRow, RunRow } from './schema.ts'
import type { NewRun, RunStore } from './store.ts'
import { toSummary } from './summary.ts'

export interface RunServiceDeps {
  readonly store: RunStore
  readonly definitions: Pick<Definitions, 'find' | 'mayRun'>
  readonly queue: Pick<Queue, 'add' | 'admit' | 'cancel' | 'hurry'>
  readonly audit: Pick<Audit, 'entry'>
  readonly chat: Pick<Chat, 'cancel'>
  readonly approvals: () => Pick<Approvals, 'find' | 'list' | 'reject'> | undefined
  readonly hooks: Pick<Hooks, 'emit'>
  readonly clock: Clock
  readonly changes: RunChanges
  readonly limits: { readonly activeRuns: number; readonly depth: number }
}
interface Start {
  readonly id: string
  readonly workflowId: string
  readonly input: string
  readonly cause: string
  readonly agentId?: string
  readonly withinTurn?: string
  readonly sessionId?: string
  readonly hops?: number
}
interface Parent {
  readonly runId: string
  readonly key: string
}

/** Another daemon may have the run. */
const POLL_MS = 1_000
const FULL_RETRY_SECS = 10

/** Begins, ends and finds runs; the engine moves them. */
export class RunService implements Omit<WorkflowRuns, 'resolve' | 'workflows'> {
  readonly #deps: RunServiceDeps
  constructor(deps: RunServiceDeps) {
    this.#deps = deps
  }

  async start(run: Start, parent?: Parent): Promise<void> {
    const { definitions, store } = this.#deps
    if (await store.find(run.id)) return
    const workflow = await definitions.find(run.workflowId)
    if (!workflow) throw new Refusal('workflow_not_found', `There is no workflow ${run.workflowId}`)
    if (run.agentId !== undefined && !(await definitions.mayRun(run.agentId, workflow)))
      throw new Refusal('forbidden', `run_by of the workflow "${workflow.name}" does not name the agent ${run.agentId}`)
    const aboveId = parent?.runId ?? (await this.#runOfTurn(run.withinTurn))
    const above = aboveId === undefined ? undefined : await store.find(aboveId)
    const depth = above ? above.depth + 1 : 0
    if (depth > this.#deps.limits.depth)
      throw new Refusal(
        'conflict',
        `${depth} workflows that run each other are more than plugins.workflows.max_depth allows`,
      )
    const asker = above?.asker ?? askerOf(run)
    const hops = Math.max(run.hops ?? 0, above?.hops ?? 0)
    await this.#insert(workflow, { ...run, hops, position: positionAfter(0, run.input), depth, parent, asker })
  }

  /** The run whose step the turn is. */
  async #runOfTurn(turnId: string | undefined): Promise<string | undefined> {
    return turnId === undefined ? undefined : (await this.#deps.store.findAttempt(turnId))?.run_id
  }
  async #insert(
    workflow: Workflow,
    run: Start & {
      readonly position: Position
      readonly depth: number
      readonly parent?: Parent | undefined
      readonly asker: RunRow['asker']
      readonly rerunOf?: string
      readonly attempts?: readonly AttemptRow[]
      readonly variables?: ReadonlyMap<string, string>
    },
  ): Promise<void> {
    const { store, queue, clock, limits, changes } = this.#deps
    // One that another run waits for must not be refused because that one counts.
    const maxActive = run.parent ? Number.MAX_SAFE_INTEGER : limits.activeRuns
    await queue.admit()
    const row: NewRun = {
      id: run.id,
      workflow_id: workflow.id,
      workflow_name: workflow.name,
      definition: JSON.stringify(workflow),
      input: run.input,
      cause: run.cause,
      depth: run.depth,
      hops: run.hops ?? 0,
      parent_run_id: run.parent?.runId ?? null,
      parent_key: run.parent?.key ?? null,
      rerun_of: run.rerunOf ?? null,
      asker: run.asker && JSON.stringify(run.asker),
      position: run.position,
      stepsCompleted: run.attempts?.filter(({ state }) => state === 'completed').length ?? 0,
    }
    const statements = [
      store.insert(row, clock.now(), maxActive),
      ...(run.attempts ?? []).map((attempt) => store.saveAttempt(attempt)),
      ...[...(run.variables ?? [])].map(([name, value]) => store.setVariable(run.id, name, value)),
      queue.add({ lane: LANE, id: run.id, payload: null }),
      ...this.#beginning(workflow, run),
    ]
    try {
      await store.commit(statements)
    } catch (error) {
      if ((await store.countActive()) < maxActive) throw error
      const message = `${limits.activeRuns} runs are all that plugins.workflows.max_active_runs allows`
      throw new Refusal('rate_limit', message, { cause: error, retryAfterSecs: FULL_RETRY_SECS })
    }
    changes.tell(run.id)
    await this.#announce(run.id)
  }

  /** Who asked for the run, where somebody did: a clock did not. */
  #beginning({ name }: Workflow, { id, agentId }: Start): readonly Statement[] {
    if (currentActor() === undefined) return []
    const details = `run ${id} of workflow "${name}" began`
    return [this.#deps.audit.entry({ event: 'workflow_changed', details, ...omitUndefined({ agentId }) })]
  }

  async find(id: string): Promise<RunSummary | undefined> {
    const row = await this.#deps.store.find(id)
    return row && toSummary(row)
  }
  row(id: string): Promise<RunRow | undefined> {
    return this.#deps.store.find(id)
  }
  /** Throws `workflow_run_not_found`. */
  async require(id: string): Promise<RunRow> {
    const row = await this.#deps.store.find(id)
    if (row) return row
    const ids = (await this.#deps.store.list({ limit: 100, offset: 0 })).map((each) => each.id)
    throw new Refusal('workflow_run_not_found', `There is no run ${id}${suggest(findNearest(id, ids))}`)
  }

  async settled(id: string, signal: AbortSignal): Promise<RunSummary> {
    const { changes, clock } = this.#deps
    for (;;) {
      const changed = Promise.withResolvers<void>()
      const stop = changes.listen((runId) => void (runId === id && changed.resolve()))
      try {
        const run = toSummary(await this.require(id))
        if (run.state !== 'Pending' && run.state !== 'Running') return run
        await Promise.race([changed.promise, sleep(clock, POLL_MS, signal)])
      } finally {
        stop()
      }
    }
  }

  async cancel(id: string, reason: string): Promise<boolean> {
    const row = await this.#deps.store.find(id)
    if (!row || !isActive(row.state)) return false
    if (!(await this.#commitMove(id, this.cancelling(row, reason), 'Cancelled'))) return false
    await this.cancelled(row)
    return true
  }
  /** For a batch of somebody else's, which fails when the run has ended; `cancelled` is called after it. */
  cancelling({ id, workflow_name: name }: RunListRow, reason: string): readonly Statement[] {
    const { store, clock, audit } = this.#deps
    const error = `cancelled: ${reason}`
    return [
      store.move(id, ['Pending', 'Running', 'Paused'], 'Cancelled', clock.now(), error),
      store.cancelAttempts(id, clock.now()),
      audit.entry({ event: 'workflow_failed', details: `run ${id} of workflow "${name}" is ${error}` }),
    ]
  }
  async cancelled({ id, parent_key: parentKey }: RunListRow): Promise<void> {
    const { store, queue, changes } = this.#deps
    changes.tell(id)
    await queue.cancel(LANE, id)
    await this.stopSteps(id)
    for (const child of await store.children(id)) await this.cancel(child.id, `run ${id} was cancelled`)
    await this.#announce(id)
    if (parentKey !== null) await this.wake(parentKey)
  }
  /** The queue gave up a run, which is on disk: whoever waits for it is told, and what it began is ended. */
  async gaveUp(id: string): Promise<void> {
    const { store, changes } = this.#deps
    changes.tell(id)
    await this.#announce(id)
    const row = await store.find(id)
    if (row && row.parent_key !== null) await this.wake(row.parent_key)
    await this.stopSteps(id)
    for (const child of await store.children(id)) await this.cancel(child.id, `run ${id} failed`)
  }
  /** Ends the turns of a run that has ended, and takes back what it asked people. */
  async stopSteps(id: string): Promise<void> {
    const { store, chat, approvals } = this.#deps
    for (const { key, type, state, agent_id: agentId } of await store.attempts(id)) {
      if (state !== 'cancelled') continue
      if (type === 'agent') chat.cancel(key)
      if (type !== 'approval' && type !== 'tool') continue
      const asked = type === 'approval' ? [await approvals()?.find(key)] : await approvals()?.list(agentId ?? '')
      for (const approval of asked ?? [])
        if (approval?.state === 'pending' && (approval.id === key || approval.turnId === key))
          await approvals()?.reject(approval.id, 'the end of the run')
    }
  }
  /** The step that runs is finished and recorded; none is begun after that. Throws `conflict`. */
  async pause(id: string): Promise<void> {
    await this.#move(id, ['Pending', 'Running'], 'Paused')
  }
  /** Throws `conflict`. */
  async resume(id: string): Promise<void> {
    await this.#move(id, ['Paused'], 'Running')
    await this.#deps.queue.hurry(LANE, id)
  }
  async #move(id: string, from: readonly RunState[], to: RunState): Promise<void> {
    const { store, clock, audit } = this.#deps
    const { state, workflow_name: name } = await this.require(id)
    const entry = audit.entry({ event: 'workflow_changed', details: `run ${id} of workflow "${name}" is ${to} now` })
    if (!(await this.#commitMove(id, [store.move(id, from, to, clock.now()), entry], to)))
      throw new Refusal('conflict', `The run is ${state}; only one that is ${from.join(' or ')} can become ${to}`)
    await this.#announce(id)
  }
  /** `false`: the run is in another state. */
  async #commitMove(id: string, statements: Parameters<RunStore['commit']>[0], to: RunState): Promise<boolean> {
    const { store, changes } = this.#deps
    const before = await store.find(id)
    try {
      await store.commit(statements)
    } catch (error) {
      const now = await store.find(id)
      // It may have ended at the same moment; otherwise the failure is the database's.
      if (now && now.state === before?.state && isActive(now.state) && now.state !== to && canMove(now.state, to))
        throw error
      return false
    }
    changes.tell(id)
    return true
  }

  async wake(stepKey: string): Promise<void> {
    const attempt = await this.#deps.store.findAttempt(stepKey)
    if (attempt?.ended_at === null) await this.#wakeAttempt(attempt)
  }
  /** An event was published: whoever waits for it gets its payload. */
  async publish(event: string, payload: unknown): Promise<void> {
    for (const attempt of await this.#deps.store.waitingFor(event))
      await this.#wakeAttempt(attempt, JSON.stringify({ event: payload ?? null }))
  }
  async #wakeAttempt({ key, run_id: runId }: AttemptRow, waitState?: string): Promise<void> {
    await this.#deps.store.wake(key, waitState)
    await this.#deps.queue.hurry(LANE, runId)
  }

  /**
   * A new run of the same definition that begins at a step with what was before it; the whole group of a `fan_out`.
   * Throws `conflict` while the run goes on, and `invalid_request` for a step that it did not reach.
   */
  async rerun(id: string, stepName: string | undefined, newId: string = v7()): Promise<string> {
    const { store } = this.#deps
    const row = await this.require(id)
    if (isActive(row.state)) throw new Refusal('conflict', `The run is ${row.state}; cancel it first`)
    const workflow = row.definition
    const index = firstIndex(workflow, stepName)
    const attempts = await store.attempts(id)
    const begin = index === 0 ? undefined : attempts.find(({ step_index: at }) => at === index)
    if (index > 0 && !begin)
      throw new Refusal('invalid_request', `step: the run did not reach the step "${stepName ?? ''}"`)
    const kept = attempts.filter(({ step_index: at }) => at < index)
    const variables = new Map(
      kept.flatMap(({ step_index: at, state, output }) => {
        const name = workflow.steps[at]?.outputVar
        return state === 'completed' && name !== undefined ? [[name, output ?? ''] as const] : []
      }),
    )
    await this.#insert(workflow, {
      id: newId,
      workflowId: workflow.id,
      input: row.input,
      cause: row.cause,
      asker: row.asker,
      hops: row.hops,
      position: positionAfter(index, begin?.input ?? row.input),
      depth: 0,
      rerunOf: id,
      attempts: kept.map((attempt) => ({
        ...attempt,
        run_id: newId,
        key: stableId('workflow-step', newId, attempt.key),
      })),
      variables,
    })
    return newId
  }

  /** Runs that were resumed by a process that ended before their jobs were due. */
  async hurryResumed(): Promise<void> {
    const { store, queue } = this.#deps
    for (const { id, state } of await store.active()) if (state === 'Running') await queue.hurry(LANE, id)
  }

  async #announce(id: string): Promise<void> {
    const row = await this.#deps.store.find(id)
    if (row) await this.#deps.hooks.emit(WorkflowRunChanged, { ...toSummary(row), workflowName: row.workflow_name })
  }
}

function askerOf({ agentId, withinTurn: turnId, sessionId }: Start): RunRow['asker'] {
  return agentId === undefined ? null : { agentId, ...omitUndefined({ turnId, sessionId }) }
}

export const isActive = (state: RunListRow['state']): boolean =>
  state === 'Pending' || state === 'Running' || state === 'Paused'
const canMove = (from: RunState, to: RunState): boolean => (to === 'Running' ? from === 'Paused' : from !== to)

/** The step of this name, or the first of its group; the first step when there is no name. */
function firstIndex({ steps }: Workflow, name: string | undefined): number {
  if (name === undefined) return 0
  const index = steps.findIndex((step) => step.name === name)
  if (index === -1)
    throw new Refusal(
      'invalid_request',
      `step: there is no step "${name}"${suggest(
        findNearest(
          name,
          steps.map((step) => step.name),
        ),
      )}`,
    )
  if (steps[index]?.mode !== 'fan_out') return index
  return steps.slice(0, index).findLastIndex(({ mode }) => mode !== 'fan_out') + 1
}
