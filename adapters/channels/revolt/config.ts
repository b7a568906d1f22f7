import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

const address = (pattern: RegExp, form: string, description: string) =>
  v.pipe(v.string(), v.regex(pattern, form), v.description(description))

export const RevoltConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The token of the bot.'))),
  base_url: v.optional(
    address(/^https?:\/\//i, 'an http or https address', 'The address of the API.'),
    'https://api.stoat.chat',
  ),
  ws_url: v.optional(
    address(/^wss?:\/\//i, 'a ws or wss address', 'The address of the events; the API tells it when absent.'),
  ),
  files_url: v.optional(
    address(/^https?:\/\//i, 'an http or https address', 'The address of the files; the API tells it when absent.'),
  ),
  catch_up_messages: fields.integer('Messages of a channel that are read when the daemon was away.', 1000, 0, 100_000),
  allowed_servers: fields.texts('Ids of the servers whose messages are read; all when empty.'),
  ignore_bots: v.optional(
    v.pipe(v.boolean(), v.description('Whether messages of other bots and of webhooks are left unread.')),
    true,
  ),
})
export type RevoltConfig = v.InferOutput<typeof RevoltConfig>
