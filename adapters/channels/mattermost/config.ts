import * as v from 'valibot'
import { secret } from 'svc/sdk'

export const MattermostConfig = v.object({
  token: secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The token of the bot account.'))),
  base_url: v.pipe(
    v.string(),
    v.regex(/^https?:\/\//i, 'an http or https address'),
    v.description('The address of the server, without /api.'),
  ),
  ignore_bots: v.optional(v.pipe(v.boolean(), v.description('Whether messages of other bots are left unread.')), true),
})
export type MattermostConfig = v.InferOutput<typeof MattermostConfig>
