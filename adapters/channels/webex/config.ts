import * as v from 'valibot'
import { secret } from 'svc/sdk'

const address = v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'an http or https address'))

export const WebexConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The access token of the bot.'))),
  webhook_url: v.pipe(address, v.description('The public address of `/api/channels/webex/webhook`.')),
  webhook_secret: secret(
    v.pipe(
      v.string(),
      v.minLength(16),
      v.maxLength(256),
      v.description('A text of your own, of 16 characters or more: Webex signs its requests with it.'),
    ),
  ),
  base_url: v.optional(v.pipe(address, v.description('The REST API.')), 'https://webexapis.com/v1'),
})
export type WebexConfig = v.InferOutput<typeof WebexConfig>
