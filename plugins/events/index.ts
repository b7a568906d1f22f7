import { definePlugin } from 'svc/sdk'
import { AgentKilling } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { EventsConfig } from './config.ts'
import { eventTools } from './tools.ts'
import { EventPublished, PublishedEvents } from './contract.ts'
import { migrations } from './migrations.ts'
import { EventStore } from './store.ts'

const HOUR_MS = 3_600_000

export default definePlugin({
  name: 'events',
  version: '1.0.0',
  config: EventsConfig,
  hooks: [EventPublished],
  requires: { audit: Audit },
  provides: { published: PublishedEvents },
  migrations,
  setup({ config, db, hooks, jobs, log, services, tools }) {
    const store = new EventStore(db, log)
    const now = (): string => new Date().toISOString()
    tools.add(...eventTools({ store, audit: services.audit, hooks, config, now }))
    hooks.on(AgentKilling, ({ agent, statements }) => ({
      agent,
      statements: [...statements, store.deleteOf(agent.id)],
    }))
    jobs.every('retention', HOUR_MS, () =>
      store.commit(store.deleteBefore(new Date(Date.now() - config.retention_hours * HOUR_MS).toISOString())),
    )
    return { published: { find: (id) => store.find(id) } }
  },
})
