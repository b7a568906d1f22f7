import { definePlugin } from 'svc/sdk'
import { AgentKilled, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { migrations } from './migrations.ts'
import { taskRoutes } from './routes.ts'
import { Limits } from './schema.ts'
import { Tasks } from './service.ts'
import { TaskStore } from './store.ts'
import { taskTools } from './tools.ts'

export default definePlugin({
  name: 'tasks',
  version: '1.0.0',
  config: Limits,
  requires: { agents: Agents, audit: Audit },
  migrations,
  setup({ config, db, hooks, jobs, routes, services, tools }) {
    const tasks = new Tasks(new TaskStore(db), services.agents, services.audit, config)
    tools.add(...taskTools(tasks))
    routes.add(...taskRoutes(tasks))
    jobs.every('sweep', config.sweep_interval_secs * 1000, () => tasks.sweep())
    hooks.on(AgentKilled, ({ agent }) => tasks.release(agent.id))
    return {}
  },
})
