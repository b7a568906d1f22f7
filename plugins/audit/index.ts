import { join } from 'node:path'
import * as v from 'valibot'
import { AuthenticationFailed, Daemon, UnrecordedChange } from 'svc/internal'
import { definePlugin, fileOnly } from 'svc/sdk'
import { ProbesListed } from '../security/contract.ts'
import { AnchorFile } from './anchor.ts'
import { Audit, AuditFeed } from './contract.ts'
import { migrations } from './migrations.ts'
import { auditRoutes } from './routes.ts'
import { AuditTrail } from './service.ts'
import { Signer } from './tree/signer.ts'

export default definePlugin({
  name: 'audit',
  version: '1.0.0',
  config: fileOnly(
    'says how long what was done can be proved',
    v.object({
      /**
       * Entries that are older are dropped, in blocks of 1,024, once a checkpoint covers them; 0 keeps them for ever.
       */
      retention_days: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(36_500)), 90),
      trim_interval_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(60), v.maxValue(604_800)), 3_600),
      /** How long new entries wait for a signed checkpoint at most; a thousand of them do not wait. */
      checkpoint_secs: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(86_400)), 60),
    }),
  ),
  requires: { daemon: Daemon },
  provides: { audit: Audit, feed: AuditFeed },
  migrations,
  offline: { verify: async (parts, options) => (await import('./offline.ts')).verifyOffline(parts, options) },
  async setup({ config, db, hooks, jobs, vault, routes, services, own, log }) {
    const anchor = new AnchorFile(join(services.daemon.config().homeDir, 'audit.anchor'), vault)
    const trail = new AuditTrail(db, anchor, new Signer(vault), log)
    hooks.on(ProbesListed, (probes) => [
      ...probes,
      { system: 'merkle_audit_trail', run: async () => (await import('./probe.ts')).probe(trail, anchor) },
    ])
    hooks.on(AuthenticationFailed, ({ clientAddress, method, path, what }) =>
      trail.write({
        event: 'auth_attempt',
        details: `refused: ${what ?? 'a wrong key'} from ${clientAddress} for ${method} ${path}`,
      }),
    )
    hooks.on(UnrecordedChange, ({ method, path }) =>
      trail.write({ event: 'config_change', details: `${method} ${path} done` }),
    )
    own('anchor', () => trail.close())
    // A crash leaves the anchor a second behind at most; from here on it is at the end again.
    await trail.anchor()
    routes.add(...auditRoutes(trail))
    jobs.every('checkpoint', config.checkpoint_secs * 1000, () => trail.checkpoint())
    jobs.every('retention', config.trim_interval_secs * 1000, (signal) => trail.retire(config.retention_days, signal))
    return { audit: trail, feed: trail }
  },
})
