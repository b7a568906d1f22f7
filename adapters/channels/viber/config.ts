import * as v from 'valibot'
import { fields, fileOnly, secret } from 'svc/sdk'

const address = v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'an http or https address'))

export const ViberConfig = v.object({
  token: secret(
    v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The app key of the bot, which signs events.')),
  ),
  webhook_url: v.pipe(address, v.description('The public address of `/api/channels/viber/webhook`.')),
  sender_name: v.pipe(
    v.string(),
    v.minLength(1),
    v.maxLength(28),
    v.description('The name that stands above the answers, of up to 28 characters.'),
  ),
  avatar: v.optional(v.pipe(address, v.description('The address of a picture beside the answers.'))),
  base_url: v.optional(v.pipe(address, v.description('The REST API.')), 'https://chatapi.viber.com/pa'),
  download_hosts: fileOnly(
    'they are asked for what a message says',
    fields.texts('More hosts that files are read from, beside those of Viber.'),
  ),
})
export type ViberConfig = v.InferOutput<typeof ViberConfig>
