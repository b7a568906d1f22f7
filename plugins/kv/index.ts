import { definePlugin } from 'svc/sdk'
import { AgentKilled, Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { KeyValue, KeyValueChanged } from './contract.ts'
import { exportRoutes } from './export-routes.ts'
import { migrations } from './migrations.ts'
import { pairRoutes } from './routes.ts'
import { Limits } from './schema.ts'
import { PairService } from './service.ts'
import { PairStore } from './store.ts'
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
    const pairs = new PairService(new PairStore(db), services.agents, services.audit, config, changed)
    await pairs.sweep()
    hooks.on(AgentKilled, ({ agent }) => pairs.clear(agent.id))
    tools.add(...pairTools(pairs, services.agents))
    routes.add(...pairRoutes(pairs, config), ...exportRoutes(pairs, services.agents, config))
    return { kv: pairs }
  },
})
