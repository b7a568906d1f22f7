import type * as v from 'valibot'
import { shown, shownLeft } from './report.ts'
import type { Detected, MigrateBody, Migrated, Scanned, Status } from './schema.ts'
import type { Migrations } from './service.ts'

/** Entries of an answer; the report has all. */
const MAX_SHOWN = 500

export async function detect(migrations: Migrations): Promise<v.InferOutput<typeof Detected>> {
  const homes = await migrations.detect()
  return {
    sources: homes.map(({ type, path, version, agents, skills }) => ({
      type,
      path,
      version,
      agents_found: agents.length,
      skills_found: skills.length,
    })),
  }
}

export async function scan(migrations: Migrations, folder: string): Promise<v.InferOutput<typeof Scanned>> {
  const home = await migrations.scan(folder)
  const { type, path, version, left, warnings } = home
  return {
    type,
    path,
    version,
    agents: home.agents.map(({ name, format }) => ({ name: shown(name, home), format, convertible: true })),
    skills: home.skills.map(({ key }) => shown(key, home)),
    sessions: home.sessions.length,
    channels: home.channels.map(({ channel, account }) =>
      shown(account === 'default' ? channel : `${channel}/${account}`, home),
    ),
    memories: home.memories.length,
    values: home.values.length,
    workflows: home.workflows.map(({ name }) => shown(name, home)),
    cron_jobs: home.jobs.map(({ name }) => shown(name, home)),
    triggers: home.triggers.length,
    left: left.slice(0, MAX_SHOWN).map((one) => ({ ...shownLeft(one, home) })),
    warnings: warnings.slice(0, MAX_SHOWN).map((text) => shown(text, home)),
  }
}

export async function migrate(
  migrations: Migrations,
  body: v.InferOutput<typeof MigrateBody>,
): Promise<v.InferOutput<typeof Migrated>> {
  const wanted = {
    agents: body.import_agents,
    keys: body.import_keys,
    skills: body.import_skills,
    sessions: body.import_sessions,
    channels: body.import_channels,
    automation: body.import_automation,
  }
  const { report, markdown, files } = await migrations.migrate(body.source, wanted, body.dry_run)
  const { imported, unchanged, left } = report
  const countOf = (kind: string): number => imported.filter((one) => one.kind === kind).length
  return {
    status: report.isDryRun ? 'checked' : 'completed',
    run_id: report.runId,
    type: report.type,
    path: report.path,
    agents_imported: countOf('agent'),
    skills_imported: countOf('skill'),
    sessions_imported: countOf('session'),
    warnings: report.warnings.slice(0, MAX_SHOWN),
    imported: imported.slice(0, MAX_SHOWN).map((one) => ({ ...one })),
    imported_count: imported.length,
    unchanged_count: unchanged.length,
    skipped: left.slice(0, MAX_SHOWN).map((one) => ({ ...one })),
    skipped_count: left.length,
    report_markdown: markdown,
    reports: [...files],
  }
}

export function status({ current }: Migrations): v.InferOutput<typeof Status> {
  if (!current) return NEVER
  const { state, run, endedAt, error, files } = current
  return {
    status: state,
    run_id: run.id,
    type: run.home.type,
    path: run.home.path,
    started_at: run.startedAt,
    ended_at: endedAt ?? null,
    done: run.done,
    total: run.total,
    imported_count: run.imported.length,
    skipped_count: run.left.length,
    error: error === undefined ? null : shown(error, run.home),
    reports: [...files],
  }
}
const NEVER: v.InferOutput<typeof Status> = {
  status: 'idle',
  run_id: null,
  type: null,
  path: null,
  started_at: null,
  ended_at: null,
  done: 0,
  total: 0,
  imported_count: 0,
  skipped_count: 0,
  error: null,
  reports: [],
}
