import * as v from 'valibot'
import { fields } from 'svc/sdk'
import { tlsFields } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'

export const config = v.pipe(
  v.object({
    base_url: v.pipe(
      v.string(),
      v.regex(/^ircs?:\/\/[^/?#@\s]+\/?$/i, 'an address such as ircs://irc.libera.chat:6697'),
      v.description('The server: `ircs://` with TLS (port 6697), `irc://` without (port 6667).'),
    ),
    nick: v.pipe(
      v.string(),
      v.regex(
        /^[A-Za-z[\]\\`_^{|}][\w[\]\\`^{|}-]{0,29}$/,
        'expected a nickname without spaces: at most 30 letters, digits and -[]\\`_^{|}, and no digit or - first',
      ),
      v.description('The nickname of the bot.'),
    ),
    token: fields.secretText('The password: of the account `sasl_user` if that is set, else of the server.'),
    sasl_user: fields.text('The account to sign in to with SASL.'),
    nickserv_password: fields.secretText('Sent to NickServ, on networks without SASL.'),
    channels: fields.textsThat(
      'Channels to join.',
      (name) => /^[#&][^\s,:\p{Cc}]{1,63}$/u.test(name),
      'a list of channels such as "#help"',
    ),
    ...tlsFields,
  }),
  v.check(
    ({ sasl_user, token }) => sasl_user === undefined || token !== undefined,
    'sasl_user needs token: the password of the account',
  ),
)
export type IrcConfig = v.InferOutput<typeof config>
export type Link = ChannelLink<IrcConfig>
