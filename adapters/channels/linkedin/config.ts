import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

const Secret = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description)))
const Address = (description: string, fallback: string) =>
  v.optional(
    v.pipe(v.string(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description)),
    fallback,
  )

export const LinkedInConfig = v.object({
  token: Secret('An access token of an administrator of the page.'),
  refresh_token: v.optional(Secret('Its refresh token, where the app may have one: a token ends after 60 days.')),
  client_id: v.optional(
    v.pipe(v.string(), v.regex(/^\w{1,100}$/, 'a client id'), v.description('The client id of the app.')),
  ),
  client_secret: v.optional(Secret('The client secret of the app: it renews the token, or tells when it ends.')),
  organization: v.pipe(
    v.string(),
    v.regex(/^\d{1,20}$/, 'the number of an organization'),
    v.description('The number of the organization, from the address of its page.'),
  ),
  api_version: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^20\d\d(0[1-9]|1[0-2])$/, 'a version such as 202607'),
      v.description('The version of the API. LinkedIn serves each for a year.'),
    ),
    '202607',
  ),
  base_url: Address('The address of the API.', 'https://api.linkedin.com/rest'),
  auth_url: Address('The address that tokens are renewed at.', 'https://www.linkedin.com/oauth/v2'),
  catch_up_messages: fields.integer('Comments that are read when the daemon was away.', 1000, 0, 10_000),
  poll_seconds: fields.integer('Seconds between two looks for new comments.', 300, 60, 900),
})
export type LinkedInConfig = v.InferOutput<typeof LinkedInConfig>
