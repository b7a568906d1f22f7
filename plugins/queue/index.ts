import { Broadcast, Daemon, DatabaseServer, homeId, pluginsLoaded, wallClock } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { Cluster, DrainingChanged, MemberEnded, OwnedCounted } from '../cluster/contract.ts'
import { Settings } from './config.ts'
import { Queue } from './contract.ts'
import { migrations } from './migrations.ts'
import { queueRoutes } from './routes.ts'
import { statusTool } from './tools.ts'

const HOUR_MS = 3_600_000

export default definePlugin({
  name: 'queue',
  version: '1.0.0',
  config: Settings,
  requires: { audit: Audit, broadcast: Broadcast, cluster: Cluster, daemon: Daemon, server: DatabaseServer },
  provides: { queue: Queue },
  migrations,
  offline: { agreement: async (deps) => (await import('./agreement.ts')).agreementOf(deps) },
  async setup({ config, db, hooks, jobs, leaving, log, metrics, own, routes, run, services, tools }) {
    const { audit, broadcast, cluster, daemon, server } = services
    const [{ DatabaseQueue }, { openDriver }] = await Promise.all([import('./service.ts'), import('./open-driver.ts')])
    const ended = metrics.counter('svc_queue_jobs_total', 'Jobs of the queue that were run, by lane and outcome.')
    const background = (work: () => Promise<void>): void => {
      run(work).catch((error: unknown) => log.error('work of the queue failed', error))
    }
    const driver = await openDriver(cluster, {
      db,
      server,
      settings: config,
      owner: homeId(daemon.config()),
      clock: wallClock,
      log,
      lost: (lane) => ended.add(1, { lane, outcome: 'lost' }),
    })
    own('driver', () => driver.close())
    const queue = new DatabaseQueue({
      driver,
      settings: config,
      broadcast,
      clock: wallClock,
      random: Math.random,
      log,
      background,
      counted: (lane, outcome) => ended.add(1, { lane, outcome }),
    })
    own('lanes', () => queue.close())
    metrics.observed('svc_queue_jobs_running', 'Jobs of the queue that run now, by lane.', () =>
      queue.active().map(({ lane, active }) => ({ value: active, labels: { lane } })),
    )
    routes.add(...queueRoutes(queue, config, audit))
    tools.add(statusTool(queue))
    jobs.every('retention', HOUR_MS, () => queue.deleteOld())
    jobs.every('poll', config.poll_interval_ms, async () => queue.poll())
    jobs.every('leases', (config.lease_secs * 1000) / 3, () => queue.renew())
    /** Without another daemon that takes them, jobs are done here to the end. */
    const handOver = async (): Promise<void> => {
      const others = cluster.isDraining ? await cluster.members() : []
      await queue.pause(others.some(({ id, state }) => id !== cluster.self && state === 'active'))
    }
    hooks.on(DrainingChanged, handOver)
    hooks.on(MemberEnded, async () => {
      await handOver()
      await queue.renew()
    })
    hooks.on(OwnedCounted, async (counts) => [...counts, ...(await queue.owned())])
    await handOver()
    const isReloaded = daemon.plugins().some(({ name, reloads }) => name === 'queue' && reloads > 0)
    // A job may need the tools and channels of any plugin.
    background(async () => {
      await pluginsLoaded(daemon, 'queue', leaving)
      if (!leaving.aborted) queue.begin(isReloaded)
    })
    return { queue }
  },
})
