import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  // What is done once in a home, beyond what SQL over the tables of one plugin can do.
  { id: '001-upkeep', sql: 'CREATE TABLE chat_upkeep (name TEXT NOT NULL PRIMARY KEY, done_at TEXT NOT NULL)' },
  {
    // Empty on SQLite: one daemon has all sessions.
    id: '002-session-owner',
    sql: `CREATE TABLE chat_session_owner (
      session_id TEXT NOT NULL PRIMARY KEY,
      owner TEXT NOT NULL,
      fence BIGINT NOT NULL,
      relayed BIGINT NOT NULL
    )`,
  },
  {
    id: '003-relayed-turn',
    sql: `CREATE TABLE chat_relayed_turn (
      session_id TEXT NOT NULL,
      number BIGINT NOT NULL,
      turn_id TEXT NOT NULL,
      accepted_by TEXT NOT NULL,
      sender TEXT,
      PRIMARY KEY (session_id, number)
    )`,
  },
]
