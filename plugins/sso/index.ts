import { Daemon, definePlugin, readVariable } from 'svc/sdk'
import { Audit } from '../audit/contract.ts'
import { accountRoutes } from './account-routes.ts'
import { readProviders, Settings } from './config.ts'
import type { Door } from './door.ts'
import { migrations } from './migrations.ts'
import { signInRoutes } from './routes.ts'
import { Sessions } from './sessions.ts'
import { SessionStore } from './store.ts'

export default definePlugin({
  name: 'sso',
  version: '1.0.0',
  config: Settings,
  requires: { audit: Audit, daemon: Daemon },
  migrations,
  async setup({ config: settings, credentials, db, fetch, jobs, log, routes, services: { audit, daemon } }) {
    const now = (): number => Date.now()
    const read = settings.enabled ? readProviders(settings, daemon.config().listenAddr, readVariable) : 'write enabled = true under [external_auth] into config.toml'
    const providers = typeof read === 'string' ? [] : read
    const sessions = new Sessions({
      store: new SessionStore(db), audit, now, providers,
      limits: { ttlMs: settings.session_ttl_secs * 1000, most: settings.max_sessions, perUser: settings.max_sessions_per_user },
    })
    let made: Promise<Door> | undefined
    const door = (): Promise<Door> => (made ??= Promise.all([import('./door.ts'), import('./sign-in.ts')]).then(([{ Door }, { SignIn }]) => new Door({
      signIn: new SignIn(providers, { fetch, timeoutMs: settings.timeout_ms, now }), sessions, credentials, ttlSecs: settings.session_ttl_secs, redirectUrl: providers[0]?.redirectUrl ?? '',
      warn: (message, fields) => log.warn(message, fields),
    })))
    const parts = { providers: read, sessions, credentials, door }
    routes.add(...signInRoutes(parts), ...accountRoutes(parts))
    if (settings.enabled && typeof read === 'string') log.warn(`nobody can sign in: ${read}`)
    if (providers.length === 0) return {}
    await sessions.open(credentials)
    jobs.every('sign-ins that ended', 60_000, async () => {
      await sessions.sweep()
      // Another daemon on the same database may have signed people in or out.
      if (db.dialect === 'postgresql') await sessions.read()
    })
    return {}
  },
})
