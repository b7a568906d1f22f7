import { stableId } from 'svc/internal'
import type { Agent } from '../agents/contract.ts'
import type { Narrative, TriggerEvent } from './events/event.ts'
import { matches, mayHear } from './events/pattern.ts'
import type { TaskFacts } from './events/pattern.ts'
import type { NewFiring } from './firings/store.ts'
import type { HoldReason } from './reasons.ts'
import { receiverOf } from './trigger.ts'
import type { Cause, Trigger } from './trigger.ts'

/** What the turn of a trigger says and calls does not fire it again. */
const ECHOES: ReadonlySet<string> = new Set(['message', 'tool'])

export interface PlanDeps {
  readonly agent: (id: string) => Promise<Agent | undefined>
  readonly narrate: (event: TriggerEvent) => Promise<Narrative>
  readonly task: (event: TriggerEvent) => Promise<TaskFacts | undefined>
  /** The firing that led to the event; `undefined` when none did. */
  readonly causeOf: (event: TriggerEvent) => Promise<Cause | undefined>
  readonly lastEventAt: (triggerId: string, eventKey: string) => Promise<number | undefined>
  /** Why the agent's queue takes no more; `undefined` when it does. */
  readonly whyFull: (
    agentId: string,
    planned: { readonly all: number; readonly ofAgent: number },
  ) => Promise<string | undefined>
  readonly limits: { readonly cooldown_secs: number; readonly max_per_event: number; readonly max_depth: number }
  readonly now: () => number
}
export interface Planned {
  readonly trigger: Trigger
  readonly event: TriggerEvent
  readonly firing: NewFiring
  readonly eventKey: string
}
interface Hold {
  readonly reason: HoldReason
  readonly detail: string
}

/** What the triggers do about a page of events. Keeps in memory what the batch that writes it down will change. */
export class DispatchPlan {
  readonly #deps: PlanDeps
  readonly #fires = new Map<string, number>()
  readonly #cooled = new Map<string, number>()
  readonly planned: Planned[] = []
  constructor(deps: PlanDeps) {
    this.#deps = deps
  }

  /** How often a trigger fires by this plan. */
  firesOf(triggerId: string): number {
    return this.#fires.get(triggerId) ?? 0
  }

  async add(triggers: readonly Trigger[], event: TriggerEvent): Promise<void> {
    let narrative: Promise<Narrative> | undefined
    let facts: Promise<TaskFacts | undefined> | undefined
    const task = () => (facts ??= this.#deps.task(event))
    const text = () => (narrative ??= this.#deps.narrate(event))
    let firing = 0
    for (const trigger of triggers) {
      if (trigger.since >= event.position || this.#isSpent(trigger)) continue
      // One of its manifest is there before it: an agent need not be told that it was made.
      if (event.kind === 'agent_spawned' && event.agentId === trigger.agentId) continue
      if (trigger.createdBy !== undefined && !(await mayHear(trigger.createdBy, event, task))) continue
      const agent = await this.#deps.agent(receiverOf(trigger))
      const receiver = { id: receiverOf(trigger), name: agent?.name ?? '' }
      const isMatch = await matches(trigger.pattern, event, {
        receiver,
        text: async () => (await text()).text,
        task,
      })
      if (!isMatch) continue
      const cause = await this.#deps.causeOf(event)
      if (cause?.triggerId === trigger.id && ECHOES.has(event.class)) continue
      const depth = (cause?.depth ?? 0) + 1
      const eventKey = stableId('trigger-event-key', event.kind, event.subject)
      const hold = await this.#whyNot({ trigger, event, agent, depth, eventKey, firing })
      this.#plan(trigger, event, { eventKey, depth, hold, narrative: await text() })
      if (!hold) firing++
    }
  }

  /** Firings of this plan that begin, which the queue does not know yet. */
  #plannedFor(agentId: string) {
    const open = this.planned.filter(({ firing }) => firing.state === 'open')
    return { all: open.length, ofAgent: open.filter(({ firing }) => firing.agentId === agentId).length }
  }
  #isSpent({ id, fireCount, maxFires }: Trigger): boolean {
    return maxFires > 0 && fireCount + this.firesOf(id) >= maxFires
  }

  async #whyNot({
    trigger,
    event,
    agent,
    depth,
    eventKey,
    firing,
  }: {
    readonly trigger: Trigger
    readonly event: TriggerEvent
    readonly agent: Agent | undefined
    readonly depth: number
    readonly eventKey: string
    readonly firing: number
  }): Promise<Hold | undefined> {
    const { cooldown_secs: usual, max_depth: maxDepth, max_per_event: maxPerEvent } = this.#deps.limits
    if (depth > maxDepth)
      return {
        reason: 'chain_depth',
        detail: `${maxDepth} triggers in a row led to this event (plugins.triggers.max_depth)`,
      }
    if (!agent) return { reason: 'agent_removed', detail: 'its agent was removed' }
    if (agent.state !== 'Running' && agent.state !== 'Initializing')
      return { reason: 'agent_not_running', detail: `agent "${agent.name}" is ${agent.state.toLowerCase()}` }
    const cooldown = trigger.cooldownSecs ?? usual
    const last = this.#cooled.get(keyOf(trigger.id, eventKey)) ?? (await this.#deps.lastEventAt(trigger.id, eventKey))
    // By the times of the events, so that a daemon that was down decides as one that was not.
    if (last !== undefined && Math.abs(event.at - last) < cooldown * 1000)
      return { reason: 'cooldown', detail: `it fired for the same less than ${cooldown} seconds before` }
    if (firing >= maxPerEvent)
      return {
        reason: 'too_many_triggers',
        detail: `${maxPerEvent} older triggers fired for this event (plugins.triggers.max_per_event)`,
      }
    const full = await this.#deps.whyFull(agent.id, this.#plannedFor(agent.id))
    return full === undefined ? undefined : { reason: 'queue_full', detail: full }
  }

  #plan(
    trigger: Trigger,
    event: TriggerEvent,
    {
      eventKey,
      depth,
      hold,
      narrative,
    }: {
      readonly eventKey: string
      readonly depth: number
      readonly hold: Hold | undefined
      readonly narrative: Narrative
    },
  ): void {
    const id = stableId('trigger-firing', trigger.id, event.id)
    if (!hold) {
      this.#fires.set(trigger.id, this.firesOf(trigger.id) + 1)
      this.#cooled.set(keyOf(trigger.id, eventKey), event.at)
    }
    const firing: NewFiring = {
      id,
      triggerId: trigger.id,
      eventId: event.id,
      position: event.position,
      eventKind: event.kind,
      eventText: narrative.text,
      labels: narrative.labels,
      agentId: receiverOf(trigger),
      turnId: stableId('trigger-turn', id),
      depth,
      state: hold ? 'held_back' : 'open',
      reason: hold?.reason,
      detail: hold?.detail,
      eventAt: event.at,
      createdAt: this.#deps.now(),
    }
    this.planned.push({ trigger, event, firing, eventKey })
  }
}
const keyOf = (triggerId: string, eventKey: string): string => `${triggerId} ${eventKey}`
