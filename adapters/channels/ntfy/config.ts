import * as v from 'valibot'
import { secret } from 'svc/sdk'

const topic = (description: string) =>
  v.pipe(v.string(), v.regex(/^[\w-]{1,64}$/, 'a topic: up to 64 letters, digits, _ and -'), v.description(description))

export const config = v.object({
  base_url: v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i), v.description('The ntfy server.')),
    'https://ntfy.sh',
  ),
  topic: topic(
    'The topic that is read, and written unless `reply_topic` is set. Who knows its name can read and write.',
  ),
  reply_topic: v.optional(topic('The topic that answers go to.')),
  token: v.optional(
    secret(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(4096),
        v.description('An access token (`tk_…`), or `user:password`, for topics that are protected.'),
      ),
    ),
  ),
})
export type NtfyConfig = v.InferOutput<typeof config>
