import { Broadcast, Daemon, followChanges, pluginsLoaded } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import type { Hooks, PluginDatabase } from 'svc/sdk'
import { AgentChanging, AgentKilling, Agents, AgentSpawning } from '../agents/contract.ts'
import type { Agent } from '../agents/contract.ts'
import { Audit, AuditFeed } from '../audit/contract.ts'
import { Turns } from '../chat/contract.ts'
import { PublishedEvents } from '../events/contract.ts'
import { DeviceWorkListed } from '../pairing/contract.ts'
import { Queue } from '../queue/contract.ts'
import { ResultDelivery } from '../result-delivery/contract.ts'
import { Tasks } from '../tasks/contract.ts'
import { WorkflowRunChanged, WorkflowRuns } from '../workflows/contract.ts'
import { Settings } from './config.ts'
import { FiringEnded, TriggerDisabled, TriggerFired, TriggerImports } from './contract.ts'
import { migrations } from './migrations.ts'
import { triggerRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'
import { hasTriggers, hasWork } from './store.ts'
import { triggerTools } from './tools/trigger-tools.ts'

const HOUR_MS = 3_600_000
const LANE = 'trigger'

export default definePlugin({
  name: 'triggers',
  version: '1.0.0',
  config: Settings,
  requires: {
    agents: Agents,
    audit: Audit,
    broadcast: Broadcast,
    daemon: Daemon,
    delivery: ResultDelivery,
    feed: AuditFeed,
    queue: Queue,
    turns: Turns,
  },
  optional: { published: PublishedEvents, tasks: Tasks, workflows: WorkflowRuns },
  provides: { imports: TriggerImports },
  hooks: [TriggerFired, FiringEnded, TriggerDisabled],
  migrations,
  pages: [
    {
      path: 'triggers',
      title: 'Triggers',
      group: 'Automation',
      file: 'pages/triggers.html',
      assets: ['trigger-card.js', 'new-trigger.js', 'triggers.css', 'triggers.js'],
    },
  ],
  setup(ctx) {
    const { config, db, hooks, jobs, leaving, log, metrics, optional, own, routes, run, services, tools } = ctx
    const outcomes = metrics.counter('svc_trigger_events_total', 'Events that a trigger matched, by what came of them.')
    const background = (work: () => Promise<void>): void => {
      run(work).catch((error: unknown) => log.error('work of a trigger failed', error))
    }
    let loaded: Runtime | undefined
    const open = async (): Promise<Runtime> => {
      const { createRuntime } = await import('./runtime.ts')
      return (loaded = createRuntime({
        ...services,
        config,
        db,
        hooks,
        log,
        background,
        published: () => optional('published'),
        workflows: () => optional('workflows'),
        tasks: () => optional('tasks'),
        counted: (outcome) => outcomes.add(1, { outcome }),
        tell,
      }))
    }
    // Every daemon follows the audit trail, and the first one fires: each knows the triggers.
    const lookForWork = (): void =>
      background(async () => {
        await pluginsLoaded(services.daemon, 'triggers', leaving)
        if (leaving.aborted || !(await hasWork(db))) return
        ;(await runtime()).dispatcher.wake(true)
      })
    const tell = followChanges({ broadcast: services.broadcast, own }, 'triggers.triggers', lookForWork)
    let opened: Promise<Runtime> | undefined
    const runtime = (): Promise<Runtime> => (opened ??= open())
    own('dispatcher', async () => (await opened)?.dispatcher.stop())
    own(
      'worker',
      services.queue.work(LANE, {
        run: async (job) => (await runtime()).runner.run(job),
        dead: (job, reason) => loaded?.runner.dead(job, reason) ?? [],
      }),
    )
    own(
      'feed',
      services.feed.onAppended(() => loaded?.dispatcher.wake()),
    )
    routes.add(...triggerRoutes(runtime))
    tools.add(...triggerTools(runtime, services.agents))
    followMaker(ctx, runtime)
    // The run of a trigger has the id of its job.
    hooks.on(WorkflowRunChanged, async ({ id, state }) => {
      if (loaded && state !== 'Running' && state !== 'Pending') await services.queue.hurry(LANE, id)
    })
    jobs.every('poll', config.poll_interval_ms, async () => loaded?.dispatcher.wake())
    jobs.every('retention', HOUR_MS, async () => {
      if (await hasTriggers(db)) await (await runtime()).triggers.deleteOld()
    })
    lookForWork()
    return { imports: lazyImports(runtime) }
  },
})

const lazyImports = (runtime: () => Promise<Runtime>): TriggerImports => ({
  add: async (id, body, options) => (await import('./imports.ts')).add(await runtime(), id, body, options),
})

/** Whether its manifest has triggers. */
const namesTriggers = ({ manifest: { schedule, triggers } }: Agent): boolean =>
  triggers.length > 0 || (schedule !== 'reactive' && schedule.proactive !== undefined)

/** Triggers of a manifest are what it says; those of an agent end with it, those of a device when that is asked for. */
function followMaker(
  { db, hooks }: { readonly db: PluginDatabase; readonly hooks: Pick<Hooks, 'on'> },
  runtime: () => Promise<Runtime>,
): void {
  hooks.on(AgentSpawning, async (spawning) =>
    namesTriggers(spawning.agent) ? (await runtime()).manifests.addTo(spawning) : spawning,
  )
  hooks.on(AgentChanging, async (changing) =>
    namesTriggers(changing.before) || namesTriggers(changing.agent)
      ? (await runtime()).manifests.change(changing)
      : changing,
  )
  hooks.on(AgentKilling, async ({ agent, statements }) => {
    if (!(await hasTriggers(db, agent.id))) return { agent, statements }
    const { manifests, store } = await runtime()
    return manifests.removeFrom({ agent, statements: [...statements, ...store.endOf(agent.id, Date.now())] })
  })
  hooks.on(DeviceWorkListed, async (asked) => {
    if (!(await hasTriggers(db))) return asked
    return (await import('./of-device.ts')).addTriggers(await runtime(), asked)
  })
}
