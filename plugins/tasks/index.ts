import { wallClock } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { AgentChanged, AgentKilling, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Limits } from './config.ts'
import { TaskChanged, TaskClaimed, TaskCompleted, TaskPosted, Tasks } from './contract.ts'
import { migrations } from './migrations.ts'
import { taskRoutes } from './routes.ts'
import type { TaskService } from './service.ts'
import { taskTools } from './tools.ts'

const HOOKS = { posted: TaskPosted, claimed: TaskClaimed, completed: TaskCompleted, changed: TaskChanged }

export default definePlugin({
  name: 'tasks',
  version: '1.0.0',
  config: Limits,
  requires: { agents: Agents, audit: Audit },
  provides: { tasks: Tasks },
  hooks: Object.values(HOOKS),
  migrations,
  setup({ config, db, hooks, jobs, log, metrics, routes, run, services, tools }) {
    const changes = metrics.counter('svc_tasks_total', 'Changes of tasks, by what happened.')
    const open = async (): Promise<TaskService> => {
      const [{ TaskService }, { TaskStore }] = await Promise.all([import('./service.ts'), import('./store.ts')])
      return new TaskService({
        ...services,
        store: new TaskStore(db),
        limits: config,
        clock: wallClock,
        notify(event, payload) {
          changes.add(1, { event })
          run(() => hooks.emit(HOOKS[event], payload)).catch((error: unknown) =>
            log.error(`a listener of ${HOOKS[event].id} failed`, error),
          )
        },
      })
    }
    let opened: Promise<TaskService> | undefined
    const tasks = (): Promise<TaskService> => (opened ??= open())
    tools.add(...taskTools(tasks))
    routes.add(...taskRoutes(tasks))
    jobs.every('sweep', config.sweep_interval_secs * 1000, async () => (await tasks()).sweep())
    hooks.on(AgentKilling, async ({ agent, statements }) => ({
      agent,
      statements: [...statements, ...(await tasks()).endOf(agent.id)],
    }))
    hooks.on(AgentChanged, async ({ agent }) => {
      if (agent.state === 'Stopped') await (await tasks()).release(agent.id)
    })
    return { tasks: { post: async (task) => (await tasks()).post(task), find: async (id) => (await tasks()).find(id) } }
  },
})
