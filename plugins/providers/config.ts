import * as v from 'valibot'
import { secret, settable } from 'svc/sdk'

const Usd = v.pipe(v.number(), v.minValue(0))
const httpUrl = v.pipe(v.string(), v.url(), v.startsWith('http', 'expected a URL that begins with http:// or https://'))

/** One `[providers.<name>]` section. What a driver asks for beside this, such as a project or a region, its own schema checks. */
export const Section = v.looseObject({
  api_key: v.optional(secret(v.pipe(v.string(), v.nonEmpty()))),
  /** Further ones: calls take them in turn. */
  api_keys: v.optional(secret(v.array(v.pipe(v.string(), v.nonEmpty()))), []),
  /** Variable with the key, instead of the vendor's own. */
  api_key_env: v.optional(v.string()),
  base_url: v.optional(httpUrl),
  default_model: v.optional(v.string()),
  /** Which driver speaks to it, when no driver has the section's name. */
  driver: v.optional(v.string(), 'openai-compatible'),
  /** Origins beside the provider's own that a key from the environment may be sent to. */
  key_origins: v.optional(v.array(v.string()), []),
  context_window: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
  /** USD per million tokens, by model. */
  prices: v.optional(
    v.record(
      v.string(),
      v.object({ input: Usd, output: Usd, cached_input: v.optional(Usd), cache_write: v.optional(Usd) }),
    ),
    {},
  ),
})
export type Section = v.InferOutput<typeof Section>

const count = (initial: number) => v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), initial)
const ms = count
export const Config = settable(
  'says how patiently calls are tried, and who embeds among those that have their keys already',
  v.object({
    /** Calls of a provider for one answer, the first included. */
    tries: count(3),
    back_off_min_ms: ms(300),
    back_off_max_ms: ms(30_000),
    /** The longest pause a provider may ask for; a longer one is cut to this. */
    retry_after_max_ms: ms(60_000),
    /** Until the first piece of an answer. */
    first_event_ms: ms(120_000),
    /** Between two pieces of an answer. */
    idle_ms: ms(60_000),
    /** One answer with all its tries. */
    answer_ms: ms(600_000),
    breaker_failures: count(5),
    breaker_window_ms: ms(30_000),
    /** The longest pause between two trials of a provider that keeps failing. */
    breaker_pause_ms: ms(30_000),
    /** The pause before the first trial; it doubles with each one that fails. */
    breaker_trial_ms: ms(1000),
    /** A call waits so long for the next trial of its provider; for a later one it fails at once. */
    circuit_wait_ms: ms(2500),
    /** How long a local Ollama has to answer the question whether it is there. */
    detect_ms: ms(300),
    /** How long its answer is believed. */
    detect_again_ms: ms(60_000),
    /** How long a key rests that the provider refused, while there is another one. */
    key_rest_ms: ms(600_000),
    /** The same for a key that was used too often, when the provider does not say how long. */
    rate_limit_rest_ms: ms(30_000),
    /** What answers any agent when its own models and fallbacks cannot. */
    fallback_models: v.optional(
      v.array(
        v.object({
          provider: v.string(),
          model: v.string(),
          api_key_env: v.exactOptional(v.string()),
          base_url: v.exactOptional(v.string()),
        }),
      ),
      [],
    ),
    /** Who embeds texts when nobody is named; the embedded one, which asks no network, unless this says otherwise. */
    embedding: v.optional(v.object({ provider: v.string(), model: v.exactOptional(v.string()) }), {
      provider: 'builtin',
    }),
    /** The `[providers.<name>]` sections. */
    providers: v.optional(v.record(v.string(), Section), {}),
  }),
)
export type Config = v.InferOutput<typeof Config>
