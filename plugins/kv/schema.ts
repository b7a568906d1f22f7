import * as v from 'valibot'
import { defineError, fileOnly } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'

/** Decision: flat, as the interface shows it. */
export const KeyNotFound = defineError('key_not_found', {
  status: 404,
  format: 'flat',
  meaning: 'the key does not exist',
})

export const Limits = fileOnly(
  'bounds what agents store',
  v.object({
    max_key_chars: v.optional(
      v.pipe(v.number(), v.integer(), v.minValue(1), v.description('Longest key, in characters.')),
      512,
    ),
    max_value_bytes: v.optional(
      v.pipe(v.number(), v.integer(), v.minValue(2), v.description('Largest value, in bytes of JSON.')),
      262_144,
    ),
    max_value_depth: v.optional(
      v.pipe(v.number(), v.integer(), v.minValue(1), v.description('Levels of lists and objects in a value.')),
      64,
    ),
    max_keys_per_agent: v.optional(
      v.pipe(v.number(), v.integer(), v.minValue(1), v.description('Keys that one agent may have.')),
      10_000,
    ),
    max_import_bytes: v.optional(
      v.pipe(v.number(), v.integer(), v.minValue(1024), v.description('Largest body of an import, in bytes.')),
      8_388_608,
    ),
  }),
)
export type Limits = v.InferOutput<typeof Limits>

export const PairParams = v.object({
  ...AgentParams.entries,
  key: v.pipe(v.string(), v.minLength(1, 'must not be empty')),
})
export const NewValue = v.object({ value: v.unknown(), key: v.optional(v.string()) })
export const Pair = v.object({ key: v.string(), value: v.unknown() })
export const Pairs = v.object({ kv_pairs: v.array(Pair) })
export const Stored = v.object({ status: v.literal('stored'), key: v.string() })
export const Deleted = v.object({ status: v.literal('deleted'), key: v.string() })

/** The format of export and import: every key of an agent with its value. */
export const Export = v.object({ agent_id: v.string(), version: v.literal(1), kv: v.record(v.string(), v.unknown()) })
export const NewImport = v.object({
  kv: v.record(v.string(), v.unknown()),
  clear_existing: v.optional(v.boolean(), false),
  version: v.optional(v.literal(1)),
})
export const Imported = v.object({
  status: v.picklist(['imported', 'partial']),
  agent_id: v.string(),
  keys_imported: v.number(),
  /** Those that were left out, and why. */
  failed_keys: v.optional(v.array(v.string())),
  errors: v.optional(v.array(v.object({ key: v.string(), error: v.string() }))),
})

/** The value is JSON text. */
export const PairRow = v.object({ key: v.string(), value: v.string() })
export type PairRow = v.InferOutput<typeof PairRow>
