import * as v from 'valibot'
import { fields } from 'svc/sdk'

const anotherWayIn = 'is a way in beside the API key, which outlives a new key'
/** `[pairing]` at the top of the file. */
export const Settings = fields.table(
  'Phones and other devices that get a key of their own, with a short code that is typed in once.',
  fields.inFile(anotherWayIn),
  {
    enabled: fields.flag('Let devices be paired, and let those that are use their keys.'),
    max_devices: fields.integer('Devices that can be paired at the same time.', 10, 1, 1000),
    token_expiry_secs: fields.integer('How long a code can be used.', 300, 30, 3600),
    max_pending: fields.integer('Codes that can wait to be used at the same time.', 5, 1, 50),
    max_attempts: fields.integer(
      'Wrong codes, from any sender, after which the pending codes are void.',
      100,
      1,
      10_000,
    ),
    last_seen_secs: fields.integer('How often the time of the last request of a device is stored.', 60, 1, 86_400),
    public_base_url: fields.webAddress('Address under which devices reach this daemon, for the link of a code.'),
    push_provider: v.optional(
      v.pipe(v.picklist(['none', 'ntfy', 'gotify']), v.description('Who brings notifications to the devices.')),
      'none',
    ),
    ntfy_url: fields.webAddress('Server of ntfy; https://ntfy.sh when unset.'),
    ntfy_topic: fields.secretText('Topic of ntfy the devices are subscribed to. Who knows it can read along.'),
    ntfy_token: fields.secretText('Access token of ntfy, where the topic needs one.'),
    gotify_url: fields.webAddress('Server of gotify.'),
    gotify_token: fields.secretText('Token of an application of gotify.'),
    push_timeout_ms: fields.integer('Time a notification may take.', 10_000, 100, 60_000),
  },
)
export type Settings = v.InferOutput<typeof Settings>
