import * as v from 'valibot'
import { fields } from 'svc/sdk'
import { tlsFields } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'

export const config = v.pipe(
  v.object({
    base_url: v.pipe(
      v.string(),
      v.regex(/^mumble:\/\/[^/?#@\s]+\/?$/i, 'an address such as mumble://voice.example.org:64738'),
      v.description('The server. Always with TLS; the port is 64738 if it is left out.'),
    ),
    username: v.pipe(
      v.string(),
      v.regex(/^(?!\s)[^\p{Cc}]{1,128}(?<!\s)$/u, 'a name of at most 128 characters'),
      v.description('The name of the bot on the server.'),
    ),
    token: fields.secretText('The password of the server, or of the user if it is registered with one.'),
    channel: fields.text(
      'The channel to be in: its name, or its path such as `Games/Chess`. Default: where the server puts the bot.',
    ),
    certificate: v.optional(
      v.pipe(
        v.string(),
        v.includes('-----BEGIN CERTIFICATE-----', 'a certificate in PEM format'),
        v.description('The certificate (PEM) of the bot, by which the server knows a registered user.'),
      ),
    ),
    certificate_key: fields.secretText('The key (PEM) of `certificate`.'),
    server_fingerprint: v.optional(
      v.pipe(
        v.string(),
        v.regex(
          /^(?:[0-9a-f]{2}:?){31}[0-9a-f]{2}$/i,
          'the SHA-256 fingerprint of a certificate: 64 hexadecimal digits',
        ),
        v.description('The SHA-256 fingerprint of the certificate of the server, for one that no authority signed.'),
      ),
    ),
    ...tlsFields,
  }),
  v.check(
    ({ certificate, certificate_key }) => (certificate === undefined) === (certificate_key === undefined),
    'certificate and certificate_key belong together',
  ),
)
export type MumbleConfig = v.InferOutput<typeof config>
export type Link = ChannelLink<MumbleConfig>
