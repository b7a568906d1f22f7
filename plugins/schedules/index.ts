import { Broadcast, Daemon, followChanges, pluginsLoaded } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import type { Hooks, PluginDatabase } from 'svc/sdk'
import { AgentChanging, AgentKilling, Agents, AgentSpawning } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, Turns } from '../chat/contract.ts'
import { DeviceWorkListed } from '../pairing/contract.ts'
import { Inference } from '../providers/contract.ts'
import { Queue } from '../queue/contract.ts'
import { ResultDelivery } from '../result-delivery/contract.ts'
import { WorkflowRunChanged, WorkflowRuns } from '../workflows/contract.ts'
import { sections, Settings } from './config.ts'
import { CronJobs, JobDisabled, SlotEnded, SystemEventDue, Wakeups } from './contract.ts'
import { LANE } from './lane.ts'
import { migrations } from './migrations.ts'
import { jobRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'
import { cronTools } from './tools/cron-tools.ts'
import { scheduleTools } from './tools/schedule-tools.ts'
import { hasDueJobs, hasJobs } from './store.ts'

const HOUR_MS = 3_600_000

export default definePlugin({
  name: 'schedules',
  version: '1.0.0',
  config: Settings,
  sections,
  requires: {
    agents: Agents,
    audit: Audit,
    broadcast: Broadcast,
    chat: Chat,
    daemon: Daemon,
    delivery: ResultDelivery,
    queue: Queue,
    turns: Turns,
  },
  optional: { inference: Inference, workflows: WorkflowRuns },
  provides: { wakeups: Wakeups, cronJobs: CronJobs },
  hooks: [JobDisabled, SlotEnded, SystemEventDue],
  migrations,
  pages: [
    {
      path: 'schedules',
      title: 'Schedules',
      group: 'Automation',
      file: 'pages/schedules.html',
      assets: ['schedule-card.js', 'new-schedule.js', 'schedules.css', 'schedules.js'],
    },
  ],
  setup(ctx) {
    const { config, db, hooks, jobs, leaving, log, metrics, optional, own, routes, run, services, tools } = ctx
    const slots = metrics.counter('svc_cron_fires_total', 'Slots of schedules, by what came of them.')
    const disabled = metrics.counter('svc_cron_auto_disabled_total', 'Schedules that failed too often.')
    const background = (work: () => Promise<void>): void => {
      run(work).catch((error: unknown) => log.error('work of a schedule failed', error))
    }
    const open = async (): Promise<Runtime> => {
      const { createRuntime } = await import('./runtime.ts')
      return createRuntime({
        ...services,
        config,
        db,
        hooks,
        log,
        background,
        inference: () => optional('inference'),
        workflows: () => optional('workflows'),
        counted: (outcome, count) => slots.add(count, { outcome }),
        disabled: () => disabled.add(1),
        tell,
      })
    }
    // Whichever daemon looks first runs a slot: all of them know when the next one is.
    const lookForDue = (): void =>
      background(async () => {
        await pluginsLoaded(services.daemon, 'schedules', leaving)
        if (leaving.aborted || !(await hasDueJobs(db))) return
        ;(await runtime()).scheduler.wake()
      })
    const tell = followChanges({ broadcast: services.broadcast, own }, 'schedules.jobs', lookForDue)
    let opened: Promise<Runtime> | undefined
    const runtime = (): Promise<Runtime> => (opened ??= open())
    own('scheduler', async () => (await opened)?.scheduler.stop())
    own(
      'worker',
      services.queue.work(LANE, {
        run: async (job) => (await runtime()).runner.run(job),
        dead: async (job, reason) => (await runtime()).runner.dead(job, reason),
      }),
    )
    routes.add(...jobRoutes(runtime, leaving))
    tools.add(...scheduleTools(runtime, services.agents), ...cronTools(runtime))
    followMaker(ctx, runtime)
    // The run of a slot has the id of its job of the queue, which waits for the end of the run.
    hooks.on(WorkflowRunChanged, async ({ id, state }) => {
      if (state !== 'Pending' && state !== 'Running' && state !== 'Paused') await services.queue.hurry(LANE, id)
    })
    jobs.every('retention', HOUR_MS, async () => {
      if (await hasJobs(db)) await (await runtime()).schedules.deleteOld()
    })
    lookForDue()
    return { wakeups: lazyWakeups(async () => (await runtime()).wakeups), cronJobs: lazyCronJobs(runtime) }
  },
})

/** The schedule of a manifest is what it says; schedules of an agent end with it, those of a device when that is asked for. */
function followMaker(
  { db, hooks }: { readonly db: PluginDatabase; readonly hooks: Pick<Hooks, 'on'> },
  runtime: () => Promise<Runtime>,
): void {
  hooks.on(AgentSpawning, async (spawning) =>
    spawning.agent.manifest.schedule === 'reactive' ? spawning : (await runtime()).manifests.addTo(spawning),
  )
  hooks.on(AgentChanging, async (changing) =>
    [changing.before, changing.agent].every(({ manifest }) => manifest.schedule === 'reactive')
      ? changing
      : (await runtime()).manifests.change(changing),
  )
  hooks.on(AgentKilling, async ({ agent, statements }) => {
    if (!(await hasJobs(db, agent.id))) return { agent, statements }
    return { agent, statements: [...statements, (await runtime()).jobs.endOf(agent.id, Date.now())] }
  })
  hooks.on(DeviceWorkListed, async (asked) => {
    if (!(await hasJobs(db))) return asked
    return (await import('./of-device.ts')).addSchedules(await runtime(), asked)
  })
}

const lazyCronJobs = (runtime: () => Promise<Runtime>): CronJobs => ({
  add: async (id, body, options) => (await import('./imports.ts')).add(await runtime(), id, body, options),
})

function lazyWakeups(open: () => Promise<Wakeups>): Wakeups {
  return {
    prepare: async (wakeup) => (await open()).prepare(wakeup),
    check: async (when) => (await open()).check(when),
    begin: async () => (await open()).begin(),
    checkRoom: async () => (await open()).checkRoom(),
    find: async (id) => (await open()).find(id),
    change: async (id, change) => (await open()).change(id, change),
  }
}
