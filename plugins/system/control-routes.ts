import { defineRoute, reply } from 'svc/sdk'
import type { Daemon } from 'svc/internal'
import type { AnyRoute } from 'svc/sdk'
import * as v from 'valibot'
import type { Audit } from '../audit/contract.ts'
import { Document, Restarting, ShuttingDown } from './schema.ts'

/** Documents about the daemon, and its end. `refresh` brings the metrics up to date. */
export function controlRoutes(daemon: Daemon, audit: Audit, refresh: () => Promise<void>): readonly AnyRoute[] {
  const metrics = defineRoute({
    method: 'GET',
    path: '/api/metrics',
    summary: 'Metrics in the Prometheus text format',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: v.string(),
    produces: 'text/plain; version=0.0.4; charset=utf-8',
    async handle() {
      await refresh()
      return reply(daemon.metrics(), { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
    },
  })

  const openapi = defineRoute({
    method: 'GET',
    path: '/api/openapi.json',
    summary: 'OpenAPI 3.0 of the routes that are live now',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: Document,
    async handle() {
      return { ...(await daemon.openapi()) }
    },
  })

  const shutdown = defineRoute({
    method: 'POST',
    path: '/api/shutdown',
    summary: 'Stop the daemon',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    returns: ShuttingDown,
    async handle() {
      await audit.write({ event: 'config_change', details: 'shutdown requested' })
      daemon.shutdown('requested by POST /api/shutdown')
      return { status: 'shutting_down' as const }
    },
  })

  const restart = defineRoute({
    method: 'POST',
    path: '/api/restart',
    summary: 'Stop the daemon and start it again',
    auth: 'bearer',
    effect: 'lasting',
    cost: 5,
    returns: Restarting,
    async handle() {
      await audit.write({ event: 'config_change', details: 'restart requested' })
      daemon.restart('requested by POST /api/restart')
      return { status: 'restarting' as const }
    },
  })

  return [metrics, openapi, shutdown, restart]
}
