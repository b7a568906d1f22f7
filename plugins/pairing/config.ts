import * as v from 'valibot'

/** `[pairing]` of the configuration, whose limits and defaults are checked there. */
export const Settings = v.object({
  enabled: v.optional(v.boolean(), false),
  max_devices: v.optional(v.number(), 10),
  token_expiry_secs: v.optional(v.number(), 300),
  max_pending: v.optional(v.number(), 5),
  max_attempts: v.optional(v.number(), 100),
  last_seen_secs: v.optional(v.number(), 60),
  public_base_url: v.optional(v.string()),
  push_provider: v.optional(v.picklist(['none', 'ntfy', 'gotify']), 'none'),
  ntfy_url: v.optional(v.string(), 'https://ntfy.sh'),
  ntfy_topic: v.optional(v.string()),
  ntfy_token: v.optional(v.string()),
  gotify_url: v.optional(v.string()),
  gotify_token: v.optional(v.string()),
  push_timeout_ms: v.optional(v.number(), 10_000),
})
export type Settings = v.InferOutput<typeof Settings>
