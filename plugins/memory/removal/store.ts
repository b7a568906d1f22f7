import type { PluginDatabase } from 'svc/sdk'

/** Whether rows of a removed agent are left, or of any: until then the code that deletes them is not loaded. */
export async function isBeingRemoved(db: PluginDatabase, agentId = ''): Promise<boolean> {
  const row = await db.one`SELECT 1 AS found FROM memory_removal
    WHERE ${agentId} = '' OR agent_id = ${agentId} LIMIT 1`
  return row !== undefined
}
