import * as v from 'valibot'
import { secret } from 'svc/sdk'

/** Private chats and groups, direct messages of servers, and mentions in their channels. */
export const DEFAULT_INTENTS = (1 << 25) | (1 << 12) | (1 << 30)

const address = (description: string) =>
  v.pipe(v.string(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description))

export const QqConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('The AppSecret of the bot.'))),
  app_id: v.pipe(v.string(), v.regex(/^\d{1,20}$/, 'digits'), v.description('The AppID of the bot.')),
  mode: v.optional(
    v.pipe(
      v.picklist(['websocket', 'webhook']),
      v.description('How messages come: over a connection of the daemon, or to its webhook.'),
    ),
    'websocket',
  ),
  intents: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.description('The events the bot asks for over its connection, as the sum of their bits.'),
    ),
    DEFAULT_INTENTS,
  ),
  ignore_bots: v.optional(v.pipe(v.boolean(), v.description('Whether messages of other bots are left unread.')), true),
  base_url: v.optional(
    address('The address of the API; that of the sandbox is https://sandbox.api.sgroup.qq.com.'),
    'https://api.sgroup.qq.com',
  ),
  token_url: v.optional(
    address('Where the AppSecret is exchanged for access tokens.'),
    'https://bots.qq.com/app/getAppAccessToken',
  ),
})
export type QqConfig = v.InferOutput<typeof QqConfig>
