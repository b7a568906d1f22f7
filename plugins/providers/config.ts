import * as v from 'valibot'
import { fields, secret, settable } from 'svc/sdk'

const inVault = 'a key that comes over the API goes into the vault: POST /api/providers/{name}/key'
const whereKeysGo = fields.inFile('says where keys and messages are sent, or what is run')
const whichModel = fields.overApi('chooses among providers that have their keys and addresses already')
const asPrice = fields.overApi('what is counted; PUT /api/budget says what may be spent')

const httpUrl = v.pipe(v.string(), v.url(), v.startsWith('http', 'expected a URL that begins with http:// or https://'))
const Usd = v.pipe(v.number(), v.minValue(0))
const Prices = v.pipe(
  v.record(
    v.string(),
    v.object({ input: Usd, output: Usd, cached_input: v.optional(Usd), cache_write: v.optional(Usd) }),
  ),
  v.description('USD per million tokens of each model.'),
  v.metadata({ ...asPrice }),
)

/** One `[providers.<name>]` section. What a driver asks for beside this, such as a project or a region, its own schema checks. */
export const Section = v.pipe(
  v.objectWithRest(
    {
      api_key: v.optional(
        secret(
          v.pipe(
            v.string(),
            v.nonEmpty(),
            v.description('Key of this provider; the environment variable of the vendor does the same.'),
            v.metadata({ ...fields.inFile(inVault) }),
          ),
        ),
      ),
      api_keys: v.optional(
        secret(
          v.pipe(
            v.array(v.pipe(v.string(), v.nonEmpty())),
            v.description('Further keys: calls take them in turn, and one that is refused rests for a while.'),
            v.metadata({ ...fields.inFile(inVault) }),
          ),
        ),
        [],
      ),
      api_key_env: fields.text("Variable with the key, instead of the vendor's own.", whereKeysGo),
      base_url: v.optional(
        v.pipe(httpUrl, v.description('Where its requests go instead of the vendor.'), v.metadata({ ...whereKeysGo })),
      ),
      default_model: fields.text('Model used when none is named.', whichModel),
      driver: v.optional(
        v.pipe(
          v.string(),
          v.description('Which driver speaks to it, when no driver has the name of the section.'),
          v.metadata({ ...whereKeysGo }),
        ),
        'openai-compatible',
      ),
      key_origins: fields.texts(
        "Origins beside the provider's own that a key from the environment may be sent to.",
        whereKeysGo,
      ),
      context_window: v.optional(
        v.pipe(
          v.number(),
          v.integer(),
          v.minValue(1),
          v.description('Tokens its models can read, when the catalog does not know them.'),
          v.metadata({ ...whereKeysGo }),
        ),
      ),
      prices: v.optional(Prices, {}),
    },
    // What only its driver knows may name a program, a folder or another place a key is sent to.
    v.pipe(v.unknown(), v.metadata({ ...whereKeysGo })),
  ),
  v.description('One model provider.'),
)
export type Section = v.InferOutput<typeof Section>

const Fallback = v.pipe(
  v.object({
    provider: v.pipe(v.string(), v.minLength(1)),
    model: v.optional(v.pipe(v.string(), v.minLength(1)), 'default'),
    api_key_env: v.exactOptional(v.pipe(v.string(), v.metadata({ ...whereKeysGo }))),
    base_url: v.exactOptional(v.pipe(v.string(), v.url(), v.metadata({ ...whereKeysGo }))),
  }),
  v.description('A model that answers when those before it cannot.'),
  v.metadata({ ...whichModel }),
)

/** Keys at the top of the file. */
export const sections = {
  providers: v.optional(
    v.pipe(v.record(v.string(), Section), v.description('One section for each model provider: [providers.<name>].')),
    {},
  ),
  fallback_models: v.optional(
    v.pipe(
      v.array(Fallback),
      v.description('Models that answer any agent when its own and their fallbacks cannot, in this order.'),
      v.metadata({ ...whichModel }),
    ),
    [],
  ),
  default_provider: fields.text('Provider of agents that name none; found by itself when unset.', {
    ...whichModel,
    live: true,
  }),
  default_model: fields.text('Model of agents that name none.', { ...whichModel, live: true }),
}

const count = (initial: number) => v.optional(v.pipe(v.number(), v.integer(), v.minValue(1)), initial)
const ms = count
/** `[plugins.providers]`. */
export const OwnConfig = settable(
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
    /** Who embeds texts when nobody is named; the embedded one, which asks no network, unless this says otherwise. */
    embedding: v.optional(v.object({ provider: v.string(), model: v.exactOptional(v.string()) }), {
      provider: 'builtin',
    }),
  }),
)
/** Both together. */
export const Config = v.object({ ...OwnConfig.entries, ...sections })
export type Config = v.InferOutput<typeof Config>
