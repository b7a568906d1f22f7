import * as v from 'valibot'
import { secret } from 'svc/sdk'

const secretText = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description)))

const address = (description: string, fallback: string) =>
  v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description)),
    fallback,
  )

export const LineConfig = v.object({
  token: secretText('The channel access token.'),
  channel_secret: secretText('The channel secret, which signs what LINE sends.'),
  base_url: address('The Messaging API.', 'https://api.line.me'),
  data_url: address('Where files are read from.', 'https://api-data.line.me'),
})
export type LineConfig = v.InferOutput<typeof LineConfig>
