import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

export const config = v.pipe(
  v.object({
    token: secret(
      v.pipe(
        v.string(),
        v.regex(/^\d+:[\w-]+$/, 'a bot token of @BotFather, such as 123456:ABC-DEF'),
        v.description('The token of the bot, from @BotFather.'),
      ),
    ),
    base_url: v.optional(
      v.pipe(
        v.string(),
        v.url(),
        v.regex(/^https?:\/\//i),
        v.description('The Bot API, or a server of your own for it.'),
      ),
      'https://api.telegram.org',
    ),
    webhook_url: fields.webAddress(
      'The public address of `/api/channels/telegram/webhook`. Telegram sends messages there instead of being polled.',
    ),
    webhook_secret: v.optional(
      secret(
        v.pipe(
          v.string(),
          v.regex(/^[\w-]{16,256}$/, '16 to 256 letters, digits, _ and -'),
          v.description('Sent by Telegram with every request to the webhook. Required with `webhook_url`.'),
        ),
      ),
    ),
    poll_timeout_secs: fields.integer('How long one poll waits for messages.', 30, 1, 50),
  }),
  v.check(
    ({ webhook_url, webhook_secret }) => webhook_url === undefined || webhook_secret !== undefined,
    'webhook_url needs webhook_secret: without it, anybody could send messages to the webhook',
  ),
)
export type TelegramConfig = v.InferOutput<typeof config>
