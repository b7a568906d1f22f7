import { defineRoute, Refusal } from 'svc/sdk'
import type { Daemon } from 'svc/internal'
import type { AnyRoute } from 'svc/sdk'
import type { Agents } from '../agents/contract.ts'
import type { Cluster } from '../cluster/contract.ts'
import type { Inference } from '../providers/contract.ts'
import { machine } from './machine.ts'
import { publicHealth } from './public-health.ts'
import { Health, HealthDetail, Ready, Status, Version, Versions } from './schema.ts'

export interface SystemServices {
  readonly daemon: Daemon
  /** Read each time: they may be reloaded, or missing. */
  agents(): Agents | undefined
  cluster(): Cluster | undefined
  inference(): Inference | undefined
}

export type RunningServices = Omit<SystemServices, 'cluster'>

/** The health and version of the daemon (Interface 4.5 and 9). */
export function healthRoutes({ daemon, agents, cluster, inference }: SystemServices): readonly AnyRoute[] {
  return [
    healthRoute(daemon),
    readyRoute(daemon, cluster),
    detailRoute({ daemon, agents, inference }),
    statusRoute({ daemon, agents, inference }),
    versionRoute(daemon),
    versionsRoute(),
  ]
}

function healthRoute(daemon: Daemon): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/health',
    summary: 'Whether the daemon is well',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: Health,
    handle: () => publicHealth(daemon.health()),
  })
}

function readyRoute(daemon: Daemon, cluster: SystemServices['cluster']): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/ready',
    summary: 'Whether a load balancer is to send requests here',
    auth: 'public',
    effect: 'read',
    cost: 1,
    returns: Ready,
    handle() {
      const why = whyNotReady(daemon, cluster())
      if (why !== undefined) throw new Refusal('service_unavailable', `This daemon ${why}`, { retryAfterSecs: 5 })
      return { status: 'ready' as const }
    },
  })
}
function whyNotReady(daemon: Daemon, cluster: Cluster | undefined): string | undefined {
  if (daemon.stopping !== undefined) return 'is stopping'
  const { database, unready } = daemon.health()
  if (database === 'error') return 'does not reach its database'
  if (unready.length > 0) return `is impaired (${unready.join(', ')})`
  if (cluster?.isDraining) return 'is draining'
  const plugin = daemon.plugins().find(({ name }) => name === 'cluster')
  return cluster || !plugin || plugin.state === 'disabled' ? undefined : 'has not joined those on its database'
}

function detailRoute(services: RunningServices): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/health/detail',
    summary: 'Health with details',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    returns: HealthDetail,
    handle: async () => (await import('./health-views.ts')).describeHealth(services),
  })
}

function statusRoute(services: RunningServices): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/status',
    summary: 'What runs here',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    returns: Status,
    handle: async () => (await import('./health-views.ts')).describeStatus(services),
  })
}

function versionRoute(daemon: Daemon): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/version',
    summary: 'Which build runs here',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    returns: Version,
    handle() {
      const { version: number, buildDate, gitSha } = daemon.build
      return {
        name: 'svc' as const,
        version: number,
        build_date: buildDate,
        git_sha: gitSha,
        // The interface has a field for a compiler, which this implementation does not have.
        rust_version: `none (node ${process.versions.node})`,
        ...machine(),
      }
    },
  })
}

function versionsRoute(): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/versions',
    summary: 'Which versions of the API are served',
    auth: 'bearer',
    effect: 'read',
    cost: 1,
    returns: Versions,
    handle: () => ({
      current: 'v1',
      supported: ['v1'],
      deprecated: [],
      // Interface 9: no version in the paths below `/api`.
      details: [{ version: 'v1', status: 'stable', url_prefix: '/api' }],
    }),
  })
}
