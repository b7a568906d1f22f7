import type { PluginDatabase } from 'svc/sdk'

/** What is asked before anything works on tasks; the rest is in `rows/store.ts`. */
export async function hasTasks(db: PluginDatabase): Promise<boolean> {
  return (await db.one`SELECT id FROM tasks_task LIMIT 1`) !== undefined
}
