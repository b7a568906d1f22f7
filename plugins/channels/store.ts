import type { PluginDatabase } from 'svc/sdk'

/** Whether there is an account of a channel, or a message. */
export async function hasRows(db: PluginDatabase, channel: string): Promise<boolean> {
  const row = await db.one`SELECT 1 AS found FROM channels_account WHERE channel = ${channel}
    UNION ALL SELECT 1 FROM channels_inbox WHERE channel = ${channel}
    UNION ALL SELECT 1 FROM channels_outbox WHERE channel = ${channel} LIMIT 1`
  return row !== undefined
}

/** Whether the tables have an account, or a message of one that was removed. */
export async function isUsed(db: PluginDatabase): Promise<boolean> {
  const row = await db.one`SELECT 1 AS found FROM channels_account
    UNION ALL SELECT 1 FROM channels_inbox UNION ALL SELECT 1 FROM channels_outbox LIMIT 1`
  return row !== undefined
}
