import { v7 } from 'uuid'
import { currentActor, describeActor } from 'svc/internal'
import { omitUndefined, Refusal, SerialQueue } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Queue } from '../queue/contract.ts'
import { resolveAssignee } from './assignee.ts'
import { OPEN, raced } from './changes.ts'
import type { Change, TaskChanges } from './changes.ts'
import type { Limits } from './config.ts'
import type { NewTask, Task, Tasks } from './contract.ts'
import { behalfOf, labelsOf, toTask } from './rows/row.ts'
import type { StoredTask } from './rows/row.ts'
import { MAX_TITLE } from './schema.ts'
import type { PatchBody } from './schema.ts'
import type { Status } from './statuses.ts'
import type { TaskFilter, TaskStore } from './rows/store.ts'

const FULL_RETRY_SECS = 60
const MAX_RACES = 20

export interface TaskServiceDeps {
  readonly store: TaskStore
  readonly changes: TaskChanges
  readonly agents: Agents
  readonly audit: Audit
  readonly queue: Pick<Queue, 'admit'>
  readonly limits: Limits
  /** Before a claim: what was not finished in time can be claimed. */
  readonly reopenExpired: () => Promise<void>
}
/** Who asks for a change: an agent, or a person when absent. */
type Caller = string | undefined

/** The tasks that all agents share. */
export class TaskService implements Tasks {
  readonly #deps: TaskServiceDeps
  /** One claim at a time, so that a limit holds, and two agents do not go for the same task. */
  readonly #claims = new SerialQueue()
  constructor(deps: TaskServiceDeps) {
    this.#deps = deps
  }

  async post(task: NewTask): Promise<Task> {
    const { store, changes, limits, queue } = this.#deps
    const { id = v7(), agentId } = task
    const known = task.id === undefined ? undefined : await store.find(id)
    if (known) return toTask(known)
    const row = await this.#toRow(id, task)
    const wakes = changes.wakeOf(row, {})
    if (wakes.length > 0) await queue.admit(row.assigned_to ?? undefined)
    const ofCreator = agentId === undefined ? limits.max_open : limits.max_open_per_agent
    const details = `posted for ${row.assigned_to ?? 'anyone'}`
    try {
      await store.commit(
        store.insert(row, { open: limits.max_open, ofCreator }),
        changes.entry(row, { event: 'posted', details, agentId }),
        ...wakes,
      )
    } catch (error) {
      const added = await store.find(id)
      if (added) return toTask(added)
      return this.#refuseFull(row.created_by, agentId, error)
    }
    changes.notify('posted', row, agentId)
    return toTask(row)
  }

  /** The oldest task that waits for this agent or for anyone, or the one with this id; `undefined` when none waits. */
  claim(agentId: string, id?: string): Promise<StoredTask | undefined> {
    return this.#claims.run(async () => {
      const { store, changes, reopenExpired } = this.#deps
      await reopenExpired()
      await this.requireCapacity(agentId)
      for (let race = 0; race < MAX_RACES; race++) {
        const task = id === undefined ? await store.nextFor(agentId) : await changes.require(id)
        if (!task) return undefined
        requireClaimable(task, agentId)
        const claimed = await changes.apply(task, this.claimOf(task, agentId))
        if (claimed) return claimed
      }
      throw raced()
    })
  }
  /** Throws `conflict` when the agent works on as many tasks as it may. */
  async requireCapacity(agentId: string): Promise<void> {
    const { store, limits } = this.#deps
    if ((await store.claimedOf(agentId)) < limits.max_claimed_per_agent) return
    throw new Refusal(
      'conflict',
      `This agent works on ${limits.max_claimed_per_agent} tasks already, which is all that ` +
        'plugins.tasks.max_claimed_per_agent allows; finish one with task_complete first.',
    )
  }
  /** `turn`: begun for it by a job of the queue. */
  claimOf({ attempts }: StoredTask, agentId: string, turn?: { readonly id: string; readonly jobId: string }): Change {
    const { changes, limits } = this.#deps
    return {
      set: {
        status: 'in_progress',
        claimed_by: agentId,
        claimed_at: changes.now(),
        lease_until: changes.now(limits.claim_ttl_secs * 1000),
        attempts: attempts + 1,
        claim_id: turn?.jobId ?? null,
        turn_id: turn?.id ?? null,
      },
      event: 'claimed',
      details: `claimed by ${agentId}`,
      agentId,
    }
  }

  /** Throws `task_not_found`, and `conflict` when the agent does not work on it (any more). */
  complete(id: string, agentId: string, result: string): Promise<StoredTask> {
    return this.#deps.changes.change(id, (task) => {
      if (task.status !== 'in_progress') throw new Refusal('conflict', `This task is ${task.status}; claim it first.`)
      if (task.claimed_by !== agentId) throw new Refusal('conflict', 'Another agent works on this task now.')
      return this.endOf('completed', this.#checkText(result, 'result'), agentId)
    })
  }
  /** The change that ends a task. */
  endOf(status: 'completed' | 'failed' | 'cancelled', result: string | null, agentId?: string): Change {
    const { changes } = this.#deps
    return {
      set: { status, result, completed_at: changes.now(), lease_until: null },
      event: status === 'completed' ? 'completed' : 'changed',
      details: `${status}${agentId === undefined ? '' : ` by ${agentId}`}`,
      agentId,
    }
  }
  /** Throws `task_not_found`, `conflict` for one that has ended, and `forbidden` when another agent posted it. */
  cancel(id: string, caller?: Caller): Promise<StoredTask> {
    return this.#deps.changes.change(id, (task) => {
      requireOwn(task, caller)
      if (task.status !== 'pending' && task.status !== 'in_progress')
        throw new Refusal('conflict', `The task is ${task.status} already`)
      return this.endOf('cancelled', task.result, caller)
    })
  }
  /** The same for a batch of somebody else's, which fails when the task changed since it was read. */
  cancelling(task: StoredTask, reason: string): readonly Statement[] {
    const { store, changes } = this.#deps
    return [store.unchanged(task), ...changes.statementsOf(task, this.endOf('cancelled', reason))]
  }
  stored(id: string): Promise<StoredTask | undefined> {
    return this.#deps.store.find(id)
  }
  /** Throws `task_not_found`, also for one that has not ended. Anybody may retry the task of a removed agent. */
  async retry(id: string, caller?: Caller): Promise<StoredTask> {
    const { agents, changes } = this.#deps
    const { assigned_to: assignee } = await changes.require(id)
    const isThere = assignee !== null && (await agents.find(assignee)) !== undefined
    return changes.change(id, (task) => {
      requireOwn(task, caller)
      if (task.status === 'pending' || task.status === 'in_progress')
        throw new Refusal('task_not_found', `No failed task ${id}: it is ${task.status}`)
      return {
        set: { ...OPEN, assigned_to: isThere ? assignee : null, attempts: 0, completed_at: null, result: null },
        event: 'changed',
        details: 'is to be tried again',
        agentId: caller,
      }
    })
  }
  /** By a person. Throws `task_not_found`, `agent_not_found`, and `conflict` for what its state does not allow. */
  async edit(id: string, body: PatchBody): Promise<StoredTask> {
    const { agents, changes } = this.#deps
    const { title, description, assigned_to: assignee, status, result } = body
    if (result !== undefined && status !== 'completed' && status !== 'failed')
      throw new Refusal('invalid_request', 'result: only together with the status completed or failed')
    const hasTexts = title !== undefined || description !== undefined || assignee !== undefined
    const assigned = assignee === undefined || assignee === null ? assignee : (await agents.resolve(assignee)).id
    if (hasTexts && status !== undefined)
      throw new Refusal('invalid_request', 'status: change it in a request of its own')
    if (status === 'cancelled') return this.cancel(id)
    if (status === 'pending') return this.#reopen(id)
    if (status !== undefined) return this.#end(id, status, result)
    if (!hasTexts) return changes.require(id)
    return changes.change(id, (task) => {
      if (task.status !== 'pending')
        throw new Refusal('conflict', `The task is ${task.status}; only one that is pending can be edited`)
      const texts = omitUndefined({ title, description: this.#checkText(description, 'description') })
      const labels = JSON.stringify([...new Set([...labelsOf(task), 'UserInput'])])
      const set = {
        ...texts,
        ...omitUndefined({ assigned_to: assigned }),
        ...(Object.keys(texts).length > 0 && { labels }),
      }
      return { set, event: 'changed', details: `edited (${Object.keys(set).join(', ')})` }
    })
  }

  /** Throws `task_not_found`. */
  require(id: string): Promise<StoredTask> {
    return this.#deps.changes.require(id)
  }
  /** Throws `task_not_found`, also for one that is no business of this agent. */
  async requireVisible(id: string, agentId: string): Promise<StoredTask> {
    const task = await this.#deps.store.find(id)
    if (!task || !isVisibleTo(task, agentId)) throw new Refusal('task_not_found', `No task ${id}`)
    return task
  }
  async visibleTo(agentId: string, status: Status | undefined, limit: number): Promise<readonly StoredTask[]> {
    const { store } = this.#deps
    return (await store.visibleTo(agentId, status, limit)).filter((task) => isVisibleTo(task, agentId))
  }
  async find(id: string): Promise<Task | undefined> {
    const task = await this.#deps.store.find(id)
    return task && toTask(task)
  }
  async list(filter: TaskFilter, limit: number, offset: number) {
    const { store } = this.#deps
    const [tasks, total] = await Promise.all([store.list(filter, limit, offset), store.count(filter)])
    return { tasks, total }
  }
  counts() {
    return this.#deps.store.counts()
  }
  /** Throws `task_not_found`. */
  remove(id: string): Promise<void> {
    const { changes, audit } = this.#deps
    return changes.remove(id, ({ title }) =>
      audit.entry({ event: 'config_change', details: `task ${id} "${title}" removed` }),
    )
  }

  /** Whoever works on it, works on it no more; one that has ended is tried again. */
  async #reopen(id: string): Promise<StoredTask> {
    const { status } = await this.require(id)
    if (status !== 'in_progress') return this.retry(id)
    return this.#deps.changes.change(id, (task) => {
      if (task.status !== 'in_progress') throw new Refusal('conflict', `The task is ${task.status} meanwhile`)
      return { set: OPEN, event: 'changed', details: `is open again, taken from ${task.claimed_by}` }
    })
  }
  #end(id: string, status: 'completed' | 'failed', result: string | undefined): Promise<StoredTask> {
    return this.#deps.changes.change(id, (task) => {
      if (task.status !== 'pending' && task.status !== 'in_progress')
        throw new Refusal('conflict', `The task is ${task.status} already`)
      return this.endOf(status, this.#checkText(result, 'result') ?? null)
    })
  }
  async #toRow(id: string, task: NewTask): Promise<StoredTask> {
    const { agents, audit, changes, limits } = this.#deps
    const { agentId, assignedTo, labels = [] } = task
    const title = task.title.trim()
    if (title === '' || title.length > MAX_TITLE)
      throw new Refusal('invalid_request', `title: expected 1 to ${MAX_TITLE} characters`)
    const description = this.#checkText(task.description ?? '', 'description')
    const onBehalf = this.#behalfOf(task)
    const isFree = assignedTo === undefined || assignedTo === ''
    const actor = currentActor()
    return {
      id,
      title,
      description,
      labels: JSON.stringify([...new Set([...labels, agentId === undefined ? 'UserInput' : 'UntrustedAgent'])]),
      status: 'pending',
      assigned_to: isFree ? null : (await resolveAssignee({ agents, audit }, assignedTo, agentId)).id,
      created_by: agentId ?? (actor ? describeActor(omitUndefined({ ...actor, address: undefined })) : 'svc'),
      on_behalf: JSON.stringify(onBehalf),
      claimed_by: null,
      claim_id: null,
      claimed_at: null,
      lease_until: null,
      attempts: 0,
      created_at: changes.now(),
      completed_at: null,
      result: null,
      revision: 0,
      wake: (task.wake ?? limits.wake_assignee) ? 1 : 0,
      turn_id: null,
      hops: task.hops ?? 0,
    }
  }
  /** Agents that work for each other by tasks. Throws `conflict` when they are too many in a row. */
  #behalfOf({ agentId, onBehalf = [] }: NewTask): readonly string[] {
    const { limits } = this.#deps
    if (agentId === undefined) return []
    const chain = [...onBehalf, agentId]
    if (chain.length <= limits.max_depth) return chain
    throw new Refusal(
      'conflict',
      `This turn works on a task already that was posted ${limits.max_depth} tasks deep ` +
        '(plugins.tasks.max_depth): it cannot post another one. Do it yourself, or say that you cannot.',
    )
  }
  #checkText<T extends string | undefined>(text: T, field: string): T {
    const { max_text_chars: max } = this.#deps.limits
    if (text === undefined || text.length <= max) return text
    throw new Refusal(
      'payload_too_large',
      `${field}: ${text.length} characters are more than the ${max} that plugins.tasks.max_text_chars allows`,
    )
  }
  async #refuseFull(createdBy: string, agentId: Caller, cause: unknown): Promise<never> {
    const { store, limits } = this.#deps
    const { pending, in_progress: running } = await this.counts()
    const full = (max: number, what: string, key: string): Refusal =>
      new Refusal('rate_limit', `${max} tasks ${what}are open already, which is all plugins.tasks.${key} allows`, {
        retryAfterSecs: FULL_RETRY_SECS,
        cause,
      })
    if (pending + running >= limits.max_open) throw full(limits.max_open, '', 'max_open')
    if (agentId !== undefined && (await store.openOf(createdBy)) >= limits.max_open_per_agent)
      throw full(limits.max_open_per_agent, 'of this agent ', 'max_open_per_agent')
    throw cause
  }
}

/** Whether it is an agent's business: it posted it, does it or had it posted, or may take it now. */
function isVisibleTo(task: StoredTask, agentId: string): boolean {
  const { assigned_to: assignee, claimed_by: claimant, created_by: creator, status } = task
  if ([assignee, claimant, creator].includes(agentId) || behalfOf(task).includes(agentId)) return true
  return assignee === null && status === 'pending'
}
function requireClaimable({ status, assigned_to: assignee }: StoredTask, agentId: string): void {
  if (assignee !== null && assignee !== agentId) throw new Refusal('forbidden', 'This task is for another agent.')
  if (status !== 'pending') throw new Refusal('conflict', `This task is ${status}: nobody can claim it.`)
}
function requireOwn({ created_by: creator }: StoredTask, caller: Caller): void {
  if (caller !== undefined && caller !== creator)
    throw new Refusal('forbidden', 'This agent did not post that task: it cannot change it.')
}
