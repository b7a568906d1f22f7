import type { Logger } from 'svc/sdk'
import type { Daemon } from 'svc/internal'
import type { Counter, Gauge } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { Row } from './runner.ts'

export interface AlarmParts {
  readonly audit: Audit
  readonly daemon: Daemon
  readonly log: Logger
  readonly failures: Counter
  readonly up: Gauge
}

/**
 * Tells of a system that failed, or holds again: the audit log, a metric, the log, and for the audit trail the health
 * of the daemon.
 */
export async function tell(
  { audit, daemon, log, failures, up }: AlarmParts,
  { system, status, failures: broken }: Row,
): Promise<void> {
  const failed = status === 'failed'
  const why = broken.join('; ').slice(0, 1000)
  up.set(failed ? 0 : 1, { system })
  if (failed) failures.add(1, { system })
  // A scanner that fails must not take the daemon out of rotation; records nobody can trust must.
  if (system === 'merkle_audit_trail') daemon.setImpaired('audit trail', failed ? why : undefined)
  if (failed) log.error(`the security system ${system} does not hold: ${why}`)
  else log.info(`the security system ${system} holds again`)
  try {
    await audit.write(
      failed
        ? { event: 'security_system_failed', details: `${system}: ${why}` }
        : { event: 'security_system_recovered', details: system },
    )
  } catch (error) {
    // When it is the trail itself that fails, the log is what is left.
    log.error(`the audit log could not be told of ${system}`, error)
  }
}
