import { transform } from 'svc/sdk'

/** The names of the interface (2.11), in its order. */
export const systemNames = [
  'merkle_audit_trail',
  'taint_tracking',
  'wasm_dual_metering',
  'security_headers',
  'health_redaction',
  'subprocess_sandbox',
  'manifest_signing',
  'gcra_rate_limiter',
  'secret_zeroization',
  'path_traversal_prevention',
  'ssrf_protection',
  'capability_inheritance_validation',
  'ofp_hmac_auth',
  'prompt_injection_scanning',
  'loop_guard',
  'session_repair',
] as const
export type SystemName = (typeof systemNames)[number]

/** One input, and whether the system did with it what it has to do: let it pass or refuse it. */
export interface ProbeCase {
  readonly name: string
  readonly held: boolean
}
export interface Finding {
  /**
   * At least one that must pass and one that must be refused. The row is `failed` when one did not hold, or when there
   * is none.
   */
  readonly cases: readonly ProbeCase[]
  /** What an operator should know beside it, such as `policy: warn, 0 pinned signers`. No secrets, no paths. */
  readonly evidence: string
  /** Everything held, but this machine offers only a weaker form of the protection: the row is `degraded`. */
  readonly weaker?: boolean
  /** `false`: it could not be tried here, such as without an open port; the row is `unknown` then. */
  readonly tried?: boolean
}
/**
 * Tries one security system. `run` calls the very functions the request path calls, never a copy and never a setting. A
 * rejection is a failure of the system. It gets two seconds, and lets other work run at least every 20 ms.
 */
export interface Probe {
  readonly system: SystemName
  run(signal: AbortSignal): Promise<Finding>
}

/** Asked at every run: whoever owns a system adds its probe. Probe code is imported when it runs. */
export const ProbesListed = transform<readonly Probe[]>('security:probes-listed')
