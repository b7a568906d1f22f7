import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const count = v.pipe(v.number(), v.integer(), v.minValue(1))
export const AgentsConfig = fileOnly(
  'bounds what agents can make of themselves',
  v.object({
    max_manifest_bytes: v.optional(count, 1_048_576),
    /** Agents that one request to /api/agents/bulk may name. */
    max_bulk: v.optional(v.pipe(count, v.maxValue(1000)), 50),
    /** Agents made by agents: generations below the first one, and how many of them at once. */
    max_depth: v.optional(v.pipe(count, v.maxValue(100)), 5),
    max_descendants: v.optional(v.pipe(count, v.maxValue(100_000)), 50),
  }),
)

/** `[manifest_signing]` at the top of the file. */
export const SigningConfig = fields.table(
  'Signature policy for manifests of agents.',
  fields.inFile('says which agents may be made'),
  {
    policy: v.optional(
      v.pipe(
        v.picklist(['off', 'warn', 'require']),
        v.description(
          'What happens to a manifest without a signature: taken, taken with a warning when there are trusted ' +
            'signers, refused. A bad signature is always refused.',
        ),
      ),
      'warn',
    ),
    trusted_signers: v.optional(
      v.pipe(
        v.array(v.string()),
        v.check(
          (keys) => keys.every((key) => /^[0-9a-fA-F]{64}$/.test(key)),
          'a list of public keys, each of 64 hexadecimal digits',
        ),
        v.description('Public keys (Ed25519) of those whose signatures count.'),
      ),
      [],
    ),
  },
)
export type SigningConfig = v.InferOutput<typeof SigningConfig>
