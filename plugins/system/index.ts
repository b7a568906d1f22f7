import { existsSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { Daemon, DaemonListening, Logs } from 'svc/internal'
import { definePlugin, fields, fileOnly } from 'svc/sdk'
import { Agents } from '../agents/contract.ts'
import { Audit } from '../audit/contract.ts'
import { Cluster } from '../cluster/contract.ts'
import { Inference } from '../providers/contract.ts'
import { CollectProbes } from '../security/contract.ts'
import { Spending } from '../usage/contract.ts'
import { RECORDED_REQUESTS } from './contract.ts'
import { controlRoutes } from './control-routes.ts'
import { createGauges } from './gauges.ts'
import { healthRoutes } from './health-routes.ts'
import { recordStart, recordStop } from './life.ts'
import { logRoutes } from './log-routes.ts'
import { toolRoutes } from './tool-routes.ts'
import { systemTools } from './tools.ts'

/** What a killed daemon may lose. */
const WRITE_MS = 60_000

export default definePlugin({
  name: 'system',
  version: '1.0.0',
  config: v.object({
    recorded_requests: fileOnly(
      'says whether a file keeps what was asked',
      fields.integer(
        'Read-only requests that are recorded for the rehearsal of an upgrade; 0 records none.',
        0,
        0,
        100,
      ),
    ),
  }),
  requires: { audit: Audit, daemon: Daemon, logs: Logs },
  optional: { agents: Agents, cluster: Cluster, inference: Inference, spending: Spending },
  pages: [
    { path: 'logs', title: 'Logs', group: 'Operations', file: 'pages/logs.html', assets: ['logs.js', 'logs.css'] },
  ],
  async setup({ config, hooks, jobs, log, metrics, optional, own, routes, services: { audit, daemon, logs }, tools }) {
    const agents = () => optional('agents')
    const around = { daemon, agents, cluster: () => optional('cluster'), inference: () => optional('inference') }
    const refresh = createGauges(metrics, hooks, daemon, agents, () => optional('spending'))
    routes.add(
      ...healthRoutes(around),
      ...controlRoutes(daemon, audit, refresh),
      ...toolRoutes(tools),
      ...logRoutes(logs),
    )
    tools.add(...systemTools(around))
    hooks.on(CollectProbes, (probes) => [
      ...probes,
      { system: 'health_redaction', run: async () => (await import('./probe.ts')).probe(daemon) },
    ])
    hooks.on(DaemonListening, () => recordStart(daemon, audit))
    own('record of the stop', () => recordStop(daemon, audit))
    if (config.recorded_requests > 0) {
      const { startRecorder } = await import('./request-recorder.ts')
      const recorder = await startRecorder(daemon, config.recorded_requests, (line) => log.warn(line))
      jobs.every('recorded requests', WRITE_MS, () => recorder.write())
      own('recorded requests', () => recorder.end())
    } else if (existsSync(join(daemon.config().dataDir, RECORDED_REQUESTS)))
      await (await import('./request-recorder.ts')).removeRecorded(daemon)
    return {}
  },
})
