import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

export const DiscourseConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('The API key of the bot.'))),
  base_url: v.pipe(
    v.string(),
    v.regex(/^https?:\/\//i, 'an http or https address'),
    v.description('The address of the forum, such as https://forum.example.org.'),
  ),
  api_username: v.pipe(
    v.string(),
    v.regex(/^[\p{L}\p{N}_.-]{1,60}$/u, 'a user name, without @'),
    v.description('The user name of the bot.'),
  ),
  webhook_secret: v.optional(
    secret(
      v.pipe(
        v.string(),
        v.minLength(12),
        v.maxLength(256),
        v.description('The secret of the webhook, of 12 characters at least; without it no request is taken.'),
      ),
    ),
  ),
  categories: fields.texts('Ids of the categories whose topics are read; all when empty.'),
  poll_secs: fields.integer('Seconds between two looks at the forum.', 30, 10, 120),
  min_length: fields.integer('The least number of characters of a post, as the settings of the forum say.', 20, 1, 200),
})
export type DiscourseConfig = v.InferOutput<typeof DiscourseConfig>
