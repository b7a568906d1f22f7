import * as v from 'valibot'
import { definePlugin } from 'svc/sdk'
import { AgentKilled, Agents, AgentSpawned } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Sessions } from './contract.ts'
import { migrations } from './migrations.ts'
import { sessionRoutes } from './routes.ts'
import { SessionService } from './service.ts'
import { SessionStore } from './store.ts'
import { SummaryStore } from './summary/store.ts'

export default definePlugin({
  name: 'sessions',
  version: '1.0.0',
  config: v.object({
    /** How many of the newest messages `context_window_tokens` counts. */
    context_messages: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 50),
  }),
  requires: { agents: Agents, audit: Audit },
  provides: { sessions: Sessions },
  migrations,
  setup({ config, db, hooks, routes, services: { agents, audit } }) {
    const store = new SessionStore(db)
    const sessions = new SessionService({ store, summaries: new SummaryStore(db), agents, audit, hooks, now: () => new Date().toISOString() })
    routes.add(...sessionRoutes(sessions, agents, config.context_messages))
    hooks.on(AgentSpawned, ({ agent }) => store.commit(sessions.ensure(agent.sessionId, agent.id)))
    hooks.on(AgentKilled, ({ agent }) => sessions.forget(agent.id))
    return { sessions }
  },
})
