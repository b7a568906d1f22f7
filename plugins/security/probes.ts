import type { OwnPort } from 'svc/internal'
import type { Fetch, Spawn, Vault } from 'svc/sdk'
import type { Finding, Probe, SystemName } from './contract.ts'

/** What the probes of the core's systems use. */
export interface ProbeTools {
  readonly ownPort: OwnPort
  readonly fetch: Fetch
  readonly spawn: Spawn
  readonly vault: Vault
  apiKeySet(): boolean
}
type RunProbe = (tools: ProbeTools, signal: AbortSignal) => Promise<Finding>

/** Imported when they run: a start does not need them. */
const coreSystems: Partial<Record<SystemName, () => Promise<{ readonly probe: RunProbe }>>> = {
  security_headers: () => import('./probes/headers.ts'),
  gcra_rate_limiter: () => import('./probes/rate-limiter.ts'),
  path_traversal_prevention: () => import('./probes/paths.ts'),
  ssrf_protection: () => import('./probes/outbound.ts'),
  subprocess_sandbox: () => import('./probes/subprocess.ts'),
  secret_zeroization: () => import('./probes/secrets.ts'),
}

export function coreProbes(tools: ProbeTools): readonly Probe[] {
  return Object.entries(coreSystems).map(([system, load]) => ({
    // The keys of the record above.
    system: system as SystemName,
    run: async (signal) => (await load()).probe(tools, signal),
  }))
}
