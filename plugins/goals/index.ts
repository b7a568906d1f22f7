import { definePlugin } from 'svc/sdk'
import { AgentKilling, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Settings } from './config.ts'
import { GoalChanged } from './contract.ts'
import { migrations } from './migrations.ts'
import { goalRoutes } from './routes.ts'
import type { Goals } from './service.ts'
import { goalTools } from './tools.ts'

export default definePlugin({
  name: 'goals',
  version: '1.0.0',
  config: Settings,
  requires: { agents: Agents, audit: Audit },
  hooks: [GoalChanged],
  migrations,
  pages: [
    {
      path: 'goals',
      title: 'Goals',
      group: 'Automation',
      file: 'pages/goals.html',
      assets: ['goals.css', 'goals.js', 'tree.js'],
    },
  ],
  setup({ config, db, hooks, log, metrics, routes, run, services, tools }) {
    const changes = metrics.counter('svc_goal_changes_total', 'Goals that were created, updated and deleted.')
    const open = async (): Promise<Goals> => {
      const [{ Goals }, { GoalStore }] = await Promise.all([import('./service.ts'), import('./store.ts')])
      return new Goals({
        ...services,
        store: new GoalStore(db, log),
        settings: config,
        now: Date.now,
        changed(change, goals) {
          changes.add(goals.length, { change })
          const told = run(async () => {
            for (const goal of goals) await hooks.emit(GoalChanged, { change, goal })
          })
          told.catch((error: unknown) => log.error('listeners were not told of a goal', error))
        },
      })
    }
    let opened: Promise<Goals> | undefined
    const goals = (): Promise<Goals> => (opened ??= open())
    routes.add(...goalRoutes(goals))
    const ofAgent = async (agentId: string) => {
      const { OwnGoals } = await import('./own-goals.ts')
      return new OwnGoals(await goals(), services.agents, agentId)
    }
    tools.add(...goalTools(ofAgent))
    hooks.on(AgentKilling, async ({ agent, statements }) => {
      const { hasGoals, withoutAgent } = await import('./store.ts')
      if (!(await hasGoals(db, agent.id))) return { agent, statements }
      return { agent, statements: [...statements, withoutAgent(db, agent.id, new Date().toISOString())] }
    })
    return {}
  },
})
