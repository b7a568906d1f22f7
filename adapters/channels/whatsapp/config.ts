import * as v from 'valibot'
import { fields, fileOnly, secret } from 'svc/sdk'

const secretField = (description: string) =>
  v.optional(secret(v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description(description))))

/** What the Cloud API needs. */
const CLOUD_FIELDS = ['token', 'phone_number_id', 'verify_token', 'app_secret'] as const

export const config = v.pipe(
  v.object({
    mode: v.optional(
      v.pipe(
        v.picklist(['cloud', 'web']),
        v.description(
          '`cloud`: the Business Cloud API. `web`: a phone linked with a QR code, against the terms of WhatsApp.',
        ),
      ),
      'cloud',
    ),
    token: secretField('The access token of a system user.'),
    phone_number_id: v.optional(
      v.pipe(v.string(), v.regex(/^\d+$/, 'digits'), v.description('The id of the phone number, not the number.')),
    ),
    verify_token: secretField('A text of your own: Meta sends it when the webhook is set.'),
    app_secret: secretField('The secret of the app, which signs what Meta sends.'),
    api_version: v.optional(
      v.pipe(v.string(), v.regex(/^v\d+\.\d+$/, 'such as v23.0'), v.description('The version of the Graph API.')),
      'v23.0',
    ),
    base_url: v.optional(
      v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i), v.description('The Graph API.')),
      'https://graph.facebook.com',
    ),
    download_hosts: fileOnly(
      'they are sent the access token',
      fields.texts('More hosts that media are read from with the access token, beside those of Meta.'),
    ),
  }),
  v.check(
    (value) => value.mode === 'web' || CLOUD_FIELDS.every((name) => value[name] !== undefined),
    `the Cloud API needs ${CLOUD_FIELDS.join(', ')}`,
  ),
)
export type WhatsAppConfig = v.InferOutput<typeof config>
