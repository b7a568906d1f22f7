import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

const count = (description: string) => v.pipe(v.number(), v.integer(), v.minValue(1), v.description(description))
export const AgentsConfig = fileOnly(
  'bounds what agents can make of themselves',
  v.object({
    max_manifest_bytes: v.optional(count('Largest manifest of an agent, in bytes.'), 1_048_576),
    max_bulk: fields.integer('Agents that one request to /api/agents/bulk may name.', 50, 1, 1000),
    max_depth: fields.integer('Generations of agents created by agents, below the first one.', 5, 1, 100),
    max_descendants: fields.integer(
      'Agents created by an agent and its descendants that may exist at the same time.',
      50,
      1,
      100_000,
    ),
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
          'What happens to a manifest without a signature: accepted, accepted with a warning when there are trusted ' +
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
