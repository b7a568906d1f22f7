import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

const RELAY = /^wss?:\/\/[^\s/?#@]+(?:[/?][^\s#]*)?$/i
const MAX_RELAYS = 10

export const NostrConfig = v.object({
  token: secret(
    v.pipe(
      v.string(),
      v.regex(/^(?:nsec1[02-9ac-hj-np-z]{58}|[0-9a-f]{64})$/i, 'a private key: nsec1… or 64 hexadecimal digits'),
      v.description('The private key of the bot: nsec1… or 64 hexadecimal digits.'),
    ),
  ),
  relays: v.pipe(
    v.array(v.pipe(v.string(), v.maxLength(512), v.regex(RELAY, 'an address such as wss://relay.example.org'))),
    v.minLength(1, 'at least one relay'),
    v.maxLength(MAX_RELAYS),
    v.description('Addresses of the relays that messages are read from, such as wss://relay.example.org.'),
  ),
  protocol: v.optional(
    v.pipe(
      v.picklist(['nip17', 'nip04']),
      v.description('How messages are encrypted that answer none: `nip17`, or `nip04` for old apps.'),
    ),
    'nip17',
  ),
  announce: fields.flag('Whether the relays are published, so that others know where to write to the bot.', {}, true),
})
export type NostrConfig = v.InferOutput<typeof NostrConfig>
