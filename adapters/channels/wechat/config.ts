import * as v from 'valibot'
import { fields, fileOnly, secret } from 'svc/sdk'

const secretField = (form: RegExp, what: string, description: string) =>
  v.optional(secret(v.pipe(v.string(), v.regex(form, what), v.description(description))))
const address = (description: string) =>
  v.pipe(v.string(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description))

/** What an official account needs. */
const ACCOUNT_FIELDS = ['token', 'app_id', 'webhook_token', 'aes_key'] as const

export const WeChatConfig = v.pipe(
  v.object({
    mode: v.optional(
      v.pipe(
        v.picklist(['bot', 'official_account']),
        v.description(
          '`bot`: a bot that is linked with a QR code. `official_account`: an account of mp.weixin.qq.com.',
        ),
      ),
      'bot',
    ),
    token: secretField(
      /^[\x21-\x7e]{1,4096}$/,
      'a text without spaces',
      'The app secret of an official account. A bot needs none: it comes with the QR code.',
    ),
    app_id: v.optional(
      v.pipe(v.string(), v.regex(/^\w{1,64}$/, 'such as wx1234567890abcdef'), v.description('The app id.')),
    ),
    webhook_token: secretField(
      /^[A-Za-z0-9]{3,32}$/,
      '3 to 32 letters and digits',
      'The token of the basic configuration, which signs what WeChat sends.',
    ),
    aes_key: secretField(/^[A-Za-z0-9]{43}$/, 'a key of 43 letters and digits', 'The EncodingAESKey.'),
    base_url: v.optional(address('The address of the API; that of Tencent for the mode when absent.')),
    cdn_url: v.optional(address('The address of the files of a bot.'), 'https://novac2c.cdn.weixin.qq.com/c2c'),
    api_hosts: fileOnly(
      'they are sent the token of the bot',
      fields.texts('More hosts that may take over a bot when WeChat says so, beside those of weixin.qq.com.'),
    ),
  }),
  v.check(
    (value) => value.mode === 'bot' || ACCOUNT_FIELDS.every((name) => value[name] !== undefined),
    `an official account needs ${ACCOUNT_FIELDS.join(', ')}`,
  ),
)
export type WeChatConfig = v.InferOutput<typeof WeChatConfig>

/** The fields of an official account, which the schema made sure of. */
export function accountFields({ token = '', app_id = '', webhook_token = '', aes_key = '' }: WeChatConfig) {
  return { appId: app_id, appSecret: token, webhookToken: webhook_token, aesKey: aes_key }
}
