import * as v from 'valibot'
import { fields } from 'svc/sdk'
import type { ChannelLink } from 'svc/channels'

export const SignalConfig = v.object({
  base_url: v.pipe(
    v.string(),
    v.regex(/^https?:\/\/[^/?#@\s]+(?:\/[^?#\s]*)?$/i, 'an http or https address'),
    v.description('The address of signal-cli, such as http://localhost:8080.'),
  ),
  number: v.pipe(
    v.string(),
    v.regex(/^\+[1-9]\d{4,14}$/, 'a phone number with its country code, such as +4930123456'),
    v.description('The phone number of the bot.'),
  ),
  server: v.optional(
    v.pipe(
      v.picklist(['signal-cli', 'signal-cli-rest-api']),
      v.description('What runs there: `signal-cli daemon --http`, or the container of that name.'),
    ),
    'signal-cli',
  ),
  token: fields.secretText('Sent as a bearer token, for a proxy that guards the address.'),
})
export type SignalConfig = v.InferOutput<typeof SignalConfig>
export type Link = ChannelLink<SignalConfig>
