import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

/** Guild messages, direct messages and their content. */
export const DEFAULT_INTENTS = (1 << 9) | (1 << 12) | (1 << 15)

export const DiscordConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The token of the bot.'))),
  base_url: v.optional(
    v.pipe(v.string(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description('The address of the API.')),
    'https://discord.com/api/v10',
  ),
  intents: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.description('The events the bot asks for, as the sum of their bits; the content of messages is privileged.'),
    ),
    DEFAULT_INTENTS,
  ),
  allowed_guilds: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.regex(/^\d+$/, 'the id of a server, digits only'))),
      v.description('Ids of the servers whose messages are read; all when empty.'),
    ),
    [],
  ),
  catch_up_messages: fields.integer('Messages of a chat that are read when the daemon was away.', 300, 0, 10_000),
  ignore_bots: v.optional(v.pipe(v.boolean(), v.description('Whether messages of other bots are left unread.')), true),
})
export type DiscordConfig = v.InferOutput<typeof DiscordConfig>
