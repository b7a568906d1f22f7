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

/** One input, and whether the system handled it as it must: let it pass, or refused it. */
export interface ProbeCase {
  readonly name: string
  readonly passed: boolean
}
export interface Finding {
  /**
   * At least one input that must pass and one that must be refused. The status is `failed` when a case did not pass, or
   * when there is none.
   */
  readonly cases: readonly ProbeCase[]
  /** What else an operator should know, such as `policy: warn, 0 pinned signers`. No secrets, no paths. */
  readonly evidence: string
  /** Every case passed, but this machine offers only a weaker form of the protection: the status is `degraded`. */
  readonly degraded?: boolean
  /** It could not be tried here, for example without an open port: the status is `unknown`. */
  readonly skipped?: boolean
}
/**
 * Tests one security system. `run` calls the same functions as the request path, never a copy and never a setting. A
 * rejection is a failure of the system. It has two seconds, and lets other work run at least every 20 ms.
 */
export interface Probe {
  readonly system: SystemName
  run(signal: AbortSignal): Promise<Finding>
}

/** Applied at every run: the plugin that owns a system adds its probe. Import the code of a probe when it runs. */
export const CollectProbes = transform<readonly Probe[]>('security:probes-listed')
