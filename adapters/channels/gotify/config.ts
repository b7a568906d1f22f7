import * as v from 'valibot'
import { secret } from 'svc/sdk'

const token = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description)))

export const GotifyConfig = v.object({
  token: token('The token of the application that answers are sent as.'),
  client_token: token('The token of a client of the same user, which reads what the other applications send.'),
  base_url: v.pipe(
    v.string(),
    v.regex(/^https?:\/\//i, 'an http or https address'),
    v.description('The address of the server, such as https://gotify.example.org.'),
  ),
  title: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(100), v.description('The title of answers.')),
    'svc',
  ),
  priority: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(0),
      v.maxValue(10),
      v.description('The priority of answers, from 0 to 10; that of the application when absent.'),
    ),
  ),
})
export type GotifyConfig = v.InferOutput<typeof GotifyConfig>
