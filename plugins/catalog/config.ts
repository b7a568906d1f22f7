import * as v from 'valibot'
import { fileOnly } from 'svc/sdk'

const count = (initial: number, most: number) =>
  v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(most)), initial)
export const Config = fileOnly(
  'says whom prices are believed from, and how many',
  v.object({
    /** Registry of models that `POST /api/catalog/update` reads, in the format of models.dev. */
    registry_url: v.optional(
      v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'expected a URL that begins with http:// or https://')),
      'https://models.dev/api.json',
    ),
    registry_timeout_ms: count(30_000, 600_000),
    max_registry_bytes: count(33_554_432, 268_435_456),
    max_registry_models: count(20_000, 200_000),
    max_aliases: count(1000, 100_000),
    max_custom_models: count(1000, 100_000),
  }),
)
export type Config = v.InferOutput<typeof Config>
