import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { BEATS, Broadcast, Daemon, homeId } from 'svc/internal'
import { definePlugin, fields, fileOnly } from 'svc/sdk'
import { AgentKilled, Agents } from '../agents/contract.ts'
import { Cluster, OwnedCounted } from '../cluster/contract.ts'
import { Journal, TurnsAbandoned } from './contract.ts'
import { migrations } from './migrations.ts'
import { Retention } from './retention.ts'
import { JournalService } from './service.ts'
import { JournalStore } from './store.ts'
import { memberOwners, TurnOwners } from './turn-owners.ts'

const TRIM_MS = 60_000
const count = v.pipe(v.number(), v.integer(), v.minValue(0))

export default definePlugin({
  name: 'journal',
  version: '1.0.0',
  config: fileOnly(
    'says how long is known what agents did',
    v.object({
      retention_days: v.optional(
        v.pipe(
          count,
          v.description(
            'Days for which ended turns and their calls are kept; 0 keeps them. Messages are not affected.',
          ),
        ),
        90,
      ),
      traces_per_agent: v.optional(
        v.pipe(count, v.minValue(1), v.description('Newest traces of calls that are kept for each agent.')),
        1000,
      ),
      lease_secs: fields.integer(
        'Seconds after which another daemon on the same database goes on with the turns of one that died.',
        30,
        5,
        3600,
      ),
      cleanup_interval_hours: fields.integer('Hours between two searches for turns that are too old.', 24, 1, 500),
    }),
  ),
  requires: { broadcast: Broadcast, cluster: Cluster, daemon: Daemon },
  optional: { agents: Agents },
  provides: { journal: Journal },
  hooks: [TurnsAbandoned],
  migrations,
  setup({ config, db, hooks, jobs, log, services }) {
    const store = new JournalStore(db, log)
    const retention = new Retention(store, { days: config.retention_days, traces: config.traces_per_agent }, () =>
      Date.now(),
    )
    jobs.every('retention', config.cleanup_interval_hours * 3_600_000, (signal) => retention.dropOld(signal))
    jobs.every('traces', TRIM_MS, (signal) => retention.trim(signal))
    const owners = services.broadcast.isShared ? memberOwners(services.cluster) : onFile()
    hooks.on(OwnedCounted, async (counts) => [...counts, ...(await store.countOpen())])
    hooks.on(AgentKilled, ({ agent }) => {
      retention.forget(agent.id)
      return store.forget(agent.id)
    })
    /** Two daemons of one machine may share a file. */
    function onFile(): TurnOwners {
      const beating = new TurnOwners({ store, id: `${homeId(services.daemon.config())}/${randomUUID()}` })
      jobs.every('owners', (config.lease_secs * 1000) / BEATS, async () => {
        const abandoned = await beating.beat()
        if (abandoned > 0) await hooks.emit(TurnsAbandoned, { owners: abandoned })
      })
      return beating
    }
    return { journal: new JournalService(store, owners, () => new Date().toISOString(), retention) }
  },
})
