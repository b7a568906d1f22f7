import { toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { omitUndefined, Refusal } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Audit, AuditEvent } from '../audit/contract.ts'
import type { Queue } from '../queue/contract.ts'
import type { TaskEvent } from './contract.ts'
import { toTask } from './rows/row.ts'
import type { StoredTask } from './rows/row.ts'
import type { TaskChange, TaskStore } from './rows/store.ts'

/** The lane of the queue in which agents get turns for their tasks. */
export const LANE = 'task'
/** Times a change is tried that another one makes impossible each time. */
const MAX_RACES = 20

export type TaskEventName = 'posted' | 'claimed' | 'completed' | 'changed'
export interface ChangesDeps {
  readonly store: TaskStore
  readonly audit: Pick<Audit, 'entry'>
  readonly queue: Pick<Queue, 'add'>
  readonly clock: Pick<Clock, 'now'>
  /** A change is on disk. */
  readonly notify: (name: TaskEventName, event: TaskEvent) => void
  /** Nobody needs the answer of this turn any more. */
  readonly stopTurn: (turnId: string) => void
}
export interface Change {
  readonly set: TaskChange
  readonly event: TaskEventName
  /** What happened, for the audit trail. */
  readonly details: string
  readonly agentId?: string | undefined
  /** When an agent that is woken gets its turn, in milliseconds since 1970; `never`: a job that waits is there. */
  readonly wakeAt?: number | 'never'
}

/** Nobody works on it. */
export const OPEN = {
  status: 'pending',
  claimed_by: null,
  claim_id: null,
  claimed_at: null,
  lease_until: null,
} as const

/** Changes tasks: each together with its entry in the audit trail and the job that wakes an agent, or not at all. */
export class TaskChanges {
  readonly #deps: ChangesDeps
  constructor(deps: ChangesDeps) {
    this.#deps = deps
  }

  /** Throws `task_not_found`, what `decide` throws, and `conflict` when others change the task all the time. */
  async change(id: string, decide: (task: StoredTask) => Change): Promise<StoredTask> {
    for (let race = 0; race < MAX_RACES; race++) {
      const task = await this.require(id)
      const changed = await this.apply(task, decide(task))
      if (changed) return changed
    }
    throw raced()
  }
  /** `undefined` when somebody else changed the task since it was read. */
  async apply(task: StoredTask, change: Change): Promise<StoredTask | undefined> {
    return (await this.commit(task, this.statementsOf(task, change))) ? nextOf(task, change) : undefined
  }
  /** For a batch of somebody else's. */
  statementsOf(task: StoredTask, change: Change): readonly Statement[] {
    const next = nextOf(task, change)
    const isOwn = change.agentId !== undefined && change.agentId === task.claimed_by
    const written = (): void => {
      if (task.status === 'in_progress' && !isOwn) this.#stopTurn(task)
      this.notify(change.event, next, change.agentId)
    }
    const update = { ...this.#deps.store.update(task, change.set), written }
    return [update, this.entry(next, change), ...this.wakeOf(next, change, task)]
  }
  /** Throws `task_not_found`. Its worker cannot complete it any more. */
  async remove(id: string, entry: (task: StoredTask) => Statement): Promise<void> {
    for (let race = 0; race < MAX_RACES; race++) {
      const task = await this.require(id)
      if (!(await this.commit(task, [this.#deps.store.remove(id), entry(task)]))) continue
      if (task.status === 'in_progress') this.#stopTurn(task)
      return
    }
    throw raced()
  }
  /** Throws `task_not_found`. */
  async require(id: string): Promise<StoredTask> {
    const task = await this.#deps.store.find(id)
    if (!task) throw new Refusal('task_not_found', `No task ${id}`)
    return task
  }

  /** Whether the statements were carried out: not when the task changed since it was read. */
  async commit(task: StoredTask, statements: readonly Statement[]): Promise<boolean> {
    const { store } = this.#deps
    try {
      await store.commit(store.unchanged(task), ...statements)
      return true
    } catch (error) {
      if ((await store.find(task.id))?.revision === task.revision) throw error
      return false
    }
  }
  /** The job that begins a turn of the agent, when the task begins to wait for it. */
  wakeOf(next: StoredTask, { wakeAt }: Pick<Change, 'wakeAt'>, before?: StoredTask): readonly Statement[] {
    const isSame = before?.status === 'pending' && before.assigned_to === next.assigned_to
    if (next.wake === 0 || next.assigned_to === null || next.status !== 'pending' || isSame || wakeAt === 'never')
      return []
    return [
      this.#deps.queue.add({
        lane: LANE,
        id: `${next.id}:${next.revision}`,
        payload: { task_id: next.id, agent_id: next.assigned_to },
        group: next.assigned_to,
        agentId: next.assigned_to,
        ...omitUndefined({ dueAt: wakeAt }),
      }),
    ]
  }
  /** The form that readers of the trail rely on. The title is last: its author could write anything. */
  entry({ id, revision, title }: StoredTask, { event, details, agentId }: Omit<Change, 'set'>): Statement {
    return this.#deps.audit.entry({
      event: `task_${event}` satisfies AuditEvent,
      details: `task ${id} revision ${revision} ${details}: "${title}"`,
      ...omitUndefined({ agentId }),
    })
  }
  notify(name: TaskEventName, row: StoredTask, agentId: string | undefined): void {
    const eventId = `${row.id}:${row.revision}`
    this.#deps.notify(name, { eventId, task: toTask(row), agentId, at: this.now() })
  }
  /** ISO 8601 UTC, some milliseconds from now. */
  now(ms = 0): string {
    return toIso(this.#deps.clock.now() + ms)
  }
  #stopTurn({ turn_id: turnId }: StoredTask): void {
    if (turnId !== null) this.#deps.stopTurn(turnId)
  }
}

const nextOf = (task: StoredTask, { set }: Change): StoredTask => ({ ...task, ...set, revision: task.revision + 1 })

export const raced = (): Refusal =>
  new Refusal('conflict', 'Others change this task all the time; try again.', { retryAfterSecs: 1 })
