import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-record',
    sql: `CREATE TABLE usage_record (
      id INTEGER PRIMARY KEY, recorded_at TEXT NOT NULL,
      agent_id TEXT NOT NULL, session_id TEXT NOT NULL, turn_id TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
      input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cached_input_tokens INTEGER NOT NULL,
      cost_usd REAL, estimated INTEGER NOT NULL
    );
    CREATE INDEX usage_record_time ON usage_record (recorded_at);`,
  },
  { id: '002-agent', sql: 'CREATE INDEX usage_record_agent ON usage_record (agent_id, session_id)' },
]
