import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

const secretText = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description(description)))

export const FeishuConfig = v.pipe(
  v.object({
    app_id: v.pipe(
      v.string(),
      v.regex(/^cli_[0-9a-zA-Z]+$/, 'an App ID such as cli_a1b2c3d4e5f60708'),
      v.description('The App ID, which begins with cli_.'),
    ),
    token: secretText('The App Secret.'),
    region: v.optional(v.pipe(v.picklist(['cn', 'intl']), v.description('`cn`: Feishu. `intl`: Lark.')), 'cn'),
    mode: v.optional(
      v.pipe(
        v.picklist(['websocket', 'webhook']),
        v.description('How messages come: over a long connection, or to the webhook.'),
      ),
      'websocket',
    ),
    encrypt_key: v.optional(
      secretText('The Encrypt Key, with which requests to the webhook are signed and encrypted.'),
    ),
    verification_token: v.optional(secretText('The Verification Token, which is in every request to the webhook.')),
    base_url: fields.webAddress('The address of the open platform, instead of that of the region.'),
  }),
  v.check(
    ({ mode, encrypt_key: key, verification_token: token }) =>
      mode === 'websocket' || (key !== undefined && token !== undefined),
    'the mode "webhook" needs encrypt_key and verification_token: without them, anybody could send messages to it',
  ),
)
export type FeishuConfig = v.InferOutput<typeof FeishuConfig>

const HOSTS = { cn: 'https://open.feishu.cn', intl: 'https://open.larksuite.com' } as const

/** The address of the open platform. */
export function platformOf({ base_url: base, region }: FeishuConfig): string {
  return base ?? HOSTS[region]
}
