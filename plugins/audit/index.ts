import { join } from 'node:path'
import * as v from 'valibot'
import { Daemon, definePlugin } from 'svc/sdk'
import { AnchorFile } from './anchor.ts'
import { Audit, AuditFeed } from './contract.ts'
import { migrations } from './migrations.ts'
import { auditRoutes } from './routes.ts'
import { AuditTrail } from './service.ts'

export default definePlugin({
  name: 'audit',
  version: '1.0.0',
  config: v.object({}),
  requires: { daemon: Daemon },
  provides: { audit: Audit, feed: AuditFeed },
  migrations,
  async setup({ db, vault, routes, services, own, log }) {
    const trail = new AuditTrail(db, new AnchorFile(join(services.daemon.config().homeDir, 'audit.anchor'), vault), log)
    own('anchor', () => trail.close())
    // A crash leaves the anchor a second behind at most; from here on it is at the end again.
    await trail.anchor()
    routes.add(...auditRoutes(trail))
    return { audit: trail, feed: trail }
  },
})
