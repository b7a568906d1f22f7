import * as v from 'valibot'
import { secret } from 'svc/sdk'

export const ProviderRow = v.object({
  name: v.string(),
  display_name: v.string(),
  auth_status: v.picklist(['configured', 'missing', 'no_key_needed']),
  env_var: v.optional(v.string()),
  /** What is missing and how to get it, for a provider that is a program on this machine. */
  error: v.optional(v.string()),
  /** Empty when it runs in this process or as a program, or its address is not set yet. */
  base_url: v.string(),
  default_model: v.string(),
  model_count: v.number(),
})
export type ProviderRow = v.InferOutput<typeof ProviderRow>

const plain = v.check<string, string>((text) => !/\p{Cc}/u.test(text), 'must not hold control characters')
/** Paths are put after it, which a query or a fragment would swallow. */
const Url = v.pipe(
  v.string(),
  v.trim(),
  v.maxLength(2048),
  plain,
  v.url(),
  v.regex(/^https?:\/\//i, 'expected a URL that begins with http:// or https://'),
  v.regex(/^[^?#]*$/, 'expected a URL without a query and a fragment'),
)
/** Some vendors' keys are a file of JSON, such as that of a Google service account. */
const Secret = v.pipe(
  v.string(),
  v.trim(),
  v.nonEmpty('expected a key'),
  v.maxLength(8192),
  v.regex(
    /^(?:[\x21-\x7e]+|\{[\x20-\x7e\s]*\})$/,
    'expected printable characters without spaces, or the JSON of credentials',
  ),
)

export const ProviderParams = v.object({
  name: v.pipe(v.string(), v.regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, 'expected the name of a provider')),
})
/** Both names are in use among clients. */
export const KeyBody = v.pipe(
  v.object({
    api_key: v.optional(secret(Secret)),
    key: v.optional(secret(Secret)),
    api_keys: v.optional(
      v.pipe(v.array(secret(Secret)), v.minLength(1, 'expected at least one key'), v.maxLength(50, 'at most 50 keys')),
    ),
    add: v.optional(v.boolean()),
  }),
  v.check(
    ({ api_key, key, api_keys }) => [api_key, key, api_keys].filter((given) => given !== undefined).length === 1,
    'api_key: expected a key, by this name or as "key", or several as "api_keys"',
  ),
)
export const UrlBody = v.pipe(
  v.object({ url: v.optional(Url), base_url: v.optional(Url) }),
  v.check(
    ({ url, base_url }) => (url === undefined) !== (base_url === undefined),
    'url: expected an address, by this name or as "base_url"',
  ),
)

export const ProviderList = v.object({ providers: v.array(ProviderRow), total: v.number() })
export const ProviderDetail = v.object({ ...ProviderRow.entries, models: v.array(v.string()) })
export const Detection = v.object({ available: v.boolean(), models: v.array(v.string()) })
export const SignInStarted = v.object({
  device_code: v.string(),
  user_code: v.string(),
  verification_uri: v.string(),
  poll_id: v.string(),
  expires_in: v.number(),
  interval: v.number(),
})
export const SignInState = v.object({
  status: v.picklist(['pending', 'authorized', 'expired']),
  provider: v.string(),
  interval: v.number(),
  error: v.optional(v.string()),
})
export const PollParams = v.object({ ...ProviderParams.entries, poll_id: v.pipe(v.string(), v.maxLength(64)) })
export const KeySaved = v.object({ status: v.literal('configured'), provider: v.string() })
export const KeyRemoved = v.object({
  status: v.literal('removed'),
  provider: v.string(),
  auth_status: ProviderRow.entries.auth_status,
})
export const Tested = v.object({
  status: v.picklist(['ok', 'error']),
  provider: v.string(),
  latency_ms: v.optional(v.number()),
  model_tested: v.optional(v.string()),
  error: v.optional(v.string()),
})
export const DefaultBody = v.object({
  provider: v.optional(ProviderParams.entries.name),
  model: v.optional(v.pipe(v.string(), v.trim(), v.nonEmpty('expected a model'), v.maxLength(256), plain)),
})
export const DefaultProvider = v.object({
  provider: v.string(),
  model: v.string(),
  auth_status: ProviderRow.entries.auth_status,
  api_key_env: v.optional(v.string()),
  base_url: v.optional(v.string()),
  problem: v.nullable(v.string()),
})
export const UrlSaved = v.object({
  status: v.literal('saved'),
  provider: v.string(),
  base_url: v.string(),
  reachable: v.boolean(),
  latency_ms: v.optional(v.number()),
})
