import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Usage } from './contract.ts'
import { migrations } from './migrations.ts'
import { usageRoutes } from './routes.ts'
import { usageLedger } from './service.ts'
import { UsageStore } from './store.ts'

export default definePlugin({
  name: 'usage',
  version: '1.0.0',
  config: v.object({}),
  optional: { agents: Agents },
  provides: { usage: Usage },
  migrations,
  setup({ db, optional, routes }) {
    const store = new UsageStore(db)
    routes.add(...usageRoutes(store, Date.now, async (id) => (await optional('agents')?.find(id))?.name ?? null))
    return { usage: usageLedger(store, Date.now) }
  },
})
