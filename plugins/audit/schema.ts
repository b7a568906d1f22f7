import * as v from 'valibot'

export const AuditEntry = v.object({
  id: v.pipe(v.number(), v.integer()),
  timestamp: v.string(),
  event_type: v.string(),
  agent_id: v.string(),
  details: v.string(),
  actor: v.pipe(
    v.string(),
    v.description('Who requested it: the API key, a device, a sign-in, an agent. Empty: the daemon itself.'),
  ),
  hash: v.string(),
  prev_hash: v.string(),
  writer: v.optional(
    v.pipe(v.string(), v.description('Where daemons share a database: the home that wrote it and its chain.')),
  ),
  seq: v.optional(v.pipe(v.number(), v.integer(), v.description("Its number in the writer's chain, from 1."))),
  writer_hash: v.optional(v.pipe(v.string(), v.description("Its hash in the writer's chain."))),
})
const limit = v.pipe(
  v.string(),
  v.regex(/^(?:[1-9]\d?|[1-4]\d\d|500)$/, 'must be a whole number from 1 to 500'),
  v.transform(Number),
)
const number = v.pipe(v.string(), v.regex(/^[1-9]\d{0,14}$/, 'must be the number of an entry'), v.transform(Number))
const time = v.pipe(
  v.string(),
  v.regex(
    /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?)?$/,
    'must be a time such as 2026-01-31T12:00:00Z',
  ),
  v.check(
    (text) =>
      !Number.isNaN(Date.parse(text)) && new Date(text.slice(0, 10)).toISOString().startsWith(text.slice(0, 10)),
    'must be a time that exists',
  ),
  v.transform((text) => new Date(text).toISOString()),
)
/** `n` is what other services of this kind call `limit`. */
export const RecentQuery = v.object({
  limit: v.optional(limit),
  n: v.optional(limit),
  agent_id: v.optional(v.pipe(v.string(), v.maxLength(256))),
  event_type: v.optional(v.pipe(v.string(), v.maxLength(64))),
  since: v.optional(time),
  until: v.optional(time),
  before: v.optional(number),
})
export const Recent = v.object({
  entries: v.array(AuditEntry),
  total: v.pipe(v.number(), v.integer()),
  tip_hash: v.string(),
})

const EntryId = v.nullable(v.pipe(v.number(), v.integer()))
export const Checkpoint = v.object({
  size: v.pipe(v.number(), v.integer()),
  root: v.string(),
  timestamp: v.string(),
  key_id: v.string(),
  signature: v.string(),
})
export const Verdict = v.object({
  status: v.picklist(['valid', 'invalid']),
  valid: v.boolean(),
  chain_length: v.pipe(v.number(), v.integer()),
  entries: v.pipe(v.number(), v.integer()),
  /** Ids of the ends of the chain; null when it is empty. */
  first_entry: EntryId,
  last_entry: EntryId,
  tip_hash: v.string(),
  first_invalid_id: v.optional(v.pipe(v.number(), v.integer())),
  /** Who wrote that entry, and its number in the chain of the writer, where daemons share a database. */
  first_invalid_writer: v.optional(v.string()),
  first_invalid_seq: v.optional(v.pipe(v.number(), v.integer())),
  reason: v.optional(v.string()),
  /** The chains of the daemons that share the database; the first thousand. */
  writers: v.optional(
    v.array(
      v.object({
        writer: v.string(),
        entries: v.pipe(v.number(), v.integer()),
        last_seq: v.pipe(v.number(), v.integer()),
      }),
    ),
  ),
  /** Whether the record of the chain's end outside the database could be used. */
  anchor: v.picklist(['known', 'unset', 'missing', 'keyless', 'forged']),
  /** The newest signed root of the tree over all entries. */
  checkpoint: v.nullable(Checkpoint),
  /** What checks its signature: Ed25519, PEM. */
  public_key: v.optional(v.string()),
  /** The chain begins behind this entry: those before it are older than they are kept. */
  origin: v.optional(v.object({ entry_id: v.pipe(v.number(), v.integer()), hash: v.string() })),
})
export type Verdict = v.InferOutput<typeof Verdict>

export const ProofParams = v.object({ id: number })
export const Proof = v.object({
  entry: AuditEntry,
  leaf_index: v.pipe(v.number(), v.integer()),
  checkpoint: Checkpoint,
  /** Hashes from the leaf to the root (RFC 6962, 2.1.1), hex. */
  path: v.array(v.string()),
  public_key: v.string(),
})
