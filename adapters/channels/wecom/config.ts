import * as v from 'valibot'
import { secret } from 'svc/sdk'

const text = (description: string) => v.pipe(v.string(), v.minLength(1), v.maxLength(128), v.description(description))

/** What the mode "app" needs beside the secret. */
const APP_FIELDS = ['corp_id', 'agent_id', 'callback_token', 'encoding_aes_key'] as const

export const WeComConfig = v.pipe(
  v.object({
    mode: v.optional(
      v.pipe(
        v.picklist(['aibot', 'app']),
        v.description('`aibot`: an intelligent robot, over a long connection. `app`: an application, with a callback.'),
      ),
      'aibot',
    ),
    token: secret(text('The Secret of the robot, or of the application.')),
    bot_id: v.optional(text('The Bot ID of the robot.')),
    corp_id: v.optional(text('The id of the company, which begins with ww.')),
    agent_id: v.optional(
      v.pipe(v.number(), v.integer(), v.minValue(1), v.description('The AgentId of the application.')),
    ),
    callback_token: v.optional(secret(text('The Token of "Receive messages", which signs callbacks.'))),
    encoding_aes_key: v.optional(
      secret(
        v.pipe(
          v.string(),
          v.regex(/^[A-Za-z0-9]{43}$/, '43 letters and digits'),
          v.description('The EncodingAESKey of "Receive messages", with which callbacks are encrypted.'),
        ),
      ),
    ),
    base_url: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^(?:https?|wss?):\/\//i, 'an http, https, ws or wss address'),
        v.description('The address of WeCom, instead of that of the mode.'),
      ),
    ),
  }),
  v.check(({ mode, bot_id: bot }) => mode === 'app' || bot !== undefined, 'the mode "aibot" needs bot_id'),
  v.check(
    (config) => config.mode === 'aibot' || APP_FIELDS.every((name) => config[name] !== undefined),
    `the mode "app" needs ${APP_FIELDS.join(', ')}`,
  ),
)
export type WeComConfig = v.InferOutput<typeof WeComConfig>
