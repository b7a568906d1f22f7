import * as v from 'valibot'
import { fields, fileOnly, settable } from 'svc/sdk'
import { proactiveEntries } from './extraction/settings.ts'
import { graphEntries } from './graph/config.ts'

const { integer, flag } = fields
const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(1), v.description(description))
const share = (description: string, fallback: number) =>
  v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1), v.description(description)), fallback)

/** The weakest are forgotten when an agent has too many: whoever may set it may delete each of them as well. */
const ADJUSTS = 'says how memories are weighed, and opens none of them'

/** `[plugins.memory]`. */
export const Settings = fileOnly(
  'bounds what agents store, and says what is forgotten',
  v.object({
    ...proactiveEntries,
    ...graphEntries,
    max_key_chars: v.optional(count('Longest key of a note, in characters.'), 512),
    max_value_chars: v.optional(count('Longest note or memory, in characters.'), 16_384),
    max_notes_per_agent: v.optional(count('Notes that one agent may have.'), 1000),
    max_memories_per_agent: integer(
      'Memories that one agent keeps, notes not counted; the weakest and oldest beyond it are forgotten.',
      1000,
      1,
      1_000_000,
    ),
    max_tags: integer('Tags of one memory.', 32, 1, 1_000),
    max_metadata_bytes: integer('Size of the metadata of one memory, in bytes of JSON.', 4_096, 2, 1_048_576),
    max_versions: integer('Former contents that are kept of one memory.', 50, 0, 10_000),
    max_import: integer('Memories of one import.', 10_000, 1, 100_000),
    session_ttl_hours: integer('Hours after which memories of level session are forgotten.', 24, 1, 87_600),
    decay_rate: settable(ADJUSTS, share('How fast confidence decays, per day without use; 0: never.', 0.01)),
    expiry: flag('Whether memories that nobody uses are forgotten after some days.'),
    agent_expiry_days: integer('With expiry: days without use of those of level agent.', 30, 1, 36_500),
    user_expiry_days: integer('With expiry: days without use of those of level user; 0: never.', 0, 0, 36_500),
    sweep_minutes: integer('Minutes between two runs of decay and cleanup.', 60, 1, 10_080),
    tombstone_days: integer('Days for which it is known that a memory was deleted.', 365, 1, 36_500),
    duplicate_threshold: settable(ADJUSTS, share('Similarity from which two memories count as the same.', 0.85)),
    max_compared: integer('Newest memories of an agent that are compared to find duplicates.', 100, 2, 2_000),
    min_word_match: share(
      'Share of the weight of the words of a question that a memory must have to be an answer.',
      0.48,
    ),
    sure_similarity: share(
      'Or the cosine of its vector and that of the question: one memory at least has enough of the words, or this, ' +
        'else there is no answer.',
      0.55,
    ),
    min_similarity: share(
      'Cosine from which other memories go with that one. Of messages, and of questions that are not in English where ' +
        'vectors are made without a model, it is enough.',
      0.35,
    ),
    embedding: v.optional(
      v.object({
        provider: v.optional(
          v.pipe(v.string(), v.minLength(1), v.description('Provider that makes the vectors; none: words only.')),
          'default',
        ),
        model: v.optional(v.pipe(v.string(), v.minLength(1), v.description('Its model.')), 'default'),
      }),
      {},
    ),
    embedding_batch: integer('Memories whose vectors are asked for together.', 64, 1, 1_000),
    question_timeout_ms: integer(
      'Longest wait for the vector of a question, in milliseconds; words alone answer then.',
      2_000,
      1,
      60_000,
    ),
    index_memories: integer(
      'Memories whose signs of vectors are kept in memory, of those searched last; about 40 bytes each.',
      200_000,
      1_000,
      10_000_000,
    ),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
