import type { Clock } from 'svc/internal'
import { Refusal } from 'svc/sdk'
import type { Logger, Statement } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit, AuditFeed } from '../audit/contract.ts'
import type { Queue } from '../queue/contract.ts'
import type { Settings } from './config.ts'
import { DispatchPlan } from './dispatch-plan.ts'
import type { Planned } from './dispatch-plan.ts'
import type { Narrative, TriggerEvent } from './events/event.ts'
import type { TaskFacts } from './events/pattern.ts'
import { readEntry } from './events/read-entry.ts'
import type { FiringStore } from './firings/store.ts'
import type { Cursor, TriggerStore } from './definitions/store.ts'
import type { Cause, Trigger } from './trigger.ts'

export const LANE = 'trigger'
const PAGE_SIZE = 100
/** Entries that nothing came of are read again after a crash: so many at most. */
const MAX_UNSAVED = 1_000
/** How long nothing is read when there is no trigger: another daemon may make one. */
const IDLE_MS = 30_000

export interface DispatcherDeps {
  readonly triggers: TriggerStore
  readonly firings: FiringStore
  readonly agents: Pick<Agents, 'find'>
  readonly audit: Pick<Audit, 'entry'>
  readonly feed: Pick<AuditFeed, 'following'>
  readonly queue: Pick<Queue, 'add' | 'admit'>
  readonly narrate: (event: TriggerEvent) => Promise<Narrative>
  readonly task: (event: TriggerEvent) => Promise<TaskFacts | undefined>
  readonly settings: Settings
  readonly clock: Clock
  readonly log: Logger
  readonly background: (work: () => Promise<void>) => void
  /** A firing, or what held it back, is on disk. */
  readonly fired: (planned: Planned) => void
  /** A trigger fired as often as it may. */
  readonly spent: (trigger: Trigger, reason: string) => void
}

/**
 * Follows the audit trail and writes down which triggers fire. The position in the trail, the firings and their jobs of
 * the queue are one batch: a crash neither loses nor repeats an event, and of two daemons one fires.
 */
export class Dispatcher {
  readonly #deps: DispatcherDeps
  #known: { readonly generation: number; readonly triggers: readonly Trigger[] } | undefined
  /** Up to here nothing is left to do, whether or not it is written down. */
  #read = 0
  #pass: Promise<void> | undefined
  #isPassRequested = false
  #isStopped = false
  #idleSince: number | undefined
  constructor(deps: DispatcherDeps) {
    this.#deps = deps
  }

  /** There may be something new. `isChange`: of the triggers themselves. */
  wake(isChange = false): void {
    if (isChange) this.#idleSince = undefined
    if (this.#isStopped || this.#isIdle()) return
    if (this.#pass) {
      this.#isPassRequested = true
      return
    }
    this.#pass = Promise.resolve()
    this.#deps.background(() => this.#search())
  }
  #isIdle(): boolean {
    return this.#idleSince !== undefined && this.#deps.clock.now() - this.#idleSince < IDLE_MS
  }
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#pass
  }

  async #search(): Promise<void> {
    this.#pass = this.#follow().finally(() => {
      this.#pass = undefined
      if (!this.#isPassRequested) return
      this.#isPassRequested = false
      this.wake()
    })
    await this.#pass
  }
  async #follow(): Promise<void> {
    while (!this.#isStopped) if (!(await this.#readPage())) return
  }

  /** Whether there may be more. */
  async #readPage(): Promise<boolean> {
    const { feed, triggers: store } = this.#deps
    const start = await this.#start()
    if (start === undefined) return false
    const entries = await feed.following(start, PAGE_SIZE)
    const last = entries.at(-1)
    if (!last) return false
    // After the entries: a trigger that was there before one of them is known when it is looked at.
    const cursor = await store.cursor()
    const triggers = await this.#triggers(cursor)
    if (cursor.position > start) return true
    const plan = this.#newPlan()
    for (const entry of entries) {
      const event = readEntry(entry)
      if (event) await plan.add(triggers, event)
    }
    if (this.#isStopped) return false
    if (!(await this.#write(plan, cursor, last.id))) return true
    this.#read = last.id
    return entries.length === PAGE_SIZE
  }
  /** Where to read on; `undefined` when no trigger is enabled. */
  async #start(): Promise<number | undefined> {
    const cursor = await this.#deps.triggers.cursor()
    const triggers = await this.#triggers(cursor)
    this.#idleSince = triggers.length === 0 ? this.#deps.clock.now() : undefined
    if (triggers.length === 0) return undefined
    return Math.max(cursor.position, this.#read, Math.min(...triggers.map(({ since }) => since)))
  }
  async #triggers({ generation }: Cursor): Promise<readonly Trigger[]> {
    if (this.#known?.generation !== generation)
      this.#known = { generation, triggers: await this.#deps.triggers.enabled() }
    return this.#known.triggers
  }

  #newPlan(): DispatchPlan {
    const { agents, firings, queue, settings, clock, narrate, task } = this.#deps
    const causes = new Map<string, Promise<Cause | undefined>>()
    return new DispatchPlan({
      narrate,
      task,
      limits: settings,
      agent: (id) => agents.find(id),
      async causeOf({ origin }) {
        if (origin === undefined) return undefined
        const cause = causes.get(origin) ?? firings.causeOf(origin)
        causes.set(origin, cause)
        return cause
      },
      lastEventAt: (triggerId, eventKey) => firings.lastEventAt(triggerId, eventKey),
      async whyFull(agentId, planned) {
        try {
          await queue.admit(agentId, planned)
          return undefined
        } catch (error) {
          if (error instanceof Refusal) return error.message
          throw error
        }
      },
      now: () => clock.now(),
    })
  }

  /** Whether it is on disk; otherwise somebody else was faster, and the page is read again. */
  async #write(plan: DispatchPlan, cursor: Cursor, to: number): Promise<boolean> {
    const { triggers } = this.#deps
    if (plan.planned.length === 0 && to - cursor.position < MAX_UNSAVED) return true
    try {
      await triggers.commit([triggers.advance(cursor, to), ...this.#statements(plan)])
    } catch (error) {
      this.#known = undefined
      const now = await triggers.cursor()
      if (now.position === cursor.position && now.generation === cursor.generation) throw error
      return false
    }
    // The counts have changed.
    if (plan.planned.length > 0) this.#known = undefined
    return true
  }

  #statements(plan: DispatchPlan): readonly Statement[] {
    const { firings, settings, log } = this.#deps
    const statements: Statement[] = []
    for (const planned of plan.planned) {
      const { firing, trigger, event, eventKey } = planned
      statements.push({ ...firings.insert(firing), written: () => this.#deps.fired(planned) })
      if (firing.state === 'open')
        statements.push(...this.#begin(planned), firings.cool(trigger.id, eventKey, event.at))
      else if (firing.reason === 'chain_depth') {
        const text = `trigger ${trigger.id} does not fire for ${event.kind}: ${firing.detail}`
        log.warn(text)
        statements.push(this.#entry(firing.agentId, text))
      }
    }
    const found = new Map(plan.planned.map(({ trigger }) => [trigger.id, trigger]))
    for (const trigger of found.values())
      statements.push(...this.#count(plan, trigger), firings.trim(trigger.id, settings.max_history))
    return statements
  }
  #begin({ firing, trigger }: Planned): readonly Statement[] {
    const { id, agentId, eventKind, depth } = firing
    const details = `trigger ${trigger.id} fired for ${eventKind} (event ${firing.eventId}, firing ${id}, depth ${depth})`
    return [
      this.#deps.queue.add({ lane: LANE, id, group: trigger.id, agentId, payload: { firing_id: id } }),
      this.#entry(agentId, details, 'trigger_fired'),
    ]
  }
  #count(plan: DispatchPlan, trigger: Trigger): readonly Statement[] {
    const { triggers, clock } = this.#deps
    const times = plan.firesOf(trigger.id)
    if (times === 0) return []
    const reason = `it fired ${trigger.maxFires} times, which is all that max_fires allows`
    const counted = triggers.fired(trigger.id, times, clock.now(), reason)
    if (trigger.maxFires === 0 || trigger.fireCount + times < trigger.maxFires) return [counted]
    const details = `trigger ${trigger.id} is disabled: ${reason}`
    return [{ ...counted, written: () => this.#deps.spent(trigger, reason) }, this.#entry(trigger.agentId, details)]
  }
  #entry(agentId: string, details: string, event: 'trigger_fired' | 'trigger_changed' = 'trigger_changed'): Statement {
    return this.#deps.audit.entry({ event, agentId, details })
  }
}
