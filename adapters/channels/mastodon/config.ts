import * as v from 'valibot'
import { fileOnly, secret } from 'svc/sdk'

export const VISIBILITIES = ['public', 'unlisted', 'private', 'direct'] as const
export type Visibility = (typeof VISIBILITIES)[number]

export const MastodonConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The access token.'))),
  base_url: v.pipe(
    v.string(),
    v.regex(/^https?:\/\//i, 'an http or https address'),
    v.description('The address of the instance, such as https://mastodon.example.'),
  ),
  streaming_url: fileOnly(
    'it is sent the access token',
    v.optional(
      v.pipe(
        v.string(),
        v.regex(/^wss?:\/\//i, 'a ws or wss address'),
        v.description('The address of the streaming server; the one that the instance names when absent.'),
      ),
    ),
  ),
  visibility: v.optional(
    v.pipe(
      v.picklist(VISIBILITIES),
      v.description('Who sees answers at most. An answer is never more public than the post it answers.'),
    ),
    'unlisted',
  ),
  ignore_bots: v.optional(v.pipe(v.boolean(), v.description('Whether posts of other bots are left unread.')), true),
})
export type MastodonConfig = v.InferOutput<typeof MastodonConfig>
