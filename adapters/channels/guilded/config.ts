import * as v from 'valibot'
import { secret } from 'svc/sdk'

/** The address of the platform that closed. */
export const CLOSED_URL = 'https://www.guilded.gg/api/v1'

export const GuildedConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The token of the bot.'))),
  base_url: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^https?:\/\//i, 'an http or https address'),
      v.description('The address of the API. Guilded closed in December 2025: give that of another server.'),
    ),
    CLOSED_URL,
  ),
  ws_url: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^wss?:\/\//i, 'a ws or wss address'),
      v.description('The address of the events; /websocket/v1 of the same server when absent.'),
    ),
  ),
  ignore_bots: v.optional(
    v.pipe(v.boolean(), v.description('Whether messages of other bots and of webhooks are left unread.')),
    true,
  ),
})
export type GuildedConfig = v.InferOutput<typeof GuildedConfig>
