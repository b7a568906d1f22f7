import type { Migration } from 'svc/sdk'

export const removalMigrations: readonly Migration[] = [
  {
    // Agents that are gone, of which not all memories are deleted yet. Whatever reads memories leaves theirs out.
    id: '060-removal',
    sql: `CREATE TABLE memory_removal (
      agent_id TEXT NOT NULL PRIMARY KEY,
      removed_at TEXT NOT NULL
    )`,
  },
]
