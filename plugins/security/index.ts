import { Daemon, DaemonListening } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { reportChange } from './alarm.ts'
import { CollectProbes } from './contract.ts'
import { Enforcements } from './enforcements.ts'
import { coreProbes } from './probes.ts'
import { securityRoutes } from './routes.ts'
import { ProbeRunner } from './runner.ts'
import { SecurityConfig } from './schema.ts'

export default definePlugin({
  name: 'security',
  version: '1.0.0',
  config: SecurityConfig,
  hooks: [CollectProbes],
  requires: { audit: Audit, daemon: Daemon },
  pages: [
    { path: 'security', title: 'Security', group: 'Operations', file: 'pages/security.html', assets: ['security.js'] },
  ],
  setup(ctx) {
    const {
      config,
      hooks,
      jobs,
      leaving,
      log,
      metrics,
      own,
      routes,
      run,
      services: { audit, daemon },
    } = ctx
    const enforcements = new Enforcements(
      metrics.counter('svc_security_enforcements_total', 'Refusals by a security system.'),
    )
    own('enforcement count', () => enforcements[Symbol.dispose]())
    const failures = metrics.counter(
      'svc_security_probe_failures_total',
      'Times a security system began to fail its probe.',
    )
    const up = metrics.gauge(
      'svc_security_system_up',
      'Whether a security system passed its last probe, 0 or 1; absent until one fails.',
    )
    const runner = new ProbeRunner({
      probes: () =>
        hooks.apply(
          CollectProbes,
          coreProbes({ ...ctx, ownPort: daemon.ownPort, apiKeySet: () => daemon.config().apiKeySet }),
        ),
      timeoutMs: config.probe_timeout_ms,
      staleMs: config.stale_ms,
      now: () => performance.now(),
      leaving,
      changed: (row) => reportChange({ audit, daemon, log, failures, up }, row),
    })
    routes.add(...securityRoutes(runner, enforcements, config.on_demand_ms))
    jobs.every('probes', config.probe_interval_ms, () => runner.run())
    // Pending requests are answered first.
    let timer: NodeJS.Timeout | undefined
    const scheduleFirstRun = (): void => {
      timer ??= setTimeout(() => {
        if (!leaving.aborted)
          run(() => runner.refresh(config.on_demand_ms)).catch((error: unknown) =>
            log.error('the first run of the security probes failed', error),
          )
      }, config.first_probe_ms).unref()
    }
    own('first run', () => clearTimeout(timer))
    hooks.on(DaemonListening, scheduleFirstRun)
    // On a reload the port is open already.
    if (daemon.isListening) scheduleFirstRun()
    return {}
  },
})
