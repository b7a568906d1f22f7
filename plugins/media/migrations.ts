import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-call',
    // `sent`: it may have been paid for; `paid`: its cost is recorded; `done`: `result` is what the agent was told.
    sql: `CREATE TABLE media_call (
      id TEXT PRIMARY KEY, agent_id TEXT NOT NULL, tool TEXT NOT NULL, state TEXT NOT NULL, result TEXT,
      created_at TEXT NOT NULL
    );
    CREATE INDEX media_call_time ON media_call (created_at);`,
  },
  // What was made, as JSON, for a request that asks for it again.
  { id: '002-call-detail', sql: 'ALTER TABLE media_call ADD COLUMN detail TEXT' },
]
