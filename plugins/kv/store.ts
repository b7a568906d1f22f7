import type { PluginDatabase } from 'svc/sdk'

/** Whether any agent has keys: until then the code that works on them is not loaded. */
export async function isUsed(db: PluginDatabase): Promise<boolean> {
  return (await db.one`SELECT 1 AS found FROM kv_pair LIMIT 1`) !== undefined
}
