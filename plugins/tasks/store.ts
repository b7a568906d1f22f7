import type { PluginDatabase, Statement } from 'svc/sdk'

const MAX_REASON = 2_000

/** What is asked before anything works on tasks; the rest is in `rows/store.ts`. */
export async function hasTasks(db: PluginDatabase): Promise<boolean> {
  return (await db.one`SELECT id FROM tasks_task LIMIT 1`) !== undefined
}
/** The job that works on a task by a turn was given up. */
export function failJob(db: PluginDatabase, jobId: string, reason: string): Statement {
  return db.sql`UPDATE tasks_task SET status = 'failed', result = ${reason.slice(0, MAX_REASON)}, lease_until = NULL,
      completed_at = ${new Date().toISOString()}, revision = revision + 1
    WHERE claim_id = ${jobId} AND status = 'in_progress'`
}
