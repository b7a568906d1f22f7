import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

export const RocketChatConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('A personal access token.'))),
  user_id: v.pipe(
    v.string(),
    v.regex(/^[\w-]{1,64}$/, 'an id such as aobEdbYhXfu5hkeqG'),
    v.description('The id of the bot, which is shown with the token.'),
  ),
  base_url: v.pipe(
    v.string(),
    v.regex(/^https?:\/\//i, 'an http or https address'),
    v.description('The address of the server, such as https://chat.example.org.'),
  ),
  rooms: fields.texts('Names or ids of rooms that are read; all that the bot is in when empty.'),
  ignore_bots: v.optional(
    v.pipe(v.boolean(), v.description('Whether messages of integrations and other bots are left unread.')),
    true,
  ),
})
export type RocketChatConfig = v.InferOutput<typeof RocketChatConfig>
