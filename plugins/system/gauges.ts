import type { Daemon } from 'svc/internal'
import type { Hooks, Metrics } from 'svc/sdk'
import { AgentSpawned } from '../agents/contract.ts'
import type { Agents } from '../agents/contract.ts'
import type { Spending } from '../usage/contract.ts'

/**
 * Registers the daemon's own metrics. The returned function brings them up to date and is called before they are read.
 */
export function createGauges(
  metrics: Metrics,
  hooks: Hooks,
  daemon: Daemon,
  agents: () => Agents | undefined,
  spending: () => Spending | undefined,
): () => Promise<void> {
  metrics.observed('svc_info', 'The build that runs, always 1.', () => [
    { value: 1, labels: { version: daemon.build.version } },
  ])
  metrics.observed('svc_uptime_seconds', 'Time since the daemon was started.', () => [
    { value: daemon.health().uptimeSecs },
  ])
  const active = metrics.gauge('svc_agents_active', 'Agents in state Running.')
  const registered = metrics.gauge('svc_agents', 'Agents that exist.')
  // Decision: a name that ends in _total belongs to a counter, so this one counts, and `svc_agents` is the number of
  // agents.
  const total = metrics.counter('svc_agents_total', 'Agents that existed at the first scrape and those spawned since.')
  const panics = metrics.counter('svc_panics_total', 'Defects since the daemon was started.')
  const restarts = metrics.counter('svc_restarts_total', 'Restarts requested since the home was created.')
  const cost = metrics.gauge(
    'svc_cost_usd_today',
    'What calls of models cost since the day began (UTC), as far as their prices are known.',
  )
  const reported = { agents: false, panics: 0, restarts: 0 }

  hooks.on(AgentSpawned, () => {
    if (reported.agents) total.add()
  })

  return async () => {
    const list = (await agents()?.list()) ?? []
    active.set(list.filter((agent) => agent.state === 'Running').length)
    registered.set(list.length)
    if (!reported.agents) total.add(list.length)
    reported.agents = true
    const spent = await spending()?.spent()
    if (spent) cost.set(spent.dayNano / 1e9)
    const { panicCount, restartCount } = daemon.health()
    panics.add(panicCount - reported.panics)
    restarts.add(restartCount - reported.restarts)
    reported.panics = panicCount
    reported.restarts = restartCount
  }
}
