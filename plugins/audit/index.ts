import { join } from 'node:path'
import * as v from 'valibot'
import { AuthenticationFailed, Daemon, homeId, PluginChanged, UnrecordedChange } from 'svc/internal'
import { definePlugin, fields, fileOnly, omitUndefined } from 'svc/sdk'
import { CollectProbes } from '../security/contract.ts'
import { ANCHOR_FILE, AnchorFile } from './anchor.ts'
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
      retention_days: fields.integer(
        'Days after which entries are dropped, in blocks of 1,024 that a checkpoint covers; 0 keeps them.',
        90,
        0,
        36_500,
      ),
      trim_interval_secs: fields.integer(
        'Seconds between two searches for entries that are too old.',
        3_600,
        60,
        604_800,
      ),
      checkpoint_secs: fields.integer(
        'Seconds that new entries wait for a signed checkpoint at most; a thousand of them do not wait.',
        60,
        1,
        86_400,
      ),
    }),
  ),
  requires: { daemon: Daemon },
  provides: { audit: Audit, feed: AuditFeed },
  migrations,
  databaseSidecars: [ANCHOR_FILE],
  offline: { verify: async (parts, options) => (await import('./offline.ts')).verifyOffline(parts, options) },
  pages: [{ path: 'audit', title: 'Audit trail', group: 'Operations', file: 'pages/audit.html', assets: ['audit.js'] }],
  async setup({ config, db, hooks, jobs, vault, routes, services, own, log }) {
    const { homeDir } = services.daemon.config()
    const writers =
      db.dialect === 'postgresql' ? (await import('./writers/open.ts')).openWriters(db, homeId({ homeDir })) : undefined
    const anchor = new AnchorFile(join(homeDir, ANCHOR_FILE), vault, writers)
    const trail = new AuditTrail({ db, anchor, signer: new Signer(vault, writers), log, writers })
    hooks.on(CollectProbes, (probes) => [
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
    hooks.on(PluginChanged, ({ plugin, change, version, source, reason, actor }) =>
      trail.write({
        event: 'plugin_changed',
        details: `plugin "${plugin}" ${version} (${source}): ${change}${reason === undefined ? '' : `: ${reason}`}`,
        ...omitUndefined({ actor }),
      }),
    )
    own('anchor', () => trail.close())
    // A crash leaves the anchor a second behind at most; from here on it is at the end again.
    await trail.anchor()
    await trail.recordReset()
    routes.add(...auditRoutes(trail))
    jobs.every('checkpoint', config.checkpoint_secs * 1000, () => trail.checkpointInTurn())
    jobs.every('retention', config.trim_interval_secs * 1000, (signal) => trail.retire(config.retention_days, signal))
    return { audit: trail, feed: trail }
  },
})
