import { v7 } from 'uuid'
import type { Clock, TellChange } from 'svc/internal'
import { Refusal, SerialQueue } from 'svc/sdk'
import type { Statement } from 'svc/sdk'
import type { Agent, Agents } from '../agents/contract.ts'
import type { Audit, AuditFeed } from '../audit/contract.ts'
import type { Queue } from '../queue/contract.ts'
import type { ResultDelivery } from '../result-delivery/contract.ts'
import type { Label } from '../sessions/contract.ts'
import type { WorkflowRuns } from '../workflows/contract.ts'
import type { TriggerBody } from './body.ts'
import type { Settings } from './config.ts'
import { LANE } from './dispatcher.ts'
import { parsePattern, renderPattern } from './events/pattern.ts'
import { DEFAULT_TEMPLATE } from './firings/prompt.ts'
import type { FiringStore } from './firings/store.ts'
import type { TriggerStore } from './definitions/store.ts'
import { receiverOf } from './trigger.ts'
import type { Firing, Trigger } from './trigger.ts'

export interface ServiceDeps {
  readonly store: TriggerStore
  readonly firings: FiringStore
  readonly agents: Pick<Agents, 'find' | 'resolve'>
  readonly audit: Pick<Audit, 'entry'>
  readonly feed: Pick<AuditFeed, 'newest'>
  readonly queue: Pick<Queue, 'cancel'>
  readonly delivery: Pick<ResultDelivery, 'check'>
  readonly workflows: () => Pick<WorkflowRuns, 'resolve'> | undefined
  readonly settings: Settings
  readonly clock: Clock
  /** Triggers were changed. */
  readonly changed: () => void
  /** The same for the other daemons on the database. */
  readonly tell: TellChange
}
/** Who makes or changes a trigger. */
export interface Author {
  /** The agent, when one did it by a tool. */
  readonly agentId?: string
  /** The agents for which it does so, itself the last. */
  readonly onBehalf?: readonly string[]
  /** Where its words come from. */
  readonly labels?: readonly Label[]
  /** Daemons that the request came through. */
  readonly hops?: number | undefined
}
const BY_HAND = 'disabled by hand'
const BY_AGENT = 'disabled by the agent that made it'
const MAX_ATTEMPTS = 5

/** The triggers, for routes, tools and pages. */
export class Triggers {
  readonly #deps: ServiceDeps
  /** A trigger does not change between its check and its update. */
  readonly #changes = new SerialQueue()
  constructor(deps: ServiceDeps) {
    this.#deps = deps
  }

  /**
   * Throws `invalid_request` that names the field, `agent_not_found`, `forbidden` for a receiver that the agent must
   * not reach, and `conflict` when there are too many.
   */
  async create(body: TriggerBody, id: string | undefined, author: Author = {}): Promise<Trigger> {
    const { store, changed } = this.#deps
    if (body.agent_id === undefined) throw missing('agent_id')
    const agent = await this.#deps.agents.resolve(body.agent_id)
    const { trigger, statements } = await this.prepare(body, id ?? v7(), agent, author)
    try {
      await store.commit([store.touch(), ...statements])
    } catch (error) {
      await this.#checkLimits(agent, error)
      throw error
    }
    changed()
    return trigger
  }
  /**
   * The same for a batch of the caller, which begins with `store.touch()`. The agent need not be there yet. Throws
   * `invalid_request` that names the field.
   */
  async prepare(
    body: TriggerBody,
    id: string,
    agent: Pick<Agent, 'id' | 'name'>,
    author: Author = {},
  ): Promise<{ readonly trigger: Trigger; readonly statements: readonly Statement[] }> {
    const { store, audit, feed, settings, clock } = this.#deps
    if (body.pattern === undefined) throw missing('pattern')
    const now = clock.now()
    const base: Trigger = {
      id,
      agentId: agent.id,
      targetAgentId: undefined,
      pattern: parsePattern(body.pattern),
      promptTemplate: DEFAULT_TEMPLATE,
      enabled: true,
      fireCount: 0,
      maxFires: 0,
      cooldownSecs: undefined,
      sessionMode: undefined,
      workflowId: undefined,
      delivery: [],
      since: await feed.newest(),
      reason: undefined,
      createdBy: author.agentId,
      onBehalf: author.onBehalf ?? [],
      labels: author.labels ?? [],
      hops: author.hops ?? 0,
      lastFired: undefined,
      createdAt: now,
      updatedAt: now,
    }
    const trigger = await this.#apply(base, body, author)
    const details = `trigger ${trigger.id} for agent "${agent.name}" was made: ${describe(trigger)}`
    const statements = [
      store.insert(trigger, settings),
      audit.entry({ event: 'trigger_changed', agentId: agent.id, details }),
      ...this.#deps.tell(trigger.id),
    ]
    return { trigger, statements }
  }

  /** Fields that are left out stay. Throws what `create` does, `trigger_not_found`, and `conflict`. */
  change(id: string, body: TriggerBody, author: Author = {}): Promise<Trigger> {
    return this.#changes.run(async () => {
      const { store, changed } = this.#deps
      for (let attempt = 1; ; attempt++) {
        const { generation } = await store.cursor()
        const before = await this.require(id)
        const after = await this.#changed(before, body, author)
        const details = `trigger ${id} was changed`
        const change = { before: toRecord(before), after: toRecord(after) }
        try {
          await store.commit([
            store.touchFrom(generation),
            store.update(after),
            this.#entry(after, details, change),
            ...this.#deps.tell(id),
          ])
        } catch (error) {
          if (attempt === MAX_ATTEMPTS || (await store.cursor()).generation === generation) throw error
          continue
        }
        changed()
        return this.require(id)
      }
    })
  }
  async #changed(before: Trigger, body: TriggerBody, author: Author): Promise<Trigger> {
    const { feed, clock } = this.#deps
    const agentId = body.agent_id === undefined ? before.agentId : (await this.#deps.agents.resolve(body.agent_id)).id
    const after = { ...(await this.#apply(before, body, author)), agentId, updatedAt: clock.now() }
    const isStarted = after.enabled && !before.enabled
    if (after.enabled && after.maxFires > 0 && after.fireCount >= after.maxFires) {
      if (body.enabled === true)
        throw new Refusal(
          'conflict',
          `It fired ${after.fireCount} times, which is all that max_fires (${after.maxFires}) allows; raise max_fires`,
        )
      return { ...after, enabled: false, reason: `it fired ${after.fireCount} times, as often as it may` }
    }
    if (isStarted && !(await this.#deps.agents.find(receiverOf(after))))
      throw new Refusal('conflict', 'Its agent was removed; make a new trigger, or give it another agent_id')
    // What happened while it was off, or before it asked for such events, is not made up for.
    const isNew = isStarted || body.pattern !== undefined
    return {
      ...after,
      since: isNew ? await feed.newest() : before.since,
      reason: after.enabled
        ? undefined
        : body.enabled === false
          ? author.agentId === undefined
            ? BY_HAND
            : BY_AGENT
          : before.reason,
    }
  }

  /** Its history goes with it; a firing that waits or runs is stopped. */
  remove(id: string): Promise<void> {
    return this.#changes.run(async () => {
      const { store } = this.#deps
      const { statements, after } = await this.removing(await this.require(id))
      await store.commit([store.touch(), ...statements])
      await after()
    })
  }
  /** The same for a batch of the caller, which begins with `store.touch()`, and who calls `after` when it is on disk. */
  async removing(trigger: Trigger): Promise<{
    readonly statements: readonly Statement[]
    readonly after: () => Promise<void>
  }> {
    const { id } = trigger
    const { store, firings, queue, changed } = this.#deps
    const open = await firings.open(id)
    return {
      statements: [...store.remove(id), this.#entry(trigger, `trigger ${id} was removed`)],
      after: async () => {
        for (const firing of open) await queue.cancel(LANE, firing.id)
        changed()
      },
    }
  }

  /** For a batch of somebody else's; `stopFirings` is called after it. */
  disabling(trigger: Trigger, reason: string): readonly Statement[] {
    const { store, clock, tell } = this.#deps
    const change = { before: toRecord(trigger), after: toRecord({ ...trigger, enabled: false }) }
    return [
      store.touch(),
      store.disable(trigger.id, reason, clock.now()),
      this.#entry(trigger, `trigger ${trigger.id} was changed`, change),
      ...tell(trigger.id),
    ]
  }
  /** Those that wait or run. */
  async stopFirings(id: string): Promise<void> {
    const { firings, queue, changed } = this.#deps
    for (const firing of await firings.open(id)) await queue.cancel(LANE, firing.id)
    changed()
  }

  find(id: string): Promise<Trigger | undefined> {
    return this.#deps.store.find(id)
  }
  /** Throws `trigger_not_found`. */
  async require(id: string): Promise<Trigger> {
    const found = await this.find(id)
    if (!found) throw new Refusal('trigger_not_found', `There is no trigger ${id}`)
    return found
  }
  list(agentId: string | undefined, limit: number, offset: number): Promise<readonly Trigger[]> {
    return this.#deps.store.list(agentId, limit, offset)
  }
  /** Newest first. Throws `trigger_not_found`. */
  async history(id: string, before: number, limit: number): Promise<readonly Firing[]> {
    await this.require(id)
    return this.#deps.firings.list(id, before, limit)
  }
  async deleteOld(): Promise<void> {
    const { firings, store, settings, clock } = this.#deps
    const now = clock.now()
    await store.commit(firings.deleteOld(now - settings.retention_days * 86_400_000, now - 2 * 86_400_000))
  }

  async #apply(trigger: Trigger, body: TriggerBody, { agentId }: Author): Promise<Trigger> {
    const delivery = body.delivery_targets ?? (body.delivery === undefined ? undefined : listOf(body.delivery))
    for (const target of delivery ?? []) await this.#deps.delivery.check(target, agentId)
    return {
      ...trigger,
      pattern: body.pattern === undefined ? trigger.pattern : parsePattern(body.pattern),
      promptTemplate: body.prompt_template ?? trigger.promptTemplate,
      enabled: body.enabled ?? trigger.enabled,
      maxFires: body.max_fires ?? trigger.maxFires,
      cooldownSecs: orKept(body.cooldown_secs, trigger.cooldownSecs),
      sessionMode: orKept(body.session_mode, trigger.sessionMode),
      workflowId: orKept(await this.#workflow(body.workflow_id, agentId), trigger.workflowId),
      targetAgentId: body.target_agent_id
        ? (await this.#deps.agents.resolve(body.target_agent_id)).id
        : orKept(body.target_agent_id, trigger.targetAgentId),
      delivery: delivery ?? trigger.delivery,
    }
  }
  /** Throws `workflow_not_found`, and `forbidden` for one that the agent may not have run. */
  async #workflow(name: string | null | undefined, agentId: string | undefined): Promise<string | null | undefined> {
    if (!name) return name
    const workflows = this.#deps.workflows()
    if (!workflows) throw new Refusal('invalid_request', 'workflow_id: no plugin runs workflows')
    return workflows.resolve(name, agentId)
  }
  #entry(
    { agentId }: Trigger,
    details: string,
    change?: { readonly before: Record<string, unknown>; readonly after: Record<string, unknown> },
  ): Statement {
    return this.#deps.audit.entry({ event: 'trigger_changed', agentId, details, ...(change && { change }) })
  }
  /** Throws `conflict` when there would be too many: `removed` of the agent's go, and `added` come. */
  async checkRoom({ id, name }: Pick<Agent, 'id' | 'name'>, removed: number, added: number): Promise<void> {
    const { store, settings } = this.#deps
    const { max_triggers: max, max_triggers_per_agent: maxOfAgent } = settings
    const [all, own] = [await store.count(), await store.count(id)].map((count) => count - removed + added)
    const over = (what: string, count: number, key: string): Refusal =>
      new Refusal('conflict', `triggers: ${what} would be ${count}, and plugins.triggers.${key} allows fewer`)
    if (own !== undefined && own > maxOfAgent) throw over(`those of agent "${name}"`, own, 'max_triggers_per_agent')
    if (all !== undefined && all > max) throw over('all of them', all, 'max_triggers')
  }
  async #checkLimits(agent: Agent, cause: unknown): Promise<void> {
    const { store, settings } = this.#deps
    const { max_triggers: max, max_triggers_per_agent: maxOfAgent } = settings
    const [all, own] = [await store.count(), await store.count(agent.id)]
    if (own >= maxOfAgent)
      throw full(`agent "${agent.name}" has ${own} triggers`, 'plugins.triggers.max_triggers_per_agent', cause)
    if (all >= max) throw full(`there are ${all} triggers`, 'plugins.triggers.max_triggers', cause)
  }
}

const missing = (field: string): Refusal => new Refusal('invalid_request', `Missing '${field}'`)
const full = (what: string, key: string, cause: unknown): Refusal =>
  new Refusal('conflict', `${what}, which is all that ${key} allows; remove some`, { cause })
const orKept = <T>(given: T | null | undefined, before: T | undefined): T | undefined =>
  given === undefined ? before : (given ?? undefined)
const listOf = (target: TriggerBody['delivery']): Trigger['delivery'] =>
  target && target.kind !== 'none' ? [target] : []

export function describe({ pattern }: Trigger): string {
  return JSON.stringify(renderPattern(pattern))
}
/** For the audit trail. */
function toRecord(trigger: Trigger): Record<string, unknown> {
  const { agentId, targetAgentId, promptTemplate, enabled, maxFires, cooldownSecs, workflowId } = trigger
  return {
    agent_id: agentId,
    target_agent_id: targetAgentId,
    pattern: describe(trigger),
    prompt_template: promptTemplate,
    enabled,
    max_fires: maxFires,
    cooldown_secs: cooldownSecs,
    workflow_id: workflowId,
    delivery: trigger.delivery.map(({ kind }) => kind).join(', '),
  }
}
