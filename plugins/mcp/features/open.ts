import { wallClock } from 'svc/internal'
import type { Fetch } from 'svc/sdk'
import { ApprovalResolved } from '../../approvals/contract.ts'
import type { ClientFeatures } from '../connection/features.ts'
import { OAuthLogins } from '../oauth/logins.ts'
import type { LoginDeps, PlatformFetch } from '../oauth/logins.ts'
import { isPublic } from '../oauth/origin.ts'
import { OAuthRecords } from '../oauth/record.ts'
import type { ServerConfig } from '../servers/spec.ts'
import { createFeatures } from './index.ts'
import type { FeaturesDeps } from './index.ts'
import { ToolPins } from './pins.ts'
import type { PinsDeps } from './pins.ts'
import { PinStore } from './store.ts'
import type { Hooks, Logger, Vault } from 'svc/sdk'

export interface OpenFeaturesDeps
  extends
    Omit<FeaturesDeps, 'pins' | 'logins' | 'records' | 'now' | 'platformFetch' | 'hooks'>,
    Pick<PinsDeps, 'relist'>,
    Pick<LoginDeps, 'find' | 'changed'> {
  readonly vault: Vault
  readonly hooks: Hooks
  readonly log: Pick<Logger, 'error' | 'warn'>
  /** The network for this server. */
  readonly fetchOf: (server: ServerConfig) => Fetch
  readonly platformFetch: (server: ServerConfig, fetch: Fetch) => PlatformFetch
  /** Without a path: where a browser reaches this daemon. */
  readonly origin: () => string
}

/** Everything that servers may ask of this daemon, and the logins at them. */
export function openFeatures(deps: OpenFeaturesDeps): {
  readonly features: ClientFeatures
  readonly logins: OAuthLogins
} {
  const { settings, vault, hooks, log, db, approvals, relist } = deps
  const now = (): number => wallClock.now()
  const records = new OAuthRecords(vault)
  const pins = new ToolPins({ store: new PinStore(db), approvals, relist, maxPins: settings.max_remembered_tools })
  const logins = new OAuthLogins({
    ...deps,
    records,
    now,
    fetchOf: (server) => deps.platformFetch(server, deps.fetchOf(server)),
    isPublic: () => isPublic(settings),
    metadataUrl: settings.client_metadata_url,
  })
  hooks.on(ApprovalResolved, ({ approval }) =>
    pins.resolved(approval).catch((error: unknown) => log.error('changed tools could not be enabled', error)),
  )
  return { features: createFeatures({ ...deps, pins, logins, records, now }), logins }
}
