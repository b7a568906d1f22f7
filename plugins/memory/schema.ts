import * as v from 'valibot'
import { fileOnly } from 'svc/sdk'

const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(1), v.description(description))
export const Limits = fileOnly(
  'bounds what agents store',
  v.object({
    max_key_chars: v.optional(count('Longest key of a note, in characters.'), 512),
    max_value_chars: v.optional(count('Longest note, in characters.'), 16_384),
    max_notes_per_agent: v.optional(count('Notes that one agent may have.'), 1000),
  }),
)
export type Limits = v.InferOutput<typeof Limits>

export const Note = v.object({ key: v.string(), value: v.string(), created_at: v.string() })
export type Note = v.InferOutput<typeof Note>
