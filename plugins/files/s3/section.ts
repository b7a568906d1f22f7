import * as v from 'valibot'
import { fields } from 'svc/sdk'

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^(?:(?!\.{1,2}\/)[A-Za-z0-9_.-]+\/)*$/

/** `[plugins.files.s3]` */
export const S3Section = fields.table(
  'A bucket of Amazon S3, MinIO, Ceph or another server that speaks S3, for mount = "s3".',
  {},
  {
    bucket: v.pipe(
      v.string(),
      v.regex(BUCKET, 'the name of a bucket: 3 to 63 small letters, digits, - and .'),
      v.description('Name of the bucket. It has to exist.'),
    ),
    region: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[a-z0-9][a-z0-9-]{0,62}$/, 'a region such as eu-central-1'),
        v.description('Region of the bucket, such as eu-central-1; what servers other than those of Amazon call it.'),
      ),
      'us-east-1',
    ),
    endpoint: v.optional(
      v.pipe(
        v.string(),
        v.url(),
        v.regex(/^https?:\/\/[^/?#@]+\/?$/i, 'an http or https address without a path'),
        v.description(
          'Address of the server, such as https://minio.example.org:9000; that of Amazon in the region when unset.',
        ),
      ),
    ),
    path_style: v.optional(
      v.pipe(
        v.boolean(),
        v.description(
          'Name the bucket in the path and not in the host name. Unset: in the path with an endpoint or a dot in the name, else not.',
        ),
      ),
    ),
    prefix: v.optional(
      v.pipe(
        v.string(),
        v.maxLength(512),
        v.regex(PREFIX, 'empty, or names other than . and .. that each end in /, such as "svc/"'),
        v.description('What the names of all objects begin with, such as "svc/".'),
      ),
      '',
    ),
    access_key_id: fields.text('Id of the access key; the one in the vault precedes it.'),
    access_key_id_env: variableOr('Environment variable that holds the id instead.', 'AWS_ACCESS_KEY_ID'),
    secret_access_key: fields.secretText('Secret of the access key.'),
    secret_access_key_env: variableOr('Environment variable that holds the secret instead.', 'AWS_SECRET_ACCESS_KEY'),
    session_token_env: variableOr(
      'Environment variable that holds the session token, for an access key that comes from a variable as well.',
      'AWS_SESSION_TOKEN',
    ),
    timeout_ms: fields.integer('Milliseconds one request may take.', 60_000, 1_000, 3_600_000),
    deadline_ms: fields.integer(
      'Milliseconds a file may take to be read or written, with all tries and pauses.',
      120_000,
      1_000,
      3_600_000,
    ),
    attempts: fields.integer('Tries of a request that the server is too busy for, or does not answer.', 4, 1, 20),
    min_object_bytes: fields.integer(
      'Smaller files stay in the database, where they cost no request.',
      4_096,
      0,
      1_048_576,
    ),
    keep_unused_days: fields.integer(
      'Days that the content of a file that was replaced or removed stays in the bucket, for an older backup of the ' +
        'database that still names it.',
      7,
      1,
      3_650,
    ),
  },
)
export type S3Section = v.InferOutput<typeof S3Section>

function variableOr(description: string, fallback: string) {
  return v.optional(
    v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'the name of a variable'), v.description(description)),
    fallback,
  )
}
