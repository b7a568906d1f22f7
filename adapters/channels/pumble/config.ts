import * as v from 'valibot'
import { secret } from 'svc/sdk'

const secretText = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description)))
const address = (description: string, fallback: string) =>
  v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description)),
    fallback,
  )

export const PumbleConfig = v.object({
  token: secretText('The token of the bot.'),
  app_key: secretText('The app key.'),
  signing_secret: secretText('The signing secret of the app, which signs what Pumble sends.'),
  base_url: address('The address of the API.', 'https://api-ga.pumble.com'),
  files_url: address('Where files are uploaded.', 'https://files.pumble.com'),
})
export type PumbleConfig = v.InferOutput<typeof PumbleConfig>
