import * as v from 'valibot'
import { fields, fileOnly, secret } from 'svc/sdk'

export const Limits = fileOnly(
  'says what can be got back after damage',
  v.object({
    max_backups: fields.integer(
      'Archives that are kept; the next one is refused until some are deleted.',
      100,
      1,
      10_000,
    ),
    max_files: fields.integer('Files of one archive; one with more is refused.', 1_000_000, 1, 10_000_000),
    max_bytes: fields.integer(
      'Bytes of all files of one archive, unpacked; one with more is refused.',
      68_719_476_736,
      1_048_576,
      1_099_511_627_776,
    ),
    snapshot_interval_secs: fields.integer(
      'Seconds between two copies of the database, in case it is damaged; 0 takes none.',
      3_600,
      0,
      604_800,
    ),
    snapshots_kept: fields.integer('Copies of the database that are kept, the newest ones.', 24, 1, 1_000),
  }),
)
export type Limits = v.InferOutput<typeof Limits>

/** Of an archive, so that it can be named in a path and means the same on every system. */
export const ArchiveName = v.pipe(
  v.string(),
  v.maxLength(128),
  v.regex(
    /^[A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)*\.zip$/,
    'must be the name of a .zip file in the folder of backups, without any path',
  ),
)

const size = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(Number.MAX_SAFE_INTEGER))
const sha256 = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))
export const components = ['data', 'workspaces', 'files', 'config', 'audit_anchor', 'vault_key'] as const
export const Head = v.object({
  format: v.literal('svc-backup-1'),
  created_at: v.string(),
  svc_version: v.string(),
  components: v.array(v.picklist(components)),
})
export type Head = v.InferOutput<typeof Head>
export const FileEntry = v.object({
  name: v.string(),
  size,
  sha256,
  executable: v.optional(v.boolean()),
  mtime_ms: v.optional(size),
})
export type FileEntry = v.InferOutput<typeof FileEntry>
/** The exact files of an archive, beside its manifest and its authentication code. */
export const Manifest = v.object({
  ...Head.entries,
  database: v.string(),
  files: v.array(FileEntry),
  skipped: v.array(v.string()),
})
export type Manifest = v.InferOutput<typeof Manifest>

const count = v.pipe(v.number(), v.integer())
export const Made = v.object({
  filename: v.string(),
  size_bytes: count,
  path: v.string(),
  components: v.array(v.string()),
  created_at: v.string(),
  /** Names of links, pipes and the like, which are not copied. */
  skipped: v.array(v.string()),
})
export const Listed = v.object({
  filename: v.string(),
  size_bytes: count,
  path: v.string(),
  modified_at: v.string(),
  /** Null for an archive that cannot be read. */
  components: v.nullable(v.array(v.string())),
  svc_version: v.nullable(v.string()),
  created_at: v.nullable(v.string()),
})
export const List = v.object({ backups: v.array(Listed), total: count })
export const BackupParams = v.object({ filename: ArchiveName })
export const NewBackup = v.optional(
  v.nullable(
    v.object({
      /**
       * Puts the key of the vault into the archive, sealed with this: only then can secrets be read on another machine.
       */
      passphrase: v.optional(
        secret(v.pipe(v.string(), v.minLength(12, 'must have at least 12 characters'), v.maxLength(1_024))),
      ),
    }),
  ),
)
export const RestoreBody = v.object({
  filename: ArchiveName,
  passphrase: v.optional(secret(v.pipe(v.string(), v.maxLength(1_024)))),
})
export const Restored = v.object({
  status: v.literal('restarting'),
  restored_files: count,
  errors: v.array(v.string()),
  manifest: v.object({ ...Head.entries, files: count }),
  /** A backup of what was there until now. */
  previous: v.string(),
  message: v.string(),
})
