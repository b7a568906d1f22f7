import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { definePlugin, fileOnly } from 'svc/sdk'
import { AgentKilled, Agents } from '../agents/contract.ts'
import { Journal } from './contract.ts'
import { migrations } from './migrations.ts'
import { Retention } from './retention.ts'
import { JournalService } from './service.ts'
import { JournalStore } from './store.ts'

const TRIM_MS = 60_000
const count = v.pipe(v.number(), v.integer(), v.minValue(0))

export default definePlugin({
  name: 'journal',
  version: '1.0.0',
  config: fileOnly(
    'says how long is known what agents did',
    v.object({
      /**
       * Turns that ended so long ago are forgotten, and what is recorded of their calls; 0 keeps them. Messages are not
       * affected.
       */
      retention_days: v.optional(count, 90),
      /** Of each agent, the newest of those that do not lie with their turn. */
      traces_per_agent: v.optional(v.pipe(count, v.minValue(1)), 1000),
      cleanup_interval_hours: v.optional(v.pipe(count, v.minValue(1), v.maxValue(500)), 24),
    }),
  ),
  optional: { agents: Agents },
  provides: { journal: Journal },
  migrations,
  setup({ config, db, hooks, jobs }) {
    const store = new JournalStore(db)
    const retention = new Retention(store, { days: config.retention_days, traces: config.traces_per_agent }, () =>
      Date.now(),
    )
    jobs.every('retention', config.cleanup_interval_hours * 3_600_000, (signal) => retention.dropOld(signal))
    jobs.every('traces', TRIM_MS, (signal) => retention.trim(signal))
    hooks.on(AgentKilled, ({ agent }) => {
      retention.forget(agent.id)
      return store.forget(agent.id)
    })
    return { journal: new JournalService(store, randomUUID(), () => new Date().toISOString(), retention) }
  },
})
