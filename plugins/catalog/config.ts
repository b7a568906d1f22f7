import * as v from 'valibot'
import { fileOnly } from 'svc/sdk'

const count = (description: string, initial: number, max: number) =>
  v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(max), v.description(description)), initial)
export const Config = fileOnly(
  'says whom prices are believed from, and how many',
  v.object({
    registry_url: v.optional(
      v.pipe(
        v.string(),
        v.url(),
        v.regex(/^https?:\/\//i, 'expected a URL that begins with http:// or https://'),
        v.description('URL of the model registry that POST /api/catalog/update reads, in the format of models.dev.'),
      ),
      'https://models.dev/api.json',
    ),
    registry_timeout_ms: count('Milliseconds a download of the registry may take.', 30_000, 600_000),
    max_registry_bytes: count('Bytes a download of the registry may have.', 33_554_432, 268_435_456),
    max_registry_models: count('Number of models read from the registry at most.', 20_000, 200_000),
    max_aliases: count('Number of aliases the owner may add.', 1000, 100_000),
    max_custom_models: count('Number of models the owner may add.', 1000, 100_000),
  }),
)
export type Config = v.InferOutput<typeof Config>
