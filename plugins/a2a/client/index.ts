import type { A2aContext } from '../context.ts'
import { clientRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'
import { clientTools } from './tools.ts'
export { clientMigrations } from './migrations.ts'

const LANE = 'a2a-send'
const DAY_MS = 86_400_000

/** What agents here ask of agents elsewhere. */
export function addClient(ctx: A2aContext): void {
  const { config, db, fetch, hooks, jobs, log, metrics, operator, own, routes, run, services, signal, tools, vault } =
    ctx
  const settings = config.a2a
  const agentsChanged = metrics.counter('svc_a2a_agents_total', 'Changes of agents elsewhere, by what happened.')
  const tasksEnded = metrics.counter('svc_a2a_sent_total', 'Tasks sent to agents elsewhere, by how they ended.')
  const background = (work: () => Promise<void>): void => {
    run(work).catch((error: unknown) => log.error('work for an agent elsewhere failed', error))
  }
  const open = async (): Promise<Runtime> => {
    const { createRuntime } = await import('./runtime.ts')
    return createRuntime({
      ...services,
      db,
      settings,
      vault,
      tools,
      hooks,
      log,
      fetch,
      operatorFetch: operator?.fetch ?? fetch,
      unloading: signal,
      background,
      counted: (what, outcome) => (what === 'agents' ? agentsChanged : tasksEnded).add(1, { outcome }),
    })
  }
  let opened: Promise<Runtime> | undefined
  const runtime = async (): Promise<Runtime> => {
    const opening = (opened ??= open())
    opening.catch(() => {
      if (opened === opening) opened = undefined
    })
    return opening
  }
  own(
    'sender',
    services.queue.work(LANE, {
      run: async (job) => (await runtime()).tasks.run(job),
      dead: async ({ id }, reason) => (await runtime()).tasks.dead(id, reason),
    }),
  )
  routes.add(
    ...clientRoutes(async () => {
      const [loaded, handlers] = await Promise.all([runtime(), import('./handlers.ts')])
      return { ...loaded, handlers }
    }),
  )
  tools.add(...clientTools({ agents: services.agents, settings, runtime }))
  jobs.every('sent-retention', DAY_MS / 24, async () => {
    if (opened) await (await opened).tasks.deleteOld()
  })
}
