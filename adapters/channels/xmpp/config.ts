import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'
import { tlsFields } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'

const ADDRESS = /^[^\s@/<>"&']+@[^\s@/<>"&']+$/

export const config = v.object({
  jid: v.pipe(v.string(), v.regex(ADDRESS, 'an address such as bot@example.org'), v.description('The user.')),
  token: secret(v.pipe(v.string(), v.minLength(1), v.description('The password of the user.'))),
  base_url: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^xmpps?:\/\/[^/?#@\s]+\/?$/i, 'an address such as xmpps://chat.example.org:5223'),
      v.description(
        'The server: `xmpp://` (STARTTLS, port 5222) or `xmpps://` (TLS, port 5223). Default: that of `jid`.',
      ),
    ),
  ),
  resource: v.optional(v.pipe(v.string(), v.regex(/^[\w.-]{1,64}$/), v.description('The resource.')), 'svc'),
  rooms: fields.textsThat(
    'Rooms to join.',
    (room) => ADDRESS.test(room),
    'a list of addresses such as "team@rooms.example.org"',
  ),
  nick: v.optional(v.pipe(v.string(), v.regex(/^[^\s/<>"&']{1,64}$/), v.description('The name in rooms.')), 'svc'),
  stream_management: fields.flag('Whether the server keeps what it could not deliver (XEP-0198).', {}, true),
  ...tlsFields,
})
export type XmppConfig = v.InferOutput<typeof config>
export type Link = ChannelLink<XmppConfig>
