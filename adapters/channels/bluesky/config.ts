import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

export const BlueskyConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('An app password of the account.'))),
  identifier: v.pipe(
    v.string(),
    v.regex(/^[^\s@]+(@[^\s@]+)?$/, 'a handle such as helper.bsky.social'),
    v.description('The handle of the account, such as helper.bsky.social.'),
  ),
  base_url: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^https?:\/\//i, 'an http or https address'),
      v.description('The address of the server that hosts the account.'),
    ),
    'https://bsky.social',
  ),
  image_url: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^https?:\/\//i, 'an http or https address'),
      v.description('The address that pictures of posts are read from.'),
    ),
    'https://cdn.bsky.app/img/feed_fullsize/plain',
  ),
  poll_seconds: fields.integer('Seconds between two looks for new posts.', 20, 5, 120),
})
export type BlueskyConfig = v.InferOutput<typeof BlueskyConfig>
