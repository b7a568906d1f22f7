import * as v from 'valibot'
import { fields, secret } from 'svc/sdk'
import { readServiceAccount } from './service-account.ts'

const address = (description: string, fallback: string) =>
  v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description)),
    fallback,
  )

export const GoogleChatConfig = v.pipe(
  v.object({
    token: secret(
      v.pipe(
        v.string(),
        v.maxLength(16_384),
        v.check((text) => readServiceAccount(text) !== undefined, 'the JSON of a key of a service account'),
        v.description('The key of the service account: the content of its JSON file.'),
      ),
    ),
    project_number: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^\d+$/, 'digits'),
        v.description('The number of the project: the authentication audience of the app, or a part of an add-on.'),
      ),
    ),
    endpoint_url: v.optional(
      v.pipe(
        v.string(),
        v.url(),
        v.description('The address of the webhook as the app has it, when it is the authentication audience.'),
      ),
    ),
    allowed_spaces: fields.texts('Names of the spaces whose messages are read, such as spaces/AAAA; all when empty.'),
    base_url: address('The Google Chat API.', 'https://chat.googleapis.com'),
    token_url: address('Where access tokens are issued.', 'https://oauth2.googleapis.com/token'),
    chat_keys_url: address(
      'The keys of Google Chat, for the audience that is a project number.',
      'https://www.googleapis.com/service_accounts/v1/jwk/chat@system.gserviceaccount.com',
    ),
    google_keys_url: address(
      'The keys of Google, for the audience that is an address.',
      'https://www.googleapis.com/oauth2/v3/certs',
    ),
  }),
  v.check(
    ({ project_number: number, endpoint_url: url }) => number !== undefined || url !== undefined,
    'needs project_number or endpoint_url, the authentication audience of the app',
  ),
)
export type GoogleChatConfig = v.InferOutput<typeof GoogleChatConfig>
