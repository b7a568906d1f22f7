import * as v from 'valibot'
import { messageOf, orAborted, stableId } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { TurnResult, Turns } from '../chat/contract.ts'
import type { Job, JobOutcome } from '../queue/contract.ts'
import { isLabel } from '../sessions/contract.ts'
import { OPEN } from './changes.ts'
import type { TaskChanges } from './changes.ts'
import type { Limits } from './config.ts'
import { behalfOf, labelsOf } from './rows/row.ts'
import type { StoredTask } from './rows/row.ts'
import type { TaskService } from './service.ts'
import type { TaskStore } from './rows/store.ts'

export interface TaskWorkerDeps {
  readonly store: TaskStore
  readonly changes: TaskChanges
  readonly tasks: Pick<TaskService, 'claimOf' | 'endOf' | 'requireCapacity'>
  readonly agents: Pick<Agents, 'find'>
  readonly turns: Pick<Turns, 'ensure' | 'find'>
  readonly limits: Limits
  readonly clock: Clock
  readonly log: Logger
}
interface ClaimedTask extends StoredTask {
  readonly turn_id: string
  readonly claim_id: string
  readonly claimed_by: string
}

const Payload = v.object({ task_id: v.string(), agent_id: v.string() })
const MAX_ERROR = 2_000
const DONE: JobOutcome = { outcome: 'done' }

/** Begins a turn of the agent that a task is for; its answer is the result. */
export class TaskWorker {
  readonly #deps: TaskWorkerDeps
  constructor(deps: TaskWorkerDeps) {
    this.#deps = deps
  }

  async run({ id, payload, signal }: Pick<Job, 'id' | 'payload' | 'signal'>): Promise<JobOutcome> {
    const { task_id: taskId, agent_id: agentId } = v.parse(Payload, payload)
    const task = await this.#deps.store.find(taskId)
    if (task?.assigned_to !== agentId) return DONE
    if (isClaimedBy(task, id)) return this.#follow(task, signal)
    // Done, cancelled, or claimed by the agent in a turn of its own.
    if (task.status !== 'pending') return DONE
    const pause = await this.#whyNot(agentId)
    if (pause !== undefined) return pause
    const turn = { id: stableId('task-turn', id, String(task.attempts + 1)), jobId: id }
    const claimed = await this.#deps.changes.apply(task, this.#deps.tasks.claimOf(task, agentId, turn))
    if (claimed && isClaimedBy(claimed, id)) return this.#follow(claimed, signal)
    return { outcome: 'postponed', afterMs: 0 }
  }
  /** The queue gave up: the daemon died too often, or what was to be written could not be. */
  async dead({ id, payload }: Pick<Job, 'id' | 'payload'>, reason: string): Promise<readonly Statement[]> {
    const { store, changes, tasks } = this.#deps
    const { task_id: taskId, agent_id: agentId } = v.parse(Payload, payload)
    const task = await store.find(taskId)
    if (!task || !(isClaimedBy(task, id) || (task.status === 'pending' && task.assigned_to === agentId))) return []
    return changes.statementsOf(task, tasks.endOf('failed', reason.slice(0, MAX_ERROR)))
  }

  /** When the agent is to be woken instead, if it cannot be now. */
  async #whyNot(agentId: string): Promise<JobOutcome | undefined> {
    const { agents, tasks } = this.#deps
    const agent = await agents.find(agentId)
    if (!agent) return DONE
    if (agent.state !== 'Running') return this.#later()
    try {
      await tasks.requireCapacity(agentId)
      return undefined
    } catch (error) {
      if (error instanceof Refusal) return this.#later()
      throw error
    }
  }
  #later(retryAfterSecs = 0): JobOutcome {
    return { outcome: 'postponed', afterMs: Math.max(this.#deps.limits.wake_retry_secs, retryAfterSecs) * 1000 }
  }

  async #follow(task: ClaimedTask, signal: AbortSignal): Promise<JobOutcome> {
    const { turns } = this.#deps
    const stopRenewing = this.#renew(task)
    try {
      const turn = await turns.ensure(this.#request(task))
      return await this.#succeed(task, await orAborted(turn.result(), signal))
    } catch (error) {
      if (signal.aborted) throw error
      const view = await turns.find(task.turn_id)
      if (!view) return await this.#notBegun(task, error)
      // The daemon is being stopped: the turn goes on by itself, and this job follows it again.
      if (view.state === 'queued' || view.state === 'running' || view.state === 'waiting') throw error
      // It did not fail: its result could not be read.
      if (view.state === 'done') throw error
      return await this.#fail(task, messageOf(error), view.failure?.retryable === true)
    } finally {
      stopRenewing()
    }
  }
  #request(task: ClaimedTask) {
    const onBehalf = behalfOf(task)
    const by = onBehalf.length > 0 ? 'another agent' : 'a person or program'
    const text = task.description === '' ? task.title : `${task.title}\n\n${task.description}`
    return {
      id: task.turn_id,
      agentId: task.claimed_by,
      sessionId: stableId('task-session', task.id, task.claimed_by),
      text,
      entryPoint: 'task' as const,
      onBehalf,
      labels: labelsOf(task).filter(isLabel),
      hops: task.hops,
      instructions:
        `The message is the task ${task.id}, which was posted for you by ${by}. You work on it already. Nobody is ` +
        'waiting at a screen: your answer is stored as its result, unless you finish it with task_complete yourself.',
    }
  }
  #renew({ id, claim_id: jobId }: ClaimedTask): () => void {
    const { store, changes, limits, clock, log } = this.#deps
    const ttlMs = limits.claim_ttl_secs * 1000
    let cancel = (): void => {}
    const schedule = (): void => {
      cancel = clock.after(ttlMs / 3, () => {
        store
          .renew(id, jobId, changes.now(ttlMs))
          .catch((error: unknown) => log.warn(`the claim of task ${id} could not be renewed: ${messageOf(error)}`))
        schedule()
      })
    }
    schedule()
    return () => cancel()
  }

  async #succeed(task: ClaimedTask, { text, stop }: TurnResult): Promise<JobOutcome> {
    const { agents, tasks, limits } = this.#deps
    const result = text.slice(0, limits.max_text_chars)
    if (stop === 'cancelled' && (await agents.find(task.claimed_by))?.state !== 'Running')
      return this.#interrupted(task)
    if (stop === 'cancelled') return this.#end(task, tasks.endOf('cancelled', result, task.claimed_by))
    if (stop === 'done' || stop === 'length') return this.#end(task, tasks.endOf('completed', result, task.claimed_by))
    const reason = stop === 'refused' ? 'the model refused' : 'the turn took too many steps'
    return this.#end(
      task,
      tasks.endOf('failed', `${reason}: ${result}`.slice(0, limits.max_text_chars), task.claimed_by),
    )
  }
  /** Somebody stopped the agent, not the task: it goes on when the agent runs again. */
  #interrupted(task: ClaimedTask): Promise<JobOutcome> {
    const { limits, clock } = this.#deps
    return this.#end(task, {
      set: OPEN,
      event: 'changed',
      details: `is open again: ${task.claimed_by} was stopped`,
      agentId: task.claimed_by,
      wakeAt: clock.now() + limits.wake_retry_secs * 1000,
    })
  }
  /** The turn was refused before it was written: it is no attempt. */
  async #notBegun(task: ClaimedTask, error: unknown): Promise<JobOutcome> {
    const code = error instanceof Refusal ? error.code : undefined
    if (code === 'agent_not_found') return DONE
    if (code !== 'conflict' && code !== 'rate_limit' && code !== 'service_unavailable')
      return this.#fail(task, messageOf(error), false)
    const later = this.#later(error instanceof Refusal ? error.retryAfterSecs : undefined)
    await this.#end(task, {
      set: { ...OPEN, attempts: task.attempts - 1 },
      event: 'changed',
      details: `waits: ${messageOf(error)}`,
      agentId: task.claimed_by,
      wakeAt: 'never',
    })
    return later
  }
  async #fail(task: ClaimedTask, reason: string, isRetryable: boolean): Promise<JobOutcome> {
    const { changes, limits, tasks, clock, log } = this.#deps
    const text = reason.slice(0, MAX_ERROR)
    log.warn(`the turn for task ${task.id} failed: ${text}`)
    if (!isRetryable || task.attempts >= limits.max_attempts)
      return this.#end(task, tasks.endOf('failed', text, task.claimed_by))
    const pauseSecs = Math.min(limits.wake_retry_secs * 2 ** (task.attempts - 1), limits.wake_retry_max_secs)
    return this.#end(task, {
      set: OPEN,
      event: 'changed',
      details: `is tried again at ${changes.now(pauseSecs * 1000)}: ${text}`,
      agentId: task.claimed_by,
      wakeAt: clock.now() + pauseSecs * 1000,
    })
  }
  /** Nothing when it has another state meanwhile, such as completed by the agent itself. */
  async #end({ id, claim_id: jobId }: ClaimedTask, change: Parameters<TaskChanges['apply']>[1]): Promise<JobOutcome> {
    const { store, changes } = this.#deps
    for (;;) {
      const task = await store.find(id)
      if (!task || !isClaimedBy(task, jobId)) return DONE
      if (await changes.apply(task, change)) return DONE
    }
  }
}

const isClaimedBy = (task: StoredTask, jobId: string): task is ClaimedTask =>
  task.status === 'in_progress' && task.claim_id === jobId
