import type { PluginDatabase } from 'svc/sdk'

/** Whether there is a job that will be due: with none, nothing is loaded at the start. */
export async function hasDueJobs(db: PluginDatabase): Promise<boolean> {
  const found = await db.one`SELECT 1 AS found FROM schedules_job WHERE enabled = 1 AND next_run IS NOT NULL LIMIT 1`
  return found !== undefined
}
/** Whether there is one at all, or one of an agent. */
export async function hasJobs(db: PluginDatabase, agentId?: string): Promise<boolean> {
  const found =
    agentId === undefined
      ? await db.one`SELECT 1 AS found FROM schedules_job LIMIT 1`
      : await db.one`SELECT 1 AS found FROM schedules_job WHERE agent_id = ${agentId} LIMIT 1`
  return found !== undefined
}
