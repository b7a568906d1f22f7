import * as v from 'valibot'
import { line } from 'svc/sdk'

const count = v.pipe(v.number(), v.integer())
const type = v.pipe(v.string(), v.description('`openclaw`, `openfang` or `librefang`.'))
const Path = v.pipe(line(4096), v.description('Absolute path of a folder on the machine of the daemon.'))

export const Detected = v.object({
  sources: v.array(v.object({ type, path: v.string(), version: v.string(), agents_found: count, skills_found: count })),
})
export const ScanBody = v.object({ path: Path })
export const Left = v.object({ kind: v.string(), name: v.string(), reason: v.string() })
export const Scanned = v.object({
  type,
  path: v.string(),
  version: v.string(),
  agents: v.array(
    v.object({ name: v.string(), format: v.picklist(['json5', 'yaml', 'toml', 'database']), convertible: v.boolean() }),
  ),
  skills: v.array(v.string()),
  sessions: count,
  channels: v.array(v.string()),
  memories: count,
  values: count,
  workflows: v.array(v.string()),
  cron_jobs: v.array(v.string()),
  triggers: count,
  left: v.array(Left),
  warnings: v.array(v.string()),
})
const flag = (what: string) => v.optional(v.pipe(v.boolean(), v.description(what)), true)
export const MigrateBody = v.object({
  source: v.pipe(
    line(4096),
    v.description(
      'Absolute path of a home of another system, or `openclaw`, `openfang` or `librefang` for one that is found.',
    ),
  ),
  import_agents: flag('Agents with their files, values and memories.'),
  import_keys: flag('Keys of providers of models, into the vault.'),
  import_skills: flag('Skills.'),
  import_sessions: flag('Conversations.'),
  import_channels: flag('Accounts of chat platforms, disabled.'),
  import_automation: flag('Workflows; schedules and triggers, disabled.'),
  dry_run: v.optional(v.pipe(v.boolean(), v.description('Says what would come over, and makes nothing.')), false),
})
export type MigrateBody = v.InferOutput<typeof MigrateBody>
const Imported = v.object({ kind: v.string(), name: v.string(), destination: v.string() })
export const Migrated = v.object({
  status: v.picklist(['completed', 'checked']),
  run_id: v.string(),
  type,
  path: v.string(),
  agents_imported: count,
  skills_imported: count,
  sessions_imported: count,
  warnings: v.array(v.string()),
  imported: v.pipe(v.array(Imported), v.description('The first ones; all of them are in the report.')),
  imported_count: count,
  /** Of an earlier run. */
  unchanged_count: count,
  skipped: v.pipe(v.array(Left), v.description('The first ones; all of them are in the report.')),
  skipped_count: count,
  report_markdown: v.string(),
  reports: v.pipe(v.array(v.string()), v.description('Files in the home of the daemon; none of a dry run.')),
})
export const Status = v.object({
  status: v.picklist(['idle', 'running', 'completed', 'failed']),
  run_id: v.nullable(v.string()),
  type: v.nullable(type),
  path: v.nullable(v.string()),
  started_at: v.nullable(v.string()),
  ended_at: v.nullable(v.string()),
  done: count,
  total: count,
  imported_count: count,
  skipped_count: count,
  error: v.nullable(v.string()),
  reports: v.array(v.string()),
})
