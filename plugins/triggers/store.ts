import type { PluginDatabase } from 'svc/sdk'

/** Whether there is a trigger that may fire, or that fired for something that has not ended. */
export async function hasWork(db: PluginDatabase): Promise<boolean> {
  const found = await db.one`SELECT 1 AS found FROM triggers_trigger WHERE enabled = 1
    UNION SELECT 1 AS found FROM triggers_firing WHERE state = 'open' LIMIT 1`
  return found !== undefined
}
/** Whether there is one at all, or one of an agent. */
export async function hasTriggers(db: PluginDatabase, agentId?: string): Promise<boolean> {
  const found =
    agentId === undefined
      ? await db.one`SELECT 1 AS found FROM triggers_trigger LIMIT 1`
      : await db.one`SELECT 1 AS found FROM triggers_trigger
          WHERE agent_id = ${agentId} OR target_agent_id = ${agentId} OR created_by = ${agentId} LIMIT 1`
  return found !== undefined
}
