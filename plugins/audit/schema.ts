import * as v from 'valibot'

export const AuditEntry = v.object({
  id: v.pipe(v.number(), v.integer()),
  timestamp: v.string(),
  event_type: v.string(),
  agent_id: v.string(),
  details: v.string(),
  hash: v.string(),
  prev_hash: v.string(),
})
export const RecentQuery = v.object({
  limit: v.optional(v.pipe(v.string(), v.regex(/^(?:[1-9]\d?|[1-4]\d\d|500)$/, 'must be a whole number from 1 to 500'), v.transform(Number)), '50'),
  agent_id: v.optional(v.pipe(v.string(), v.maxLength(256))),
  event_type: v.optional(v.pipe(v.string(), v.maxLength(64))),
})
export const Recent = v.object({ entries: v.array(AuditEntry), total: v.pipe(v.number(), v.integer()) })

const EntryId = v.nullable(v.pipe(v.number(), v.integer()))
export const Verdict = v.object({
  status: v.picklist(['valid', 'invalid']),
  chain_length: v.pipe(v.number(), v.integer()),
  /** Ids of the ends of the chain; null when it is empty. */
  first_entry: EntryId,
  last_entry: EntryId,
  first_invalid_id: v.optional(v.pipe(v.number(), v.integer())),
  reason: v.optional(v.string()),
  /** Whether the record of the chain's end outside the database could be used. */
  anchor: v.picklist(['known', 'unset', 'missing', 'forged']),
})
export type Verdict = v.InferOutput<typeof Verdict>
