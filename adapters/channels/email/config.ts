import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'
import { tlsFields } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'

export const ADDRESS = /^[^\s@<>,;:"()[\]\\]+@[^\s@<>,;:"()[\]\\]+$/

export const config = v.object({
  base_url: v.pipe(
    v.string(),
    v.regex(/^imaps?:\/\/[^/?#@\s]+\/?$/i, 'an address such as imaps://imap.example.org'),
    v.description('The IMAP server: `imaps://` (TLS, port 993) or `imap://` (STARTTLS, port 143).'),
  ),
  smtp_url: v.pipe(
    v.string(),
    v.regex(/^smtps?:\/\/[^/?#@\s]+\/?$/i, 'an address such as smtps://smtp.example.org'),
    v.description('The SMTP server: `smtps://` (TLS, port 465) or `smtp://` (STARTTLS, port 587).'),
  ),
  address: v.pipe(v.string(), v.regex(ADDRESS, 'a mail address'), v.description('The address of the bot.')),
  display_name: fields.text('The name beside the address of the bot.'),
  username: fields.text('The user of both servers. Default: the address.'),
  token: secret(v.pipe(v.string(), v.minLength(1), v.description('The password of the user.'))),
  smtp_username: fields.text('The user of the SMTP server, if it is another.'),
  smtp_password: fields.secretText('The password of the SMTP server, if it is another.'),
  folder: v.optional(v.pipe(v.string(), v.minLength(1), v.description('The folder that is read.')), 'INBOX'),
  poll_secs: fields.integer('How often new mail is looked for, beside what the server announces.', 30, 5, 300),
  max_message_bytes: fields.integer('Mail that is larger is left unread.', 26_214_400, 10_000, 104_857_600),
  subject: v.optional(v.pipe(v.string(), v.description('The subject of mail that answers none.')), 'Message'),
  auth_server: fields.text(
    'The name that your mail server puts first in `Authentication-Results`. Set, mail whose sender it did not ' +
      'verify is dropped.',
  ),
  ...tlsFields,
  ca: v.optional(
    v.pipe(
      v.string(),
      v.includes('-----BEGIN CERTIFICATE-----', 'a certificate in PEM format'),
      v.description('Certificates (PEM) that are trusted instead of the usual ones.'),
    ),
  ),
})
export type EmailConfig = v.InferOutput<typeof config>
export type Link = ChannelLink<EmailConfig>
