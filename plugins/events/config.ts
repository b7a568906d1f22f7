import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

export const EventsConfig = fileOnly(
  'bounds what agents publish',
  v.object({
    payload_bytes: v.optional(
      v.pipe(v.number(), v.integer(), v.minValue(2), v.description('Largest payload of one event, in bytes of JSON.')),
      65_536,
    ),
    retention_hours: fields.integer('Hours for which published events are kept with their payload.', 24, 1, 8_760),
  }),
)
export type EventsConfig = v.InferOutput<typeof EventsConfig>
