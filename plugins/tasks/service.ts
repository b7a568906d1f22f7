import { findNearest, suggest } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Limits, Status, TaskRow } from './schema.ts'
import type { TaskStore } from './store.ts'

export interface NewTask {
  readonly title: string
  readonly description: string
  readonly assignedTo: string | undefined
  readonly createdBy: string
}

/** The service, whose code is loaded by its first use. */
export type LazyTasks = () => Promise<Tasks>

/** The queue that all agents share. */
export class Tasks {
  readonly #store: TaskStore
  readonly #agents: Agents
  readonly #audit: Audit
  readonly #limits: Limits
  readonly #now: () => number
  /** Runs what operators do one after the other, so that a task does not change between its check and its update. */
  readonly #operations = new SerialQueue()
  constructor(store: TaskStore, agents: Agents, audit: Audit, limits: Limits, now: () => number = Date.now) {
    this.#store = store
    this.#agents = agents
    this.#audit = audit
    this.#limits = limits
    this.#now = now
  }

  /** Throws `agent_not_found` for an unknown assignee, and `rate_limit` when too many tasks are open. */
  async post({ title, description, assignedTo, createdBy }: NewTask): Promise<string> {
    const id = crypto.randomUUID()
    const assignee = assignedTo === undefined || assignedTo === '' ? undefined : await this.#resolve(assignedTo)
    try {
      await this.#store.commit(
        this.#store.insert(
          { id, title, description, assigned_to: assignee ?? null, created_by: createdBy, created_at: this.#iso() },
          this.#limits.max_open,
        ),
        this.#audit.entry({ event: 'tool_invoked', agentId: createdBy, details: `task ${id} posted` }),
      )
    } catch (error) {
      const { pending, inProgress } = await this.counts()
      if (pending + inProgress < this.#limits.max_open) throw error
      throw new Refusal(
        'rate_limit',
        `${this.#limits.max_open} tasks are open already, which is all plugins.tasks.max_open allows`,
        { retryAfterSecs: 60, cause: error },
      )
    }
    return id
  }

  /** The oldest task that waits for this agent or for anyone; `undefined` when none does. */
  async claim(agentId: string): Promise<TaskRow | undefined> {
    await this.sweep()
    const now = this.#now()
    for (;;) {
      const task = await this.#store.claim(
        agentId,
        crypto.randomUUID(),
        this.#iso(now),
        this.#iso(now + this.#limits.claim_ttl_secs * 1000),
      )
      if (task) return task
      // Another process may have claimed the found task while others are open: then look again.
      const waiting = (await this.#store.list('pending', 1000, 0)).some(
        ({ assigned_to: to }) => to === null || to === agentId,
      )
      if (!waiting) return undefined
    }
  }

  /** Throws `task_not_found`, and `conflict` when the agent does not work on it (any more). */
  async complete(id: string, agentId: string, result: string): Promise<void> {
    if (await this.#store.complete(id, agentId, result, this.#iso())) return
    const task = await this.require(id)
    throw new Refusal(
      'conflict',
      task.status === 'in_progress'
        ? 'Another agent works on this task now.'
        : `This task is ${task.status}; claim it first.`,
    )
  }

  /** Throws `task_not_found`. */
  async require(id: string): Promise<TaskRow> {
    const task = await this.#store.find(id)
    if (!task) throw new Refusal('task_not_found', `No task ${id}`)
    return task
  }
  async list(
    status: Status | undefined,
    limit: number,
    offset: number,
  ): Promise<{ readonly tasks: readonly TaskRow[]; readonly total: number }> {
    const [tasks, counts] = await Promise.all([this.#store.list(status, limit, offset), this.#store.counts()])
    return {
      tasks,
      total:
        status === undefined ? [...counts.values()].reduce((sum, count) => sum + count, 0) : (counts.get(status) ?? 0),
    }
  }
  async counts(): Promise<{
    readonly pending: number
    readonly inProgress: number
    readonly completed: number
    readonly failed: number
  }> {
    const counts = await this.#store.counts()
    return {
      pending: counts.get('pending') ?? 0,
      inProgress: counts.get('in_progress') ?? 0,
      completed: counts.get('completed') ?? 0,
      failed: counts.get('failed') ?? 0,
    }
  }
  /** Throws `task_not_found`. Its worker cannot complete it any more. */
  remove(id: string): Promise<void> {
    return this.#operations.run(async () => {
      const { title } = await this.require(id)
      await this.#store.commit(
        this.#store.remove(id),
        this.#audit.entry({ event: 'config_change', details: `task ${id} "${title}" removed` }),
      )
    })
  }
  /** Throws `task_not_found`, also for one that has not failed. Anybody may retry the task of a removed agent. */
  retry(id: string): Promise<void> {
    return this.#operations.run(async () => {
      const { status, title, assigned_to: assignee } = await this.require(id)
      if (status !== 'failed') throw new Refusal('task_not_found', `No failed task ${id}: it is ${status}`)
      const isThere = assignee !== null && (await this.#agents.find(assignee)) !== undefined
      await this.#store.commit(
        this.#store.retry(id, isThere ? assignee : null),
        this.#audit.entry({ event: 'config_change', details: `task ${id} "${title}" is to be tried again` }),
      )
    })
  }
  async sweep(): Promise<void> {
    const { max_attempts: attempts, retention_days: days } = this.#limits
    await this.#store.sweep(this.#iso(), attempts, days === 0 ? undefined : this.#iso(this.#now() - days * 86_400_000))
  }
  release(agentId: string): Promise<void> {
    return this.#store.release(agentId, this.#iso())
  }

  #iso(ms = this.#now()): string {
    return new Date(ms).toISOString()
  }
  async #resolve(name: string): Promise<string> {
    const found =
      (/^[0-9a-f-]{36}$/i.test(name) ? await this.#agents.find(name) : undefined) ??
      (await this.#agents.findByName(name))
    if (!found)
      throw new Refusal(
        'agent_not_found',
        `There is no agent "${name}" to assign the task to${suggest(
          findNearest(
            name,
            (await this.#agents.list()).map((one) => one.name),
          ),
        )}`,
      )
    return found.id
  }
}
