import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'

/** What the server takes as the secret of a bot. */
const MIN_SECRET = 40

export const NextcloudConfig = v.pipe(
  v.object({
    mode: v.optional(
      v.pipe(
        v.picklist(['bot', 'user']),
        v.description('`bot`: one that is installed on the server, which calls the webhook. `user`: an account.'),
      ),
      'bot',
    ),
    token: secret(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(256),
        v.description('The secret of the bot, or an app password of the account.'),
      ),
    ),
    username: v.optional(
      v.pipe(v.string(), v.regex(/^[^:\s]{1,255}$/, 'a login name'), v.description('The login name of the account.')),
    ),
    base_url: v.pipe(
      v.string(),
      v.regex(/^https?:\/\//i, 'an http or https address'),
      v.description('The address of the server, such as https://cloud.example.org.'),
    ),
    bot_name: v.optional(
      v.pipe(
        v.string(),
        v.minLength(1),
        v.maxLength(64),
        v.description('The name of the bot: what contains it after an @ is for the bot.'),
      ),
    ),
    direct_rooms: fields.texts('Tokens of conversations of one person with the bot, where everything is for it.'),
    upload_folder: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[^/.\s][^/]{0,99}$/, 'the name of a folder'),
        v.description('The folder of the account that files are stored in.'),
      ),
      'Talk',
    ),
  }),
  v.check(({ mode, username }) => mode === 'bot' || username !== undefined, 'the mode user needs a username'),
  v.check(
    ({ mode, token }) => mode === 'user' || token.length >= MIN_SECRET,
    `the secret of a bot has ${MIN_SECRET} characters at least`,
  ),
)
export type NextcloudConfig = v.InferOutput<typeof NextcloudConfig>
