import * as v from 'valibot'
import { Broadcast } from 'svc/internal'
import { definePlugin, fields, settable } from 'svc/sdk'
import { AgentKilled, Agents, AgentSpawning } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Journal } from '../journal/contract.ts'
import { branchRoute } from './branch/route.ts'
import { SessionCleared, SessionMeasured, SessionRemoving, SessionReset, Sessions } from './contract.ts'
import { migrations } from './migrations.ts'
import { sessionRoutes } from './routes.ts'
import { searchRoute } from './search/route.ts'
import { SessionService } from './service.ts'
import { SessionStore } from './store.ts'
import { SummaryStore } from './summary/store.ts'

/** Told to the other daemons on the database. */
const SUMMARY_CHANGED = 'sessions.summary-changed'

export default definePlugin({
  name: 'sessions',
  version: '1.0.0',
  config: settable(
    'sessions can be deleted over the API as well',
    v.object({
      context_messages: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(1),
          v.description('Newest messages of a session that `context_window_tokens` counts.'),
        ),
        50,
      ),
      retention_days: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(0),
          v.description('Days after which an unused session is removed; 0 keeps it.'),
        ),
        0,
      ),
      max_sessions_per_agent: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(0),
          v.description('Sessions that are kept for each agent, those written to last; 0 keeps them all.'),
        ),
        0,
      ),
      search_max_messages: fields.integer('Messages that one search looks at, from the newest on.', 500_000, 1, 1e9),
      branch_max_messages: fields.integer(
        'Messages that a branch copies, results of tools included.',
        10_000,
        1,
        1_000_000,
      ),
      cleanup_interval_hours: fields.integer('Hours between two searches for sessions to remove.', 24, 1, 500),
    }),
  ),
  hooks: [SessionReset, SessionCleared, SessionRemoving, SessionMeasured],
  requires: { agents: Agents, audit: Audit, broadcast: Broadcast },
  optional: { journal: Journal },
  provides: { sessions: Sessions },
  migrations,
  pages: [
    { path: 'sessions', title: 'Conversations', group: 'Agents', file: 'pages/sessions.html', assets: ['sessions.js'] },
  ],
  setup({ config, db, hooks, jobs, log, optional, own, routes, services }) {
    const { agents, audit, broadcast } = services
    const store = new SessionStore(db, log)
    own('store', () => store.close())
    const summaries = new SummaryStore(db, log, (id) => broadcast.tell(SUMMARY_CHANGED, { id }))
    const subscription = broadcast.on(SUMMARY_CHANGED, {
      heard(data) {
        const told = v.safeParse(v.object({ id: v.string() }), data)
        if (told.success) summaries.forget(told.output.id)
      },
      missed: () => summaries.forgetAll(),
    })
    own('messages of other daemons', () => subscription[Symbol.dispose]())
    const sessions = new SessionService({
      store,
      summaries,
      agents,
      audit,
      hooks,
      now: () => new Date().toISOString(),
    })
    const cleanUp = async (): Promise<number> =>
      (await import('./cleanup.ts')).cleanUp(
        { db, log, store, sessions, agents, hooks },
        { retentionDays: config.retention_days, maxPerAgent: config.max_sessions_per_agent },
      )
    routes.add(
      branchRoute({
        db,
        log,
        sessions,
        agents,
        audit,
        journal: () => optional('journal'),
        maxMessages: config.branch_max_messages,
      }),
      searchRoute({ db, agents, maxMessages: config.search_max_messages }),
      ...sessionRoutes({
        sessions,
        agents,
        contextMessages: config.context_messages,
        cleanUp,
        measured: (context) => hooks.apply(SessionMeasured, context),
      }),
    )
    jobs.every('cleanup', config.cleanup_interval_hours * 3_600_000, async () => {
      await cleanUp()
    })
    hooks.on(AgentSpawning, ({ agent, statements, ...spawning }) => ({
      ...spawning,
      agent,
      statements: [...statements, ...sessions.ensure(agent.sessionId, agent.id)],
    }))
    hooks.on(AgentKilled, ({ agent }) => sessions.forget(agent.id))
    return { sessions }
  },
})
