import type { PluginDatabase } from 'svc/sdk'

/** Whether there is a task that has yet to end: with none, nothing is loaded. */
export async function hasOpenTasks(db: PluginDatabase): Promise<boolean> {
  return (await db.one`SELECT 1 AS found FROM a2a_task WHERE state IN ('submitted', 'working') LIMIT 1`) !== undefined
}
