import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

export const ZulipConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('The API key of the bot.'))),
  bot_email: v.pipe(
    v.string(),
    v.regex(/^[^\s@:]+@[^\s@:]+$/, 'an address such as helper-bot@example.zulipchat.com'),
    v.description('The address of the bot, as its page shows it.'),
  ),
  base_url: v.pipe(
    v.string(),
    v.regex(/^https?:\/\//i, 'an http or https address'),
    v.description('The address of the organization, such as https://example.zulipchat.com.'),
  ),
  streams: fields.texts('Names of channels that are read; all that the bot is subscribed to when empty.'),
  ignore_bots: v.optional(v.pipe(v.boolean(), v.description('Whether messages of other bots are left unread.')), true),
  topic: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(60), v.description('The topic of messages that answer none.')),
    'svc',
  ),
})
export type ZulipConfig = v.InferOutput<typeof ZulipConfig>
