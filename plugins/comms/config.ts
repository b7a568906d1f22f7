import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

/** `[plugins.comms]`. */
export const Settings = fileOnly(
  'bounds what watching agents costs',
  v.object({
    max_events: fields.integer('Events that are kept, the newest ones.', 10_000, 500, 1_000_000),
    max_streams: fields.integer('Readers that may follow the events at the same time.', 32, 1, 1_000),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
