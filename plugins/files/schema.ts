import { isAbsolute } from 'node:path'
import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'
import { AgentParams } from '../agents/contract.ts'
import { S3Section } from './s3/section.ts'

/** No limit of a file is larger. */
export const MAX_FILE_BYTES = 1_073_741_824

export const Limits = fileOnly(
  'says where files of agents lie, and what they take of the disk',
  v.object({
    mount: v.optional(
      v.pipe(
        v.picklist(['folder', 'database', 's3']),
        v.description(
          'Where the files of agents and uploads lie: in data/workspaces, which all daemons on a database have to ' +
            'mount, in the database, or in a bucket. Programs of agents get a copy where it is no folder.',
        ),
      ),
      'folder',
    ),
    path: v.optional(
      v.pipe(
        v.string(),
        v.check(isAbsolute, 'an absolute folder'),
        v.description(
          'The folder that all daemons on a database have mounted, instead of data/workspaces. It has to be there at ' +
            'the start. For PostgreSQL only.',
        ),
        v.metadata({ restart: true, data_folder: true }),
      ),
    ),
    s3: v.optional(S3Section),
    max_file_bytes: fields.integer(
      'Largest file of a workspace that a route or a tool reads or writes, in bytes.',
      10_485_760,
      1,
      MAX_FILE_BYTES,
    ),
    max_upload_bytes: fields.integer('Largest upload, in bytes.', 10_485_760, 1, MAX_FILE_BYTES),
    max_copy_bytes: fields.integer(
      'Largest workspace that a program gets a copy of, in bytes, where the files lie in no folder.',
      104_857_600,
      1,
      10_737_418_240,
    ),
    max_copy_files: fields.integer('Files of such a workspace.', 10_000, 1, 1_000_000),
    sweep_hours: fields.integer(
      'Hours between two searches for files in the database or a bucket whose agent is gone; one daemon makes them.',
      24,
      1,
      720,
    ),
    max_identity_bytes: fields.integer('Largest identity file, such as SOUL.md, in bytes.', 32_768, 1, MAX_FILE_BYTES),
  }),
)
export type Limits = v.InferOutput<typeof Limits>

export const UploadRow = v.object({
  id: v.string(),
  agent_id: v.string(),
  filename: v.string(),
  /** In the workspace of the agent. */
  path: v.string(),
  content_type: v.string(),
  size_bytes: v.number(),
  created_at: v.string(),
})
export type UploadRow = v.InferOutput<typeof UploadRow>

export const FileParams = v.object({ ...AgentParams.entries, filename: v.string() })
export const UploadParams = v.object({ file_id: v.pipe(v.string(), v.uuid('Invalid file ID'), v.toLowerCase()) })
export const ListQuery = v.object({
  limit: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^(?:[1-9]\d{0,2}|1000)$/, 'must be a whole number from 1 to 1000'),
      v.transform(Number),
    ),
    '1000',
  ),
})
export const ReadQuery = v.object({ raw: v.optional(v.picklist(['true', 'false'], 'must be true or false')) })

export const FileList = v.object({
  files: v.array(
    v.object({
      name: v.string(),
      exists: v.boolean(),
      size_bytes: v.number(),
      modified_at: v.nullable(v.string()),
      /** Why it cannot be read. */
      problem: v.exactOptional(v.string()),
    }),
  ),
  /** There are more than requested. */
  truncated: v.boolean(),
})
const Encoding = v.picklist(['utf-8', 'base64'])
export const FileContent = v.object({
  name: v.string(),
  content: v.string(),
  size_bytes: v.number(),
  encoding: Encoding,
})
export const NewContent = v.object({ content: v.string(), encoding: v.optional(Encoding, 'utf-8') })
export const Written = v.object({
  status: v.literal('ok'),
  name: v.string(),
  size_bytes: v.number(),
  created: v.boolean(),
})
export const Removed = v.object({ status: v.literal('ok'), name: v.string() })
export const Uploaded = v.object({
  file_id: v.string(),
  filename: v.string(),
  content_type: v.string(),
  size: v.number(),
  path: v.string(),
})
