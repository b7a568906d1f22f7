import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

/** `[plugins.result-delivery]`. */
export const Settings = fileOnly(
  'bounds how long the daemon calls receivers that do not answer',
  v.object({
    give_up_hours: fields.integer('Hours after which a result that nobody took is given up.', 24, 1, 720),
    retry_max_secs: fields.integer('Longest pause between two attempts to deliver a result.', 3_600, 1, 86_400),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
