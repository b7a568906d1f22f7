import { defineRoute, Refusal } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import { ORIGIN } from './chain.ts'
import type * as v from 'valibot'
import type { Link } from './chain.ts'
import { Proof, ProofParams, Recent, RecentQuery, Verdict } from './schema.ts'
import type { AuditEntry } from './schema.ts'
import type { AuditTrail } from './service.ts'

export function auditRoutes(trail: AuditTrail): readonly AnyRoute[] {
  return [
    recentRoute(trail, '/api/audit/recent', 'The newest audit entries'),
    recentRoute(trail, '/api/audit/logs', 'The newest audit entries (alternate listing)'),
    recentRoute(trail, '/api/audit/chain', 'The newest links of the hash chain (alternate listing)'),
    verifyRoute(trail),
    proofRoute(trail),
  ]
}

function verifyRoute(trail: AuditTrail): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/audit/verify',
    summary: 'Check the hash chain of the audit trail',
    description:
      'Reads every entry of the database, and compares the end of the chain with the anchor outside it and the ' +
      'entries with the signed checkpoints.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    returns: Verdict,
    handle: () => trail.verify(),
  })
}

function proofRoute(trail: AuditTrail): AnyRoute {
  return defineRoute({
    method: 'GET',
    path: '/api/audit/proof/:id',
    summary: 'Prove that an entry was there when a checkpoint was signed',
    description:
      "The leaf is SHA-256 of 0x00 and the 32 bytes of the entry's hash, a node that of 0x01 and both its children " +
      '(RFC 6962). The signature is Ed25519 over `svc-audit-checkpoint-1:<size>:<root>:<timestamp>`.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    params: ProofParams,
    returns: Proof,
    errors: ['entry_not_found'],
    async handle({ params }) {
      await trail.number()
      const [entry, found] = await Promise.all([trail.store.find(params.id), trail.checkpoints.prove(params.id)])
      if (!entry || !found)
        throw new Refusal(
          'entry_not_found',
          `There is no proof for entry ${params.id}: it does not exist, was dropped, or is newer than the newest ` +
            'checkpoint',
        )
      return {
        entry: toEntry(entry),
        leaf_index: found.leafIndex,
        checkpoint: found.checkpoint,
        path: [...found.path],
        public_key: found.publicKey,
      }
    },
  })
}

function recentRoute(trail: AuditTrail, path: `/${string}`, summary: string): AnyRoute {
  return defineRoute({
    method: 'GET',
    path,
    summary,
    description:
      'Newest last. `total` counts all entries that match the filters. `limit` is 50 unless given. `since` and ' +
      '`until` are times, `before` the number of an entry.',
    auth: 'bearer',
    effect: 'read',
    cost: 5,
    query: RecentQuery,
    returns: Recent,
    async handle({ query }) {
      const filter = { agentId: query.agent_id, eventType: query.event_type }
      const limit = query.limit ?? query.n ?? 50
      const period = { since: query.since, until: query.until, before: query.before }
      const anytime = Object.values(period).every((bound) => bound === undefined)
      await trail.number()
      const [entries, total, tip] = await Promise.all([
        anytime ? trail.store.recent(limit, filter) : trail.store.within(limit, filter, period),
        anytime ? trail.store.count(filter) : trail.store.countWithin(filter, period),
        trail.store.tip(),
      ])
      return { entries: entries.map(toEntry), total, tip_hash: tip?.hash ?? ORIGIN }
    },
  })
}

function toEntry(link: Link): v.InferOutput<typeof AuditEntry> {
  const { writer, seq, writer_hash: writerHash, ...entry } = link
  return {
    ...entry,
    actor: link.actor ?? '',
    ...(writer ? { writer, seq: Number(seq), writer_hash: writerHash ?? '' } : {}),
  }
}
