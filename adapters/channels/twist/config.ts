import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

export const TwistConfig = v.object({
  token: secret(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(1024),
      v.description('The OAuth token of the account, with the oauth2: it begins with.'),
    ),
  ),
  workspace_id: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^\d{1,15}$/, 'digits'),
      v.description('The id of the workspace; the default one of the account when absent.'),
    ),
  ),
  base_url: v.optional(
    v.pipe(v.string(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description('The address of the API.')),
    'https://api.twist.com',
  ),
  channels: fields.texts('Names or ids of channels that are read; all that the account is in when empty.'),
  thread_title: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(100), v.description('The title of threads that the bot begins.')),
    'svc',
  ),
  ignore_bots: v.optional(v.pipe(v.boolean(), v.description('Whether messages of other bots are left unread.')), true),
})
export type TwistConfig = v.InferOutput<typeof TwistConfig>
