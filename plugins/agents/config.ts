import * as v from 'valibot'
import { fileOnly } from 'svc/sdk'
import { SigningConfig } from './signing.ts'

const count = v.pipe(v.number(), v.integer(), v.minValue(1))
export const AgentsConfig = fileOnly(
  'bounds what agents can make of themselves',
  v.object({
    max_manifest_bytes: v.optional(count, 1_048_576),
    /** Agents that one request to /api/agents/bulk may name. */
    max_bulk: v.optional(v.pipe(count, v.maxValue(1000)), 50),
    /** Agents made by agents: generations below the first one, and how many of them at once. */
    max_depth: v.optional(v.pipe(count, v.maxValue(100)), 5),
    max_descendants: v.optional(v.pipe(count, v.maxValue(100_000)), 50),
    manifest_signing: v.optional(SigningConfig, {}),
  }),
)
