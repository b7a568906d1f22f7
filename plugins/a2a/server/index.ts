import { DaemonListening } from 'svc/internal'
import { AgentKilled, AgentKilling } from '../../agents/contract.ts'
import { A2aTaskChanged } from '../contract.ts'
import type { A2aContext } from '../context.ts'
import { PUSH_LANE } from './lane.ts'
import { serverRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'
import { hasOpenTasks } from './store.ts'

export { serverMigrations } from './migrations.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

/** What agents and other programs elsewhere ask of agents here. `ended` is told of turns that were tasks. */
export function addServer(ctx: A2aContext): { ended(turnId: string): void } {
  const { config, db, hooks, jobs, log, metrics, own, routes, run, services } = ctx
  const tasks = metrics.counter('svc_a2a_tasks_total', 'Tasks of other programs, by state they came to.')
  const deliveries = metrics.counter('svc_a2a_notifications_total', 'Notifications about tasks, by outcome.')
  let loaded: Runtime | undefined
  metrics.observed('svc_a2a_streams', 'Open streams of tasks.', () => [{ value: loaded?.streams ?? 0 }])
  let opened: Promise<Runtime> | undefined
  const open = async (): Promise<Runtime> => {
    const { Runtime } = await import('./runtime.ts')
    loaded = new Runtime({
      ctx,
      deliveries,
      needsKey: () => services.daemon.config().apiKeySet,
      changed: async (task) => {
        tasks.add(1, { state: task.state })
        await hooks.emit(A2aTaskChanged, task)
      },
    })
    return loaded
  }
  const runtime = (): Promise<Runtime> => (opened ??= open())
  const background = (work: () => Promise<void>): void => {
    run(work).catch((error: unknown) => log.error('work for a task over A2A failed', error))
  }
  let scheme = 'http'
  hooks.on(DaemonListening, ({ url }) => {
    scheme = new URL(url).protocol.replace(':', '')
  })
  if (config.a2a.enabled) routes.add(...serverRoutes({ runtime, settings: config.a2a, scheme: () => scheme }))

  jobs.every('open tasks', MINUTE_MS, async () => {
    if (await hasOpenTasks(db)) await (await runtime()).tasks.settleOpen()
  })
  jobs.every('old tasks', HOUR_MS, async () => (await runtime()).deleteOld())
  hooks.on(AgentKilling, async (killing) => {
    const { TaskStore } = await import('./rows/store.ts')
    return { ...killing, statements: [...killing.statements, ...new TaskStore(db, log).deleteOf(killing.agent.id)] }
  })
  hooks.on(AgentKilled, () => background(async () => (await runtime()).push.forgetDeleted()))
  own('notifications', services.queue.work(PUSH_LANE, { run: async (job) => (await runtime()).push.deliver(job) }))
  return { ended: (turnId) => background(async () => (await runtime()).tasks.settle(turnId)) }
}
