import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { AgentKilling, Agents } from '../agents/contract.ts'
import { ResolveHourlyQuota, Spending, Usage } from './contract.ts'
import { migrations } from './migrations.ts'
import { usageRoutes } from './routes.ts'
import { usageLedger } from './service.ts'
import { createSpending } from './spending.ts'
import { UsageStore } from './store.ts'
import { UsageSums } from './sums/store.ts'

export default definePlugin({
  name: 'usage',
  version: '1.0.0',
  config: v.object({}),
  optional: { agents: Agents },
  hooks: [ResolveHourlyQuota],
  provides: { usage: Usage, spending: Spending },
  migrations,
  pages: [{ path: 'usage', title: 'Usage', group: 'Operations', file: 'pages/usage.html', assets: ['usage.js'] }],
  setup({ db, hooks, optional, routes }) {
    const store = new UsageStore(db)
    routes.add(
      ...usageRoutes({
        store,
        sums: new UsageSums(db),
        now: Date.now,
        nameOf: async (id) => (await optional('agents')?.find(id))?.name,
        hourlyQuota: async () => (await hooks.apply(ResolveHourlyQuota, { tokens: null })).tokens,
      }),
    )
    hooks.on(AgentKilling, ({ agent, statements }) => ({
      agent,
      statements: [...statements, store.keepName(agent.id, agent.name)],
    }))
    return { usage: usageLedger(store, Date.now), spending: createSpending(db, store, Date.now) }
  },
})
