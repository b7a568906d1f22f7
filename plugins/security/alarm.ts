import type { Logger } from 'svc/sdk'
import type { Daemon } from 'svc/internal'
import type { Counter, Gauge } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { SystemRow } from './runner.ts'

export interface AlarmDeps {
  readonly audit: Audit
  readonly daemon: Daemon
  readonly log: Logger
  readonly failures: Counter
  readonly up: Gauge
}

/**
 * Reports a system that began to fail or recovered: to the audit log, to a metric and to the log; a broken audit trail
 * also makes the daemon unhealthy.
 */
export async function reportChange(
  { audit, daemon, log, failures, up }: AlarmDeps,
  { system, status, failures: failedCases }: SystemRow,
): Promise<void> {
  const failed = status === 'failed'
  const why = failedCases.join('; ').slice(0, 1000)
  up.set(failed ? 0 : 1, { system })
  if (failed) failures.add(1, { system })
  // A failing scanner must not take the daemon out of rotation; an untrustworthy audit trail must.
  if (system === 'merkle_audit_trail')
    daemon.setImpaired('audit trail', failed ? `this does not hold: ${why}` : undefined)
  if (failed) log.error(`security system ${system} failed its probe: ${why}`)
  else log.info(`security system ${system} passes its probe again`)
  try {
    await audit.write(
      failed
        ? { event: 'security_system_failed', details: `${system}: ${why}` }
        : { event: 'security_system_recovered', details: system },
    )
  } catch (error) {
    // When the audit trail itself fails, only the log is left.
    log.error(`the change of ${system} could not be written to the audit log`, error)
  }
}
