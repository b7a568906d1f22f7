import * as v from 'valibot'
import { secret } from 'svc/sdk'

const secretText = (description: string) =>
  secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description)))

export const SlackConfig = v.pipe(
  v.object({
    token: secretText('The bot token, which begins with xoxb-.'),
    app_token: v.optional(secretText('The app-level token, which begins with xapp-: messages come over Socket Mode.')),
    signing_secret: v.optional(secretText('The signing secret of the app: messages come to the webhook, signed.')),
    base_url: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^https?:\/\//i, 'an http or https address'),
        v.description('The address of the API.'),
      ),
      'https://slack.com/api',
    ),
    ignore_bots: v.optional(
      v.pipe(v.boolean(), v.description('Whether messages of other bots are left unread.')),
      true,
    ),
    unfurl: v.optional(v.pipe(v.boolean(), v.description('Whether links in answers are shown with a preview.')), false),
  }),
  v.check(
    ({ app_token: app, signing_secret: signing }) => app !== undefined || signing !== undefined,
    'needs app_token (Socket Mode) or signing_secret (Events API)',
  ),
)
export type SlackConfig = v.InferOutput<typeof SlackConfig>
