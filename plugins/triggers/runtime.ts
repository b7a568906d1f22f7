import { wallClock } from 'svc/internal'
import type { Clock, TellChange } from 'svc/internal'
import type { Hooks, Logger, PluginDatabase } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Audit, AuditFeed } from '../audit/contract.ts'
import type { Turns } from '../chat/contract.ts'
import type { PublishedEvents } from '../events/contract.ts'
import type { Queue } from '../queue/contract.ts'
import type { ResultDelivery } from '../result-delivery/contract.ts'
import type { Tasks } from '../tasks/contract.ts'
import type { WorkflowRuns } from '../workflows/contract.ts'
import type { Settings } from './config.ts'
import { FiringEnded, TriggerDisabled, TriggerFired } from './contract.ts'
import type { Planned } from './dispatch-plan.ts'
import { Dispatcher } from './dispatcher.ts'
import { narrate } from './events/narrate.ts'
import { readTaskFacts } from './events/task-facts.ts'
import type { FiringEnd } from './firings/store.ts'
import { FiringStore } from './firings/store.ts'
import { ManifestTriggers } from './of-manifest.ts'
import { Triggers } from './service.ts'
import { TriggerStore } from './definitions/store.ts'
import type { Firing } from './trigger.ts'
import { FiringRunner } from './worker.ts'

export interface RuntimeDeps {
  readonly db: PluginDatabase
  readonly config: Settings
  readonly hooks: Pick<Hooks, 'emit'>
  readonly log: Logger
  readonly agents: Agents
  readonly audit: Pick<Audit, 'entry'>
  readonly feed: Pick<AuditFeed, 'following' | 'newest'>
  readonly queue: Pick<Queue, 'add' | 'admit' | 'cancel'>
  readonly turns: Pick<Turns, 'ensure' | 'find'>
  readonly delivery: ResultDelivery
  readonly published: () => Pick<PublishedEvents, 'find'> | undefined
  readonly workflows: () => Pick<WorkflowRuns, 'start' | 'find' | 'resolve'> | undefined
  readonly tasks: () => Pick<Tasks, 'find'> | undefined
  /** Who waits for a turn by a message. */
  readonly background: (work: () => Promise<void>) => void
  /** A trigger fired or was held back, or what it fired for has ended. */
  readonly counted: (outcome: string) => void
  /** Tells the other daemons on the database that a trigger was made or changed. */
  readonly tell: TellChange
  readonly clock?: Clock
}
export interface Runtime {
  readonly store: TriggerStore
  readonly triggers: Triggers
  readonly dispatcher: Dispatcher
  readonly runner: FiringRunner
  readonly manifests: ManifestTriggers
}

/** All that works on triggers, once there is one. */
export function createRuntime({ db, config: settings, clock = wallClock, ...deps }: RuntimeDeps): Runtime {
  const { hooks, background, counted, agents, turns, published, tasks } = deps
  const store = new TriggerStore(db, deps.log)
  const firings = new FiringStore(db, deps.log)
  const announceEnd = (firing: Firing, { state, error, detail }: FiringEnd): void => {
    const { triggerId, id: firingId, agentId, turnId } = firing
    counted(state)
    const event = { triggerId, firingId, agentId, state, turnId, error: error ?? detail ?? null }
    background(() => hooks.emit(FiringEnded, event))
  }
  const fired = ({ firing, trigger }: Planned): void => {
    const { id: firingId, agentId, eventKind, eventId, depth, state, reason } = firing
    counted(state === 'open' ? 'fired' : (reason ?? state))
    if (state !== 'open') return
    background(() => hooks.emit(TriggerFired, { triggerId: trigger.id, firingId, agentId, eventKind, eventId, depth }))
  }
  const common = { ...deps, firings, settings, clock }
  const dispatcher = new Dispatcher({
    ...common,
    triggers: store,
    narrate: (event) => narrate({ agents, turns, published, tasks, maxChars: settings.max_event_chars }, event),
    task: (event) => readTaskFacts({ agents, tasks }, event),
    fired,
    spent: ({ id: triggerId, agentId }, reason) =>
      background(() => hooks.emit(TriggerDisabled, { triggerId, agentId, reason })),
  })
  const runner = new FiringRunner({ ...common, triggers: store, ended: announceEnd })
  const changed = (): void => dispatcher.wake(true)
  const triggers = new Triggers({ ...common, store, changed })
  const maxPerAgent = settings.max_triggers_per_agent
  const manifests = new ManifestTriggers({ triggers, store, maxPerAgent, background, changed })
  return { store, triggers, dispatcher, runner, manifests }
}
