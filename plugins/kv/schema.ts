import * as v from 'valibot'
import { AgentParams } from '../agents/contract.ts'

export const Limits = v.object({
  max_key_chars: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 512),
  max_value_bytes: v.optional(v.pipe(v.number(), v.integer(), v.minValue(2)), 262_144),
  max_value_depth: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 64),
  max_keys_per_agent: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), 10_000),
})
export type Limits = v.InferOutput<typeof Limits>

export const PairParams = v.object({ ...AgentParams.entries, key: v.pipe(v.string(), v.minLength(1, 'must not be empty')) })
export const NewValue = v.object({ value: v.unknown() })
export const Pair = v.object({ key: v.string(), value: v.unknown() })
export const Pairs = v.object({ kv_pairs: v.array(Pair) })
export const Stored = v.object({ status: v.literal('stored'), key: v.string() })
export const Deleted = v.object({ status: v.literal('deleted'), key: v.string() })

/** The value is JSON text. */
export const PairRow = v.object({ key: v.string(), value: v.string() })
export type PairRow = v.InferOutput<typeof PairRow>
