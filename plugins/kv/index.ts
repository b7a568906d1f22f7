import { definePlugin } from 'svc/sdk'
import { AgentKilled, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { KeyValue, KeyValueChanged } from './contract.ts'
import { exportRoutes } from './export-routes.ts'
import { isUsed } from './store.ts'
import { migrations } from './migrations.ts'
import { pairRoutes } from './routes.ts'
import { Limits } from './schema.ts'
import type { PairService } from './service.ts'
import { pairTools } from './tools.ts'

export default definePlugin({
  name: 'kv',
  version: '1.0.0',
  config: Limits,
  requires: { agents: Agents, audit: Audit },
  provides: { kv: KeyValue },
  hooks: [KeyValueChanged],
  migrations,
  async setup({ config, db, hooks, routes, services, tools }) {
    const changed = (agentId: string, key?: string): Promise<void> => hooks.emit(KeyValueChanged, { agentId, key })
    const open = async (): Promise<PairService> => {
      const [{ PairService }, { PairStore }] = await Promise.all([import('./service.ts'), import('./pairs/store.ts')])
      return new PairService(new PairStore(db), services.agents, services.audit, config, changed)
    }
    let opened: Promise<PairService> | undefined
    const pairs = (): Promise<PairService> => (opened ??= open())
    if (await isUsed(db)) await (await pairs()).sweep()
    hooks.on(AgentKilled, async ({ agent }) => {
      if (await isUsed(db)) await (await pairs()).clear(agent.id)
    })
    tools.add(...pairTools(pairs, services.agents))
    routes.add(...pairRoutes(pairs, config), ...exportRoutes(pairs, services.agents, config))
    const kv: KeyValue = {
      find: async (agentId, key) => (await pairs()).find(agentId, key),
      list: async (agentId) => (await pairs()).list(agentId),
      put: async (agentId, key, value) => (await pairs()).put(agentId, key, value),
      remove: async (agentId, key) => (await pairs()).remove(agentId, key),
    }
    return { kv }
  },
})
