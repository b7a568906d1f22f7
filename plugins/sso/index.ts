import * as v from 'valibot'
import { Broadcast, Daemon, DatabaseSnapshots, followChanges, rowProofs } from 'svc/internal'
import { definePlugin } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { accountRoutes } from './account-routes.ts'
import { migrations } from './migrations.ts'
import { signInRoutes } from './routes.ts'
import { ExternalAuth } from './section.ts'

export default definePlugin({
  name: 'sso',
  version: '1.0.0',
  config: v.object({}),
  sections: { external_auth: v.optional(ExternalAuth, {}) },
  requires: { audit: Audit, broadcast: Broadcast, daemon: Daemon, snapshots: DatabaseSnapshots },
  migrations,
  pages: [
    {
      path: 'sign-ins',
      title: 'Sign-ins',
      group: 'Operations',
      table: {
        route: '/api/auth/sessions',
        rows: 'sessions',
        columns: [
          { field: 'name', title: 'Name' },
          { field: 'email', title: 'Address' },
          { field: 'provider', title: 'Provider' },
          { field: 'created_at', title: 'Since' },
          { field: 'expires_at', title: 'Until' },
        ],
        empty: 'Nobody is signed in. [external_auth] in config.toml lets people sign in with a provider.',
      },
      actions: [{ title: 'End', method: 'DELETE', route: '/api/auth/sessions/:id', dangerous: true }],
    },
  ],
  async setup({
    config: { external_auth: section },
    credentials,
    db,
    fetch,
    jobs,
    log,
    own,
    routes,
    services: { audit, broadcast, daemon, snapshots },
    vault,
  }) {
    const service = section.enabled
      ? await (
          await import('./sign-in-service.ts')
        ).openSignIn({
          section,
          listenAddr: daemon.config().listenAddr,
          audit,
          credentials,
          db,
          fetch,
          jobs,
          sharedKey: async () => (broadcast.isShared ? snapshots.deriveKey('sign-in') : undefined),
          proofs: rowProofs({ derive: () => snapshots.deriveKey('sign-in-rows'), vault }),
          ended: new (await import('./ended.ts')).EndedSignIns(snapshots.homeDir),
          follow: (rows) => followChanges({ broadcast, own }, 'sso.sessions', rows),
          warn: (message, fields) => log.warn(message, fields),
        })
      : 'write enabled = true under [external_auth] into config.toml'
    routes.add(
      ...signInRoutes(service, credentials),
      ...accountRoutes(typeof service === 'string' ? undefined : service.sessions, credentials),
    )
    return {}
  },
})
