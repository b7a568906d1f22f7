import * as v from 'valibot'

const usd = v.pipe(v.number(), v.minValue(0), v.maxValue(100_000))
const text = (max: number) =>
  v.pipe(
    v.string(),
    v.trim(),
    v.nonEmpty('must not be empty'),
    v.maxLength(max),
    v.check((value) => !/\p{Cc}/u.test(value), 'must not hold control characters'),
  )
export const Tier = v.picklist(['frontier', 'smart', 'balanced', 'fast', 'local', 'custom'])

/**
 * Unknown values are shown as clients compute with them: a price as 0 with `pricing_known` false, a capability as
 * `false`, a window as the assumed one. Fields outside the interface are `null` then.
 */
export const ModelRow = v.object({
  id: v.string(),
  provider: v.string(),
  display_name: v.string(),
  tier: Tier,
  context_window: v.number(),
  max_output_tokens: v.nullable(v.number()),
  input_cost_per_1m: v.number(),
  output_cost_per_1m: v.number(),
  cached_input_cost_per_1m: v.nullable(v.number()),
  cache_write_cost_per_1m: v.nullable(v.number()),
  supports_tools: v.boolean(),
  supports_vision: v.boolean(),
  supports_streaming: v.boolean(),
  supports_thinking: v.boolean(),
  pricing_known: v.boolean(),
  available: v.boolean(),
})
export type ModelRow = v.InferOutput<typeof ModelRow>

export const ModelQuery = v.object({
  provider: v.optional(v.string()),
  tier: v.optional(Tier),
  available: v.optional(
    v.pipe(
      v.picklist(['true', 'false']),
      v.transform((value) => value === 'true'),
    ),
  ),
})
export const ProviderQuery = v.object({ provider: v.optional(v.string()) })
export const ModelList = v.object({ models: v.array(ModelRow), total: v.number(), available: v.number() })
export const ModelParams = v.object({ id: v.pipe(v.string(), v.minLength(1), v.maxLength(512)) })
export const ModelDetail = v.object({
  ...ModelRow.entries,
  aliases: v.array(v.string()),
  long_context: v.nullable(
    v.object({ above_input_tokens: v.number(), input_cost_per_1m: v.number(), output_cost_per_1m: v.number() }),
  ),
  request_cost: v.nullable(v.number()),
  origin: v.picklist(['shipped', 'registry', 'custom', 'provider']),
  /** Those that `?provider=` gives a model for under this name. */
  providers: v.array(v.string()),
})

const AliasName = v.pipe(
  text(64),
  v.toLowerCase(),
  v.regex(/^[a-z0-9][a-z0-9._:-]*$/, 'may hold letters, digits, dots, colons, hyphens and underscores'),
  v.check((name) => name !== 'default' && name !== 'auto', 'means the model the daemon is configured to use'),
)
export const AliasBody = v.object({ alias: AliasName, model_id: text(512) })
export const AliasParams = v.object({ alias: v.pipe(v.string(), v.toLowerCase(), v.maxLength(64)) })
export const AliasList = v.object({ aliases: v.record(v.string(), v.string()), total: v.number() })
export const AliasCreated = v.object({
  alias: v.string(),
  model_id: v.string(),
  provider: v.string(),
  status: v.literal('created'),
})

const flag = (initial: boolean) => v.optional(v.boolean(), initial)
const tokens = v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100_000_000))
/** Both spellings of the prices are in use among clients. A price that is not given is not known. */
export const CustomBody = v.object({
  // Its parts are a path in the addresses that read and remove it.
  id: v.pipe(
    text(256),
    v.check(
      (id) => id.split('/').every((part) => part !== '' && part !== '.' && part !== '..'),
      'must not have empty parts, "." or ".." between its slashes',
    ),
  ),
  provider: v.optional(
    v.pipe(v.string(), v.trim(), v.regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected the name of a provider')),
    'openrouter',
  ),
  display_name: v.optional(text(256)),
  context_window: v.optional(tokens, 128_000),
  max_output_tokens: v.optional(tokens, 8192),
  input_cost_per_1m: v.optional(usd),
  output_cost_per_1m: v.optional(usd),
  input_cost_per_m: v.optional(usd),
  output_cost_per_m: v.optional(usd),
  cached_input_cost_per_1m: v.optional(usd),
  cache_write_cost_per_1m: v.optional(usd),
  supports_tools: flag(true),
  supports_vision: flag(false),
  supports_streaming: flag(true),
  supports_thinking: flag(false),
})
export type CustomBody = v.InferOutput<typeof CustomBody>
export const CustomCreated = v.object({ id: v.string(), provider: v.string(), status: v.literal('added') })
export const Removed = v.object({ status: v.literal('removed') })

export const UpdateDone = v.object({
  status: v.literal('ok'),
  changed: v.boolean(),
  files_downloaded: v.number(),
  models_count: v.number(),
  version: v.string(),
  timestamp: v.string(),
})
export const StatusQuery = v.object({
  check: v.optional(
    v.pipe(
      v.picklist(['true', 'false']),
      v.transform((value) => value === 'true'),
    ),
    'false',
  ),
})
export const CatalogStatus = v.object({
  version: v.string(),
  shipped_version: v.string(),
  registry_url: v.string(),
  last_sync: v.nullable(v.string()),
  last_update: v.nullable(v.string()),
  models_count: v.number(),
  providers_count: v.number(),
  updates_available: v.nullable(v.boolean()),
  last_error: v.nullable(v.object({ at: v.string(), message: v.string() })),
})
