import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Enforcements } from './enforcements.ts'
import type { ProbeRunner } from './runner.ts'
import { SecurityStatus } from './schema.ts'

/** The status of the sixteen systems (Interface 4.9), as their probes found it. */
export function securityRoutes(
  runner: ProbeRunner,
  enforcements: Enforcements,
  onDemandMs: number,
): readonly AnyRoute[] {
  const status = (path: `/${string}`, summary: string): AnyRoute =>
    defineRoute({
      method: 'GET',
      path,
      summary,
      description:
        'Each status comes from the last run of a probe, which calls the functions that requests pass, ' +
        'with inputs that must pass and inputs that must be refused: ' +
        '`active`; `degraded`, which passed in a weaker form; `failed`; ' +
        '`unknown`, which was not probed in the last three minutes. ' +
        `A request runs the probes when the last run is older than ${onDemandMs / 1000} s.`,
      auth: 'bearer',
      effect: 'read',
      cost: 5,
      returns: SecurityStatus,
      async handle() {
        await runner.refresh(onDemandMs)
        return toStatus(runner, enforcements)
      },
    })
  return [
    status('/api/security', 'The state of the security systems'),
    status('/api/security/status', 'The state of the security systems (alternate listing)'),
  ]
}

function toStatus(runner: ProbeRunner, enforcements: Enforcements): SecurityStatus {
  const rows = runner.rows()
  const checked = rows.flatMap(({ checkedAt }) => checkedAt ?? []).toSorted()
  return {
    security_systems: Object.fromEntries(rows.map(({ system, status }) => [system, status])),
    total_systems: rows.filter(({ status }) => status !== 'unknown').length,
    all_active: rows.every(({ status }) => status === 'active'),
    checked_at: checked.at(-1) ?? null,
    probes: Object.fromEntries(
      rows.map(({ system, checkedAt, durationMs, cases, failures, evidence }) => {
        const { count, last } = enforcements.of(system)
        return [
          system,
          {
            checked_at: checkedAt ?? null,
            duration_ms: durationMs,
            cases,
            failures: [...failures],
            evidence,
            enforcement_count: count,
            last_blocked_at: last ?? null,
          },
        ]
      }),
    ),
    counting_since: enforcements.since,
  }
}
