import { v7 } from 'uuid'
import { toIso } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit } from '../audit/contract.ts'
import type { Settings } from './config.ts'
import type { Goal } from './contract.ts'
import type { GoalFilter, GoalStore } from './store.ts'
import type { GoalFields } from './schema.ts'
import type { StoredGoal } from './row.ts'

export type GoalChange = 'created' | 'updated' | 'deleted'
export interface GoalsDeps {
  readonly store: GoalStore
  readonly agents: Pick<Agents, 'resolve'>
  readonly audit: Pick<Audit, 'entry'>
  readonly settings: Settings
  readonly changed: (change: GoalChange, goals: readonly Goal[]) => void
  readonly now: () => number
}

/** Goals, for routes and tools. */
export class Goals {
  readonly #deps: GoalsDeps
  /** A goal does not change between its check and its update. */
  readonly #changes = new SerialQueue()
  constructor(deps: GoalsDeps) {
    this.#deps = deps
  }

  /** Throws `agent_not_found`, `goal_not_found` for an unknown parent, and `rate_limit` when there are too many. */
  create(
    fields: GoalFields & { readonly title: string },
    options: { readonly id?: string | undefined; readonly createdBy?: string } = {},
  ): Promise<Goal> {
    return this.#changes.run(async () => {
      const { store, agents, audit, settings, changed, now } = this.#deps
      const { id = v7(), createdBy } = options
      const parentId = fields.parent_id ?? undefined
      const agent = fields.agent_id ? await agents.resolve(fields.agent_id) : undefined
      await this.#checkPlace(id, parentId, 1)
      const at = toIso(now())
      const goal: Goal = {
        id,
        title: fields.title,
        description: fields.description ?? '',
        status: fields.status ?? 'pending',
        progress: fields.progress ?? 0,
        agentId: agent?.id,
        parentId,
        dueAt: toUtc(fields.due_at),
        createdBy,
        createdAt: at,
        updatedAt: at,
      }
      const entry = audit.entry({ event: 'goal_changed', ...concerning(goal), details: `${nameOf(goal)} was made` })
      try {
        await store.commit([store.insert(goal, settings.max_goals, settings.max_depth), entry])
      } catch (error) {
        // Another daemon may have moved the goals above it meanwhile.
        await this.#checkPlace(id, parentId, 1)
        if ((await store.count({})) < settings.max_goals) throw error
        throw new Refusal(
          'rate_limit',
          `There are ${settings.max_goals} goals already, which is all plugins.goals.max_goals allows: delete some`,
          { retryAfterSecs: 60, cause: error },
        )
      }
      changed('created', [goal])
      return goal
    })
  }

  /** Fields that are left out stay. `check` may refuse the goal. Throws what `create` does. */
  change(id: string, fields: GoalFields, check?: (goal: Goal) => void): Promise<Goal> {
    return this.#changes.run(async () => {
      const { agents, now } = this.#deps
      const before = await this.require(id)
      check?.(before)
      const { agent_id: agentName, parent_id: parent, due_at: due } = fields
      const agentId = agentName ? (await agents.resolve(agentName)).id : agentName === null ? undefined : before.agentId
      const parentId = parent === undefined ? before.parentId : (parent ?? undefined)
      if (parentId !== before.parentId) await this.#checkMove(id, parentId)
      const after: StoredGoal = {
        ...before,
        title: fields.title ?? before.title,
        description: fields.description ?? before.description,
        status: fields.status ?? before.status,
        progress: fields.progress ?? before.progress,
        agentId,
        parentId,
        dueAt: due === undefined ? before.dueAt : toUtc(due),
        updatedAt: toIso(now()),
      }
      await this.#commit(before, after)
      return after
    })
  }
  async #commit(before: StoredGoal, after: StoredGoal): Promise<void> {
    const { store, audit, changed, settings } = this.#deps
    const isMove = after.parentId !== before.parentId
    const change = { before: toRecord(before), after: toRecord(after) }
    const details = `${nameOf(after)} was changed`
    try {
      await store.commit([
        store.update(after, isMove ? settings.max_depth : undefined),
        audit.entry({ event: 'goal_changed', ...concerning(after), details, change }),
      ])
    } catch (cause) {
      const found = await store.find(after.id)
      const isMoved = after.parentId !== undefined && (await store.above(after.parentId)).includes(after.id)
      if (found?.version === before.version && !isMoved) {
        if (isMove) await this.#checkMove(after.id, after.parentId)
        throw cause
      }
      throw new Refusal('conflict', 'Goals changed at the same moment; read this one again and repeat the change', {
        cause,
      })
    }
    changed('updated', [after])
  }

  /** With everything below it, at once. Returns how many were deleted. */
  remove(id: string): Promise<number> {
    return this.#changes.run(async () => {
      const { store, audit, changed } = this.#deps
      const goal = await this.require(id)
      const gone = await store.subtree(id)
      const below = gone.length === 1 ? '' : ` with ${gone.length - 1} below it`
      const details = `${nameOf(goal)} was deleted${below}`
      await store.commit([store.remove(id), audit.entry({ event: 'goal_changed', ...concerning(goal), details })])
      changed('deleted', gone)
      return gone.length
    })
  }

  find(id: string): Promise<StoredGoal | undefined> {
    return this.#deps.store.find(id)
  }
  /** Throws `goal_not_found`. */
  async require(id: string): Promise<StoredGoal> {
    const goal = await this.find(id)
    if (!goal) throw new Refusal('goal_not_found', `There is no goal ${id}`)
    return goal
  }
  async list(filter: GoalFilter, limit: number, offset: number) {
    const { store } = this.#deps
    const [goals, total] = await Promise.all([store.list(filter, limit, offset), store.count(filter)])
    return { goals, total }
  }
  async children(id: string): Promise<readonly Goal[]> {
    await this.require(id)
    return this.#deps.store.children(id)
  }
  ofAgent(agentId: string, status: Goal['status'] | undefined, limit: number): Promise<readonly Goal[]> {
    return this.#deps.store.ofAgent(agentId, status, limit)
  }

  async #checkMove(id: string, parentId: string | undefined): Promise<void> {
    if (parentId === undefined) return
    const below = await this.#deps.store.subtree(id)
    if (parentId === id) throw new Refusal('invalid_request', 'parent_id: a goal cannot be its own parent')
    if (below.some((goal) => goal.id === parentId))
      throw new Refusal('invalid_request', `parent_id: goal ${parentId} is below this one, so both would be in a cycle`)
    await this.#checkPlace(id, parentId, heightOf(id, below))
  }
  /** Whether a tree of goals of this height has a place there. */
  async #checkPlace(id: string, parentId: string | undefined, height: number): Promise<void> {
    if (parentId === undefined) return
    const { store, settings } = this.#deps
    if (parentId === id) throw new Refusal('invalid_request', 'parent_id: a goal cannot be its own parent')
    const above = await store.above(parentId)
    if (above.length === 0) throw new Refusal('goal_not_found', `parent_id: there is no goal ${parentId}`)
    if (above.length + height > settings.max_depth)
      throw new Refusal(
        'invalid_request',
        `parent_id: that would be ${above.length + height} levels; plugins.goals.max_depth allows ${settings.max_depth}`,
      )
  }
}

/** Levels of a tree of goals. */
function heightOf(root: string, goals: readonly Goal[]): number {
  let height = 0
  for (let level = [root]; level.length > 0; height++) {
    const parents = new Set(level)
    level = goals
      .filter(({ id, parentId }) => id !== root && parentId !== undefined && parents.has(parentId))
      .map(({ id }) => id)
  }
  return height
}

const nameOf = ({ id, title }: Goal): string => `goal ${id} "${title}"`
const concerning = ({ agentId }: Goal) => (agentId === undefined ? {} : { agentId })
const toUtc = (time: string | null | undefined): string | undefined => (time ? toIso(Date.parse(time)) : undefined)

function toRecord({ title, status, progress, agentId, parentId, dueAt, description }: Goal): Record<string, unknown> {
  return { title, description, status, progress, agent_id: agentId, parent_id: parentId, due_at: dueAt }
}
