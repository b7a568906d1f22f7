import * as v from 'valibot'
import { fields, fileOnly } from 'svc/sdk'

/** `[plugins.migrate]`. */
export const Settings = fileOnly(
  'says which folders of the machine the daemon reads, and how much of them',
  v.object({
    max_entries: fields.integer('Files and folders of a source; one with more is refused.', 200_000, 100, 10_000_000),
    max_file_bytes: fields.integer('Largest file of a source that is read.', 33_554_432, 1_024, 1_073_741_824),
    max_database_bytes: fields.integer(
      'Largest database of a source that is read.',
      4_294_967_296,
      1_024,
      1_099_511_627_776,
    ),
    max_sessions: fields.integer('Conversations of a source that come over.', 50_000, 1, 1_000_000),
    max_memories: fields.integer('Memories of a source that come over.', 50_000, 1, 1_000_000),
    max_messages: fields.integer('Messages of one conversation that come over, the newest ones.', 5_000, 1, 50_000),
    max_workspace_files: fields.integer('Files of the workspace of one agent that come over.', 5_000, 0, 1_000_000),
    max_reports: fields.integer('Reports that are kept; the oldest ones are deleted.', 100, 1, 10_000),
    foreign_owner: fields.flag('Whether the folder of another user of the machine is read.', {}, false),
  }),
)
export type Settings = v.InferOutput<typeof Settings>
