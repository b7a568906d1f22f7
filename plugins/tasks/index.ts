import { definePlugin } from 'svc/sdk'
import { AgentChanged, AgentKilling, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Chat, Turns } from '../chat/contract.ts'
import { DeviceWorkListed } from '../pairing/contract.ts'
import { Queue } from '../queue/contract.ts'
import { Limits } from './config.ts'
import { TaskChanged, TaskClaimed, TaskCompleted, TaskPosted, Tasks } from './contract.ts'
import { migrations } from './migrations.ts'
import { taskRoutes } from './routes.ts'
import type { Runtime } from './runtime.ts'
import { hasTasks } from './store.ts'
import { taskTools } from './tools.ts'

const HOOKS = { posted: TaskPosted, claimed: TaskClaimed, completed: TaskCompleted, changed: TaskChanged }

export default definePlugin({
  name: 'tasks',
  version: '1.0.0',
  config: Limits,
  requires: { agents: Agents, audit: Audit, chat: Chat, queue: Queue, turns: Turns },
  provides: { tasks: Tasks },
  hooks: Object.values(HOOKS),
  migrations,
  pages: [
    {
      path: 'tasks',
      title: 'Tasks',
      group: 'Automation',
      file: 'pages/tasks.html',
      assets: ['queue-view.js', 'task-card.js', 'tasks.css', 'tasks.js'],
    },
  ],
  setup({ config, db, hooks, jobs, log, metrics, own, routes, run, services, tools }) {
    const changes = metrics.counter('svc_tasks_total', 'Changes of tasks, by what happened.')
    const open = async (): Promise<Runtime> => {
      const { createRuntime } = await import('./runtime.ts')
      return createRuntime({
        ...services,
        db,
        limits: config,
        log,
        notify(event, payload) {
          changes.add(1, { event })
          run(() => hooks.emit(HOOKS[event], payload)).catch((error: unknown) =>
            log.error(`a listener of ${HOOKS[event].id} failed`, error),
          )
        },
      })
    }
    let opened: Promise<Runtime> | undefined
    const runtime = (): Promise<Runtime> => (opened ??= open())
    const isUsed = async (): Promise<boolean> => opened !== undefined || hasTasks(db)
    own(
      'worker',
      services.queue.work('task', {
        run: async (job) => (await runtime()).worker.run(job),
        dead: async (job, reason) => (await runtime()).worker.dead(job, reason),
      }),
    )
    tools.add(...taskTools(runtime))
    routes.add(...taskRoutes(runtime))
    jobs.every('sweep', config.sweep_interval_secs * 1000, async () => {
      if (await isUsed()) await (await runtime()).expiry.sweep()
    })
    hooks.on(AgentKilling, async ({ agent, statements }) => {
      if (!(await isUsed())) return { agent, statements }
      return { agent, statements: [...statements, ...(await runtime()).expiry.endOfAgent(agent.id)] }
    })
    hooks.on(AgentChanged, async ({ agent }) => {
      if (agent.state === 'Stopped' && (await isUsed())) await (await runtime()).expiry.release(agent.id)
    })
    hooks.on(DeviceWorkListed, async (asked) => {
      if (!(await isUsed())) return asked
      return (await import('./of-device.ts')).addTasks((await runtime()).tasks, asked)
    })
    return {
      tasks: {
        post: async (task) => (await runtime()).tasks.post(task),
        find: async (id) => (await runtime()).tasks.find(id),
      },
    }
  },
})
