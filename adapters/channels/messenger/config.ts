import * as v from 'valibot'
import { fields, fileOnly, secret } from 'svc/sdk'

const secretText = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description)))

export const MessengerConfig = v.object({
  token: secretText('The access token of the page.'),
  verify_token: secretText('A text of your own: Meta sends it when the webhook is set.'),
  app_secret: secretText('The secret of the app, which signs what Meta sends.'),
  api_version: v.optional(
    v.pipe(v.string(), v.regex(/^v\d+\.\d+$/, 'such as v25.0'), v.description('The version of the Graph API.')),
    'v25.0',
  ),
  base_url: v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i), v.description('The Graph API.')),
    'https://graph.facebook.com',
  ),
  download_hosts: fileOnly(
    'they are asked for what a message says',
    fields.texts('More hosts that files are read from, beside those of Meta.'),
  ),
})
export type MessengerConfig = v.InferOutput<typeof MessengerConfig>
