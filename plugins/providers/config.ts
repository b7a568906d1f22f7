import * as v from 'valibot'
import { fields, secret, settable } from 'svc/sdk'

const inVault = 'a key that comes over the API goes into the vault: POST /api/providers/{name}/key'
const whereKeysGo = fields.inFile('says where keys and messages are sent, or what is run')
const whichModel = fields.overApi('chooses among providers that have their keys and addresses already')
const asPrice = fields.overApi('what is counted; PUT /api/budget says what may be spent')

const httpUrl = v.pipe(v.string(), v.url(), v.startsWith('http', 'expected a URL that begins with http:// or https://'))
const usd = (description: string) => v.pipe(v.number(), v.minValue(0), v.description(description))
const Prices = v.pipe(
  v.record(
    v.string(),
    v.object({
      input: usd('USD per million tokens of input.'),
      output: usd('USD per million tokens of output.'),
      cached_input: v.optional(usd('USD per million tokens read from the prompt cache.')),
      cache_write: v.optional(usd('USD per million tokens written to the prompt cache.')),
    }),
  ),
  v.description('USD per million tokens of each model.'),
  v.metadata({ ...asPrice }),
)

/**
 * One `[providers.<name>]` section. Further fields of a driver, such as a project or a region, are checked by its own
 * schema.
 */
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
            v.description('Further keys: calls use them in turn, and a refused one is suspended for a while.'),
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
    provider: v.pipe(v.string(), v.minLength(1), v.description('Name of the provider.')),
    model: v.optional(
      v.pipe(v.string(), v.minLength(1), v.description("Model of that provider; default is the provider's usual one.")),
      'default',
    ),
    api_key_env: v.exactOptional(
      v.pipe(
        v.string(),
        v.description("Environment variable with the key, instead of the provider's own."),
        v.metadata({ ...whereKeysGo }),
      ),
    ),
    base_url: v.exactOptional(
      v.pipe(
        v.string(),
        v.url(),
        v.description("URL its requests go to, instead of the provider's own."),
        v.metadata({ ...whereKeysGo }),
      ),
    ),
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

const count = (description: string, initial: number) =>
  v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.description(description)), initial)
const ms = count
/** `[plugins.providers]`. */
export const OwnConfig = settable(
  'says how patiently calls are tried, and who embeds among those that have their keys already',
  v.object({
    tries: count('Number of calls to a provider for one answer, the first included.', 3),
    back_off_min_ms: ms(
      'Milliseconds from which the random pause between tries grows; its span doubles with each failure.',
      300,
    ),
    back_off_max_ms: ms('Longest pause between two tries, in milliseconds.', 30_000),
    retry_after_max_ms: ms(
      'Longest pause a provider may request, in milliseconds; a longer one is cut to this.',
      60_000,
    ),
    first_event_ms: ms('Milliseconds until the first piece of an answer has to arrive.', 120_000),
    idle_ms: ms('Milliseconds that may pass between two pieces of an answer.', 60_000),
    answer_ms: ms('Milliseconds one answer may take, with all its tries.', 600_000),
    breaker_failures: count('Number of failures within breaker_window_ms after which a provider is paused.', 5),
    breaker_window_ms: ms('Milliseconds within which failures of a provider are counted together.', 30_000),
    breaker_pause_ms: ms('Longest pause between two trial calls to a paused provider, in milliseconds.', 30_000),
    breaker_trial_ms: ms(
      'Milliseconds before the first trial call to a paused provider; the pause doubles with each one that fails.',
      1000,
    ),
    circuit_wait_ms: ms(
      'Milliseconds a call waits for the next trial of a paused provider; it fails at once when that is later.',
      2500,
    ),
    reload_wait_ms: ms('Milliseconds a call waits for a provider whose plugin is being loaded again.', 30_000),
    detect_ms: ms('Milliseconds a local Ollama has to answer whether it is there.', 300),
    detect_again_ms: ms('Milliseconds the answer of a local Ollama is remembered.', 60_000),
    key_rest_ms: ms('Milliseconds that a refused key is suspended while there is another one.', 600_000),
    rate_limit_rest_ms: ms(
      'Milliseconds that a rate-limited key is suspended when the provider does not state a time.',
      30_000,
    ),
    embedding: v.optional(
      v.pipe(
        v.object({
          provider: v.pipe(v.string(), v.description('Provider that embeds texts; builtin needs no network.')),
          model: v.exactOptional(
            v.pipe(v.string(), v.description("Model that embeds texts; the provider's usual one when unset.")),
          ),
        }),
        v.description('The provider that embeds texts when a request names none.'),
      ),
      { provider: 'builtin' },
    ),
  }),
)
/** Both together. */
export const Config = v.object({ ...OwnConfig.entries, ...sections })
export type Config = v.InferOutput<typeof Config>
