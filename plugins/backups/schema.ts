import * as v from 'valibot'
import { fileOnly, secret } from 'svc/sdk'

const whole = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))
export const Limits = fileOnly(
  'says what can be got back after damage',
  v.object({
    /** Archives that are kept at most; the next one is refused until some are deleted. */
    max_backups: v.optional(whole(1, 10_000), 100),
    /** Files of an archive, and bytes of all of them unpacked: one that says or holds more is refused. */
    max_files: v.optional(whole(1, 10_000_000), 1_000_000),
    max_bytes: v.optional(whole(1_048_576, 1_099_511_627_776), 68_719_476_736),
    /** Copies of the database beside the backups, for the day it is damaged; 0 takes none. */
    snapshot_interval_secs: v.optional(whole(0, 604_800), 3_600),
    snapshots_kept: v.optional(whole(1, 1_000), 24),
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
  size: whole(0, Number.MAX_SAFE_INTEGER),
  sha256,
  executable: v.optional(v.boolean()),
  mtime_ms: v.optional(whole(0, Number.MAX_SAFE_INTEGER)),
})
export type FileEntry = v.InferOutput<typeof FileEntry>
/** What an archive must hold, no more and no less, beside itself and its code of authentication. */
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
