import * as v from 'valibot'
import { secret } from 'svc/sdk'

const MAX_CHANNELS = 100

const token = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(1024), v.description(description)))
const address = (description: string, scheme: RegExp, fallback: string) =>
  v.optional(v.pipe(v.string(), v.regex(scheme, 'an address'), v.description(description)), fallback)

export const TwitchConfig = v.object({
  token: token('A user access token of the account of the bot.'),
  refresh_token: v.optional(token('The refresh token that came with it: the token ends after some hours.')),
  client_id: v.pipe(
    v.string(),
    v.regex(/^[A-Za-z0-9]{1,100}$/, 'a client id'),
    v.description('The client id of the application that the token is for.'),
  ),
  client_secret: v.optional(token('The client secret of the application, unless it is a public one.')),
  channels: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.regex(/^\w{1,50}$/, 'the name of a channel, without #'))),
      v.maxLength(MAX_CHANNELS),
      v.description('Names of the channels whose chat is read; that of the bot when empty.'),
    ),
    [],
  ),
  base_url: address('The address of the API.', /^https?:\/\//i, 'https://api.twitch.tv/helix'),
  auth_url: address('The address that tokens are renewed at.', /^https?:\/\//i, 'https://id.twitch.tv/oauth2'),
  socket_url: address('The address that events come from.', /^wss?:\/\//i, 'wss://eventsub.wss.twitch.tv/ws'),
})
export type TwitchConfig = v.InferOutput<typeof TwitchConfig>
