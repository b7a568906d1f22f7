import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

export const config = v.object({
  token: secret(
    v.pipe(
      v.string(),
      v.minLength(16, 'a secret of at least 16 characters'),
      v.maxLength(4096),
      v.description('The secret that signs requests in both directions.'),
    ),
  ),
  callback_url: fields.webAddress(
    'Where messages for the other side are posted. Without it, this channel receives and does not answer.',
  ),
  require_signed_timestamp: fields.flag(
    'Refuse requests that sign their body only. A captured one can be sent again with a new timestamp.',
  ),
  max_age_secs: fields.integer('Requests with a timestamp further away than this are refused.', 300, 1, 3600),
})
export type WebhookConfig = v.InferOutput<typeof config>
