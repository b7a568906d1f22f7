import * as v from 'valibot'
import { fields, fileOnly, settable } from 'svc/sdk'

/** Where a plugin may come from. */
export const sourceKinds = ['registry', 'url', 'git', 'archive', 'folder'] as const

const limit = 'a limit that costs memory or time, and lets nobody in'

export const Settings = fileOnly(
  'says whose code the daemon runs',
  v.object({
    sources: v.optional(
      v.pipe(
        v.array(v.picklist(sourceKinds)),
        v.description(
          'Where plugins may be installed from. All by default: only the holder of the API key, or whoever may write ' +
            'to <home>/plugins and so could put the code there anyway, can install. An empty list permits none.',
        ),
      ),
      [...sourceKinds],
    ),
    registry_url: v.optional(
      v.pipe(
        v.string(),
        v.url(),
        v.regex(/^https?:\/\//, 'an http or https address'),
        v.description('The npm registry. A private address must also be in [outbound] allow.'),
      ),
      'https://registry.npmjs.org',
    ),
    require_signature: fields.flag('Install only archives with a signature by one of trusted_keys.'),
    trusted_keys: v.optional(
      v.pipe(
        v.array(v.pipe(v.string(), v.regex(/^[0-9a-fA-F]{64}$/, 'a public key (Ed25519) of 64 hexadecimal digits'))),
        v.description('Public keys (Ed25519) of those whose signatures count.'),
      ),
      [],
    ),
    adopt: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          'Install, update and remove here what was installed, updated or removed at another daemon on the database. ' +
            'The other keys of this section hold as for a request.',
        ),
      ),
      true,
    ),
    ready_wait_secs: settable(
      limit,
      fields.integer(
        'Seconds that a daemon which starts is not ready (GET /api/ready) until it has the plugins of the other daemons ' +
          'on the database; then it serves without those that are missing, and is degraded.',
        120,
        0,
        3_600,
      ),
    ),
    max_archive_bytes: settable(
      limit,
      fields.integer('Largest archive that is downloaded or read.', 16_777_216, 1024, 1_073_741_824),
    ),
    max_unpacked_bytes: settable(
      limit,
      fields.integer(
        'Bytes of all files of a plugin, or of one dependency, unpacked.',
        67_108_864,
        1024,
        4_294_967_296,
      ),
    ),
    max_total_bytes: settable(
      limit,
      fields.integer(
        'Bytes of a plugin and all its dependencies, unpacked. They are fetched before it is accepted.',
        268_435_456,
        1024,
        17_179_869_184,
      ),
    ),
    max_files: settable(limit, fields.integer('Files of a plugin, or of one dependency.', 5000, 1, 1_000_000)),
    max_dependencies: settable(
      limit,
      fields.integer('Packages a plugin may bring, those of its dependencies included.', 200, 0, 10_000),
    ),
    max_metadata_bytes: settable(
      limit,
      fields.integer('Bytes the registry may say about packages in one installation.', 33_554_432, 1024, 1_073_741_824),
    ),
    max_inspection_bytes: settable(
      limit,
      fields.integer('Bytes in which a plugin says what it declares.', 2_097_152, 65_536, 67_108_864),
    ),
    max_problem_chars: settable(limit, fields.integer('Characters shown of an error of its code.', 2000, 100, 100_000)),
    inspect_timeout_ms: settable(
      limit,
      fields.integer('Milliseconds the code of a plugin has to say what it declares.', 20_000, 100, 600_000),
    ),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
