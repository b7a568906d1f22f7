import { v7 } from 'uuid'
import { currentActor, describeActor, toIso } from 'svc/internal'
import type { Clock } from 'svc/internal'
import { omitUndefined, Refusal, SerialQueue } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit, AuditEvent } from '../audit/contract.ts'
import { resolveAssignee } from './assignee.ts'
import type { Limits } from './config.ts'
import type { NewTask, Task, TaskEvent, Tasks } from './contract.ts'
import { labelsOf } from './schema.ts'
import type { StoredTask } from './schema.ts'
import type { Status } from './statuses.ts'
import type { TaskChange, TaskFilter, TaskStore } from './store.ts'

export const MAX_TITLE = 512
const DAY_MS = 86_400_000
const FULL_RETRY_SECS = 60
/** Tasks that one search for ended claims changes in turn. */
const SWEEP_BATCH = 200
/** Times a change is tried that another process makes impossible each time. */
const MAX_RACES = 20

export type TaskEventName = 'posted' | 'claimed' | 'completed' | 'changed'
export interface TaskServiceDeps {
  readonly store: TaskStore
  readonly agents: Agents
  readonly audit: Audit
  readonly limits: Limits
  readonly clock: Pick<Clock, 'now'>
  /** A change is on disk. */
  readonly notify: (name: TaskEventName, event: TaskEvent) => void
}
/** The service, whose code is loaded by its first use. */
export type LazyTasks = () => Promise<TaskService>

interface Change {
  readonly set: TaskChange
  readonly event: TaskEventName
  /** What happened, for the audit trail. */
  readonly details: string
  readonly agentId?: string | undefined
}

/** The tasks that all agents share. */
export class TaskService implements Tasks {
  readonly #deps: TaskServiceDeps
  /** One claim at a time, so that a limit holds, and two agents do not go for the same task. */
  readonly #claims = new SerialQueue()
  constructor(deps: TaskServiceDeps) {
    this.#deps = deps
  }

  async post(task: NewTask): Promise<Task> {
    const { store, limits } = this.#deps
    const { id = v7(), agentId } = task
    const known = task.id === undefined ? undefined : await store.find(id)
    if (known) return toTask(known)
    const row = await this.#toRow(id, task)
    try {
      await store.commit(
        store.insert(row, {
          open: limits.max_open,
          ofCreator: agentId === undefined ? limits.max_open : limits.max_open_per_agent,
        }),
        this.#entry(row, { event: 'posted', details: `posted for ${row.assigned_to ?? 'anyone'}`, agentId }),
      )
    } catch (error) {
      const added = await store.find(id)
      if (added) return toTask(added)
      await this.#refuseFull(row.created_by, agentId, error)
    }
    this.#notify('posted', row, agentId)
    return toTask(row)
  }

  /** The oldest task that waits for this agent or for anyone, or the one with this id; `undefined` when none waits. */
  claim(agentId: string, id?: string): Promise<StoredTask | undefined> {
    return this.#claims.run(async () => {
      await this.reopenExpired()
      const { store, limits } = this.#deps
      if ((await store.claimedOf(agentId)) >= limits.max_claimed_per_agent)
        throw new Refusal(
          'conflict',
          `This agent works on ${limits.max_claimed_per_agent} tasks already, which is all that ` +
            'plugins.tasks.max_claimed_per_agent allows; finish one with task_complete first.',
        )
      for (let race = 0; race < MAX_RACES; race++) {
        const task = id === undefined ? await store.nextFor(agentId) : await this.require(id)
        if (!task) return undefined
        requireClaimable(task, agentId)
        const claimed = await this.#apply(task, this.#claimOf(task, agentId))
        if (claimed) return claimed
      }
      throw raced()
    })
  }

  /** Throws `task_not_found`, and `conflict` when the agent does not work on it (any more). */
  complete(id: string, agentId: string, result: string): Promise<StoredTask> {
    return this.change(id, (task) => {
      if (task.status !== 'in_progress') throw new Refusal('conflict', `This task is ${task.status}; claim it first.`)
      if (task.claimed_by !== agentId) throw new Refusal('conflict', 'Another agent works on this task now.')
      return {
        set: {
          status: 'completed',
          result: this.#checkText(result, 'result'),
          completed_at: this.#now(),
          lease_until: null,
        },
        event: 'completed',
        details: `completed by ${agentId}`,
        agentId,
      }
    })
  }

  /** Throws `task_not_found`. */
  async require(id: string): Promise<StoredTask> {
    const task = await this.#deps.store.find(id)
    if (!task) throw new Refusal('task_not_found', `No task ${id}`)
    return task
  }
  async find(id: string): Promise<Task | undefined> {
    const task = await this.#deps.store.find(id)
    return task && toTask(task)
  }
  async list(
    filter: TaskFilter,
    limit: number,
    offset: number,
  ): Promise<{ readonly tasks: readonly StoredTask[]; readonly total: number }> {
    const { store } = this.#deps
    const [tasks, total] = await Promise.all([store.list(filter, limit, offset), store.count(filter)])
    return { tasks, total }
  }
  async counts(): Promise<Readonly<Record<Status, number>>> {
    const counts = await this.#deps.store.counts()
    const of = (status: Status): number => counts.get(status) ?? 0
    return {
      pending: of('pending'),
      in_progress: of('in_progress'),
      completed: of('completed'),
      failed: of('failed'),
      cancelled: of('cancelled'),
    }
  }

  /** Throws `task_not_found`. Its worker cannot complete it any more. */
  async remove(id: string): Promise<void> {
    const { store, audit } = this.#deps
    for (let race = 0; race < MAX_RACES; race++) {
      const task = await this.require(id)
      const entry = audit.entry({ event: 'config_change', details: `task ${id} "${task.title}" removed` })
      if (await this.#commit(task, store.remove(id), entry)) return
    }
    throw raced()
  }
  /** Throws `task_not_found`, also for one that has not ended. Anybody may retry the task of a removed agent. */
  async retry(id: string): Promise<StoredTask> {
    const { agents } = this.#deps
    const { assigned_to: assignee } = await this.require(id)
    const isThere = assignee !== null && (await agents.find(assignee)) !== undefined
    return this.change(id, ({ status }) => {
      if (status === 'pending' || status === 'in_progress')
        throw new Refusal('task_not_found', `No failed task ${id}: it is ${status}`)
      return {
        set: { ...OPEN, assigned_to: isThere ? assignee : null, attempts: 0, completed_at: null, result: null },
        event: 'changed',
        details: 'is to be tried again',
      }
    })
  }

  /**
   * Reopens tasks that were not finished in time; one that was reopened too often fails. Then deletes those that ended
   * long ago.
   */
  async sweep(): Promise<void> {
    const { store, limits, clock } = this.#deps
    await this.reopenExpired()
    if (limits.retention_days === 0) return
    await store.commit(store.deleteEnded(toIso(clock.now() - limits.retention_days * DAY_MS)))
  }
  async reopenExpired(): Promise<void> {
    const { store, limits } = this.#deps
    for (const task of await store.expired(this.#now(), SWEEP_BATCH)) {
      const hasFailed = task.attempts >= limits.max_attempts
      await this.#apply(task, {
        set: hasFailed
          ? { status: 'failed', result: 'nobody finished it in time', completed_at: this.#now(), lease_until: null }
          : OPEN,
        event: 'changed',
        details: hasFailed ? 'failed: nobody finished it in time' : `is open again: ${task.claimed_by} took too long`,
      })
    }
  }

  /** Statements for the batch that removes an agent: what it worked on is open again, what waits for it has failed. */
  endOf(agentId: string): readonly Statement[] {
    const { store } = this.#deps
    return [store.failOf(agentId, this.#now()), store.releaseOf(agentId)]
  }
  /** The agent does not work any more: others may take what it had. */
  async release(agentId: string): Promise<void> {
    const { store } = this.#deps
    for (const task of await store.list({ claimedBy: agentId, status: 'in_progress' }, SWEEP_BATCH, 0))
      await this.#apply(task, { set: OPEN, event: 'changed', details: `is open again: ${agentId} was stopped` })
  }

  /** Throws `task_not_found`, what `decide` throws, and `conflict` when others change the task all the time. */
  async change(id: string, decide: (task: StoredTask) => Change): Promise<StoredTask> {
    for (let race = 0; race < MAX_RACES; race++) {
      const task = await this.require(id)
      const changed = await this.#apply(task, decide(task))
      if (changed) return changed
    }
    throw raced()
  }
  /** `undefined` when somebody else changed the task in between. */
  async #apply(task: StoredTask, change: Change): Promise<StoredTask | undefined> {
    const { store } = this.#deps
    const next: StoredTask = { ...task, ...change.set, revision: task.revision + 1 }
    if (!(await this.#commit(task, store.update(task, change.set), this.#entry(next, change)))) return undefined
    this.#notify(change.event, next, change.agentId)
    return next
  }
  /** Whether the statements were carried out: not when the task changed since it was read. */
  async #commit(task: StoredTask, ...statements: readonly Statement[]): Promise<boolean> {
    const { store } = this.#deps
    try {
      await store.commit(store.unchanged(task), ...statements)
      return true
    } catch (error) {
      if ((await store.find(task.id))?.revision === task.revision) throw error
      return false
    }
  }
  #claimOf(task: StoredTask, agentId: string): Change {
    const { clock, limits } = this.#deps
    return {
      set: {
        status: 'in_progress',
        claimed_by: agentId,
        claimed_at: this.#now(),
        lease_until: toIso(clock.now() + limits.claim_ttl_secs * 1000),
        attempts: task.attempts + 1,
      },
      event: 'claimed',
      details: `claimed by ${agentId}`,
      agentId,
    }
  }

  async #toRow(id: string, task: NewTask): Promise<StoredTask> {
    const { agents, audit } = this.#deps
    const { agentId, assignedTo, labels = [] } = task
    const title = task.title.trim()
    if (title === '' || title.length > MAX_TITLE)
      throw new Refusal('invalid_request', `title: expected 1 to ${MAX_TITLE} characters`)
    const isFree = assignedTo === undefined || assignedTo === ''
    const actor = currentActor()
    return {
      id,
      title,
      description: this.#checkText(task.description ?? '', 'description'),
      labels: JSON.stringify([...new Set([...labels, ...(agentId === undefined ? [] : ['UntrustedAgent'])])]),
      status: 'pending',
      assigned_to: isFree ? null : (await resolveAssignee({ agents, audit }, assignedTo, agentId)).id,
      created_by: agentId ?? (actor ? describeActor(omitUndefined({ ...actor, address: undefined })) : 'svc'),
      claimed_by: null,
      claimed_at: null,
      lease_until: null,
      attempts: 0,
      created_at: this.#now(),
      completed_at: null,
      result: null,
      revision: 0,
    }
  }
  #checkText(text: string, field: string): string {
    const { max_text_chars: max } = this.#deps.limits
    if (text.length <= max) return text
    throw new Refusal(
      'payload_too_large',
      `${field}: ${text.length} characters are more than the ${max} that plugins.tasks.max_text_chars allows`,
    )
  }
  async #refuseFull(createdBy: string, agentId: string | undefined, cause: unknown): Promise<never> {
    const { store, limits } = this.#deps
    const options = { retryAfterSecs: FULL_RETRY_SECS, cause }
    const { pending, in_progress: running } = await this.counts()
    if (pending + running >= limits.max_open)
      throw new Refusal(
        'rate_limit',
        `${limits.max_open} tasks are open already, which is all plugins.tasks.max_open allows`,
        options,
      )
    if (agentId !== undefined && (await store.openOf(createdBy)) >= limits.max_open_per_agent)
      throw new Refusal(
        'rate_limit',
        `${limits.max_open_per_agent} tasks of this agent are open already, which is all ` +
          'plugins.tasks.max_open_per_agent allows',
        options,
      )
    throw cause
  }
  /** The form that readers of the trail rely on. The title is last: its author could write anything. */
  #entry({ id, revision, title }: StoredTask, { event, details, agentId }: Omit<Change, 'set'>) {
    return this.#deps.audit.entry({
      event: `task_${event}` satisfies AuditEvent,
      details: `task ${id} revision ${revision} ${details}: "${title}"`,
      ...omitUndefined({ agentId }),
    })
  }
  #notify(name: TaskEventName, row: StoredTask, agentId: string | undefined): void {
    const eventId = `${row.id}:${row.revision}`
    this.#deps.notify(name, { eventId, task: toTask(row), agentId, at: this.#now() })
  }
  #now(): string {
    return toIso(this.#deps.clock.now())
  }
}

/** Nobody works on it. */
const OPEN = { status: 'pending', claimed_by: null, claimed_at: null, lease_until: null } as const

export function toTask(row: StoredTask): Task {
  return {
    id: row.id,
    title: row.title,
    description: row.description,
    status: row.status,
    assignedTo: row.assigned_to ?? undefined,
    createdBy: row.created_by,
    claimedBy: row.claimed_by ?? undefined,
    result: row.result ?? undefined,
    labels: labelsOf(row),
    revision: row.revision,
    createdAt: row.created_at,
  }
}
function requireClaimable({ status, assigned_to: assignee }: StoredTask, agentId: string): void {
  if (assignee !== null && assignee !== agentId) throw new Refusal('forbidden', 'This task is for another agent.')
  if (status !== 'pending') throw new Refusal('conflict', `This task is ${status}: nobody can claim it.`)
}
const raced = (): Refusal =>
  new Refusal('conflict', 'Others change this task all the time; try again.', { retryAfterSecs: 1 })
