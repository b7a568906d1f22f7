import * as v from 'valibot'
import { jsonColumn, nullableColumn, numberColumn, toIso } from 'svc/internal'
import { omitUndefined } from 'svc/sdk'
import { MEMORY_LEVELS, SOURCE_KINDS } from '../contract.ts'
import type { Memory } from '../contract.ts'

const text = v.optional(v.string())
export const Source = v.object({
  kind: v.picklist(SOURCE_KINDS),
  turnId: text,
  messageId: text,
  sessionId: text,
  tool: text,
  file: text,
  person: text,
  labels: v.array(v.string()),
})

export const EntryRow = v.pipe(
  v.object({
    id: v.string(),
    agent_id: v.string(),
    user_id: v.string(),
    session_id: v.string(),
    level: v.picklist(MEMORY_LEVELS),
    category: nullableColumn(v.string()),
    content: v.string(),
    key: nullableColumn(v.string()),
    confidence: numberColumn,
    tags: jsonColumn(v.array(v.string())),
    source: jsonColumn(Source),
    metadata: jsonColumn(v.record(v.string(), v.unknown())),
    supersedes: nullableColumn(v.string()),
    superseded_by: v.string(),
    idempotency_key: nullableColumn(v.string()),
    created_at: v.string(),
    updated_at: v.string(),
    accessed_at: numberColumn,
    access_count: numberColumn,
    strength: numberColumn,
  }),
  v.transform((row): Memory => ({
    id: row.id,
    agentId: row.agent_id,
    content: row.content,
    level: row.level,
    confidence: row.confidence,
    strength: row.strength,
    tags: row.tags,
    source: row.source,
    metadata: row.metadata,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    // Those that were notes before there were memories have never been used as such.
    accessedAt: row.accessed_at === 0 ? row.updated_at : toIso(row.accessed_at),
    accessCount: row.access_count,
    ...omitUndefined({
      userId: row.user_id || undefined,
      sessionId: row.session_id || undefined,
      category: row.category,
      key: row.key,
      supersedes: row.supersedes,
      supersededBy: row.superseded_by || undefined,
      idempotencyKey: row.idempotency_key,
    }),
  })),
)

/** Both engines give bytes in a class of their own that extends this one. */
export const bytesColumn = v.pipe(
  v.unknown(),
  v.transform((value) => value as Uint8Array),
)

export const VectorRow = v.object({
  memory_id: v.string(),
  model: v.string(),
  vector: bytesColumn,
})
export const FigureRow = v.object({
  level: v.string(),
  category: v.string(),
  count: numberColumn,
  without_vector: numberColumn,
  without_words: numberColumn,
})
export type FigureRow = v.InferOutput<typeof FigureRow>
export const LackingRow = v.object({ words: numberColumn, vectors: numberColumn })
export const UserRow = v.object({ user_id: v.string(), count: numberColumn, newest_at: v.string() })
export type UserRow = v.InferOutput<typeof UserRow>
export const TextRow = v.object({
  id: v.string(),
  key: nullableColumn(v.string()),
  content: v.string(),
  updated_at: v.string(),
})
export type TextRow = v.InferOutput<typeof TextRow>

export const VersionRow = v.object({
  number: numberColumn,
  content: v.string(),
  source: nullableColumn(jsonColumn(Source)),
  written_at: v.string(),
  replaced_at: v.string(),
  replaced_by: v.string(),
})
export type VersionRow = v.InferOutput<typeof VersionRow>

export const TombstoneRow = v.object({
  id: v.string(),
  agent_id: v.string(),
  user_id: v.string(),
  created_at: v.string(),
  deleted_at: v.string(),
  deleted_by: v.string(),
})
export type TombstoneRow = v.InferOutput<typeof TombstoneRow>
export const Count = v.object({ count: numberColumn })
export const OwnerRow = v.object({ id: v.string(), agent_id: v.string() })
export type OwnerRow = v.InferOutput<typeof OwnerRow>
export const Id = v.object({ id: v.string() })
