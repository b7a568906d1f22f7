import { definePlugin } from 'svc/sdk'
import { AgentKilled, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { migrations } from './migrations.ts'
import { taskRoutes } from './routes.ts'
import { Limits } from './schema.ts'
import type { LazyTasks, Tasks } from './service.ts'
import { taskTools } from './tools.ts'

export default definePlugin({
  name: 'tasks',
  version: '1.0.0',
  config: Limits,
  requires: { agents: Agents, audit: Audit },
  migrations,
  setup({ config, db, hooks, jobs, routes, services, tools }) {
    const open = async (): Promise<Tasks> => {
      const [{ Tasks }, { TaskStore }] = await Promise.all([import('./service.ts'), import('./store.ts')])
      return new Tasks(new TaskStore(db), services.agents, services.audit, config)
    }
    let opened: Promise<Tasks> | undefined
    const tasks: LazyTasks = () => (opened ??= open())
    tools.add(...taskTools(tasks))
    routes.add(...taskRoutes(tasks))
    jobs.every('sweep', config.sweep_interval_secs * 1000, async () => (await tasks()).sweep())
    hooks.on(AgentKilled, async ({ agent }) => (await tasks()).release(agent.id))
    return {}
  },
})
