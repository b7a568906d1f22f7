import * as v from 'valibot'
import { SOURCE_KINDS } from '../contract.ts'
import { confidence, ImportedEntry, name, time, uuid, wellFormed } from '../schema.ts'

const id = uuid('Invalid memory ID')
const text = v.optional(name)
const Source = v.object({
  kind: v.picklist(SOURCE_KINDS),
  turnId: text,
  messageId: text,
  sessionId: text,
  tool: text,
  file: text,
  person: text,
  labels: v.array(name),
})
// A note may be empty.
const content = v.pipe(v.string(), wellFormed)
const BackupEntry = v.object({
  ...v.required(ImportedEntry, ['level', 'confidence', 'tags', 'metadata', 'created_at']).entries,
  content,
  id,
  source: Source,
  updated_at: time,
  accessed_at: time,
  access_count: v.pipe(v.number(), v.safeInteger(), v.minValue(0)),
  strength: confidence,
  supersedes: v.nullable(id),
  versions: v.array(
    v.object({ content, source: v.nullable(Source), written_at: time, replaced_at: time, replaced_by: name }),
  ),
})
export type BackupEntry = v.InferOutput<typeof BackupEntry>
/** Each memory of a backup, which the route has not looked into. */
export const Backup = v.object({
  memories: v.array(BackupEntry),
  superseded: v.optional(v.array(v.object({ ...BackupEntry.entries, superseded_by: id })), []),
})
