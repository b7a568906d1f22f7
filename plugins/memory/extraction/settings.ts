import * as v from 'valibot'
import { fields, settable } from 'svc/sdk'
import type { Agent } from '../../agents/contract.ts'

const { integer, flag } = fields
const share = (description: string, fallback: number) =>
  v.optional(v.pipe(v.number(), v.minValue(0), v.maxValue(1), v.description(description)), fallback)

const PER_AGENT = 'the manifest of an agent says it too, and the budget holds'

/** What `[plugins.memory]` says about remembering by itself; `[proactive_memory]` of a manifest says it for one agent. */
export const proactiveEntries = {
  auto_memorize: settable(
    PER_AGENT,
    flag('Whether agents remember what they are told by themselves, where their manifest says nothing.'),
  ),
  auto_retrieve: settable(
    PER_AGENT,
    flag('Whether what an agent remembers is part of its prompt, where its manifest says nothing.'),
  ),
  extraction_model: settable(
    PER_AGENT,
    v.optional(
      v.pipe(
        v.string(),
        v.description('Model that finds what to remember, such as provider/model; empty: a cheap one.'),
      ),
      '',
    ),
  ),
  extraction_threshold: settable(PER_AGENT, share('Confidence below which something is not remembered.', 0.7)),
  extraction_chars: integer(
    'Longest message that is searched for something to remember, in characters.',
    8_000,
    100,
    100_000,
  ),
  extraction_tokens: integer('Longest answer of the model that finds it, in tokens.', 1_024, 64, 16_384),
  extraction_give_up_hours: integer('Hours after which it is given up when the budget does not allow it.', 24, 1, 720),
  max_retrieve: settable(PER_AGENT, integer('Memories that are added to one prompt at most.', 5, 1, 100)),
  retrieve_tokens: integer('Longest text of them, in tokens.', 600, 50, 32_000),
  use_days: integer('Days for which it is known which memories an answer was given.', 365, 1, 36_500),
  retrieve_timeout_ms: integer('Longest wait for them; the turn goes on without, in milliseconds.', 2_000, 10, 60_000),
}
const Entries = v.object(proactiveEntries)
export type ProactiveSettings = v.InferOutput<typeof Entries>

export interface Proactive {
  readonly memorizes: boolean
  readonly retrieves: boolean
  readonly model: string
  readonly maxRetrieve: number
}
const Overrides = v.object({
  enabled: v.fallback(v.optional(v.boolean(), true), true),
  auto_memorize: v.fallback(v.optional(v.boolean()), undefined),
  auto_retrieve: v.fallback(v.optional(v.boolean()), undefined),
  extraction_model: v.fallback(v.optional(v.string()), undefined),
  max_retrieve: v.fallback(v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100))), undefined),
})

/** What holds for an agent: the configuration with `[proactive_memory]` of its manifest over it. */
export function proactiveOf({ manifest }: Agent, settings: ProactiveSettings): Proactive {
  const { proactive_memory: table } = manifest
  const own = v.parse(Overrides, table ?? {})
  return {
    memorizes: own.enabled && (own.auto_memorize ?? settings.auto_memorize),
    retrieves: own.enabled && (own.auto_retrieve ?? settings.auto_retrieve),
    model: own.extraction_model ?? settings.extraction_model,
    maxRetrieve: own.max_retrieve ?? settings.max_retrieve,
  }
}
