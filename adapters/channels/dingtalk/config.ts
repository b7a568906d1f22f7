import * as v from 'valibot'
import { secret } from 'svc/sdk'

export const DingTalkConfig = v.object({
  app_key: v.pipe(
    v.string(),
    v.regex(/^[\w-]{1,128}$/, 'a Client ID such as dingabcdefghijklmnop'),
    v.description('The Client ID (AppKey) of the app.'),
  ),
  token: secret(
    v.pipe(v.string(), v.minLength(1), v.maxLength(256), v.description('The Client Secret (AppSecret) of the app.')),
  ),
  robot_code: v.optional(
    v.pipe(
      v.string(),
      v.minLength(1),
      v.maxLength(128),
      v.description('The RobotCode, where it is not the Client ID.'),
    ),
  ),
  mode: v.optional(
    v.pipe(v.picklist(['stream', 'webhook']), v.description('How messages come: in Stream mode, or to the webhook.')),
    'stream',
  ),
  base_url: v.optional(
    v.pipe(v.string(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description('The address of the API.')),
    'https://api.dingtalk.com',
  ),
})
export type DingTalkConfig = v.InferOutput<typeof DingTalkConfig>

/** The robot of the app; that of an internal app has the id of the app. */
export function robotOf({ robot_code: robot, app_key: app }: DingTalkConfig): string {
  return robot ?? app
}
