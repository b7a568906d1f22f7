import * as v from 'valibot'
import { FormatInput } from './response-format.ts'
import { toOptions } from './live-turn.ts'
import type { TurnOptions } from './live-turn.ts'

const Options = v.pipe(
  v.string(),
  v.parseJson(),
  v.object({
    temperature: v.optional(v.number()),
    maxTokens: v.optional(v.number()),
    thinking: v.optional(v.boolean()),
    responseFormat: v.optional(FormatInput),
    instructions: v.optional(v.string()),
    model: v.optional(v.object({ provider: v.string(), model: v.string() })),
  }),
)
/** What the journal keeps of a turn's options, read. */
export function readOptions(json: string): TurnOptions {
  return toOptions(v.parse(Options, json))
}
