import { defineRoute } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { Recent, RecentQuery, Verdict } from './schema.ts'
import type { AuditTrail } from './service.ts'

export function auditRoutes(trail: AuditTrail): readonly AnyRoute[] {
  const recent = (path: `/${string}`, summary: string): AnyRoute => defineRoute({
    method: 'GET', path, summary,
    description: 'Newest last. `total` counts all entries that match the filters.',
    auth: 'bearer', cost: 5,
    query: RecentQuery, returns: Recent,
    async handle({ query }) {
      const filter = { agentId: query.agent_id, eventType: query.event_type }
      const [entries, total] = await Promise.all([trail.store.recent(query.limit, filter), trail.store.count(filter)])
      return { entries, total }
    },
  })
  const verify = defineRoute({
    method: 'GET', path: '/api/audit/verify', summary: 'Check the hash chain of the audit trail',
    description: 'Reads every entry of the database and compares the end of the chain with the anchor outside it.',
    auth: 'bearer', cost: 5,
    returns: Verdict,
    handle: () => trail.verify(),
  })
  return [
    recent('/api/audit/recent', 'The newest audit entries'),
    recent('/api/audit/logs', 'The newest audit entries (alternate listing)'),
    recent('/api/audit/chain', 'The newest links of the hash chain (alternate listing)'),
    verify,
  ]
}
