import { messageOf, readVariable } from 'svc/internal'
import type { RowProofs, RowsInMemory, TellChange } from 'svc/internal'
import type { Fetch, Jobs, PluginCredentials, PluginDatabase } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import { readProviders } from './config.ts'
import type { Provider } from './config.ts'
import type { EndedSignIns } from './ended.ts'
import type { ExternalAuth } from './section.ts'
import type { SignInFlow } from './sign-in-flow.ts'
import { Sessions } from './sessions.ts'
import { SessionStore } from './store.ts'

export interface SignInServiceDeps {
  /** `[external_auth]` of the configuration. */
  readonly section: ExternalAuth
  readonly listenAddr: string
  readonly audit: Audit
  readonly credentials: PluginCredentials
  readonly db: PluginDatabase
  readonly fetch: Fetch
  readonly jobs: Jobs
  /** Of all daemons on the database, for what a browser keeps between the steps of a sign-in. */
  readonly sharedKey: () => Promise<Uint8Array | undefined>
  /** Of rows of sign-ins. */
  readonly proofs: Pick<RowProofs, 'of' | 'holds'>
  /** What this home knows to be ended. */
  readonly ended: Pick<EndedSignIns, 'all' | 'put' | 'putAll'>
  /** Hears of people that another daemon signed in or out. */
  readonly follow: (rows: RowsInMemory) => TellChange
  warn(message: string, fields?: Record<string, unknown>): void
}
/** What people sign in with. */
export interface SignInService {
  readonly providers: readonly Provider[]
  readonly sessions: Sessions
  /** The sign-in service; created with the first sign-in. */
  readonly flow: () => Promise<SignInFlow>
}

/** From here on tokens of sign-ins are accepted. A text is the reason why sign-in is off. */
export async function openSignIn(deps: SignInServiceDeps): Promise<SignInService | string> {
  const { audit, credentials, db, fetch, follow, jobs, warn } = deps
  const { section: settings } = deps
  const now = (): number => Date.now()
  const providers = readProviders(settings, deps.listenAddr, readVariable)
  if (typeof providers === 'string') {
    warn(`sign-in is off: ${providers}`)
    return providers
  }
  const store = new SessionStore(db)
  const sessions = new Sessions({
    store,
    audit,
    now,
    proofs: deps.proofs,
    ended: deps.ended,
    isShared: db.dialect === 'postgresql',
    follow,
    failed: (error) => warn('the sign-ins could not be read', { error: messageOf(error) }),
    providers,
    limits: {
      ttlMs: settings.session_ttl_secs * 1000,
      maxSessions: settings.max_sessions,
      perUser: settings.max_sessions_per_user,
    },
  })
  await sessions.open(credentials)
  jobs.every('sign-ins that ended', 60_000, async () => {
    await sessions.sweep()
    // What another daemon changed is told; this is for when it could not be read then.
    if (db.dialect === 'postgresql') await sessions.read()
  })
  let made: Promise<SignInFlow> | undefined
  const flow = (): Promise<SignInFlow> =>
    (made ??= Promise.all([import('./sign-in-flow.ts'), import('./sign-in.ts'), deps.sharedKey()]).then(
      ([{ SignInFlow }, { SignIn }, key]) =>
        new SignInFlow({
          signIn: new SignIn(providers, { fetch, timeoutMs: settings.timeout_ms, now, store, key }),
          sessions,
          credentials,
          ttlSecs: settings.session_ttl_secs,
          redirectUrl: providers[0]?.redirectUrl ?? '',
          warn,
        }),
    ))
  return { providers, sessions, flow }
}
