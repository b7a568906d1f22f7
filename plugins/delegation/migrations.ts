import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-message',
    sql: `CREATE TABLE delegation_message (
      turn_id TEXT NOT NULL PRIMARY KEY,
      session_id TEXT NOT NULL,
      -- The agents that wait for the turn, the first one first, as JSON.
      chain TEXT NOT NULL
    )`,
  },
  // Whom a turn works for is on record with the turn.
  { id: '002-no-message', sql: 'DROP TABLE delegation_message' },
]
