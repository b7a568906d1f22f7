import type { PluginDatabase } from 'svc/sdk'

/** Whether anything was ever added: without it nothing more of this plugin has to be loaded. */
export async function hasServers(db: PluginDatabase): Promise<boolean> {
  const row = await db.one`SELECT name FROM mcp_server UNION ALL SELECT name FROM mcp_server_attempt LIMIT 1`
  return row !== undefined
}
