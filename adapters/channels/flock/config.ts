import * as v from 'valibot'
import { secret } from 'svc/sdk'

const secretText = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description)))

export const FlockConfig = v.object({
  token: secretText('The token of the bot.'),
  app_id: v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('The App ID.')),
  app_secret: secretText('The App Secret, which signs the events.'),
  on_behalf_of: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^u:\S+$/, 'the id of a user, such as u:abc'),
      v.description('A user who installed the app and is a member of the channels where the bot answers.'),
    ),
  ),
  base_url: v.optional(
    v.pipe(
      v.string(),
      v.url(),
      v.regex(/^https?:\/\//i, 'an http or https address'),
      v.description('The address of the API.'),
    ),
    'https://api.flock.co/v1',
  ),
})
export type FlockConfig = v.InferOutput<typeof FlockConfig>
